/*
 * Sending one raw request and judging the reply: what `trigger` and `replay`
 * share. Private to src/cmd. A connection and what belongs to it is used by one
 * thread at a time.
 */
#ifndef PN_CTL_SEND_H
#define PN_CTL_SEND_H

#include "ctl.h"

#include "paynotify/arena.h"
#include "paynotify/net.h"

/* Where requests go. */
struct ctl_target {
	char url[PN_PATH_BYTES_MAX];  /* for pn_net_send_raw */
	char host[PN_PATH_BYTES_MAX]; /* of the Host header */
	char path[PN_PATH_BYTES_MAX]; /* "" when the URL names none */
};

/* --to, or else the first [server] listen address. CTL_DONE, or another exit
 * code after telling what is wrong. */
int ctl_target_find(
    const struct ctl *ctl, struct ctl_target *ret_target) PN_MUSTCHECK;
/* The two halves. 0; 1 with a text that says what is wrong. */
int ctl_target_parse(const char *to, struct ctl_target *ret_target,
    struct pn_error *ret_error) PN_MUSTCHECK;
int ctl_target_of_listen(const char *listen, struct ctl_target *ret_target,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* The request as bytes for the wire. Host and Content-Length are added unless
 * the request has its own. */
void ctl_request_add(struct pn_buf *out, const struct pn_request *request,
    const char *path, const char *host);

/* True when the reply is what the provider's success looks like: status and
 * exact body, in the dialect of the request. provider NULL: any 2xx. */
bool ctl_reply_is_success(const struct pn_provider *provider,
    const struct pn_request *request, const struct pn_net_reply *reply,
    struct pn_arena *arena);

#endif
