/*
 * What may die while events are pushed, and what then: the deliverer itself,
 * its connections, the endpoint.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "deliver_support.h"
#include "janitor_support.h"

/* As a fail-over does, to the store's connections too. */
static void
cut_connections(struct push_fixture *f, const char *which)
{
	(void)db(f->db,
	    "SELECT count(pg_terminate_backend(pid, 10000)) FROM "
	    "pg_stat_activity WHERE application_name = 'paynotifyd' AND "
	    "datname = current_database() AND %s",
	    which);
}

static void
put_many(struct push_fixture *f, int from, int count)
{
	char trade[16];

	for (int i = from; i < from + count; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
	}
}

/* If it failed: a restart would keep events back until their leases end, or
 * forget attempts that were made. */
static void
test_push__a_stop_leaves_no_lease_behind(void **state)
{
	struct push_fixture *f = *state;

	sink_hold(f->sink, true);
	push_open(f);
	put_many(f, 0, 20); /* 16 are sent, 4 wait */
	sink_wait(f->sink, 16);
	push_close(f, 0);
	assert_int_equal(db(f->db, APP_COUNT "AND state = 'leased'"), 0);
	/* They may have been taken: attempts that failed. */
	assert_int_equal(
	    db(f->db, APP_COUNT "AND state = 'retry' AND attempts = 1"), 16);
	sink_hold(f->sink, false);
	push_make_due(f);
	push_open(f);
	sink_wait(f->sink, 36);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
}

/* If it failed: each restart would push what was in flight once more. */
static void
test_push__a_stop_lets_what_is_in_flight_end(void **state)
{
	struct push_fixture *f = *state;

	sink_delay(f->sink, 500 * PN_MILLISECOND_US);
	push_open(f);
	put_many(f, 0, 1);
	sink_wait(f->sink, 1);
	push_close(f, 15 * PN_SECOND_US);
	assert_int_equal(db(f->db, APP_COUNT "AND state <> 'done'"), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "outcome = 'done'"),
	    1);
}

/* If it failed: an event whose answer came while the database was away would be
 * pushed again. */
static void
test_push__settles_over_a_new_connection(void **state)
{
	struct push_fixture *f = *state;

	sink_hold(f->sink, true);
	push_open(f);
	put_many(f, 0, 1);
	sink_wait(f->sink, 1);
	/* The connection is lost while it waits for events, */
	cut_connections(f, "true");
	/* and once more in the middle of the settlement. */
	(void)db(f->base->other, "BEGIN; LOCK TABLE paynotify."
				 "delivery_attempts IN EXCLUSIVE MODE");
	sink_hold(f->sink, false);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM pg_stat_activity WHERE "
	    "datname = current_database() AND wait_event_type = "
	    "'Lock'");
	cut_connections(f, "wait_event_type = 'Lock'");
	(void)db(f->base->other, "COMMIT");
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.delivery_attempts "
	    "WHERE outcome = 'done'");
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	/* And it goes on. */
	put_many(f, 1, 1);
	sink_wait(f->sink, 2);
	assert_int_equal(sink_count(f->sink), 2);
}

/* If it failed: an operator would be told that an event is dead which another
 * host has in hand. */
static void
test_push__says_nothing_of_an_event_that_it_lost(void **state)
{
	struct push_fixture *f = *state;
	struct capture log;
	bool dead;

	sink_hold(f->sink, true);
	sink_answer(f->sink, 500, NULL);
	(void)db(f->db,
	    "SELECT paynotify.put_endpoint('app', NULL, NULL, '%s')",
	    sink_url(f->sink));
	put_many(f, 0, 1);
	(void)db(f->db,
	    "INSERT INTO paynotify.deliveries (consumer_id, seq, received_at, "
	    "state, attempts, retry_at) SELECT c.id, e.seq, e.received_at, "
	    "'retry', 11, now() FROM paynotify.consumers c, "
	    "paynotify.event_log e");
	capture_begin(&log);
	push_open(f);
	sink_wait(f->sink, 1);
	(void)db(f->db, "UPDATE paynotify.deliveries SET lease_expires_at = "
			"now() - interval '1 s'");
	sink_hold(f->sink, false);
	capture_wait(&log, "1 of 1 results came when the lease");
	push_close(f, 0);
	dead = capture_has(&log, "is dead");
	capture_end(&log);
	assert_false(dead);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "attempt = 12 AND status = 500"),
	    1);
}

