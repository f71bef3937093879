/*
 * A server on a port of its own, and clients that see the bytes. Setting up, and
 * what a client's thread may do, aborts instead of failing a test: cmocka's
 * asserts belong to its own thread.
 */
#ifndef PN_TEST_WIRE_H
#define PN_TEST_WIRE_H

#include "http_internal.h"

enum { REPLY_BYTES_MAX = 32 << 10 };

struct wire {
	struct pn_conf_server conf;
	struct pn_server_options options;
	struct pn_conf_cidr trusted;
	char *address;
	struct pn_server *server;
	int port;
};

/* Body of at most 2000 bytes, two threads; what was set in wire->conf before
 * stays. */
void
wire_open(struct wire *wire, const struct pn_handler *handler, void *service);
/* What is not closed yet. Clients that vanished in the middle are not waited
 * for. */
void wire_close(struct wire *wire);

int wire_connect(const struct wire *wire);
void wire_send(int fd, const char *text);
void wire_post(int fd, const char *path, const char *body);
/* Reads one reply; its status, or 0 at the end. */
int wire_read(int fd, char reply[REPLY_BYTES_MAX]);
/* Ditto of what has a Content-Length, but no body. */
int wire_read_head(int fd, char reply[REPLY_BYTES_MAX]);

#endif
