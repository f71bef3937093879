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
 * Conflicts are quarantined by a second statement of their own: they are rare,
 * and the first is on everybody's way.
 *
 * Invariant: done() says RECORDED or DUPLICATE only for what a committed
 * statement said so (settle.c calls it).
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/encode.h"
#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/series.h"

#include "store_internal.h"

/* How long one that met a lock waits before it is tried again. */
static const int64_t RETRY_US = 100 * PN_MILLISECOND_US;
static const int64_t LOG_INTERVAL_US = 10 * PN_SECOND_US;
static const char SHORT_LOCKS[] = "SET lock_timeout = '20ms'";
static const char USUAL_LOCKS[] = "SET lock_timeout = '300ms'";

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

/* Whether the server, or its set-up, takes nothing at all: no space, no memory,
 * read-only, no right, no partition. A lock, a race or a bad event is no such
 * thing, and a connection that ends is told otherwise. */
static bool
refuses_all(const struct pn_conn *conn)
{
	static const char *const states[] = { "0A", "25006", "3F", "42", "53",
		"58", "XX" };

	if (strcmp(conn->sqlstate, "23514") == 0)
		return conn->constraint[0] == '\0';
	for (size_t i = 0; i < PN_COUNT(states); i++)
		if (starts(conn->sqlstate, states[i]))
			return true;
	return false;
}

/* After a statement was refused. */
static void
note_refused(struct pn_writer *writer)
{
	if (refuses_all(&writer->conn))
		pn_store_note_refused(writer->store, &writer->fault);
}

/* Every member of the batch has the same fate. */
static void
settle_all(struct pn_writer *writer, enum pn_fate fate)
{
	enum pn_fate fates[PN_BATCH_EVENTS_MAX];

	for (size_t i = 0; i < writer->batch.count; i++)
		fates[i] = fate;
	pn_settle(writer, writer->batch.members, writer->batch.count, fates);
}

/* Committed, and not a row of it: nothing is taken without a standby. */
static void
note_no_standby(struct pn_writer *writer)
{
	(void)pn_error_set(&writer->fault, 0,
	    "nothing is recorded: require_sync is set, but "
	    "synchronous_standby_names is empty");
	pn_store_note_refused(writer->store, &writer->fault);
	pn_log_every(
	    LOG_INTERVAL_US, PN_LOG_ERR, NULL, "%s", writer->fault.text);
}

/* quarantined: somebody has to look at it, so it is never held back. */
static void
log_refused(const struct pn_writer *writer, const struct pn_submission *s,
    bool quarantined, const char *what, const struct pn_error *error)
{
	char request_id[PN_UUID_TEXT_BYTES], provider[PN_TENANT_BYTES_MAX + 1];
	char tenant[PN_TENANT_BYTES_MAX + 1];
	const struct pn_log_about about = {
		.request_id = request_id,
		.provider = provider,
		.tenant = tenant,
		.key = s->event_count == 0 ? s->quarantine_subject
					   : s->events[0].key,
	};

	pn_uuid_text(s->request_id, request_id);
	(void)snprintf(
	    provider, sizeof(provider), PN_STR_FMT, PN_STR_ARG(s->provider));
	(void)snprintf(
	    tenant, sizeof(tenant), PN_STR_FMT, PN_STR_ARG(s->tenant));
	if (quarantined)
		pn_log_always(PN_LOG_ERR, &about, "%s: %s (%s)", what,
		    error->text, writer->conn.sqlstate);
	else
		pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR, &about, "%s: %s (%s)",
		    what, error->text, writer->conn.sqlstate);
}

static void
log_lost(const struct pn_writer *writer)
{
	if (writer->conn.warned)
		pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR, NULL,
		    "the database warned while it committed, so the outcome is "
		    "unknown and is not acknowledged; mend what it warns of: "
		    "%s",
		    writer->conn.warning);
	else
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
		    "outcome of a commit is unknown, it is submitted again: %s",
		    writer->fault.text);
}

