/*
 * The pipeline with a provider and a store that do as they are told. If these
 * fail, a success is told that was not committed, something signed is dropped,
 * or a request gets two answers or none.
 */
#include "fakes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* -- tests ----------------------------------------------------------------------- */

/* A request finds another account, or one that is not there. */
static void
test_ingest__routes_match_byte_for_byte(void **state)
{
	struct world *w = *state;
	static const char *const none[] = { "", "/", "/notify/fake",
		"/notify/fake/", "/notify/fake/shop", "/notify/fake/shop11",
		"/notify/fake/SHOP1", "//notify/fake/shop1", "?",
		"/notify/fake/shop1/", "notify/fake/shop1" };
	char path[64];

	for (int i = 0; i < 3; i++) {
		const struct pn_route *route;

		(void)snprintf(
		    path, sizeof(path), "/notify/fake/%s", fake_tenants[i]);
		route = pn_ingest_route(w->ingest, pn_str_from(path));
		assert_non_null(route);
		assert_string_equal(route->conf->tenant, fake_tenants[i]);
		assert_true(pn_str_is(route->name, "notify/fake"));
		pn_route_unref(route);
	}
	for (size_t i = 0; i < PN_COUNT(none); i++)
		assert_null(pn_ingest_route(w->ingest, pn_str_from(none[i])));
	pn_route_unref(w->job.route);
	w->job.route = pn_ingest_route(
	    w->ingest, PN_STR("/notify/fake/shop1?a=/notify/fake/x"));
	assert_non_null(w->job.route);
}

/* A reload closes the keys that a request is being verified with, or has the
 * request close them, which may take long, or keeps them for ever; or an account that was taken out is still served. */
static void
test_ingest__an_exchange_leaves_requests_their_account(void **state)
{
	struct world *w = *state;
	struct pn_accounts *others = NULL, *old;
	const struct pn_route *route;
	int before = fake_open_accounts;

	w->next_conf.accounts = w->accounts + 2;
	w->next_conf.account_count = 1;
	assert_int_equal(pn_accounts_open(&w->next_conf, &others, NULL), 0);
	old = pn_ingest_exchange(w->ingest, others);
	assert_ptr_equal(old, w->open);
	pn_accounts_unref(others);
	pn_accounts_unref(w->open);
	w->open = NULL;
	assert_int_equal(fake_open_accounts, before + 1);
	assert_null(pn_ingest_route(w->ingest, PN_STR("/notify/fake/shop1")));
	route = pn_ingest_route(w->ingest, PN_STR("/notify/fake/a-b_9"));
	assert_non_null(route);
	pn_route_unref(route);
	/* The job was routed before. */
	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	store_says(PN_STORE_RECORDED);
	expect(w, PN_OUTCOME_SUCCESS);
	assert_false(pn_accounts_is_last(old));
	pn_route_unref(w->job.route);
	w->job.route = NULL;
	assert_int_equal(fake_open_accounts, before + 1);
	assert_true(pn_accounts_is_last(old));
	pn_accounts_unref(old);
	assert_int_equal(fake_open_accounts, 1);
}

/* Keys that verified evidence are not kept, or kept twice. */
static void
test_ingest__keys_of_all_accounts_once(void **state)
{
	struct world *w = *state;
	size_t count = 0;
	const struct pn_store_key *keys = pn_accounts_keys(w->open, &count);

	assert_int_equal(count, 4);
	assert_string_equal(keys[0].pem, "shared");
	for (size_t i = 1; i < count; i++) {
		assert_int_equal(keys[i].fingerprint[0], i);
		assert_null(keys[i].pem);
	}
}

/* A bad key of the third account: the first two leak, or the place is lost. */
static void
test_ingest__bad_account_is_an_error_with_its_place(void **state)
{
	struct world *w = *state;
	struct pn_accounts *other = NULL;
	struct pn_error error = { .text = "" };
	int before = fake_open_accounts;

	w->accounts[2].test = true;
	assert_int_equal(pn_accounts_open(&w->conf, &other, &error), -EINVAL);
	assert_string_equal(error.text, "x.conf:3: bad key");
	assert_int_equal(fake_open_accounts, before);
	assert_null(other);
}

