/*
 * Evidence of Alipay, verified again by the key on record alone: what was right
 * once is right, and any change of what is signed is found.
 */
#include "alipay_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "paynotify/form.h"

/* The key that verified, as evidence keeps it: PEM, parsed again. */
static struct pn_public_key *
recorded_key(const struct pn_notification *notification)
{
	struct pn_public_key *key;
	struct pn_error error;

	assert_int_equal(pn_public_key_parse(
			     pn_str_from(pn_public_key_pem(notification->key)),
			     &key, &error),
	    0);
	assert_memory_equal(pn_public_key_fingerprint(key),
	    notification->key_fingerprint, PN_SHA256_BYTES);
	return key;
}

/* Fails if honest evidence were called wrong: for every event, and with an
 * account that has other keys by now, or none. */
static void
test_alipay__evidence_of_every_event_holds(void **state)
{
	struct alipay_fixture *fixture = *state;

	for (size_t i = 0; fixture->provider->sample_events[i] != NULL; i++) {
		struct pn_sample sample = {
			.event =
			    pn_str_from(fixture->provider->sample_events[i]),
			.seed = i + 1,
			.now_us = FIXTURE_NOW_US,
			.charset = i % 2 == 0 ? NULL : "GBK",
		};
		struct pn_request request =
		    alipay_fixture_sample(fixture, &sample);
		struct pn_notification notification =
		    alipay_fixture_verify(fixture, &request);
		const char *reason = "";
		struct pn_public_key *key;

		assert_true(notification.verified);
		key = recorded_key(&notification);
		assert_int_equal(
		    fixture->provider->reverify(&request, key, NULL,
			notification.key_fingerprint, fixture->arena, &reason),
		    0);
		assert_int_equal(
		    fixture->provider->reverify(&request, NULL,
			fixture->account, notification.key_fingerprint,
			fixture->arena, &reason),
		    PN_REVERIFY_WRONG);
		pn_public_key_unref(key);
	}
}

static bool
signed_the_same(struct pn_arena *arena, struct pn_str a, struct pn_str b)
{
	struct pn_form forms[2];
	struct pn_error error;

	if (pn_form_parse(arena, a, &forms[0], &error) != 0 ||
	    pn_form_parse(arena, b, &forms[1], &error) != 0 ||
	    forms[0].count != forms[1].count)
		return false;
	for (size_t i = 0; i < forms[0].count; i++) {
		const struct pn_field *one = &forms[0].fields[i];
		const struct pn_field *two = &forms[1].fields[i];

		if (!pn_str_equal(one->name, two->name) ||
		    (!pn_str_is(one->name, "sign_type") &&
			!pn_str_equal(one->value, two->value)))
			return false;
	}
	return true;
}

/* Fails if somebody could change an amount or an order in what is stored: every
 * byte is flipped in turn. What is not signed (sign_type, which of two ways a
 * character is escaped) cannot be told. */
static void
test_alipay__any_flipped_byte_is_found(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = {
		.event = PN_STR("payment.succeeded"),
		.seed = 7,
		.now_us = FIXTURE_NOW_US,
	};
	struct pn_request request = alipay_fixture_sample(fixture, &sample);
	struct pn_notification notification =
	    alipay_fixture_verify(fixture, &request);
	struct pn_public_key *key = recorded_key(&notification);
	struct pn_str honest = pn_arena_copy(fixture->arena, request.body);
	size_t found = 0;

	for (size_t i = 0; i < honest.len; i++) {
		struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
		struct pn_str changed = pn_arena_copy(arena, honest);
		const char *reason = NULL;
		int r;

		((char *)(uintptr_t)changed.data)[i] ^= 1;
		request.body = changed;
		r = fixture->provider->reverify(&request, key, NULL,
		    notification.key_fingerprint, arena, &reason);
		if (r == 0)
			assert_true(signed_the_same(arena, honest, changed));
		else
			assert_int_equal(r, PN_REVERIFY_WRONG);
		assert_true(r == 0 || reason[0] != '\0');
		found += r != 0;
		pn_arena_free(arena);
	}
	assert_true(found > honest.len * 9 / 10);
	pn_public_key_unref(key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, alipay_fixture_arena, alipay_fixture_arena_done)
		TEST(test_alipay__evidence_of_every_event_holds),
		TEST(test_alipay__any_flipped_byte_is_found),
	};

	return cmocka_run_group_tests(
	    tests, alipay_fixture_setup, alipay_fixture_teardown);
}
