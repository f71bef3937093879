/*
 * What the store needs of a session: settings that nobody else decides, rights
 * no greater than a receiver's, a plan that stays right as the tables grow.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "batch.h"
#include "statements.h"
#include "store_support.h"

static const int64_t LONG_US = 15 * PN_SECOND_US;

/* If it failed: defaults of the server, database or role would change what a
 * commit means or how a statement is planned. */
static void
test_store__pins_the_settings_of_its_sessions(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store;

	(void)db(f->db,
	    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET "
	    "synchronous_commit = off', current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET "
	    "default_transaction_isolation = serializable', "
	    "current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET "
	    "default_transaction_read_only = on', current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET jit = on', "
	    "current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET search_path = public', "
	    "current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET lock_timeout = 1', "
	    "current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET "
	    "plan_cache_mode = force_custom_plan', current_database());"
	    "EXECUTE format('ALTER DATABASE %%I SET "
	    "statement_timeout = 60000', current_database()); END $$;"
	    "CREATE TABLE public.seen (name text, value text);"
	    "CREATE FUNCTION public.look() RETURNS trigger LANGUAGE plpgsql "
	    "SECURITY DEFINER AS $$ BEGIN INSERT INTO public.seen SELECT n, "
	    "current_setting(n) FROM unnest('{synchronous_commit,"
	    "transaction_isolation,transaction_read_only,jit,"
	    "statement_timeout,lock_timeout,plan_cache_mode,enable_seqscan,"
	    "search_path,client_encoding,application_name}'::text[]) n;"
	    "RETURN NULL; END $$;"
	    "CREATE TRIGGER look AFTER INSERT ON paynotify.idempotency_keys "
	    "EXECUTE FUNCTION public.look()");
	store = store_new(f->dsn, 1, LONG_US);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM public.seen s JOIN "
		      "(VALUES ('synchronous_commit', 'on'),"
		      "('transaction_isolation', 'read committed'),"
		      "('transaction_read_only', 'off'), ('jit', 'off'),"
		      "('statement_timeout', '0'), ('lock_timeout', '300ms'),"
		      "('plan_cache_mode', 'force_generic_plan'),"
		      "('enable_seqscan', 'off'), ('client_encoding', 'UTF8'),"
		      "('search_path', 'pg_catalog, pg_temp'),"
		      "('application_name', 'paynotifyd')) w (name, value) "
		      "ON s.name = w.name AND s.value = w.value"),
	    11);
}

/* What the plan of a statement reads, over whichever parameters. */
struct plan {
	int whole;    /* scans of whole tables or indexes */
	int receipts; /* look-ups of receipts by id */
	int archive, keys;
};

static bool
has(const char *line, const char *text)
{
	return strstr(line, text) != NULL;
}

static void
read_plan(PGconn *conn, const char *name, int params, struct plan *ret_plan)
{
	char nulls[6 * PN_BATCH_PARAMS_MAX] = "NULL", sql[sizeof(nulls) + 64];
	const char *line, *next;
	PGresult *result;

	for (int i = 1; i < params; i++)
		memcpy(nulls + 6 * (size_t)i - 2, ", NULL", sizeof(", NULL"));
	(void)snprintf(sql, sizeof(sql), "EXPLAIN EXECUTE %s(%s)", name, nulls);
	result = PQexec(conn, sql);
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	*ret_plan = (struct plan){ 0 };
	for (int i = 0; i < PQntuples(result); i++) {
		line = PQgetvalue(result, i, 0);
		next = i + 1 < PQntuples(result) ? PQgetvalue(result, i + 1, 0)
						 : "";
		ret_plan->whole += has(line, "Seq Scan on") ||
				   has(line, "Bitmap") || has(line, "Merge") ||
				   has(line, "Nested Loop");
		if (!has(line, "Index Scan") && !has(line, "Index Only Scan"))
			continue;
		ret_plan->whole += !has(next, "Index Cond: (");
		ret_plan->receipts += has(line, "using receipts_") &&
				      has(next, "Index Cond: (id = ");
		ret_plan->archive += has(line, "idempotency_archive_pkey");
		ret_plan->keys += has(line, "idempotency_keys_pkey");
	}
	PQclear(result);
}

/* All statements of a writer. */
static void
check_plans(PGconn *conn)
{
	struct plan plan;
	PGresult *all;
	const char *name;

	all = PQexec(conn, "SELECT name, cardinality(parameter_types) FROM "
			   "pg_prepared_statements ORDER BY name");
	assert_int_equal(PQntuples(all), 5);
	for (int i = 0; i < PQntuples(all); i++) {
		name = PQgetvalue(all, i, 0);
		read_plan(conn, name,
		    has(name, "ingest_one") ? 31
		    : has(name, "ingest")   ? 34
					    : 20,
		    &plan);
		assert_int_equal(plan.whole, 0);
		/* By id, this month and maybe the one before. */
		if (has(name, "_resubmitted"))
			assert_in_range(plan.receipts, 1, 3);
		assert_int_equal(plan.archive, has(name, "ingest"));
		assert_int_equal(plan.keys, has(name, "ingest"));
	}
	PQclear(all);
}

