/*
 * One attempt to commit a lane's batch, and what becomes of each member.
 *
 *   committed      done(), by the lane's run()
 *   connection     back into the queue, marked sent_again: whether it was
 *   lost           committed is unknown, and sending it again finds out, since a
 *                  claim knows its own by its token and a settlement too
 *   refused        nothing of it is stored: each member is sent by itself, with
 *                  a short lock_timeout, so that one harms no other
 *   refused alone  by a lock: a claim is told that its key is busy, a settlement
 *                  is tried again until its deadline; by the server's state:
 *                  again on a new connection; for want of a right or of the
 *                  schema: the same, if it is patient, since an operator may be
 *                  at it; else, and by its data: given up
 *
 * An application's transaction may have a key for as long as it likes, and each
 * claim of that key would cost all others the lock_timeout. So such keys are
 * remembered for a moment, and what is claimed under them goes alone at once.
 *
 * Invariant: done() says more than that the database did not say only for what a
 * committed statement said so.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/str.h"

#include "claims_internal.h"

/* How long one that met a lock waits before it is tried again. */
static const int64_t RETRY_US = 100 * PN_MILLISECOND_US;
/* How long a key is remembered as held; claims of it come once a second. */
static const int64_t HELD_US = 3 * PN_SECOND_US;
static const int64_t LOG_INTERVAL_US = 10 * PN_SECOND_US;
static const char SHORT_LOCKS[] = "SET lock_timeout = '20ms'";
static const char USUAL_LOCKS[] = "SET lock_timeout = '300ms'";

/* What an SQL error says about its cause. */
enum cause {
	CAUSE_LOCK,   /* an open transaction has the key */
	CAUSE_RACE,   /* others stood in its way; again, soon */
	CAUSE_SERVER, /* not this session: again on another one */
	CAUSE_SETUP,  /* a right or the schema is missing */
	CAUSE_DATA,   /* this element */
};

static enum cause
cause_of(const struct pn_conn *conn)
{
	/* Classes of PostgreSQL's appendix A. */
	static const struct {
		const char *class;
		enum cause cause;
	} causes[] = {
		{ "55P03", CAUSE_LOCK },   /* lock_not_available */
		{ "40", CAUSE_RACE },      /* deadlock, serialization */
		{ "08", CAUSE_SERVER },    /* connection */
		{ "25006", CAUSE_SERVER }, /* read only: a standby */
		{ "26", CAUSE_SERVER },    /* no such prepared statement */
		{ "53", CAUSE_SERVER },    /* out of something */
		{ "57", CAUSE_SERVER },    /* an operator stepped in */
		{ "58", CAUSE_SERVER },    /* I/O */
		{ "XX", CAUSE_SERVER },    /* internal */
		{ "3F", CAUSE_SETUP },     /* no such schema */
		{ "42", CAUSE_SETUP },     /* no such object, no right */
		{ "0A", CAUSE_SETUP },     /* result type changed */
	};

	for (size_t i = 0; i < PN_COUNT(causes); i++)
		if (strncmp(conn->sqlstate, causes[i].class,
			strlen(causes[i].class)) == 0)
			return causes[i].cause;
	return CAUSE_DATA;
}

/* -- keys that are held ------------------------------------------------------ */

bool
pn_lane_is_held(const struct pn_lane *lane, const struct pn_claims_item *item,
    int64_t now_us)
{
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	bool digested = false;

	for (size_t i = 0; i < PN_LANE_HELD_MAX; i++) {
		if (lane->held[i].until_us <= now_us)
			continue;
		if (!digested)
			pn_claim_digest(item->scope, digest);
		digested = true;
		if (memcmp(lane->held[i].digest, digest, sizeof(digest)) == 0)
			return true;
	}
	return false;
}

static void
remember_held(struct pn_lane *lane, const struct pn_claims_item *item)
{
	int64_t now_us = pn_clock_monotonic_us();
	struct pn_lane_held *held;

	if (pn_lane_is_held(lane, item, now_us))
		return;
	held = &lane->held[lane->held_next++ % PN_LANE_HELD_MAX];
	pn_claim_digest(item->scope, held->digest);
	held->until_us = now_us + HELD_US;
}

