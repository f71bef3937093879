/*
 * What becomes of events that were claimed: each outcome, the record of the
 * attempts, leases that were lost, and results that are not known to be stored.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "handoff_support.h"

#define ONE "SELECT count(*) FROM paynotify.deliveries WHERE "

struct fixture {
	struct store_fixture *store;
	PGconn *db; /* of store */
	struct pn_handoff *handoff;
	struct claims claims; /* of the one event */
};

/* One event, claimed. */
static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	void *store = NULL;

	assert_non_null(f);
	(void)store_fixture_setup(&store);
	f->store = store;
	f->db = f->store->db;
	f->handoff = handoff_new(f->store->dsn, "app");
	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	handoff_take_some(f->handoff, "app", 1, &f->claims);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	void *store = f->store;

	pn_handoff_close(f->handoff);
	(void)store_fixture_teardown(&store);
	free(f);
	return 0;
}

/* If it failed: an event that the endpoint took would be sent again. */
static void
test_settle__done_is_never_claimed_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_DONE), 0);
	assert_int_equal(db(f->db, ONE "state <> 'done'"), 0);
	handoff_take_some(f->handoff, "app", 0, &f->claims);
}

/* If it failed: back-off would not be kept, or an event be forgotten. */
static void
test_settle__retry_comes_back_at_its_time(void **state)
{
	struct fixture *f = *state;
	struct claims none;

	f->claims.results[0].retry_after_us = 3600 * PN_SECOND_US;
	f->claims.results[0].error = PN_STR("HTTP 500");
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_RETRY), 0);
	assert_int_equal(
	    db(f->db, ONE "state = 'retry' AND attempts = 1 AND token IS NULL "
			  "AND reason = 'HTTP 500' AND retry_at - now() "
			  "BETWEEN interval '58 min' AND interval '60 min'"),
	    1);
	handoff_take_some(f->handoff, "app", 0, &none);
	(void)db(f->db, "UPDATE paynotify.deliveries SET retry_at = now()");
	handoff_take_some(f->handoff, "app", 1, &f->claims);
	assert_int_equal(f->claims.results[0].attempt, 2);
}

/* If it failed: what nobody takes would be tried for ever, or vanish instead of
 * being listed. */
static void
test_settle__dead_stays_for_an_operator(void **state)
{
	struct fixture *f = *state;
	struct claims none;

	f->claims.results[0].error = PN_STR("HTTP 400");
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_DEAD), 0);
	assert_int_equal(
	    db(f->db, ONE "state = 'dead' AND reason = 'HTTP 400'"), 1);
	handoff_take_some(f->handoff, "app", 0, &none);
}

/* If it failed: a deliverer that ends would cost events an attempt, or a whole
 * lease. */
static void
test_settle__back_is_at_once_and_not_counted(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_BACK), 0);
	handoff_take_some(f->handoff, "app", 1, &f->claims);
	assert_int_equal(f->claims.results[0].attempt, 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts"), 0);
}

/* If it failed: a refund could reach the shop before the payment it belongs
 * to, or never, when that one is dead. */
static void
test_settle__the_next_of_the_order_goes_on(void **state)
{
	static const enum pn_delivery_outcome ends[] = { PN_DELIVERY_DONE,
		PN_DELIVERY_DEAD };
	struct fixture *f = *state;
	struct claims claims;
	struct note note;
	char trade[8];

	for (size_t i = 0; i < PN_COUNT(ends); i++) {
		(void)snprintf(trade, sizeof(trade), "o%zu", i);
		note_init(&note, trade, 100);
		note_add_refund(&note, trade, "r1");
		note_submit(f->store->store, &note);
		assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
		note_done(&note);
		handoff_take_some(f->handoff, "app", 1, &claims);
		handoff_take_some(f->handoff, "app", 0, &f->claims);
		(void)handoff_settle(f->handoff, &claims, ends[i]);
		handoff_take_some(f->handoff, "app", 1, &claims);
		assert_non_null(strstr(claims.json, "refund.succeeded"));
		(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE);
	}
}

/* If it failed: an operator could not see what an endpoint answered, or what
 * an endpoint answers could keep everything from being settled. */
