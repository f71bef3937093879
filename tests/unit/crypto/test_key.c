/*
 * Keys in every form that merchants have them, what is refused and in which
 * words, and signatures.
 */
#include "key_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

#include "paynotify/arena.h"
#include "paynotify/encode.h"
#include "paynotify/moment.h"

enum { TEXTS_MAX = 24 };

static const unsigned char serial[] = { 0x01, 0x0a, 0xb0, 0xff };

struct keys {
	EVP_PKEY *rsa, *rsa_1024, *ec;
	char *spki, *pkcs1, *certificate, *ec_certificate, *pkcs8, *private1;
	char *texts[TEXTS_MAX]; /* made by a test, freed after it */
	size_t text_count;
};

static int
keys_setup(void **state)
{
	struct keys *keys = calloc(1, sizeof(*keys));

	assert_non_null(keys);
	keys->rsa = EVP_RSA_gen(2048);
	keys->rsa_1024 = EVP_RSA_gen(1024);
	keys->ec = EVP_EC_gen("P-256");
	assert_true(
	    keys->rsa != NULL && keys->rsa_1024 != NULL && keys->ec != NULL);
	keys->spki = made_base64(keys->rsa, MADE_SPKI);
	keys->pkcs1 = made_base64(keys->rsa, MADE_PKCS1);
	keys->pkcs8 = made_base64(keys->rsa, MADE_PRIVATE_PKCS8);
	keys->private1 = made_base64(keys->rsa, MADE_PRIVATE_PKCS1);
	keys->certificate =
	    made_certificate_base64(keys->rsa, serial, sizeof(serial));
	keys->ec_certificate =
	    made_certificate_base64(keys->ec, serial, sizeof(serial));
	*state = keys;
	return 0;
}

static int
texts_free(void **state)
{
	struct keys *keys = *state;

	while (keys->text_count > 0)
		free(keys->texts[--keys->text_count]);
	return 0;
}

static int
keys_teardown(void **state)
{
	struct keys *keys = *state;

	EVP_PKEY_free(keys->rsa);
	EVP_PKEY_free(keys->rsa_1024);
	EVP_PKEY_free(keys->ec);
	free(keys->spki);
	free(keys->pkcs1);
	free(keys->pkcs8);
	free(keys->private1);
	free(keys->certificate);
	free(keys->ec_certificate);
	free(keys);
	return 0;
}

static const char *
keep(struct keys *keys, char *text)
{
	assert_non_null(text);
	assert_true(keys->text_count < TEXTS_MAX);
	keys->texts[keys->text_count++] = text;
	return text;
}

static const char *
pem(struct keys *keys, const char *label, const char *base64)
{
	return keep(keys, made_pem(label, base64, 64, "\n"));
}

static const char *
join(struct keys *keys, const char *a, const char *b)
{
	char *text = NULL;

	assert_true(asprintf(&text, "%s%s", a, b) > 0);
	return keep(keys, text);
}

static struct pn_public_key *
accept(const char *text)
{
	struct pn_public_key *key = NULL;
	struct pn_error error;
	int r = pn_public_key_parse(pn_str_from(text), &key, &error);

	if (r != 0)
		fail_msg("refused: %s\n%s", error.text, text);
	assert_int_equal(ERR_peek_error(), 0);
	return key;
}

static void
refuse(const char *text, const char *because)
{
	struct pn_public_key *key = NULL;
	struct pn_error error = { "" };
	int r = pn_public_key_parse(pn_str_from(text), &key, &error);

	assert_int_equal(r, -EINVAL);
	assert_null(key);
	assert_int_equal(ERR_peek_error(), 0);
	if (strstr(error.text, because) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, because);
}

static char *
base64_again(const char *text)
{
	char *again = malloc(PN_BASE64_ENCODED_BYTES(strlen(text)) + 1);

	assert_non_null(again);
	pn_base64_encode(text, strlen(text), again);
	return again;
}

