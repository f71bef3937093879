/*
 * A lane: its queue, its thread, its connection.
 *
 *   AWAY --session, statement--> READY --take--> SENT --answered--> READY
 *     ^                            |               |
 *     +--------- back-off ---------+---- lost -----+   (back into the queue)
 *
 * Natural batching, as the writers do: the thread takes what waits, at once, and
 * what comes meanwhile makes the next batch; a lone operation goes alone. The
 * members go in the order of their scopes, so that the batches of two daemons
 * lock in one order.
 *
 * The queue is in the order of arrival; what comes back goes to its front. What
 * was refused in company (alone) goes by itself, not before its time, and has
 * every other batch at most: it must not hold up the others. Nor must long
 * answers: what does not fit into a batch is passed by until it is the first, which
 * goes however long it is, and what fits into the room that it leaves goes with it.
 * So a lease is renewed in the next batch but one, whatever is queued before it.
 *
 * Invariant: outstanding is what was submitted and whose done() has not
 * returned. Memory of an operation is the caller's again in its done().
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

#include "claims_internal.h"
#include "statements.h"
#include "store_internal.h"

/* More than that of the first of a batch does not count: it leaves half the room. */
enum { LONG_BYTES = PN_BATCH_BYTES_MAX / 2 };
static const int64_t IDLE_CHECK_US = PN_SECOND_US;
static const int64_t SCHEMA_CHECK_US = PN_SECOND_US;

/* -- the queue -------------------------------------------------------------- */

/* Takes it out. Under the lock. */
static struct pn_claims_item *
unlink_at(struct pn_lane *lane, struct pn_claims_item **at)
{
	struct pn_claims_item *item = *at;

	*at = item->next;
	if (item->next == NULL)
		lane->last = at;
	item->next = NULL;
	return item;
}

void
pn_lane_submit(struct pn_lane *lane, struct pn_claims_item *item)
{
	assert(item->deadline_us != 0);
	pthread_mutex_lock(&lane->lock);
	assert(*lane->last == NULL);
	*lane->last = item;
	lane->last = &item->next;
	lane->outstanding++;
	pthread_cond_signal(&lane->work);
	pthread_mutex_unlock(&lane->lock);
}

void
pn_lane_return(
    struct pn_lane *lane, struct pn_claims_item *const *items, size_t count)
{
	pthread_mutex_lock(&lane->lock);
	for (size_t i = count; i-- > 0;) {
		items[i]->next = lane->first;
		if (lane->first == NULL)
			lane->last = &items[i]->next;
		lane->first = items[i];
	}
	pthread_mutex_unlock(&lane->lock);
}

void
pn_lane_answered(struct pn_lane *lane, size_t count)
{
	pthread_mutex_lock(&lane->lock);
	assert(lane->outstanding >= count);
	lane->outstanding -= count;
	if (lane->outstanding == 0)
		pthread_cond_broadcast(&lane->drained);
	pthread_mutex_unlock(&lane->lock);
}

/* Gives them up; not under the lock. */
static void
give_up_all(struct pn_lane *lane, struct pn_claims_item *list)
{
	struct pn_claims_item *next;
	size_t count = 0;

	for (; list != NULL; list = next) {
		next = list->next; /* done() may free it */
		lane->kind->give_up(list);
		count++;
	}
	if (count > 0)
		pn_lane_answered(lane, count);
}

void
pn_lane_expire(struct pn_lane *lane, int64_t now_us)
{
	struct pn_claims_item *expired = NULL, **end = &expired, **at;

	pthread_mutex_lock(&lane->lock);
	for (at = &lane->first; *at != NULL;) { /* bounded by the queue */
		if ((*at)->deadline_us > now_us) {
			at = &(*at)->next;
			continue;
		}
		*end = unlink_at(lane, at);
		end = &(*end)->next;
	}
	pthread_mutex_unlock(&lane->lock);
	give_up_all(lane, expired);
}

/* Whether its time has come; *retry_at_us: the next such time. */
static bool
is_due(const struct pn_claims_item *item, int64_t now_us, int64_t *retry_at_us)
{
	if (item->retry_at_us <= now_us)
		return true;
	if (item->retry_at_us < *retry_at_us)
		*retry_at_us = item->retry_at_us;
	return false;
}

static void
take_alone(struct pn_lane *lane, int64_t now_us, int64_t *retry_at_us)
{
	struct pn_claims_item **at = &lane->first;
	size_t looked = 0;

	for (; *at != NULL && looked < PN_LANE_LOOK_MAX; looked++) {
		if ((*at)->alone && is_due(*at, now_us, retry_at_us)) {
			lane->batch[lane->count++] = unlink_at(lane, at);
			return;
		}
		at = &(*at)->next;
	}
}

static void
take_company(struct pn_lane *lane, int64_t now_us)
{
	struct pn_claims_item **at = &lane->first, *item;
	size_t looked = 0, room = PN_BATCH_BYTES_MAX;

	for (; (item = *at) != NULL && looked < PN_LANE_LOOK_MAX; looked++) {
		if (pn_lane_is_held(lane, item, now_us))
			item->alone = true;
		if (item->alone || (lane->count > 0 && item->bytes > room)) {
			at = &item->next;
			continue;
		}
		if (lane->count == 0 && item->bytes > LONG_BYTES)
			room -= LONG_BYTES;
		else
			room -= item->bytes;
		lane->batch[lane->count++] = unlink_at(lane, at);
		if (lane->count == PN_BATCH_EVENTS_MAX)
			return;
	}
}

/* -- the thread ------------------------------------------------------------- */

