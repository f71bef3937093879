/*
 * The idempotency guard's keys: who opens and closes the lanes, and their timer.
 *
 *   submit --> claims'      lane --> guard_claim_many --> done()
 *   settle --> settlements' lane --> guard_settle     --> done()
 *                                       | digests
 *                                       v
 *                       listener: NOTIFY, LISTEN --> settled()
 *
 * What is queued when its time is over is answered by the timer, since the
 * lane's thread may sit in an attempt to connect, or in a commit that waits for
 * a standby. That time is commit_timeout, or what a settlement says. What a lane
 * has sent is answered by the end of its statement, late or not: only that tells
 * the truth. So the timer never touches it.
 *
 * Closing: the lanes get the grace to end, then all threads are stopped, and
 * what is left is given up by whoever closes. A done() may submit all the while,
 * as the contract allows: that is given up too.
 *
 * What this does not do: refuse. Who submits has a limit of its own.
 */
#include "paynotify/claims.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/event.h"
#include "paynotify/moment.h"

#include "claims_internal.h"

enum {
	LOOKS_PER_TIMEOUT = 16,
	/* Of an element beside its texts. */
	ITEM_BYTES = 128,
};
static const int64_t TICK_MIN_US = 5 * PN_MILLISECOND_US;
static const int64_t TICK_MAX_US = 100 * PN_MILLISECOND_US;
/* What it may take to tell the last ones; who is not told looks by itself. */
static const int64_t LAST_WORDS_US = 100 * PN_MILLISECOND_US;

void
pn_claim_digest(const struct pn_claim_scope *scope,
    unsigned char ret_digest[PN_CLAIM_DIGEST_BYTES])
{
	pn_event_scope_id(scope->tenant, scope->route, scope->key, ret_digest);
}

static void *
timer_main(void *payload)
{
	struct pn_claims *claims = payload;
	int64_t tick_us = claims->commit_timeout_us / LOOKS_PER_TIMEOUT, now_us;

	if (tick_us < TICK_MIN_US)
		tick_us = TICK_MIN_US;
	if (tick_us > TICK_MAX_US)
		tick_us = TICK_MAX_US;
	while (!pn_stop_wait(&claims->stop, tick_us)) {
		now_us = pn_clock_monotonic_us();
		pn_lane_expire(&claims->claim_lane, now_us);
		pn_lane_expire(&claims->settle_lane, now_us);
	}
	return NULL;
}

/* Ends what was started, in reverse. */
static void
stop_all(struct pn_claims *claims)
{
	bool more;

	pn_stop_tell(&claims->stop);
	pn_lane_stop(&claims->claim_lane);
	pn_lane_stop(&claims->settle_lane);
	if (claims->timer_started)
		(void)pthread_join(claims->timer, NULL);
	pn_listener_close(claims->listener);
	do { /* bounded by who submits from a done() */
		more = pn_lane_clear(&claims->claim_lane);
		more |= pn_lane_clear(&claims->settle_lane);
	} while (more);
	pn_lane_done(&claims->claim_lane);
	pn_lane_done(&claims->settle_lane);
	pn_stop_done(&claims->stop);
	free(claims->dsn);
	free(claims);
}

/* A lane that could not be opened is left as one that never was. */
static int
start(struct pn_claims *claims, const struct pn_claims_options *options)
{
	int r;

	r = pn_listener_open(claims, options, &claims->listener);
	if (r == 0)
		r = pn_lane_open(&claims->claim_lane, &pn_claim_lane, claims);
	if (r == 0)
		r = pn_lane_open(&claims->settle_lane, &pn_settle_lane, claims);
	if (r == 0)
		r = -pthread_create(&claims->timer, NULL, timer_main, claims);
	claims->timer_started = r == 0;
	return r;
}

int
pn_claims_open(const struct pn_claims_options *options,
    struct pn_claims **ret_claims, struct pn_error *ret_error)
{
	struct pn_claims *claims = calloc(1, sizeof(*claims));
	int r;

	assert(options->commit_timeout_us > 0);
	assert(options->settled != NULL);
	if (claims == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	claims->commit_timeout_us = options->commit_timeout_us;
	claims->dsn = strdup(options->dsn);
	r = claims->dsn == NULL ? -ENOMEM : pn_stop_init(&claims->stop);
	if (r < 0) {
		free(claims->dsn);
		free(claims);
		return pn_error_set(ret_error, r,
		    "could not open the guard's "
		    "keys: %s",
		    strerror(-r));
	}
	r = start(claims, options);
	if (r < 0) {
		stop_all(claims);
		return pn_error_set(ret_error, r,
		    "could not start the threads of the guard's keys: %s",
		    strerror(-r));
	}
	*ret_claims = claims;
	return 0;
}

void
pn_claims_close(struct pn_claims *claims, int64_t grace_us)
{
	int64_t until_us = pn_clock_monotonic_us() + grace_us, last_us;

	if (claims == NULL)
		return;
	/* What is claimed may be settled yet; then both are drained. */
	while (pn_lane_drain(&claims->claim_lane, until_us) &&
	       pn_lane_drain(&claims->settle_lane, until_us) &&
	       !pn_lane_drain(&claims->claim_lane, 0))
		; /* bounded by the grace */
	/* Somebody waits for what was settled last. */
	last_us = pn_clock_monotonic_us() + LAST_WORDS_US;
	pn_listener_drain(
	    claims->listener, until_us < last_us ? until_us : last_us);
	stop_all(claims);
}

void
pn_claims_submit(struct pn_claims *claims, struct pn_claim *claim)
{
	const struct pn_claim_scope *scope = &claim->scope;

	assert(claim->done != NULL && claim->terms != NULL);
	claim->item = (struct pn_claims_item){
		.scope = scope,
		.deadline_us =
		    pn_clock_monotonic_us() + claims->commit_timeout_us,
		.bytes = scope->tenant.len + scope->route.len + scope->key.len +
			 ITEM_BYTES,
	};
	pn_lane_submit(&claims->claim_lane, &claim->item);
}

void
pn_claims_settle(struct pn_claims *claims, struct pn_settlement *settlement)
{
	const struct pn_claim_scope *scope = &settlement->scope;
	int64_t deadline_us =
	    pn_clock_monotonic_us() + claims->commit_timeout_us;

	assert(settlement->done != NULL);
	settlement->item = (struct pn_claims_item){
		.scope = scope,
		.patient = settlement->until_us > deadline_us,
		.deadline_us = settlement->until_us > deadline_us
				   ? settlement->until_us
				   : deadline_us,
		.bytes = scope->tenant.len + scope->route.len + scope->key.len +
			 settlement->headers.len + settlement->body.len +
			 settlement->reason.len + ITEM_BYTES,
	};
	pn_lane_submit(&claims->settle_lane, &settlement->item);
}

bool
pn_claims_are_heard(const struct pn_claims *claims)
{
	return pn_listener_is_heard(claims->listener);
}
