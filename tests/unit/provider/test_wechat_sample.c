/*
 * WeChat Pay's samples: each event and oddity does to verify() what its name
 * says, in either dialect, and a sample is a function of what was asked for.
 */
#include "wechat_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pn_str
header_of(const struct pn_request *request, const char *name)
{
	struct pn_str value;

	assert_int_equal(pn_request_header(request, name, &value), 1);
	return value;
}

static struct pn_event
one_event(struct wechat_fixture *fixture, const struct pn_sample *sample)
{
	struct pn_request request = wechat_fixture_sample(fixture, sample);
	struct pn_notification n = wechat_fixture_verify(fixture, &request);

	assert_string_equal(n.reason, "");
	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
	assert_int_equal(n.event_count, 1);
	return n.events[0];
}

/* Fails if `trigger EVENT` sent another event than the one it was asked for. */
static void
test_wechat_sample__each_event_verifies_as_itself(void **state)
{
	struct wechat_fixture *fixture = *state;
	const char *const *events = fixture->provider->sample_events;

	for (; *events != NULL; events++) {
		struct pn_sample sample = wechat_fixture_sample_of(*events);
		struct pn_event event = one_event(fixture, &sample);

		assert_true(pn_str_is(event.type, *events));
		assert_false(event.livemode);
	}
}

/* Fails if an event of APIv2 were not what APIv3 calls so, or only one of the
 * two algorithms worked. */
static void
test_wechat_sample__v2_has_the_same_events(void **state)
{
	static const char *const events[] = { "payment.succeeded",
		"refund.succeeded", "refund.abnormal", "refund.closed" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(events); i++) {
		struct pn_sample sample = wechat_fixture_sample_of(events[i]);
		struct pn_event v3 = one_event(fixture, &sample);
		struct pn_event v2;

		sample.dialect = "v2";
		v2 = one_event(fixture, &sample);
		assert_true(pn_str_is(v2.type, events[i]));
		assert_true(pn_str_equal(v2.key, v3.key));
		/* Or one payment told twice would be a conflict. */
		assert_memory_equal(
		    v2.request_hash, v3.request_hash, PN_SHA256_BYTES);
	}
}

/* Fails if partner mode were hashed by another number in one dialect. */
static void
test_wechat_sample__partner_has_one_fingerprint(void **state)
{
	static const char *const events[] = { "payment.succeeded",
		"refund.succeeded" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(events); i++) {
		struct pn_sample sample = wechat_fixture_sample_of(events[i]);
		struct pn_event v3, v2;

		sample.oddity = "partner";
		v3 = one_event(fixture, &sample);
		sample.dialect = "v2";
		v2 = one_event(fixture, &sample);
		assert_true(pn_str_is(v3.account, "1900009999"));
		assert_true(pn_str_equal(v2.account, v3.account));
		assert_true(pn_str_is(v3.merchant, "1900000001"));
		assert_memory_equal(
		    v2.request_hash, v3.request_hash, PN_SHA256_BYTES);
	}
}

struct oddity_row {
	const char *oddity;
	const char *event, *dialect;
	enum pn_verdict verdict;
	bool verified;
};