/* Fills the batch. False: nothing came within the time of an idle check, or told
 * to stop. */
static bool
take(struct pn_lane *lane)
{
	int64_t now_us = pn_clock_monotonic_us(), retry_at_us;
	int64_t check_at_us = now_us + IDLE_CHECK_US;

	lane->count = 0;
	pthread_mutex_lock(&lane->lock);
	while (!lane->stopping && now_us < check_at_us) {
		retry_at_us = check_at_us;
		if (lane->alone_is_next)
			take_alone(lane, now_us, &retry_at_us);
		lane->alone_is_next = lane->count == 0;
		if (lane->count == 0)
			take_company(lane, now_us);
		if (lane->count == 0)
			take_alone(lane, now_us, &retry_at_us);
		if (lane->count > 0)
			break;
		pn_cond_wait_until(&lane->work, &lane->lock, retry_at_us);
		now_us = pn_clock_monotonic_us();
	}
	pthread_mutex_unlock(&lane->lock);
	return lane->count > 0;
}

static bool
is_stopping(struct pn_lane *lane)
{
	bool stopping;

	pthread_mutex_lock(&lane->lock);
	stopping = lane->stopping;
	pthread_mutex_unlock(&lane->lock);
	return stopping;
}

static void
log_away(struct pn_lane *lane)
{
	if (!atomic_exchange(&lane->claims->outage_logged, true))
		pn_log_err(
		    "requests under an Idempotency-Key wait for the database, "
		    "then get 503: %s",
		    lane->fault.text);
}

/* One attempt; waits after a failure. */
static void
connect_lane(struct pn_lane *lane)
{
	struct pn_claims *claims = lane->claims;
	enum pn_store_health health;
	int r;

	r = pn_session_connect(&lane->conn, claims->dsn, claims->stop.fd,
	    pn_sql_claims_session, &health, &lane->fault);
	if (r == 0)
		r = pn_conn_prepare(&lane->conn, lane->kind->name,
		    lane->kind->sql, &lane->fault);
	if (r == 0) {
		if (atomic_exchange(&claims->outage_logged, false))
			pn_log_notice("database is back: the guard's %s are "
				      "connected",
			    lane->kind->name);
		return;
	}
	pn_conn_close(&lane->conn);
	if (r != -ECANCELED)
		log_away(lane);
	(void)pn_stop_wait(&claims->stop,
	    health == PN_STORE_CONNECTING ? pn_backoff_next_us(&lane->backoff)
					  : SCHEMA_CHECK_US);
}

static void *
lane_main(void *payload)
{
	struct pn_lane *lane = payload;
	bool lost;

	while (!is_stopping(lane)) {
		if (lane->conn.pg == NULL) {
			connect_lane(lane);
			continue;
		}
		if (take(lane))
			lost = pn_lane_attempt(lane) < 0;
		else
			lost = !pn_conn_alive(&lane->conn);
		if (!lost)
			continue;
		pn_conn_close(&lane->conn);
		(void)pn_stop_wait(
		    &lane->claims->stop, pn_backoff_next_us(&lane->backoff));
	}
	pn_conn_close(&lane->conn);
	return NULL;
}

/* -- life ------------------------------------------------------------------- */

int
pn_lane_open(struct pn_lane *lane, const struct pn_lane_kind *kind,
    struct pn_claims *claims)
{
	int r;

	assert(lane->kind == NULL);
	lane->claims = claims;
	lane->last = &lane->first;
	lane->conn = pn_conn_for(PN_METRIC_SESSION_GATEWAY);
	lane->backoff.seed = (uint64_t)(uintptr_t)lane;
	r = pn_cond_init(&lane->work);
	if (r < 0)
		return r;
	r = pn_cond_init(&lane->drained);
	if (r < 0) {
		(void)pthread_cond_destroy(&lane->work);
		return r;
	}
	(void)pthread_mutex_init(&lane->lock, NULL);
	lane->kind = kind; /* from here on pn_lane_done() has to be called */
	r = -pthread_create(&lane->thread, NULL, lane_main, lane);
	lane->started = r == 0;
	return r;
}

bool
pn_lane_drain(struct pn_lane *lane, int64_t until_us)
{
	bool drained;

	pthread_mutex_lock(&lane->lock);
	while (lane->outstanding > 0 && pn_clock_monotonic_us() < until_us)
		pn_cond_wait_until(&lane->drained, &lane->lock, until_us);
	drained = lane->outstanding == 0;
	pthread_mutex_unlock(&lane->lock);
	return drained;
}

bool
pn_lane_clear(struct pn_lane *lane)
{
	struct pn_claims_item *list;

	if (lane->kind == NULL)
		return false; /* was never opened */
	pthread_mutex_lock(&lane->lock);
	list = lane->first;
	lane->first = NULL;
	lane->last = &lane->first;
	pthread_mutex_unlock(&lane->lock);
	give_up_all(lane, list);
	return list != NULL;
}

void
pn_lane_stop(struct pn_lane *lane)
{
	if (!lane->started)
		return;
	pthread_mutex_lock(&lane->lock);
	lane->stopping = true;
	pthread_cond_signal(&lane->work);
	pthread_mutex_unlock(&lane->lock);
	(void)pthread_join(lane->thread, NULL);
	lane->started = false;
}

void
pn_lane_done(struct pn_lane *lane)
{
	if (lane->kind == NULL)
		return;
	assert(lane->first == NULL && lane->outstanding == 0);
	(void)pthread_cond_destroy(&lane->work);
	(void)pthread_cond_destroy(&lane->drained);
	(void)pthread_mutex_destroy(&lane->lock);
}
