/*
 * What an endpoint sees of the deliverer: every event, signed, in the order of
 * its order, again after a failure, and not again after a success.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/digest.h"
#include "paynotify/encode.h"
#include "paynotify/query.h"

#include "deliver_support.h"

enum { BODY_BYTES = 4096 };

static int
keep_json(const struct pn_event_row *row, void *payload)
{
	pn_event_add_json(payload, row);
	return 0;
}

static void
assert_signed(const struct sink_request *request)
{
	unsigned char key[24], mac[PN_SHA256_BYTES];
	struct pn_secret secret = { key, sizeof(key) };
	struct pn_buf text = pn_buf_init(BODY_BYTES);
	char want[64] = "v1,";
	size_t len = 0;

	assert_int_equal(
	    pn_base64_decode(pn_str_from(&TEST_SECRET[6]), key, &len), 0);
	assert_int_equal(len, sizeof(key));
	pn_buf_printf(
	    &text, "%s.%s.%s", request->id, request->timestamp, request->body);
	pn_hmac_sha256(&secret, pn_buf_str(&text), mac);
	pn_base64_encode(mac, sizeof(mac), want + 3);
	assert_string_equal(request->signature, want);
	pn_buf_done(&text);
}

/* If it failed: no event would reach an application, or not as documented. */
static void
test_push__delivers_a_signed_event(void **state)
{
	struct push_fixture *f = *state;
	struct pn_buf json = pn_buf_init(BODY_BYTES);
	struct pn_query *query = NULL;
	struct sink_request request;
	struct pn_error error = { { 0 } };

	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	sink_wait(f->sink, 1);
	request = sink_get(f->sink, 0);
	assert_string_equal(request.method, "POST");
	assert_string_equal(request.content_type, "application/json");
	assert_string_equal(request.user_agent, "paynotifyd/" PN_VERSION);
	assert_string_equal(request.redelivery, "");
	assert_signed(&request);
	assert_int_equal(pn_query_open(f->base->dsn, &query, &error), 0);
	assert_int_equal(
	    pn_query_event(query, request.id, NULL, keep_json, &json, &error),
	    0);
	assert_string_equal(request.body, json.data);
	pn_query_close(query);
	pn_buf_done(&json);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.delivery_attempts "
	    "WHERE outcome = 'done' AND status = 200 AND attempt "
	    "= 1 AND error IS NULL AND answer = 'thanks'");
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	assert_int_equal(sink_count(f->sink), 1);
}

/* If it failed: a hiccup of the application would lose an event, or it would
 * not know it again. */
static void
test_push__tries_again_after_a_failure(void **state)
{
	struct push_fixture *f = *state;
	struct sink_request first, second;

	sink_answer_next(f->sink, 1, 500);
	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	sink_wait(f->sink, 1);
	/* 5 s, 80 to 120 %, from the answer on. */
	db_wait(f->db, 1,
	    APP_COUNT "AND state = 'retry' AND attempts = 1 AND "
		      "reason = 'answered 500'");
	assert_int_equal(db(f->db, APP_COUNT
			     "AND retry_at < now() + interval '6 s' AND "
			     "retry_at > (SELECT max(started_at) FROM "
			     "paynotify.delivery_attempts) + interval '4 s'"),
	    1);
	push_make_due(f);
	sink_wait(f->sink, 2);
	first = sink_get(f->sink, 0);
	second = sink_get(f->sink, 1);
	assert_string_equal(first.id, second.id);
	assert_string_equal(first.body, second.body);
	assert_signed(&second);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.delivery_attempts "
	    "WHERE outcome = 'done' AND attempt = 2");
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "outcome = 'retry' AND attempt = 1 AND status = 500 AND "
		      "error = 'answered 500'"),
	    1);
}

/* If it failed: an event that is never taken would be tried for ever, or would
 * end without an operator seeing it. */
static void
test_push__is_dead_after_the_last_attempt(void **state)
{
	struct push_fixture *f = *state;

	sink_answer(f->sink, 500, NULL);
	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry'");
	(void)db(f->db, "UPDATE paynotify.deliveries SET attempts = 10, "
			"retry_at = now()");
	/* The eleventh is not the last, */
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry' AND attempts = 11");
	assert_int_equal(
	    db(f->db, APP_COUNT "AND retry_at > now() + interval '19 h' AND "
				"retry_at < now() + interval '29 h'"),
	    1);
	/* the twelfth is. */
	push_make_due(f);
	db_wait(f->db, 1,
	    APP_COUNT "AND state = 'dead' AND attempts = 12 AND "
		      "reason = 'answered 500'");
	assert_int_equal(sink_count(f->sink), 3);
}

/* If it failed: an endpoint that is gone for good would be called for ever, or
 * its events would be lost when it is resumed. */
static void
test_push__a_410_disables_the_endpoint(void **state)
{
	struct push_fixture *f = *state;

	sink_answer(f->sink, 410, NULL);
	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.consumers WHERE name "
	    "= 'app' AND state = 'disabled' AND reason LIKE "
	    "'%%410%%'");
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry'");
	/* Nothing is claimed, though it is due and a notification comes. */
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	sink_answer(f->sink, 200, NULL);
	(void)db(f->db, "SELECT pg_sleep(0.2)");
	assert_int_equal(sink_count(f->sink), 1);
	(void)db(f->db, "UPDATE paynotify.consumers SET state = 'active'");
	sink_wait(f->sink, 3);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	assert_int_equal(sink_count(f->sink), 3);
}

