/*
 * What a batch is made of, and how a statement with arrays is put together and
 * sent. The two statements are in batch_ingest.c and batch_quarantine.c.
 *
 * The arrays are kept from batch to batch, so that the hot path allocates
 * nothing, unless one has become very large.
 */
#include "batch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "batch_internal.h"
#include "statements.h"

enum {
	ARRAY_BYTES_MAX = PN_BATCH_BYTES_MAX * 4, /* escapes, lengths */
	ARRAY_BYTES_KEPT = 512 << 10, /* memory kept between batches */
	NAME_BYTES = 32,              /* of a prepared statement */
};

void
pn_batch_init(struct pn_batch *batch, bool require_sync, int64_t key_hot_us)
{
	*batch = (struct pn_batch){
		.require_sync = require_sync,
		.key_hot_us = key_hot_us,
	};
}

void
pn_batch_done(struct pn_batch *batch)
{
	for (size_t i = 0; i < PN_BATCH_PARAMS_MAX; i++)
		pn_array_done(&batch->arrays[i]);
}

void
pn_batch_reset(struct pn_batch *batch)
{
	batch->count = batch->weight = batch->bytes = 0;
	batch->resubmitted = false;
	batch->element_count = 0;
}

size_t
pn_submission_weight(const struct pn_submission *submission)
{
	return submission->event_count == 0 ? 1 : submission->event_count;
}

size_t
pn_submission_bytes(const struct pn_submission *submission)
{
	return submission->headers.len + submission->body.len +
	       submission->payload.len;
}

bool
pn_batch_fits(
    const struct pn_batch *batch, const struct pn_submission *submission)
{
	if (batch->count == 0)
		return true;
	return batch->weight + pn_submission_weight(submission) <=
		   PN_BATCH_EVENTS_MAX &&
	       batch->bytes + pn_submission_bytes(submission) <=
		   PN_BATCH_BYTES_MAX &&
	       batch->quarantine == (submission->quarantine_reason != NULL);
}

void
pn_batch_add(struct pn_batch *batch, struct pn_submission *submission)
{
	assert(pn_batch_fits(batch, submission));
	assert(submission->event_count <= PN_EVENTS_PER_NOTIFICATION_MAX);
	assert((submission->quarantine_reason != NULL) ==
	       (submission->event_count == 0));
	if (batch->count == 0)
		batch->quarantine = submission->quarantine_reason != NULL;
	batch->members[batch->count++] = submission;
	batch->weight += pn_submission_weight(submission);
	batch->bytes += pn_submission_bytes(submission);
	if (submission->maybe_stored)
		batch->resubmitted = true;
}

void
pn_batch_start(
    struct pn_batch *batch, const enum pn_array_type *types, size_t count)
{
	struct pn_array *array;

	for (size_t i = 0; i < count; i++) {
		array = &batch->arrays[i];
		if (array->buf.max != 0 &&
		    array->buf.size <= ARRAY_BYTES_KEPT) {
			array->type = types[i];
			pn_array_reset(array);
			continue;
		}
		pn_array_done(array);
		*array = pn_array_init(types[i], ARRAY_BYTES_MAX);
	}
}

int
pn_batch_set(struct pn_batch *batch, size_t at, const void *data, size_t len)
{
	if (data == NULL || len > INT32_MAX)
		return -ENOMEM;
	batch->values[at] = data;
	batch->lengths[at] = (int)len;
	batch->formats[at] = 1;
	return 0;
}

int
pn_batch_finish(struct pn_batch *batch, size_t array_count)
{
	struct pn_str s;
	int r = 0;

	for (size_t i = 0; r == 0 && i < array_count; i++) {
		s = pn_array_finish(&batch->arrays[i]);
		r = pn_batch_set(batch, i, s.data, s.len);
	}
	batch->require_sync_param = batch->require_sync;
	if (r == 0)
		r = pn_batch_set(
		    batch, array_count, &batch->require_sync_param, 1);
	return r;
}

int
pn_batch_send(struct pn_batch *batch, struct pn_conn *conn, const char *name,
    size_t first, size_t end, PGresult **ret_result, struct pn_error *ret_error)
{
	struct pn_params params = {
		.count = (int)(end - first),
		.values = batch->values + first,
		.lengths = batch->lengths + first,
		.formats = batch->formats + first,
	};
	char full_name[NAME_BYTES];

	assert(first < end && end <= PN_BATCH_PARAMS_MAX);
	(void)snprintf(full_name, sizeof(full_name), "%s%s", name,
	    batch->resubmitted ? "_resubmitted" : "");
	return pn_conn_run(conn, full_name, &params, ret_result, ret_error);
}

int
pn_batch_prepare(struct pn_conn *conn, struct pn_error *ret_error)
{
	static const struct {
		const char *name, *sql;
	} all[] = {
		{ "ingest", pn_sql_ingest },
		{ "ingest_one", pn_sql_ingest_one },
		{ "ingest_resubmitted", pn_sql_ingest_resubmitted },
		{ "quarantine", pn_sql_quarantine },
		{ "quarantine_resubmitted", pn_sql_quarantine_resubmitted },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < PN_COUNT(all); i++)
		r = pn_conn_prepare(conn, all[i].name, all[i].sql, ret_error);
	return r;
}