/* Whether the batch is stored, all or nothing, is unknown: find out by
 * submitting it again. After a lost connection at once, on the next one; a
 * warning may come for ever. fates: NULL, or who is concerned.
 *
 * The statement that was cut off may still run, and commit after the one that
 * is sent now has looked for its receipt: then two receipts have one id. Keys,
 * events, evidence and quarantine have one row all the same: whoever comes
 * second finds the key or the entry taken. */
static void
settle_lost(struct pn_writer *writer, enum pn_fate *fates)
{
	struct pn_batch *batch = &writer->batch;
	enum pn_fate all[PN_BATCH_EVENTS_MAX];
	int64_t retry_at_us = 0;

	log_lost(writer);
	if (writer->conn.warned)
		retry_at_us = pn_clock_monotonic_us() + RETRY_US;
	for (size_t i = 0; i < batch->count; i++) {
		all[i] = fates == NULL || fates[i] == PN_FATE_LATER
			     ? PN_FATE_BACK
			     : PN_FATE_LATER;
		if (all[i] != PN_FATE_BACK)
			continue;
		batch->members[i]->maybe_stored = true;
		batch->members[i]->retry_at_us = retry_at_us;
	}
	pn_settle(writer, batch->members, batch->count, all);
}

/* One that others stood in the way of: again, by itself, later. */
static void
settle_later(struct pn_writer *writer, struct pn_submission *s)
{
	pn_metric_add(PN_METRIC_LOCK_TIMEOUTS, 1);
	log_refused(writer, s, false, "will be tried again", &writer->fault);
	s->alone = true;
	s->retry_at_us = pn_clock_monotonic_us() + RETRY_US;
	pn_settle_one(writer, s, PN_FATE_BACK);
}

/* Members whose fate is LATER have conflicts; the others are settled.
 *
 * Of a notification with a new event and a conflict the new one is committed
 * already, with its evidence, but without a receipt; the conflict's entry and
 * the receipt come with this second statement, still before the reply. A crash
 * in between leaves the event and no reply: the provider's retry finds a
 * duplicate and a conflict, and quarantines that. */
static int
quarantine_conflicts(struct pn_writer *writer, enum pn_fate *fates)
{
	struct pn_batch *batch = &writer->batch;
	bool chosen[PN_BATCH_EVENTS_MAX] = { false }, taken = false;
	int r;

	for (size_t i = 0; i < batch->count; i++)
		chosen[i] = fates[i] == PN_FATE_LATER;
	r = pn_batch_run_conflicts(
	    batch, &writer->conn, chosen, &taken, &writer->fault);
	if (r > 0)
		note_refused(writer);
	if (r < 0) {
		settle_lost(writer, fates);
		return r;
	}
	if (r == 0 && !taken)
		note_no_standby(writer);
	for (size_t i = 0; i < batch->count; i++) {
		if (!chosen[i])
			continue;
		if (r > 0) {
			settle_later(writer, batch->members[i]);
			continue;
		}
		batch->members[i]->verdict =
		    taken ? PN_STORE_CONFLICT : PN_STORE_UNAVAILABLE;
		pn_settle_one(writer, batch->members[i], PN_FATE_DONE);
	}
	return r > 0 && cause_of(&writer->conn) == CAUSE_SERVER ? -ECONNRESET
								: 0;
}

/* One element's verdict into that of its notification, which is a duplicate
 * until something in it is new or wrong. */
static void
judge(struct pn_submission *s, enum pn_element_verdict verdict,
    enum pn_fate *fate)
{
	switch (verdict) {
	case PN_ELEMENT_NEW:
		pn_metric_add(PN_METRIC_RECORDED, 1);
		if (s->verdict == PN_STORE_DUPLICATE)
			s->verdict = PN_STORE_RECORDED;
		return;
	case PN_ELEMENT_DUPLICATE: return;
	case PN_ELEMENT_CONFLICT:
		if (*fate == PN_FATE_DONE)
			*fate = PN_FATE_LATER;
		return;
	case PN_ELEMENT_AGAIN:
		pn_metric_add(PN_METRIC_AGAIN, 1);
		*fate = PN_FATE_BACK;
		return;
	case PN_ELEMENT_UNKNOWN: s->verdict = PN_STORE_UNAVAILABLE; return;
	}
}

