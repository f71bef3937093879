/*
 * The store as a whole: opening, submitting, closing.
 *
 * Threads: writers (writer.c), a timer (timer.c), the writer of refusals
 * (refusal.c), the notifier (notifier.c), the janitor (janitor.c). They meet in
 * struct pn_store, whose lock guards the queue; submit() appends and wakes a
 * writer only when one is idle, so that under load nobody is woken at all.
 *
 * Closing: submitters have stopped; the writers get grace_us to empty the
 * queue; then all threads end, and what is left is answered UNAVAILABLE. What
 * was sent and not yet known by then is UNAVAILABLE as well: the provider's
 * retry finds out.
 */
#include "paynotify/store.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/series.h"

#include "keys.h"
#include "store_internal.h"

/* One may be an accident; each is tried again, so a second one follows soon. */
enum { REFUSALS_MIN = 2 };
static const int64_t REFUSAL_TOLD_US = 60 * PN_SECOND_US;

static int
init(struct pn_store *store, const struct pn_store_options *options)
{
	struct pn_writer *w;
	int r;

	store->dsn = strdup(options->dsn);
	store->writers = calloc(options->writers, sizeof(store->writers[0]));
	if (store->dsn == NULL || store->writers == NULL)
		return -ENOMEM;
	r = pn_store_add_keys(store, options->keys, options->key_count);
	if (r < 0)
		return r;
	r = pn_stop_init(&store->stop);
	if (r < 0)
		return r;
	store->writer_count = options->writers;
	store->commit_timeout_us = options->commit_timeout_us;
	store->key_hot_us = options->key_hot_us;
	store->require_sync = options->require_sync;
	store->queue_seconds = pn_series_open(PN_FAMILY_QUEUE_SECONDS, NULL);
	store->commit_seconds = pn_series_open(PN_FAMILY_COMMIT_SECONDS, NULL);
	store->batch_size = pn_series_open(PN_FAMILY_BATCH_SIZE, NULL);
	store->health = PN_STORE_CONNECTING;
	store->down_since_us = pn_clock_monotonic_us();
	(void)pn_error_set(&store->health_text, 0, "connecting");
	pn_queue_init(&store->queue);
	for (unsigned i = 0; i < options->writers; i++) {
		w = &store->writers[i];
		w->store = store;
		w->number = i;
		w->conn = pn_conn_for(PN_METRIC_SESSION_WRITER);
		w->backoff.seed = (uint64_t)(uintptr_t)w;
		pn_batch_init(
		    &w->batch, options->require_sync, options->key_hot_us);
	}
	return 0;
}

static int
start_threads(struct pn_store *store, const struct pn_store_options *options)
{
	struct pn_writer *w;
	int r;

	/* Before the writers, which kick it. */
	r = pn_notifier_open(store, &store->notifier);
	for (unsigned i = 0; r == 0 && i < store->writer_count; i++) {
		w = &store->writers[i];
		r = -pthread_create(&w->thread, NULL, pn_writer_main, w);
		w->started = r == 0;
	}
	if (r == 0) {
		r = -pthread_create(&store->timer, NULL, pn_timer_main, store);
		store->timer_started = r == 0;
	}
	if (r == 0)
		r = pn_refusals_open(store, &store->refusals);
	if (r == 0 && (options->janitor || options->figures))
		r = pn_janitor_open(store, options, &store->janitor);
	return r;
}

int
pn_store_open(const struct pn_store_options *options,
    struct pn_store **ret_store, struct pn_error *ret_error)
{
	struct pn_store *store;
	sigset_t all, before;
	int r;