/* A success before the commit, or for what was not committed. */
static void
test_ingest__success_only_after_the_store_says_so(void **state)
{
	struct world *w = *state;
	static const struct {
		enum pn_store_verdict verdict;
		enum pn_outcome outcome;
	} rows[] = {
		{ PN_STORE_RECORDED, PN_OUTCOME_SUCCESS },
		{ PN_STORE_DUPLICATE, PN_OUTCOME_SUCCESS },
		{ PN_STORE_QUARANTINED, PN_OUTCOME_CONFLICT },
		{ PN_STORE_CONFLICT, PN_OUTCOME_CONFLICT },
		{ PN_STORE_UNAVAILABLE, PN_OUTCOME_UNAVAILABLE },
	};

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		tell(PN_VERDICT_ACCEPTED, true);
		pn_ingest_submit(w->ingest, &w->job);
		assert_int_equal(w->done, 0);
		store_says(rows[i].verdict);
		expect(w, rows[i].outcome);
	}
	assert_int_equal(refusals, 0);
}

/* Evidence that cannot be verified again. */
static void
test_ingest__submission_carries_the_evidence(void **state)
{
	struct world *w = *state;

	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	assert_true(pn_str_is(submitted->headers, "x-sign: s\nX-TIME: t\n"));
	assert_true(pn_str_is(submitted->body, "body"));
	assert_true(pn_str_is(submitted->provider, "fake"));
	assert_true(pn_str_is(submitted->tenant, "shop1"));
	assert_true(pn_str_is(submitted->route, "notify/fake"));
	assert_true(pn_str_is(submitted->peer, "192.0.2.1"));
	assert_true(pn_str_is(submitted->notify_id, "n1"));
	assert_int_equal(submitted->key_fingerprint[0], 7);
	assert_ptr_equal(submitted->events, &fake_event);
	assert_true(pn_str_is(submitted->success_body, "0/0"));
	assert_int_equal(
	    submitted->refused_status, fake_status_of(PN_OUTCOME_CONFLICT));
	assert_memory_equal(submitted->request_id, w->job.request_id, 16);
	store_says(PN_STORE_RECORDED);
	expect(w, PN_OUTCOME_SUCCESS);
}

/* What is signed but cannot be recorded is refused and forgotten. */
static void
test_ingest__signed_refusals_are_quarantined_first(void **state)
{
	struct world *w = *state;
	static const struct {
		enum pn_verdict verdict;
		enum pn_outcome outcome;
	} rows[] = {
		{ PN_VERDICT_MALFORMED, PN_OUTCOME_MALFORMED },
		{ PN_VERDICT_UNDECRYPTABLE, PN_OUTCOME_UNDECRYPTABLE },
		{ PN_VERDICT_WRONG_ACCOUNT, PN_OUTCOME_WRONG_ACCOUNT },
		{ PN_VERDICT_UNSUPPORTED, PN_OUTCOME_MALFORMED },
	};

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		tell(rows[i].verdict, true);
		pn_ingest_submit(w->ingest, &w->job);
		assert_int_equal(w->done, 0);
		assert_string_equal(submitted->quarantine_reason, "because");
		assert_true(pn_str_is(submitted->quarantine_subject, "n1"));
		assert_int_equal(submitted->event_count, 0);
		assert_int_equal(
		    submitted->refused_status, fake_status_of(rows[i].outcome));
		store_says(i % 2 ? PN_STORE_QUARANTINED : PN_STORE_DUPLICATE);
		expect(w, rows[i].outcome);
		/* Not committed: the sender must come again. */
		tell(rows[i].verdict, true);
		pn_ingest_submit(w->ingest, &w->job);
		store_says(PN_STORE_UNAVAILABLE);
		expect(w, PN_OUTCOME_UNAVAILABLE);
	}
	assert_int_equal(refusals, 0);
}