/* Duplicates and conflicts count once their notification is through. */
static void
count_settled(const struct pn_batch *batch, const enum pn_fate *fates)
{
	int64_t duplicates = 0, conflicts = 0;

	for (size_t i = 0; i < batch->element_count; i++) {
		if (fates[batch->elements[i].member] == PN_FATE_BACK)
			continue;
		duplicates += batch->verdicts[i] == PN_ELEMENT_DUPLICATE;
		conflicts += batch->verdicts[i] == PN_ELEMENT_CONFLICT;
	}
	pn_metric_add(PN_METRIC_DUPLICATES, duplicates);
	pn_metric_add(PN_METRIC_CONFLICTS, conflicts);
}

/* The batch is committed. */
static int
settle_ingested(struct pn_writer *writer)
{
	struct pn_batch *batch = &writer->batch;
	enum pn_fate fates[PN_BATCH_EVENTS_MAX];
	bool conflicts = false, fresh = false;
	size_t member;

	for (size_t i = 0; i < batch->count; i++) {
		fates[i] = PN_FATE_DONE;
		batch->members[i]->verdict = PN_STORE_DUPLICATE;
	}
	for (size_t i = 0; i < batch->element_count; i++) {
		member = batch->elements[i].member;
		judge(
		    batch->members[member], batch->verdicts[i], &fates[member]);
		fresh |= batch->verdicts[i] == PN_ELEMENT_NEW;
	}
	count_settled(batch, fates);
	for (size_t i = 0; i < batch->count; i++) {
		conflicts |= fates[i] == PN_FATE_LATER;
		batch->members[i]->attempts += fates[i] == PN_FATE_BACK;
	}
	pn_settle(writer, batch->members, batch->count, fates);
	if (fresh)
		pn_notifier_kick(writer->store->notifier);
	return conflicts ? quarantine_conflicts(writer, fates) : 0;
}

static void
settle_quarantined(struct pn_writer *writer, bool taken)
{
	struct pn_batch *batch = &writer->batch;

	if (taken)
		pn_metric_add(PN_METRIC_QUARANTINED, (int64_t)batch->count);
	for (size_t i = 0; i < batch->count; i++)
		batch->members[i]->verdict =
		    taken ? PN_STORE_QUARANTINED : PN_STORE_UNAVAILABLE;
	settle_all(writer, PN_FATE_DONE);
}

/* The database will never take its data: keep the evidence, let an operator
 * see. */
static int
quarantine_refused(struct pn_writer *writer)
{
	struct pn_submission *s = writer->batch.members[0];
	struct pn_error cause = writer->fault;
	bool taken = false;
	int r;

	log_refused(
	    writer, s, true, "quarantined what the database refused", &cause);
	r = pn_batch_run_refused(
	    &writer->batch, &writer->conn, cause.text, &taken, &writer->fault);
	if (r < 0) {
		settle_lost(writer, NULL);
		return r;
	}
	if (r == 0) {
		settle_quarantined(writer, taken);
		return 0;
	}
	note_refused(writer);
	log_refused(
	    writer, s, false, "could not even quarantine", &writer->fault);
	s->verdict = PN_STORE_UNAVAILABLE;
	pn_settle_one(writer, s, PN_FATE_DONE);
	return 0;
}

/* The one member of the batch was refused. */
static int
settle_refused(struct pn_writer *writer)
{
	struct pn_submission *s = writer->batch.members[0];

	assert(writer->batch.count == 1);
	note_refused(writer);
	switch (cause_of(&writer->conn)) {
	case CAUSE_DATA: return quarantine_refused(writer);
	case CAUSE_LOCKS: settle_later(writer, s); return 0;
	case CAUSE_SERVER: break;
	}
	log_refused(writer, s, false, "connects anew", &writer->fault);
	pn_settle_one(writer, s, PN_FATE_BACK);
	return -ECONNRESET;
}

