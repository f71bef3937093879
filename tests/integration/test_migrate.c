/*
 * Migrations: once each, in order, whole or not at all, whoever runs them and
 * however often.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/migrate.h"

#include "store_support.h"

enum { NOTICE_BYTES = 1024 };

struct seen {
	size_t applied, already, pending, changed;
};

static void
on_report(const struct pn_migration *migration, const char *state,
    const char *applied_at, void *payload)
{
	struct seen *seen = payload;

	assert_int_equal(strlen(migration->sha256), 64);
	seen->applied += strcmp(state, "applied") == 0;
	seen->already += strcmp(state, "already") == 0;
	seen->pending += strcmp(state, "pending") == 0;
	seen->changed += strcmp(state, "changed") == 0;
	if (strcmp(state, "already") == 0 || strcmp(state, "applied") == 0)
		assert_int_equal(
		    strlen(applied_at), strlen("2026-03-01T02:00:05Z"));
}

/* If it failed: a second `db migrate` would break what the first made, or the
 * status would tell an operator something else than the truth. */
static void
test_migrate__twice_is_once(void **state)
{
	struct seen seen = { 0 };
	struct pn_error error;
	char dsn[DSN_BYTES];
	size_t count = pn_migration_count();
	PGconn *conn;

	(void)state;
	database_empty(dsn, "template1");
	assert_int_equal(pn_migrate_status(dsn, on_report, &seen, &error), 1);
	assert_int_equal(seen.pending, count);
	conn = db_open(dsn);
	assert_int_equal(db(conn, "SELECT count(*) FROM pg_namespace WHERE "
				  "nspname = 'paynotify'"),
	    0); /* status only looks */
	assert_int_equal(pn_migrate(dsn, on_report, &seen, &error), 0);
	assert_int_equal(seen.applied, count);
	assert_int_equal(pn_migrate(dsn, on_report, &seen, &error), 0);
	assert_int_equal(seen.already, count);
	seen = (struct seen){ 0 };
	assert_int_equal(pn_migrate_status(dsn, on_report, &seen, &error), 0);
	assert_int_equal(seen.applied, count);
	assert_int_equal(db(conn, "SELECT count(*) FROM "
				  "paynotify.migrations"),
	    count);
	/* Two years ahead, in each of the three tables, no default. */
	assert_true(
	    db(conn,
		"SELECT count(*) FROM pg_inherits WHERE inhparent "
		"IN (SELECT oid FROM pg_class WHERE relkind = 'p')") >= 3 * 25);
	assert_int_equal(db(conn, "SELECT count(*) FROM pg_partitioned_table "
				  "WHERE partdefid <> 0"),
	    0);
	PQfinish(conn);
}

static void *
migrate_main(void *payload)
{
	struct pn_error error;

	return (void *)(intptr_t)pn_migrate(payload, NULL, NULL, &error);
}

/* If it failed: hosts that are set up at the same time would trip over each
 * other. */
static void
test_migrate__at_the_same_time_is_once(void **state)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	char dsn[DSN_BYTES];
	PGconn *conn;
	void *r;

	(void)state;
	database_empty(dsn, "template1");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, migrate_main, dsn), 0);
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], &r);
		assert_null(r);
	}
	conn = db_open(dsn);
	assert_int_equal(db(conn, "SELECT count(*) FROM "
				  "paynotify.migrations"),
	    pn_migration_count());
	PQfinish(conn);
}

/* If it failed: two installations of one release could have different schemas
 * without anybody noticing. */
static void
test_migrate__refuses_a_changed_file(void **state)
{
	struct seen seen = { 0 };
	struct pn_error error;
	char dsn[DSN_BYTES];
	PGconn *conn;

	(void)state;
	database_new(dsn);
	conn = db_open(dsn);
	(void)db(conn, "UPDATE paynotify.migrations SET sha256 = 'x' "
		       "WHERE number = 1");
	assert_true(pn_migrate(dsn, on_report, &seen, &error) < 0);
	assert_non_null(strstr(error.text, "0001_tables was changed"));
	assert_int_equal(seen.applied + seen.already, 0);
	assert_int_equal(pn_migrate_status(dsn, on_report, &seen, &error), 1);
	assert_int_equal(seen.changed, 1);
	PQfinish(conn);
}

/* If it failed: an older program would run on a schema that it does not know,
 * or a gap would be filled out of order. */
