/*
 * Says in the database what came of attempts, many in one statement.
 *
 * A result is kept until it is said, over a new connection if need be. Should
 * its lease have ended meanwhile, the event is pushed again; the attempt is
 * recorded all the same, and that is what shows an operator why an application
 * got it twice. What a lost connection leaves unknown is said again as well. It
 * takes no memory to speak of: an event counts as in flight until its result
 * is settled, so an endpoint keeps at most max_in_flight of them.
 *
 * A result that fails again and again over a connection that works otherwise
 * must not hold up the others: after a failure results go one by one, the one
 * that failed goes to the end, and when its lease is over it is given up. The
 * event comes back by itself then, as after a crash.
 *
 * A 410 disables the endpoint for all hosts, so it counts only if it came from
 * the URL that the endpoint has in the database. After a reload the old
 * deliverer's pushes end at the old URL, maybe with 410s because the application
 * has moved: a deliverer that is closing disables nothing. A host that was not
 * reloaded yet leaves the endpoint to the others for a while. Either way the
 * event is retried; if the new URL answers 410 as well, that counts.
 *
 * The log says what an operator must know and nothing about what went well.
 */
#include <assert.h>

#include "paynotify/log.h"

#include "deliver_internal.h"

enum { SETTLE_FAILURES_MAX = 5 };
static const int64_t LOG_INTERVAL_US = 60 * PN_SECOND_US;
/* An attempt each, while this host has a URL that the others have not. */
static const int64_t MOVED_PAUSE_US = 30 * PN_SECOND_US;

void
pn_deliver_settle_drop(struct pn_attempt *attempt)
{
	assert(attempt->endpoint->in_flight > 0);
	attempt->endpoint->in_flight--;
	/* There is room, and the next of its order may be free. */
	attempt->endpoint->wanted = true;
	pn_attempt_free(attempt);
}

static int
disable(struct pn_deliver *d, struct pn_endpoint *e, struct pn_error *error)
{
	static const char reason[] = "it answered 410 (Gone)";
	int r = pn_handoff_disable(
	    d->handoff, e->conf->name, e->conf->url, reason, error);

	if (r < 0)
		return r;
	if (r == PN_HANDOFF_MOVED) {
		e->hold_us = pn_clock_monotonic_us() + MOVED_PAUSE_US;
		pn_log_warning("endpoint \"%s\" answered 410 at a URL that it "
			       "has no more, other hosts push to another: "
			       "reload this one",
		    e->conf->name);
		return 0;
	}
	e->held = true;
	pn_log_err("endpoint \"%s\" is disabled: %s: nothing is pushed to it "
		   "until an operator resumes it",
	    e->conf->name, reason);
	return 0;
}

/* Before results are settled: else an event that is put back would be claimed
 * and sent once more. */
static int
disable_gone(struct pn_deliver *d, struct pn_error *error)
{
	struct pn_endpoint *e;
	int64_t until_us;
	int r;

	for (size_t i = 0; i < d->endpoint_count; i++) {
		e = &d->endpoints[i];
		if (!e->gone)
			continue;
		r = pn_deliver_is_closing(d, &until_us) ? 0
							: disable(d, e, error);
		if (r < 0)
			return r;
		e->gone = false;
	}
	return 0;
}

/* What was given back was no attempt. */
static void
count_attempt(const struct pn_attempt *attempt, bool lost)
{
	static const enum pn_delivery_end ends[] = {
		[PN_DELIVERY_DONE] = PN_DELIVERY_END_DONE,
		[PN_DELIVERY_RETRY] = PN_DELIVERY_END_RETRY,
		[PN_DELIVERY_DEAD] = PN_DELIVERY_END_DEAD,
	};
	const struct pn_endpoint *endpoint = attempt->endpoint;

	if (attempt->outcome == PN_DELIVERY_BACK)
		return;
	pn_series_add(endpoint->deliveries,
	    lost ? PN_DELIVERY_END_LOST : ends[attempt->outcome], 1);
	pn_series_observe(endpoint->seconds, attempt->request.elapsed_us);
}

static void
report(const struct pn_attempt *attempt)
{
	const struct pn_log_about about = { .tenant = attempt->tenant };

	if (attempt->outcome == PN_DELIVERY_DEAD)
		pn_log(PN_LOG_ERR, &about,
		    "event \"%s\" is dead: endpoint \"%s\" did not take it in "
		    "%d attempts, redeliver or skip it: %s",
		    attempt->event_id, attempt->endpoint->conf->name,
		    attempt->attempt, attempt->error);
}

/* results: of the first count that are pending. */
static void
settled(struct pn_deliver *d, const struct pn_delivery_result *results,
    size_t count, size_t lost)
{
	for (size_t i = 0; i < count; i++) {
		struct pn_attempt *attempt = pn_attempts_take(&d->pending);

		assert(attempt != NULL);
		count_attempt(attempt, results[i].lost);
		/* Of what was lost another attempt decides. */
		if (!results[i].lost)
			report(attempt);
		pn_deliver_settle_drop(attempt);
	}
	if (d->settle_max < PN_SETTLE_AT_ONCE)
		d->settle_max *= 2;
	if (lost > 0)
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
		    "%zu of %zu results came when the lease of their event was "
		    "over: it may be pushed twice",
		    lost, count);
}

static void
not_settled(struct pn_deliver *d, size_t count)
{
	int64_t now_us = pn_clock_monotonic_us();

	d->settle_max = 1;
	for (size_t i = 0; i < count; i++) {
		struct pn_attempt *attempt = pn_attempts_take(&d->pending);

		assert(attempt != NULL);
		attempt->settle_failures++;
		if (attempt->settle_failures < SETTLE_FAILURES_MAX ||
		    now_us < attempt->lease_end_us) {
			pn_attempts_add(&d->pending, attempt);
			continue;
		}
		pn_log_err("could not settle an attempt to push event \"%s\" "
			   "to endpoint \"%s\": given up, it is claimed again",
		    attempt->event_id, attempt->endpoint->conf->name);
		pn_deliver_settle_drop(attempt);
	}
}

static int
settle_some(struct pn_deliver *d, struct pn_error *error)
{
	struct pn_delivery_result results[PN_SETTLE_AT_ONCE] = { 0 };
	size_t count = 0, lost = 0;
	int r;

	assert(d->settle_max >= 1 && d->settle_max <= PN_SETTLE_AT_ONCE);
	for (const struct pn_attempt *a = d->pending.first;
	     a != NULL && count < d->settle_max; a = a->next)
		results[count++] = pn_attempt_result(a);
	r = pn_handoff_settle(d->handoff, results, count, &lost, error);
	if (r == 0)
		settled(d, results, count, lost);
	else
		not_settled(d, count);
	return r;
}

int
pn_deliver_settle(struct pn_deliver *deliver, struct pn_error *ret_error)
{
	int r;

	assert(deliver->handoff != NULL);
	r = disable_gone(deliver, ret_error);
	while (r == 0 && deliver->pending.first != NULL)
		r = settle_some(deliver, ret_error);
	return r;
}