static const struct oddity_row oddity_rows[] = {
	{ "bad-amount", "payment.succeeded", "v3", PN_VERDICT_ACCEPTED, true },
	{ "bad-amount", "payment.failed", "v2", PN_VERDICT_ACCEPTED, true },
	{ "negative-amount", "payment.succeeded", "v3", PN_VERDICT_MALFORMED,
	    true },
	{ "negative-amount", "refund.closed", "v3", PN_VERDICT_MALFORMED,
	    true },
	{ "negative-amount", "refund.closed", "v2", PN_VERDICT_MALFORMED,
	    true },
	{ "tampered", "refund.abnormal", "v3", PN_VERDICT_BAD_SIGNATURE,
	    false },
	{ "tampered", "payment.succeeded", "v2", PN_VERDICT_BAD_SIGNATURE,
	    false },
	{ "tampered", "refund.succeeded", "v2", PN_VERDICT_UNDECRYPTABLE,
	    false },
	{ "wrong-key", "payment.succeeded", "v3", PN_VERDICT_BAD_SIGNATURE,
	    false },
	{ "wrong-key", "payment.succeeded", "v2", PN_VERDICT_BAD_SIGNATURE,
	    false },
	{ "no-sign", "payment.succeeded", "v3", PN_VERDICT_MALFORMED, false },
	{ "no-sign", "payment.succeeded", "v2", PN_VERDICT_MALFORMED, false },
	{ "other-mchid", "payment.succeeded", "v3", PN_VERDICT_WRONG_ACCOUNT,
	    true },
	{ "other-mchid", "wechat.complaint.create", "v3",
	    PN_VERDICT_WRONG_ACCOUNT, true },
	{ "other-mchid", "refund.succeeded", "v2", PN_VERDICT_WRONG_ACCOUNT,
	    true },
	{ "other-appid", "payment.succeeded", "v3", PN_VERDICT_WRONG_ACCOUNT,
	    true },
	{ "other-appid", "payment.succeeded", "v2", PN_VERDICT_WRONG_ACCOUNT,
	    true },
	{ "undecryptable", "wechat.x.y", "v3", PN_VERDICT_UNDECRYPTABLE, true },
	{ "undecryptable", "refund.succeeded", "v2", PN_VERDICT_UNDECRYPTABLE,
	    false },
	{ "partner", "payment.succeeded", "v3", PN_VERDICT_ACCEPTED, true },
	{ "combined", "payment.succeeded", "v3", PN_VERDICT_ACCEPTED, true },
	{ "stale", "payment.succeeded", "v3", PN_VERDICT_STALE, false },
	{ "probe", "payment.succeeded", "v3", PN_VERDICT_BAD_SIGNATURE, false },
	{ "no-headers", "payment.succeeded", "v3", PN_VERDICT_MALFORMED,
	    false },
	{ "old-cert", "payment.succeeded", "v3", PN_VERDICT_BAD_SIGNATURE,
	    false },
	{ "unknown-serial", "payment.succeeded", "v3", PN_VERDICT_UNKNOWN_KEY,
	    false },
};

/* Fails if an oddity were not odd in the way it is named for. */
static void
test_wechat_sample__each_oddity_gets_its_verdict(void **state)
{
	struct wechat_fixture *fixture = *state;
	const struct pn_sample_oddity *o = fixture->provider->sample_oddities;

	for (size_t i = 0; i < PN_COUNT(oddity_rows); i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of(oddity_rows[i].event);
		struct pn_request request;
		struct pn_notification n;

		sample.oddity = oddity_rows[i].oddity;
		sample.dialect = oddity_rows[i].dialect;
		request = wechat_fixture_sample(fixture, &sample);
		n = wechat_fixture_verify(fixture, &request);
		assert_int_equal(n.verdict, oddity_rows[i].verdict);
		assert_int_equal(n.verified, oddity_rows[i].verified);
	}
	for (; o->name != NULL; o++) {
		bool tried = false;

		for (size_t i = 0; i < PN_COUNT(oddity_rows); i++)
			tried |= pn_str_is(
			    pn_str_from(o->name), oddity_rows[i].oddity);
		assert_true(tried);
	}
}

/* Fails if the other appid were the one of the sample configuration. */
static void
test_wechat_sample__another_appid_is_nobodys(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request request;
	char usual[sizeof(fixture->appid_text)];

	memcpy(usual, fixture->appid_text, sizeof(usual));
	memcpy(fixture->appid_text, "wx0000000000000000", 19);
	sample.oddity = "other-appid";
	request = wechat_fixture_sample(fixture, &sample);
	assert_int_equal(wechat_fixture_verify(fixture, &request).verdict,
	    PN_VERDICT_WRONG_ACCOUNT);
	memcpy(fixture->appid_text, usual, sizeof(usual));
}

/* Fails if a bad amount were not a conflict: same key, other fingerprint. */
static void
test_wechat_sample__bad_amount_conflicts_with_the_usual(void **state)
{
	static const char *const events[] = { "payment.succeeded",
		"refund.succeeded" };
	static const char *const dialects[] = { "v3", "v2" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < 4; i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of(events[i / 2]);
		struct pn_event usual, bad;

		sample.dialect = dialects[i % 2];
		usual = one_event(fixture, &sample);
		sample.oddity = "bad-amount";
		bad = one_event(fixture, &sample);
		assert_true(pn_str_equal(usual.key, bad.key));
		assert_memory_not_equal(
		    usual.request_hash, bad.request_hash, PN_SHA256_BYTES);
	}
}

/* Fails if a combined order lost a sub-order, or a fen. */
static void
test_wechat_sample__combined_shares_the_amount(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request request;
	struct pn_notification n;

	sample.oddity = "combined";
	sample.amount_minor = 101;
	request = wechat_fixture_sample(fixture, &sample);
	n = wechat_fixture_verify(fixture, &request);
	assert_int_equal(n.event_count, 2);
	assert_int_equal(
	    n.events[0].amount.minor + n.events[1].amount.minor, 101);
	assert_false(pn_str_equal(n.events[0].key, n.events[1].key));
}

