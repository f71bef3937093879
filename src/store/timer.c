/*
 * The timer: whoever has waited for commit_timeout gets UNAVAILABLE.
 *
 * A notification that still waits in the queue leaves it. One that a writer has
 * sent stays with that writer, whose statement is left to end, never cancelled;
 * it is only marked EXPIRED, answered, and released when both the answer has
 * returned and the writer is through. The provider's retry then finds a
 * duplicate.
 *
 * It looks 16 times in a commit_timeout, so an answer is late by 6 % at most,
 * and costs nothing to speak of when nobody waits. It takes the lock that all of
 * the store passes by, and calls done(): so that it looks is what main() takes for
 * a sign of life.
 */
#include <assert.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "store_internal.h"

enum { LOOKS_PER_TIMEOUT = 16 };
static const int64_t TICK_MIN_US = 5 * PN_MILLISECOND_US;
static const int64_t TICK_MAX_US = 100 * PN_MILLISECOND_US;

void
pn_submission_give_up(struct pn_submission *s)
{
	s->done(s, PN_STORE_UNAVAILABLE, s->payload_pointer);
	s->release(s, s->payload_pointer);
}

struct expired {
	struct pn_submission *queued[PN_EXPIRED_AT_ONCE];
	struct pn_submission *sent[PN_EXPIRED_AT_ONCE];
	size_t queued_count, sent_count;
};

/* Under the lock. */
static void
collect(struct pn_store *store, int64_t now_us, struct expired *expired)
{
	struct pn_submission *s;
	struct pn_writer *w;

	expired->queued_count = expired->sent_count = 0;
	while (expired->queued_count < PN_EXPIRED_AT_ONCE &&
	       (s = pn_queue_take_expired(&store->queue, now_us)) != NULL) {
		expired->queued[expired->queued_count++] = s;
		assert(store->outstanding > 0);
		if (--store->outstanding == 0)
			pthread_cond_broadcast(&store->drained);
	}
	pn_store_wake_for_news(store);
	for (w = store->writers; w < store->writers + store->writer_count; w++)
		for (size_t i = 0; i < w->sent_count &&
				   expired->sent_count < PN_EXPIRED_AT_ONCE;
		     i++) {
			s = w->sent[i];
			if (s->deadline_us > now_us ||
			    (atomic_load(&s->state) & PN_STATE_EXPIRED) != 0)
				continue;
			atomic_fetch_or(&s->state, PN_STATE_EXPIRED);
			expired->sent[expired->sent_count++] = s;
		}
}

static void
give_up_sent(struct pn_submission *s)
{
	int state;

	s->done(s, PN_STORE_UNAVAILABLE, s->payload_pointer);
	state = atomic_fetch_or(&s->state, PN_STATE_DONE_RETURNED);
	if ((state & PN_STATE_FINISHED) != 0)
		s->release(s, s->payload_pointer);
}

bool
pn_store_is_alive(struct pn_store *store)
{
	return atomic_exchange(&store->timer_ticked, false);
}

void *
pn_timer_main(void *payload)
{
	struct pn_store *store = payload;
	int64_t tick_us = store->commit_timeout_us / LOOKS_PER_TIMEOUT;
	struct expired expired;

	if (tick_us < TICK_MIN_US)
		tick_us = TICK_MIN_US;
	if (tick_us > TICK_MAX_US)
		tick_us = TICK_MAX_US;
	while (!pn_stop_wait(&store->stop, tick_us)) {
		atomic_store(&store->timer_ticked, true);
		do {
			pthread_mutex_lock(&store->lock);
			collect(store, pn_clock_monotonic_us(), &expired);
			pthread_mutex_unlock(&store->lock);
			pn_metric_add(PN_METRIC_COMMIT_TIMEOUTS,
			    (int64_t)(expired.queued_count +
				      expired.sent_count));
			for (size_t i = 0; i < expired.queued_count; i++)
				pn_submission_give_up(expired.queued[i]);
			for (size_t i = 0; i < expired.sent_count; i++)
				give_up_sent(expired.sent[i]);
		} while (expired.queued_count == PN_EXPIRED_AT_ONCE ||
			 expired.sent_count == PN_EXPIRED_AT_ONCE);
	}
	return NULL;
}
