/*
 * The template provider. The signatures of the golden cases were made by another
 * program (Python's hmac), so that signer and verifier cannot be wrong together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "provider_internal.h"

#define NOW_US INT64_C(1772330405000000)

static char merchant[] = "M1", tenant[] = "shop1";
static char *merchants[] = { merchant };
static unsigned char secret[] = "template-secret-0001";
static struct pn_conf_file secret_file = {
	.content = { secret, sizeof(secret) - 1 },
};
static const struct pn_conf_account conf = {
	.tenant = tenant,
	.test = true,
	.template = { .merchant = { .values = merchants, .count = 1 },
	    .secret_file = { .files = &secret_file, .count = 1 } },
};
static const struct pn_provider *const provider = &pn_provider_template;

struct fixture {
	struct pn_arena *arena;
	void *account;
	struct pn_notification n;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct pn_error error;

	assert_non_null(f);
	f->arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	assert_non_null(f->arena);
	assert_int_equal(provider->account_open(&conf, &f->account, &error), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	provider->account_close(f->account);
	pn_arena_free(f->arena);
	free(f);
	return 0;
}

static void
assert_verdict(struct fixture *f, enum pn_verdict verdict, const char *time,
    const char *signature, struct pn_str body, int64_t now_us)
{
	const struct pn_header headers[] = {
		{ PN_STR("x-template-timestamp"), pn_str_from(time) },
		{ PN_STR("X-Template-Signature"), pn_str_from(signature) },
	};
	const struct pn_request request = { .headers = headers,
		.header_count = signature == NULL ? 1 : 2,
		.body = body };

	assert_int_equal(
	    provider->verify(f->account, &request, now_us, f->arena, &f->n), 0);
	assert_int_equal(f->n.verdict, verdict);
	assert_int_equal(
	    f->n.reason[0] == '\0', verdict == PN_VERDICT_ACCEPTED);
	assert_int_equal(f->n.event_count, verdict == PN_VERDICT_ACCEPTED);
}

static const struct golden {
	const char *signature, *body, *key; /* key NULL: no event */
	enum pn_verdict verdict;
} goldens[] = {
	{ "ad519d79a26a739e3351e7c5d964ca92861f90b26d908d"
	  "bf47bbe25d50e84c2b",
	    "{\"id\":\"n1\",\"type\":\"payment.succeeded\",\"merchan"
	    "t\":\"M1\",\"order\":\"T1\",\"transaction\":\"X1\",\"amoun"
	    "t\":8888,\"currency\":\"CNY\",\"time\":\"2026-03-01T10"
	    ":00:05+08:00\"}",
	    "webhook:template:X1", PN_VERDICT_ACCEPTED },
	{ "e69f36844c9078c3a6274afb5a7ece1295d95cb0dd68ad"
	  "1db09c45838514bd57",
	    "{\"id\":\"n2\",\"type\":\"contract.signed\",\"merchant\""
	    ":\"M1\"}",
	    "webhook:template:notify:n2", PN_VERDICT_ACCEPTED },
	{ "f59f292b942792a549d4851d9a909ea4e23a8ec37bbf55"
	  "12cd6c1e81441e3e18",
	    "{\"id\":\"n1\",\"type\":\"payment.succeeded\",\"merchan"
	    "t\":\"M2\",\"order\":\"T1\",\"transaction\":\"X1\",\"amoun"
	    "t\":8888,\"currency\":\"CNY\",\"time\":\"2026-03-01T10"
	    ":00:05+08:00\"}",
	    NULL, PN_VERDICT_WRONG_ACCOUNT },
	{ "aacfceab4d42c776f3748d2fd41b8098385c228872098a"
	  "d88e319842a85f8e50",
	    "{\"id\":\"n3\",\"type\":\"payment.succeeded\",\"merchan"
	    "t\":\"M1\"}",
	    NULL, PN_VERDICT_MALFORMED },
	{ "ce25ad79d95b09a6967d6e8316c4e0b397fe7dd6f11c87"
	  "d9450cd598c2cb3333",
	    "[1", NULL, PN_VERDICT_MALFORMED },
};

/* What is signed is dropped, taken for another account's, or has a key that is
 * not its own. */
