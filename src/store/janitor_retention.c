/*
 * Drops the months of receipts, delivery_attempts and evidence that are older
 * than [retention] says.
 *
 * A partition goes in steps, of which statements/retention.sql names the next
 * from nothing but what is there. So a step that was interrupted, here or by
 * another daemon's end, is taken up by whoever comes next.
 *
 *   attached --mark--> marked --DETACH CONCURRENTLY--> detached --drop--> gone
 *                           \                          ^
 *                            \--interrupted: pending --/ FINALIZE
 *
 * Receiving never waits for any of it. DETACH ... CONCURRENTLY takes locks that
 * no INSERT conflicts with, and lets those end first that still look into the
 * partition, holding nothing meanwhile; then it locks the partition, which no new
 * statement knows any more; so does the drop. When it waits longer than the
 * session's lock_timeout, behind a dump that runs for hours, it gives up: the
 * partition stays pending, which hides it from new statements, and FINALIZE is
 * tried again, ever more rarely. FINALIZE holds a snapshot of its own while it
 * waits, so it must not wait long either.
 *
 * The session holds an advisory lock, so that one daemon does this at a time. If
 * its end leaves a backend behind that still waits, that backend keeps the lock,
 * for the seconds of its lock_timeout.
 *
 * What this does not do: touch event_log or the dedup memory, or a table that
 * make_partitions() has not made or an operator has detached.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

#include "janitor_internal.h"
#include "statements.h"

static const int64_t DAY_US = 24 * 3600 * PN_SECOND_US;
/* Until a partition that somebody reads is tried again. */
static const int64_t BLOCKED_US = 2 * PN_SECOND_US;
enum { BLOCKED_DOUBLINGS = 8 }; /* then to 8 min */
/* Steps of one turn: ten years of months that have expired at once. */
enum { STEPS_MAX = 4 * 12 * 10 };

/* What has a retention, and which. */
static const struct kept {
	const char *parent, *option;
	size_t age_offset; /* in struct pn_janitor */
} kept[] = {
	{ "receipts", "receipts", offsetof(struct pn_janitor, receipts_us) },
	{ "delivery_attempts", "receipts",
	    offsetof(struct pn_janitor, receipts_us) },
	{ "evidence", "evidence", offsetof(struct pn_janitor, evidence_us) },
};

/* Columns of statements/retention.sql. */
enum { NAME, WHAT, STATEMENT, ALLOWED, OWNER, ME };

/* What one step, or all of a table, came to, > 0. */
enum { MORE = 1, NOTHING, FORBIDDEN, BLOCKED, REFUSED };

static int64_t
age_of(const struct pn_janitor *janitor, const struct kept *table)
{
	int64_t age_us;

	memcpy(
	    &age_us, (const char *)janitor + table->age_offset, sizeof(age_us));
	return age_us;
}

static int
find_step(struct pn_hand *hand, const struct kept *table, PGresult **ret_step,
    struct pn_error *error)
{
	char age[24], now[24];

	(void)snprintf(
	    age, sizeof(age), "%" PRId64, age_of(hand->janitor, table));
	(void)snprintf(now, sizeof(now), "%" PRId64, pn_clock_realtime_us());
	return pn_conn_query(&hand->conn, pn_sql_retention,
	    &(struct pn_params){
		.count = 3,
		.values = (const char *const[]){ table->parent, age, now },
	    },
	    ret_step, error);
}

static void
report_rights(const struct kept *table, const PGresult *step)
{
	pn_log_every(DAY_US, PN_LOG_WARNING,
	    &(struct pn_log_about){ .subject = table->parent },
	    "could not drop \"%s\", which is older than [retention] %s: role "
	    "\"%s\" does not own it; set [database] admin_dsn to a role that "
	    "is, or is a member of, \"%s\"",
	    PQgetvalue(step, 0, NAME), table->option, PQgetvalue(step, 0, ME),
	    PQgetvalue(step, 0, OWNER));
}

/* MORE, NOTHING, FORBIDDEN, BLOCKED, REFUSED; < 0: the connection's end. */
static int
take_step(
    struct pn_hand *hand, const struct kept *table, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *step = NULL;
	int r;

	r = find_step(hand, table, &step, error);
	if (r != 0)
		return r < 0 ? r : REFUSED;
	if (PQntuples(step) == 0)
		return NOTHING;
	if (*PQgetvalue(step, 0, ALLOWED) != 't') {
		report_rights(table, step);
		return FORBIDDEN;
	}
	r = pn_conn_exec(
	    &hand->conn, PQgetvalue(step, 0, STATEMENT), NULL, error);
	if (r < 0)
		return r;
	if (r > 0 && strcmp(hand->conn.sqlstate, "55P03") == 0) {
		pn_log_every(DAY_US, PN_LOG_NOTICE,
		    &(struct pn_log_about){ .subject = table->parent },
		    "\"%s\" is to be dropped and waits for an old transaction "
		    "that may read it; it is tried again",
		    PQgetvalue(step, 0, NAME));
		return BLOCKED;
	}
	if (r > 0)
		return pn_error_prefix(
		    error, REFUSED, "\"%s\": ", PQgetvalue(step, 0, NAME));
	if (strcmp(PQgetvalue(step, 0, WHAT), "drop") == 0)
		pn_log_notice("dropped \"%s\": all of it is older than "
			      "[retention] %s",
		    PQgetvalue(step, 0, NAME), table->option);
	return MORE;
}

/* Whether this session is the one that does it. 0: yes. */
static int
take_lock(struct pn_hand *hand, bool *ret_mine, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r;

	r = pn_conn_exec(&hand->conn, pn_sql_retention_session, &result, error);
	if (r == 0)
		*ret_mine = *PQgetvalue(result, 0, 0) == 't';
	return r;
}

int
pn_duty_retention(
    struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	struct pn_janitor *janitor = hand->janitor;
	bool mine = false, blocked = false, refused = false;
	int r;

	r = take_lock(hand, &mine, error);
	if (r != 0 || !mine)
		return r;
	for (size_t i = 0; i < PN_COUNT(kept); i++) {
		if (age_of(janitor, &kept[i]) == 0)
			continue;
		r = MORE;
		for (int n = 0; r == MORE && n < STEPS_MAX; n++)
			r = take_step(hand, &kept[i], error);
		if (r < 0)
			return r;
		blocked |= r == BLOCKED;
		refused |= r == REFUSED;
	}
	if (blocked) {
		*ret_rest_us = BLOCKED_US << janitor->retention_blocked;
		if (janitor->retention_blocked < BLOCKED_DOUBLINGS)
			janitor->retention_blocked++;
	} else {
		janitor->retention_blocked = 0;
	}
	return refused ? PN_CONN_REFUSED : 0;
}
