/*
 * Retention: whole months go when they are old enough, and nothing else; nobody
 * who receives ever waits for it; whatever interrupts it, the next one finishes.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "janitor_internal.h"
#include "janitor_support.h"
#include "statements.h"

static const int64_t HOUR_US = 3600 * PN_SECOND_US;
static const char *const PARENTS[] = { "receipts", "delivery_attempts",
	"evidence", "event_log" };

/* Backends in the middle of detaching. */
#define DETACHING                                                       \
	"FROM pg_stat_activity WHERE datname = current_database() AND " \
	"state = 'active' AND query ~ '^ALTER TABLE .* DETACH'"

static int
setup(void **state)
{
	struct store_fixture *f;

	if (store_fixture_setup(state) != 0)
		return -1;
	f = *state;
	months_prepare(f->db);
	return 0;
}

static struct pn_store *
retain_receipts(struct store_fixture *f, int64_t receipts_us)
{
	return janitor_new((struct pn_store_options){
	    .dsn = f->dsn, .receipts_us = receipts_us });
}

/* If it failed: what must be kept by law would be gone, or what must not be kept
 * would stay; or events themselves would vanish. */
static void
test_retention__drops_exactly_the_expired_months(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store;

	for (size_t i = 0; i < PN_COUNT(PARENTS); i++)
		for (int ago = 2; ago <= 5; ago++)
			month_make(f->db, PARENTS[i], ago);
	/* Their names or bounds are not what we make; one was detached by an
	 * operator, to keep. */
	(void)db(f->db,
	    "SELECT public.attach('receipts', 'receipts_2019', '2019-01-01', "
	    "'2020-01-01');"
	    "SELECT public.attach('receipts', 'receipts_2018_01', "
	    "'2018-01-01', '2018-03-01');"
	    "SELECT public.attach('evidence', 'evidence_2018_01', "
	    "'2018-01-01', '2018-02-01');"
	    "ALTER TABLE paynotify.evidence "
	    "DETACH PARTITION paynotify.evidence_2018_01");
	store = janitor_new((struct pn_store_options){
	    .dsn = f->dsn,
	    /* Its last hour is too young. */
	    .receipts_us = month_age_us(f->db, 3) + HOUR_US,
	    /* Over by a second. */
	    .evidence_us = month_age_us(f->db, 5) - PN_SECOND_US,
	});
	month_wait_gone(f->db, "receipts", 4);
	month_wait_gone(f->db, "receipts", 5);
	month_wait_gone(f->db, "delivery_attempts", 4);
	month_wait_gone(f->db, "delivery_attempts", 5);
	month_wait_gone(f->db, "evidence", 5);
	pn_store_close(store, 0);
	for (int ago = 0; ago <= 3; ago++) {
		assert_true(month_exists(f->db, "receipts", ago));
		assert_true(month_exists(f->db, "delivery_attempts", ago));
	}
	for (int ago = 0; ago <= 4; ago++)
		assert_true(month_exists(f->db, "evidence", ago));
	for (int ago = 0; ago <= 5; ago++)
		assert_true(month_exists(f->db, "event_log", ago));
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM pg_class WHERE relname IN "
		      "('receipts_2019', 'receipts_2018_01', "
		      "'evidence_2018_01')"),
	    3);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
}

/* Receives, and looks into receipts by a plan that was made while the month was
 * there. */
static void
receive_some(struct store_fixture *f, PGconn *prepared, const char *prefix)
{
	char trade[32];

	for (int i = 0; i < 10; i++) {
		(void)snprintf(trade, sizeof(trade), "%s%d", prefix, i);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_RECORDED);
		assert_int_equal(put(f->store, trade, 100), PN_STORE_DUPLICATE);
	}
	(void)db(
	    prepared, "EXECUTE look('00000000-0000-7000-8000-000000000000')");
}

