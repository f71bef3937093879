/*
 * A writer: one thread, one connection.
 *
 *   CONNECTING --session, statements--> READY --take--> SENT --settled--> READY
 *       ^                                 |               |
 *       +------ back-off, or 1 s ---------+--- lost ------+
 *
 * Natural batching: a writer takes whatever waits, at once, and what arrives
 * while it is away makes the next batch. There is no timer: a lone request is
 * sent alone. A writer that finds nothing sleeps until it is woken, and looks
 * once a second whether its connection still stands, so that readiness tells
 * the truth before the first request notices.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/series.h"

#include "keys.h"
#include "store_internal.h"

static const int64_t IDLE_CHECK_US = PN_SECOND_US;
static const int64_t SCHEMA_CHECK_US = PN_SECOND_US;

/* Who is woken under the lock waits for it at once: two system calls more, and
 * a turn of the processor, on the way of a lone notification. */
bool
pn_store_call_writer(struct pn_store *store)
{
	if (store->idle == 0)
		return false;
	store->idle--;
	store->woken++;
	return true;
}

static void
wake(struct pn_store *store)
{
	if (pn_store_call_writer(store))
		pthread_cond_signal(&store->work);
}

void
pn_store_wake_for_news(struct pn_store *store)
{
	if (store->queue.news)
		wake(store);
	store->queue.news = false;
}

/* Waits to be woken, at most until the time given. Under the lock. */
static void
sleep_until(struct pn_store *store, int64_t until_us)
{
	store->idle++;
	pn_cond_wait_until(&store->work, &store->lock, until_us);
	assert(store->idle + store->woken > 0);
	if (store->woken > 0)
		store->woken--;
	else
		store->idle--;
}

/* What a batch waited for: the first time only, or a lock would be told as the
 * length of the queue. What is sent stays until it is settled. */
static void
count_waits(const struct pn_writer *writer)
{
	const struct pn_store *store = writer->store;
	int64_t now_us = pn_clock_monotonic_us();

	for (size_t i = 0; i < writer->batch.count; i++) {
		const struct pn_submission *s = writer->batch.members[i];

		if (s->attempts > 0 || s->alone || s->maybe_stored)
			continue;
		pn_series_observe(store->queue_seconds,
		    now_us - (s->deadline_us - store->commit_timeout_us));
	}
}

/* Fills the batch. False: nothing came within the time of an idle check, or
 * told to stop, or there are keys to be written first. */
static bool
take(struct pn_writer *writer)
{
	struct pn_store *store = writer->store;
	struct pn_batch *batch = &writer->batch;
	int64_t now_us = pn_clock_monotonic_us(), retry_at_us;
	int64_t check_at_us = now_us + IDLE_CHECK_US;

	pn_batch_reset(batch);
	pthread_mutex_lock(&store->lock);
	while (!store->stopping && now_us < check_at_us &&
	       !pn_store_has_new_keys(writer)) {
		pn_queue_take(&store->queue, batch, now_us, &retry_at_us);
		if (batch->count > 0)
			break;
		sleep_until(store,
		    retry_at_us < check_at_us ? retry_at_us : check_at_us);
		now_us = pn_clock_monotonic_us();
	}
	assert(writer->sent_count == 0);
	memcpy(writer->sent, batch->members,
	    batch->count * sizeof(writer->sent[0]));
	writer->sent_count = batch->count;
	/* There is more than one can take; or this one takes nothing, for it has
	 * keys to write or its time was over when it was woken, and may find
	 * its connection dead. Whoever is woken for nothing sleeps on where it
	 * is, and wakes nobody. */
	if (store->queue.first != NULL)
		wake(store);
	pthread_mutex_unlock(&store->lock);
	count_waits(writer);
	return batch->count > 0;
}

static void
set_ready(struct pn_writer *writer)
{
	struct pn_store *store = writer->store;
	bool recovered;

	pthread_mutex_lock(&store->lock);
	assert(!writer->ready);
	writer->ready = true;
	store->ready_count++;
	store->health = PN_STORE_READY;
	store->first_attempt_made = true;
	recovered = store->outage_logged;
	store->outage_logged = false;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->lock);
	pn_metric_add(PN_METRIC_DATABASE_UP, 1);
	pn_log_debug("writer %u is connected", writer->number);
	if (recovered)
		pn_log_notice(
		    "database is back: writer %u is connected", writer->number);
}

