/*
 * Public keys: what is in a file, and verifying with it.
 *
 * A key is parsed once, at load; a verification then costs the modular
 * exponentiation and little else. What makes it little: the digest algorithm
 * is fetched once a process (library.c), and a verification context, whose
 * making costs a third of a verification, is kept with the key and used again.
 * A few slots a hash hold idle contexts; a thread takes one by an atomic
 * exchange and puts it back, and makes one of its own when all are out. So no
 * thread ever waits, and an idle key costs a few hundred bytes.
 *
 * Invariants: everything but the slots and the count of references is
 * immutable after parsing; a context is used by one thread at a time.
 *
 * Deliberately not here: chains of trust and dates. A key is trusted because
 * an operator configured it; the provider looks at dates where they matter.
 */
#include "paynotify/key.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "crypto_internal.h"

enum {
	HASHES = PN_RSA_SHA256 + 1,
	SLOTS = 4,       /* idle contexts a hash; more threads make their own */
	BITS_MIN = 1024, /* Alipay's sign_type RSA still has them */
	BITS_MAX = 16384,      /* beyond it a verification is a burden */
	SERIAL_BYTES_MAX = 64, /* RFC 5280 allows 20 */
};

struct pn_public_key {
	atomic_uint references;
	EVP_PKEY *pkey;
	char *pem;
	unsigned char fingerprint[PN_SHA256_BYTES];
	char serial[2 * SERIAL_BYTES_MAX + 1];
	bool from_certificate;
	int64_t not_before_us, not_after_us;
	size_t signature_bytes;
	_Atomic(EVP_PKEY_CTX *) idle[HASHES][SLOTS];
};

static EVP_PKEY_CTX *
context_new(const struct pn_public_key *key, enum pn_rsa_hash hash)
{
	const struct crypto_library *library = crypto_library();
	const EVP_MD *md =
	    hash == PN_RSA_SHA1 ? library->sha1 : library->sha256;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key->pkey, NULL);

	if (ctx != NULL && EVP_PKEY_verify_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
	    EVP_PKEY_CTX_set_signature_md(ctx, md) == 1)
		return ctx;
	EVP_PKEY_CTX_free(ctx);
	return NULL;
}

static EVP_PKEY_CTX *
context_take(struct pn_public_key *key, enum pn_rsa_hash hash)
{
	for (size_t i = 0; i < SLOTS; i++) {
		EVP_PKEY_CTX *ctx = atomic_exchange_explicit(
		    &key->idle[hash][i], NULL, memory_order_acquire);

		if (ctx != NULL)
			return ctx;
	}
	return context_new(key, hash);
}

static void
context_put(struct pn_public_key *key, enum pn_rsa_hash hash, EVP_PKEY_CTX *ctx)
{
	for (size_t i = 0; i < SLOTS; i++) {
		EVP_PKEY_CTX *none = NULL;

		if (atomic_compare_exchange_strong_explicit(&key->idle[hash][i],
			&none, ctx, memory_order_release, memory_order_relaxed))
			return;
	}
	EVP_PKEY_CTX_free(ctx);
}

bool
pn_public_key_verify(const struct pn_public_key *key, enum pn_rsa_hash hash,
    struct pn_str message, struct pn_str signature)
{
	/* The slots are a cache behind an immutable key. */
	struct pn_public_key *cache = (struct pn_public_key *)(uintptr_t)key;
	const struct crypto_library *library = crypto_library();
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_bytes = 0;
	EVP_PKEY_CTX *ctx;
	int r = 0;

	assert((size_t)hash < PN_COUNT(key->idle));
	if (signature.len != key->signature_bytes)
		return false;
	if (EVP_Digest(message.data, message.len, digest, &digest_bytes,
		hash == PN_RSA_SHA1 ? library->sha1 : library->sha256,
		NULL) == 1) {
		ctx = context_take(cache, hash);
		if (ctx != NULL) {
			r = EVP_PKEY_verify(ctx,
			    (const unsigned char *)signature.data,
			    signature.len, digest, digest_bytes);
			context_put(cache, hash, ctx);
		}
	}
	if (r != 1)
		ERR_clear_error();
	return r == 1;
}

static int
time_of(const ASN1_TIME *time, int64_t *ret_us)
{
	struct tm tm;

	if (time == NULL || ASN1_TIME_to_tm(time, &tm) != 1)
		return -EINVAL;
	*ret_us = (int64_t)timegm(&tm) * PN_SECOND_US;
	return 0;
}