	assert(options->writers >= 1 && options->writers <= PN_WRITERS_MAX);
	assert(options->commit_timeout_us > 0 && options->key_hot_us > 0);
	store = calloc(1, sizeof(*store));
	if (store == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	store->stop.fd = -1;
	r = -pthread_mutex_init(&store->lock, NULL);
	if (r == 0)
		r = pn_cond_init(&store->work);
	if (r == 0)
		r = pn_cond_init(&store->drained);
	if (r == 0)
		r = pn_cond_init(&store->changed);
	if (r < 0) {
		free(store);
		return pn_error_set(ret_error, r, "out of memory");
	}
	r = init(store, options);
	/* Signals are for the thread that opens. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r == 0)
		r = start_threads(store, options);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		pn_store_close(store, 0);
		return pn_error_set(ret_error, r,
		    "could not start the "
		    "store's threads: %s",
		    strerror(-r));
	}
	*ret_store = store;
	return 0;
}

/* What no writer and no timer will touch any more. */
static void
give_up_rest(struct pn_store *store)
{
	struct pn_submission *s;

	while ((s = pn_queue_take_expired(&store->queue, INT64_MAX)) != NULL) {
		assert(store->outstanding > 0);
		store->outstanding--;
		pn_submission_give_up(s);
	}
	assert(store->outstanding == 0);
}

static void
drain(struct pn_store *store, int64_t grace_us)
{
	int64_t until_us = pn_clock_monotonic_us() + grace_us;

	pthread_mutex_lock(&store->lock);
	store->closing = true;
	while (store->outstanding > 0 && pn_clock_monotonic_us() < until_us)
		pn_cond_wait_until(&store->drained, &store->lock, until_us);
	store->stopping = true;
	pthread_cond_broadcast(&store->work);
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->lock);
}

void
pn_store_close(struct pn_store *store, int64_t grace_us)
{
	if (store == NULL)
		return;
	drain(store, grace_us);
	pn_refusals_close(store->refusals);
	if (store->stop.fd >= 0)
		pn_stop_tell(&store->stop);
	for (unsigned i = 0; i < store->writer_count; i++)
		if (store->writers[i].started)
			(void)pthread_join(store->writers[i].thread, NULL);
	if (store->timer_started)
		(void)pthread_join(store->timer, NULL);
	pn_janitor_close(store->janitor);
	pn_notifier_close(store->notifier);
	give_up_rest(store);
	for (unsigned i = 0; i < store->writer_count; i++)
		pn_batch_done(&store->writers[i].batch);
	pn_stop_done(&store->stop);
	pthread_cond_destroy(&store->work);
	pthread_cond_destroy(&store->drained);
	pthread_cond_destroy(&store->changed);
	pthread_mutex_destroy(&store->lock);
	pn_store_free_keys(store);
	free(store->writers);
	free(store->dsn);
	free(store);
}

/* Whether a submission could be answered in time. Under the lock. */
static bool
is_open(const struct pn_store *store, int64_t now_us, size_t weight)
{
	if (store->closing ||
	    store->queue.weight + weight > PN_QUEUE_EVENTS_MAX)
		return false;
	return store->ready_count > 0 ||
	       now_us - store->down_since_us <= store->commit_timeout_us;
}

int
pn_store_submit(struct pn_store *store, struct pn_submission *submission)
{
	int64_t now_us = pn_clock_monotonic_us();
	bool open, called = false;

	assert((submission->quarantine_reason != NULL) ==
	       (submission->event_count == 0));
	assert(submission->event_count <= PN_EVENTS_PER_NOTIFICATION_MAX);
	assert(pn_submission_bytes(submission) <= PN_BATCH_BYTES_MAX);
	submission->deadline_us = now_us + store->commit_timeout_us;
	submission->next = NULL;
	atomic_store(&submission->state, 0);
	submission->attempts = 0;
	submission->retry_at_us = 0;
	submission->maybe_stored = submission->alone = false;
	submission->verdict = PN_STORE_UNAVAILABLE;
	pthread_mutex_lock(&store->lock);
	open = is_open(store, now_us, pn_submission_weight(submission));
	if (open) {
		pn_queue_append(&store->queue, submission);
		store->outstanding++;
		called = pn_store_call_writer(store);
	}
	pthread_mutex_unlock(&store->lock);
	if (called)
		pthread_cond_signal(&store->work);
	return open ? 0 : 1;
}

void
pn_store_refuse(struct pn_store *store, const struct pn_refusal *refusal)
{
	pn_refusals_add(store->refusals, refusal);
}

void
pn_store_note_refused(struct pn_store *store, const struct pn_error *why)
{
	pthread_mutex_lock(&store->lock);
	if (store->refusal_count < REFUSALS_MIN)
		store->refusal_count++;
	store->refusal_text = *why;
	store->refused_us = pn_clock_monotonic_us();
	pthread_mutex_unlock(&store->lock);
}

void
pn_store_note_committed(struct pn_store *store)
{
	if (atomic_load(&store->refusal_count) == 0)
		return; /* most often */
	pthread_mutex_lock(&store->lock);
	store->refusal_count = 0;
	pthread_mutex_unlock(&store->lock);
}

/* Under the lock. */
static bool
is_failing(const struct pn_store *store)
{
	return store->refusal_count >= REFUSALS_MIN &&
	       pn_clock_monotonic_us() - store->refused_us < REFUSAL_TOLD_US;
}

enum pn_store_health
pn_store_health(struct pn_store *store, char *ret_text, size_t text_bytes)
{
	enum pn_store_health health;

	pthread_mutex_lock(&store->lock);
	health = store->health;
	if (health == PN_STORE_READY && is_failing(store)) {
		health = PN_STORE_FAILING;
		(void)snprintf(ret_text, text_bytes,
		    "the database refuses to record: %s",
		    store->refusal_text.text);
	} else {
		(void)snprintf(ret_text, text_bytes, "%s",
		    health == PN_STORE_READY ? "database is ready"
					     : store->health_text.text);
	}
	pthread_mutex_unlock(&store->lock);
	return health;
}

void
pn_store_wait_first(struct pn_store *store, int64_t timeout_us)
{
	int64_t until_us = pn_clock_monotonic_us() + timeout_us;

	pthread_mutex_lock(&store->lock);
	while (!store->first_attempt_made && !store->stopping &&
	       pn_clock_monotonic_us() < until_us)
		pn_cond_wait_until(&store->changed, &store->lock, until_us);
	pthread_mutex_unlock(&store->lock);
}
