/*
 * Private keys, for the samples of test accounts and for tests: PKCS#8 or
 * PKCS#1, PEM or bare base64. Signing takes what it takes: nothing on the
 * path of a notification signs.
 */
#include "paynotify/key.h"

#include <errno.h>
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "paynotify/arena.h"
#include "paynotify/encode.h"

#include "crypto_internal.h"

enum { SIGNATURE_BYTES_MAX = 2048 }; /* RSA of 16384 bits */

struct pn_private_key {
	EVP_PKEY *pkey;
	unsigned char fingerprint[PN_SHA256_BYTES];
};

static int
fingerprint_set(struct pn_private_key *key)
{
	unsigned char *der = NULL;
	int bytes = i2d_PUBKEY(key->pkey, &der);

	if (bytes <= 0)
		return -ENOMEM;
	pn_sha256(
	    (struct pn_str){ (char *)der, (size_t)bytes }, key->fingerprint);
	OPENSSL_free(der);
	return 0;
}

/* One block, the first private key of the text. */
static int
parse(
    struct pn_private_key *key, struct pn_str text, struct pn_error *ret_error)
{
	struct crypto_blocks blocks;
	struct crypto_block block;
	int r;

	crypto_blocks_init(&blocks, text);
	while ((r = crypto_blocks_next(&blocks, &block, ret_error)) > 0) {
		const unsigned char *at = (const unsigned char *)block.der.data;

		if (pn_str_is(block.label, "ENCRYPTED PRIVATE KEY")) {
			r = pn_error_set(ret_error, -EINVAL,
			    "the key is encrypted; store it without a"
			    " passphrase");
			break;
		}
		key->pkey = d2i_AutoPrivateKey(NULL, &at, (long)block.der.len);
		if (key->pkey != NULL)
			break;
	}
	crypto_blocks_done(&blocks);
	if (r < 0)
		return r;
	if (key->pkey == NULL)
		return pn_error_set(ret_error, -EINVAL,
		    "no private key in it; an RSA private key is wanted, "
		    "PKCS#8 or PKCS#1, as PEM or base64");
	if (!EVP_PKEY_is_a(key->pkey, "RSA"))
		return pn_error_set(ret_error, -EINVAL,
		    "the private key is %s; an RSA key is wanted",
		    EVP_PKEY_get0_type_name(key->pkey));
	if (EVP_PKEY_get_size(key->pkey) > SIGNATURE_BYTES_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "the private RSA key has %d bits; at most %d are wanted",
		    EVP_PKEY_get_bits(key->pkey), SIGNATURE_BYTES_MAX * 8);
	return fingerprint_set(key);
}

int
pn_private_key_parse(struct pn_str text, struct pn_private_key **ret_key,
    struct pn_error *ret_error)
{
	struct pn_private_key *key = calloc(1, sizeof(*key));
	int r;

	if (key == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	r = parse(key, text, ret_error);
	ERR_clear_error();
	if (r < 0) {
		pn_private_key_free(key);
		return r == -ENOMEM
			   ? pn_error_set(ret_error, r, "out of memory")
			   : r;
	}
	*ret_key = key;
	return 0;
}

void
pn_private_key_free(struct pn_private_key *key)
{
	if (key == NULL)
		return;
	EVP_PKEY_free(key->pkey);
	free(key);
}

const unsigned char *
pn_private_key_fingerprint(const struct pn_private_key *key)
{
	return key->fingerprint;
}

static int
sign(const struct pn_private_key *key, const EVP_MD *md, struct pn_str message,
    unsigned char *ret_signature, size_t *len)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_bytes = 0;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key->pkey, NULL);
	int r = -ENOMEM;

	if (ctx != NULL &&
	    EVP_Digest(message.data, message.len, digest, &digest_bytes, md,
		NULL) == 1 &&
	    EVP_PKEY_sign_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, md) == 1 &&
	    EVP_PKEY_sign(ctx, ret_signature, len, digest, digest_bytes) == 1)
		r = 0;
	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return r;
}

int
pn_private_key_sign(const struct pn_private_key *key, enum pn_rsa_hash hash,
    struct pn_str message, struct pn_arena *arena, struct pn_str *ret_base64)
{
	const struct crypto_library *library = crypto_library();
	unsigned char signature[SIGNATURE_BYTES_MAX];
	size_t len = sizeof(signature);
	char *text;
	int r;

	r = sign(key, hash == PN_RSA_SHA1 ? library->sha1 : library->sha256,
	    message, signature, &len);
	if (r < 0)
		return r;
	text = pn_arena_alloc(arena, PN_BASE64_ENCODED_BYTES(len) + 1);
	if (text == NULL)
		return -ENOMEM;
	pn_base64_encode(signature, len, text);
	*ret_base64 = (struct pn_str){ text, PN_BASE64_ENCODED_BYTES(len) };
	return 0;
}
