/*
 * Alipay's samples: each event, oddity and charset does to verify() what its
 * name says, and a sample is a function of what was asked for.
 */
#include "alipay_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pn_sample
sample_of(const char *event)
{
	return (struct pn_sample){ .event = pn_str_from(event),
		.seed = 42,
		.now_us = FIXTURE_NOW_US };
}

/* Fails if `trigger EVENT` sent another event than the one it was asked for. */
static void
test_alipay_sample__each_event_verifies_as_itself(void **state)
{
	struct alipay_fixture *fixture = *state;
	const char *const *events = fixture->provider->sample_events;

	for (; *events != NULL; events++) {
		struct pn_sample sample = sample_of(*events);
		struct pn_request request =
		    alipay_fixture_sample(fixture, &sample);
		struct pn_notification notification =
		    alipay_fixture_verify(fixture, &request);
		const struct pn_event *last;

		assert_int_equal(notification.verdict, PN_VERDICT_ACCEPTED);
		assert_string_equal(notification.reason, "");
		last = &notification.events[notification.event_count - 1];
		assert_true(pn_str_is(last->type, *events));
		assert_false(last->livemode);
		assert_true(pn_str_is(request.path, "/notify/alipay/shop1"));
		assert_true(pn_str_is(request.method, "POST"));
	}
}

struct oddity_row {
	const char *oddity;
	enum pn_verdict verdict;
};

/* Fails if an oddity were not odd in the way it is named for. */
static void
test_alipay_sample__each_oddity_gets_its_verdict(void **state)
{
	static const struct oddity_row rows[] = {
		{ "bad-amount", PN_VERDICT_ACCEPTED },
		{ "tampered", PN_VERDICT_BAD_SIGNATURE },
		{ "wrong-key", PN_VERDICT_BAD_SIGNATURE },
		{ "no-sign", PN_VERDICT_MALFORMED },
		{ "other-app", PN_VERDICT_WRONG_ACCOUNT },
		{ "other-seller", PN_VERDICT_WRONG_ACCOUNT },
		{ "sha1", PN_VERDICT_BAD_SIGNATURE },
		{ "gbk", PN_VERDICT_ACCEPTED },
		{ "duplicate-field", PN_VERDICT_MALFORMED },
	};
	struct alipay_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_sample sample = sample_of("payment.succeeded");
		struct pn_request request;

		assert_string_equal(
		    fixture->provider->sample_oddities[i].name, rows[i].oddity);
		sample.oddity = rows[i].oddity;
		request = alipay_fixture_sample(fixture, &sample);
		assert_int_equal(
		    alipay_fixture_verify(fixture, &request).verdict,
		    rows[i].verdict);
	}
	assert_null(fixture->provider->sample_oddities[PN_COUNT(rows)].name);
}

/* Fails if a GBK sample were not GBK, or a subject came out as another. */
static void
test_alipay_sample__charsets_carry_the_same_subject(void **state)
{
	static const char *const charsets[] = { "utf-8", "GBK", "GB18030" };
	struct alipay_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(charsets); i++) {
		struct pn_sample sample = sample_of("payment.succeeded");
		struct pn_request request;
		struct pn_notification notification;

		sample.charset = charsets[i];
		request = alipay_fixture_sample(fixture, &sample);
		assert_int_equal(
		    pn_str_find(request.body, PN_STR("%B2%E2%CA%D4")) >= 0,
		    i > 0);
		notification = alipay_fixture_verify(fixture, &request);
		assert_true(pn_str_find(notification.payload,
				PN_STR("测试订单 Order + 1")) > 0);
	}
}

/* Fails if samples were not reproducible, or a retry were byte-identical. */
static void
test_alipay_sample__attempts_differ_only_in_time_and_sign(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request first = alipay_fixture_sample(fixture, &sample);
	struct pn_request again = alipay_fixture_sample(fixture, &sample);
	struct pn_request retry;
	struct pn_notification one, two;

	assert_true(pn_str_equal(first.body, again.body));
	sample.attempt = 1;
	retry = alipay_fixture_sample(fixture, &sample);
	assert_false(pn_str_equal(first.body, retry.body));
	one = alipay_fixture_verify(fixture, &first);
	two = alipay_fixture_verify(fixture, &retry);
	assert_true(pn_str_equal(one.notify_id, two.notify_id));
	assert_true(pn_str_equal(one.out_trade_no, two.out_trade_no));
	assert_false(pn_str_equal(one.payload, two.payload));
	sample.seed++;
	retry = alipay_fixture_sample(fixture, &sample);
	two = alipay_fixture_verify(fixture, &retry);
	assert_false(pn_str_equal(one.notify_id, two.notify_id));
	assert_false(pn_str_equal(one.out_trade_no, two.out_trade_no));
}

/* Fails if a refund, sent by another run, were a conflict with the payment before
 * it; or if two orders shared a trade. */