/* A form that one merchant has and we refuse is a merchant who cannot start,
 * and all forms of one key must be one key. */
static void
test_key__every_form_is_the_same_key(void **state)
{
	struct keys *keys = *state;
	const char *forms[] = {
		pem(keys, "PUBLIC KEY", keys->spki),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 64, "\r\n")),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 0, "\n")),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 0, " ")),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 0, "")),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 76, " \n")),
		keep(keys, made_pem("PUBLIC KEY", keys->spki, 64, "\\n")),
		pem(keys, "RSA PUBLIC KEY", keys->pkcs1),
		/* labels that lie */
		pem(keys, "RSA PUBLIC KEY", keys->spki),
		pem(keys, "PUBLIC KEY", keys->pkcs1),
		pem(keys, "PUBLIC KEY", keys->certificate),
		pem(keys, "CERTIFICATE", keys->certificate),
		keys->spki,
		keys->pkcs1,
		keys->certificate,
		keep(keys, base64_again(forms[0])),
		keep(keys,
		    base64_again(pem(keys, "CERTIFICATE", keys->certificate))),
		join(keys, "\xef\xbb\xbf", forms[0]),
		join(keys, "\xef\xbb\xbf  \n", join(keys, keys->spki, "\r\n ")),
		join(keys, "subject=CN = x\n", forms[0]),
	};
	const unsigned char *first = NULL;
	struct pn_public_key *keep_first = NULL;

	for (size_t i = 0; i < PN_COUNT(forms); i++) {
		struct pn_public_key *key = accept(forms[i]);

		if (i == 0) {
			keep_first = key;
			first = pn_public_key_fingerprint(key);
			continue;
		}
		assert_memory_equal(
		    pn_public_key_fingerprint(key), first, PN_SHA256_BYTES);
		assert_string_equal(pn_public_key_pem(key), forms[0]);
		pn_public_key_unref(key);
	}
	pn_public_key_unref(keep_first);
}

/* A console download with several certificates must give the leaf; a root
 * file's SM2 and EC certificates must not be in the way. */
static void
test_key__the_first_rsa_block_counts(void **state)
{
	struct keys *keys = *state;
	EVP_PKEY *sm2 = EVP_PKEY_Q_keygen(NULL, NULL, "SM2");
	const char *rsa = pem(keys, "CERTIFICATE", keys->certificate);
	const char *other, *ec, *sm;
	struct pn_public_key *key, *leaf = accept(rsa);
	char *made;

	assert_non_null(sm2);
	made = made_base64(keys->rsa_1024, MADE_SPKI);
	other = pem(keys, "PUBLIC KEY", keep(keys, made));
	ec = pem(keys, "CERTIFICATE", keys->ec_certificate);
	made = made_base64(sm2, MADE_SPKI);
	sm = pem(keys, "PUBLIC KEY", keep(keys, made));
	key = accept(join(keys, rsa, other));
	assert_memory_equal(pn_public_key_fingerprint(key),
	    pn_public_key_fingerprint(leaf), PN_SHA256_BYTES);
	pn_public_key_unref(key);
	key = accept(join(keys, join(keys, ec, sm), join(keys, rsa, other)));
	assert_memory_equal(pn_public_key_fingerprint(key),
	    pn_public_key_fingerprint(leaf), PN_SHA256_BYTES);
	pn_public_key_unref(key);
	key = accept(join(keys, other, rsa));
	assert_int_equal(pn_public_key_signature_bytes(key), 128);
	assert_null(pn_public_key_serial(key));
	pn_public_key_unref(key);
	refuse(ec, "the key is EC; an RSA key is wanted");
	refuse(sm, "the key is SM2; an RSA key is wanted");
	pn_public_key_unref(leaf);
	EVP_PKEY_free(sm2);
}

/* WeChat names its certificate by serial: one digit less, and every
 * notification is of an unknown key. */
