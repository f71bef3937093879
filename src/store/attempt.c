/*
 * One attempt to commit a writer's batch, and what becomes of each member.
 *
 *   committed      done(verdict), or back into the queue for what lost a race
 *   connection     back into the queue, marked maybe_stored: whether it was
 *   lost           committed is unknown, and submitting it again finds out
 *   refused        nothing of it is stored: each member is sent by itself, so
 *                  that one bad event harms no other, with a short lock_timeout,
 *                  since a holder elsewhere may be paused
 *   refused alone  by its data: quarantined with the database's reason; by a
 *                  lock or a conflict: again, later; by the server's state:
 *                  again on a new connection
 *
 * A member whose time ran out meanwhile was answered by the timer; its
 * statement was left to end all the same, and here it only ends.
 *
 * Invariants: every member of writer->sent is settled exactly once; done() says
 * RECORDED or DUPLICATE only for what a committed statement said so.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "store_internal.h"

/* How long one that met a lock waits before it is tried again. */
static const int64_t RETRY_US = 100 * PN_MILLISECOND_US;
static const int64_t LOG_INTERVAL_US = 10 * PN_SECOND_US;
static const char SHORT_LOCKS[] = "SET lock_timeout = '20ms'";
static const char USUAL_LOCKS[] = "SET lock_timeout = '300ms'";

static struct pn_log_gate refused_gate, lost_gate, sync_gate, limit_gate;

/* What an SQL error says about its cause. */
enum cause {
	CAUSE_DATA,   /* this element: it will never go in */
	CAUSE_LOCKS,  /* others: it will go in later */
	CAUSE_SERVER, /* not this session, or not this schema */
};

static bool
starts(const char *sqlstate, const char *class)
{
	return strncmp(sqlstate, class, strlen(class)) == 0;
}

static enum cause
cause_of(const struct pn_conn *conn)
{
	/* Classes of PostgreSQL's appendix A. A missing partition is a check
	 * violation without a constraint. */
	static const char *const server[] = { "08", "25006", "26", "3F", "42",
		"53300", "57", "0A" };
	static const char *const data[] = { "22", "23", "54" };
	const char *state = conn->sqlstate;

	if (strcmp(state, "23514") == 0 && conn->constraint[0] == '\0')
		return CAUSE_LOCKS;
	for (size_t i = 0; i < PN_COUNT(server); i++)
		if (starts(state, server[i]))
			return CAUSE_SERVER;
	for (size_t i = 0; i < PN_COUNT(data); i++)
		if (starts(state, data[i]))
			return CAUSE_DATA;
	return CAUSE_LOCKS;
}

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

enum fate { FATE_DONE, FATE_BACK };

/* Ends the stay of one member with the writer. Under the lock. Returns whether
 * call_back() has to be called for it. */