static void
test_template__golden_cases(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(goldens); i++) {
		const struct golden *g = &goldens[i];

		assert_verdict(f, g->verdict, "1772330405", g->signature,
		    pn_str_from(g->body), NOW_US);
		assert_true(f->n.verified);
		if (g->key == NULL)
			continue;
		assert_true(pn_str_is(f->n.events[0].key, g->key));
		assert_false(f->n.events[0].livemode);
		assert_int_equal(f->n.alarm, i != 0);
		if (i != 0)
			continue;
		assert_int_equal(f->n.events[0].amount.minor, 8888);
		assert_int_equal(f->n.events[0].occurred_at_us, NOW_US);
	}
}

/* A stranger's message gets in, or an old one again. */
static void
test_template__nothing_unsigned_gets_in(void **state)
{
	const char *sign = goldens[0].signature;
	struct pn_str body = pn_str_from(goldens[0].body);
	struct pn_str cut = { body.data, body.len - 1 };
	struct fixture *f = *state;

	assert_verdict(f, PN_VERDICT_BAD_SIGNATURE, "1772330405",
	    goldens[1].signature, body, NOW_US);
	assert_verdict(
	    f, PN_VERDICT_BAD_SIGNATURE, "1772330406", sign, body, NOW_US);
	assert_verdict(
	    f, PN_VERDICT_BAD_SIGNATURE, "1772330405", sign, cut, NOW_US);
	assert_verdict(
	    f, PN_VERDICT_BAD_SIGNATURE, "1772330405", "", body, NOW_US);
	assert_verdict(f, PN_VERDICT_MALFORMED, "x", sign, body, NOW_US);
	assert_verdict(
	    f, PN_VERDICT_MALFORMED, "1772330405", NULL, body, NOW_US);
	assert_verdict(f, PN_VERDICT_STALE, "1772330405", sign, body,
	    NOW_US + 301 * PN_SECOND_US);
	assert_verdict(f, PN_VERDICT_STALE, "1772330405", sign, body,
	    NOW_US - 301 * PN_SECOND_US);
	assert_false(f->n.verified);
	assert_verdict(f, PN_VERDICT_ACCEPTED, "1772330405", sign, body,
	    NOW_US + 300 * PN_SECOND_US);
}

static int
make(const struct fixture *f, const char *event, const char *oddity,
    struct pn_request *ret_request)
{
	const struct pn_sample sample = {
		.event = pn_str_from(event), .oddity = oddity, .now_us = NOW_US
	};
	struct pn_error error = { .text = "" };
	int r = provider->sample(
	    f->account, &sample, f->arena, ret_request, &error);

	assert_int_equal(r > 0, strstr(error.text, "payment.succ") != NULL);
	return r;
}

/* `trigger` sends what is refused, or evidence no longer verifies. */
static void
test_template__samples_verify_now_and_years_later(void **state)
{
	unsigned char other[PN_SHA256_BYTES] = { 0 };
	struct fixture *f = *state;
	struct pn_request request;
	const char *reason = "";

	assert_int_equal(make(f, "payment.succeeded", NULL, &request), 0);
	assert_int_equal(
	    provider->verify(f->account, &request, NOW_US, f->arena, &f->n), 0);
	assert_int_equal(f->n.verdict, PN_VERDICT_ACCEPTED);
	assert_int_equal(provider->reverify(&request, NULL, f->account,
			     f->n.key_fingerprint, f->arena, &reason),
	    0);
	assert_int_equal(provider->reverify(&request, NULL, f->account, other,
			     f->arena, &reason),
	    PN_REVERIFY_NO_KEY);
	request.body.len--;
	assert_int_equal(provider->reverify(&request, NULL, f->account,
			     f->n.key_fingerprint, f->arena, &reason),
	    PN_REVERIFY_WRONG);
	assert_true(reason[0] != '\0');
	assert_int_equal(make(f, "payment.succeeded", "tampered", &request), 0);
	assert_int_equal(
	    provider->verify(f->account, &request, NOW_US, f->arena, &f->n), 0);
	assert_int_equal(f->n.verdict, PN_VERDICT_BAD_SIGNATURE);
	assert_int_equal(make(f, "no.such", NULL, &request), 1);
	assert_int_equal(make(f, "payment.succeeded", "odd", &request), 1);
}

/* An operator of a release configures a provider that does not exist. */
static void
test_template__is_not_in_a_release(void **state)
{
	(void)state;
#ifndef PN_TEMPLATE_PROVIDER
	assert_null(pn_provider_find(PN_STR("template")));
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_template__golden_cases, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_template__nothing_unsigned_gets_in, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_template__samples_verify_now_and_years_later, setup,
		    teardown),
		cmocka_unit_test(test_template__is_not_in_a_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
