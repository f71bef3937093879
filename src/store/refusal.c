/*
 * Receipts of refused, unverified requests: a lossy ring, a thread and a
 * connection of their own, so that a flood of forgeries costs honest traffic
 * nothing but a copy. When the ring is full or the database is away the newest
 * are dropped and counted.
 *
 * What this does not do: wait. pn_refusals_add() copies under a lock that is
 * never held during a system call.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "statements.h"
#include "store_internal.h"

enum {
	ROWS_AT_ONCE = 128,
	TEXT_BYTES_MAX = PN_ID_BYTES_MAX, /* of a short column */
	HEADERS_BYTES_MAX = 2048,
	COLUMNS = 11,
	ARRAY_BYTES_MAX = 4 << 20,
};
static const int64_t DRAIN_US = 200 * PN_MILLISECOND_US;
static const int64_t LOG_INTERVAL_US = 60 * PN_SECOND_US;

enum column {
	C_ID,
	C_PROVIDER,
	C_TENANT,
	C_PEER,
	C_NOTIFY_ID,
	C_VERDICT,
	C_REASON,
	C_STATUS,
	C_BODY_BYTES,
	C_HEADERS,
	C_RAW
};
static_assert(C_RAW + 1 == COLUMNS, "refuse.sql has $1 to $11");

static const enum pn_array_type TYPES[COLUMNS] = {
	[C_ID] = PN_ARRAY_UUID,
	[C_PROVIDER] = PN_ARRAY_TEXT,
	[C_TENANT] = PN_ARRAY_TEXT,
	[C_PEER] = PN_ARRAY_TEXT,
	[C_NOTIFY_ID] = PN_ARRAY_TEXT,
	[C_VERDICT] = PN_ARRAY_TEXT,
	[C_REASON] = PN_ARRAY_TEXT,
	[C_STATUS] = PN_ARRAY_INT4,
	[C_BODY_BYTES] = PN_ARRAY_INT4,
	[C_HEADERS] = PN_ARRAY_TEXT,
	[C_RAW] = PN_ARRAY_BYTEA,
};

/* A refusal with copies of all its text, in one allocation. */
struct slot {
	struct pn_refusal refusal;
	size_t body_bytes; /* before the cap */
	char *memory;
};

struct pn_refusals {
	struct pn_store *store;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, drained;
	struct slot ring[PN_REFUSAL_QUEUE_MAX];
	size_t first, count; /* in the ring */
	bool sleeping, closing, busy;
	/* The thread's own. */
	struct pn_conn conn;
	struct pn_backoff backoff;
	struct slot taken[ROWS_AT_ONCE];
	size_t taken_count;
};

static struct pn_str
capped(struct pn_str s, size_t bytes_max)
{
	if (s.len > bytes_max)
		s.len = bytes_max;
	return s;
}

/* Copies s to *at and moves *at behind it. */
static struct pn_str
copy(char **at, struct pn_str s)
{
	struct pn_str out = { *at, s.len };

	if (s.len > 0)
		memcpy(*at, s.data, s.len);
	*at += s.len;
	return out;
}

/* -ENOMEM */
static int
fill(struct slot *slot, const struct pn_refusal *refusal)
{
	struct pn_refusal r = *refusal;
	char *at;

	r.provider = capped(r.provider, TEXT_BYTES_MAX);
	r.tenant = capped(r.tenant, TEXT_BYTES_MAX);
	r.peer = capped(r.peer, TEXT_BYTES_MAX);
	r.notify_id = capped(r.notify_id, TEXT_BYTES_MAX);
	r.verdict = capped(r.verdict, TEXT_BYTES_MAX);
	r.reason = capped(r.reason, PN_REASON_BYTES_MAX);
	r.headers = capped(r.headers, HEADERS_BYTES_MAX);
	slot->body_bytes = r.body_bytes != 0 ? r.body_bytes : r.body.len;
	if (slot->body_bytes > INT32_MAX)
		slot->body_bytes = INT32_MAX; /* announced, never read */
	r.body = capped(r.body, PN_REFUSAL_BODY_BYTES_MAX);
	at = malloc(r.provider.len + r.tenant.len + r.peer.len +
		    r.notify_id.len + r.verdict.len + r.reason.len +
		    r.headers.len + r.body.len + 1);
	if (at == NULL)
		return -ENOMEM;
	slot->memory = at;
	r.provider = copy(&at, r.provider);
	r.tenant = copy(&at, r.tenant);
	r.peer = copy(&at, r.peer);
	r.notify_id = copy(&at, r.notify_id);
	r.verdict = copy(&at, r.verdict);
	r.reason = copy(&at, r.reason);
	r.headers = copy(&at, r.headers);
	r.body = copy(&at, r.body);
	slot->refusal = r;
	return 0;
}

