/*
 * Public keys in every form that merchants have them, private keys for
 * samples, and RSA signatures (RSASSA-PKCS1-v1_5). A loaded key is immutable
 * and used from any thread.
 */
#ifndef PN_KEY_H
#define PN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/digest.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

enum pn_rsa_hash {
	PN_RSA_SHA1,   /* Alipay sign_type RSA */
	PN_RSA_SHA256, /* Alipay RSA2, WeChat Pay v3 */
};

struct pn_public_key;

/*
 * Recognised by content, never by label or file name: PEM with any wrapping,
 * one long line, CRLF, BOM, trailing blanks; SubjectPublicKeyInfo, PKCS#1 or an
 * X.509 certificate (whatever the PEM label says); bare base64 of the DER of
 * any of them; base64 of a PEM file. Of several blocks the first certificate
 * or key counts; root files with SM2 or EC certificates do no harm. RSA only,
 * 1024 bits or more. 0; -EINVAL with a text that says what was found and what
 * is wanted; -ENOMEM.
 */
int pn_public_key_parse(struct pn_str text, struct pn_public_key **ret_key,
    struct pn_error *ret_error) PN_MUSTCHECK;
struct pn_public_key *pn_public_key_ref(struct pn_public_key *key);
void pn_public_key_unref(struct pn_public_key *key);

/* SHA-256 of the DER SubjectPublicKeyInfo, PN_SHA256_BYTES long. */
const unsigned char *pn_public_key_fingerprint(const struct pn_public_key *key);
/* The key as PEM SubjectPublicKeyInfo, borrowed. */
const char *pn_public_key_pem(const struct pn_public_key *key);
/* Of a certificate: serial in upper-case hex, two digits a byte; else NULL. */
const char *pn_public_key_serial(const struct pn_public_key *key);
/* Of a certificate: its validity; PN_MOMENT_NONE for a bare key. */
int64_t pn_public_key_not_before_us(const struct pn_public_key *key);
int64_t pn_public_key_not_after_us(const struct pn_public_key *key);
/* Bytes of a signature by this key. */
size_t pn_public_key_signature_bytes(const struct pn_public_key *key);

/* True when signature (raw bytes) is right. Never an error: a signature of
 * another length, or that the library dislikes, is just wrong. */
bool pn_public_key_verify(const struct pn_public_key *key,
    enum pn_rsa_hash hash, struct pn_str message, struct pn_str signature);

struct pn_private_key;

/* PEM or bare base64 of PKCS#8 or PKCS#1. -EINVAL, -ENOMEM. */
int pn_private_key_parse(struct pn_str text, struct pn_private_key **ret_key,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_private_key_free(struct pn_private_key *key);
/* fingerprint of its public half, to match it to a configured key */
const unsigned char *
pn_private_key_fingerprint(const struct pn_private_key *key);
/* Base64 of the signature in *ret_base64, in the arena. */
struct pn_arena;
int pn_private_key_sign(const struct pn_private_key *key, enum pn_rsa_hash hash,
    struct pn_str message, struct pn_arena *arena,
    struct pn_str *ret_base64) PN_MUSTCHECK;

#endif