/* If it failed: while this host is out of descriptors events would use up their
 * attempts, and endpoints that are well would count as broken. */
static void
test_push__what_this_host_lacks_is_no_attempt(void **state)
{
	enum { EVENTS = 16 }; /* more than the breaker forgives */
	struct push_fixture *f = *state;
	struct rlimit before, none;
	struct capture log;
	bool opened;
	int fd;

	push_open(f);
	db_wait(f->db, 1, "SELECT count(*) FROM paynotify.consumers");
	capture_begin(&log);
	fd = dup(STDIN_FILENO); /* the first that is free */
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	put_many(f, 0, EVENTS);
	capture_wait(&log, "this host lacks what it needs");
	db_wait(f->db, EVENTS, APP_COUNT "AND state = 'retry'");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	sink_wait(f->sink, EVENTS);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	opened = capture_has(&log, "its events wait, one at a time");
	capture_end(&log);
	assert_false(opened);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "attempt = 1 AND outcome = 'done'"),
	    EVENTS);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts"),
	    EVENTS);
}

/* If it failed: after a restart of PostgreSQL an operator would read that his
 * endpoint is resumed, or not see that it is paused still. */
static void
test_push__a_restart_resumes_nothing(void **state)
{
	struct push_fixture *f = *state;
	struct capture log;
	bool resumed;

	(void)db(f->db,
	    "SELECT paynotify.put_endpoint('app', NULL, NULL, 'http://x/')");
	(void)db(f->db, "UPDATE paynotify.consumers SET state = 'paused'");
	capture_begin(&log);
	push_open(f);
	capture_wait(&log, "is paused or disabled");
	capture_end(&log);
	capture_begin(&log);
	cut_connections(f, "true");
	capture_wait(&log, "is paused or disabled");
	push_close(f, 0);
	resumed = capture_has(&log, "is resumed");
	capture_end(&log);
	assert_false(resumed);
}

static void
expect_log_as(struct push_fixture *f, const char *role, const char *text)
{
	char dsn[DSN_BYTES + 64];
	struct capture log;

	(void)snprintf(dsn, sizeof(dsn), "%s user=%s", f->base->dsn, role);
	f->conf.database.dsn = dsn;
	capture_begin(&log);
	push_open(f);
	capture_wait(&log, text);
	push_close(f, 0);
	capture_end(&log);
}

/* If it failed: a deliverer with the rights of a receiver, or without any,
 * would say that the database is ready and push nothing, and nobody would know
 * which role it wants. */
static void
test_push__says_which_role_it_wants(void **state)
{
	struct push_fixture *f = *state;

	(void)db(
	    f->db, "CREATE ROLE receives LOGIN IN ROLE paynotify_receiver");
	(void)db(f->db, "CREATE ROLE nobody LOGIN");
	put_many(f, 0, 1);
	expect_log_as(f, "receives",
	    "no events are pushed: the role of [database] dsn may not deliver: "
	    "make it a member of paynotify_deliverer: ");
	expect_log_as(f, "nobody", "of paynotify_deliverer to deliver: ");
}

/* If it failed: a stop while the database is away would hang, or crash. */
static void
test_push__stops_without_a_database(void **state)
{
	struct push_fixture *f = *state;
	char nowhere[] = "host=/nonexistent";
	int64_t began_us = pn_clock_monotonic_us();

	f->conf.database.dsn = nowhere;
	push_open(f);
	push_close(f, 0);
	/* It was told to give up a second after the grace. */
	assert_true(pn_clock_monotonic_us() - began_us < 10 * PN_SECOND_US);
}