/* A retry whose payload has a new time is another entry. */
static void
test_ingest__quarantine_fingerprint_prefers_the_witness(void **state)
{
	struct world *w = *state;
	unsigned char first[PN_SHA256_BYTES];

	for (size_t i = 0; i < 2; i++) {
		tell(PN_VERDICT_WRONG_ACCOUNT, true);
		told.notification.payload =
		    i == 0 ? PN_STR("{\"t\":1}") : PN_STR("{\"t\":2}");
		told.notification.witness = PN_STR("{}");
		pn_ingest_submit(w->ingest, &w->job);
		if (i > 0)
			assert_memory_equal(first,
			    submitted->quarantine_fingerprint, sizeof(first));
		memcpy(first, submitted->quarantine_fingerprint, sizeof(first));
		store_says(PN_STORE_QUARANTINED);
		expect(w, PN_OUTCOME_WRONG_ACCOUNT);
	}
}

/* A retry of the same message is another entry, or another message is not. */
static void
test_ingest__quarantine_fingerprint_is_of_the_payload(void **state)
{
	struct world *w = *state;
	unsigned char first[PN_SHA256_BYTES];
	struct pn_str payloads[] = { PN_STR("{}"), PN_STR("{}"), PN_STR("{1}"),
		{ NULL, 0 }, { NULL, 0 } };
	int same[] = { 0, 1, 0, 0, 0 };

	for (size_t i = 0; i < PN_COUNT(payloads); i++) {
		tell(PN_VERDICT_WRONG_ACCOUNT, true);
		told.notification.payload = payloads[i];
		w->request.body = i % 2 ? PN_STR("one") : PN_STR("two");
		pn_ingest_submit(w->ingest, &w->job);
		if (i > 0)
			assert_int_equal(
			    memcmp(first, submitted->quarantine_fingerprint,
				sizeof(first)) == 0,
			    same[i]);
		memcpy(first, submitted->quarantine_fingerprint, sizeof(first));
		store_says(PN_STORE_QUARANTINED);
		expect(w, PN_OUTCOME_WRONG_ACCOUNT);
	}
}

/* Without an id all such messages are one. */
static void
test_ingest__quarantine_without_id_goes_by_the_body(void **state)
{
	struct world *w = *state;

	tell(PN_VERDICT_MALFORMED, true);
	told.notification.notify_id = (struct pn_str){ NULL, 0 };
	w->request.body = PN_STR("abc");
	pn_ingest_submit(w->ingest, &w->job);
	assert_true(pn_str_is(submitted->quarantine_subject,
	    "ba7816bf8f01cfea414140de5dae2223b00"
	    "361a396177a9cb410ff61f20015ad"));
	store_says(PN_STORE_QUARANTINED);
	expect(w, PN_OUTCOME_MALFORMED);
}

/* Something unverified gets into the statement, or leaves no receipt. */
static void
test_ingest__unverified_requests_never_reach_the_statement(void **state)
{
	struct world *w = *state;
	static const struct {
		enum pn_verdict verdict;
		enum pn_outcome outcome;
	} rows[] = {
		{ PN_VERDICT_MALFORMED, PN_OUTCOME_MALFORMED },
		{ PN_VERDICT_BAD_SIGNATURE, PN_OUTCOME_UNAUTHENTIC },
		{ PN_VERDICT_UNKNOWN_KEY, PN_OUTCOME_UNAUTHENTIC },
		{ PN_VERDICT_STALE, PN_OUTCOME_UNAUTHENTIC },
		{ PN_VERDICT_UNDECRYPTABLE, PN_OUTCOME_UNDECRYPTABLE },
		{ PN_VERDICT_UNSUPPORTED, PN_OUTCOME_MALFORMED },
	};

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		tell(rows[i].verdict, false);
		pn_ingest_submit(w->ingest, &w->job);
		assert_null(submitted);
		expect(w, rows[i].outcome);
		assert_int_equal(refusals, i + 1);
		assert_int_equal(
		    refusal_status, fake_status_of(rows[i].outcome));
	}
	/* In a dialect where the body decides, the receipt says 200. */
	tell(PN_VERDICT_BAD_SIGNATURE, false);
	told.notification.dialect = 1;
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAUTHENTIC);
	assert_int_equal(refusal_status, 200);
}

