/*
 * Commits whose outcome is unknown and databases that go away: nothing may be
 * acknowledged by guessing, nothing recorded twice, nobody kept waiting.
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
static const int64_t SHORT_US = 300 * PN_MILLISECOND_US;

struct fixture {
	char dsn[DSN_BYTES];
	PGconn *db;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	database_new(f->dsn);
	f->db = db_open(f->dsn);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	db_set_standbys(f->db, f->dsn, "");
	PQfinish(f->db);
	free(f);
	return 0;
}

static void
submit(struct pn_store *store, struct note *note)
{
	assert_int_equal(pn_store_submit(store, &note->submission), 0);
}

#define OURS                                                            \
	"FROM pg_stat_activity WHERE datname = current_database() AND " \
	"application_name = 'paynotifyd'"

static const char SYNC_WAITING[] =
    "SELECT count(*) " OURS " AND wait_event = 'SyncRep'";

/* Ends the wait for the standby in this way; the store must not believe it. */
static void
break_sync_wait(struct fixture *f, const char *function)
{
	struct pn_store *store = store_new(f->dsn, 1, LONG_US);
	struct note note, quarantine;

	/* A standby that is not there: every commit waits for it. The store is
	 * connected already. */
	db_set_standbys(f->db, f->dsn, "nobody");
	for (int i = 0; i < 2; i++) {
		note_init(&note, i == 0 ? "a" : "b", 100);
		submit(store, &note);
		for (int j = 0; j < 2; j++) {
			/* The second time it is what was sent again. */
			db_wait(f->db, 1, SYNC_WAITING);
			assert_false(note_is_done(&note));
			(void)db(f->db,
			    "SELECT count(%s(pid)) " OURS
			    " AND wait_event = 'SyncRep'",
			    function);
		}
		db_wait(f->db, 1, SYNC_WAITING);
		assert_false(note_is_done(&note));
		if (i == 1)
			db_set_standbys(f->db, f->dsn, "");
		else
			(void)db(f->db,
			    "SELECT count(%s(pid)) " OURS
			    " AND wait_event = 'SyncRep'",
			    function);
		if (i == 0) {
			/* Nothing makes it true but the standby. */
			db_wait(f->db, 1, SYNC_WAITING);
			assert_false(note_is_done(&note));
			db_set_standbys(f->db, f->dsn, "");
		}
		assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
		note_done(&note);
		if (i == 0)
			db_set_standbys(f->db, f->dsn, "nobody");
	}
	db_set_standbys(f->db, f->dsn, "nobody");
	note_init_quarantine(&quarantine, "n7", "could not decrypt");
	submit(store, &quarantine);
	db_wait(f->db, 1, SYNC_WAITING);
	(void)db(f->db,
	    "SELECT count(%s(pid)) " OURS " AND wait_event = 'SyncRep'",
	    function);
	db_wait(f->db, 1, SYNC_WAITING);
	assert_false(note_is_done(&quarantine));
	db_set_standbys(f->db, f->dsn, "");
	assert_int_equal(note_wait(&quarantine), PN_STORE_QUARANTINED);
	note_done(&quarantine);
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), 3);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 3);
}

/* If it failed: a cancelled wait for the standby, which PostgreSQL reports as
 * success with a warning, would be acknowledged. */
static void
test_store__cancelled_wait_for_a_standby_is_no_commit(void **state)
{
	break_sync_wait(*state, "pg_cancel_backend");
}

/* If it failed: a COMMIT that was cut would be guessed about, and the event
 * lost or doubled. */
static void
test_store__cut_commit_is_resolved_by_submitting_again(void **state)
{
	break_sync_wait(*state, "pg_terminate_backend");
}

struct feeder {
	struct pn_store *store;
	int number, wrong;
};

enum { FEEDERS = 6, FED = 40, PER_KILL = 8 };

static void *
feed(void *payload)
{
	struct feeder *feeder = payload;
	char trade[32];

	for (int i = 0; i < FED; i++) {
		(void)snprintf(
		    trade, sizeof(trade), "f%d_%d", feeder->number, i);
		feeder->wrong +=
		    put(feeder->store, trade, 100) > PN_STORE_DUPLICATE;
	}
	return NULL;
}

/* If it failed: connections that break at any moment would lose or double an
 * event, or its receipt. */