/* If it failed: an endpoint that is down would use up the attempts of every
 * event; or events would lie about after it is back. */
static void
test_push__an_endpoint_that_fails_is_tried_with_one(void **state)
{
	enum { EVENTS = 100 };
	struct push_fixture *f = *state;

	sink_answer(f->sink, 500, NULL);
	put_many(f, 0, EVENTS);
	push_open(f);
	/* Ten failures, and what else was in flight then. */
	db_wait(f->db, 0, APP_COUNT "AND state = 'leased'");
	sink_wait(f->sink, 10);
	db_wait(f->db, 0, APP_COUNT "AND state = 'leased'");
	assert_true(sink_count(f->sink) < 10 + 16 + 16);
	sink_answer(f->sink, 200, NULL);
	push_make_due(f);
	db_wait(f->db, EVENTS,
	    "SELECT count(*) FROM "
	    "paynotify.delivery_attempts WHERE outcome = "
	    "'done'");
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
}

/* If it failed: connections that are refused would not count as failures, or
 * would lose events. */
static void
test_push__an_endpoint_that_is_away_gets_its_events_later(void **state)
{
	struct push_fixture *f = *state;
	char nowhere[] = "http://127.0.0.1:1/";

	f->endpoints[0].url = nowhere;
	push_open(f);
	put_many(f, 0, 3);
	db_wait(f->db, 3, APP_COUNT "AND state = 'retry' AND attempts = 1");
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "status IS NULL AND outcome = 'retry' AND error <> ''"),
	    3);
	push_close(f, 0);
	f->endpoints[0].url = sink_url(f->sink);
	push_make_due(f);
	push_open(f);
	sink_wait(f->sink, 3);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
}

/* If it failed: a slow application would be sent the same event a second time
 * while it works on the first; or its late answer would count. */
static void
test_push__gives_up_on_an_answer_before_its_lease_ends(void **state)
{
	struct push_fixture *f = *state;

	f->endpoints[0].timeout_us = 200 * PN_MILLISECOND_US;
	sink_hold(f->sink, true);
	push_open(f);
	put_many(f, 0, 1);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry' AND attempts = 1");
	assert_int_equal(sink_count(f->sink), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "status IS NULL AND latency_us >= 200000"),
	    1);
}

/* The endpoint is as it was, and one attempt was answered 410. */
static void
expect_not_disabled(struct push_fixture *f)
{
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_attempts WHERE "
		      "status = 410"),
	    1);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.consumers "
				   "WHERE state = 'active'"),
	    1);
}

/* If it failed: the old address of an endpoint that was just moved by a reload
 * would disable it at its new one. */
static void
test_push__a_410_during_the_grace_disables_nothing(void **state)
{
	struct push_fixture *f = *state;

	sink_answer(f->sink, 410, NULL);
	sink_hold(f->sink, true);
	push_open(f);
	put_many(f, 0, 1);
	sink_wait(f->sink, 1);
	pn_deliver_stop(f->deliver, 15 * PN_SECOND_US);
	sink_hold(f->sink, false);
	push_close(f, 0);
	expect_not_disabled(f);
	f->endpoints[0].url = sink_url(f->other_sink);
	push_open(f);
	sink_wait(f->other_sink, 1);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
}

/* If it failed: a host that was not reloaded yet would disable what the others
 * push to already, or use up the attempts of its events at the old address. */
