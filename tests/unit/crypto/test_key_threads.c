/*
 * One key on more threads than it keeps contexts for. Run under TSan too.
 */
#include "key_make.h"

#include <pthread.h>
#include <stdlib.h>

#include <openssl/rsa.h>

#include "paynotify/arena.h"
#include "paynotify/encode.h"

enum { THREADS = 8, TURNS = 200, SIGNATURE_BYTES = 256 };

struct work {
	struct pn_public_key *key;
	struct pn_str good;
	unsigned long wrong;
};

static void *
verify_many(void *payload)
{
	struct work *work = payload;

	for (int i = 0; i < TURNS; i++) {
		if (!pn_public_key_verify(work->key, PN_RSA_SHA256,
			PN_STR("message"), work->good))
			work->wrong++;
		if (pn_public_key_verify(work->key, PN_RSA_SHA256,
			PN_STR("massage"), work->good))
			work->wrong++;
		if (pn_public_key_verify(
			work->key, PN_RSA_SHA1, PN_STR("message"), work->good))
			work->wrong++;
	}
	pn_public_key_unref(work->key);
	return NULL;
}

/* Two threads in one context would refuse genuine payments now and then. */
static void
test_key_threads__verdicts_do_not_mix(void **state)
{
	EVP_PKEY *pkey = EVP_RSA_gen(2048);
	struct pn_private_key *private = made_private(pkey);
	struct pn_arena *arena = pn_arena_new(1 << 16);
	char *spki = made_base64(pkey, MADE_SPKI);
	struct pn_public_key *key = NULL;
	unsigned char raw[SIGNATURE_BYTES];
	struct work works[THREADS];
	pthread_t threads[THREADS];
	struct pn_error error;
	struct pn_str text;
	size_t len = 0;

	(void)state;
	assert_int_equal(
	    pn_public_key_parse(pn_str_from(spki), &key, &error), 0);
	assert_int_equal(pn_private_key_sign(private, PN_RSA_SHA256,
			     PN_STR("message"), arena, &text),
	    0);
	assert_int_equal(pn_base64_decode(text, raw, &len), 0);
	for (size_t i = 0; i < THREADS; i++) {
		works[i] = (struct work){ pn_public_key_ref(key),
			{ (char *)raw, len }, 0 };
		assert_int_equal(
		    pthread_create(&threads[i], NULL, verify_many, &works[i]),
		    0);
	}
	pn_public_key_unref(key);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(works[i].wrong, 0);
	}
	pn_private_key_free(private);
	pn_arena_free(arena);
	EVP_PKEY_free(pkey);
	free(spki);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_threads__verdicts_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