/* A flood leaves no receipts, or bodies by the gigabyte; or a genuine notification
 * is refused for it. */
static void
test_ingest__rate_limit_is_asked_for_unverified_ones_only(void **state)
{
	struct world *w = *state;

	w->limited = true;
	tell(PN_VERDICT_BAD_SIGNATURE, false);
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_RATE_LIMITED);
	assert_int_equal(refusals, 1);
	assert_int_equal(
	    refusal_status, fake_status_of(PN_OUTCOME_RATE_LIMITED));
	assert_string_equal(refusal_verdict, "rate_limited");
	assert_string_equal(refusal_reason, "because");
	assert_int_equal(refusal_body_bytes, 4);
	assert_int_equal(refusal_body_len + refusal_headers_len, 0);
	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	store_says(PN_STORE_RECORDED);
	expect(w, PN_OUTCOME_SUCCESS);
	tell(PN_VERDICT_WRONG_ACCOUNT, true);
	pn_ingest_submit(w->ingest, &w->job);
	store_says(PN_STORE_QUARANTINED);
	expect(w, PN_OUTCOME_WRONG_ACCOUNT);
}

/* A full queue, no store, no memory: anything but 503. */
static void
test_ingest__what_cannot_be_recorded_is_unavailable(void **state)
{
	struct world *w = *state;

	tell(PN_VERDICT_ACCEPTED, true);
	store_full = 1;
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAVAILABLE);
	store_full = 0;
	tell(PN_VERDICT_ACCEPTED, false); /* before the signature was seen */
	told.verify_result = -ENOMEM;
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAVAILABLE);
	tell(PN_VERDICT_ACCEPTED, true);
	told.verify_result = 0;
	pn_ingest_set_store(w->ingest, NULL);
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAVAILABLE);
	assert_null(submitted);
}

/* What is signed and too much for the memory of a request is answered 503 for
 * ever, and then lost. */
static void
test_ingest__signed_but_too_much_for_the_memory_is_quarantined(void **state)
{
	struct world *w = *state;

	tell(PN_VERDICT_ACCEPTED, true);
	told.verify_result = -ENOMEM;
	told.notification.payload = PN_STR("{\"half\":");
	w->request.body = PN_STR("abc");
	pn_ingest_submit(w->ingest, &w->job);
	assert_non_null(submitted);
	assert_non_null(submitted->quarantine_reason);
	assert_int_equal(submitted->event_count, 0);
	assert_int_equal(submitted->payload.len, 0);
	assert_true(pn_str_is(submitted->body, "abc"));
	assert_int_equal(submitted->key_fingerprint[0], 7);
	assert_true(pn_str_starts(submitted->quarantine_subject, "ba7816bf"));
	store_says(PN_STORE_QUARANTINED);
	expect(w, PN_OUTCOME_MALFORMED);
	assert_int_equal(refusals, 0);
}

/* Memory is out while a reply is made, and the body is an empty success. */
static void
test_ingest__reply_that_fails_is_never_a_success(void **state)
{
	struct world *w = *state;

	tell(PN_VERDICT_ACCEPTED, true);
	told.reply_failures = 1; /* before the submission */
	pn_ingest_submit(w->ingest, &w->job);
	assert_null(submitted);
	expect(w, PN_OUTCOME_UNAVAILABLE);
	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	told.reply_failures = 1; /* after it */
	store_says(PN_STORE_CONFLICT);
	expect(w, PN_OUTCOME_UNAVAILABLE);
	assert_int_equal(w->job.reply.body.len, 0);
	/* After the commit nothing is rendered any more: it cannot fail. */
	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	told.reply_failures = 1;
	store_says(PN_STORE_RECORDED);
	expect(w, PN_OUTCOME_SUCCESS);
}