static void
test_key__a_certificate_has_serial_and_dates(void **state)
{
	static const unsigned char high[] = { 0x80, 0x00, 0x01 };
	struct keys *keys = *state;
	struct pn_public_key *key = accept(keys->certificate);
	int64_t us;
	char *text;

	assert_string_equal(pn_public_key_serial(key), "010AB0FF");
	assert_int_equal(
	    pn_moment_parse_rfc3339(PN_STR("2026-01-01T00:00:00Z"), &us), 0);
	assert_true(pn_public_key_not_before_us(key) == us);
	assert_int_equal(
	    pn_moment_parse_rfc3339(PN_STR("2027-01-01T00:00:00Z"), &us), 0);
	assert_true(pn_public_key_not_after_us(key) == us);
	pn_public_key_unref(key);

	/* In DER this one has a byte more, for the sign: it is not shown. */
	text = made_certificate_base64(keys->rsa, high, sizeof(high));
	key = accept(keep(keys, text));
	assert_string_equal(pn_public_key_serial(key), "800001");
	pn_public_key_unref(key);

	key = accept(keys->spki);
	assert_null(pn_public_key_serial(key));
	assert_true(pn_public_key_not_before_us(key) == PN_MOMENT_NONE);
	assert_true(pn_public_key_not_after_us(key) == PN_MOMENT_NONE);
	pn_public_key_unref(key);
}

/* What is refused must say what it is: the most frequent mistake of all is
 * the wrong key. */
static void
test_key__refusals_say_what_was_found(void **state)
{
	struct keys *keys = *state;
	EVP_PKEY *small = EVP_RSA_gen(512), *pss = NULL;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
	char *whole, *text = NULL;

	refuse("", "empty");
	refuse(" \n", "empty");
	refuse("MIIB!",
	    "neither PEM (\"-----BEGIN ...\") nor base64; take it anew");
	refuse("aGVsbG8=",
	    "the file is neither a public key nor a certificate, but other "
	    "binary data or its base64; the provider's RSA public key");
	refuse(pem(keys, "PRIVATE KEY", keys->pkcs8), "a private key");
	refuse(keys->private1, "a private key");
	refuse(pem(keys, "PUBLIC KEY", "AAAA"),
	    "\"-----BEGIN PUBLIC KEY-----\" holds neither a public key nor a "
	    "certificate; the provider's RSA public key or its certificate");
	refuse(pem(keys, "PUBLIC KEY", "A*AA"),
	    "below \"-----BEGIN PUBLIC KEY-----\" is not base64");
	refuse("-----BEGIN PUBLIC KEY-----\nMIIB\n", "the file is cut");
	refuse("-----BEGIN PUBLIC KEY\nMIIB\n", "without the dashes");
	/* a byte behind the key, a byte less */
	assert_true(asprintf(&whole, "%sAAAA", keys->spki) > 0);
	refuse(keep(keys, whole), "neither a public key");
	assert_true(asprintf(&text, "%.*s", (int)strlen(keys->spki) - 4,
			keys->spki) > 0);
	refuse(keep(keys, text), "neither a public key");

	assert_non_null(small);
	refuse(keep(keys, made_base64(small, MADE_SPKI)),
	    "the RSA key has 512 bits; 1024 to 16384 are wanted");
	assert_non_null(ctx);
	assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
	assert_int_equal(EVP_PKEY_generate(ctx, &pss), 1);
	refuse(keep(keys, made_base64(pss, MADE_SPKI)), "RSA-PSS");
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(small);
	EVP_PKEY_free(pss);
}

/* With an exponent of 1 a signature is the padded digest itself: anyone can
 * write one. PKCS#1: SEQUENCE { modulus, exponent }, exponent in the last
 * three bytes 01 00 01; made 00 00 01 here it would not be DER, so the last
 * bytes become an exponent of another form. */