static void
drop_behind(struct store_fixture *f, const char *reader, const char *wait_event)
{
	PGconn *prepared = db_open(f->dsn);
	struct pn_store *store;

	month_make(f->db, "receipts", 4);
	(void)db(prepared,
	    "SET plan_cache_mode = force_generic_plan;"
	    "SET statement_timeout = '2s';"
	    "PREPARE look(uuid) AS SELECT count(*) FROM paynotify.receipts "
	    "WHERE id = $1 AND received_at > now() - interval '1 day'");
	receive_some(f, prepared, "before");
	(void)db(f->other, "BEGIN ISOLATION LEVEL REPEATABLE READ; %s", reader);
	store = retain_receipts(f, month_age_us(f->db, 4) - PN_SECOND_US);
	db_wait(f->db, 1, "SELECT count(*) " DETACHING " AND wait_event = '%s'",
	    wait_event);
	receive_some(f, prepared, "during");
	assert_true(month_exists(f->db, "receipts", 4));
	(void)db(f->other, "COMMIT");
	month_wait_gone(f->db, "receipts", 4);
	receive_some(f, prepared, "after");
	pn_store_close(store, 0);
	PQfinish(prepared);
	(void)db(f->db, "TRUNCATE paynotify.idempotency_keys");
}

/* If it failed: at the first of the month, behind a dump that runs, the provider
 * would get no answer until the dump has ended. */
static void
test_retention__readers_hold_up_the_drop_but_no_receiving(void **state)
{
	struct store_fixture *f = *state;
	char direct[128];
	PGresult *name;

	drop_behind(f, "SELECT count(*) FROM paynotify.receipts", "virtualxid");
	/* Of the month itself, not through its parent. */
	name = PQexec(f->db, "SELECT public.month_name('receipts', 4)");
	(void)snprintf(direct, sizeof(direct),
	    "SELECT count(*) FROM paynotify.%s", PQgetvalue(name, 0, 0));
	PQclear(name);
	drop_behind(f, direct, "relation");
}

/* A daemon that dies in the middle: its backend ends, and the store goes. */
static void
kill_retention(struct store_fixture *f, struct pn_store *store)
{
	(void)db(f->db, "SELECT pg_terminate_backend(pid) FROM "
			"pg_stat_activity WHERE datname = current_database() "
			"AND query ~ '^(ALTER TABLE|DO)' AND state = 'active'");
	pn_store_close(store, 0);
	db_wait(f->db, 0,
	    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
	    "database = (SELECT oid FROM pg_database WHERE datname = "
	    "current_database())");
}

/* If it failed: a partition that was half dropped would stay so for ever, and
 * with it all that expire after it. */
static void
test_retention__takes_up_what_was_interrupted(void **state)
{
	struct store_fixture *f = *state;
	PGconn *guard = db_open(f->dsn);
	struct pn_store *store;
	int64_t age_us;

	month_make(f->db, "receipts", 4);
	month_make(f->db, "receipts", 5);
	age_us = month_age_us(f->db, 4) - PN_SECOND_US;
	(void)db(f->other, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
			   "SELECT count(*) FROM paynotify.receipts");
	store = retain_receipts(f, age_us);
	db_wait(f->db, 1,
	    "SELECT count(*) " DETACHING " AND wait_event = 'virtualxid'");
	kill_retention(f, store);
	assert_int_equal(db(f->db, "SELECT count(*) FROM pg_inherits WHERE "
				   "inhdetachpending"),
	    1);
	(void)db(f->other, "COMMIT");
	/* The next one finishes the detaching and dies before it drops. */
	(void)db(f->db,
	    "CREATE TABLE public.gate ();"
	    "CREATE FUNCTION public.hold() RETURNS event_trigger "
	    "LANGUAGE plpgsql AS $$ BEGIN SET lock_timeout = 0; "
	    "LOCK TABLE public.gate; END $$;"
	    "CREATE EVENT TRIGGER hold ON ddl_command_start WHEN TAG IN "
	    "('DROP TABLE') EXECUTE FUNCTION public.hold()");
	(void)db(guard, "BEGIN; LOCK TABLE public.gate");
	store = retain_receipts(f, age_us);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM pg_stat_activity WHERE query ~ '^DO' AND "
	    "wait_event_type = 'Lock' AND datname = current_database()");
	kill_retention(f, store);
	(void)db(guard, "COMMIT");
	PQfinish(guard);
	assert_true(month_exists(f->db, "receipts", 5));
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM pg_inherits WHERE inhrelid = "
		      "('paynotify.' || public.month_name('receipts', 5))"
		      "::regclass"),
	    0);
	(void)db(f->db, "DROP EVENT TRIGGER hold");
	store = retain_receipts(f, age_us);
	month_wait_gone(f->db, "receipts", 5);
	month_wait_gone(f->db, "receipts", 4);
	pn_store_close(store, 0);
}