static void
test_settle__records_attempts_with_whatever_was_answered(void **state)
{
	struct fixture *f = *state;
	struct pn_delivery_result *result = &f->claims.results[0];
	char longest[PN_ANSWER_KEPT_BYTES_MAX + 100];

	memset(longest, 'x', sizeof(longest));
	result->status = 502;
	result->error = PN_STR("bad\0\xff\n\xe4\xb8\xad");
	result->answer = PN_STR("\0\xfe<html>");
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_RETRY), 0);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.delivery_attempts a "
		"JOIN paynotify.consumers c ON c.id = a.consumer_id JOIN "
		"paynotify.event_log e USING (seq) WHERE c.name = 'app' "
		"AND attempt = 1 AND outcome = 'retry' AND status = 502 "
		"AND latency_us = 1500 AND error = 'bad' || repeat('?', 6) AND "
		"answer = '\\x00fe' || '<html>'::bytea AND NOT redelivery "
		"AND started_at > now() - interval '1 min'"),
	    1);
	(void)db(f->db, "UPDATE paynotify.deliveries SET retry_at = now()");
	handoff_take_some(f->handoff, "app", 1, &f->claims);
	/* No answer; all too long; and a clock from another century. */
	result->status = 0;
	result->error = result->answer =
	    (struct pn_str){ longest, sizeof(longest) };
	result->started_at_us = 0;
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_DEAD), 0);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.delivery_attempts "
		"WHERE attempt = 2 AND outcome = 'dead' AND status IS "
		"NULL AND length(answer) = %d AND length(error) = %d "
		"AND started_at > now() - interval '2 days'",
		PN_ANSWER_KEPT_BYTES_MAX, PN_REASON_BYTES_MAX),
	    1);
}

/* If it failed: a slow holder would undo what the next one did, or what it did
 * would leave no trace. */
static void
test_settle__a_lost_lease_changes_nothing_but_the_record(void **state)
{
	struct fixture *f = *state;
	struct claims next;
	int64_t before = pn_metric_get(PN_METRIC_LEASES_LOST);

	(void)db(f->db, "UPDATE paynotify.deliveries SET lease_expires_at = "
			"now() - interval '1 s'");
	(void)db(f->db, "UPDATE paynotify.claims SET expires_at = now() - "
			"interval '1 s'");
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_DONE), 1);
	handoff_take_some(f->handoff, "app", 1, &next);
	assert_int_equal(next.results[0].attempt, 2);
	assert_int_equal(
	    handoff_settle(f->handoff, &f->claims, PN_DELIVERY_DEAD), 1);
	assert_int_equal(db(f->db, ONE "state = 'leased'"), 1);
	assert_int_equal(
	    handoff_settle(f->handoff, &next, PN_DELIVERY_DONE), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts"), 3);
	assert_int_equal(pn_metric_get(PN_METRIC_LEASES_LOST), before + 2);
}

/* If it failed: an event that somebody else has would be told to be dead, and
 * counted as such. */
static void
test_settle__tells_which_leases_were_lost(void **state)
{
	struct fixture *f = *state;
	int64_t lost = pn_metric_get(PN_METRIC_LEASES_LOST);
	struct claims claims;

	for (int i = 0; i < 3; i++)
		assert_int_equal(put(f->store->store,
				     (char[]){ 'l', (char)('0' + i), 0 }, 100),
		    PN_STORE_RECORDED);
	handoff_take_some(f->handoff, "app", 3, &claims);
	(void)db(f->db,
	    "UPDATE paynotify.deliveries SET lease_expires_at = now() - "
	    "interval '1 s' WHERE seq = %lld",
	    (long long)claims.seqs[1]);
	claims.results[0].lost = true; /* as one left it */
	assert_int_equal(
	    handoff_settle(f->handoff, &claims, PN_DELIVERY_DEAD), 1);
	assert_false(claims.results[0].lost);
	assert_true(claims.results[1].lost);
	assert_false(claims.results[2].lost);
	assert_int_equal(pn_metric_get(PN_METRIC_LEASES_LOST), lost + 1);
	/* Twice in one statement: the first settles it. */
	claims.results[1] = claims.results[0] = f->claims.results[0];
	claims.count = 2;
	assert_int_equal(
	    handoff_settle(f->handoff, &claims, PN_DELIVERY_DEAD), 1);
	assert_false(claims.results[0].lost);
	assert_true(claims.results[1].lost);
}