/* Takes the reference of pkey in all cases. */
static int
key_set(struct pn_public_key *key, EVP_PKEY *pkey)
{
	unsigned char *der = NULL;
	int der_bytes = i2d_PUBKEY(pkey, &der);
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long text_bytes;

	key->pkey = pkey;
	key->signature_bytes = (size_t)EVP_PKEY_get_size(pkey);
	if (der_bytes <= 0 || bio == NULL ||
	    PEM_write_bio_PUBKEY(bio, pkey) != 1) {
		OPENSSL_free(der);
		BIO_free(bio);
		return -ENOMEM;
	}
	pn_sha256((struct pn_str){ (char *)der, (size_t)der_bytes },
	    key->fingerprint);
	OPENSSL_free(der);
	text_bytes = BIO_get_mem_data(bio, &text);
	key->pem = strndup(text, (size_t)text_bytes);
	BIO_free(bio);
	return key->pem == NULL ? -ENOMEM : 0;
}

/* RSA that can be verified with. 0; 1 with what it is instead. */
static int
pkey_check(EVP_PKEY *pkey, struct pn_error *ret_error)
{
	EVP_PKEY_CTX *ctx;
	const char *name;
	int bits, r;

	if (!EVP_PKEY_is_a(pkey, "RSA")) {
		name = EVP_PKEY_get0_type_name(pkey);
		return pn_error_set(ret_error, 1,
		    "the key is %s; an RSA key is wanted",
		    name == NULL ? "of an unknown kind" : name);
	}
	bits = EVP_PKEY_get_bits(pkey);
	if (bits < BITS_MIN || bits > BITS_MAX)
		return pn_error_set(ret_error, 1,
		    "the RSA key has %d bits; %d to %d are wanted", bits,
		    (int)BITS_MIN, (int)BITS_MAX);
	/* An even modulus or an exponent of 1 would let anyone sign. */
	ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	r = ctx == NULL ? 0 : EVP_PKEY_public_check(ctx);
	EVP_PKEY_CTX_free(ctx);
	if (r == 1)
		return 0;
	return pn_error_set(
	    ret_error, 1, "the RSA key is damaged: its numbers are no RSA key");
}

/* What keeps a certificate from being used; NULL: nothing. Sets what the key
 * has of it. */
static const char *
certificate_take(struct pn_public_key *key, const X509 *certificate)
{
	const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
	int bytes = ASN1_STRING_length(serial);

	if (bytes < 0 || bytes > SERIAL_BYTES_MAX)
		return "the certificate's serial is too long";
	if (time_of(X509_get0_notBefore(certificate), &key->not_before_us) <
		0 ||
	    time_of(X509_get0_notAfter(certificate), &key->not_after_us) < 0)
		return "the certificate's dates are damaged";
	/* The magnitude of the DER integer: no byte for the sign. */
	pn_hex_upper(ASN1_STRING_get0_data(serial), (size_t)bytes, key->serial);
	return NULL;
}

/* 0 and its key, 1: no certificate; 2: one that is of no use. */
static int
from_certificate(struct pn_public_key *key, struct pn_str der,
    EVP_PKEY **ret_pkey, struct pn_error *ret_error)
{
	const unsigned char *data = (const unsigned char *)der.data, *at = data;
	X509 *certificate = d2i_X509(NULL, &at, (long)der.len);
	const char *wrong;

	if (certificate == NULL)
		return 1;
	wrong = certificate_take(key, certificate);
	if (at != data + der.len)
		wrong = "more than the certificate in one block";
	if (wrong == NULL) {
		*ret_pkey = X509_get_pubkey(certificate);
		if (*ret_pkey == NULL)
			wrong = "the certificate's key is of an unknown kind;"
				" an RSA key is wanted";
	}
	X509_free(certificate);
	if (wrong != NULL)
		return pn_error_set(ret_error, 2, "%s", wrong);
	key->from_certificate = true;
	return 0;
}

/* SubjectPublicKeyInfo or PKCS#1, whole. NULL: neither. */
static EVP_PKEY *
from_bare(struct pn_str der)
{
	const unsigned char *data = (const unsigned char *)der.data, *at;
	EVP_PKEY *pkey;

	at = data;
	pkey = d2i_PUBKEY(NULL, &at, (long)der.len);
	if (pkey != NULL && at == data + der.len)
		return pkey;
	EVP_PKEY_free(pkey);
	at = data;
	pkey = d2i_PublicKey(EVP_PKEY_RSA, NULL, &at, (long)der.len);
	if (pkey != NULL && at == data + der.len)
		return pkey;
	EVP_PKEY_free(pkey);
	return NULL;
}

