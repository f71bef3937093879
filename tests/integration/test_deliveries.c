/*
 * What operators see of the hand-off. What they do about it is in
 * test_delivery_acts.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/deliveries.h"
#include "paynotify/moment.h"

#include "handoff_support.h"

enum { ROWS_MAX = 8, LINE_BYTES = 512, PAGES = 1203 };

struct fixture {
	struct store_fixture *store;
	PGconn *db; /* of store */
	struct pn_handoff *handoff;
	struct pn_query *query;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct pn_error error = { { 0 } };
	void *store = NULL;

	assert_non_null(f);
	(void)store_fixture_setup(&store);
	f->store = store;
	f->db = f->store->db;
	f->handoff = handoff_new(f->store->dsn, "app");
	assert_int_equal(pn_query_open(f->store->dsn, &f->query, &error), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	void *store = f->store;

	pn_query_close(f->query);
	pn_handoff_close(f->handoff);
	(void)store_fixture_teardown(&store);
	free(f);
	return 0;
}

static void
record(struct fixture *f, const char *trade)
{
	assert_int_equal(put(f->store->store, trade, 100), PN_STORE_RECORDED);
}

/* Rows as lines of text, the first few of them. */
struct seen {
	int rows, stop_after;
	int64_t last_seq;
	bool in_order;
	char lines[ROWS_MAX][LINE_BYTES];
};

static int
keep(struct seen *seen, const char *line)
{
	if (seen->rows < ROWS_MAX)
		(void)snprintf(seen->lines[seen->rows], LINE_BYTES, "%s", line);
	return ++seen->rows == seen->stop_after ? 7 : 0;
}

static int
on_consumer(const struct pn_consumer_row *row, void *payload)
{
	char line[LINE_BYTES];

	(void)snprintf(line, sizeof(line),
	    "%.*s %s %.*s(%.*s) %.*s behind=%lld leased=%lld waiting=%lld "
	    "retrying=%lld dead=%lld due=%s",
	    PN_STR_ARG(row->name), row->pushed ? "pushed" : "pulls",
	    PN_STR_ARG(row->state), PN_STR_ARG(row->reason),
	    PN_STR_ARG(row->url), (long long)row->behind,
	    (long long)row->leased, (long long)row->waiting,
	    (long long)row->retrying, (long long)row->dead,
	    row->oldest_due_us == PN_MOMENT_NONE ? "no" : "yes");
	return keep(payload, line);
}

static int
on_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct seen *seen = payload;
	char line[LINE_BYTES];

	if (seen->rows == 0)
		seen->in_order = true;
	else if (row->seq < seen->last_seq)
		seen->in_order = false;
	seen->last_seq = row->seq;
	assert_true(pn_str_starts(row->event_id, "evt_"));
	assert_int_equal(row->event_id.len, 36);
	assert_true(row->received_at_us != PN_MOMENT_NONE);
	(void)snprintf(line, sizeof(line),
	    "%.*s %.*s %.*s %.*s %.*s attempts=%lld due=%s (%.*s)%s",
	    PN_STR_ARG(row->consumer), PN_STR_ARG(row->type),
	    PN_STR_ARG(row->tenant), PN_STR_ARG(row->out_trade_no),
	    PN_STR_ARG(row->state), (long long)row->attempts,
	    row->due_us == PN_MOMENT_NONE ? "no" : "yes",
	    PN_STR_ARG(row->reason), row->redelivery ? " again" : "");
	return keep(seen, line);
}

static int
on_attempt(const struct pn_attempt_row *row, void *payload)
{
	char line[LINE_BYTES];

	assert_int_equal(row->latency_us, 1500);
	assert_true(row->started_at_us != PN_MOMENT_NONE);
	(void)snprintf(line, sizeof(line), "%.*s #%lld %lld %.*s (%.*s) %.*s%s",
	    PN_STR_ARG(row->consumer), (long long)row->attempt,
	    (long long)row->status, PN_STR_ARG(row->outcome),
	    PN_STR_ARG(row->error), PN_STR_ARG(row->answer),
	    row->redelivery ? " again" : "");
	return keep(payload, line);
}

static void
consumers(struct fixture *f, struct seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct seen){ 0 };
	if (pn_query_consumers(f->query, on_consumer, ret_seen, &error) != 0)
		fail_msg("%s", error.text);
}