void
pn_refusals_add(struct pn_refusals *refusals, const struct pn_refusal *refusal)
{
	struct slot slot;
	bool kept = false;

	if (fill(&slot, refusal) < 0) {
		pn_metric_add(PN_METRIC_RECEIPTS_DROPPED, 1);
		return;
	}
	pthread_mutex_lock(&refusals->lock);
	if (refusals->count < PN_REFUSAL_QUEUE_MAX && !refusals->closing) {
		refusals->ring[(refusals->first + refusals->count++) %
			       PN_REFUSAL_QUEUE_MAX] =
		    slot; /* memory handed over */
		kept = true;
		if (refusals->sleeping)
			pthread_cond_signal(&refusals->work);
	}
	pthread_mutex_unlock(&refusals->lock);
	if (kept)
		return;
	free(slot.memory);
	pn_metric_add(PN_METRIC_RECEIPTS_DROPPED, 1);
}

/* Headers keep their bytes as ISO 8859-1, except NUL. */
static void
add_headers(struct pn_array *array, struct pn_str s)
{
	char text[HEADERS_BYTES_MAX];

	assert(s.len <= sizeof(text));
	for (size_t i = 0; i < s.len; i++)
		text[i] = s.data[i] == '\0' ? '?' : s.data[i];
	pn_array_add_latin1(array, (struct pn_str){ text, s.len });
}

/* Unverified text may be anything; what exactly came is in raw. */
static void
add_row(struct pn_array *a, const struct slot *slot)
{
	const struct pn_refusal *r = &slot->refusal;

	pn_array_add_bytes(&a[C_ID], r->request_id, PN_REQUEST_ID_BYTES);
	pn_array_add_bytes(&a[C_PROVIDER], r->provider.data, r->provider.len);
	pn_array_add_bytes(&a[C_TENANT], r->tenant.data, r->tenant.len);
	pn_array_add_ascii(&a[C_PEER], r->peer);
	pn_array_add_ascii(&a[C_NOTIFY_ID], r->notify_id);
	pn_array_add_bytes(&a[C_VERDICT], r->verdict.data, r->verdict.len);
	pn_array_add_ascii(&a[C_REASON], r->reason);
	pn_array_add_int4(&a[C_STATUS], r->status);
	pn_array_add_int4(&a[C_BODY_BYTES], (int32_t)slot->body_bytes);
	add_headers(&a[C_HEADERS], r->headers);
	pn_array_add_bytes(&a[C_RAW], r->body.data, r->body.len);
}

static int
insert(struct pn_refusals *refusals, struct pn_error *error)
{
	struct pn_array arrays[COLUMNS];
	const char *values[COLUMNS];
	int lengths[COLUMNS], formats[COLUMNS], r = 0;
	struct pn_str s;

	for (size_t i = 0; i < COLUMNS; i++)
		arrays[i] = pn_array_init(TYPES[i], ARRAY_BYTES_MAX);
	for (size_t i = 0; i < refusals->taken_count; i++)
		add_row(arrays, &refusals->taken[i]);
	for (size_t i = 0; i < COLUMNS; i++) {
		s = pn_array_finish(&arrays[i]);
		values[i] = s.data;
		lengths[i] = (int)s.len;
		formats[i] = 1;
		if (s.data == NULL)
			r = pn_error_set(error, -ENOMEM, "out of memory");
	}
	if (r == 0)
		r = pn_conn_run(&refusals->conn, "refuse",
		    &(struct pn_params){
			.count = COLUMNS,
			.values = values,
			.lengths = lengths,
			.formats = formats,
		    },
		    NULL, error);
	for (size_t i = 0; i < COLUMNS; i++)
		pn_array_done(&arrays[i]);
	return r;
}

static int
connect_refusals(struct pn_refusals *refusals, struct pn_error *error)
{
	enum pn_store_health health;
	int r;

	if (refusals->conn.pg != NULL)
		return 0;
	r = pn_session_open(&refusals->conn, refusals->store, &health, error);
	if (r == 0)
		r = pn_conn_prepare(
		    &refusals->conn, "refuse", pn_sql_refuse, error);
	if (r != 0)
		pn_conn_close(&refusals->conn);
	return r;
}

