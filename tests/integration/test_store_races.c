/*
 * Interleavings that must not lose or double an event, forced with two or more
 * connections: a second session holds a lock or an open transaction, and
 * pg_stat_activity tells when the store waits for it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "store_support.h"

static const int64_t LONG_US = 15 * PN_SECOND_US;

enum { TRIES = 50 };

static const char WAITING[] =
    "SELECT count(*) FROM pg_stat_activity WHERE "
    "datname = current_database() AND application_name = 'paynotifyd' AND "
    "wait_event_type = 'Lock' AND state = 'active'";

/* The other session holds this key, as another daemon that has not committed
 * does. */
static void
hold(struct store_fixture *f, const char *trade, int64_t amount)
{
	struct note note;
	char hash[2 * PN_SHA256_BYTES + 1];

	note_init(&note, trade, amount);
	for (int i = 0; i < PN_SHA256_BYTES; i++)
		(void)snprintf(
		    hash + 2 * i, 3, "%02x", note.events[0].request_hash[i]);
	(void)db(f->other,
	    "BEGIN; INSERT INTO paynotify.idempotency_keys "
	    "(tenant, request_path, key, request_hash, state, created_at, "
	    "expires_at) VALUES ('shop1', 'notify/alipay', "
	    "'webhook:alipay:%s', '\\x%s', 'COMPLETED', now(), "
	    "now() + interval '72 h')",
	    trade, hash);
	note_done(&note);
}

/* If it failed: whoever loses a race to a winner that its snapshot cannot see
 * would answer without knowing, or record twice. */
static void
test_store__loser_of_a_race_looks_again(void **state)
{
	struct store_fixture *f = *state;
	int64_t before = pn_metric_get(PN_METRIC_AGAIN);
	char trade[16];
	struct note note;

	/* The holder may be taken for a paused one if this machine is slow
	 * (lock_timeout): then once more. */
	for (int i = 0; i < TRIES && pn_metric_get(PN_METRIC_AGAIN) == before;
	     i++) {
		(void)snprintf(trade, sizeof(trade), "race%d", i);
		hold(f, trade, 100);
		note_init(&note, trade, 100);
		note_submit(f->store, &note);
		db_wait(f->db, 1, WAITING);
		assert_false(note_is_done(&note));
		(void)db(f->other, "COMMIT");
		assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
		note_done(&note);
	}
	assert_true(pn_metric_get(PN_METRIC_AGAIN) > before);

	/* With other content it is a conflict; if the winner gives up, new. */
	hold(f, "lost", 100);
	note_init(&note, "lost", 101);
	note_submit(f->store, &note);
	db_wait(f->db, 1, WAITING);
	(void)db(f->other, "COMMIT");
	assert_int_equal(note_wait(&note), PN_STORE_CONFLICT);
	note_done(&note);

	hold(f, "free", 100);
	note_init(&note, "free", 100);
	note_submit(f->store, &note);
	db_wait(f->db, 1, WAITING);
	(void)db(f->other, "ROLLBACK");
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	/* One receipt each, however often it went. */
	assert_int_equal(db(f->db, "SELECT count(*) - count(DISTINCT id) FROM "
				   "paynotify.receipts"),
	    0);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 1);
}

/* If it failed: an ingest statement that waits while the janitor moves its key
 * would find it in neither tier and record it again. */
static void
test_store__key_does_not_slip_between_the_tiers(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	char other[16];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(f->store, "slip", 100),
		    i == 0 ? PN_STORE_RECORDED : PN_STORE_DUPLICATE);
		/* There is always something to move. */
		(void)snprintf(other, sizeof(other), "other%d", i);
		assert_int_equal(put(f->store, other, 100), PN_STORE_RECORDED);
		(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
				"expires_at = now()");
		assert_int_equal(
		    db(f->other, "BEGIN; SELECT "
				 "paynotify.archive_expired_keys(500)"),
		    i == 0 ? 2 : 1);
		note_init(&note, "slip", 100);
		note_submit(f->store, &note);
		/* The statement has begun and waits for the mover. */
		db_wait(f->db, 1, WAITING);
		assert_false(note_is_done(&note));
		(void)db(f->other, "COMMIT");
		assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
		note_done(&note);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), 1 + 3);
}

/* If it failed: the janitor would move keys under a running ingest statement,
 * or make ingest wait for longer than it may. */