/* -- what becomes of them ---------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	const struct pn_claim_scope *x =
	    (*(struct pn_claims_item *const *)a)->scope;
	const struct pn_claim_scope *y =
	    (*(struct pn_claims_item *const *)b)->scope;
	int r;

	r = pn_str_compare(x->tenant, y->tenant);
	if (r == 0)
		r = pn_str_compare(x->route, y->route);
	return r != 0 ? r : pn_str_compare(x->key, y->key);
}

static void
log_refused(const struct pn_lane *lane, const char *what)
{
	const char *state = lane->conn.sqlstate, *advice = "";

	if (strcmp(state, "42501") == 0)
		advice = "make the role of [database] dsn a member of "
			 "paynotify_receiver: ";
	else if (cause_of(&lane->conn) == CAUSE_SETUP)
		advice = "run `paynotifyctl db migrate`: ";
	pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR, NULL,
	    "the guard's %s %s: %s%s (%s)", lane->kind->name, what, advice,
	    lane->fault.text, state);
}

static void
log_lost(const struct pn_lane *lane)
{
	if (lane->conn.warned)
		pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR, NULL,
		    "the database warned while it committed, so the outcome is "
		    "unknown and the guard's %s are sent again; mend what it "
		    "warns of: %s",
		    lane->kind->name, lane->conn.warning);
	else
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
		    "outcome of a commit is unknown, the guard's %s are sent "
		    "again: %s",
		    lane->kind->name, lane->fault.text);
}

/* Whether they were committed is unknown. r: why. */
static void
return_lost(struct pn_lane *lane, struct pn_claims_item *const *items,
    size_t count, int r)
{
	if (r != -ECANCELED)
		log_lost(lane);
	for (size_t i = 0; i < count; i++)
		items[i]->sent_again = true;
	pn_lane_return(lane, items, count);
}

static void
give_up(struct pn_lane *lane, struct pn_claims_item *const *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		lane->kind->give_up(items[i]);
	pn_lane_answered(lane, count);
}

/* The operator's doing, or a migration's that is not through. */
static void
settle_setup(
    struct pn_lane *lane, struct pn_claims_item *const *items, size_t count)
{
	log_refused(lane, "are refused");
	for (size_t i = count; i-- > 0;)
		if (items[i]->patient)
			pn_lane_return(lane, &items[i], 1);
		else
			give_up(lane, &items[i], 1);
}

/* Others stood in its way: again, by itself, until its deadline. */
static int
retry(struct pn_lane *lane, struct pn_claims_item *item)
{
	item->retry_at_us = pn_clock_monotonic_us() + RETRY_US;
	pn_lane_return(lane, &item, 1);
	return 0;
}

/* A transaction that is open has its key. One that was sent before may have
 * itself in its way: a session that is not quite gone. */
static int
settle_held(struct pn_lane *lane, struct pn_claims_item *item)
{
	remember_held(lane, item);
	if (item->sent_again || lane->kind->held == NULL)
		return retry(lane, item);
	lane->kind->held(item);
	pn_lane_answered(lane, 1);
	return 0;
}

/* One that was refused by itself. */
static int
settle_refused(struct pn_lane *lane, struct pn_claims_item *item)
{
	switch (cause_of(&lane->conn)) {
	case CAUSE_LOCK: return settle_held(lane, item);
	case CAUSE_RACE: return retry(lane, item);
	case CAUSE_SERVER:
		log_refused(lane, "are sent again");
		pn_lane_return(lane, &item, 1);
		return -ECONNRESET;
	case CAUSE_SETUP: settle_setup(lane, &item, 1); return -ECONNRESET;
	case CAUSE_DATA: break;
	}
	log_refused(lane, "are refused");
	give_up(lane, &item, 1);
	return 0;
}

