/*
 * What happens by the clock: who has waited long enough, leases that are due,
 * keys of others to be looked at, the end of a stop's grace.
 *
 * One thread walks all flights some twenty times a second while there are any:
 * a few thousand pointers, for which an ordered queue of deadlines would be a
 * structure to keep right at every step of a flight. When there is none it
 * sleeps until there is.
 *
 * A statement may hang. Whatever waits for one longer than a commit may take is
 * abandoned: its clients are told, and the flight goes on without them when the
 * statement ends. So neither they nor a stop wait for it without limit.
 */
#include <assert.h>
#include <time.h>

#include "paynotify/moment.h"

#include "flight.h"

static const int64_t tick_us = 50 * PN_MILLISECOND_US;
/* The claims keep to commit_timeout themselves, unless a statement hangs. */
static const int64_t slack_us = 500 * PN_MILLISECOND_US;

static int64_t
commit_timeout_us(const struct pn_flight *f)
{
	return f->guard->conf->server.commit_timeout_us + slack_us;
}

static void
renew_if_due(struct pn_flight *f, int64_t now_us)
{
	if (!f->renewing && !f->lost && now_us >= f->renew_at_us)
		pn_flight_renew(f, now_us);
}

/* May end the flight. */
static void
look_at_waiting(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	pn_flight_expire_jobs(f, now_us, after);
	if (f->guard->stopping || f->jobs.first == NULL) {
		f->problem = PN_PROBLEM_STOPPING;
		pn_flight_end(f, after);
	} else if (now_us >= f->look_at_us) {
		pn_flight_claim(f, now_us);
	}
}

static void
look_at_queued(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	bool in_time;

	pn_flight_expire_jobs(f, now_us, after);
	in_time = !f->guard->stopping && f->jobs.first != NULL &&
		  now_us - f->since_us < f->route->conf->wait_us;
	if (in_time && !f->renewing && !pn_flight_is_held(f, now_us))
		pn_flight_look_at_queue(f, now_us); /* claims again */
	else if (in_time)
		renew_if_due(f, now_us);
	if (in_time)
		return;
	if (f->renewing) {
		if (now_us - f->renewal_since_us > commit_timeout_us(f))
			pn_flight_abandon(f,
			    f->guard->stopping ? PN_PROBLEM_STOPPING
					       : PN_PROBLEM_DATABASE,
			    after);
		return; /* renewed() goes on */
	}
	pn_flight_unqueue(f);
	f->problem =
	    f->guard->stopping ? PN_PROBLEM_STOPPING : PN_PROBLEM_NO_ROOM;
	pn_flight_settle(f, PN_SETTLE_FREE, now_us);
}

/* A renewal is under way, then it is settled. */
static void
look_at_answered(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	if (now_us - f->since_us > commit_timeout_us(f))
		pn_flight_abandon(f, PN_PROBLEM_NOT_STORED, after);
	else
		pn_flight_expire_jobs(f, now_us, after);
}

/* Here the claims leave it to us how long anybody waits. */
static void
look_at_settling(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	if (!f->is_kept &&
	    now_us - f->since_us > f->guard->conf->server.commit_timeout_us)
		pn_flight_keep(f, after);
	else if (f->is_kept && f->guard->stopping)
		pn_flight_abandon(f, PN_PROBLEM_STOPPING, after);
	else
		pn_flight_expire_jobs(f, now_us, after);
}

static void
look_at(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	switch (f->state) {
	case PN_FLIGHT_CLAIMING:
		if (now_us - f->since_us > commit_timeout_us(f))
			pn_flight_abandon(f, PN_PROBLEM_DATABASE, after);
		else
			pn_flight_expire_jobs(f, now_us, after);
		break;
	case PN_FLIGHT_WAITING: look_at_waiting(f, now_us, after); break;
	case PN_FLIGHT_QUEUED: look_at_queued(f, now_us, after); break;
	case PN_FLIGHT_RUNNING:
		pn_flight_expire_jobs(f, now_us, after);
		renew_if_due(f, now_us);
		break;
	case PN_FLIGHT_ANSWERED: look_at_answered(f, now_us, after); break;
	case PN_FLIGHT_SETTLING: look_at_settling(f, now_us, after); break;
	}
}

/* Ends what is asked of upstreams. Called once; not under the lock. */
static void
stop_client(struct pn_guard *guard)
{
	pn_client_close(guard->client);
	guard->client = NULL;
}

static void
wait_for_work(struct pn_guard *guard, int64_t now_us)
{
	int64_t until_us = now_us + tick_us;
	struct timespec at;

	if (guard->flight_count == 0 && guard->stop_at_us == INT64_MAX) {
		(void)pthread_cond_wait(&guard->changed, &guard->lock);
		return;
	}
	at.tv_sec = until_us / PN_SECOND_US;
	at.tv_nsec = until_us % PN_SECOND_US * 1000;
	(void)pthread_cond_timedwait(&guard->changed, &guard->lock, &at);
}

void *
pn_tick_main(void *payload)
{
	struct pn_guard *guard = payload;
	struct pn_after after;
	int64_t now_us;

	pn_guard_lock(guard);
	while (!guard->ending) {
		now_us = pn_clock_monotonic_us();
		if (now_us >= guard->stop_at_us)
			guard->stopping = true;
		pn_after_init(&after);
		for (struct pn_flight *f = guard->first, *next; f != NULL;
		     f = next) {
			next = f->next;
			look_at(f, now_us, &after);
		}
		pn_guard_unlock(guard);
		pn_after_do(&after);
		if (guard->stopping && guard->client != NULL)
			stop_client(guard);
		pn_guard_lock(guard);
		if (!guard->ending)
			wait_for_work(guard, pn_clock_monotonic_us());
	}
	pn_guard_unlock(guard);
	return NULL;
}