static void
test_janitor__gives_way_to_a_running_statement(void **state)
{
	struct store_fixture *f = *state;
	char sqlstate[6] = "";
	PGconn *janitor = db_open(f->dsn);
	struct note note;

	assert_int_equal(put(f->store, "old", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	hold(f, "held", 100); /* holds the lock of a running ingest too */
	note_init(&note, "held", 100);
	note_submit(f->store, &note);
	db_send(janitor, "SELECT paynotify.archive_expired_keys(500)");
	assert_string_equal(db_end(janitor, sqlstate), "55P03");
	/* A snapshot from before the lock would not do. */
	db_send(janitor, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT "
			 "paynotify.archive_expired_keys(500)");
	assert_string_equal(db_end(janitor, sqlstate), "P0001");
	PQfinish(janitor);
	(void)db(f->other, "COMMIT");
	assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
	note_done(&note);
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 1);
}

/* If it failed: a holder elsewhere that hangs would stop everybody else, or its
 * own notification would be lost. */
static void
test_store__paused_holder_harms_no_other(void **state)
{
	struct store_fixture *f = *state;
	enum { COUNT = 30, HELD = 11 };
	struct note notes[COUNT];
	char trade[16];

	hold(f, "t11", 100);
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		note_init(&notes[i], trade, 100);
	}
	for (int i = 0; i < COUNT; i++)
		note_submit(f->store, &notes[i]);
	for (int i = 0; i < COUNT; i++)
		if (i != HELD)
			assert_int_equal(
			    note_wait(&notes[i]), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "later", 100), PN_STORE_RECORDED);
	assert_false(note_is_done(&notes[HELD]));
	(void)db(f->other, "ROLLBACK");
	assert_int_equal(note_wait(&notes[HELD]), PN_STORE_RECORDED);
	for (int i = 0; i < COUNT; i++)
		note_done(&notes[i]);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), COUNT + 1);
	assert_int_equal(db(f->db, "SELECT count(*) - count(DISTINCT id) FROM "
				   "paynotify.receipts"),
	    0);
}

/* If it failed: the same key twice in one batch would be recorded twice, or
 * break the statement. */
static void
test_store__same_key_waiting_twice_is_recorded_once(void **state)
{
	struct store_fixture *f = *state;
	enum { COUNT = 24 };
	struct note first, notes[COUNT];
	int recorded = 0;

	/* While the first one waits, the others queue up for one batch. */
	hold(f, "first", 1);
	note_init(&first, "first", 1);
	note_submit(f->store, &first);
	db_wait(f->db, 1, WAITING);
	for (int i = 0; i < COUNT; i++) {
		note_init(&notes[i], i % 2 == 0 ? "x" : "y", 100);
		note_submit(f->store, &notes[i]);
	}
	(void)db(f->other, "COMMIT");
	assert_int_equal(note_wait(&first), PN_STORE_DUPLICATE);
	note_done(&first);
	for (int i = 0; i < COUNT; i++) {
		recorded += note_wait(&notes[i]) == PN_STORE_RECORDED;
		note_done(&notes[i]);
	}
	assert_int_equal(recorded, 2);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), COUNT + 1);
}

struct crowd {
	struct pn_store *store;
	pthread_barrier_t *barrier;
	const char *trade;
	enum pn_store_verdict verdict;
};

static void *
crowd_main(void *payload)
{
	struct crowd *c = payload;

	(void)pthread_barrier_wait(c->barrier);
	c->verdict = put(c->store, c->trade, 100);
	return NULL;
}

/* If it failed: two daemons on one database, or many connections at once, would
 * make more than one event of one notification. */
static void
test_store__two_stores_and_64_threads_make_one_event(void **state)
{
	struct store_fixture *f = *state;
	enum { THREADS = 64, ROUNDS = 5 };
	struct pn_store *second = store_new(f->dsn, 2, LONG_US);
	pthread_t threads[THREADS];
	struct crowd crowd[THREADS];
	pthread_barrier_t barrier;
	char trade[16];
	int recorded;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int round = 0; round < ROUNDS; round++) {
		(void)snprintf(trade, sizeof(trade), "crowd%d", round);
		for (int i = 0; i < THREADS; i++) {
			crowd[i] = (struct crowd){
				.store = i % 2 == 0 ? f->store : second,
				.barrier = &barrier,
				.trade = trade,
			};
			assert_int_equal(pthread_create(&threads[i], NULL,
					     crowd_main, &crowd[i]),
			    0);
		}
		recorded = 0;
		for (int i = 0; i < THREADS; i++) {
			(void)pthread_join(threads[i], NULL);
			recorded += crowd[i].verdict == PN_STORE_RECORDED;
			assert_true(crowd[i].verdict <= PN_STORE_DUPLICATE);
		}
		assert_int_equal(recorded, 1);
	}
	pthread_barrier_destroy(&barrier);
	pn_store_close(second, PN_SECOND_US);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), ROUNDS);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.receipts"),
	    ROUNDS * THREADS);
}

static void *
repeat_main(void *payload)
{
	enum { KEYS = 12, ROUNDS = 15 };
	struct crowd *c = payload;
	char trade[16];

	for (int i = 0; i < KEYS * ROUNDS; i++) {
		(void)snprintf(trade, sizeof(trade), "r%d", i % KEYS);
		if (put(c->store, trade, 100) > PN_STORE_DUPLICATE)
			c->verdict = PN_STORE_UNAVAILABLE;
	}
	return NULL;
}

