/*
 * What the store says about a notification and what is then in the tables:
 * verdicts, both tiers, evidence, receipts, quarantine, rights, settings.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/encode.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "statements.h"
#include "store_support.h"

static const int64_t LONG_US = 15 * PN_SECOND_US;

struct fixture {
	char dsn[DSN_BYTES];
	PGconn *db;
	struct pn_store *store;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	database_new(f->dsn);
	f->db = db_open(f->dsn);
	f->store = store_new(f->dsn, 1, LONG_US);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pn_store_close(f->store, PN_SECOND_US);
	PQfinish(f->db);
	free(f);
	return 0;
}

static void
submit(struct pn_store *store, struct note *note)
{
	assert_int_equal(pn_store_submit(store, &note->submission), 0);
}

/* If it failed: an event would be lost, doubled, or acknowledged without its
 * evidence and receipt. */
static void
test_store__records_once_with_evidence_and_receipts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.events "
		"WHERE key = 'webhook:alipay:a' AND amount = 100 AND seq = 1 "
		"AND payload ->> 'out_trade_no' = 'a' AND refund IS NULL "
		"AND occurred_at = '2026-01-01T00:00:00Z' AND flags = '{}'"),
	    1);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.evidence "
				   "WHERE body = 'out_trade_no=a&total=100' "
				   "AND key_fingerprint = E'\\\\xfe' || "
				   "decode(repeat('00', 31), 'hex')"),
	    1);
	/* Bytes that are not UTF-8 come back as they were. */
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.evidence "
		"WHERE convert_to(headers, 'LATIN1') = "
		"'\\x436f6e74656e742d547970653a20746578742f706c61696ee90a'"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'recorded' AND status = 200"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'duplicate' AND status = 200 "
		      "AND out_trade_no = 'a' AND notify_id = 'n1'"),
	    1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM "
		"paynotify.idempotency_keys WHERE state = 'COMPLETED' AND "
		"response_status = 200 AND response_body = 'success' AND "
		"expires_at = created_at + interval '72 hours'"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.verifying_keys"), 1);
}

/* If it failed: a forged or changed notification under a known key would pass
 * as a duplicate, or leave no trace. */
static void
test_store__quarantines_a_conflict_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "a", 102), PN_STORE_CONFLICT);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "WHERE state = 'open' AND subject = 'webhook:alipay:a'"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE q.events -> 0 ->> 'amount' = "
		      "substring(convert_from(e.body, 'UTF8') from '[0-9]+$')"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 3);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'conflict' AND status = 422"),
	    3);
}

/* If it failed: a replay after the key's hot life would be recorded again. */
static void
test_store__finds_keys_in_the_permanent_tier(void **state)
{
	struct fixture *f = *state;
	struct note note;
	char hex[2 * PN_SHA256_BYTES + 1];

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now() WHERE key = 'webhook:alipay:a'");
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 1);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_DUPLICATE);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);
	/* The digest that SQL makes is the one that the store looks up. */
	note_init(&note, "a", 100);
	pn_hex_lower(note.events[0].key_digest, PN_SHA256_BYTES, hex);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM "
		"paynotify.idempotency_archive WHERE tenant = 'shop1' AND "
		"digest = '\\x%s'",
		hex),
	    1);
	note_done(&note);
}

/* If it failed: keys of the guard, or keys in use, would leave the hot tier. */
static void
test_store__archives_only_expired_completed_webhook_keys(void **state)
{
	struct fixture *f = *state;

	(void)db(f->db,
	    "INSERT INTO paynotify.idempotency_keys (tenant, "
	    "request_path, key, request_hash, state, lease_token, created_at, "
	    "expires_at) VALUES "
	    "('t', 'notify/alipay', 'processing', '', 'PROCESSING', NULL, "
	    "now(), now()),"
	    "('t', 'notify/alipay', 'held', '', 'COMPLETED', "
	    "gen_random_uuid(), now(), now()),"
	    "('t', 'notify/alipay', 'fresh', '', 'COMPLETED', NULL, now(), "
	    "now() + interval '1 h'),"
	    "('t', 'POST /v1/charges', 'guard', '', 'COMPLETED', NULL, now(), "
	    "now()),"
	    "('t', 'notify/alipay', 'old', '', 'COMPLETED', NULL, now(), "
	    "now()),"
	    "('t', 'notify/wechat', 'old', '', 'COMPLETED', NULL, now(), "
	    "now())");
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(1)"), 1);
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 1);
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM "
		      "paynotify.idempotency_keys WHERE key <> 'old'"),
	    4);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.idempotency_keys"),
	    4);
}

/* If it failed: of a notification with several events only some would be
 * recorded, or evidence would be doubled. */
static void
test_store__records_all_events_of_a_notification(void **state)
{
	struct fixture *f = *state;
	struct note note;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r1");
	note_add_refund(&note, "a", "r2");
	submit(f->store, &note);
	/* The worst verdict: one of them was known. */
	assert_int_equal(note_wait(&note), PN_STORE_DUPLICATE);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 3);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.events "
		"WHERE refund = '{\"id\": \"r\\\"1\", \"out_refund_no\": null, "
		"\"refunded_total\": 50}' AND amount IS NULL AND seq = "
		"CASE key WHEN 'webhook:alipay:a:refund:r1' THEN 2 ELSE 3 END "
		"AND payload IS NOT NULL"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), 2);
}

