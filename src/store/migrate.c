/*
 * Schema migrations: what is compiled in is compared with the rows of
 * paynotify.migrations and applied where missing.
 *
 * Each migration and its row are one transaction, so that a migration is there
 * whole or not at all. An advisory lock of the session lets one migrator work
 * at a time; the next one then finds everything done. A file that was changed
 * after it was applied is refused: two installations of one number would
 * differ. A database that is ahead of the program is refused as well.
 *
 * After the migrations come the things that depend on the day or on the
 * cluster and are harmless to repeat: partitions ahead, group roles.
 *
 * What this does not do: go back. A release is undone by a later migration.
 */
#include "paynotify/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/parse.h"

#include "conn.h"
#include "migrate_internal.h"

enum { MIGRATIONS_MAX = 1000 };

static const char SETUP[] =
    "SET search_path = pg_catalog, pg_temp;"
    "SET default_transaction_isolation = 'read committed';"
    "SET default_transaction_read_only = off;"
    "SET synchronous_commit = on;"
    "SET client_min_messages = notice;"
    "SET statement_timeout = 0;"
    "SET idle_in_transaction_session_timeout = 0;"
    "SET lock_timeout = '60s'";

static const char LOCK[] = "SELECT pg_advisory_lock(7236835126380)";

static const char BOOTSTRAP[] =
    "DO $$ BEGIN\n"
    "IF to_regclass('paynotify.migrations') IS NULL THEN\n"
    "	IF to_regnamespace('paynotify') IS NULL THEN\n"
    "		CREATE SCHEMA paynotify;\n"
    "	END IF;\n"
    "	CREATE TABLE paynotify.migrations (\n"
    "		number integer PRIMARY KEY,\n"
    "		name text NOT NULL,\n"
    "		sha256 text NOT NULL,\n"
    "		applied_at timestamptz NOT NULL DEFAULT now(),\n"
    "		applied_by text NOT NULL DEFAULT session_user\n"
    "	);\n"
    "END IF; END $$";

static const char EXISTS[] =
    "SELECT to_regclass('paynotify.migrations') IS NOT NULL";

#define APPLIED_AT                               \
	"to_char(applied_at AT TIME ZONE 'UTC'," \
	" 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"

static const char APPLIED[] = "SELECT number, sha256, " APPLIED_AT
			      " FROM paynotify.migrations ORDER BY number";

static const char REMEMBER[] =
    "INSERT INTO paynotify.migrations (number, name, sha256)"
    " VALUES ($1, $2, $3) RETURNING " APPLIED_AT;

static const char AHEAD[] =
    "SELECT paynotify.make_partitions(now() + $1::interval),"
    " paynotify.grant_roles()";

size_t
pn_migration_count(void)
{
	return pn_migrations_count;
}

const struct pn_migration *
pn_migration_at(size_t index)
{
	assert(index < pn_migrations_count);
	return &pn_migrations[index];
}

/* An outcome > 0 of a statement is a fault here. */
static int
run(struct pn_conn *conn, const char *sql, PGresult **ret_result,
    struct pn_error *error)
{
	int r = pn_conn_exec(conn, sql, ret_result, error);

	return r > 0 ? -EIO : r;
}

/* The row of migration i among those applied, or NULL (ret_at then too). */
static const char *
applied_digest(const PGresult *applied, size_t i, const char **ret_at)
{
	/* Numbers have no gaps: row i is number i + 1, if it is there. */
	*ret_at = NULL;
	if (i >= (size_t)PQntuples(applied))
		return NULL;
	*ret_at = PQgetvalue(applied, (int)i, 2);
	return PQgetvalue(applied, (int)i, 1);
}

/* Rows must be 1, 2, 3 ... and known to this program. */
static int
check_rows(const PGresult *applied, struct pn_error *error)
{
	int rows = PQntuples(applied);
	char number[16];

	for (int i = 0; i < rows && i < MIGRATIONS_MAX; i++) {
		(void)snprintf(number, sizeof(number), "%d", i + 1);
		if (strcmp(PQgetvalue(applied, i, 0), number) != 0)
			return pn_error_set(error, -EINVAL,
			    "migration %d is missing in paynotify.migrations "
			    "although later ones are there",
			    i + 1);
	}
	if ((size_t)rows > pn_migrations_count)
		return pn_error_set(error, -EINVAL,
		    "the database has %d migrations, this program knows %u: "
		    "use the newer program",
		    rows, pn_migrations_count);
	return 0;
}