/* Fails if samples were not reproducible, or a retry of APIv3 changed more than
 * WeChat Pay changes: header time, nonce and signature. */
static void
test_wechat_sample__attempts_keep_the_envelope(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request first = wechat_fixture_sample(fixture, &sample);
	struct pn_request again = wechat_fixture_sample(fixture, &sample);
	struct pn_request retry;
	struct pn_notification n;

	assert_true(pn_str_equal(first.body, again.body));
	assert_true(pn_str_equal(header_of(&first, "Wechatpay-Signature"),
	    header_of(&again, "Wechatpay-Signature")));
	sample.attempt = 1;
	retry = wechat_fixture_sample(fixture, &sample);
	assert_true(pn_str_equal(first.body, retry.body));
	assert_false(pn_str_equal(header_of(&first, "Wechatpay-Timestamp"),
	    header_of(&retry, "Wechatpay-Timestamp")));
	assert_false(pn_str_equal(header_of(&first, "Wechatpay-Nonce"),
	    header_of(&retry, "Wechatpay-Nonce")));
	n = wechat_fixture_verify(fixture, &retry);
	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
}

/* Fails if the hundredth retry had left the window by its own lateness. */
static void
test_wechat_sample__no_attempt_leaves_the_window(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");

	sample.attempt = 4000000000;
	(void)one_event(fixture, &sample);
}

/* Fails if a retry of APIv2 were another event. */
static void
test_wechat_sample__v2_attempts_are_duplicates(void **state)
{
	static const char *const events[] = { "payment.succeeded",
		"payment.failed", "refund.closed", "wechat.v2.notice" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(events); i++) {
		struct pn_sample sample = wechat_fixture_sample_of(events[i]);
		struct pn_event first, retry;

		sample.dialect = "v2";
		first = one_event(fixture, &sample);
		sample.attempt = 1;
		retry = one_event(fixture, &sample);
		assert_true(pn_str_equal(first.key, retry.key));
		assert_memory_equal(
		    first.request_hash, retry.request_hash, PN_SHA256_BYTES);
	}
}

/* Fails if what the operator asked for were not what is sent. */
static void
test_wechat_sample__amounts_and_order_are_the_caller_s(void **state)
{
	static const char *const dialects[] = { "v3", "v2" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(dialects); i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of("refund.succeeded");
		struct pn_event event;

		sample.dialect = dialects[i];
		sample.out_trade_no = PN_STR("my \"order\" ]]> <&支");
		sample.amount_minor = 500;
		sample.refund_minor = 200;
		event = one_event(fixture, &sample);
		assert_true(
		    pn_str_equal(event.out_trade_no, sample.out_trade_no));
		assert_int_equal(event.amount.minor, 200);
		assert_int_equal(event.order_amount.minor, 500);
		assert_int_equal(event.occurred_at_us, WECHAT_NOW_US);
	}
}

/* Fails if one seed gave a payment and its refund different orders, or two
 * seeds the same. */
static void
test_wechat_sample__seed_makes_the_ids(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_event paid = one_event(fixture, &sample), refunded, other;

	sample.event = PN_STR("refund.succeeded");
	refunded = one_event(fixture, &sample);
	assert_true(pn_str_equal(paid.transaction_id, refunded.transaction_id));
	assert_true(pn_str_equal(paid.out_trade_no, refunded.out_trade_no));
	sample.event = PN_STR("payment.succeeded");
	sample.seed = 43;
	other = one_event(fixture, &sample);
	assert_false(pn_str_equal(paid.key, other.key));
	assert_false(pn_str_equal(paid.out_trade_no, other.out_trade_no));
}

/* Fails if a refund, sent by another run, were none of the payment before it; or
 * if two orders shared a transaction. */
static void
test_wechat_sample__an_order_has_one_transaction(void **state)
{
	static const char *const dialects[] = { "v3", "v2" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(dialects); i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of("payment.succeeded");
		struct pn_event paid, refunded, part, other;

		sample.dialect = dialects[i];
		sample.out_trade_no = PN_STR("E1");
		paid = one_event(fixture, &sample);
		sample.seed++;
		sample.event = PN_STR("refund.succeeded");
		refunded = one_event(fixture, &sample);
		assert_true(
		    pn_str_equal(paid.transaction_id, refunded.transaction_id));
		sample.refund_minor = 100;
		part = one_event(fixture, &sample);
		assert_false(pn_str_equal(refunded.key, part.key));
		sample.event = PN_STR("payment.succeeded");
		sample.out_trade_no = PN_STR("E2");
		other = one_event(fixture, &sample);
		assert_false(
		    pn_str_equal(paid.transaction_id, other.transaction_id));
	}
}