static bool
settle_locked(struct pn_writer *writer, struct pn_submission *s, enum fate fate)
{
	struct pn_store *store = writer->store;
	bool expired;

	forget(writer, s);
	pn_queue_settle(&store->queue, s);
	expired = (atomic_load(&s->state) & PN_STATE_EXPIRED) != 0;
	if (fate == FATE_BACK && !expired && ++s->attempts > PN_ATTEMPTS_MAX) {
		pn_log_gated(&limit_gate, LOG_INTERVAL_US, PN_LOG_ERR, NULL,
		    "gave up a notification after %u attempts", s->attempts);
		s->verdict = PN_STORE_UNAVAILABLE;
		fate = FATE_DONE;
	}
	if (fate == FATE_BACK && !expired) {
		atomic_store(&s->state, 0);
		pn_queue_return(&store->queue, s);
		return false;
	}
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

static void
settle(struct pn_writer *writer, struct pn_submission *s, enum fate fate)
{
	bool over;

	pthread_mutex_lock(&writer->store->lock);
	over = settle_locked(writer, s, fate);
	pthread_mutex_unlock(&writer->store->lock);
	if (over)
		call_back(s);
}

/* All members of the batch at once. */
static void
settle_batch(struct pn_writer *writer, const enum fate *fates)
{
	struct pn_batch *batch = &writer->batch;
	bool over[PN_BATCH_EVENTS_MAX];

	pthread_mutex_lock(&writer->store->lock);
	/* Backwards: forget() then finds each at the end. */
	for (size_t i = batch->count; i-- > 0;)
		over[i] = settle_locked(writer, batch->members[i],
		    fates == NULL ? FATE_BACK : fates[i]);
	pthread_mutex_unlock(&writer->store->lock);
	for (size_t i = 0; i < batch->count; i++)
		if (over[i])
			call_back(batch->members[i]);
}

static void
count_element(enum pn_element_verdict verdict, bool again, bool quarantine)
{
	switch (verdict) {
	case PN_ELEMENT_NEW:
		pn_metric_add(
		    quarantine ? PN_METRIC_QUARANTINED : PN_METRIC_RECORDED, 1);
		break;
	case PN_ELEMENT_DUPLICATE:
		if (!again)
			pn_metric_add(PN_METRIC_DUPLICATES, 1);
		break;
	case PN_ELEMENT_CONFLICT:
		if (!again)
			pn_metric_add(PN_METRIC_CONFLICTS, 1);
		break;
	case PN_ELEMENT_AGAIN: pn_metric_add(PN_METRIC_AGAIN, 1); break;
	case PN_ELEMENT_UNKNOWN:
		pn_log_gated(&sync_gate, LOG_INTERVAL_US, PN_LOG_ERR, NULL,
		    "nothing is recorded: require_sync is set, but "
		    "synchronous_standby_names is empty");
		break;
	}
}

/* The batch is committed: verdicts of elements to those of notifications. */
static void
settle_committed(struct pn_writer *writer)
{
	static const enum pn_store_verdict verdicts[] = {
		[PN_ELEMENT_NEW] = PN_STORE_RECORDED,
		[PN_ELEMENT_DUPLICATE] = PN_STORE_DUPLICATE,
		[PN_ELEMENT_CONFLICT] = PN_STORE_CONFLICT,
		[PN_ELEMENT_AGAIN] = PN_STORE_UNAVAILABLE, /* unused */
		[PN_ELEMENT_UNKNOWN] = PN_STORE_UNAVAILABLE,
	};
	struct pn_batch *batch = &writer->batch;
	enum fate fates[PN_BATCH_EVENTS_MAX] = { FATE_DONE };
	enum pn_store_verdict verdict;
	struct pn_submission *s;

	for (size_t i = 0; i < batch->count; i++)
		batch->members[i]->verdict = batch->quarantine
						 ? PN_STORE_QUARANTINED
						 : PN_STORE_RECORDED;
	for (size_t i = 0; i < batch->element_count; i++)
		if (batch->verdicts[i] == PN_ELEMENT_AGAIN)
			fates[batch->elements[i].member] = FATE_BACK;
	for (size_t i = 0; i < batch->element_count; i++) {
		s = batch->members[batch->elements[i].member];
		verdict = verdicts[batch->verdicts[i]];
		if (verdict > s->verdict)
			s->verdict = verdict;
		count_element(batch->verdicts[i],
		    fates[batch->elements[i].member] == FATE_BACK,
		    batch->quarantine);
	}
	pn_metric_add(PN_METRIC_BATCHES, 1);
	writer->backoff.failures = 0;
	settle_batch(writer, fates);
}

/* Whether all or nothing is stored is unknown: find out by submitting again. */
static void
settle_lost(struct pn_writer *writer, const struct pn_error *error)
{
	struct pn_batch *batch = &writer->batch;

	pn_log_gated(&lost_gate, LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
	    "outcome of a commit is unknown, it is submitted again: %s",
	    error->text);
	for (size_t i = 0; i < batch->count; i++)
		batch->members[i]->maybe_stored = true;
	settle_batch(writer, NULL);
}

static void
log_refused(const struct pn_writer *writer, const struct pn_submission *s,
    const char *what, const struct pn_error *error)
{
	char tenant[PN_TENANT_BYTES_MAX + 1] = "";

	if (s->tenant.len < sizeof(tenant))
		memcpy(tenant, s->tenant.data, s->tenant.len);
	pn_log_gated(&refused_gate, LOG_INTERVAL_US, PN_LOG_ERR,
	    &(struct pn_log_about){
		.tenant = tenant,
		.key = s->event_count == 0 ? s->quarantine_subject
					   : s->events[0].key,
	    },
	    "%s: %s (%s)", what, error->text, writer->conn.sqlstate);
}

/* The database will never take its data: keep the evidence, let an operator
 * see. */
static int
quarantine_refused(struct pn_writer *writer)
{
	struct pn_batch *batch = &writer->batch;
	struct pn_submission *s = batch->members[0];
	struct pn_error cause = writer->fault, *error = &writer->fault;
	int r;

	log_refused(writer, s, "quarantined what the database refused", &cause);
	r = pn_batch_run_refused(batch, &writer->conn, cause.text, error);
	if (r == 0 && batch->verdicts[0] == PN_ELEMENT_NEW) {
		pn_metric_add(PN_METRIC_QUARANTINED, 1);
		s->verdict = PN_STORE_QUARANTINED;
		settle(writer, s, FATE_DONE);
		return 0;
	}
	if (r < 0) {
		settle_lost(writer, error);
		return r;
	}
	log_refused(writer, s, "could not even quarantine", error);
	s->verdict = PN_STORE_UNAVAILABLE;
	settle(writer, s, FATE_DONE);
	return 0;
}

/* The one member of the batch was refused. */
static int
settle_refused(struct pn_writer *writer, const struct pn_error *error)
{
	struct pn_submission *s = writer->batch.members[0];

	assert(writer->batch.count == 1);
	switch (cause_of(&writer->conn)) {
	case CAUSE_DATA: return quarantine_refused(writer);
	case CAUSE_LOCKS:
		log_refused(writer, s, "will be tried again", error);
		s->alone = true;
		s->retry_at_us = pn_clock_monotonic_us() + RETRY_US;
		settle(writer, s, FATE_BACK);
		return 0;
	case CAUSE_SERVER: break;
	}
	log_refused(writer, s, "connects anew", error);
	settle(writer, s, FATE_BACK);
	return -ECONNRESET;
}

static int
attempt_one(struct pn_writer *writer, struct pn_submission *s)
{
	struct pn_batch *batch = &writer->batch;
	struct pn_error *error = &writer->fault;
	int r;

	pn_batch_reset(batch);
	pn_batch_add(batch, s);
	r = pn_batch_run(batch, &writer->conn, error);
	if (r == 0)
		settle_committed(writer);
	else if (r < 0)
		settle_lost(writer, error);
	else
		r = settle_refused(writer, error);
	return r;
}

/* Every member by itself. */
static int
isolate(struct pn_writer *writer)
{
	struct pn_submission *members[PN_BATCH_EVENTS_MAX];
	size_t i, count = writer->batch.count;
	struct pn_error *error = &writer->fault;
	int r;

	memcpy(members, writer->batch.members, count * sizeof(members[0]));
	r = pn_conn_exec(&writer->conn, SHORT_LOCKS, NULL, error);
	r = r > 0 ? -EIO : r;
	for (i = 0; i < count && r == 0; i++) {
		if ((atomic_load(&members[i]->state) & PN_STATE_EXPIRED) != 0)
			settle(writer, members[i], FATE_DONE);
		else
			r = attempt_one(writer, members[i]);
	}
	for (; i < count; i++) /* not sent */
		settle(writer, members[i], FATE_BACK);
	if (r == 0) {
		r = pn_conn_exec(&writer->conn, USUAL_LOCKS, NULL, error);
		r = r > 0 ? -EIO : r;
	}
	return r;
}

int
pn_attempt(struct pn_writer *writer)
{
	struct pn_batch *batch = &writer->batch;
	struct pn_error *error = &writer->fault;
	int r;

	assert(batch->count > 0 && batch->count == writer->sent_count);
	if (batch->members[0]->alone)
		return isolate(writer);
	r = pn_batch_run(batch, &writer->conn, error);
	if (r == 0) {
		pn_log_debug("committed a batch of %zu", batch->count);
		settle_committed(writer);
		return 0;
	}
	if (r < 0) {
		settle_lost(writer, error);
		return r;
	}
	if (batch->count == 1)
		return settle_refused(writer, error);
	if (cause_of(&writer->conn) == CAUSE_SERVER) {
		log_refused(writer, batch->members[0], "connects anew", error);
		settle_batch(writer, NULL);
		return -ECONNRESET;
	}
	pn_metric_add(PN_METRIC_BATCH_FAILURES, 1);
	return isolate(writer);
}
