/*
 * The deliverer's side of the hand-off: endpoints, claims, waiting, and what
 * may go wrong with the session. What becomes of what was claimed is in
 * test_handoff_settle.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/moment.h"
#include "paynotify/query.h"

#include "handoff_support.h"
#include "statements.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;

#define DELIVERER                                                       \
	"FROM pg_stat_activity WHERE datname = current_database() AND " \
	"query ~ 'paynotify.take|LISTEN|put_endpoint' AND "             \
	"pid <> pg_backend_pid()"

struct fixture {
	struct store_fixture *store;
	PGconn *db, *other; /* of store */
	const char *dsn;
	struct pn_handoff *handoff;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	void *store = NULL;

	assert_non_null(f);
	(void)store_fixture_setup(&store);
	f->store = store;
	f->db = f->store->db;
	f->other = f->store->other;
	f->dsn = f->store->dsn;
	f->handoff = handoff_new(f->dsn, "app");
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

/* Ends the deliverer's connection, and waits for the end. */
static void
break_connection(struct fixture *f)
{
	(void)db(f->db, "SELECT pg_terminate_backend(pid) " DELIVERER);
	db_wait(f->db, 0, "SELECT count(*) " DELIVERER);
}

static int
on_event(const struct pn_event_row *row, void *payload)
{
	struct pn_buf *json = payload;

	pn_event_add_json(json, row);
	return 0;
}

/* If it failed: what is pushed would not be what `events show` prints, and a
 * receiver could not compare the two. */
static void
test_handoff__gives_the_event_as_it_was_recorded(void **state)
{
	struct fixture *f = *state;
	PN_CLEANUP(pn_buf_done) struct pn_buf json = pn_buf_init(1 << 16);
	struct pn_query *query = NULL;
	struct pn_error error = { { 0 } };
	struct claims claims;
	struct note note;

	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r1");
	note_submit(f->store->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(claims.results[0].attempt, 1);
	assert_false(claims.results[0].redelivery);
	assert_int_equal(
	    handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE), 0);
	/* Of one order, so in a claim of its own. */
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(pn_query_open(f->dsn, &query, &error), 0);
	assert_int_equal(pn_query_event(query, "webhook:alipay:a:refund:r1",
			     NULL, on_event, &json, &error),
	    0);
	assert_string_equal(claims.json, json.data);
	assert_non_null(strstr(claims.json, "\"payload\":{\"out_trade_no\""));
	pn_query_close(query);
}

/* If it failed: a claim would hand out more than it was asked for, the same
 * again, or out of order. */
static void
test_handoff__claims_no_more_than_asked_for_and_once(void **state)
{
	struct fixture *f = *state;
	struct claims claims = { 0 };
	char trade[8];

	for (int i = 0; i < 5; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		assert_int_equal(
		    put(f->store->store, trade, 100), PN_STORE_RECORDED);
	}
	assert_int_equal(handoff_take(f->handoff, "app", 3, &claims), 0);
	assert_int_equal(claims.count, 3);
	assert_true(claims.seqs[0] < claims.seqs[1]);
	assert_true(claims.seqs[1] < claims.seqs[2]);
	handoff_take_some(f->handoff, "app", 2, &claims);
	handoff_take_some(f->handoff, "app", 0, &claims);
}

struct thread_claim {
	struct pn_handoff *handoff;
	struct claims claims;
	int r;
};

static void *
claim_main(void *payload)
{
	struct thread_claim *claim = payload;

	claim->r =
	    handoff_take(claim->handoff, "app", CLAIMS_MAX, &claim->claims);
	return NULL;
}

/* If it failed: an event that commits while the claim looks would be leased and
 * not given, and be late by a whole lease. */
static void
test_handoff__gives_what_was_recorded_while_it_claimed(void **state)
{
	struct fixture *f = *state;
	struct thread_claim claim = { .handoff = f->handoff };
	pthread_t thread;

	/* The first thing that take() looks at, behind its caller's back. */
	(void)db(f->other, "BEGIN; LOCK TABLE paynotify.consumer_marks "
			   "IN ACCESS EXCLUSIVE MODE");
	assert_int_equal(pthread_create(&thread, NULL, claim_main, &claim), 0);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
	    "'paynotify.consumer_marks'::regclass");
	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->other, "COMMIT");
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(claim.r, 0);
	assert_int_equal(claim.claims.count, 1);
}