/* If it failed: of many results the wrong ones would be settled. */
static void
test_settle__keeps_many_results_apart(void **state)
{
	static const enum pn_delivery_outcome outcomes[] = { PN_DELIVERY_DONE,
		PN_DELIVERY_RETRY, PN_DELIVERY_DEAD, PN_DELIVERY_BACK };
	struct fixture *f = *state;
	struct claims claims;
	struct pn_error error = { { 0 } };
	char trade[8];
	size_t lost = 9;

	for (int i = 0; i < 8; i++) {
		(void)snprintf(trade, sizeof(trade), "m%d", i);
		assert_int_equal(
		    put(f->store->store, trade, 100), PN_STORE_RECORDED);
	}
	handoff_take_some(f->handoff, "app", 8, &claims);
	for (int i = 0; i < 8; i++) {
		claims.results[i].outcome = outcomes[i % 4];
		claims.results[i].retry_after_us = 3600 * PN_SECOND_US;
		claims.results[i].status = 200 + i;
	}
	assert_int_equal(
	    pn_handoff_settle(f->handoff, claims.results, 8, &lost, &error), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.event_log e LEFT JOIN "
		"paynotify.deliveries d USING (seq) WHERE CASE (e.seq - "
		"%lld) %% 4 WHEN 0 THEN coalesce(d.state, 'done') = "
		"'done' WHEN 1 THEN d.state = 'retry' AND retry_at > now() "
		"+ interval '50 min' WHEN 2 THEN d.state = 'dead' WHEN 3 "
		"THEN d.state = 'retry' AND retry_at <= "
		"clock_timestamp() END AND e.seq >= %lld",
		(long long)claims.seqs[0], (long long)claims.seqs[0]),
	    8);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		"status = 200 + seq - %lld",
		(long long)claims.seqs[0]),
	    6);
}

struct thread_settle {
	struct pn_handoff *handoff;
	struct claims *claims;
	int r;
	size_t lost;
};

static void *
settle_main(void *payload)
{
	struct thread_settle *settle = payload;
	struct pn_error error = { { 0 } };

	settle->r = pn_handoff_settle(settle->handoff, settle->claims->results,
	    settle->claims->count, &settle->lost, &error);
	return NULL;
}

/* If it failed: what a standby may not have would count as stored. */
static void
test_settle__does_not_believe_a_commit_with_a_warning(void **state)
{
	struct fixture *f = *state;
	struct thread_settle settle = { f->handoff, &f->claims, 0, 0 };
	pthread_t thread;

	f->claims.results[0].outcome = PN_DELIVERY_DONE;
	db_set_standbys(f->db, f->store->dsn, "nobody");
	assert_int_equal(
	    pthread_create(&thread, NULL, settle_main, &settle), 0);
	/* Nothing else waits: the notifier's commits do not. */
	db_wait(f->db, 1,
	    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
	    "'SyncRep' AND query ~ 'paynotify.settle'");
	(void)db(f->db, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
			"WHERE wait_event = 'SyncRep'");
	assert_int_equal(pthread_join(thread, NULL), 0);
	db_set_standbys(f->db, f->store->dsn, "");
	assert_true(settle.r < 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_settle__done_is_never_claimed_again),
		TEST(test_settle__retry_comes_back_at_its_time),
		TEST(test_settle__dead_stays_for_an_operator),
		TEST(test_settle__back_is_at_once_and_not_counted),
		TEST(test_settle__the_next_of_the_order_goes_on),
		TEST(test_settle__records_attempts_with_whatever_was_answered),
		TEST(test_settle__a_lost_lease_changes_nothing_but_the_record),
		TEST(test_settle__tells_which_leases_were_lost),
		TEST(test_settle__keeps_many_results_apart),
		TEST(test_settle__does_not_believe_a_commit_with_a_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