/* Fails if HMAC could not be asked for, or were taken by an MD5 account. */
static void
test_wechat_sample__hmac_is_refused_by_an_md5_account(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request request;

	sample.dialect = "v2-hmac";
	request = wechat_fixture_sample(fixture, &sample);
	assert_int_equal(wechat_fixture_verify(fixture, &request).verdict,
	    PN_VERDICT_BAD_SIGNATURE);
	fixture->conf.wechat.v2_sign_type = PN_V2_SIGN_HMAC_SHA256;
	assert_int_equal(wechat_fixture_verify(fixture, &request).verdict,
	    PN_VERDICT_ACCEPTED);
	fixture->conf.wechat.v2_sign_type = PN_V2_SIGN_MD5;
}

/* Fails if what there is no sample of were made up, or refused without a word
 * about what there is. */
static void
test_wechat_sample__unknown_ones_say_what_there_is(void **state)
{
	static const struct oddity_row rows[] = {
		{ NULL, "payment.closed", "v3", 0, false },
		{ NULL, "payment.failed", "v3", 0, false },
		{ NULL, "wechat.", "v3", 0, false },
		{ NULL, "wechat.x.y", "v2", 0, false },
		{ NULL, "payment.succeeded", "v4", 0, false },
		{ "sideways", "payment.succeeded", "v3", 0, false },
		{ "stale", "payment.succeeded", "v2", 0, false },
		{ "combined", "refund.succeeded", "v3", 0, false },
		{ "bad-amount", "wechat.x.y", "v3", 0, false },
		{ "undecryptable", "payment.succeeded", "v2", 0, false },
		{ "no-sign", "refund.succeeded", "v2", 0, false },
		{ "other-appid", "refund.succeeded", "v3", 0, false },
	};
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of(rows[i].event);
		struct pn_error error = { "" };
		struct pn_request request;

		sample.oddity = rows[i].oddity;
		sample.dialect = rows[i].dialect;
		assert_int_equal(fixture->provider->sample(fixture->account,
				     &sample, fixture->arena, &request, &error),
		    1);
		/* An oddity that there is must not be told as one that is not. */
		assert_non_null(strstr(
		    error.text, rows[i].oddity == NULL ||
					strcmp(rows[i].oddity, "sideways") == 0
				    ? "there are"
				    : "cannot be made of this event"));
	}
}

/* Fails if an account without a key to sign with crashed or sent unsigned. */
static void
test_wechat_sample__needs_a_key_to_sign_with(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
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
	/* A private key that belongs to none of the public ones. */
	conf = fixture->conf;
	conf.wechat.public_key.count = 1;
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	assert_int_equal(fixture->provider->sample(account, &sample,
			     fixture->arena, &request, &error),
	    -EINVAL);
	assert_non_null(strstr(error.text, "does not belong"));
	fixture->provider->account_close(account);
}

#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, wechat_fixture_arena, wechat_fixture_arena_done)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wechat_sample__each_event_verifies_as_itself),
		TEST(test_wechat_sample__v2_has_the_same_events),
		TEST(test_wechat_sample__partner_has_one_fingerprint),
		TEST(test_wechat_sample__each_oddity_gets_its_verdict),
		TEST(test_wechat_sample__another_appid_is_nobodys),
		TEST(test_wechat_sample__bad_amount_conflicts_with_the_usual),
		TEST(test_wechat_sample__combined_shares_the_amount),
		TEST(test_wechat_sample__attempts_keep_the_envelope),
		TEST(test_wechat_sample__no_attempt_leaves_the_window),
		TEST(test_wechat_sample__v2_attempts_are_duplicates),
		TEST(test_wechat_sample__amounts_and_order_are_the_caller_s),
		TEST(test_wechat_sample__seed_makes_the_ids),
		TEST(test_wechat_sample__an_order_has_one_transaction),
		TEST(test_wechat_sample__hmac_is_refused_by_an_md5_account),
		TEST(test_wechat_sample__unknown_ones_say_what_there_is),
		TEST(test_wechat_sample__needs_a_key_to_sign_with),
	};

	return cmocka_run_group_tests(
	    tests, wechat_fixture_setup, wechat_fixture_teardown);
}