/* If it failed: an application would have to wait for a lease of an event that
 * it was never given. */
static void
test_handoff__claim_by_sql_gives_what_was_recorded_meanwhile(void **state)
{
	struct fixture *f = *state;
	PGconn *puller = db_open(f->dsn);
	PGresult *result;

	(void)db(f->db, "SELECT paynotify.register_consumer('ledger')");
	(void)db(f->other, "BEGIN; LOCK TABLE paynotify.consumer_marks "
			   "IN ACCESS EXCLUSIVE MODE");
	db_send(puller, "SELECT seq FROM paynotify.claim('ledger', 10, '1 h')");
	db_wait(f->db, 1,
	    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
	    "'paynotify.consumer_marks'::regclass");
	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->other, "COMMIT");
	result = PQgetResult(puller);
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	assert_int_equal(PQntuples(result), 1);
	PQclear(result);
	PQfinish(puller);
}

/* If it failed: each claim would read every partition there is, three years of
 * them, or all of an index. */
static void
test_handoff__looks_into_one_partition_an_event(void **state)
{
	struct fixture *f = *state;
	char sql[4096];
	PGresult *result;
	int once = 0;

	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->other, "%s", pn_sql_handoff_session);
	(void)snprintf(
	    sql, sizeof(sql), "PREPARE e AS %s", pn_sql_handoff_events);
	result = PQexec(f->other, sql);
	assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	(void)db(f->db, "CREATE TABLE public.a AS SELECT array_agg(seq) s, "
			"array_agg(received_at::text) r FROM "
			"paynotify.event_log");
	result = PQexec(f->other,
	    "SELECT format('EXPLAIN (ANALYZE, COSTS OFF) EXECUTE e(%L, %L, "
	    "%L, %L, %L)', s, r, ARRAY[gen_random_uuid()], ARRAY[1], "
	    "ARRAY[false]) FROM public.a");
	(void)snprintf(sql, sizeof(sql), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	result = PQexec(f->other, sql);
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	for (int i = 0; i < PQntuples(result); i++) {
		const char *line = PQgetvalue(result, i, 0);

		assert_null(strstr(line, "Hash"));
		assert_null(strstr(line, "Seq Scan"));
		once += strstr(line, "Index Scan") != NULL &&
			strstr(line, "never executed") == NULL;
	}
	PQclear(result);
	/* One of event_log, one of evidence. */
	assert_int_equal(once, 2);
}

/* If it failed: events would pile up at an operator's closed door, or nobody
 * would be told that it is closed. */
static void
test_handoff__is_held_while_paused_or_disabled(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	struct claims claims = { 0 };

	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	(void)db(f->db, "SELECT paynotify.set_consumer_state('app', 'paused', "
			"'maintenance', 'ann')");
	assert_int_equal(
	    handoff_take(f->handoff, "app", 9, &claims), PN_HANDOFF_HELD);
	assert_int_equal(claims.count, 0);
	(void)db(f->db, "SELECT paynotify.set_consumer_state('app', 'active', "
			"'done', 'ann')");
	handoff_take_some(f->handoff, "app", 1, &claims);
	/* Nothing there is not the same as held. */
	handoff_take_some(f->handoff, "app", 0, &claims);
	assert_int_equal(pn_handoff_disable(f->handoff, "app",
			     "https://old.example/", "it said 410", &error),
	    PN_HANDOFF_MOVED);
	handoff_take_some(f->handoff, "app", 0, &claims);
	assert_int_equal(pn_handoff_disable(f->handoff, "app",
			     endpoint_conf(NULL).url, "it said 410", &error),
	    0);
	assert_int_equal(
	    handoff_take(f->handoff, "app", 9, &claims), PN_HANDOFF_HELD);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.consumers WHERE name = "
		"'app' AND state = 'disabled' AND reason = 'it said 410'"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions WHERE "
		      "action = 'disable' AND actor = 'paynotifyd'"),
	    1);
}