/* If it failed: a notification that names an event twice would record it twice
 * or never be committed; one that contradicts itself would lose a half. */
static void
test_store__takes_a_notification_that_repeats_itself(void **state)
{
	struct fixture *f = *state;
	struct note note;

	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r");
	note_add_refund(&note, "a", "r");
	submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);

	note_init(&note, "b", 100);
	note_add_refund(&note, "b", "r");
	note.events[1] = note.events[0];
	note.events[1].order_amount.minor = 101;
	pn_event_seal(&note.events[1]);
	submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_CONFLICT);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events "
				   "WHERE key = 'webhook:alipay:b'"),
	    1);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.quarantine"),
	    1);
}

/* If it failed: a signed notification that we cannot read would be dropped, or
 * fill the quarantine at each retry. */
static void
test_store__quarantines_what_is_signed_but_unreadable(void **state)
{
	struct fixture *f = *state;
	struct note note;

	for (int i = 0; i < 2; i++) {
		note_init_quarantine(&note, "n7", "could not decrypt");
		note.submission.quarantine_verdict = PN_STR("undecryptable");
		note.submission.refused_status = 500;
		submit(f->store, &note);
		assert_int_equal(note_wait(&note), PN_STORE_QUARANTINED);
		note_done(&note);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE subject = 'n7' AND reason = 'could not decrypt' "
		      "AND body = 'secret n7' AND payload IS NULL"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'undecryptable' AND status = 500"),
	    2);
}

/* If it failed: one event that the database refuses would take its neighbours
 * with it, or vanish. */
static void
test_store__isolates_an_event_that_the_database_refuses(void **state)
{
	struct fixture *f = *state;
	enum { COUNT = 40, BAD = 17 };
	struct note notes[COUNT];
	char trade[16];

	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		note_init(&notes[i], trade, 100);
	}
	notes[BAD].events[0].account = PN_STR("not \xff UTF-8");
	notes[BAD].submission.notify_id = PN_STR("neither \xc3");
	for (int i = 0; i < COUNT; i++)
		submit(f->store, &notes[i]);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(note_wait(&notes[i]),
		    i == BAD ? PN_STORE_QUARANTINED : PN_STORE_RECORDED);
		note_done(&notes[i]);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), COUNT - 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE subject = 'webhook:alipay:t17' AND reason LIKE "
		      "'%%UTF8%%' "
		      "AND body = 'out_trade_no=t17&total=100'"),
	    1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.receipts "
		"WHERE verdict = 'quarantined' AND notify_id = 'neither ?'"),
	    1);
	/* The writer goes on with the usual settings. */
	assert_int_equal(put(f->store, "t17b", 100), PN_STORE_RECORDED);
}

/* If it failed: a refused request would leave no receipt, or a hostile one
 * would stop the receipts of others. */
static void
test_store__writes_receipts_of_refusals(void **state)
{
	struct fixture *f = *state;
	char body[PN_REFUSAL_BODY_BYTES_MAX + 1000];
	struct pn_refusal refusal = {
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.peer = PN_STR("192.0.2.9"),
		.notify_id = PN_STR("\xff\x00'; DROP"),
		.verdict = PN_STR("bad_signature"),
		.reason = PN_STR("signature does not match"),
		.status = 401,
		.headers = PN_STR("X: \xff\n"),
		.body = { body, sizeof(body) },
	};

	memset(body, 0, sizeof(body));
	for (int i = 0; i < 300; i++) {
		refusal.request_id[0] = (unsigned char)i;
		pn_store_refuse(f->store, &refusal);
	}
	db_wait(f->db, 300,
	    "SELECT count(*) FROM paynotify.receipts "
	    "WHERE verdict = 'bad_signature' AND status = 401 AND "
	    "notify_id = repeat('?', 2) || '''; DROP' AND length(raw) = 2048 "
	    "AND "
	    "body_bytes = 3048 AND convert_to(headers, 'LATIN1') = "
	    "'\\x583a20ff0a'");
}

/* If it failed: a tenant could take or see another's keys. */
static void
test_store__keeps_tenants_apart(void **state)
{
	struct fixture *f = *state;
	struct note note;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	note_init(&note, "a", 100);
	note.submission.tenant = PN_STR("shop2");
	note.events[0].tenant = PN_STR("shop2");
	pn_event_seal(&note.events[0]);
	submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(
	    db(f->db, "SELECT count(DISTINCT id) FROM "
		      "paynotify.events WHERE key = 'webhook:alipay:a'"),
	    2);
}