/* What was refused half read leaves no trace, or one with a wrong length. */
static void
test_ingest__refusals_before_the_body_leave_a_receipt(void **state)
{
	struct world *w = *state;
	char body[PN_REFUSAL_BODY_BYTES_MAX + 100];

	memset(body, '<', sizeof(body));
	w->request.body = (struct pn_str){ body, sizeof(body) };
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_BODY_OVER_LIMIT);
	assert_int_equal(w->job.outcome, PN_OUTCOME_MALFORMED);
	assert_int_equal(refusals, 1);
	assert_int_equal(refusal_status, 413);
	assert_int_equal(refusal_body_len, sizeof(body)); /* the store cuts */
	assert_int_equal(refusal_body_bytes, sizeof(body));
	w->job.body_bytes = 1 << 30; /* announced */
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_BODY_OVER_LIMIT);
	assert_int_equal(refusal_body_bytes, 1 << 30);
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_LENGTH_AMBIGUOUS);
	assert_int_equal(refusals, 3);
	assert_int_equal(refusal_status, 200); /* the dialect of "<" */
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_QUEUE_FULL);
	assert_int_equal(w->job.outcome, PN_OUTCOME_UNAVAILABLE);
	assert_int_equal(refusals, 3);
	assert_int_equal(w->done, 0);
}

/* A wrong method, or a head that was not read, leaves no trace. */
static void
test_ingest__refusals_of_the_head_leave_a_receipt(void **state)
{
	struct world *w = *state;

	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_METHOD);
	assert_int_equal(refusals, 1);
	assert_int_equal(refusal_status, 405);
	assert_string_equal(
	    refusal_reason, "not a POST: a notification comes in a body");
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_HEADERS);
	assert_int_equal(refusals, 2);
	assert_int_equal(refusal_status, 431);
	assert_true(refusal_body_len > 0);
	/* Of a flood too, but without what it sends. */
	w->limited = true;
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_HEADERS);
	assert_int_equal(refusals, 3);
	assert_int_equal(refusal_status, 431);
	assert_int_equal(refusal_body_len + refusal_headers_len, 0);
	assert_int_equal(w->done, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
	const struct CMUnitTest tests[] = {
		TEST(test_ingest__routes_match_byte_for_byte),
		TEST(test_ingest__an_exchange_leaves_requests_their_account),
		TEST(test_ingest__keys_of_all_accounts_once),
		TEST(test_ingest__bad_account_is_an_error_with_its_place),
		TEST(test_ingest__success_only_after_the_store_says_so),
		TEST(test_ingest__submission_carries_the_evidence),
		TEST(test_ingest__signed_refusals_are_quarantined_first),
		TEST(test_ingest__quarantine_fingerprint_prefers_the_witness),
		TEST(test_ingest__quarantine_fingerprint_is_of_the_payload),
		TEST(test_ingest__quarantine_without_id_goes_by_the_body),
		TEST(
		    test_ingest__unverified_requests_never_reach_the_statement),
		TEST(test_ingest__rate_limit_is_asked_for_unverified_ones_only),
		TEST(test_ingest__what_cannot_be_recorded_is_unavailable),
		TEST(
		    test_ingest__signed_but_too_much_for_the_memory_is_quarantined),
		TEST(test_ingest__reply_that_fails_is_never_a_success),
		TEST(test_ingest__refusals_before_the_body_leave_a_receipt),
		TEST(test_ingest__refusals_of_the_head_leave_a_receipt),
	};

	pn_log_configure(PN_LOG_ERR, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