/* Connected no more, or not connected: why is text. */
static void
set_down(struct pn_writer *writer, enum pn_store_health health,
    const struct pn_error *error)
{
	struct pn_store *store = writer->store;
	bool first;

	pthread_mutex_lock(&store->lock);
	if (writer->ready) {
		writer->ready = false;
		store->ready_count--;
		pn_metric_add(PN_METRIC_DATABASE_UP, -1);
		if (store->ready_count == 0)
			store->down_since_us = pn_clock_monotonic_us();
	}
	if (store->ready_count == 0) {
		store->health = health;
		store->health_text = *error;
	}
	store->first_attempt_made = true;
	first = !store->outage_logged && !store->stopping;
	store->outage_logged = true;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->lock);
	if (first)
		pn_log_err("notifications wait for the database, then get "
			   "503: %s",
		    error->text);
}

/* One attempt to become ready; waits after a failure. */
static void
connect_writer(struct pn_writer *writer)
{
	struct pn_store *store = writer->store;
	struct pn_error error = { { 0 } };
	enum pn_store_health health;
	int64_t delay_us;
	int r;

	r = pn_session_open(&writer->conn, store, &health, &error);
	if (r == 0)
		r = pn_batch_prepare(&writer->conn, &error);
	writer->keys_written = 0;
	if (r == 0)
		r = pn_store_put_keys(writer, &error);
	if (r == 0) {
		set_ready(writer);
		return;
	}
	pn_conn_close(&writer->conn);
	set_down(writer, health, &error);
	pn_log_debug(
	    "writer %u is not connected: %s", writer->number, error.text);
	delay_us = health == PN_STORE_CONNECTING
		       ? pn_backoff_next_us(&writer->backoff)
		       : SCHEMA_CHECK_US;
	(void)pn_stop_wait(&store->stop, delay_us);
}

/* After a fault of a connection that was ready. */
static void
disconnect(struct pn_writer *writer)
{
	set_down(writer, PN_STORE_CONNECTING, &writer->fault);
	pn_log_debug(
	    "writer %u connects anew: %s", writer->number, writer->fault.text);
	pn_conn_close(&writer->conn);
	pn_metric_add(PN_METRIC_RECONNECTS, 1);
	(void)pn_stop_wait(
	    &writer->store->stop, pn_backoff_next_us(&writer->backoff));
}

static bool
is_stopping(struct pn_store *store)
{
	bool stopping;

	pthread_mutex_lock(&store->lock);
	stopping = store->stopping;
	pthread_mutex_unlock(&store->lock);
	return stopping;
}

/* Writes keys that were added, if there are any. < 0: the connection is to be
 * closed. */
static int
catch_up(struct pn_writer *writer)
{
	struct pn_store *store = writer->store;
	bool behind;

	pthread_mutex_lock(&store->lock);
	behind = pn_store_has_new_keys(writer);
	pthread_mutex_unlock(&store->lock);
	if (!behind)
		return 0;
	/* What still refuses it does so at the next connection too, and is told
	 * there. */
	return pn_store_put_keys(writer, &writer->fault) == 0 ? 0 : -EIO;
}

/* Whether an idle writer's connection has ended. */
static bool
is_dead(struct pn_writer *writer)
{
	if (pn_conn_alive(&writer->conn))
		return false;
	(void)pn_error_set(&writer->fault, 0, "connection ended while idle");
	return true;
}

void *
pn_writer_main(void *payload)
{
	struct pn_writer *writer = payload;
	struct pn_store *store = writer->store;
	bool lost;

	while (!is_stopping(store)) {
		if (!writer->ready) { /* only this thread changes it */
			connect_writer(writer);
			continue;
		}
		if (take(writer))
			lost = pn_attempt(writer) < 0;
		else
			lost = is_dead(writer) || catch_up(writer) < 0;
		assert(writer->sent_count == 0);
		if (lost)
			disconnect(writer);
	}
	if (writer->ready)
		pn_metric_add(PN_METRIC_DATABASE_UP, -1);
	pn_conn_close(&writer->conn);
	return NULL;
}
