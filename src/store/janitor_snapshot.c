/*
 * Watches the oldest snapshot, and warns when it stays for long.
 *
 * PostgreSQL keeps every row that an open snapshot may still see. The hand-off is
 * built not to slow down behind one (sql/0004), but its tables grow until it
 * ends, and so does everything else in the database. Who forgot to end a
 * transaction does not know that; so this says who it is and what to do.
 *
 * What is watched is the transaction number that is looked back to, not who
 * does: sessions come and go with one number as long as its cause stays. Two
 * looks find the same number only if it was held all the time between.
 *
 * What this does not do: end anything.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

#include "janitor_internal.h"
#include "statements.h"

/* An old snapshot is told again after this. */
static const int64_t TOLD_US = 3600 * PN_SECOND_US;
enum { LOOKS_A_LIMIT = 10 };

/* Columns of statements/snapshot.sql. */
enum { XID, AGE, KIND, NAME, ROLE, DETAIL };

/* How to say who it is and what to do. */
static void
describe(const PGresult *row, char *ret_text, size_t text_bytes)
{
	const char *kind = PQgetvalue(row, 0, KIND);
	const char *name = PQgetvalue(row, 0, NAME);
	const char *role = PQgetvalue(row, 0, ROLE);
	const char *detail = PQgetvalue(row, 0, DETAIL);

	if (strcmp(kind, "prepared") == 0)
		(void)snprintf(ret_text, text_bytes,
		    "prepared transaction \"%s\" of role \"%s\" in database "
		    "\"%s\"; COMMIT PREPARED or ROLLBACK PREPARED it",
		    name, role, detail);
	else if (strcmp(kind, "slot") == 0)
		(void)snprintf(ret_text, text_bytes,
		    "replication slot \"%s\"; bring its standby back, or "
		    "SELECT pg_drop_replication_slot('%s')",
		    name, name);
	else if (strcmp(kind, "standby") == 0)
		(void)snprintf(ret_text, text_bytes,
		    "process %s (application \"%s\", role \"%s\"), for a query "
		    "on a standby with hot_standby_feedback; end that query",
		    name, detail, role);
	else
		(void)snprintf(ret_text, text_bytes,
		    "process %s (application \"%s\", role \"%s\"); end its "
		    "transaction, or SELECT pg_terminate_backend(%s)",
		    name, detail, role, name);
}

static void
forget(struct pn_janitor *janitor)
{
	if (janitor->snapshot.told_us != 0)
		pn_log_notice("the old snapshot has ended: the hand-off's "
			      "tables can be cleaned again");
	memset(&janitor->snapshot, 0, sizeof(janitor->snapshot));
}

static void
judge(struct pn_janitor *janitor, const PGresult *row, int64_t age)
{
	char who[PN_ERROR_TEXT_BYTES_MAX];
	int64_t now_us = pn_clock_monotonic_us(), held_us;

	if (strcmp(PQgetvalue(row, 0, XID), janitor->snapshot.xid) != 0) {
		forget(janitor);
		(void)snprintf(janitor->snapshot.xid,
		    sizeof(janitor->snapshot.xid), "%s",
		    PQgetvalue(row, 0, XID));
		janitor->snapshot.since_us = now_us;
	}
	held_us = now_us - janitor->snapshot.since_us;
	/* Of age 0 it keeps nothing. */
	if (held_us < janitor->snapshot_limit_us || age == 0)
		return;
	if (janitor->snapshot.told_us != 0 &&
	    now_us - janitor->snapshot.told_us < TOLD_US)
		return;
	janitor->snapshot.told_us = now_us;
	describe(row, who, sizeof(who));
	pn_log_warning("a snapshot has been open for %" PRId64 " s and %" PRId64
		       " transactions, and keeps the hand-off's tables from "
		       "being cleaned: %s",
	    held_us / PN_SECOND_US, age, who);
}

int
pn_duty_snapshot(
    struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_janitor *janitor = hand->janitor;
	struct pn_params none = { 0 };
	int64_t age = 0, rest_us = janitor->snapshot_limit_us / LOOKS_A_LIMIT;
	int r;

	if (rest_us < *ret_rest_us)
		*ret_rest_us = rest_us;
	r = pn_conn_query(&hand->conn, pn_sql_snapshot, &none, &result, error);
	if (r != 0)
		return r;
	if (PQntuples(result) == 0) {
		forget(janitor);
	} else {
		for (const char *p = PQgetvalue(result, 0, AGE); *p != '\0';
		     p++)
			age = age * 10 + (*p - '0');
		judge(janitor, result, age);
	}
	pn_metric_set(PN_METRIC_OLDEST_SNAPSHOT, age);
	return 0;
}
