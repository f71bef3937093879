/*
 * What the files of the template provider share. Private to src/provider.
 */
#ifndef PN_TEMPLATE_INTERNAL_H
#define PN_TEMPLATE_INTERNAL_H

#include "provider_internal.h"

#define PN_TEMPLATE_TIMESTAMP "X-Template-Timestamp"
#define PN_TEMPLATE_SIGNATURE "X-Template-Signature"

struct pn_template {
	const struct pn_conf_account *conf;
	const struct pn_secret *secret;
	unsigned char fingerprint[PN_SHA256_BYTES];
};

/* HMAC-SHA256(secret, timestamp "." body). -ENOMEM. */
int pn_template_hmac(const struct pn_secret *secret, struct pn_str timestamp,
    struct pn_str body, unsigned char ret_digest[PN_SHA256_BYTES]);
/* See pn_provider.sample. */
int pn_template_sample(const void *account, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error);

#endif
