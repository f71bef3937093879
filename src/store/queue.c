/*
 * The queue of notifications that wait for a writer.
 *
 * It is in the order of deadlines. All have the same commit_timeout, so that is
 * the order of arrival; one that comes back from a writer goes to its place by
 * deadline, near the front. So the timer finds what has expired at the front.
 *
 * A key is with one writer at most, and once in a batch: a notification with a
 * key that is in flight stays where it is and is looked at again after that
 * writer has settled. One that failed in company (`alone`) is taken by itself,
 * not before its time, and at most every other batch is such a one: it must not
 * hold up the others.
 *
 * A key that is locked elsewhere (a paused daemon) must cost the others one
 * batch, not one for each redelivery of it. So whoever goes back `alone` keeps
 * its keys reserved until it is settled or expires, and its copies wait behind
 * it; they are `alone` from then on, since the lock may outlast the first. Of
 * such copies only PN_COPIES_MAX wait: more would hide what is behind them, and
 * gain nothing.
 *
 * Invariant: what is in the queue and RESERVED has its keys in flight; what is
 * in the queue and not RESERVED has not put any there.
 *
 * What this does not do: lock. The caller holds the store's lock.
 */
#include <assert.h>

#include "paynotify/metrics.h"

#include "store_internal.h"

void
pn_queue_init(struct pn_queue *queue)
{
	queue->first = NULL;
	queue->last = &queue->first;
	queue->refused = NULL;
	queue->news = false;
}

static void
link_at(
    struct pn_queue *queue, struct pn_submission **at, struct pn_submission *s)
{
	s->next = *at;
	*at = s;
	if (s->next == NULL)
		queue->last = &s->next;
	queue->weight += pn_submission_weight(s);
	queue->alone_count += s->alone;
	pn_metric_set(PN_METRIC_QUEUE_EVENTS, (int64_t)queue->weight);
}

static void
unlink_at(struct pn_queue *queue, struct pn_submission **at)
{
	struct pn_submission *s = *at;

	assert(queue->weight >= pn_submission_weight(s));
	*at = s->next;
	if (s->next == NULL)
		queue->last = at;
	s->next = NULL;
	queue->weight -= pn_submission_weight(s);
	queue->alone_count -= s->alone;
	pn_metric_set(PN_METRIC_QUEUE_EVENTS, (int64_t)queue->weight);
}

void
pn_queue_append(struct pn_queue *queue, struct pn_submission *s)
{
	assert(*queue->last == NULL);
	link_at(queue, queue->last, s);
}

/* Its keys are free. */
static void
free_keys(struct pn_queue *queue, const struct pn_submission *s)
{
	struct pn_keyset_slot *slot;

	for (size_t i = 0; i < s->event_count; i++) {
		slot = pn_keyset_find(&queue->in_flight, s->events[i].id);
		if (slot == NULL)
			continue; /* twice in one notification */
		queue->news |= slot->wanted;
		pn_keyset_remove(&queue->in_flight, s->events[i].id);
	}
}

void
pn_queue_settle(struct pn_queue *queue, const struct pn_submission *s)
{
	assert((atomic_load(&s->state) & PN_STATE_SENT) != 0);
	free_keys(queue, s);
}

void
pn_queue_return(struct pn_queue *queue, struct pn_submission *s)
{
	struct pn_submission **at = &queue->first;
	struct pn_keyset_slot *slot;

	assert((atomic_load(&s->state) & PN_STATE_SENT) != 0);
	if (!s->alone)
		free_keys(queue, s);
	for (size_t i = 0; s->alone && i < s->event_count; i++) {
		slot = pn_keyset_find(&queue->in_flight, s->events[i].id);
		assert(slot != NULL);
		slot->held = true;
	}
	atomic_store(&s->state, s->alone ? PN_STATE_RESERVED : 0);
	queue->news = true;
	/* Bounded by the queue; short, since s is among the oldest. */
	while (*at != NULL && (*at)->deadline_us < s->deadline_us)
		at = &(*at)->next;
	link_at(queue, at, s);
}

/* The key in flight that s has to wait for; NULL: none. */
static struct pn_keyset_slot *
blocker(struct pn_queue *queue, const struct pn_submission *s)
{
	struct pn_keyset_slot *slot;

	if ((atomic_load(&s->state) & PN_STATE_RESERVED) != 0)
		return NULL;
	for (size_t i = 0; i < s->event_count; i++) {
		slot = pn_keyset_find(&queue->in_flight, s->events[i].id);
		if (slot == NULL)
			continue;
		slot->wanted = true;
		return slot;
	}
	return NULL;
}

