/*
 * What the files of src/net share: reading a reply from bytes. Pure.
 */
#ifndef PN_NET_INTERNAL_H
#define PN_NET_INTERNAL_H

#include <stdbool.h>

#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

enum {
	PN_NET_HEAD_BYTES_MAX = 16 << 10,
	PN_NET_BODY_BYTES_MAX = 64 << 10,
	/* Head, body, and as much again for the framing of chunks. */
	PN_NET_REPLY_BYTES_MAX =
	    2 * (PN_NET_HEAD_BYTES_MAX + PN_NET_BODY_BYTES_MAX),
};

struct pn_net_parsed {
	int status;
	bool keep;   /* the connection may be used again */
	size_t used; /* bytes of the input that are this reply */
};

enum { PN_NET_MORE = 1 }; /* the reply is not complete yet */

/* One HTTP/1.x reply from the start of input; interim ones (1xx) are passed
 * over. at_end: nothing will follow. bodyless: it answers a HEAD. The body goes
 * to body, which is emptied first. 0, PN_NET_MORE, -EPROTO, -EMSGSIZE,
 * -ENOMEM. */
int pn_net_reply_parse(struct pn_str input, bool at_end, bool bodyless,
    struct pn_buf *body, struct pn_net_parsed *ret_parsed,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