static void
open_as_writer(struct pn_conn *conn, const char *dsn)
{
	struct pn_error error;

	assert_int_equal(pn_conn_open(conn, dsn, -1, &error), 0);
	assert_int_equal(pn_conn_exec(conn, pn_sql_session, NULL, &error), 0);
	assert_int_equal(pn_batch_prepare(conn, &error), 0);
}

/* What a receiver must not do. */
static const char *const FORBIDDEN[] = {
	"SELECT id FROM paynotify.event_log",
	"SELECT receipt_id FROM paynotify.evidence",
	"SELECT raw FROM paynotify.receipts",
	"SELECT peer FROM paynotify.receipts",
	"SELECT events FROM paynotify.quarantine",
	"SELECT response_body FROM paynotify.idempotency_keys",
	"SELECT pem FROM paynotify.verifying_keys",
	"SELECT first_seen_at FROM paynotify.idempotency_archive",
	"UPDATE paynotify.idempotency_keys SET state = 'FAILED'",
	"DELETE FROM paynotify.idempotency_archive",
	"INSERT INTO paynotify.idempotency_archive VALUES ('', '', '', now())",
	"UPDATE paynotify.quarantine SET state = 'accepted'",
};

/* If it failed: the daemon would need more rights than to insert, or would not
 * work with those it is given. */
static void
test_store__works_with_the_rights_of_a_receiver(void **state)
{
	struct store_fixture *f = *state;
	char dsn[DSN_BYTES + 64], sqlstate[6];
	struct pn_refusal refusal = {
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.verdict = PN_STR("malformed"),
	};
	struct pn_store_key key = { .pem = "pem" };
	struct pn_store_options options = {
		.dsn = dsn,
		.writers = 2,
		.commit_timeout_us = LONG_US,
		.key_hot_us = 1,
		.janitor = true,
		.keys = &key,
		.key_count = 1,
	};
	struct pn_conn as_writer = pn_conn_none();
	struct pn_error error;
	struct pn_store *store;
	struct note note;
	PGconn *conn;

	(void)db(f->db, "DO $$ BEGIN CREATE ROLE pn_test_receiver LOGIN; "
			"EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
			"GRANT paynotify_receiver TO pn_test_receiver");
	(void)snprintf(dsn, sizeof(dsn), "%s user=pn_test_receiver", f->dsn);
	assert_int_equal(pn_store_open(&options, &store, &error), 0);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(store, "a", 101), PN_STORE_CONFLICT);
	note_init_quarantine(&note, "n7", "could not decrypt");
	note_submit(store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_QUARANTINED);
	note_done(&note);
	pn_store_refuse(store, &refusal);
	db_wait(f->db, 1,
	    "SELECT count(*) FROM paynotify.receipts "
	    "WHERE verdict = 'malformed'");
	db_wait(f->db, 1,
	    "SELECT count(*) FROM "
	    "paynotify.idempotency_archive");
	assert_int_equal(put(store, "a", 100), PN_STORE_DUPLICATE);
	pn_store_close(store, PN_SECOND_US);

	/* What is sent again after a lost connection: rights are checked when
	 * a statement is explained, too. */
	open_as_writer(&as_writer, dsn);
	check_plans(as_writer.pg);
	pn_conn_close(&as_writer);

	conn = db_open(dsn);
	for (size_t i = 0; i < PN_COUNT(FORBIDDEN); i++) {
		db_send(conn, FORBIDDEN[i]);
		assert_string_equal(db_end(conn, sqlstate), "42501");
	}
	PQfinish(conn);
}

/* If it failed: a statement prepared on empty tables would cache a scan of a
 * whole table and crawl as they grow; one that is sent again after a lost
 * connection would read every receipt of the month, and time out. */
static void
test_store__never_plans_a_scan_of_a_whole_table(void **state)
{
	struct store_fixture *f = *state;
	struct pn_conn conn = pn_conn_none();

	open_as_writer(&conn, f->dsn);
	check_plans(conn.pg);
	(void)db(f->db,
	    "ANALYZE paynotify.idempotency_keys, paynotify.receipts, "
	    "paynotify.idempotency_archive"); /* known to be empty */
	check_plans(conn.pg);
	(void)db(f->db, "INSERT INTO paynotify.idempotency_archive SELECT "
			"'shop1', sha256(i::text::bytea), '', now() "
			"FROM generate_series(1, 50000) i");
	(void)db(f->db, "INSERT INTO paynotify.receipts (id, received_at, "
			"provider, tenant, verdict, status, body_bytes) "
			"SELECT gen_random_uuid(), now(), 'alipay', 'shop1', "
			"'recorded', 200, 1000 FROM generate_series(1, 50000)");
	check_plans(conn.pg);
	(void)db(f->db, "ANALYZE paynotify.idempotency_archive, "
			"paynotify.receipts");
	check_plans(conn.pg);
	pn_conn_close(&conn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__pins_the_settings_of_its_sessions),
		TEST(test_store__works_with_the_rights_of_a_receiver),
		TEST(test_store__never_plans_a_scan_of_a_whole_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