/* Lets a copy of a held key wait, or refuses it. False: it left the queue. */
static bool
wait_for_held(struct pn_queue *queue, struct pn_keyset_slot *slot,
    struct pn_submission **at)
{
	struct pn_submission *s = *at;

	assert(!s->alone);
	if (slot->waiting < PN_COPIES_MAX) {
		slot->waiting++;
		s->alone = true;
		queue->alone_count++;
		return true;
	}
	unlink_at(queue, at);
	s->next = queue->refused;
	queue->refused = s;
	return false;
}

static void
take(struct pn_queue *queue, struct pn_batch *batch, struct pn_submission **at)
{
	struct pn_submission *s = *at;

	unlink_at(queue, at);
	for (size_t i = 0; i < s->event_count; i++)
		pn_keyset_add(&queue->in_flight, s->events[i].id);
	assert((atomic_load(&s->state) & PN_STATE_SENT) == 0);
	atomic_store(&s->state, PN_STATE_SENT);
	pn_batch_add(batch, s);
}

/* Whether its time has come; *retry_at_us: the next such time. */
static bool
is_due(const struct pn_submission *s, int64_t now_us, int64_t *retry_at_us)
{
	if (s->retry_at_us <= now_us)
		return true;
	if (s->retry_at_us < *retry_at_us)
		*retry_at_us = s->retry_at_us;
	return false;
}

/* The oldest of those that go by themselves and whose time has come. */
static bool
take_alone(struct pn_queue *queue, struct pn_batch *batch, int64_t now_us,
    int64_t *retry_at_us)
{
	struct pn_submission **at = &queue->first, *s;
	size_t looked = 0;

	for (; (s = *at) != NULL && looked < PN_QUEUE_LOOK_MAX; looked++) {
		if (s->alone && is_due(s, now_us, retry_at_us) &&
		    blocker(queue, s) == NULL) {
			take(queue, batch, at);
			return true;
		}
		at = &s->next;
	}
	return false;
}

static void
take_company(struct pn_queue *queue, struct pn_batch *batch, int64_t now_us,
    int64_t *retry_at_us)
{
	struct pn_submission **at = &queue->first, *s;
	struct pn_keyset_slot *slot;
	size_t looked = 0;

	while ((s = *at) != NULL && looked < PN_QUEUE_LOOK_MAX) {
		slot = s->alone ? NULL : blocker(queue, s);
		if (slot != NULL && slot->held &&
		    !wait_for_held(queue, slot, at))
			continue; /* the queue has become shorter */
		looked++;
		if (s->alone || slot != NULL ||
		    !is_due(s, now_us, retry_at_us)) {
			at = &s->next;
			continue;
		}
		if (pn_batch_fits(batch, s)) {
			take(queue, batch, at);
			continue;
		}
		if (batch->quarantine == (s->quarantine_reason != NULL))
			break; /* full */
		at = &s->next; /* the other kind: its turn comes */
	}
}

void
pn_queue_take(struct pn_queue *queue, struct pn_batch *batch, int64_t now_us,
    int64_t *ret_retry_at_us)
{
	assert(batch->count == 0);
	*ret_retry_at_us = INT64_MAX;
	if (queue->alone_count > 0 && queue->alone_is_next &&
	    take_alone(queue, batch, now_us, ret_retry_at_us)) {
		queue->alone_is_next = false;
		return;
	}
	queue->alone_is_next = true;
	take_company(queue, batch, now_us, ret_retry_at_us);
	if (batch->count == 0 && queue->alone_count > 0)
		(void)take_alone(queue, batch, now_us, ret_retry_at_us);
}

struct pn_submission *
pn_queue_take_expired(struct pn_queue *queue, int64_t now_us)
{
	struct pn_submission *s = queue->refused;

	if (s != NULL) {
		queue->refused = s->next;
		s->next = NULL;
		return s;
	}
	s = queue->first;
	if (s == NULL || s->deadline_us > now_us)
		return NULL;
	unlink_at(queue, &queue->first);
	if ((atomic_load(&s->state) & PN_STATE_RESERVED) != 0)
		free_keys(queue, s);
	return s;
}