/* If it failed: a daemon without the owner's rights would say nothing, or would
 * do nothing else either. */
static void
test_retention__says_which_rights_it_lacks_and_goes_on(void **state)
{
	struct store_fixture *f = *state;
	char lowly[DSN_BYTES + 32];
	struct capture capture;
	struct pn_store *store;
	int64_t age_us;

	(void)db(f->db, "CREATE ROLE lowly LOGIN IN ROLE paynotify_receiver");
	(void)snprintf(lowly, sizeof(lowly), "%s user=lowly", f->dsn);
	month_make(f->db, "receipts", 4);
	age_us = month_age_us(f->db, 4) - PN_SECOND_US;
	capture_begin(&capture);
	store = janitor_new(
	    (struct pn_store_options){ .dsn = lowly, .receipts_us = age_us });
	capture_wait(&capture, "does not own it; set [database] admin_dsn to "
			       "a role that is, or is a member of, "
			       "\\\"paynotify\\\"");
	capture_end(&capture);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	db_wait(f->db, 1, "SELECT count(*) FROM paynotify.idempotency_archive");
	pn_store_close(store, 0);
	assert_true(month_exists(f->db, "receipts", 4));
	/* With admin_dsn it can. */
	store = janitor_new((struct pn_store_options){
	    .dsn = lowly, .admin_dsn = f->dsn, .receipts_us = age_us });
	month_wait_gone(f->db, "receipts", 4);
	pn_store_close(store, 0);
}

/* If it failed: a wrong admin_dsn would stop leases, keys and partitions. */
static void
test_retention__without_its_connection_the_rest_goes_on(void **state)
{
	struct store_fixture *f = *state;
	char wrong[DSN_BYTES + 32];
	struct capture capture;
	struct pn_store *store;

	(void)snprintf(wrong, sizeof(wrong), "%s user=nobody_at_all", f->dsn);
	capture_begin(&capture);
	store = janitor_new((struct pn_store_options){ .dsn = f->dsn,
	    .admin_dsn = wrong,
	    .receipts_us = 90 * 24 * HOUR_US });
	capture_wait(&capture, "janitor could not work as the owner");
	capture_end(&capture);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	db_wait(f->db, 1, "SELECT count(*) FROM paynotify.idempotency_archive");
	pn_store_close(store, 0);
}

/* If it failed: daemons of several hosts would wait for each other's snapshots,
 * and fail on tables that the other has just dropped. */
static void
test_retention__is_one_daemons_at_a_time(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *stores[2];
	struct capture capture;
	bool failed;

	for (size_t i = 0; i < 3; i++)
		for (int ago = 2; ago <= 13; ago++)
			month_make(f->db, PARENTS[i], ago);
	capture_begin(&capture);
	for (int i = 0; i < 2; i++)
		stores[i] =
		    janitor_new((struct pn_store_options){ .dsn = f->dsn,
			.receipts_us = month_age_us(f->db, 2) - PN_SECOND_US,
			.evidence_us = month_age_us(f->db, 2) - PN_SECOND_US });
	for (size_t i = 0; i < 3; i++)
		month_wait_gone(f->db, PARENTS[i], 2);
	for (int i = 0; i < 2; i++)
		pn_store_close(stores[i], 0);
	failed = capture_has(&capture, "could not");
	capture_end(&capture);
	if (failed)
		fail_msg("%s", capture.text);
}

/* The owner's hand, in this thread. */
static void
open_hand(struct store_fixture *f, struct pn_hand *hand)
{
	struct pn_error error = { { 0 } };

	hand->conn = pn_conn_none();
	assert_int_equal(pn_conn_open(&hand->conn, f->dsn, -1, &error), 0);
	assert_int_equal(
	    pn_conn_exec(&hand->conn, pn_sql_session, NULL, &error), 0);
}