/* If it failed: a changed [deliver] section would not count, or each start of
 * the daemon would change something. */
static void
test_handoff__endpoint_is_as_configured(void **state)
{
	struct fixture *f = *state;
	char name[] = "app", url[] = "https://b.example/";
	char *tenants[] = { (char[]){ "shop1" }, (char[]){ "shop2" } };
	char *types[] = { (char[]){ "refund.*" } };
	struct pn_conf_deliver conf = endpoint_conf(name);
	struct pn_error error = { { 0 } };
	struct claims claims;

	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.consumers WHERE name = "
		      "'app' AND pushed AND tenants IS NULL AND types IS NULL"),
	    1);
	conf.url = url;
	conf.tenants.values = tenants;
	conf.tenants.count = 2;
	conf.types.values = types;
	conf.types.count = 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    pn_handoff_put_endpoint(f->handoff, &conf, &error), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.consumers c JOIN "
		      "paynotify.endpoints e ON e.consumer_id = c.id WHERE "
		      "c.tenants = '{shop1,shop2}' AND c.types = '{refund.*}' "
		      "AND e.url = 'https://b.example/'"),
	    1);
	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	handoff_take_some(f->handoff, "app", 0, &claims);
}

/* If it failed: a section that is added to an installation with a history would
 * be sent all of it, against what it says; or a changed `start` would lose
 * events that an endpoint has still to get. */
static void
test_handoff__a_new_endpoint_begins_where_it_says(void **state)
{
	struct fixture *f = *state;
	char before[] = "before", after[] = "after";
	struct pn_conf_deliver early = endpoint_conf(before);
	struct pn_conf_deliver late = endpoint_conf(after);
	struct pn_error error = { { 0 } };
	struct claims claims;
	int64_t now_us;

	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	now_us = pn_clock_realtime_us();
	early.start_us = now_us - 3600 * PN_SECOND_US;
	late.start_us = now_us + 3600 * PN_SECOND_US;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    pn_handoff_put_endpoint(f->handoff, &early, &error), 0);
		assert_int_equal(
		    pn_handoff_put_endpoint(f->handoff, &late, &error), 0);
		/* Known by now: this counts no more. */
		early.start_us = late.start_us;
		late.start_us = PN_MOMENT_NONE;
	}
	handoff_take_some(f->handoff, before, 1, &claims);
	handoff_take_some(f->handoff, after, 0, &claims);
}

/* If it failed: an endpoint would take the events of an application that pulls
 * under the same name, or the operator would not know why it gets none. */
static void
test_handoff__endpoint_does_not_take_the_name_of_who_pulls(void **state)
{
	struct fixture *f = *state;
	char name[] = "ledger";
	struct pn_conf_deliver conf = endpoint_conf(name);
	struct pn_error error = { { 0 } };

	(void)db(f->db, "SELECT paynotify.register_consumer('ledger')");
	assert_int_equal(pn_handoff_put_endpoint(f->handoff, &conf, &error), 1);
	assert_non_null(strstr(error.text, "\"ledger\" pulls"));
}

/* If it failed: a new event would wait until the next poll; or a sleeping
 * deliverer could not be told of anything else. */
static void
test_handoff__wait_ends_with_a_notification_a_wake_up_or_the_time(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	int wake = eventfd(0, EFD_CLOEXEC);
	struct claims claims;

	assert_int_equal(pn_handoff_wait(f->handoff, wake, 0, &error), 0);
	assert_int_equal(pn_handoff_wait(f->handoff, -1, 1000, &error), 0);
	/* The notifier's, all the way. */
	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(pn_handoff_wait(f->handoff, wake, PATIENCE_US, &error),
	    PN_HANDOFF_NOTIFIED);
	assert_int_equal(pn_handoff_wait(f->handoff, wake, 0, &error), 0);
	assert_int_equal(eventfd_write(wake, 1), 0);
	assert_int_equal(pn_handoff_wait(f->handoff, wake, PATIENCE_US, &error),
	    PN_HANDOFF_WOKEN);
	/* One that comes with the answer of a statement counts as well. */
	(void)db(f->db, "NOTIFY paynotify_events");
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(pn_handoff_wait(f->handoff, -1, PATIENCE_US, &error),
	    PN_HANDOFF_NOTIFIED);
	(void)close(wake);
}

