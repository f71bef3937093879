/*
 * The janitor's function in the database: it moves keys under a lock that keeps
 * ingest out, so what it does under that lock, and behind whom it waits for it,
 * is everybody's delay. That no key slips between the tiers is in
 * test_store_races.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/buf.h"
#include "paynotify/moment.h"

#include "store_support.h"

/* If it failed: behind an autovacuum of the keys all receiving would stand still
 * for as long as the janitor waits, again and again; or it would take its lock
 * although there is nothing to move. */
static void
test_janitor__does_not_queue_up_behind_a_vacuum(void **state)
{
	struct store_fixture *f = *state;
	PGconn *janitor = db_open(f->dsn);
	char sqlstate[6] = "";

	/* As VACUUM and ANALYZE do. */
	(void)db(f->other, "BEGIN; LOCK TABLE paynotify.idempotency_keys IN "
			   "SHARE UPDATE EXCLUSIVE MODE");
	/* Whoever waits for the lock now is found out. */
	(void)db(f->db, "ALTER FUNCTION paynotify.archive_expired_keys "
			"SET lock_timeout = '60s'");
	(void)db(janitor, "SET statement_timeout = '10s'");
	assert_int_equal(put(f->store, "new", 100), PN_STORE_RECORDED);
	assert_int_equal(
	    db(janitor, "SELECT paynotify.archive_expired_keys(500)"), 0);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	db_send(janitor, "SELECT paynotify.archive_expired_keys(500)");
	assert_string_equal(db_end(janitor, sqlstate), "55P03");
	(void)db(f->other, "COMMIT");
	assert_int_equal(
	    db(janitor, "SELECT paynotify.archive_expired_keys(500)"), 1);
	PQfinish(janitor);
}

static void
append_notice(void *payload, const char *message)
{
	struct pn_buf *plans = payload;

	pn_buf_add_text(plans, message);
}

static int
count_in(const char *text, const char *what)
{
	int count = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		count++;
	return count;
}

/* If it failed: the janitor would walk the dead entries of the index, which an
 * old snapshot keeps by the million, under the lock that keeps ingest out. */
static void
test_janitor__chooses_before_it_locks(void **state)
{
	struct store_fixture *f = *state;
	struct pn_buf plans = pn_buf_init(1 << 20);
	const char *text, *choice, *move;

	/* Few are expired: the index is tempting. */
	(void)db(f->db,
	    "INSERT INTO paynotify.idempotency_keys (tenant, request_path, "
	    "key, request_hash, state, created_at, expires_at) SELECT 'shop1', "
	    "'notify/alipay', i, '', 'COMPLETED', now(), now() + interval "
	    "'1 h' * (i - 3) FROM generate_series(1, 3000) i; "
	    "ANALYZE paynotify.idempotency_keys");
	(void)db(f->other, "LOAD 'auto_explain'; "
			   "SET auto_explain.log_min_duration = 0; "
			   "SET auto_explain.log_nested_statements = on; "
			   "SET auto_explain.log_level = notice");
	(void)PQsetNoticeProcessor(f->other, append_notice, &plans);
	assert_int_equal(
	    db(f->other, "SELECT paynotify.archive_expired_keys(500)"), 3);
	assert_false(pn_buf_failed(&plans));
	text = pn_buf_str(&plans).data;
	assert_int_equal(count_in(text, "idempotency_keys_expires_at"), 1);
	choice = strstr(text, "idempotency_keys_expires_at");
	/* Another statement, behind the lock, moves. */
	move = strstr(choice, "Query Text: ");
	assert_non_null(move);
	assert_non_null(strstr(move, "Tid Scan on idempotency_keys"));
	pn_buf_done(&plans);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_janitor__does_not_queue_up_behind_a_vacuum),
		TEST(test_janitor__chooses_before_it_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
