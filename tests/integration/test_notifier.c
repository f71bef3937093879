/*
 * The notifier: each commit of something new is told to who listens, soon, not
 * too often, and also when its connection was away meanwhile.
 */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "store_support.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;
static const int64_t COALESCE_US = 10 * PN_MILLISECOND_US; /* notifier.c */

enum { COMMITS = 30, MANY = 200 };

#define NOTIFIER                                                            \
	"FROM pg_stat_activity WHERE datname = current_database() AND "     \
	"query ~ '(NOTIFY paynotify_events|SET synchronous_commit = off)' " \
	"AND pid <> pg_backend_pid()"

/* Whether a notification comes within the time. */
static bool
is_notified(PGconn *listener, int64_t patience_us)
{
	int64_t until_us = pn_clock_monotonic_us() + patience_us;
	struct pollfd fd = { .fd = PQsocket(listener), .events = POLLIN };
	PGnotify *notification;

	do {
		(void)poll(&fd, 1, 5);
		assert_int_equal(PQconsumeInput(listener), 1);
		notification = PQnotifies(listener);
	} while (notification == NULL && pn_clock_monotonic_us() < until_us);
	if (notification == NULL)
		return false;
	assert_string_equal(notification->relname, "paynotify_events");
	assert_string_equal(notification->extra, "");
	PQfreemem(notification);
	return true;
}

static void
wait_notification(PGconn *listener)
{
	assert_true(is_notified(listener, PATIENCE_US));
}

/* Waits until more have been sent than that. */
static void
wait_count_above(int64_t count)
{
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;

	while (pn_metric_get(PN_METRIC_NOTIFIES) <= count) {
		if (pn_clock_monotonic_us() > until_us)
			fail_msg("a commit was not told");
		/* Not for luck: a poll of a condition, with a limit. */
		(void)usleep(500);
	}
}

/* If it failed: consumers would see a new event only when they poll. */
static void
test_notifier__tells_that_there_is_something_new(void **state)
{
	struct store_fixture *f = *state;

	(void)db(f->other, "LISTEN paynotify_events");
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	wait_notification(f->other);
}

/* If it failed: a kick could fall between two notifications and be forgotten:
 * the last event of a rush would wait for the next one. */
static void
test_notifier__tells_every_commit(void **state)
{
	struct store_fixture *f = *state;
	char trade[16];
	int64_t count;

	for (int i = 0; i < COMMITS; i++) {
		(void)snprintf(trade, sizeof(trade), "c%d", i);
		count = pn_metric_get(PN_METRIC_NOTIFIES);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
		wait_count_above(count);
	}
}

/* If it failed: each commit would bring a NOTIFY, and under load these would
 * wait for each other and wake every consumer for nothing. */
static void
test_notifier__tells_at_most_every_10_ms(void **state)
{
	struct store_fixture *f = *state;
	int64_t began_us = pn_clock_monotonic_us(), took_us, count;
	char trade[16];

	count = pn_metric_get(PN_METRIC_NOTIFIES);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(trade, sizeof(trade), "m%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
	}
	count = pn_metric_get(PN_METRIC_NOTIFIES) - count;
	took_us = pn_clock_monotonic_us() - began_us;
	assert_true(count >= 1);
	/* However long it took: at both ends one, and no more. */
	assert_true(count <= took_us / COALESCE_US + 2);
}

/* If it failed: every repetition of a notification, a fifth of all, would wake
 * all consumers for nothing. */
static void
test_notifier__is_silent_about_duplicates_and_conflicts(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	(void)db(f->other, "LISTEN paynotify_events");
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	wait_notification(f->other);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	note_init_quarantine(&note, "n", "undecryptable");
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_QUARANTINED);
	note_done(&note);
	/* Time for what must not come. */
	assert_false(is_notified(f->other, 10 * COALESCE_US));
}

/* If it failed: what is recorded while the notifier's connection is away would
 * wait for the next event. */
static void
test_notifier__makes_up_for_what_it_missed(void **state)
{
	struct store_fixture *f = *state;
	PGconn *elsewhere = db_open(test_dsn());
	int64_t count = pn_metric_get(PN_METRIC_NOTIFIES);

	(void)db(f->other, "LISTEN paynotify_events");
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	wait_notification(f->other);
	wait_count_above(count++);
	/* It cannot come back yet; the writer stays. */
	(void)db(elsewhere, "ALTER DATABASE %s ALLOW_CONNECTIONS false",
	    PQdb(f->db));
	(void)db(f->db, "SELECT pg_terminate_backend(pid) " NOTIFIER);
	db_wait(f->db, 0, "SELECT count(*) " NOTIFIER);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	assert_int_equal(pn_metric_get(PN_METRIC_NOTIFIES), count);
	(void)db(
	    elsewhere, "ALTER DATABASE %s ALLOW_CONNECTIONS true", PQdb(f->db));
	wait_notification(f->other);
	PQfinish(elsewhere);
}

/* If it failed: a notification that is cut off on its way would be taken for
 * sent. */
static void
test_notifier__sends_again_what_was_cut_off(void **state)
{
	struct store_fixture *f = *state;
	pid_t server;

	(void)db(f->other, "LISTEN paynotify_events");
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	wait_notification(f->other);
	/* It takes the next one, but ends before it looks at it. */
	server = (pid_t)db(f->db, "SELECT pid " NOTIFIER);
	assert_true(server > 1);
	assert_int_equal(kill(server, SIGSTOP), 0);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	(void)db(f->db, "SELECT pg_terminate_backend(%ld)", (long)server);
	assert_int_equal(kill(server, SIGCONT), 0);
	wait_notification(f->other);
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_notifier__tells_that_there_is_something_new),
		TEST(test_notifier__tells_every_commit),
		TEST(test_notifier__tells_at_most_every_10_ms),
		TEST(test_notifier__is_silent_about_duplicates_and_conflicts),
		TEST(test_notifier__makes_up_for_what_it_missed),
		TEST(test_notifier__sends_again_what_was_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