/* If it failed: an endpoint that asks for time would be called in it. */
static void
test_push__honours_retry_after(void **state)
{
	struct push_fixture *f = *state;

	sink_answer(f->sink, 503, "3600");
	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry'");
	assert_int_equal(
	    db(f->db, APP_COUNT "AND retry_at <= now() + interval '3600 s' "
				"AND retry_at > now() + interval '3500 s'"),
	    1);
	/* A date; far away ones are cut to a day. */
	sink_answer(f->sink, 429, "Fri, 31 Dec 2100 23:59:59 GMT");
	push_make_due(f);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry' AND attempts = 2");
	assert_int_equal(
	    db(f->db, APP_COUNT "AND retry_at <= now() + interval '24 h' "
				"AND retry_at > now() + interval '23 h'"),
	    1);
	/* It is tied to no status. */
	sink_answer(f->sink, 500, "36000");
	push_make_due(f);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry' AND attempts = 3");
	assert_int_equal(
	    db(f->db, APP_COUNT "AND retry_at <= now() + interval '10 h' "
				"AND retry_at > now() + interval '9 h'"),
	    1);
}

/* If it failed: an application would see a refund before its payment. */
static void
test_push__holds_an_order_behind_its_first_event(void **state)
{
	struct push_fixture *f = *state;
	struct sink_request first, second, third;
	struct note note;

	sink_answer_next(f->sink, 1, 500);
	push_open(f);
	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r1");
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry'");
	db_wait(f->db, 1, APP_COUNT "AND state = 'waiting'");
	/* Another order is not held. */
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	sink_wait(f->sink, 2);
	assert_non_null(
	    strstr(sink_get(f->sink, 1).body, "\"out_trade_no\":\"b\""));
	push_make_due(f);
	sink_wait(f->sink, 4);
	first = sink_get(f->sink, 0);
	second = sink_get(f->sink, 2);
	third = sink_get(f->sink, 3);
	assert_string_equal(first.id, second.id);
	assert_non_null(strstr(second.body, "\"payment.succeeded\""));
	assert_non_null(strstr(third.body, "\"refund.succeeded\""));
}

/* If it failed: an application would not know that a repeat is meant. */
static void
test_push__marks_what_an_operator_redelivers(void **state)
{
	struct push_fixture *f = *state;

	sink_answer_next(f->sink, 1, 500);
	push_open(f);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry'");
	(void)db(f->db, "UPDATE paynotify.deliveries SET redelivery = true, "
			"retry_at = now()");
	sink_wait(f->sink, 2);
	assert_string_equal(sink_get(f->sink, 1).redelivery, "true");
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.delivery_attempts "
	    "WHERE redelivery AND outcome = 'done'");
}

static bool
has_come(struct sink *sink, const char *trade)
{
	char text[64];
	bool found = false;

	(void)snprintf(text, sizeof(text), "\"out_trade_no\":\"%s\"", trade);
	for (size_t i = 0; i < sink_count(sink); i++) {
		struct sink_request request = sink_get(sink, i);

		if (strstr(request.body, text) == NULL)
			continue;
		assert_false(found); /* once */
		found = true;
	}
	return found;
}

/* If it failed: two hosts would push each event twice, or leave some out. */
static void
test_push__two_deliverers_send_nothing_twice(void **state)
{
	enum { EVENTS = 200 };
	struct push_fixture *f = *state;
	struct pn_deliver *second = NULL;
	struct pn_error error = { { 0 } };
	char trade[16];

	push_open(f);
	assert_int_equal(
	    pn_deliver_open(f->conf.database.dsn, &f->conf, &second, &error),
	    0);
	for (int i = 0; i < EVENTS; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
	}
	sink_wait(f->sink, EVENTS);
	db_wait(f->db, EVENTS,
	    "SELECT count(*) FROM "
	    "paynotify.delivery_attempts WHERE outcome = "
	    "'done'");
	pn_deliver_close(second, PN_SECOND_US);
	push_close(f, PN_SECOND_US);
	assert_int_equal(sink_count(f->sink), EVENTS);
	for (int i = 0; i < EVENTS; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_true(has_come(f->sink, trade));
	}
	assert_int_equal(db(f->db, APP_COUNT "AND state <> 'done'"), 0);
}

/* If it failed: one application that hangs would stop the others. */
static void
test_push__a_slow_endpoint_holds_up_no_other(void **state)
{
	enum { EVENTS = 50 }; /* more than the slow one has room for */
	struct push_fixture *f = *state;
	char trade[16];

	f->conf.deliver_count = 2;
	sink_hold(f->sink, true);
	push_open(f);
	for (int i = 0; i < EVENTS; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
		/* Others come while one is in flight. */
		sink_wait(f->sink, 1);
	}
	sink_wait(f->other_sink, EVENTS);
	/* No more is leased than is sent. */
	sink_wait(f->sink, 16);
	db_wait(f->db, 16, APP_COUNT "AND state = 'leased'");
	assert_int_equal(sink_count(f->sink), 16);
	sink_hold(f->sink, false);
	sink_wait(f->sink, EVENTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, push_setup, push_teardown)
		TEST(test_push__delivers_a_signed_event),
		TEST(test_push__tries_again_after_a_failure),
		TEST(test_push__is_dead_after_the_last_attempt),
		TEST(test_push__a_410_disables_the_endpoint),
		TEST(test_push__honours_retry_after),
		TEST(test_push__holds_an_order_behind_its_first_event),
		TEST(test_push__marks_what_an_operator_redelivers),
		TEST(test_push__two_deliverers_send_nothing_twice),
		TEST(test_push__a_slow_endpoint_holds_up_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
