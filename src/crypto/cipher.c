/*
 * AES-256 in GCM and ECB, as WeChat Pay encrypts what it tells.
 *
 * Decrypting has two outcomes and no more: text, or "does not decrypt"; why it
 * does not is nobody's business outside, and nothing of it is left in the
 * output. Lengths are checked here, before OpenSSL's int lengths.
 */
#include "paynotify/cipher.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "crypto_internal.h"

enum {
	/* One block more than fits would overflow an int. */
	TEXT_BYTES_MAX = INT_MAX - PN_AES_BLOCK_BYTES,
};

static void
context_free(EVP_CIPHER_CTX **ctx)
{
	EVP_CIPHER_CTX_free(*ctx);
}

static const unsigned char *
bytes_of(struct pn_str s)
{
	return (const unsigned char *)s.data;
}

static bool
key_is_usable(const struct pn_secret *key)
{
	return key != NULL && key->data != NULL &&
	       key->len == PN_AES256_KEY_BYTES;
}

static bool
gcm_open(EVP_CIPHER_CTX *ctx, struct pn_str associated_data, struct pn_str text,
    const unsigned char *tag, unsigned char *ret_plain)
{
	unsigned char expected[PN_GCM_TAG_BYTES];
	int len = 0, rest = 0;

	memcpy(expected, tag, sizeof(expected));
	if (associated_data.len > 0 &&
	    EVP_DecryptUpdate(ctx, NULL, &len, bytes_of(associated_data),
		(int)associated_data.len) != 1)
		return false;
	if (text.len > 0 && EVP_DecryptUpdate(ctx, ret_plain, &len,
				bytes_of(text), (int)text.len) != 1)
		return false;
	if (EVP_CIPHER_CTX_ctrl(
		ctx, EVP_CTRL_AEAD_SET_TAG, PN_GCM_TAG_BYTES, expected) != 1)
		return false;
	/* Final of GCM writes nothing, it only checks the tag. */
	return EVP_DecryptFinal_ex(ctx, expected, &rest) == 1 && rest == 0;
}

int
pn_aes_gcm_decrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len)
{
	PN_CLEANUP(context_free) EVP_CIPHER_CTX *ctx = NULL;
	struct pn_str text = ciphertext;

	if (!key_is_usable(key))
		return -EINVAL;
	if (nonce.len != PN_GCM_NONCE_BYTES ||
	    associated_data.len > TEXT_BYTES_MAX ||
	    ciphertext.len < PN_GCM_TAG_BYTES ||
	    ciphertext.len > TEXT_BYTES_MAX)
		return 1;
	text.len -= PN_GCM_TAG_BYTES;
	ctx = EVP_CIPHER_CTX_new();
	if (ctx == NULL || EVP_DecryptInit_ex2(ctx, crypto_library()->aes_gcm,
			       key->data, bytes_of(nonce), NULL) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	if (!gcm_open(ctx, associated_data, text, bytes_of(text) + text.len,
		ret_plain)) {
		ERR_clear_error();
		OPENSSL_cleanse(ret_plain, text.len);
		return 1;
	}
	*ret_len = text.len;
	return 0;
}

static bool
gcm_seal(EVP_CIPHER_CTX *ctx, struct pn_str associated_data,
    struct pn_str plain, unsigned char *ret_cipher)
{
	int len = 0, rest = 0;

	if (associated_data.len > 0 &&
	    EVP_EncryptUpdate(ctx, NULL, &len, bytes_of(associated_data),
		(int)associated_data.len) != 1)
		return false;
	if (plain.len > 0 && EVP_EncryptUpdate(ctx, ret_cipher, &len,
				 bytes_of(plain), (int)plain.len) != 1)
		return false;
	return EVP_EncryptFinal_ex(ctx, ret_cipher + plain.len, &rest) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, PN_GCM_TAG_BYTES,
		   ret_cipher + plain.len) == 1;
}

int
pn_aes_gcm_encrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str plain,
    unsigned char *ret_cipher, size_t *ret_len)
{
	PN_CLEANUP(context_free) EVP_CIPHER_CTX *ctx = NULL;

	if (!key_is_usable(key) || nonce.len != PN_GCM_NONCE_BYTES ||
	    associated_data.len > TEXT_BYTES_MAX || plain.len > TEXT_BYTES_MAX)
		return -EINVAL;
	ctx = EVP_CIPHER_CTX_new();
	if (ctx == NULL ||
	    EVP_EncryptInit_ex2(ctx, crypto_library()->aes_gcm, key->data,
		bytes_of(nonce), NULL) != 1 ||
	    !gcm_seal(ctx, associated_data, plain, ret_cipher)) {
		ERR_clear_error();
		return -ENOMEM;
	}
	*ret_len = plain.len + PN_GCM_TAG_BYTES;
	return 0;
}

int
pn_aes_ecb_decrypt(const struct pn_secret *key, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len)
{
	PN_CLEANUP(context_free) EVP_CIPHER_CTX *ctx = NULL;
	int len = 0, rest = 0;

	if (!key_is_usable(key))
		return -EINVAL;
	if (ciphertext.len == 0 || ciphertext.len > TEXT_BYTES_MAX ||
	    ciphertext.len % PN_AES_BLOCK_BYTES != 0)
		return 1;
	ctx = EVP_CIPHER_CTX_new();
	if (ctx == NULL || EVP_DecryptInit_ex2(ctx, crypto_library()->aes_ecb,
			       key->data, NULL, NULL) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	/* Padding is on by default; Final checks every byte of it. */
	if (EVP_DecryptUpdate(ctx, ret_plain, &len, bytes_of(ciphertext),
		(int)ciphertext.len) != 1 ||
	    EVP_DecryptFinal_ex(ctx, ret_plain + len, &rest) != 1) {
		ERR_clear_error();
		OPENSSL_cleanse(ret_plain, ciphertext.len);
		return 1;
	}
	assert((size_t)len + (size_t)rest < ciphertext.len);
	*ret_len = (size_t)len + (size_t)rest;
	return 0;
}

int
pn_aes_ecb_encrypt(const struct pn_secret *key, struct pn_str plain,
    unsigned char *ret_cipher, size_t *ret_len)
{
	PN_CLEANUP(context_free) EVP_CIPHER_CTX *ctx = NULL;
	int len = 0, rest = 0;

	if (!key_is_usable(key) || plain.len > TEXT_BYTES_MAX)
		return -EINVAL;
	ctx = EVP_CIPHER_CTX_new();
	if (ctx == NULL ||
	    EVP_EncryptInit_ex2(
		ctx, crypto_library()->aes_ecb, key->data, NULL, NULL) != 1 ||
	    (plain.len > 0 && EVP_EncryptUpdate(ctx, ret_cipher, &len,
				  bytes_of(plain), (int)plain.len) != 1) ||
	    EVP_EncryptFinal_ex(ctx, ret_cipher + len, &rest) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	*ret_len = (size_t)len + (size_t)rest;
	return 0;
}