static void
deliveries(struct fixture *f, const struct pn_delivery_filter *filter,
    int wanted, struct seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct seen){ 0 };
	if (pn_query_deliveries(
		f->query, filter, on_delivery, ret_seen, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(ret_seen->rows, wanted);
}

static struct pn_delivery_filter
everything(void)
{
	return (struct pn_delivery_filter){
		.after_seq = -1,
		.limit = INT64_MAX,
	};
}

static void
show(struct fixture *f, const char *which, int wanted, struct seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct seen){ 0 };
	if (pn_query_delivery(f->query, which, on_delivery, on_attempt,
		ret_seen, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(ret_seen->rows, wanted);
}

/* If it failed: an operator would not see that a consumer is behind, or why. */
static void
test_deliveries__show_how_far_each_consumer_is(void **state)
{
	struct fixture *f = *state;
	struct claims claims;
	struct seen seen;

	consumers(f, &seen);
	assert_int_equal(seen.rows, 1);
	assert_string_equal(seen.lines[0],
	    "app pushed active() https://app.example/hook behind=0 leased=0 "
	    "waiting=0 retrying=0 dead=0 due=no");
	record(f, "a");
	record(f, "b");
	handoff_kill_one(f->handoff, "app");
	handoff_kill_one(f->handoff, "app");
	record_order(f->store->store, "c");
	record(f, "d");
	handoff_take_some(f->handoff, "app", 2, &claims);
	claims.count = 1;
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_RETRY);
	record(f, "e");
	(void)db(f->db, "SELECT paynotify.register_consumer('ledger', "
			"types => '{x.*}')");
	(void)db(f->db, "SELECT paynotify.set_consumer_state('ledger', "
			"'paused', 'month end', 'ann')");
	consumers(f, &seen);
	assert_int_equal(seen.rows, 2);
	assert_string_equal(seen.lines[0],
	    "app pushed active() https://app.example/hook behind=1 leased=1 "
	    "waiting=1 retrying=1 dead=2 due=yes");
	/* Nothing there is for it. */
	assert_string_equal(seen.lines[1],
	    "ledger pulls paused(month end)  behind=6 leased=0 waiting=0 "
	    "retrying=0 dead=0 due=no");
}

/* If it failed: `deliveries list` would show what was not asked for, or not
 * all. */
static void
test_deliveries__lists_what_is_not_done(void **state)
{
	struct fixture *f = *state;
	struct pn_delivery_filter filter = everything();
	struct pn_handoff *other = handoff_new(f->store->dsn, "other");
	struct claims claims;
	struct seen seen;

	record(f, "a");
	handoff_kill_one(f->handoff, "app");
	record_order(f->store->store, "b");
	record(f, "c");
	handoff_take_some(f->handoff, "app", 2, &claims);
	claims.count = 1;
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_RETRY);
	deliveries(f, &filter, 4, &seen);
	assert_true(seen.in_order);
	assert_string_equal(seen.lines[0],
	    "app payment.succeeded shop1 a dead attempts=1 due=no (HTTP 404)");
	assert_string_equal(seen.lines[1],
	    "app payment.succeeded shop1 b retry attempts=1 due=yes ()");
	assert_string_equal(seen.lines[2],
	    "app refund.succeeded shop1 b waiting attempts=0 due=no ()");
	assert_string_equal(seen.lines[3],
	    "app payment.succeeded shop1 c leased attempts=1 due=yes ()");
	handoff_take_some(other, "other", 3, &claims);
	deliveries(f, &filter, 8, &seen);
	assert_true(seen.in_order);
	filter.consumer = "other";
	deliveries(f, &filter, 4, &seen);
	filter.state = "leased";
	deliveries(f, &filter, 3, &seen);
	filter.consumer = NULL;
	deliveries(f, &filter, 4, &seen);
	filter.tenant = "shop1";
	deliveries(f, &filter, 4, &seen);
	filter.tenant = "shop2";
	deliveries(f, &filter, 0, &seen);
	filter = everything();
	filter.after_seq = claims.seqs[0];
	deliveries(f, &filter, 6, &seen);
	filter.limit = 5;
	deliveries(f, &filter, 5, &seen);
	/* What is done is not listed, also where its row stays a while. */
	(void)db(f->db, "UPDATE paynotify.deliveries SET state = 'done'");
	filter = everything();
	deliveries(f, &filter, 0, &seen);
	pn_handoff_close(other);
}