/* If it failed: success would be answered although no standby keeps a copy. */
static void
test_store__refuses_without_a_standby_where_one_is_required(void **state)
{
	struct fixture *f = *state;
	struct pn_store_options options = {
		.dsn = f->dsn,
		.writers = 1,
		.commit_timeout_us = LONG_US,
		.key_hot_us = PN_SECOND_US,
		.require_sync = true,
	};
	struct pn_error error;
	struct pn_store *store;
	struct note note;

	assert_int_equal(pn_store_open(&options, &store, &error), 0);
	assert_int_equal(put(store, "a", 100), PN_STORE_UNAVAILABLE);
	note_init_quarantine(&note, "n7", "could not decrypt");
	submit(store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_UNAVAILABLE);
	note_done(&note);
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), 0);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.idempotency_keys"),
	    0);
}

/* If it failed: defaults of the server, database or role would change what a
 * commit means or how a statement is planned. */
static void
test_store__pins_the_settings_of_its_sessions(void **state)
{
	struct fixture *f = *state;
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

/* If it failed: the daemon would need more rights than to insert, or would not
 * work with those it is given. */
static void
test_store__works_with_the_rights_of_a_receiver(void **state)
{
	struct fixture *f = *state;
	char dsn[DSN_BYTES + 64], sqlstate[6];
	struct pn_refusal refusal = {
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.verdict = PN_STR("malformed"),
	};
	struct pn_store_options options = {
		.dsn = dsn,
		.writers = 2,
		.commit_timeout_us = LONG_US,
		.key_hot_us = 1,
		.janitor = true,
	};
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
	submit(store, &note);
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

	conn = db_open(dsn);
	db_send(conn, "SELECT * FROM paynotify.event_log");
	assert_string_equal(db_end(conn, sqlstate), "42501");
	db_send(conn, "UPDATE paynotify.idempotency_keys SET state = 'FAILED'");
	assert_string_equal(db_end(conn, sqlstate), "42501");
	db_send(conn, "DELETE FROM paynotify.idempotency_archive");
	assert_string_equal(db_end(conn, sqlstate), "42501");
	PQfinish(conn);
}

enum { INGEST_PARAMS = 33 };

/* Prepares the ingest statement on empty tables, as a writer does, and counts
 * lines of its plan that match. */
static int64_t
plan_lines(PGconn *conn, const char *pattern)
{
	char nulls[6 * INGEST_PARAMS] = "NULL", sql[sizeof(nulls) + 64];
	PGresult *result;
	int64_t lines = 0;

	for (int i = 1; i < INGEST_PARAMS; i++)
		memcpy(nulls + 6 * (size_t)i - 2, ", NULL", sizeof(", NULL"));

	(void)snprintf(sql, sizeof(sql), "EXPLAIN EXECUTE ingest(%s)", nulls);
	result = PQexec(conn, sql);
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	for (int i = 0; i < PQntuples(result); i++)
		lines += strstr(PQgetvalue(result, i, 0), pattern) != NULL;
	PQclear(result);
	return lines;
}

static void
check_plan(PGconn *conn)
{
	assert_int_equal(plan_lines(conn, "Seq Scan on"), 0);
	assert_int_equal(
	    plan_lines(conn, "Index Scan using "
			     "idempotency_archive_pkey on idempotency_archive"),
	    1);
	assert_int_equal(
	    plan_lines(conn, "Index Scan using "
			     "idempotency_keys_pkey on idempotency_keys"),
	    1);
	assert_int_equal(plan_lines(conn, "Nested Loop"), 0);
	assert_int_equal(plan_lines(conn, "Merge"), 0);
}

/* If it failed: a statement prepared on empty tables would cache a sequential
 * scan and crawl as they grow. */
static void
test_store__never_plans_a_sequential_scan(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = db_open(f->dsn);
	PGresult *result;

	(void)db(conn, "%s", pn_sql_session);
	result = PQprepare(conn, "ingest", pn_sql_ingest, 0, NULL);
	assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	check_plan(conn);
	(void)db(f->db,
	    "ANALYZE paynotify.idempotency_keys, "
	    "paynotify.idempotency_archive"); /* known to be empty */
	check_plan(conn);
	(void)db(f->db, "INSERT INTO paynotify.idempotency_archive SELECT "
			"'shop1', sha256(i::text::bytea), '', now() "
			"FROM generate_series(1, 50000) i");
	check_plan(conn);
	(void)db(f->db, "ANALYZE paynotify.idempotency_archive");
	check_plan(conn);
	PQfinish(conn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_store__records_once_with_evidence_and_receipts),
		TEST(test_store__quarantines_a_conflict_once),
		TEST(test_store__finds_keys_in_the_permanent_tier),
		TEST(test_store__archives_only_expired_completed_webhook_keys),
		TEST(test_store__records_all_events_of_a_notification),
		TEST(test_store__takes_a_notification_that_repeats_itself),
		TEST(test_store__quarantines_what_is_signed_but_unreadable),
		TEST(test_store__isolates_an_event_that_the_database_refuses),
		TEST(test_store__writes_receipts_of_refusals),
		TEST(test_store__keeps_tenants_apart),
		TEST(
		    test_store__refuses_without_a_standby_where_one_is_required),
		TEST(test_store__pins_the_settings_of_its_sessions),
		TEST(test_store__works_with_the_rights_of_a_receiver),
		TEST(test_store__never_plans_a_sequential_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
