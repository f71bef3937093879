/*
 * The HTTP server: libmicrohttpd's epoll thread pool. It reads a request,
 * gives it to ingest, suspends the connection, and answers when ingest says
 * so. The one place where an outcome becomes a status.
 */
#ifndef PN_SERVER_H
#define PN_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/ingest.h"

struct pn_server;

/* Binds all [server] listen addresses, all or nothing. */
int pn_server_open(const struct pn_conf *conf, struct pn_ingest *ingest,
    struct pn_server **ret_server, struct pn_error *ret_error) PN_MUSTCHECK;
/* Stops accepting at once, lets every request that is being read or waits for
 * the store end (at most grace_us), then closes. */
void pn_server_close(struct pn_server *server, int64_t grace_us);
/* Status code of an outcome (DESIGN.md section 6). */
unsigned pn_server_status(enum pn_outcome outcome);
/* "127.0.0.1:8600, unix:/run/x": with the real port where 0 was asked for.
 * Borrowed from the server. */
const char *pn_server_listening(const struct pn_server *server);
/* The version of libmicrohttpd that is loaded. */
const char *pn_server_library_version(void);

enum { PN_LISTEN_TEXT_BYTES = 128 };

/* A listening socket. */
struct pn_listen {
	int fd;                               /* non-blocking; -1 when closed */
	char text[PN_LISTEN_TEXT_BYTES];      /* as it may be connected to */
	char unix_path[PN_LISTEN_TEXT_BYTES]; /* "" unless a unix socket */
};

/* "host:port", "[::]:port" (both families) or "unix:/path" (mode 0660; a stale
 * socket is replaced, a live one is not). local: only loopback and unix sockets
 * are allowed. -EINVAL: not such an address, or not local; else the errno. The
 * text is complete: could not listen on "127.0.0.1:8600": address already in
 * use. */
int pn_listen_open(const char *address, bool local,
    struct pn_listen *ret_listen, struct pn_error *ret_error) PN_MUSTCHECK;
/* Closes, and removes the unix socket. */
void pn_listen_close(struct pn_listen *listen);
/* The form only, and whether it is local. Opens nothing, resolves no name. */
int pn_listen_check(
    const char *address, bool local, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
