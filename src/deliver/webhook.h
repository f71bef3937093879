/*
 * A push as a Standard Webhook: secrets, signatures, headers. Pure; any thread.
 */
#ifndef PN_DELIVER_WEBHOOK_H
#define PN_DELIVER_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/secret.h"
#include "paynotify/str.h"

enum {
	PN_WEBHOOK_SECRET_BYTES_MIN = 24, /* as the specification says */
	PN_WEBHOOK_SECRET_BYTES_MAX = 64,
};

/* "whsec_" and base64. 0; 1: it is not, the text says in what (and quotes
 * nothing of it); -ENOMEM. */
int pn_webhook_secret_parse(struct pn_str text, struct pn_secret *ret_secret,
    struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_webhook {
	struct pn_str id; /* of the event: the same in each attempt */
	int64_t sent_at_s;
	bool redelivery;                 /* asked for by an operator */
	const struct pn_secret *secrets; /* one signature each, in order */
	size_t secret_count;             /* > 0 */
};

/* Begins the text that is signed: what is added to it afterwards is the body,
 * so that body and signed text need one buffer. The length to cut off. */
size_t pn_webhook_begin(struct pn_buf *text, const struct pn_webhook *webhook);
/* All headers of the request, "Name: value LF" lines. */
void pn_webhook_add_headers(struct pn_buf *out,
    const struct pn_webhook *webhook, struct pn_str signed_text);

#endif
