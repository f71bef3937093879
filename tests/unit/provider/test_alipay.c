/*
 * Alipay's provider row apart from what the golden cases prove: accounts,
 * replies, what a refusal leaves behind, fingerprints, memory.
 */
#include "alipay_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "../../../src/provider/alipay_internal.h"

static void
assert_str(struct pn_str have, const char *want)
{
	assert_int_equal(have.len, strlen(want));
	assert_memory_equal(have.data, want, have.len);
}

static struct pn_sample
sample_of(const char *event)
{
	return (struct pn_sample){
		.event = pn_str_from(event), .seed = 1, .now_us = FIXTURE_NOW_US
	};
}

/* --- account ----------------------------------------------------------- */

/* Fails if an unreadable key were found at the first notification only. */
static void
test_alipay__refuses_an_unreadable_key_with_its_place(void **state)
{
	struct alipay_fixture *fixture = *state;
	unsigned char junk[] = "no key";
	struct pn_conf_file bad = fixture->public_files[0];
	struct pn_conf_account conf = fixture->conf;
	struct pn_error error = { "" };
	void *account;

	bad.content = (struct pn_secret){ junk, sizeof(junk) - 1 };
	conf.alipay.public_key = (struct pn_conf_files){ &bad, 1 };
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), -EINVAL);
	assert_ptr_equal(strstr(error.text, "test.conf:7: "), error.text);
}

/* Fails if an account could be opened that can never accept anything, or whose
 * app_ids mix sellers. */
static void
test_alipay__refuses_accounts_that_lack_something(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_error error = { "" };
	void *account;

	conf.alipay.app_id.count = 0;
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), -EINVAL);
	assert_non_null(strstr(error.text, "test.conf:3: "));
	assert_non_null(strstr(error.text, "app_id"));
	conf = fixture->conf;
	conf.alipay.public_key.count = 0;
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), -EINVAL);
	assert_non_null(strstr(error.text, "public_key"));
	conf = fixture->conf;
	conf.alipay.seller_id.count = 0;
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), -EINVAL);
	assert_non_null(strstr(error.text, "seller_id"));
}

static int
count_key(void *payload, const unsigned char *fingerprint, const char *pem)
{
	unsigned *count = payload;

	assert_non_null(fingerprint);
	assert_non_null(strstr(pem, "-----BEGIN PUBLIC KEY-----"));
	return ++*count >= 2 ? 5 : 0;
}

/* Fails if evidence could not be verified years later for want of a key. */
static void
test_alipay__tells_all_its_keys(void **state)
{
	struct alipay_fixture *fixture = *state;
	unsigned count = 0;

	assert_int_equal(fixture->provider->account_keys(
			     fixture->account, count_key, &count),
	    5);
	assert_int_equal(count, 2);
}

/* --- replies ----------------------------------------------------------- */

/* Fails if Alipay would read anything but the one word it knows. */
static void
test_alipay__replies_with_exactly_one_word(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_reply reply;

	for (int i = 0; i < PN_OUTCOME_COUNT; i++) {
		assert_int_equal(fixture->provider->reply(0, (enum pn_outcome)i,
				     "a reason", fixture->arena, &reply),
		    0);
		assert_str(
		    reply.body, i == PN_OUTCOME_SUCCESS ? "success" : "fail");
		assert_string_equal(reply.content_type, "text/plain");
		assert_false(reply.status_is_200);
	}
}

/* --- what a refusal leaves --------------------------------------------- */

/* Fails if the receipt of a forgery could not say which order it claimed. */
static void
test_alipay__unverified_refusal_keeps_plain_ids(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request;
	struct pn_notification notification;

	sample.oddity = "tampered";
	sample.out_trade_no = PN_STR("ORDER1");
	request = alipay_fixture_sample(fixture, &sample);
	notification = alipay_fixture_verify(fixture, &request);
	assert_int_equal(notification.verdict, PN_VERDICT_BAD_SIGNATURE);
	assert_false(notification.verified);
	assert_null(notification.key);
	assert_str(notification.out_trade_no, "ORDER1");
	assert_int_equal(notification.notify_id.len, 34);
	assert_null(notification.payload.data);

	request.body = PN_STR("notify_id=a%00b&out_trade_no=%e4&sign=x");
	notification = alipay_fixture_verify(fixture, &request);
	assert_int_equal(notification.notify_id.len, 0);
	assert_int_equal(notification.out_trade_no.len, 0);
}

/* Fails if a genuine notification for another application were dropped instead
 * of quarantined with its content. */
static void
test_alipay__verified_refusal_keeps_its_payload(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request;
	struct pn_notification notification;

	sample.oddity = "other-app";
	request = alipay_fixture_sample(fixture, &sample);
	notification = alipay_fixture_verify(fixture, &request);
	assert_int_equal(notification.verdict, PN_VERDICT_WRONG_ACCOUNT);
	assert_true(notification.verified);
	assert_non_null(notification.key);
	assert_int_equal(notification.event_count, 0);
	assert_true(pn_str_find(notification.payload,
			PN_STR("\"total_amount\":\"88.88\"")) > 0);
	assert_true(pn_str_find(notification.payload, PN_STR("\"sign\"")) < 0);
	assert_memory_equal(notification.key_fingerprint,
	    pn_public_key_fingerprint(notification.key), PN_SHA256_BYTES);
}

/* Fails if the clock were compared with anything but the time of this attempt:
 * notify_time, signed, in whole seconds of Beijing. */
static void
test_alipay__sending_time_is_notify_time(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request = alipay_fixture_sample(fixture, &sample);
	struct pn_notification n = alipay_fixture_verify(fixture, &request);

	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
	assert_int_equal(n.signed_at_us, sample.now_us);
	request.body.len--; /* forged */
	n = alipay_fixture_verify(fixture, &request);
	assert_false(n.verified);
	assert_true(n.signed_at_us == PN_MOMENT_NONE);
}