static int
set_locks(struct pn_lane *lane, const char *sql)
{
	return pn_conn_exec(&lane->conn, sql, NULL, &lane->fault) == 0
		   ? 0
		   : -ECONNRESET;
}

/* Each by itself. -errno: what is not answered is back in the queue. */
static int
attempt_alone(
    struct pn_lane *lane, struct pn_claims_item *const *items, size_t count)
{
	int64_t now_us;
	size_t i = 0;
	int r;

	r = set_locks(lane, SHORT_LOCKS);
	for (; r == 0 && i < count; i++) {
		struct pn_claims_item *item = items[i];

		now_us = pn_clock_monotonic_us();
		if (item->deadline_us <= now_us) {
			give_up(lane, &item, 1);
			continue;
		}
		item->alone = true;
		r = lane->kind->run(lane, &item, 1, &lane->fault);
		if (r == 0)
			pn_lane_answered(lane, 1);
		else if (r < 0)
			return_lost(lane, &item, 1, r);
		else
			r = settle_refused(lane, item);
	}
	if (i < count)
		pn_lane_return(lane, items + i, count - i);
	return r == 0 ? set_locks(lane, USUAL_LOCKS) : r;
}

/* They were refused together. */
static int
settle_company(struct pn_lane *lane)
{
	switch (cause_of(&lane->conn)) {
	case CAUSE_SERVER:
		log_refused(lane, "are sent again");
		pn_lane_return(lane, lane->batch, lane->count);
		return -ECONNRESET;
	case CAUSE_SETUP:
		settle_setup(lane, lane->batch, lane->count);
		return -ECONNRESET;
	case CAUSE_LOCK:
	case CAUSE_RACE:
	case CAUSE_DATA: break;
	}
	return attempt_alone(lane, lane->batch, lane->count);
}

static int
attempt_company(struct pn_lane *lane)
{
	int r;

	qsort(lane->batch, lane->count, sizeof(lane->batch[0]), compare);
	lane->returned = 0;
	r = lane->kind->run(lane, lane->batch, lane->count, &lane->fault);
	if (r > 0)
		return settle_company(lane);
	if (r < 0)
		return_lost(lane, lane->batch, lane->count, r);
	else
		pn_lane_answered(lane, lane->count - lane->returned);
	return r;
}

int
pn_lane_attempt(struct pn_lane *lane)
{
	int r;

	assert(lane->count >= 1 && lane->count <= PN_BATCH_EVENTS_MAX);
	if (lane->batch[0]->alone)
		r = attempt_alone(lane, lane->batch, lane->count);
	else
		r = attempt_company(lane);
	if (r == 0)
		lane->backoff.failures = 0;
	return r;
}

int
pn_lane_send(struct pn_lane *lane, struct pn_array *arrays, size_t count,
    PGresult **ret_result, struct pn_error *ret_error)
{
	const char *values[PN_LANE_PARAMETERS_MAX];
	int lengths[PN_LANE_PARAMETERS_MAX], formats[PN_LANE_PARAMETERS_MAX];
	bool failed = false;
	struct pn_str s;
	int r;

	assert(count <= PN_LANE_PARAMETERS_MAX);
	for (size_t i = 0; i < count; i++) {
		s = pn_array_finish(&arrays[i]);
		failed |= s.data == NULL;
		values[i] = s.data;
		lengths[i] = (int)s.len;
		formats[i] = 1;
	}
	if (failed) {
		/* As if the server had no memory: nothing was sent. */
		(void)snprintf(
		    lane->conn.sqlstate, sizeof(lane->conn.sqlstate), "53200");
		r = pn_error_set(ret_error, PN_CONN_REFUSED, "out of memory");
	} else {
		r = pn_conn_run(&lane->conn, lane->kind->name,
		    &(struct pn_params){
			.count = (int)count,
			.values = values,
			.lengths = lengths,
			.formats = formats,
		    },
		    ret_result, ret_error);
	}
	for (size_t i = 0; i < count; i++)
		pn_array_done(&arrays[i]);
	return r;
}
