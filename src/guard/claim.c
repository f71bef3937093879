/*
 * A flight and its claims: what they find, and when to look again.
 *
 * Whoever has the key elsewhere is waited for: until a notification says that
 * it was settled, until its lease ends, or for a second.
 */
#include <assert.h>
#include <stdio.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "flight.h"

/* While another daemon or an application has the key, it is looked at so often
 * even if nothing was notified: who settles by SQL does not notify. */
static const int64_t look_us = PN_SECOND_US;

/* The second time, and later, under the same token: what the database still has
 * under it is ours. What is under way besides would outlive the flight. */
void
pn_flight_claim(struct pn_flight *flight, int64_t now_us)
{
	assert(!flight->renewing);
	flight->lost = false;
	if (flight->jobs.first != NULL)
		flight->jobs.first->leads = false;
	flight->state = PN_FLIGHT_CLAIMING;
	flight->since_us = now_us;
	flight->noted = false;
	pn_claims_submit(flight->guard->claims, &flight->claim);
}

void
pn_flight_remember(struct pn_flight *f)
{
	if (!f->noted && pn_claims_are_heard(f->guard->claims))
		pn_memory_put(&f->guard->memory, f->digest, f->hash, f->result);
}

static void
replay(struct pn_flight *f, const struct pn_claim *claim)
{
	f->result = pn_result_new(claim->status, (struct pn_str){ NULL, 0 },
	    claim->headers, claim->body);
	if (f->result == NULL) {
		f->problem = PN_PROBLEM_MEMORY;
		return;
	}
	f->result->expires_at_us = claim->expires_at_us;
	pn_flight_remember(f);
}

/* Somebody has it: looks again when that one is through. If nobody is at work any
 * more there is nothing to wait for but the end of the lease. */
static void
wait(struct pn_flight *f, const struct pn_claim *claim, int64_t now_us,
    struct pn_after *after)
{
	int64_t us = claim->retry_after_us;

	f->busy_until_us = now_us + us;
	f->state = PN_FLIGHT_WAITING;
	f->since_us = now_us;
	f->look_at_us = now_us + (us < look_us ? us : look_us);
	if (claim->reason.len > 0)
		for (struct pn_guard_job *j = f->jobs.first; j != NULL;
		     j = j->next)
			j->until_us = now_us;
	pn_flight_expire_jobs(f, now_us, after);
	for (struct pn_guard_job *j = f->jobs.first; j != NULL; j = j->next)
		pn_job_waits(j, now_us);
	if (f->jobs.first == NULL || f->guard->stopping) {
		f->problem = PN_PROBLEM_STOPPING;
		pn_flight_end(f, after);
	} else if (f->noted) {
		pn_flight_claim(f, now_us);
	}
}

static void
judge(struct pn_flight *f, const struct pn_claim *claim, int64_t now_us,
    struct pn_after *after)
{
	static const enum pn_problem problems[PN_CLAIM_FOUND_COUNT] = {
		[PN_CLAIM_MISMATCH] = PN_PROBLEM_MISMATCH,
		[PN_CLAIM_FAILED] = PN_PROBLEM_SET_ASIDE,
		[PN_CLAIM_EXPIRED] = PN_PROBLEM_EXPIRED,
		[PN_CLAIM_UNAVAILABLE] = PN_PROBLEM_DATABASE,
	};

	f->attempt = claim->attempt;
	switch (claim->found) {
	case PN_CLAIM_RUN:
		f->expires_at_us = claim->expires_at_us;
		pn_flight_run(f, now_us);
		pn_flight_expire_jobs(f, now_us, after);
		return;
	case PN_CLAIM_BUSY: wait(f, claim, now_us, after); return;
	case PN_CLAIM_REPLAY: replay(f, claim); break;
	default:
		if (claim->may_be_ours ||
		    (f->in_doubt && claim->found == PN_CLAIM_UNAVAILABLE))
			pn_doubts_put(&f->guard->doubts, f);
		f->problem = problems[claim->found];
		(void)snprintf(f->reason, sizeof(f->reason), PN_STR_FMT,
		    PN_STR_ARG(claim->reason));
	}
	pn_flight_end(f, after);
}

/* On a thread of the claims'. */
void
pn_flight_claimed(struct pn_claim *claim)
{
	struct pn_flight *f = claim->payload;
	struct pn_guard *guard = f->guard;
	struct pn_after after;

	pn_after_init(&after);
	pn_guard_lock(guard);
	assert(f->state == PN_FLIGHT_CLAIMING);
	f->judged = true;
	judge(f, claim, pn_clock_monotonic_us(), &after);
	pn_guard_unlock(guard);
	pn_after_do(&after);
}

static void
note(struct pn_flight *f, int64_t now_us)
{
	f->noted = true;
	f->renew_at_us = now_us; /* of use where it is ours; the tick does it */
	if (f->state == PN_FLIGHT_WAITING && !f->guard->stopping)
		pn_flight_claim(f, now_us);
}

/* On a thread of the claims'. */
void
pn_flight_noted(const unsigned char *digest, void *payload)
{
	struct pn_guard *guard = payload;
	int64_t now_us = pn_clock_monotonic_us();

	pn_guard_lock(guard);
	if (digest == NULL) {
		pn_memory_forget_all(&guard->memory);
		for (struct pn_flight *f = guard->first; f != NULL; f = f->next)
			note(f, now_us);
	} else {
		pn_memory_forget(&guard->memory, digest);
		for (struct pn_flight *f = *pn_flight_bucket(guard, digest);
		     f != NULL; f = f->next_in_bucket)
			if (memcmp(f->digest, digest, sizeof(f->digest)) == 0)
				note(f, now_us);
	}
	pn_guard_unlock(guard);
}