/* What a block is that is no key: a label is believed to name it. */
static int
refuse_block(const struct crypto_block *block, struct pn_error *ret_error)
{
	static const char wanted[] =
	    "the provider's RSA public key or its certificate is wanted, as it "
	    "was downloaded";

	if (block->label.len > 0)
		return pn_error_set(ret_error, 1,
		    "\"-----BEGIN " PN_STR_FMT "-----\" holds neither a public "
		    "key nor a certificate; %s",
		    PN_STR_ARG(block->label), wanted);
	return pn_error_set(ret_error, 1,
	    "the file is neither a public key nor a certificate, but other "
	    "binary data or its base64; %s",
	    wanted);
}

static bool
is_private(struct pn_str der)
{
	const unsigned char *at = (const unsigned char *)der.data;
	EVP_PKEY *pkey = d2i_AutoPrivateKey(NULL, &at, (long)der.len);

	EVP_PKEY_free(pkey);
	return pkey != NULL;
}

/* 0: key is set. 1: no RSA key, the next block may be one. < 0. */
static int
from_block(struct pn_public_key *key, const struct crypto_block *block,
    struct pn_error *ret_error)
{
	EVP_PKEY *pkey = NULL;
	int r = from_certificate(key, block->der, &pkey, ret_error);

	if (r == 1) {
		pkey = from_bare(block->der);
		if (pkey == NULL && is_private(block->der))
			return pn_error_set(ret_error, -EINVAL,
			    "it is a private key; the provider's public key or"
			    " certificate is wanted");
		if (pkey == NULL)
			return refuse_block(block, ret_error);
		r = 0;
	}
	if (r == 0)
		r = pkey_check(pkey, ret_error);
	if (r == 0)
		return key_set(key, pkey);
	EVP_PKEY_free(pkey);
	key->from_certificate = false;
	return r > 0 ? 1 : r;
}

/* The first block that is an RSA key or certificate. What the first of all
 * was is told when none is. */
static int
parse(struct pn_public_key *key, struct pn_str text, struct pn_error *ret_error)
{
	struct pn_error error = { "" };
	struct crypto_blocks blocks;
	struct crypto_block block;
	bool found = false;
	int r;

	crypto_blocks_init(&blocks, text);
	while ((r = crypto_blocks_next(&blocks, &block, ret_error)) > 0) {
		r = from_block(key, &block, &error);
		if (r <= 0) {
			found = r == 0;
			if (r < 0)
				(void)pn_error_set(
				    ret_error, r, "%s", error.text);
			break;
		}
		if (blocks.count == 1)
			(void)pn_error_set(ret_error, 0, "%s", error.text);
	}
	crypto_blocks_done(&blocks);
	ERR_clear_error();
	if (r == 0 && !found)
		return -EINVAL; /* the text of the first block */
	return r;
}

int
pn_public_key_parse(struct pn_str text, struct pn_public_key **ret_key,
    struct pn_error *ret_error)
{
	struct pn_public_key *key = calloc(1, sizeof(*key));
	int r;

	if (key == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	atomic_init(&key->references, 1);
	key->not_before_us = key->not_after_us = PN_MOMENT_NONE;
	r = parse(key, text, ret_error);
	if (r < 0) {
		pn_public_key_unref(key);
		return r == -ENOMEM
			   ? pn_error_set(ret_error, r, "out of memory")
			   : r;
	}
	if (!key->from_certificate)
		key->not_before_us = key->not_after_us = PN_MOMENT_NONE;
	*ret_key = key;
	return 0;
}

struct pn_public_key *
pn_public_key_ref(struct pn_public_key *key)
{
	unsigned before = atomic_fetch_add_explicit(
	    &key->references, 1, memory_order_relaxed);

	assert(before > 0);
	return key;
}

void
pn_public_key_unref(struct pn_public_key *key)
{
	if (key == NULL || atomic_fetch_sub_explicit(
			       &key->references, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t hash = 0; hash < HASHES; hash++)
		for (size_t i = 0; i < SLOTS; i++)
			EVP_PKEY_CTX_free(atomic_load_explicit(
			    &key->idle[hash][i], memory_order_relaxed));
	EVP_PKEY_free(key->pkey);
	free(key->pem);
	free(key);
}

const unsigned char *
pn_public_key_fingerprint(const struct pn_public_key *key)
{
	return key->fingerprint;
}

const char *
pn_public_key_pem(const struct pn_public_key *key)
{
	return key->pem;
}

const char *
pn_public_key_serial(const struct pn_public_key *key)
{
	return key->from_certificate ? key->serial : NULL;
}

int64_t
pn_public_key_not_before_us(const struct pn_public_key *key)
{
	return key->not_before_us;
}

int64_t
pn_public_key_not_after_us(const struct pn_public_key *key)
{
	return key->not_after_us;
}

size_t
pn_public_key_signature_bytes(const struct pn_public_key *key)
{
	return key->signature_bytes;
}
