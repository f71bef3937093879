/*
 * What the files of crypto share: algorithms fetched once.
 */
#ifndef PN_CRYPTO_INTERNAL_H
#define PN_CRYPTO_INTERNAL_H

#include <openssl/evp.h>

#include "paynotify/buf.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

struct crypto_library {
	EVP_MD *sha1, *sha256, *md5; /* md5 NULL where a policy forbids it */
	EVP_MAC *hmac;
	EVP_CIPHER *aes_gcm, *aes_ecb;
};

/* library.c: any thread; the first caller fetches. Never NULL: a library
 * without SHA-256 or AES is a broken installation, and aborts. */
const struct crypto_library *crypto_library(void);

/* pem.c: one key or certificate of a text, as DER. */
enum { CRYPTO_LABEL_BYTES_MAX = 64 };

struct crypto_block {
	struct pn_str label; /* "CERTIFICATE"; empty: the text had none */
	struct pn_str der;   /* in the reader's buffer, until the next call */
};

struct crypto_blocks {
	struct pn_str rest;
	struct pn_buf outer; /* a whole text that was base64 itself */
	struct pn_buf base64, der;
	bool bare; /* one block without BEGIN and END */
	unsigned count;
};

void crypto_blocks_init(struct crypto_blocks *blocks, struct pn_str text);
void crypto_blocks_done(struct crypto_blocks *blocks);
/* 1 and a block; 0 at the end; -EINVAL with a text; -ENOMEM. */
int crypto_blocks_next(struct crypto_blocks *blocks,
    struct crypto_block *ret_block, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