static void
test_key__a_key_that_anyone_can_sign_for_is_refused(void **state)
{
	struct keys *keys = *state;
	unsigned char der[512];
	size_t len = 0;
	char text[1024];

	assert_true(strlen(keys->pkcs1) < sizeof(text));
	assert_int_equal(
	    pn_base64_decode(pn_str_from(keys->pkcs1), der, &len), 0);
	assert_memory_equal(der + len - 5, "\x02\x03\x01\x00\x01", 5);
	/* 02 01 01, two bytes shorter: the length of the SEQUENCE follows */
	memcpy(der + len - 5, "\x02\x01\x01", 3);
	len -= 2;
	assert_int_equal(der[1], 0x82);
	der[3] = (unsigned char)(der[3] - 2);
	pn_base64_encode(der, len, text);
	refuse(text, "the RSA key is damaged");
	/* an even modulus */
	assert_int_equal(
	    pn_base64_decode(pn_str_from(keys->pkcs1), der, &len), 0);
	der[len - 6] &= 0xfe;
	pn_base64_encode(der, len, text);
	refuse(text, "the RSA key is damaged");
}

/* Signatures of both kinds, and that nothing else passes for one. */
static void
test_key__verifies_what_was_signed_and_nothing_else(void **state)
{
	struct keys *keys = *state;
	EVP_PKEY *pkeys[] = { keys->rsa, keys->rsa_1024 };

	for (size_t i = 0; i < PN_COUNT(pkeys); i++) {
		struct pn_arena *arena = pn_arena_new(1 << 16);
		struct pn_private_key *private = made_private(pkeys[i]);
		char *spki = made_base64(pkeys[i], MADE_SPKI);
		struct pn_public_key *key = accept(keep(keys, spki));
		unsigned char raw[257];
		struct pn_str text, signature = { (char *)raw, 0 };

		assert_memory_equal(pn_private_key_fingerprint(private),
		    pn_public_key_fingerprint(key), PN_SHA256_BYTES);
		for (int hash = PN_RSA_SHA1; hash <= PN_RSA_SHA256; hash++) {
			int other = PN_RSA_SHA256 - hash;

			assert_int_equal(
			    pn_private_key_sign(private, (enum pn_rsa_hash)hash,
				PN_STR("a=1&b=2"), arena, &text),
			    0);
			assert_int_equal(
			    pn_base64_decode(text, raw, &signature.len), 0);
			assert_int_equal(
			    signature.len, pn_public_key_signature_bytes(key));
			/* twice: a kept context must work again, also after
			 * a failure */
			for (int turn = 0; turn < 2; turn++) {
				assert_true(pn_public_key_verify(key,
				    (enum pn_rsa_hash)hash, PN_STR("a=1&b=2"),
				    signature));
				assert_false(pn_public_key_verify(key,
				    (enum pn_rsa_hash)hash, PN_STR("a=1&b=3"),
				    signature));
				assert_false(pn_public_key_verify(key,
				    (enum pn_rsa_hash)other, PN_STR("a=1&b=2"),
				    signature));
			}
			raw[signature.len] = 0;
			signature.len++;
			assert_false(
			    pn_public_key_verify(key, (enum pn_rsa_hash)hash,
				PN_STR("a=1&b=2"), signature));
			signature.len -= 2;
			assert_false(
			    pn_public_key_verify(key, (enum pn_rsa_hash)hash,
				PN_STR("a=1&b=2"), signature));
			signature.len = 0;
			assert_false(
			    pn_public_key_verify(key, (enum pn_rsa_hash)hash,
				PN_STR("a=1&b=2"), signature));
			assert_int_equal(ERR_peek_error(), 0);
		}
		memset(raw, 0, sizeof(raw));
		signature.len = pn_public_key_signature_bytes(key);
		assert_false(pn_public_key_verify(
		    key, PN_RSA_SHA256, PN_STR("a=1&b=2"), signature));
		memset(raw, 0xff, sizeof(raw));
		assert_false(pn_public_key_verify(
		    key, PN_RSA_SHA256, PN_STR("a=1&b=2"), signature));
		assert_int_equal(ERR_peek_error(), 0);
		pn_public_key_unref(key);
		pn_private_key_free(private);
		pn_arena_free(arena);
	}
}

