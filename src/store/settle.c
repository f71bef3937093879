/*
 * The end of a submission's stay with a writer: it is answered, or goes back
 * into the queue. Callbacks are called outside the lock.
 *
 * Whoever has timed out meanwhile was answered by the timer and is only
 * released here, or by the timer if its answer has not returned yet.
 *
 * Whoever goes back goes until its deadline, however often locks or lost
 * connections stand in its way; only lost races are counted, since no holder of
 * a lock explains many of them. What goes back or becomes free is news for an
 * idle writer: this one may be about to wait for a connection.
 *
 * Invariant: every member of writer->sent is settled exactly once.
 */
#include <assert.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

#include "store_internal.h"

static const int64_t LOG_INTERVAL_US = 10 * PN_SECOND_US;

/* Takes s out of what the timer watches. Under the lock. */
static void
forget(struct pn_writer *writer, const struct pn_submission *s)
{
	for (size_t i = writer->sent_count; i-- > 0;) {
		if (writer->sent[i] != s)
			continue;
		writer->sent[i] = writer->sent[--writer->sent_count];
		return;
	}
	assert(!"a submission is settled twice");
}

/* Ends the stay of one member with the writer. Under the lock. Returns whether
 * call_back() has to be called for it. */
static bool
settle_locked(
    struct pn_writer *writer, struct pn_submission *s, enum pn_fate fate)
{
	struct pn_store *store = writer->store;
	bool expired;

	forget(writer, s);
	expired = (atomic_load(&s->state) & PN_STATE_EXPIRED) != 0;
	if (fate == PN_FATE_BACK && !expired && s->attempts > PN_RACES_MAX) {
		pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR, NULL,
		    "gave up a notification that lost %u races", s->attempts);
		s->verdict = PN_STORE_UNAVAILABLE;
		fate = PN_FATE_DONE;
	}
	if (fate == PN_FATE_BACK && !expired) {
		pn_queue_return(&store->queue, s);
		return false;
	}
	pn_queue_settle(&store->queue, s);
	assert(store->outstanding > 0);
	if (--store->outstanding == 0)
		pthread_cond_broadcast(&store->drained);
	return true;
}

static void
call_back(struct pn_submission *s)
{
	int state = atomic_load(&s->state);

	if ((state & PN_STATE_EXPIRED) == 0) {
		/* Nobody else can see it any more. */
		s->done(s, s->verdict, s->payload_pointer);
		s->release(s, s->payload_pointer);
		return;
	}
	state = atomic_fetch_or(&s->state, PN_STATE_FINISHED);
	if ((state & PN_STATE_DONE_RETURNED) != 0)
		s->release(s, s->payload_pointer);
}

void
pn_settle(struct pn_writer *writer, struct pn_submission *const *members,
    size_t count, const enum pn_fate *fates)
{
	bool over[PN_BATCH_EVENTS_MAX];

	assert(count <= PN_BATCH_EVENTS_MAX);
	pthread_mutex_lock(&writer->store->lock);
	/* Backwards: forget() then finds each at the end. */
	for (size_t i = count; i-- > 0;)
		over[i] = fates[i] != PN_FATE_LATER &&
			  settle_locked(writer, members[i], fates[i]);
	pn_store_wake_for_news(writer->store);
	pthread_mutex_unlock(&writer->store->lock);
	for (size_t i = 0; i < count; i++)
		if (over[i])
			call_back(members[i]);
}

void
pn_settle_one(
    struct pn_writer *writer, struct pn_submission *s, enum pn_fate fate)
{
	pn_settle(writer, &s, 1, &fate);
}
