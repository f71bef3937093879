/*
 * The HTTP server: libmicrohttpd's epoll thread pool. It reads a request,
 * gives it to ingest, suspends the connection, and answers when ingest says
 * so. The one place where an outcome becomes a status.
 */
#ifndef PN_SERVER_H
#define PN_SERVER_H

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

#endif