/* If it failed: long lists would end early, repeat rows, or go on after the
 * reader has had enough. */
static void
test_deliveries__pages_through_long_lists(void **state)
{
	struct fixture *f = *state;
	struct pn_delivery_filter filter = everything();
	struct pn_handoff *other = handoff_new(f->store->dsn, "other");
	struct pn_error error = { { 0 } };
	struct seen seen;

	/* Three consumers: a page ends in the middle of an event's. */
	(void)db(f->db, "SELECT paynotify.register_consumer('ledger')");
	(void)db(f->db,
	    "WITH e AS (INSERT INTO paynotify.event_log (received_at, id, "
	    "receipt_id, livemode, type, provider, tenant, key, request_hash) "
	    "SELECT now(), gen_random_uuid(), gen_random_uuid(), true, 'x', "
	    "'alipay', 'shop1', 'k' || i, '' FROM generate_series(1, %d) i "
	    "RETURNING seq, received_at) INSERT INTO paynotify.deliveries "
	    "(consumer_id, seq, received_at, state, attempts) SELECT c.id, "
	    "e.seq, e.received_at, 'dead', 1 FROM e, paynotify.consumers c",
	    PAGES);
	deliveries(f, &filter, 3 * PAGES, &seen);
	assert_true(seen.in_order);
	filter.consumer = "other";
	deliveries(f, &filter, PAGES, &seen);
	filter.limit = PAGES - 1;
	deliveries(f, &filter, PAGES - 1, &seen);
	seen = (struct seen){ .stop_after = 600 };
	assert_int_equal(
	    pn_query_deliveries(f->query, &filter, on_delivery, &seen, &error),
	    7);
	assert_int_equal(seen.rows, 600);
	pn_handoff_close(other);
}

/* If it failed: `deliveries show` would not tell where an event is, or what an
 * endpoint answered. */
static void
test_deliveries__tell_one_events_story(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	struct claims claims;
	struct seen seen;

	record(f, "a");
	show(f, "webhook:alipay:a", 1, &seen);
	assert_string_equal(seen.lines[0],
	    "app payment.succeeded shop1 a new attempts=0 due=no ()");
	handoff_kill_one(f->handoff, "app");
	(void)db(f->db, "SELECT paynotify.register_consumer('ledger')");
	(void)db(f->db, "SELECT paynotify.register_consumer('none', "
			"types => '{x.*}')");
	show(f, "1", 3, &seen);
	assert_string_equal(seen.lines[0],
	    "app payment.succeeded shop1 a dead attempts=1 due=no (HTTP 404)");
	assert_string_equal(seen.lines[1],
	    "ledger payment.succeeded shop1 a new attempts=0 due=no ()");
	/* NUL and half a character are no text. */
	assert_string_equal(seen.lines[2],
	    "app #1 404 dead (HTTP 404) no\xef\xbf\xbd\xef\xbf\xbd");
	(void)db(f->db, "SELECT paynotify.redeliver('app', '{1}', 'lost', "
			"'ann')");
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_true(claims.results[0].redelivery);
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE);
	(void)db(f->db, "DELETE FROM paynotify.deliveries");
	show(f, "1", 4, &seen);
	assert_string_equal(seen.lines[0],
	    "app payment.succeeded shop1 a done attempts=2 due=no ()");
	assert_string_equal(seen.lines[3], "app #1 200 done ()  again");
	assert_int_equal(pn_query_delivery(f->query, "99", on_delivery,
			     on_attempt, &seen, &error),
	    1);
	/* An event that no consumer takes is one all the same. */
	(void)db(f->db, "UPDATE paynotify.consumers SET types = '{x}', "
			"type_patterns = '{x}'");
	show(f, "1", 2, &seen);
	assert_string_equal(seen.lines[1], "app #1 200 done ()  again");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_deliveries__show_how_far_each_consumer_is),
		TEST(test_deliveries__lists_what_is_not_done),
		TEST(test_deliveries__pages_through_long_lists),
		TEST(test_deliveries__tell_one_events_story),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