/* If it failed: a deliverer without a database would sit there and believe
 * that there is nothing to do. */
static void
test_handoff__notices_that_the_connection_is_lost(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	struct claims claims = { 0 };

	break_connection(f);
	assert_int_equal(
	    pn_handoff_wait(f->handoff, -1, PATIENCE_US, &error), -ECONNRESET);
	assert_true(error.text[0] != '\0');
	pn_handoff_close(f->handoff);
	f->handoff = handoff_new(f->dsn, "app");
	break_connection(f);
	assert_true(handoff_take(f->handoff, "app", 9, &claims) < 0);
	pn_handoff_close(f->handoff);
	f->handoff = handoff_new(f->dsn, "app");
	handoff_take_some(f->handoff, "app", 0, &claims);
}

/* If it failed: a deliverer that is told to stop would wait on. */
static void
test_handoff__stops_when_told(void **state)
{
	struct fixture *f = *state;
	struct pn_handoff *handoff = NULL, *late = NULL;
	struct pn_error error = { { 0 } };
	int stop = eventfd(0, EFD_CLOEXEC);

	assert_int_equal(pn_handoff_open(f->dsn, stop, &handoff, &error), 0);
	assert_int_equal(eventfd_write(stop, 1), 0);
	assert_int_equal(
	    pn_handoff_wait(handoff, -1, PATIENCE_US, &error), -ECANCELED);
	assert_int_equal(
	    pn_handoff_open(f->dsn, stop, &late, &error), -ECANCELED);
	assert_null(late);
	pn_handoff_close(handoff);
	(void)close(stop);
}

/* If it failed: the deliverer could not say what is wrong, or what to do. */
static void
test_handoff__says_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct pn_handoff *handoff = NULL;
	struct pn_error error = { { 0 } };
	struct claims claims = { 0 };
	char dsn[DSN_BYTES];

	assert_int_equal(
	    handoff_take(f->handoff, "nobody", 9, &claims), -ENOENT);
	database_empty(dsn, "template1");
	assert_int_equal(pn_handoff_open(dsn, -1, &handoff, &error), -ENOENT);
	assert_non_null(strstr(error.text, "paynotifyctl db migrate"));
}

/* If it failed: a deliverer that runs out of memory in the middle of a claim
 * would go on. */
static void
test_handoff__claim_ends_when_the_callback_says_so(void **state)
{
	struct fixture *f = *state;
	struct claims claims = { .stop_with = -ENOMEM };

	assert_int_equal(put(f->store->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store->store, "b", 100), PN_STORE_RECORDED);
	assert_int_equal(handoff_take(f->handoff, "app", 9, &claims), -ENOMEM);
	assert_int_equal(claims.count, 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_handoff__gives_the_event_as_it_was_recorded),
		TEST(test_handoff__claims_no_more_than_asked_for_and_once),
		TEST(test_handoff__gives_what_was_recorded_while_it_claimed),
		TEST(
		    test_handoff__claim_by_sql_gives_what_was_recorded_meanwhile),
		TEST(test_handoff__looks_into_one_partition_an_event),
		TEST(test_handoff__is_held_while_paused_or_disabled),
		TEST(test_handoff__endpoint_is_as_configured),
		TEST(test_handoff__a_new_endpoint_begins_where_it_says),
		TEST(
		    test_handoff__endpoint_does_not_take_the_name_of_who_pulls),
		TEST(
		    test_handoff__wait_ends_with_a_notification_a_wake_up_or_the_time),
		TEST(test_handoff__notices_that_the_connection_is_lost),
		TEST(test_handoff__stops_when_told),
		TEST(test_handoff__says_what_is_missing),
		TEST(test_handoff__claim_ends_when_the_callback_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