static void
test_alipay_sample__an_order_has_one_trade(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request;
	struct pn_notification paid, refunded, other;

	sample.out_trade_no = PN_STR("E1");
	request = alipay_fixture_sample(fixture, &sample);
	paid = alipay_fixture_verify(fixture, &request);
	sample.seed++;
	sample.event = PN_STR("refund.succeeded");
	request = alipay_fixture_sample(fixture, &sample);
	refunded = alipay_fixture_verify(fixture, &request);
	assert_int_equal(refunded.event_count, 2);
	assert_true(pn_str_equal(paid.events[0].key, refunded.events[0].key));
	assert_memory_equal(paid.events[0].request_hash,
	    refunded.events[0].request_hash, PN_SHA256_BYTES);
	assert_false(pn_str_equal(paid.notify_id, refunded.notify_id));
	sample.out_trade_no = PN_STR("E2");
	request = alipay_fixture_sample(fixture, &sample);
	other = alipay_fixture_verify(fixture, &request);
	assert_false(pn_str_equal(
	    paid.events[0].transaction_id, other.events[0].transaction_id));
}

/* Fails if parts of a refund could not be told apart, or the last part did not
 * close the trade. */
static void
test_alipay_sample__refund_parts_have_keys_of_their_own(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("refund.succeeded");
	struct pn_request part, whole;
	struct pn_notification one, two;

	sample.amount_minor = 1000;
	sample.refund_minor = 250;
	part = alipay_fixture_sample(fixture, &sample);
	sample.refund_minor = 0;
	whole = alipay_fixture_sample(fixture, &sample);
	one = alipay_fixture_verify(fixture, &part);
	two = alipay_fixture_verify(fixture, &whole);
	assert_int_equal(one.event_count, 2);
	assert_int_equal(one.events[1].refund.refunded_total.minor, 250);
	assert_int_equal(two.events[1].refund.refunded_total.minor, 1000);
	assert_int_equal(one.events[1].order_amount.minor, 1000);
	assert_false(pn_str_equal(one.events[1].key, two.events[1].key));
	assert_false(pn_str_equal(one.notify_id, two.notify_id));
	assert_true(pn_str_find(whole.body, PN_STR("TRADE_CLOSED")) > 0);
	assert_true(pn_str_find(part.body, PN_STR("TRADE_SUCCESS")) > 0);
}

static void
assert_refused(struct alipay_fixture *fixture, const struct pn_sample *sample,
    const char *says)
{
	struct pn_error error = { "" };
	struct pn_request request;

	assert_int_equal(fixture->provider->sample(fixture->account, sample,
			     fixture->arena, &request, &error),
	    1);
	assert_non_null(strstr(error.text, says));
}

/* Fails if a misspelt event or oddity were not answered by what there is. */
static void
test_alipay_sample__unknown_names_list_what_there_is(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.paid");

	assert_refused(fixture, &sample, "payment.succeeded");
	sample = sample_of("payment.succeeded");
	sample.oddity = "odd";
	assert_refused(fixture, &sample, "wrong-key");
	sample.oddity = NULL;
	sample.charset = "x-klingon";
	assert_refused(fixture, &sample, "x-klingon");
	sample.charset = NULL;
	sample.amount_minor = -1;
	assert_refused(fixture, &sample, "amount");
	sample.amount_minor = 100;
	sample.refund_minor = 101;
	assert_refused(fixture, &sample, "refund");
	sample = sample_of("alipay.dut_user_sign");
	sample.oddity = "bad-amount";
	assert_refused(fixture, &sample, "bad-amount");
}

/* Fails if an account without test_private_key crashed a trigger. */
static void
test_alipay_sample__needs_a_key_to_sign_with(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_error error = { "" };
	struct pn_request request;
	void *account;

	conf.test_private_key.count = 0;
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	assert_int_equal(fixture->provider->sample(account, &sample,
			     fixture->arena, &request, &error),
	    -EINVAL);
	assert_non_null(strstr(error.text, "test_private_key"));
	fixture->provider->account_close(account);
}

/* Fails if a sample were made of what memory was left. */
static void
test_alipay_sample__out_of_memory_makes_no_request(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("refund.succeeded");
	int r = -ENOMEM;

	sample.charset = "GBK";
	for (size_t bytes = 0; r != 0; bytes += 64) {
		struct pn_arena *arena = pn_arena_new(bytes);
		struct pn_error error;
		struct pn_request request;

		r = fixture->provider->sample(
		    fixture->account, &sample, arena, &request, &error);
		assert_true(r == 0 || r == -ENOMEM);
		pn_arena_free(arena);
		assert_true(bytes < 64 * 1024);
	}
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, alipay_fixture_arena, alipay_fixture_arena_done)
	const struct CMUnitTest tests[] = {
		TEST(test_alipay_sample__each_event_verifies_as_itself),
		TEST(test_alipay_sample__each_oddity_gets_its_verdict),
		TEST(test_alipay_sample__charsets_carry_the_same_subject),
		TEST(test_alipay_sample__attempts_differ_only_in_time_and_sign),
		TEST(test_alipay_sample__an_order_has_one_trade),
		TEST(test_alipay_sample__refund_parts_have_keys_of_their_own),
		TEST(test_alipay_sample__unknown_names_list_what_there_is),
		TEST(test_alipay_sample__needs_a_key_to_sign_with),
		TEST(test_alipay_sample__out_of_memory_makes_no_request),
	};

	return cmocka_run_group_tests(
	    tests, alipay_fixture_setup, alipay_fixture_teardown);
}