/* At debug only: what a committed batch was. */
static void
log_batch(const struct pn_batch *batch, int64_t began_us)
{
	size_t counts[PN_ELEMENT_UNKNOWN + 1] = { 0 };

	for (size_t i = 0; !batch->quarantine && i < batch->element_count; i++)
		counts[batch->verdicts[i]]++;
	pn_log_debug("committed %zu notifications in %" PRId64 " us%s: "
		     "%zu new, %zu duplicate, %zu conflict, %zu again",
	    batch->count, pn_clock_monotonic_us() - began_us,
	    batch->quarantine ? ", to quarantine" : "", counts[PN_ELEMENT_NEW],
	    counts[PN_ELEMENT_DUPLICATE], counts[PN_ELEMENT_CONFLICT],
	    counts[PN_ELEMENT_AGAIN]);
}

/* Sends the batch. > 0: refused, nobody is settled; else everybody is. */
static int
run(struct pn_writer *writer)
{
	struct pn_batch *batch = &writer->batch;
	int64_t began_us = pn_clock_monotonic_us();
	bool taken = false;
	int r;

	r = batch->quarantine
		? pn_batch_run_quarantine(
		      batch, &writer->conn, &taken, &writer->fault)
		: pn_batch_run_ingest(batch, &writer->conn, &writer->fault);
	if (r > 0)
		return r;
	if (r < 0) {
		settle_lost(writer, NULL);
		return r;
	}
	pn_metric_add(PN_METRIC_BATCHES, 1);
	pn_series_observe(
	    writer->store->commit_seconds, pn_clock_monotonic_us() - began_us);
	pn_series_observe(writer->store->batch_size, (int64_t)batch->count);
	if (pn_log_is_on(PN_LOG_DEBUG, PN_LOG_CATEGORY))
		log_batch(batch, began_us);
	writer->backoff.failures = 0;
	if (batch->quarantine ? taken
			      : batch->verdicts[0] != PN_ELEMENT_UNKNOWN)
		pn_store_note_committed(writer->store);
	else
		note_no_standby(writer);
	if (!batch->quarantine)
		return settle_ingested(writer);
	settle_quarantined(writer, taken);
	return 0;
}

/* Every member by itself. */
static int
isolate(struct pn_writer *writer)
{
	struct pn_submission *members[PN_BATCH_EVENTS_MAX];
	size_t i, count = writer->batch.count;
	int r;

	memcpy(members, writer->batch.members, count * sizeof(members[0]));
	r = pn_conn_exec(&writer->conn, SHORT_LOCKS, NULL, &writer->fault);
	r = r > 0 ? -EIO : r;
	for (i = 0; i < count && r == 0; i++) {
		if ((atomic_load(&members[i]->state) & PN_STATE_EXPIRED) != 0) {
			pn_settle_one(writer, members[i], PN_FATE_DONE);
			continue;
		}
		pn_batch_reset(&writer->batch);
		pn_batch_add(&writer->batch, members[i]);
		r = run(writer);
		if (r > 0)
			r = settle_refused(writer);
	}
	for (; i < count; i++) /* not sent */
		pn_settle_one(writer, members[i], PN_FATE_BACK);
	if (r == 0) {
		r = pn_conn_exec(
		    &writer->conn, USUAL_LOCKS, NULL, &writer->fault);
		r = r > 0 ? -EIO : r;
	}
	return r;
}

int
pn_attempt(struct pn_writer *writer)
{
	struct pn_batch *batch = &writer->batch;
	int r;

	assert(batch->count > 0 && batch->count == writer->sent_count);
	if (batch->members[0]->alone)
		return isolate(writer);
	r = run(writer);
	if (r <= 0)
		return r;
	if (batch->count == 1)
		return settle_refused(writer);
	if (cause_of(&writer->conn) == CAUSE_SERVER) {
		note_refused(writer);
		log_refused(writer, batch->members[0], false, "connects anew",
		    &writer->fault);
		settle_all(writer, PN_FATE_BACK);
		return -ECONNRESET;
	}
	pn_metric_add(PN_METRIC_BATCH_FAILURES, 1);
	return isolate(writer);
}
