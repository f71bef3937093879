/*
 * Keys that somebody elsewhere has locked and does not let go: their copies
 * wait, everybody else goes on. Here with a session that holds a key in an open
 * transaction, as a paused daemon does; the queue's part is in
 * test_store_queue.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "store_internal.h"
#include "store_support.h"

static struct note *
submit_copies(struct store_fixture *f, int count)
{
	struct note *notes = calloc((size_t)count, sizeof(*notes));

	for (int i = 0; i < count; i++) {
		note_init(&notes[i], "held", 100);
		assert_int_equal(
		    pn_store_submit(f->store, &notes[i].submission), 0);
	}
	return notes;
}

static void
hold(struct store_fixture *f)
{
	(void)db(f->other,
	    "BEGIN; INSERT INTO paynotify.idempotency_keys "
	    "(tenant, request_path, key, request_hash, state, created_at, "
	    "expires_at) VALUES ('shop1', 'notify/alipay', "
	    "'webhook:alipay:held', '', 'COMPLETED', now(), now())");
}

static int
count_done(struct note *notes, int count)
{
	int done = 0;

	for (int i = 0; i < count; i++)
		done += note_is_done(&notes[i]);
	return done;
}

/* If it failed: each redelivery of a key that hangs elsewhere would stop all
 * others for a third of a second, and soon nothing would be recorded; or such a
 * notification would be given up long before commit_timeout. */
static void
test_store__copies_of_a_held_key_hold_up_nobody(void **state)
{
	struct store_fixture *f = *state;
	enum { COPIES = 60, OTHERS = 200, ATTEMPTS = 32 };
	static const char FAILED[] = "SELECT xact_rollback FROM "
				     "pg_stat_database WHERE datname = "
				     "current_database()";
	static_assert((int)COPIES <= (int)PN_COPIES_MAX, "all may wait");
	int recorded = 0, duplicates = 0;
	enum pn_store_verdict verdict;
	struct note *notes;
	char trade[16];
	int64_t before;

	before = db(f->db, "%s", FAILED);
	hold(f);
	notes = submit_copies(f, COPIES);
	for (int i = 0; i < OTHERS; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
	}
	/* They still wait: it was well within commit_timeout, */
	assert_int_equal(count_done(notes, COPIES), 0);
	/* and go on trying. */
	db_wait(f->db, 1, "%s AND xact_rollback - %lld >= %d",
	    "SELECT count(*) FROM pg_stat_database WHERE datname = "
	    "current_database()",
	    (long long)before, ATTEMPTS);
	assert_int_equal(count_done(notes, COPIES), 0);
	(void)db(f->other, "ROLLBACK");
	for (int i = 0; i < COPIES; i++) {
		verdict = note_wait(&notes[i]);
		recorded += verdict == PN_STORE_RECORDED;
		duplicates += verdict == PN_STORE_DUPLICATE;
		note_done(&notes[i]);
	}
	assert_int_equal(recorded, 1);
	assert_int_equal(duplicates, COPIES - 1);
	free(notes);
}

/* If it failed: more redeliveries of a held key than a writer looks at would
 * hide everything behind them until they expire. */
static void
test_store__crowd_behind_a_held_key_hides_nobody(void **state)
{
	struct store_fixture *f = *state;
	enum { COPIES = PN_QUEUE_LOOK_MAX * 3, OTHERS = 20 };
	enum pn_store_verdict verdict;
	int recorded = 0, refused = 0;
	struct note *notes;
	char trade[16];

	hold(f);
	notes = submit_copies(f, COPIES);
	for (int i = 0; i < OTHERS; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
	}
	/* The first ones wait, the last ones need not. */
	while (count_done(notes, COPIES) < COPIES - 1 - PN_COPIES_MAX)
		; /* bounded by the test's time-out */
	assert_false(note_is_done(&notes[0]));
	(void)db(f->other, "ROLLBACK");
	for (int i = 0; i < COPIES; i++) {
		verdict = note_wait(&notes[i]);
		recorded += verdict == PN_STORE_RECORDED;
		refused += verdict == PN_STORE_UNAVAILABLE;
		note_done(&notes[i]);
	}
	assert_int_equal(recorded, 1);
	assert_int_equal(refused, COPIES - 1 - PN_COPIES_MAX);
	free(notes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__copies_of_a_held_key_hold_up_nobody),
		TEST(test_store__crowd_behind_a_held_key_hides_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
