/*
 * Digests, HMAC, constant-time comparison, random bytes. Any thread.
 */
#ifndef PN_DIGEST_H
#define PN_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/secret.h"
#include "paynotify/str.h"

enum {
	PN_SHA256_BYTES = 32,
	PN_MD5_BYTES = 16,
};

/* Failure of a digest is a fault of the library and aborts. */
void pn_sha256(struct pn_str data, unsigned char ret_digest[PN_SHA256_BYTES]);
void pn_md5(struct pn_str data, unsigned char ret_digest[PN_MD5_BYTES]);
void pn_hmac_sha256(const struct pn_secret *key, struct pn_str data,
    unsigned char ret_digest[PN_SHA256_BYTES]);

/* Constant time in the content; lengths may show. */
bool pn_equal_constant_time(struct pn_str a, struct pn_str b);

/* From the kernel. Not for providers, which are pure: they get bytes. */
void pn_random_bytes(void *ret_data, size_t len);

#endif
