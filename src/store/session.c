/*
 * A session of the store: connected, settings pinned, schema checked. What the
 * server, the database or the role have as defaults does not matter; what an
 * operator must do is said in the text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/migrate.h"

#include "statements.h"
#include "store_internal.h"

/* Schemas or tables that are missing. */
static bool
is_missing(const char *sqlstate)
{
	return strcmp(sqlstate, "42P01") == 0 || /* undefined table */
	       strcmp(sqlstate, "3F000") == 0;   /* invalid schema name */
}

static int
check_schema(struct pn_conn *conn, enum pn_store_health *ret_health,
    struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_params none = { 0 };
	long number;
	int r;

	r = pn_conn_query(conn, pn_sql_schema, &none, &result, error);
	if (r > 0 && is_missing(conn->sqlstate)) {
		*ret_health = PN_STORE_NO_SCHEMA;
		return pn_error_set(error, -ENOENT,
		    "the database has no schema paynotify: run `paynotifyctl "
		    "db migrate`");
	}
	if (r > 0 && strcmp(conn->sqlstate, "42501") == 0) {
		*ret_health = PN_STORE_NO_SCHEMA;
		return pn_error_prefix(error, -EACCES,
		    "this role may not use the schema paynotify: make it a "
		    "member of paynotify_receiver to receive, of "
		    "paynotify_deliverer to deliver: ");
	}
	if (r != 0)
		return r < 0 ? r : -EIO;
	if (strcmp(PQgetvalue(result, 0, 1), "t") == 0) {
		conn->turn++;
		return pn_error_set(error, -EROFS,
		    "host \"%s\" is a standby: nothing can be recorded there",
		    PQhost(conn->pg));
	}
	/* PostgreSQL's own text of an int4. */
	number = 0;
	for (const char *p = PQgetvalue(result, 0, 0); *p != '\0'; p++)
		number = number * 10 + (*p - '0');
	if ((size_t)number < pn_migration_count()) {
		*ret_health =
		    number == 0 ? PN_STORE_NO_SCHEMA : PN_STORE_OLD_SCHEMA;
		return pn_error_set(error, -ENOENT,
		    "the schema is at migration %ld of %zu: run "
		    "`paynotifyctl db migrate`",
		    number, pn_migration_count());
	}
	return 0;
}

int
pn_session_connect(struct pn_conn *conn, const char *dsn, int stop_fd,
    const char *settings, enum pn_store_health *ret_health,
    struct pn_error *ret_error)
{
	int r;

	*ret_health = PN_STORE_CONNECTING;
	r = pn_conn_open(conn, dsn, stop_fd, ret_error);
	if (r == 0)
		r = pn_conn_exec(conn, settings, NULL, ret_error);
	if (r == 0)
		r = check_schema(conn, ret_health, ret_error);
	if (r != 0)
		pn_conn_close(conn);
	return r > 0 ? -EIO : r;
}

int
pn_session_open(struct pn_conn *conn, const struct pn_store *store,
    enum pn_store_health *ret_health, struct pn_error *ret_error)
{
	return pn_session_connect(conn, store->dsn, store->stop.fd,
	    pn_sql_session, ret_health, ret_error);
}