/* PSS is another padding: a provider that spoke it would be a forger. */
static void
test_key__pss_is_no_signature(void **state)
{
	struct keys *keys = *state;
	struct pn_public_key *key = accept(keys->spki);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char raw[256];
	EVP_PKEY_CTX *ctx;
	size_t len = sizeof(raw);

	assert_non_null(md);
	assert_int_equal(
	    EVP_DigestSignInit(md, &ctx, EVP_sha256(), NULL, keys->rsa), 1);
	assert_int_equal(
	    EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING), 1);
	assert_int_equal(
	    EVP_DigestSign(md, raw, &len, (const unsigned char *)"x", 1), 1);
	assert_false(pn_public_key_verify(key, PN_RSA_SHA256, PN_STR("x"),
	    (struct pn_str){ (char *)raw, len }));
	assert_int_equal(ERR_peek_error(), 0);
	EVP_MD_CTX_free(md);
	pn_public_key_unref(key);
}

/* trigger must take what the merchant's tools write. */
static void
test_key__private_keys_in_every_form(void **state)
{
	struct keys *keys = *state;
	const char *forms[] = {
		keys->pkcs8,
		keys->private1,
		pem(keys, "PRIVATE KEY", keys->pkcs8),
		pem(keys, "RSA PRIVATE KEY", keys->private1),
		keep(keys, made_pem("PRIVATE KEY", keys->private1, 0, "\r\n")),
	};
	static const char *const bad[] = { "", "aGVsbG8=",
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
		"AAAA\n-----END RSA PRIVATE KEY-----\n",
		"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
		"-----END ENCRYPTED PRIVATE KEY-----\n" };
	struct pn_public_key *public = accept(keys->spki);
	struct pn_private_key *key = NULL;
	struct pn_error error;

	for (size_t i = 0; i < PN_COUNT(forms); i++) {
		assert_int_equal(
		    pn_private_key_parse(pn_str_from(forms[i]), &key, &error),
		    0);
		assert_memory_equal(pn_private_key_fingerprint(key),
		    pn_public_key_fingerprint(public), PN_SHA256_BYTES);
		pn_private_key_free(key);
	}
	pn_public_key_unref(public);
	key = NULL;
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		assert_int_equal(
		    pn_private_key_parse(pn_str_from(bad[i]), &key, &error),
		    -EINVAL);
		assert_true((strstr(bad[i], "ENCRYPTED") != NULL) ==
			    (strstr(error.text, "is encrypted") != NULL));
	}
	assert_int_equal(
	    pn_private_key_parse(pn_str_from(keys->spki), &key, &error),
	    -EINVAL);
	assert_int_equal(pn_private_key_parse(
			     pn_str_from(keep(keys,
				 made_base64(keys->ec, MADE_PRIVATE_PKCS8))),
			     &key, &error),
	    -EINVAL);
	assert_null(key);
	assert_int_equal(ERR_peek_error(), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, texts_free)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_key__every_form_is_the_same_key),
		TEST(test_key__the_first_rsa_block_counts),
		TEST(test_key__a_certificate_has_serial_and_dates),
		TEST(test_key__refusals_say_what_was_found),
		TEST(test_key__a_key_that_anyone_can_sign_for_is_refused),
		TEST(test_key__verifies_what_was_signed_and_nothing_else),
		TEST(test_key__pss_is_no_signature),
		TEST(test_key__private_keys_in_every_form),
	};

	return cmocka_run_group_tests(tests, keys_setup, keys_teardown);
}
