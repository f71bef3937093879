/*
 * A key that is ours: what is told to the database of it.
 *
 * A lease is renewed every third of its length, as long as the upstream is
 * asked or the request waits for its turn, so that it may be short: it is how
 * long a key stays locked when this process dies. If a renewal finds it lost
 * the upstream is still heard out, but its answer can no longer be kept, and so
 * is not told either: another attempt may be under way, and two clients would
 * be told two truths. What was not sent yet is claimed again; and of what was
 * all but the one who leads join anew, also if only the settlement finds it lost:
 * the lease was not theirs, and an operator who released the key of a
 * request that hangs wants the next one to run, also here. So a notification of
 * a key that is ours has its lease renewed at once: only that tells whether it
 * still is.
 *
 * What is known of a lease is a time until which it holds at least. It counts
 * from the submission of the claim or the renewal that the database confirmed,
 * so that neither a slow commit nor a process that was stopped makes it longer
 * here than it is there.
 *
 * What the work came to is known here alone until it is stored, and forgotten it
 * would be done once more when the lease ends. So a settlement that takes longer
 * than a commit may is kept, and tried until no lease can be left; only who
 * waits for it is told. Its key's next request joins it as any that is under
 * way. It holds an answer, so it has a place among max_in_flight: with a
 * database that takes claims but no settlements a route does not go on for
 * ever.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "flight.h"

static void settled(struct pn_settlement *settlement);
static void renewed(struct pn_settlement *renewal);

/* -- settlements --------------------------------------------------------------------------------------- */

void
pn_flight_settle(
    struct pn_flight *flight, enum pn_settle_act act, int64_t now_us)
{
	struct pn_settlement *s = &flight->settlement;

	assert(!flight->renewing);
	assert(act != PN_SETTLE_COMPLETE || flight->result != NULL);
	flight->state = PN_FLIGHT_SETTLING;
	flight->since_us = now_us;
	*s = (struct pn_settlement){
		.scope = flight->scope,
		.act = act,
		.reason = pn_str_from(flight->reason),
		/* All that the database has granted, seen or unseen, it had
		 * granted by now. */
		.until_us = now_us + flight->route->conf->lease_us,
		.done = settled,
		.payload = flight,
	};
	memcpy(s->token, flight->claim.token, PN_LEASE_TOKEN_BYTES);
	if (act == PN_SETTLE_COMPLETE) {
		s->status = flight->result->status;
		s->headers = flight->result->kept;
		s->body = flight->result->body;
	}
	pn_claims_settle(flight->guard->claims, s);
}

void
pn_flight_keep(struct pn_flight *flight, struct pn_after *after)
{
	assert(flight->state == PN_FLIGHT_SETTLING && !flight->is_kept);
	flight->is_kept = true;
	pn_flight_room(flight)->running++;
	pn_flight_log(flight, PN_LOG_WARNING,
	    "what the work came to is not stored yet; it is tried for as long "
	    "as the lease may last");
	if (flight->settlement.act == PN_SETTLE_COMPLETE)
		pn_flight_abandon(flight, PN_PROBLEM_NOT_STORED, after);
	else
		pn_flight_tell(flight, after);
}

/* Nothing but this line keeps what the upstream said: the row of the key has
 * only that its holder did not come back. */
static void
log_forgotten(const struct pn_flight *f, bool lost)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "the upstream answered %d, %s",
	    f->settlement.status,
	    lost ? "but the lease was lost"
		 : "which could not be stored: for the key's next request it is"
		   " not known");
	pn_flight_log(f, PN_LOG_ERR, text);
}

/* What is not stored must not be told; what sets the key free may be told even
 * if it is not known to be free. */
static void
settled(struct pn_settlement *settlement)
{
	struct pn_flight *f = settlement->payload;
	struct pn_guard *guard = f->guard;
	bool completes = settlement->act == PN_SETTLE_COMPLETE;
	int64_t now_us;
	struct pn_after after;

	pn_after_init(&after);
	pn_guard_lock(guard);
	now_us = pn_clock_monotonic_us();
	assert(f->state == PN_FLIGHT_SETTLING);
	pn_series_observe(f->route->series.held, now_us - f->held_since_us);
	if (f->is_kept)
		pn_flight_leave_room(f, now_us);
	if (settlement->settled == PN_SETTLED_LOST) {
		pn_metric_add(PN_METRIC_GUARD_LEASES_LOST, 1);
		f->lost = true;
		pn_flight_hide(f, now_us, &after);
		if (completes)
			f->problem = PN_PROBLEM_LEASE_LOST;
	} else if (settlement->settled == PN_SETTLED_UNKNOWN) {
		if (completes)
			f->problem = PN_PROBLEM_NOT_STORED;
	} else if (completes) {
		pn_flight_remember(f);
	}
	if (completes && f->problem != PN_PROBLEM_NONE)
		log_forgotten(f, settlement->settled == PN_SETTLED_LOST);
	pn_flight_end(f, &after);
	pn_guard_unlock(guard);
	pn_after_do(&after);
}

void
pn_flight_renew(struct pn_flight *flight, int64_t now_us)
{
	struct pn_settlement *renewal = &flight->renewal;
	int64_t lease_us = flight->route->conf->lease_us;

	assert(!flight->renewing);
	flight->renewing = true;
	flight->renewal_since_us = now_us;
	flight->renew_at_us = now_us + lease_us / 3;
	*renewal = (struct pn_settlement){
		.scope = flight->scope,
		.act = PN_SETTLE_RENEW,
		.lease_us = lease_us,
		.done = renewed,
		.payload = flight,
	};
	memcpy(renewal->token, flight->claim.token, PN_LEASE_TOKEN_BYTES);
	pn_claims_settle(flight->guard->claims, renewal);
}

static void
lose(struct pn_flight *f)
{
	assert(!f->lost);
	f->lost = true;
	pn_metric_add(PN_METRIC_GUARD_LEASES_LOST, 1);
	pn_flight_log(f, PN_LOG_WARNING,
	    f->state == PN_FLIGHT_QUEUED
		? "the lease was lost before the upstream was asked"
		: "the lease was lost while the upstream was asked");
}

/* On a thread of the claims'. RUNNING, ANSWERED or QUEUED. */
static void
renewed(struct pn_settlement *renewal)
{
	struct pn_flight *f = renewal->payload;
	struct pn_guard *guard = f->guard;
	int64_t now_us;
	struct pn_after after;

	pn_after_init(&after);
	pn_guard_lock(guard);
	now_us = pn_clock_monotonic_us();
	assert(f->renewing);
	f->renewing = false;
	if (renewal->settled == PN_SETTLED)
		f->lease_until_us = f->renewal_since_us + renewal->lease_us;
	else if (renewal->settled == PN_SETTLED_LOST)
		lose(f);
	/* What is QUEUED claims again, with all who wait. */
	if (f->lost && f->state != PN_FLIGHT_QUEUED)
		pn_flight_hide(f, now_us, &after);
	if (f->state == PN_FLIGHT_ANSWERED)
		pn_flight_conclude(f, now_us, &after);
	else if (f->state == PN_FLIGHT_QUEUED)
		pn_flight_look_at_queue(f, now_us);
	pn_guard_unlock(guard);
	pn_after_do(&after);
}