/* Fails if each retry of a refused notification made one more quarantine
 * entry. */
static void
test_alipay__retries_of_a_refused_one_share_a_witness(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_notification first, retry;
	struct pn_request request;

	sample.oddity = "other-app";
	request = alipay_fixture_sample(fixture, &sample);
	first = alipay_fixture_verify(fixture, &request);
	sample.attempt = 1;
	request = alipay_fixture_sample(fixture, &sample);
	retry = alipay_fixture_verify(fixture, &request);
	assert_false(pn_str_equal(first.payload, retry.payload));
	assert_true(first.witness.len > 0);
	assert_true(pn_str_equal(first.witness, retry.witness));
	sample.amount_minor = 1;
	request = alipay_fixture_sample(fixture, &sample);
	retry = alipay_fixture_verify(fixture, &request);
	assert_false(pn_str_equal(first.witness, retry.witness));
}

/* --- fingerprints ------------------------------------------------------ */

/* Fails if a retry, or the payment inside a refund's notification, would look
 * like a forged variant of the payment. */
static void
test_alipay__honest_deliveries_share_a_fingerprint(void **state)
{
	static const char *const events[] = { "payment.succeeded",
		"payment.finished", "refund.succeeded" };
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request = alipay_fixture_sample(fixture, &sample);
	struct pn_notification first = alipay_fixture_verify(fixture, &request);

	for (size_t i = 0; i < PN_COUNT(events); i++) {
		struct pn_notification next;

		sample = sample_of(events[i]);
		sample.attempt = (unsigned)i + 1;
		sample.refund_minor = 100;
		request = alipay_fixture_sample(fixture, &sample);
		next = alipay_fixture_verify(fixture, &request);
		assert_int_equal(next.verdict, PN_VERDICT_ACCEPTED);
		assert_memory_equal(next.events[0].id, first.events[0].id, 16);
		assert_memory_equal(next.events[0].request_hash,
		    first.events[0].request_hash, PN_SHA256_BYTES);
	}
}

/* Fails if another amount under a known key passed for a duplicate. */
static void
test_alipay__other_amount_is_another_fingerprint(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("payment.succeeded");
	struct pn_request request = alipay_fixture_sample(fixture, &sample);
	struct pn_notification first = alipay_fixture_verify(fixture, &request);
	struct pn_notification next;

	sample.oddity = "bad-amount";
	request = alipay_fixture_sample(fixture, &sample);
	next = alipay_fixture_verify(fixture, &request);
	assert_int_equal(next.verdict, PN_VERDICT_ACCEPTED);
	assert_memory_equal(next.events[0].key_digest,
	    first.events[0].key_digest, PN_SHA256_BYTES);
	assert_memory_not_equal(next.events[0].request_hash,
	    first.events[0].request_hash, PN_SHA256_BYTES);
	assert_int_equal(next.events[0].order_amount.minor,
	    first.events[0].order_amount.minor + 1);
}

/* --- memory and tables ------------------------------------------------- */

/* Fails if running out of memory at any point were taken for a verdict. */
static void
test_alipay__out_of_memory_is_never_a_verdict(void **state)
{
	struct alipay_fixture *fixture = *state;
	struct pn_sample sample = sample_of("refund.succeeded");
	struct pn_request request;
	bool done = false;

	sample.charset = "GBK";
	request = alipay_fixture_sample(fixture, &sample);
	for (size_t bytes = 0; !done; bytes += 64) {
		struct pn_arena *arena = pn_arena_new(bytes);
		struct pn_notification notification;
		int r = fixture->provider->verify(fixture->account, &request,
		    FIXTURE_NOW_US, arena, &notification);

		assert_true(r == 0 || r == -ENOMEM);
		if (r == 0)
			assert_int_equal(
			    notification.verdict, PN_VERDICT_ACCEPTED);
		done = r == 0;
		pn_arena_free(arena);
		assert_true(bytes < 64 * 1024);
	}
}

/* Fails if a documented name could not be found, so that it could be hidden. */
static void
test_alipay__documented_names_are_sorted(void **state)
{
	(void)state;
	for (size_t i = 0; i < pn_alipay_documented_count(); i++)
		assert_int_equal(pn_alipay_documented(
				     pn_str_from(pn_alipay_documented_at(i))),
		    (int)i);
	assert_int_equal(pn_alipay_documented(PN_STR("nobody")), -1);
	assert_int_equal(pn_alipay_documented(PN_STR("")), -1);
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, alipay_fixture_arena, alipay_fixture_arena_done)
	const struct CMUnitTest tests[] = {
		TEST(test_alipay__refuses_an_unreadable_key_with_its_place),
		TEST(test_alipay__refuses_accounts_that_lack_something),
		TEST(test_alipay__tells_all_its_keys),
		TEST(test_alipay__replies_with_exactly_one_word),
		TEST(test_alipay__unverified_refusal_keeps_plain_ids),
		TEST(test_alipay__verified_refusal_keeps_its_payload),
		TEST(test_alipay__sending_time_is_notify_time),
		TEST(test_alipay__retries_of_a_refused_one_share_a_witness),
		TEST(test_alipay__honest_deliveries_share_a_fingerprint),
		TEST(test_alipay__other_amount_is_another_fingerprint),
		TEST(test_alipay__out_of_memory_is_never_a_verdict),
		TEST(test_alipay__documented_names_are_sorted),
	};

	return cmocka_run_group_tests(
	    tests, alipay_fixture_setup, alipay_fixture_teardown);
}