static void
test_migrate__refuses_a_newer_or_broken_schema(void **state)
{
	struct pn_error error;
	char dsn[DSN_BYTES];
	PGconn *conn;

	(void)state;
	database_new(dsn);
	conn = db_open(dsn);
	(void)db(conn,
	    "INSERT INTO paynotify.migrations (number, name, sha256) "
	    "SELECT max(number) + 1, 'later', '' FROM paynotify.migrations");
	assert_true(pn_migrate(dsn, NULL, NULL, &error) < 0);
	assert_non_null(strstr(error.text, "newer program"));
	(void)db(conn, "DELETE FROM paynotify.migrations WHERE number = 1");
	assert_true(pn_migrate(dsn, NULL, NULL, &error) < 0);
	assert_non_null(strstr(error.text, "migration 1 is missing"));
	PQfinish(conn);
}

/* If it failed: a migration that breaks off would leave half of itself. */
static void
test_migrate__leaves_nothing_half_done(void **state)
{
	struct seen seen = { 0 };
	struct pn_error error;
	char dsn[DSN_BYTES];
	PGconn *conn;

	(void)state;
	database_empty(dsn, "template1");
	conn = db_open(dsn);
	/* In the way of the first one, at its end. */
	(void)db(conn, "CREATE SCHEMA paynotify; "
		       "CREATE VIEW paynotify.events AS SELECT 1");
	assert_true(pn_migrate(dsn, on_report, &seen, &error) < 0);
	assert_non_null(strstr(error.text, "0001_tables"));
	assert_non_null(strstr(error.text, "already exists"));
	assert_int_equal(seen.applied, 0);
	assert_int_equal(db(conn, "SELECT count(*) FROM pg_class WHERE relname "
				  "= 'receipts'"),
	    0);
	(void)db(conn, "DROP VIEW paynotify.events");
	assert_int_equal(pn_migrate(dsn, on_report, &seen, &error), 0);
	assert_int_equal(seen.applied, pn_migration_count());
	PQfinish(conn);
}

static void
keep_notice(void *text, const char *message)
{
	(void)snprintf(text, NOTICE_BYTES, "%s", message);
}

/* If it failed: whoever owns only the database could not set it up, or would
 * not be told what is missing and that it takes a second time. */
static void
test_migrate__needs_no_superuser(void **state)
{
	char dsn[DSN_BYTES], as_user[DSN_BYTES + 64], notice[NOTICE_BYTES] = "";
	struct pn_error error;
	struct pn_store *store;
	PGconn *conn, *plain;
	char *roles, *rest;

	(void)state;
	database_empty(dsn, "template1");
	conn = db_open(dsn);
	(void)db(conn, "DO $$ BEGIN CREATE ROLE pn_test_plain LOGIN; EXCEPTION "
		       "WHEN duplicate_object THEN NULL; END $$");
	(void)snprintf(as_user, sizeof(as_user), "%s user=pn_test_plain", dsn);
	assert_true(pn_migrate(as_user, NULL, NULL, &error) < 0);
	assert_non_null(strstr(error.text, "GRANT CREATE ON DATABASE"));
	(void)db(conn, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I OWNER "
		       "TO pn_test_plain', current_database()); END $$");
	assert_int_equal(pn_migrate(as_user, NULL, NULL, &error), 0);
	store = store_new(as_user, 1, 15 * 1000000);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	pn_store_close(store, 1000000);

	plain = db_open(as_user);
	(void)PQsetNoticeProcessor(plain, keep_notice, notice);
	(void)db(plain, "SELECT paynotify.grant_roles()");
	PQfinish(plain);
	roles = strstr(notice, "CREATE ROLE");
	assert_non_null(roles);
	rest = strstr(roles, " and then \"paynotifyctl db migrate\" once more");
	assert_non_null(rest);
	*rest = '\0';
	(void)db(conn, "%s", roles);
	assert_int_equal(pn_migrate(as_user, NULL, NULL, &error), 0);
	assert_int_equal(
	    db(conn, "SELECT count(*) FROM pg_roles WHERE NOT rolcanlogin AND "
		     "starts_with(rolname, 'paynotify_') AND "
		     "has_schema_privilege(oid, 'paynotify', 'USAGE')"),
	    5);
	PQfinish(conn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: the group roles are not there yet. */
		cmocka_unit_test(test_migrate__needs_no_superuser),
		cmocka_unit_test(test_migrate__twice_is_once),
		cmocka_unit_test(test_migrate__at_the_same_time_is_once),
		cmocka_unit_test(test_migrate__refuses_a_changed_file),
		cmocka_unit_test(
		    test_migrate__refuses_a_newer_or_broken_schema),
		cmocka_unit_test(test_migrate__leaves_nothing_half_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