static void
test_push__a_410_from_an_old_url_disables_nothing(void **state)
{
	struct push_fixture *f = *state;
	struct pn_conf_deliver moved = f->endpoints[0];
	struct pn_conf other = f->conf;
	struct pn_deliver *second = NULL;
	struct pn_error error = { { 0 } };

	sink_answer(f->sink, 410, NULL);
	sink_hold(f->sink, true);
	push_open(f);
	put_many(f, 0, 1);
	sink_wait(f->sink, 1);
	moved.url = sink_url(f->other_sink);
	(void)db(f->db,
	    "SELECT paynotify.put_endpoint('app', NULL, NULL, '%s')",
	    moved.url);
	sink_hold(f->sink, false);
	db_wait(f->db, 1, APP_COUNT "AND state = 'retry' AND attempts = 1");
	expect_not_disabled(f);
	other.delivers = &moved;
	assert_int_equal(
	    pn_deliver_open(other.database.dsn, &other, &second, &error), 0);
	sink_wait(f->other_sink, 1);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	pn_deliver_close(second, 15 * PN_SECOND_US);
	assert_int_equal(sink_count(f->sink), 1);
}

/* If it failed: an old deliverer that has just connected would leave its URL and
 * filter behind when it ends; or an operator who removes a consumer and not its
 * section would read that the database was away. */
static void
test_push__registers_again(void **state)
{
	static const char as_configured[] =
	    "SELECT count(*) FROM paynotify.endpoints e JOIN "
	    "paynotify.consumers c ON c.id = e.consumer_id WHERE "
	    "e.url <> 'http://old/' AND c.types IS NULL";
	struct push_fixture *f = *state;
	struct capture log;
	bool away;

	push_open(f);
	db_wait(f->db, 1, as_configured);
	(void)db(f->db,
	    "SELECT paynotify.put_endpoint('app', NULL, '{refund.*}', "
	    "'http://old/')");
	assert_int_equal(db(f->db, as_configured), 0);
	pn_deliver_register_again(f->deliver);
	db_wait(f->db, 1, as_configured);
	put_many(f, 0, 1);
	sink_wait(f->sink, 1);
	db_wait(f->db, 0, APP_COUNT "AND state <> 'done'");
	capture_begin(&log);
	(void)db(f->db, "SELECT paynotify.remove_consumer('app', 'x', 'y')");
	capture_wait(&log, "was removed, and [deliver app] is still in the "
			   "configuration: it is registered anew");
	sink_wait(f->sink, 2);
	away = capture_has(&log, "no events are pushed");
	capture_end(&log);
	assert_false(away);
}

/* If it failed: an endpoint whose name an application has would take that
 * application's events, or keep the other endpoints from theirs. */
static void
test_push__leaves_a_consumer_that_pulls_alone(void **state)
{
	struct push_fixture *f = *state;

	(void)db(f->db, "SELECT paynotify.register_consumer('app')");
	f->conf.deliver_count = 2;
	push_open(f);
	put_many(f, 0, 1);
	sink_wait(f->other_sink, 1);
	/* A round later, app would have been given the first. */
	put_many(f, 1, 1);
	sink_wait(f->other_sink, 2);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.consumers "
				   "WHERE name = 'app' AND NOT pushed"),
	    1);
	assert_int_equal(db(f->db, APP_COUNT), 0);
	assert_int_equal(sink_count(f->sink), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, push_setup, push_teardown)
		TEST(test_push__a_stop_leaves_no_lease_behind),
		TEST(test_push__a_stop_lets_what_is_in_flight_end),
		TEST(test_push__settles_over_a_new_connection),
		TEST(test_push__says_nothing_of_an_event_that_it_lost),
		TEST(test_push__what_this_host_lacks_is_no_attempt),
		TEST(test_push__a_restart_resumes_nothing),
		TEST(test_push__says_which_role_it_wants),
		TEST(test_push__stops_without_a_database),
		TEST(test_push__an_endpoint_that_fails_is_tried_with_one),
		TEST(test_push__an_endpoint_that_is_away_gets_its_events_later),
		TEST(test_push__gives_up_on_an_answer_before_its_lease_ends),
		TEST(test_push__a_410_during_the_grace_disables_nothing),
		TEST(test_push__a_410_from_an_old_url_disables_nothing),
		TEST(test_push__registers_again),
		TEST(test_push__leaves_a_consumer_that_pulls_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