/* Writes what was taken, or drops it: there is no second attempt, but a pause
 * before the next one. */
static void
write_taken(struct pn_refusals *refusals)
{
	struct pn_error error = { { 0 } };
	int r;

	r = connect_refusals(refusals, &error);
	if (r == 0)
		r = insert(refusals, &error);
	for (size_t i = 0; i < refusals->taken_count; i++)
		free(refusals->taken[i].memory);
	if (r == 0) {
		refusals->backoff.failures = 0;
		return;
	}
	if (r < 0)
		pn_conn_close(&refusals->conn);
	pn_metric_add(
	    PN_METRIC_RECEIPTS_DROPPED, (int64_t)refusals->taken_count);
	pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
	    "could not write receipts of refused requests: %s", error.text);
	(void)pn_stop_wait(
	    &refusals->store->stop, pn_backoff_next_us(&refusals->backoff));
}

/* Moves some of the ring to taken; waits for the first. False: at the end. */
static bool
take(struct pn_refusals *refusals)
{
	pthread_mutex_lock(&refusals->lock);
	refusals->busy = false;
	if (refusals->count == 0)
		pthread_cond_broadcast(&refusals->drained);
	refusals->sleeping = true;
	while (refusals->count == 0 && !refusals->closing)
		pthread_cond_wait(&refusals->work, &refusals->lock);
	refusals->sleeping = false;
	refusals->taken_count = 0;
	while (refusals->count > 0 && refusals->taken_count < ROWS_AT_ONCE) {
		refusals->taken[refusals->taken_count++] =
		    refusals->ring[refusals->first];
		refusals->first = (refusals->first + 1) % PN_REFUSAL_QUEUE_MAX;
		refusals->count--;
	}
	refusals->busy = refusals->taken_count > 0;
	pthread_mutex_unlock(&refusals->lock);
	return refusals->taken_count > 0;
}

static void *
refusals_main(void *payload)
{
	struct pn_refusals *refusals = payload;

	while (take(refusals))
		write_taken(refusals);
	pn_conn_close(&refusals->conn);
	return NULL;
}

int
pn_refusals_open(struct pn_store *store, struct pn_refusals **ret)
{
	struct pn_refusals *refusals = calloc(1, sizeof(*refusals));
	int r;

	if (refusals == NULL)
		return -ENOMEM;
	refusals->store = store;
	refusals->conn = pn_conn_for(PN_METRIC_SESSION_REFUSALS);
	refusals->backoff.seed = (uint64_t)(uintptr_t)refusals;
	pthread_mutex_init(&refusals->lock, NULL);
	r = pn_cond_init(&refusals->work);
	if (r == 0)
		r = pn_cond_init(&refusals->drained);
	if (r == 0)
		r = -pthread_create(
		    &refusals->thread, NULL, refusals_main, refusals);
	if (r < 0) {
		free(refusals);
		return r;
	}
	*ret = refusals;
	return 0;
}

/* Gives what is in the ring a short time, then ends the thread (the store's
 * stop must be told before or it may sit in a pause). */
void
pn_refusals_close(struct pn_refusals *refusals)
{
	int64_t until_us = pn_clock_monotonic_us() + DRAIN_US;

	if (refusals == NULL)
		return;
	pthread_mutex_lock(&refusals->lock);
	while ((refusals->count > 0 || refusals->busy) &&
	       pn_clock_monotonic_us() < until_us)
		pn_cond_wait_until(
		    &refusals->drained, &refusals->lock, until_us);
	refusals->closing = true;
	pn_metric_add(PN_METRIC_RECEIPTS_DROPPED, (int64_t)refusals->count);
	for (; refusals->count > 0; refusals->count--) {
		free(refusals->ring[refusals->first].memory);
		refusals->first = (refusals->first + 1) % PN_REFUSAL_QUEUE_MAX;
	}
	pthread_cond_signal(&refusals->work);
	pthread_mutex_unlock(&refusals->lock);
	pn_stop_tell(&refusals->store->stop);
	(void)pthread_join(refusals->thread, NULL);
	pthread_cond_destroy(&refusals->work);
	pthread_cond_destroy(&refusals->drained);
	pthread_mutex_destroy(&refusals->lock);
	free(refusals);
}