/* If it failed: somewhere in the mix of two stores, retries and janitors that
 * move keys all the time an event would be doubled. */
static void
test_janitor__moving_all_the_time_doubles_nothing(void **state)
{
	struct store_fixture *f = *state;
	enum { THREADS = 6 };
	struct pn_store_options options = {
		.dsn = f->dsn,
		.writers = 2,
		.commit_timeout_us = LONG_US,
		.key_hot_us = 1, /* expired at once */
		.janitor = true,
	};
	struct crowd crowd[THREADS] = { 0 };
	pthread_t threads[THREADS];
	struct pn_store *stores[2];
	struct pn_error error;

	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    pn_store_open(&options, &stores[i], &error), 0);
	for (int i = 0; i < THREADS; i++) {
		crowd[i].store = stores[i % 2];
		assert_int_equal(
		    pthread_create(&threads[i], NULL, repeat_main, &crowd[i]),
		    0);
	}
	/* More than one janitor does by itself. */
	for (int i = 0; i < TRIES; i++) {
		char sqlstate[6];

		db_send(f->other, "SELECT paynotify.archive_expired_keys(5)");
		(void)db_end(f->other, sqlstate);
	}
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].verdict, PN_STORE_RECORDED);
	}
	for (int i = 0; i < 2; i++)
		pn_store_close(stores[i], PN_SECOND_US);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), 12);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM (SELECT FROM "
		      "paynotify.idempotency_keys UNION ALL SELECT FROM "
		      "paynotify.idempotency_archive) k"),
	    12);
}

/* If it failed: making partitions would stop all receiving behind any long
 * reader, or wait for one. */
static void
test_partitions__are_made_without_stopping_anybody(void **state)
{
	struct store_fixture *f = *state;
	PGconn *reader = db_open(f->dsn), *maker = db_open(f->dsn);
	int64_t partitions =
	    db(f->db, "SELECT count(*) FROM pg_inherits "
		      "WHERE inhparent = 'paynotify.event_log'::regclass");
	struct note note;

	/* A long reader of everything, */
	(void)db(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
			 "SELECT count(*) FROM paynotify.events; "
			 "SELECT count(*) FROM paynotify.receipts");
	/* an ingest statement that hangs in the middle, */
	hold(f, "held", 100);
	note_init(&note, "held", 100);
	note_submit(f->store, &note);
	db_wait(f->db, 1, WAITING);
	/* and still partitions are made (lock_timeout would end a wait), */
	assert_true(db(maker, "SELECT paynotify.make_partitions(now() + "
			      "interval '30 months')") >= 3 * 5);
	/* and events recorded. */
	(void)db(f->other, "COMMIT");
	assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
	note_done(&note);
	assert_int_equal(put(f->store, "after", 100), PN_STORE_RECORDED);
	assert_true(db(f->db, "SELECT count(*) FROM pg_inherits WHERE "
			      "inhparent = 'paynotify.event_log'::regclass") >
		    partitions);
	assert_int_equal(db(maker, "SELECT paynotify.make_partitions(now() + "
				   "interval '30 months')"),
	    0);
	PQfinish(reader);
	PQfinish(maker);
}

/* If it failed: an event that belongs to a month without a partition would be
 * quarantined as if it were at fault. */
static void
test_partitions__a_missing_one_is_not_the_events_fault(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store;

	(void)db(f->db,
	    "DO $$ DECLARE p regclass; BEGIN FOR p IN "
	    "SELECT inhrelid FROM pg_inherits WHERE inhparent = "
	    "'paynotify.event_log'::regclass LOOP EXECUTE format("
	    "'ALTER TABLE paynotify.event_log DETACH PARTITION %%s; "
	    "DROP TABLE %%s', p, p); END LOOP; END $$");
	store = store_new(f->dsn, 1, PN_SECOND_US);
	assert_int_equal(put(store, "a", 100), PN_STORE_UNAVAILABLE);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.quarantine"),
	    0);
	(void)db(f->db, "SELECT paynotify.make_partitions(now())");
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	pn_store_close(store, PN_SECOND_US);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__loser_of_a_race_looks_again),
		TEST(test_store__key_does_not_slip_between_the_tiers),
		TEST(test_janitor__gives_way_to_a_running_statement),
		TEST(test_store__paused_holder_harms_no_other),
		TEST(test_store__same_key_waiting_twice_is_recorded_once),
		TEST(test_store__two_stores_and_64_threads_make_one_event),
		TEST(test_janitor__moving_all_the_time_doubles_nothing),
		TEST(test_partitions__are_made_without_stopping_anybody),
		TEST(test_partitions__a_missing_one_is_not_the_events_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
