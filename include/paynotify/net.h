/*
 * Outbound HTTP on libcurl: deadlines, capped answers, no redirects.
 */
#ifndef PN_NET_H
#define PN_NET_H

#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/request.h"

int pn_net_init(void) PN_MUSTCHECK;       /* once, before threads */
const char *pn_net_library_version(void); /* of the libcurl that is loaded */

struct pn_net_reply {
	int status;
	struct pn_str body; /* capped at 64 kB */
	int64_t elapsed_us;
};

struct pn_net; /* a keep-alive connection to one place; one thread at a time */
int pn_net_open(struct pn_net **ret_net) PN_MUSTCHECK;
void pn_net_close(struct pn_net *net);

/* Sends raw, byte for byte, as one HTTP/1.1 request to url's host and port
 * (http://host:port or http+unix path "unix:/path") and reads one answer. */
int pn_net_send_raw(struct pn_net *net, const char *url, struct pn_str raw,
    int64_t timeout_us, struct pn_arena *arena, struct pn_net_reply *ret_reply,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
