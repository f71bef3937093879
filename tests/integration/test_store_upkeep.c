/*
 * The janitor's small duties, seen from outside: leases end by themselves, an
 * old snapshot is told of, and a duty that fails does not stop the others.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "janitor_support.h"

static const char LOOK[] = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";

static const int64_t LIMIT_US = 500 * PN_MILLISECOND_US;

static struct pn_store *
usual_janitor(struct store_fixture *f)
{
	return janitor_new((struct pn_store_options){
	    .dsn = f->dsn, .snapshot_limit_us = LIMIT_US });
}

/* If it failed: events of an application that died would come back only when
 * somebody claims, and one that waits for a NOTIFY would wait for ever. */
static void
test_upkeep__leases_end_though_nobody_claims(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "SELECT paynotify.register_consumer('app')");
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.claim('app', 10, '100 ms')"),
	    1);
	store = usual_janitor(f);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.deliveries WHERE state = 'retry'");
	pn_store_close(store, 0);
}

static const char ASKED[] = "SELECT count(*) FROM pg_stat_activity WHERE "
			    "state = 'active' AND pid != pg_backend_pid() AND "
			    "datname = current_database() AND "
			    "query LIKE '%%paynotify.figures(%%'";

/* If it failed: behind an old snapshot, where the figures take all the time they
 * are given, leases would end late and keys not be moved. */
static void
test_upkeep__leases_end_while_figures_are_asked_for(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store;

	/* Takes more than it is given: until it is ended. */
	(void)db(f->db,
	    "CREATE OR REPLACE FUNCTION paynotify.figures(consumers integer) "
	    "RETURNS TABLE (figure text, consumer text, value bigint) "
	    "LANGUAGE plpgsql AS $$ BEGIN LOOP BEGIN "
	    "PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; "
	    "END; END LOOP; END $$");
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "SELECT paynotify.register_consumer('app')");
	store = janitor_new(
	    (struct pn_store_options){ .dsn = f->dsn, .figures = true });
	db_wait(f->db, 1, ASKED);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.claim('app', 10, '100 ms')"),
	    1);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.deliveries WHERE state = 'retry'");
	assert_int_equal(db(f->db, ASKED), 1);
	pn_store_close(store, 0);
	(void)db(f->db, "SELECT pg_terminate_backend(pid) FROM "
			"pg_stat_activity WHERE datname = current_database() "
			"AND query LIKE '%%paynotify.figures(%%' "
			"AND pid != pg_backend_pid()");
}

/* Somebody holds a transaction number: how, who it is said to be, and how it
 * ends. */
static const struct snapshot_case {
	const char *begin, *told, *end;
} snapshot_cases[] = {
	{ "SET application_name = 'forgetful reader'; "
	  "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
	    "application \\\"forgetful reader\\\"", "COMMIT" },
	{ "SET application_name = 'forgetful writer'; "
	  "BEGIN; CREATE TABLE public.mine ()",
	    "application \\\"forgetful writer\\\"", "ROLLBACK" },
	{ "BEGIN; CREATE TABLE public.prepared (); "
	  "PREPARE TRANSACTION 'forgotten'",
	    "prepared transaction \\\"forgotten\\\"",
	    "ROLLBACK PREPARED 'forgotten'" },
};

/* If it failed: the queue's tables, and all others, would grow without end, and
 * nobody would know why. */
static void
test_upkeep__tells_of_an_old_snapshot_until_it_ends(void **state)
{
	struct store_fixture *f = *state;
	const struct snapshot_case *c;
	struct capture capture;
	struct pn_store *store;
	char trade[8];

	for (size_t i = 0; i < PN_COUNT(snapshot_cases); i++) {
		c = &snapshot_cases[i];
		(void)db(f->other, "%s", c->begin);
		/* Who looks back to it as well, but came later. */
		(void)db(f->db, "%s", LOOK);
		/* Two transactions, so that it keeps something. */
		(void)snprintf(trade, sizeof(trade), "t%zu", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_DUPLICATE);
		capture_begin(&capture);
		store = usual_janitor(f);
		capture_wait(&capture, "keeps the hand-off's tables from being "
				       "cleaned");
		capture_wait(&capture, c->told);
		(void)db(f->db, "COMMIT");
		assert_true(pn_metric_get(PN_METRIC_OLDEST_SNAPSHOT) > 0);
		(void)db(f->other, "%s", c->end);
		capture_wait(&capture, "the old snapshot has ended");
		capture_end(&capture);
		pn_store_close(store, 0);
	}
}

/* If it failed: every transaction of a busy database would be told of. */
static void
test_upkeep__tells_of_no_snapshot_that_moves_on(void **state)
{
	struct store_fixture *f = *state;
	int64_t began_us = pn_clock_monotonic_us(), at_us = began_us, now_us;
	int64_t longest_us = 0;
	struct capture capture;
	struct pn_store *store;
	char trade[16];
	bool told;

	capture_begin(&capture);
	store = usual_janitor(f);
	/* Four limits long somebody looks, but never back to the same. */
	(void)db(f->db, "%s", LOOK);
	for (int i = 0; at_us - began_us < 4 * LIMIT_US; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(store, trade, 100), PN_STORE_RECORDED);
		(void)db(i % 2 == 0 ? f->other : f->db, "%s", LOOK);
		(void)db(i % 2 == 0 ? f->db : f->other, "COMMIT");
		now_us = pn_clock_monotonic_us();
		if (now_us - at_us > longest_us)
			longest_us = now_us - at_us;
		at_us = now_us;
	}
	pn_store_close(store, 0);
	told = capture_has(&capture, "keeps the hand-off's tables");
	capture_end(&capture);
	/* A machine that stalls holds one as long as that: rightly told. */
	if (longest_us < LIMIT_US / 2)
		assert_false(told);
}

/* If it failed: one missing right would let keys, leases and partitions pile up
 * or run out. */
static void
test_upkeep__one_duty_refused_stops_no_other(void **state)
{
	struct store_fixture *f = *state;
	struct capture capture;
	struct pn_store *store;

	(void)db(f->db, "ALTER FUNCTION paynotify.tend_consumers() "
			"RENAME TO gone");
	capture_begin(&capture);
	store = usual_janitor(f);
	capture_wait(&capture, "janitor could not end the leases of consumers");
	capture_end(&capture);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	db_wait(f->db, 1, "SELECT count(*) FROM paynotify.idempotency_archive");
	pn_store_close(store, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_upkeep__leases_end_though_nobody_claims),
		TEST(test_upkeep__leases_end_while_figures_are_asked_for),
		TEST(test_upkeep__tells_of_an_old_snapshot_until_it_ends),
		TEST(test_upkeep__tells_of_no_snapshot_that_moves_on),
		TEST(test_upkeep__one_duty_refused_stops_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