static void
test_store__killed_connections_lose_nothing(void **state)
{
	struct fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 2, LONG_US);
	struct feeder feeders[FEEDERS];
	pthread_t threads[FEEDERS];
	int64_t recorded = 0, wanted;

	for (int i = 0; i < FEEDERS; i++) {
		feeders[i] = (struct feeder){ .store = store, .number = i };
		assert_int_equal(
		    pthread_create(&threads[i], NULL, feed, &feeders[i]), 0);
	}
	/* Whenever some more are recorded, whoever is at work is killed. */
	while (recorded < FEEDERS * FED) {
		wanted = recorded + PER_KILL < FEEDERS * FED
			     ? recorded + PER_KILL
			     : FEEDERS * FED;
		db_wait(f->db, 1,
		    "SELECT count(*) >= %d FROM "
		    "paynotify.event_log",
		    (int)wanted);
		(void)db(f->db, "SELECT count(pg_terminate_backend(pid)) " OURS
				" AND state = 'active'");
		recorded = wanted;
	}
	for (int i = 0; i < FEEDERS; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(feeders[i].wrong, 0);
	}
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events "
				   "WHERE payload IS NOT NULL"),
	    FEEDERS * FED);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.receipts"),
	    FEEDERS * FED);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.evidence"),
	    FEEDERS * FED);
}

static void
allow_connections(struct fixture *f, bool allow)
{
	PGconn *admin = db_open(test_dsn()); /* another database */

	(void)db(admin, "ALTER DATABASE %s ALLOW_CONNECTIONS %s", PQdb(f->db),
	    allow ? "true" : "false");
	PQfinish(admin);
}

/* If it failed: a database that warns at each commit (transaction ids run out)
 * would be asked again without rest, or believed. */
static void
test_store__warning_database_is_not_believed_nor_hammered(void **state)
{
	struct fixture *f = *state;
	enum { WRITERS = 8, RETRIES_A_SECOND = 10, SECONDS = 2 };
	struct pn_store *store;

	(void)db(f->db,
	    "CREATE SEQUENCE public.attempts; "
	    "CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql "
	    "AS $$ BEGIN PERFORM nextval('public.attempts'); RAISE WARNING "
	    "'database must be vacuumed'; RETURN NULL; END $$; "
	    "CREATE TRIGGER warn AFTER INSERT ON paynotify.idempotency_keys "
	    "EXECUTE FUNCTION public.warn()");
	store = store_new(f->dsn, WRITERS, SECONDS * PN_SECOND_US);
	/* And the notifier. */
	db_wait(
	    f->db, WRITERS + 1, "SELECT count(*) " OURS " AND state = 'idle'");
	assert_int_equal(put(store, "a", 100), PN_STORE_UNAVAILABLE);
	assert_in_range(db(f->db, "SELECT last_value FROM public.attempts"), 2,
	    RETRIES_A_SECOND * SECONDS + 1);
	(void)db(f->db, "DROP FUNCTION public.warn CASCADE");
	while (put(store, "a", 100) != PN_STORE_DUPLICATE)
		; /* bounded by the test's time-out */
	pn_store_close(store, PN_SECOND_US);
}

/* If it failed: without the database providers would wait for an answer, or the
 * store would not come back. */
static void
test_store__without_a_database_is_unavailable_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 2, SHORT_US);
	struct note note;
	char text[256];
	int r;

	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	allow_connections(f, false);
	(void)db(f->db, "SELECT count(pg_terminate_backend(pid)) " OURS);
	db_wait(f->db, 0, "SELECT count(*) " OURS);
	/* Taken or refused by then, it is not acknowledged; soon it is refused
	 * at once. */
	do {
		note_init(&note, "b", 100);
		r = pn_store_submit(store, &note.submission);
		if (r == 0)
			assert_int_equal(
			    note_wait(&note), PN_STORE_UNAVAILABLE);
		note_done(&note);
	} while (r == 0);
	assert_int_equal(
	    pn_store_health(store, text, sizeof(text)), PN_STORE_CONNECTING);
	assert_non_null(strstr(text, "not currently accepting"));
	allow_connections(f, true);
	while (put(store, "b", 100) != PN_STORE_RECORDED)
		; /* bounded by the test's time-out */
	assert_int_equal(
	    pn_store_health(store, text, sizeof(text)), PN_STORE_READY);
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);
}

/* If it failed: a statement that hangs would keep providers waiting, be
 * cancelled, or its memory be released while the statement still runs. */