/* If it failed: as above; here for certain. */
static void
test_retention__does_nothing_while_another_is_at_it(void **state)
{
	struct store_fixture *f = *state;
	struct pn_janitor janitor = {
		.receipts_us = month_age_us(f->db, 4) - PN_SECOND_US,
	};
	struct pn_hand hand = { .janitor = &janitor };
	struct pn_error error = { { 0 } };
	int64_t rest_us = 7;

	month_make(f->db, "receipts", 4);
	open_hand(f, &hand);
	(void)db(f->other, "SELECT pg_advisory_lock(7236835126382)");
	assert_int_equal(pn_duty_retention(&hand, &rest_us, &error), 0);
	assert_true(month_exists(f->db, "receipts", 4));
	(void)db(f->other, "SELECT pg_advisory_unlock(7236835126382)");
	assert_int_equal(pn_duty_retention(&hand, &rest_us, &error), 0);
	assert_false(month_exists(f->db, "receipts", 4));
	assert_int_equal(rest_us, 7); /* its period */
	pn_conn_close(&hand.conn);
}

/* If it failed: behind a reader that stays for hours the months would be tried
 * without rest, or never again; or one table's reader would keep the others. */
static void
test_retention__tries_ever_more_rarely_behind_a_reader(void **state)
{
	struct store_fixture *f = *state;
	struct pn_janitor janitor = {
		.receipts_us = month_age_us(f->db, 4) - PN_SECOND_US,
		.evidence_us = month_age_us(f->db, 4) - PN_SECOND_US,
	};
	struct pn_hand hand = { .janitor = &janitor };
	struct pn_error error = { { 0 } };
	int64_t first_us = HOUR_US, second_us = HOUR_US, rest_us = HOUR_US;

	month_make(f->db, "receipts", 4);
	month_make(f->db, "evidence", 4);
	open_hand(f, &hand);
	(void)db(f->other, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
			   "SELECT count(*) FROM paynotify.receipts");
	assert_int_equal(pn_duty_retention(&hand, &first_us, &error), 0);
	/* Now it is pending. */
	assert_int_equal(pn_duty_retention(&hand, &second_us, &error), 0);
	assert_true(month_exists(f->db, "receipts", 4));
	assert_false(month_exists(f->db, "evidence", 4));
	assert_true(first_us < second_us && second_us < HOUR_US);
	(void)db(f->other, "COMMIT");
	assert_int_equal(pn_duty_retention(&hand, &rest_us, &error), 0);
	assert_false(month_exists(f->db, "receipts", 4));
	assert_int_equal(rest_us, HOUR_US);
	assert_int_equal(janitor.retention_blocked, 0);
	pn_conn_close(&hand.conn);
}

static int
steps_at(struct store_fixture *f, int64_t now_us)
{
	char now[24];
	const char *values[] = { "receipts", "1", now };
	PGresult *result;
	int count;

	(void)snprintf(now, sizeof(now), "%" PRId64, now_us);
	result = PQexecParams(
	    f->db, pn_sql_retention, 3, NULL, values, NULL, NULL, 0);
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	count = PQntuples(result);
	PQclear(result);
	return count;
}

/* If it failed: a clock that jumps ahead would destroy years of evidence. */
static void
test_retention__believes_the_earlier_of_two_clocks(void **state)
{
	struct store_fixture *f = *state;
	int64_t now_us = pn_clock_realtime_us();

	month_make(f->db, "receipts", 4);
	assert_int_equal(steps_at(f, now_us), 1);
	assert_int_equal(
	    steps_at(f, now_us - month_age_us(f->db, 4) - PN_SECOND_US), 0);
	/* The years ahead that there are partitions for. */
	(void)db(f->db, "DO $$ BEGIN EXECUTE format('DROP TABLE paynotify.%%I, "
			"paynotify.%%I', public.month_name('receipts', 4), "
			"public.month_name('receipts', 1)); END $$");
	assert_int_equal(steps_at(f, now_us + 20000 * HOUR_US), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup, store_fixture_teardown)
		/* First: the line is logged once a while, and others cause it. */
		TEST(test_retention__without_its_connection_the_rest_goes_on),
		TEST(test_retention__drops_exactly_the_expired_months),
		TEST(test_retention__readers_hold_up_the_drop_but_no_receiving),
		TEST(test_retention__takes_up_what_was_interrupted),
		TEST(test_retention__says_which_rights_it_lacks_and_goes_on),
		TEST(test_retention__is_one_daemons_at_a_time),
		TEST(test_retention__does_nothing_while_another_is_at_it),
		TEST(test_retention__tries_ever_more_rarely_behind_a_reader),
		TEST(test_retention__believes_the_earlier_of_two_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
