/*
 * Keys and certificates made for one run of a test: none is ever stored.
 */
#ifndef PN_TEST_KEY_MAKE_H
#define PN_TEST_KEY_MAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

#include "paynotify/key.h"

enum made_form {
	MADE_SPKI,
	MADE_PKCS1,
	MADE_PRIVATE_PKCS8,
	MADE_PRIVATE_PKCS1,
};

/* DER of the key in that form, base64 without line ends; free() it. */
char *made_base64(EVP_PKEY *pkey, enum made_form form);
/* DER of a certificate with that serial, 2026 to 2027, signed by the key. */
char *made_certificate_base64(
    EVP_PKEY *pkey, const unsigned char *serial, size_t serial_bytes);
/* "-----BEGIN label-----" ...; line_bytes 0: one long line. free() it. */
char *made_pem(const char *label, const char *base64, size_t line_bytes,
    const char *newline);
struct pn_private_key *made_private(EVP_PKEY *pkey);

#endif