static void
test_store__timed_out_statement_is_left_to_end(void **state)
{
	struct fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 1, SHORT_US);
	struct note note, queued;

	db_set_standbys(f->db, f->dsn, "nobody");
	note_init(&note, "a", 100);
	submit(store, &note);
	db_wait(f->db, 1, SYNC_WAITING);
	note_init(&queued, "b", 100); /* waits for the writer */
	submit(store, &queued);
	assert_int_equal(note_wait(&queued), PN_STORE_UNAVAILABLE);
	note_done(&queued);
	while (!note_is_done(&note))
		; /* bounded by the test's time-out */
	assert_int_equal(note.verdict, PN_STORE_UNAVAILABLE);
	assert_int_equal(note.release_count, 0);
	assert_int_equal(db(f->db, SYNC_WAITING), 1);
	db_set_standbys(f->db, f->dsn, "");
	(void)note_wait(&note);
	note_done(&note);
	/* The provider's retry. */
	assert_int_equal(put(store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(put(store, "b", 100), PN_STORE_RECORDED);
	pn_store_close(store, PN_SECOND_US);
}

/* If it failed: ending the daemon would leave connections suspended for ever,
 * or take as long as the database hangs. */
static void
test_store__closing_answers_everybody(void **state)
{
	struct fixture *f = *state;
	enum { COUNT = 200 };
	struct note notes[COUNT];
	struct pn_store *store = store_new(f->dsn, 1, LONG_US);
	char trade[16];

	/* What can be done within the grace is done, */
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		note_init(&notes[i], trade, 100);
		submit(store, &notes[i]);
	}
	pn_store_close(store, LONG_US);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(notes[i].release_count, 1);
		assert_int_equal(notes[i].verdict, PN_STORE_RECORDED);
		note_done(&notes[i]);
	}
	/* and what cannot is unavailable. */
	store = store_new(f->dsn, 1, LONG_US);
	db_set_standbys(f->db, f->dsn, "nobody");
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "u%d", i);
		note_init(&notes[i], trade, 100);
		submit(store, &notes[i]);
	}
	db_wait(f->db, 1, SYNC_WAITING);
	pn_store_close(store, 0);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(notes[i].done_count, 1);
		assert_int_equal(notes[i].release_count, 1);
		assert_int_equal(notes[i].verdict, PN_STORE_UNAVAILABLE);
		note_done(&notes[i]);
	}
}

/* If it failed: a flood would eat memory without end instead of being told to
 * come later. */
static void
test_store__full_queue_refuses(void **state)
{
	struct fixture *f = *state;
	enum { COUNT = PN_QUEUE_EVENTS_MAX + PN_BATCH_EVENTS_MAX + 1 };
	struct note *notes = calloc(COUNT, sizeof(*notes));
	struct pn_store *store = store_new(f->dsn, 1, LONG_US);
	char trade[16];
	int taken = 0;

	db_set_standbys(f->db, f->dsn, "nobody");
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		note_init(&notes[i], trade, 100);
		if (pn_store_submit(store, &notes[i].submission) != 0)
			break;
		taken++;
	}
	assert_true(taken >= PN_QUEUE_EVENTS_MAX);
	assert_true(taken < COUNT);
	pn_store_close(store, 0);
	for (int i = 0; i < taken; i++) {
		assert_int_equal(notes[i].release_count, 1);
		note_done(&notes[i]);
	}
	free(notes);
}

/* If it failed: a daemon that starts before its schema would die, keep quiet
 * about what to do, or need a restart after the migration. */
static void
test_store__without_schema_names_the_command_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct pn_store *store;
	char text[512];

	(void)db(f->db, "ALTER SCHEMA paynotify RENAME TO elsewhere");
	store = store_new(f->dsn, 1, SHORT_US);
	assert_int_equal(
	    pn_store_health(store, text, sizeof(text)), PN_STORE_NO_SCHEMA);
	assert_non_null(strstr(text, "paynotifyctl db migrate"));
	(void)db(f->db, "ALTER SCHEMA elsewhere RENAME TO paynotify; DELETE "
			"FROM paynotify.migrations WHERE number > 1");
	while (
	    pn_store_health(store, text, sizeof(text)) != PN_STORE_OLD_SCHEMA)
		; /* bounded by the test's time-out */
	assert_non_null(strstr(text, "paynotifyctl db migrate"));
	(void)db(f->db,
	    "INSERT INTO paynotify.migrations (number, name, "
	    "sha256) SELECT i, '', '' FROM generate_series(2, 99) i");
	while (put(store, "a", 100) != PN_STORE_RECORDED)
		;
	/* And while it runs. */
	(void)db(f->db, "ALTER SCHEMA paynotify RENAME TO elsewhere");
	assert_int_equal(put(store, "b", 100), PN_STORE_UNAVAILABLE);
	(void)db(f->db, "ALTER SCHEMA elsewhere RENAME TO paynotify");
	while (put(store, "b", 100) != PN_STORE_RECORDED)
		;
	pn_store_close(store, PN_SECOND_US);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_store__cancelled_wait_for_a_standby_is_no_commit),
		TEST(test_store__cut_commit_is_resolved_by_submitting_again),
		TEST(test_store__killed_connections_lose_nothing),
		TEST(test_store__warning_database_is_not_believed_nor_hammered),
		TEST(
		    test_store__without_a_database_is_unavailable_and_recovers),
		TEST(test_store__timed_out_statement_is_left_to_end),
		TEST(test_store__closing_answers_everybody),
		TEST(test_store__full_queue_refuses),
		TEST(test_store__without_schema_names_the_command_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