static int
apply(struct pn_conn *conn, const struct pn_migration *migration,
    PGresult **ret_row, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *row = NULL;
	char number[16];
	const char *values[] = { number, migration->name, migration->sha256 };
	struct pn_params params = { .count = 3, .values = values };
	int r;

	(void)snprintf(number, sizeof(number), "%d", migration->number);
	r = run(conn, "BEGIN", NULL, error);
	if (r == 0)
		r = run(conn, migration->sql, NULL, error);
	if (r == 0) {
		r = pn_conn_query(conn, REMEMBER, &params, &row, error);
		r = r > 0 ? -EIO : r;
	}
	if (r == 0)
		r = run(conn, "COMMIT", NULL, error);
	/* On failure the connection is closed, and the server rolls back. */
	if (r < 0)
		return pn_error_prefix(error, r,
		    "could not apply migration %s: ", migration->name);
	*ret_row = row;
	row = NULL; /* handed over */
	return 0;
}

static int
apply_one(struct pn_conn *conn, const struct pn_migration *migration,
    pn_migrate_report_fn report, void *payload, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *row = NULL;
	int r = apply(conn, migration, &row, error);

	if (r == 0 && report != NULL)
		report(migration, "applied", PQgetvalue(row, 0, 0), payload);
	return r;
}

static int
refuse_changed(const struct pn_migration *migration, struct pn_error *error)
{
	return pn_error_set(error, -EINVAL,
	    "migration %s was changed after it was applied: restore the file "
	    "and put the change into a new migration",
	    migration->name);
}

static int
apply_missing(struct pn_conn *conn, const PGresult *applied,
    pn_migrate_report_fn report, void *payload, struct pn_error *error)
{
	const struct pn_migration *migration;
	const char *digest, *at;
	size_t i;
	int r;

	for (i = 0; i < pn_migrations_count; i++) {
		digest = applied_digest(applied, i, &at);
		if (digest != NULL &&
		    strcmp(digest, pn_migrations[i].sha256) != 0)
			return refuse_changed(&pn_migrations[i], error);
	}
	for (i = 0; i < pn_migrations_count; i++) {
		migration = &pn_migrations[i];
		if (applied_digest(applied, i, &at) != NULL) {
			if (report != NULL)
				report(migration, "already", at, payload);
			continue;
		}
		r = apply_one(conn, migration, report, payload, error);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Partitions and roles. */
static int
look_ahead(struct pn_conn *conn, struct pn_error *error)
{
	char interval[32];
	const char *values[] = { interval };
	struct pn_params params = { .count = 1, .values = values };
	int r;

	(void)snprintf(
	    interval, sizeof(interval), "%d months", PN_PARTITION_MONTHS);
	r = pn_conn_query(conn, AHEAD, &params, NULL, error);
	if (r != 0)
		return pn_error_prefix(error, r < 0 ? r : -EIO,
		    "could not make partitions and grants: ");
	return 0;
}

static int
open_session(struct pn_conn *conn, const char *dsn, struct pn_error *error)
{
	int r = pn_conn_open(conn, dsn, -1, error);

	if (r < 0)
		return pn_error_prefix(
		    error, r, "could not connect to the database: ");
	return run(conn, SETUP, NULL, error);
}

int
pn_migrate(const char *dsn, pn_migrate_report_fn report, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_conn_close) struct pn_conn conn = pn_conn_none();
	PN_CLEANUP(pn_result_freep) PGresult *applied = NULL;
	int r;

	r = open_session(&conn, dsn, ret_error);
	if (r == 0)
		r = run(&conn, LOCK, NULL, ret_error);
	if (r < 0)
		return r;
	r = run(&conn, BOOTSTRAP, NULL, ret_error);
	if (r < 0)
		return pn_error_prefix(ret_error, r,
		    "could not make schema paynotify (run as the owner of the "
		    "database, or GRANT CREATE ON DATABASE): ");
	r = run(&conn, APPLIED, &applied, ret_error);
	if (r == 0)
		r = check_rows(applied, ret_error);
	if (r == 0)
		r = apply_missing(&conn, applied, report, payload, ret_error);
	if (r == 0)
		r = look_ahead(&conn, ret_error);
	return r;
}

int
pn_migrate_status(const char *dsn, pn_migrate_report_fn report, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_conn_close) struct pn_conn conn = pn_conn_none();
	PN_CLEANUP(pn_result_freep) PGresult *exists = NULL;
	PN_CLEANUP(pn_result_freep) PGresult *applied = NULL;
	const char *digest, *at = NULL, *state;
	int r, behind = 0;

	r = open_session(&conn, dsn, ret_error);
	if (r == 0)
		r = run(&conn, EXISTS, &exists, ret_error);
	if (r < 0)
		return r;
	if (strcmp(PQgetvalue(exists, 0, 0), "t") == 0) {
		r = run(&conn, APPLIED, &applied, ret_error);
		if (r == 0)
			r = check_rows(applied, ret_error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < pn_migrations_count; i++) {
		digest =
		    applied == NULL ? NULL : applied_digest(applied, i, &at);
		state = digest == NULL ? "pending"
			: strcmp(digest, pn_migrations[i].sha256) == 0
			    ? "applied"
			    : "changed";
		if (strcmp(state, "applied") != 0)
			behind = 1;
		if (report != NULL)
			report(&pn_migrations[i], state, at, payload);
	}
	return behind;
}
