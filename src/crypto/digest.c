/*
 * Digests, HMAC, comparison in constant time, random bytes.
 *
 * None of them can fail for a reason that a caller could act on: memory for a
 * context, or a library that is broken. They abort, so that no caller carries
 * on with a digest that was not computed.
 */
#include "paynotify/digest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "crypto_internal.h"

PN_NORETURN static void
give_up(const char *what)
{
	fprintf(stderr, "OpenSSL cannot compute %s\n", what);
	abort();
}

static void
digest(const EVP_MD *algorithm, const char *name, struct pn_str data,
    unsigned char *ret_digest, unsigned bytes)
{
	unsigned len = 0;

	if (algorithm == NULL ||
	    EVP_Digest(
		data.data, data.len, ret_digest, &len, algorithm, NULL) != 1 ||
	    len != bytes)
		give_up(name);
}

void
pn_sha256(struct pn_str data, unsigned char ret_digest[PN_SHA256_BYTES])
{
	digest(crypto_library()->sha256, "SHA-256", data, ret_digest,
	    PN_SHA256_BYTES);
}

void
pn_md5(struct pn_str data, unsigned char ret_digest[PN_MD5_BYTES])
{
	digest(crypto_library()->md5, "MD5 (forbidden by a FIPS policy?)", data,
	    ret_digest, PN_MD5_BYTES);
}

void
pn_hmac_sha256(const struct pn_secret *key, struct pn_str data,
    unsigned char ret_digest[PN_SHA256_BYTES])
{
	char name[] = "SHA256"; /* the parameter wants it writable */
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(
		    OSSL_MAC_PARAM_DIGEST, name, 0),
		OSSL_PARAM_construct_end(),
	};
	const unsigned char *bytes = (const unsigned char *)data.data;
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(crypto_library()->hmac);
	size_t len = 0;

	assert(key != NULL && key->data != NULL);
	if (ctx == NULL || EVP_MAC_init(ctx, key->data, key->len, params) != 1)
		give_up("HMAC");
	if (data.len > 0 && EVP_MAC_update(ctx, bytes, data.len) != 1)
		give_up("HMAC");
	if (EVP_MAC_final(ctx, ret_digest, &len, PN_SHA256_BYTES) != 1 ||
	    len != PN_SHA256_BYTES)
		give_up("HMAC");
	EVP_MAC_CTX_free(ctx);
}

bool
pn_equal_constant_time(struct pn_str a, struct pn_str b)
{
	if (a.len != b.len)
		return false;
	return a.len == 0 || CRYPTO_memcmp(a.data, b.data, a.len) == 0;
}

void
pn_random_bytes(void *ret_data, size_t len)
{
	unsigned char *data = ret_data;

	while (len > 0) {
		ssize_t n = getrandom(data, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fputs("the kernel gives no random bytes\n", stderr);
			abort();
		}
		data += n;
		len -= (size_t)n;
	}
}
