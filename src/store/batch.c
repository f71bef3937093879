/*
 * From submissions to the parameters of ingest.sql and quarantine.sql, and
 * from their rows to verdicts.
 *
 * Parameters are binary arrays, one column each: members of the first 18 of
 * ingest.sql are elements (events), of the others notifications. The names
 * below are their places in the statements; the two must change together.
 *
 * Invariant: within a batch no two elements have the same key and content. The
 * queue sees to that between notifications; here a notification that names the
 * same event twice gets one element for both.
 */
#include "batch.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "statements.h"

enum ingest_param { /* $n is n - 1 */
	I_ORD,
	I_N,
	I_TENANT,
	I_PATH,
	I_KEY,
	I_DIGEST,
	I_HASH,
	I_ID,
	I_LIVEMODE,
	I_TYPE,
	I_ACCOUNT,
	I_OUT_TRADE_NO,
	I_TRANSACTION_ID,
	I_AMOUNT,
	I_ORDER_AMOUNT,
	I_CURRENCY,
	I_REFUND,
	I_OCCURRED_AT,
	/* of notifications: */
	I_SUCCESS_BODY,
	I_RECEIPT_ID,
	I_PROVIDER,
	I_N_TENANT,
	I_N_PATH,
	I_PEER,
	I_NOTIFY_ID,
	I_HEADERS,
	I_BODY,
	I_KEY_FINGERPRINT,
	I_PAYLOAD,
	I_N_OUT_TRADE_NO,
	I_REFUSED_STATUS,
	I_BODY_BYTES,
	I_ARRAYS,
	I_REQUIRE_SYNC = I_ARRAYS,
	I_KEY_HOT,
	I_COUNT
};

enum quarantine_param {
	Q_ID,
	Q_PROVIDER,
	Q_TENANT,
	Q_PATH,
	Q_SUBJECT,
	Q_FINGERPRINT,
	Q_REASON,
	Q_EVENTS,
	Q_PEER,
	Q_NOTIFY_ID,
	Q_VERDICT,
	Q_STATUS,
	Q_BODY_BYTES,
	Q_HEADERS,
	Q_BODY,
	Q_KEY_FINGERPRINT,
	Q_PAYLOAD,
	Q_ARRAYS,
	Q_REQUIRE_SYNC = Q_ARRAYS,
	Q_COUNT
};

static_assert(I_COUNT == 34, "ingest.sql has $1 to $34");
static_assert(Q_COUNT == 18, "quarantine.sql has $1 to $18");
static_assert((int)I_COUNT <= (int)PN_BATCH_PARAMS_MAX, "all have a place");

static const enum pn_array_type INGEST_TYPES[I_ARRAYS] = {
	[I_ORD] = PN_ARRAY_INT4,
	[I_N] = PN_ARRAY_INT4,
	[I_TENANT] = PN_ARRAY_TEXT,
	[I_PATH] = PN_ARRAY_TEXT,
	[I_KEY] = PN_ARRAY_TEXT,
	[I_DIGEST] = PN_ARRAY_BYTEA,
	[I_HASH] = PN_ARRAY_BYTEA,
	[I_ID] = PN_ARRAY_UUID,
	[I_LIVEMODE] = PN_ARRAY_BOOL,
	[I_TYPE] = PN_ARRAY_TEXT,
	[I_ACCOUNT] = PN_ARRAY_TEXT,
	[I_OUT_TRADE_NO] = PN_ARRAY_TEXT,
	[I_TRANSACTION_ID] = PN_ARRAY_TEXT,
	[I_AMOUNT] = PN_ARRAY_INT8,
	[I_ORDER_AMOUNT] = PN_ARRAY_INT8,
	[I_CURRENCY] = PN_ARRAY_TEXT,
	[I_REFUND] = PN_ARRAY_TEXT,
	[I_OCCURRED_AT] = PN_ARRAY_TIMESTAMPTZ,
	[I_SUCCESS_BODY] = PN_ARRAY_BYTEA,
	[I_RECEIPT_ID] = PN_ARRAY_UUID,
	[I_PROVIDER] = PN_ARRAY_TEXT,
	[I_N_TENANT] = PN_ARRAY_TEXT,
	[I_N_PATH] = PN_ARRAY_TEXT,
	[I_PEER] = PN_ARRAY_TEXT,
	[I_NOTIFY_ID] = PN_ARRAY_TEXT,
	[I_HEADERS] = PN_ARRAY_TEXT,
	[I_BODY] = PN_ARRAY_BYTEA,
	[I_KEY_FINGERPRINT] = PN_ARRAY_BYTEA,
	[I_PAYLOAD] = PN_ARRAY_TEXT,
	[I_N_OUT_TRADE_NO] = PN_ARRAY_TEXT,
	[I_REFUSED_STATUS] = PN_ARRAY_INT4,
	[I_BODY_BYTES] = PN_ARRAY_INT4,
};

static const enum pn_array_type QUARANTINE_TYPES[Q_ARRAYS] = {
	[Q_ID] = PN_ARRAY_UUID,
	[Q_PROVIDER] = PN_ARRAY_TEXT,
	[Q_TENANT] = PN_ARRAY_TEXT,
	[Q_PATH] = PN_ARRAY_TEXT,
	[Q_SUBJECT] = PN_ARRAY_TEXT,
	[Q_FINGERPRINT] = PN_ARRAY_BYTEA,
	[Q_REASON] = PN_ARRAY_TEXT,
	[Q_EVENTS] = PN_ARRAY_JSON,
	[Q_PEER] = PN_ARRAY_TEXT,
	[Q_NOTIFY_ID] = PN_ARRAY_TEXT,
	[Q_VERDICT] = PN_ARRAY_TEXT,
	[Q_STATUS] = PN_ARRAY_INT4,
	[Q_BODY_BYTES] = PN_ARRAY_INT4,
	[Q_HEADERS] = PN_ARRAY_TEXT,
	[Q_BODY] = PN_ARRAY_BYTEA,
	[Q_KEY_FINGERPRINT] = PN_ARRAY_BYTEA,
	[Q_PAYLOAD] = PN_ARRAY_TEXT,
};

enum {
	ARRAY_BYTES_MAX = PN_BATCH_BYTES_MAX * 4, /* escapes, lengths */
	ARRAY_BYTES_KEPT = 512 << 10, /* memory kept between batches */
	STATUS_REFUSED = 422,
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
}

/* Empty arrays of the types of a statement. */
static void
start(struct pn_batch *batch, const enum pn_array_type *types, size_t count)
{
	struct pn_array *array;

	for (size_t i = 0; i < count; i++) {
		array = &batch->arrays[i];
		if (array->buf.max != 0 && array->type == types[i] &&
		    array->buf.size <= ARRAY_BYTES_KEPT) {
			pn_array_reset(array);
			continue;
		}
		pn_array_done(array);
		*array = pn_array_init(types[i], ARRAY_BYTES_MAX);
	}
	batch->element_count = 0;
}

static void
add_amount(struct pn_array *array, struct pn_amount amount)
{
	if (amount.present)
		pn_array_add_int8(array, amount.minor);
	else
		pn_array_add_null(array);
}

/* A JSON string, or null when it is empty. */
static void
add_json_text(struct pn_buf *out, struct pn_str s)
{
	if (s.len == 0) {
		pn_buf_add_text(out, "null");
		return;
	}
	pn_buf_add_char(out, '"');
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if (c == '"' || c == '\\')
			pn_buf_printf(out, "\\%c", c);
		else if (c < 0x20)
			pn_buf_printf(out, "\\u%04x", c);
		else
			pn_buf_add_char(out, (char)c);
	}
	pn_buf_add_char(out, '"');
}

static void
add_refund(struct pn_array *array, const struct pn_refund *refund)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf json = { 0 };

	if (!refund->present) {
		pn_array_add_null(array);
		return;
	}
	json = pn_buf_init(8 * PN_KEY_BYTES_MAX);
	pn_buf_add_text(&json, "{\"id\":");
	add_json_text(&json, refund->id);
	pn_buf_add_text(&json, ",\"out_refund_no\":");
	add_json_text(&json, refund->out_refund_no);
	pn_buf_add_text(&json, ",\"refunded_total\":");
	if (refund->refunded_total.present)
		pn_buf_printf(
		    &json, "%lld", (long long)refund->refunded_total.minor);
	else
		pn_buf_add_text(&json, "null");
	pn_buf_add_char(&json, '}');
	/* One that is too long is no JSON any more: the database refuses it,
	 * and the notification goes to quarantine. */
	pn_array_add_str(array, pn_buf_str(&json));
}

static void
add_element(struct pn_batch *batch, size_t member, size_t event)
{
	const struct pn_event *e = &batch->members[member]->events[event];
	struct pn_array *a = batch->arrays;
	size_t at = batch->element_count++;

	assert(at < PN_BATCH_EVENTS_MAX);
	batch->elements[at].member = (uint16_t)member;
	batch->elements[at].event = (uint16_t)event;
	batch->verdicts[at] = PN_ELEMENT_UNKNOWN;
	pn_array_add_int4(&a[I_ORD], (int32_t)at + 1);
	pn_array_add_int4(&a[I_N], (int32_t)member + 1);
	pn_array_add_bytes(&a[I_TENANT], e->tenant.data, e->tenant.len);
	pn_array_add_bytes(&a[I_PATH], e->route.data, e->route.len);
	pn_array_add_bytes(&a[I_KEY], e->key.data, e->key.len);
	pn_array_add_bytes(&a[I_DIGEST], e->key_digest, PN_SHA256_BYTES);
	pn_array_add_bytes(&a[I_HASH], e->request_hash, PN_SHA256_BYTES);
	pn_array_add_bytes(&a[I_ID], e->id, sizeof(e->id));
	pn_array_add_bool(&a[I_LIVEMODE], e->livemode);
	pn_array_add_bytes(&a[I_TYPE], e->type.data, e->type.len);
	pn_array_add_filled(&a[I_ACCOUNT], e->account);
	pn_array_add_filled(&a[I_OUT_TRADE_NO], e->out_trade_no);
	pn_array_add_filled(&a[I_TRANSACTION_ID], e->transaction_id);
	add_amount(&a[I_AMOUNT], e->amount);
	add_amount(&a[I_ORDER_AMOUNT], e->order_amount);
	pn_array_add_filled(&a[I_CURRENCY], e->currency);
	add_refund(&a[I_REFUND], &e->refund);
	pn_array_add_moment(&a[I_OCCURRED_AT], e->occurred_at_us);
}

/* Whether an earlier event of the notification is the same one. */
static bool
is_repeated(const struct pn_submission *s, size_t event)
{
	for (size_t i = 0; i < event; i++)
		if (memcmp(s->events[i].id, s->events[event].id,
			sizeof(s->events[i].id)) == 0 &&
		    memcmp(s->events[i].request_hash,
			s->events[event].request_hash, PN_SHA256_BYTES) == 0)
			return true;
	return false;
}

static int32_t
refused_status(const struct pn_submission *s)
{
	return s->refused_status == 0 ? STATUS_REFUSED : s->refused_status;
}

static void
add_notification(struct pn_batch *batch, size_t member)
{
	const struct pn_submission *s = batch->members[member];
	struct pn_array *a = batch->arrays;

	for (size_t i = 0; i < s->event_count; i++)
		if (!is_repeated(s, i))
			add_element(batch, member, i);
	pn_array_add_filled(&a[I_SUCCESS_BODY], s->success_body);
	pn_array_add_bytes(
	    &a[I_RECEIPT_ID], s->request_id, PN_REQUEST_ID_BYTES);
	pn_array_add_bytes(&a[I_PROVIDER], s->provider.data, s->provider.len);
	pn_array_add_bytes(&a[I_N_TENANT], s->tenant.data, s->tenant.len);
	pn_array_add_bytes(&a[I_N_PATH], s->route.data, s->route.len);
	pn_array_add_filled(&a[I_PEER], s->peer);
	pn_array_add_filled(&a[I_NOTIFY_ID], s->notify_id);
	pn_array_add_latin1(&a[I_HEADERS], s->headers);
	pn_array_add_bytes(&a[I_BODY], s->body.data, s->body.len);
	pn_array_add_bytes(
	    &a[I_KEY_FINGERPRINT], s->key_fingerprint, PN_SHA256_BYTES);
	pn_array_add_filled(&a[I_PAYLOAD], s->payload);
	pn_array_add_filled(&a[I_N_OUT_TRADE_NO], s->events[0].out_trade_no);
	pn_array_add_int4(&a[I_REFUSED_STATUS], refused_status(s));
	pn_array_add_int4(&a[I_BODY_BYTES], (int32_t)s->body.len);
}

/* Text from a notification that the database may refuse: what is not UTF-8, or
 * NUL, becomes "?". */
static void
add_mended(struct pn_array *array, struct pn_str s, bool mend)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf text = { 0 };
	bool utf8;

	if (!mend || s.len == 0) {
		pn_array_add_filled(array, s);
		return;
	}
	text = pn_buf_init(PN_BODY_BYTES_MAX);
	utf8 = pn_str_is_utf8(s);
	for (size_t i = 0; i < s.len; i++)
		pn_buf_add_char(
		    &text, s.data[i] == '\0' ||
				   (!utf8 && (unsigned char)s.data[i] >= 0x80)
			       ? '?'
			       : s.data[i]);
	pn_array_add_filled(array, pn_buf_str(&text));
}

/* What differs between a notification that came to be quarantined and one whose
 * events the database refused. */
struct entry {
	struct pn_str subject, reason, verdict;
	const unsigned char *fingerprint;
	bool mend;
};

static void
add_quarantine(struct pn_batch *batch, const struct pn_submission *s,
    const struct entry *entry)
{
	struct pn_array *a = batch->arrays;
	bool mend = entry->mend;

	pn_array_add_bytes(&a[Q_ID], s->request_id, PN_REQUEST_ID_BYTES);
	pn_array_add_bytes(&a[Q_PROVIDER], s->provider.data, s->provider.len);
	pn_array_add_bytes(&a[Q_TENANT], s->tenant.data, s->tenant.len);
	pn_array_add_bytes(&a[Q_PATH], s->route.data, s->route.len);
	add_mended(&a[Q_SUBJECT], entry->subject, mend);
	pn_array_add_bytes(
	    &a[Q_FINGERPRINT], entry->fingerprint, PN_SHA256_BYTES);
	add_mended(&a[Q_REASON], entry->reason, mend);
	pn_array_add_bytes(&a[Q_EVENTS], "[]", 2);
	add_mended(&a[Q_PEER], s->peer, mend);
	add_mended(&a[Q_NOTIFY_ID], s->notify_id, mend);
	pn_array_add_str(&a[Q_VERDICT], entry->verdict);
	pn_array_add_int4(&a[Q_STATUS], refused_status(s));
	pn_array_add_int4(&a[Q_BODY_BYTES], (int32_t)s->body.len);
	pn_array_add_latin1(&a[Q_HEADERS], s->headers);
	pn_array_add_bytes(&a[Q_BODY], s->body.data, s->body.len);
	pn_array_add_bytes(
	    &a[Q_KEY_FINGERPRINT], s->key_fingerprint, PN_SHA256_BYTES);
	/* A payload that was refused can be made from the body again. */
	pn_array_add_filled(
	    &a[Q_PAYLOAD], mend ? (struct pn_str){ NULL, 0 } : s->payload);
}

static int
set_param(struct pn_batch *batch, size_t at, const void *data, size_t len)
{
	if (data == NULL || len > INT32_MAX)
		return -ENOMEM;
	batch->values[at] = data;
	batch->lengths[at] = (int)len;
	batch->formats[at] = 1;
	return 0;
}

/* The parameters behind the arrays. */
static int
set_params(struct pn_batch *batch, size_t array_count)
{
	struct {
		uint64_t us;
		uint32_t days, months;
	} interval = { htobe64((uint64_t)batch->key_hot_us), 0, 0 };
	struct pn_str s;
	int r = 0;

	for (size_t i = 0; r == 0 && i < array_count; i++) {
		s = pn_array_finish(&batch->arrays[i]);
		r = set_param(batch, i, s.data, s.len);
	}
	batch->require_sync_param = batch->require_sync;
	static_assert(sizeof(interval) == sizeof(batch->key_hot_param),
	    "an interval is 16 bytes");
	memcpy(batch->key_hot_param, &interval, sizeof(interval));
	if (r == 0)
		r = set_param(
		    batch, array_count, &batch->require_sync_param, 1);
	if (r == 0 && !batch->quarantine)
		r = set_param(batch, I_KEY_HOT, batch->key_hot_param,
		    sizeof(batch->key_hot_param));
	return r;
}

static bool
is_resubmitted(const struct pn_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->members[i]->maybe_stored)
			return true;
	return false;
}

int
pn_batch_prepare(struct pn_conn *conn, struct pn_error *ret_error)
{
	static const struct {
		const char *name, *sql;
	} all[] = {
		{ "ingest", pn_sql_ingest },
		{ "ingest_resubmitted", pn_sql_ingest_resubmitted },
		{ "quarantine", pn_sql_quarantine },
		{ "quarantine_resubmitted", pn_sql_quarantine_resubmitted },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < PN_COUNT(all); i++)
		r = pn_conn_prepare(conn, all[i].name, all[i].sql, ret_error);
	return r;
}

static int32_t
int4_at(const PGresult *result, int row, int column)
{
	uint32_t big;

	assert(PQgetlength(result, row, column) == sizeof(big));
	memcpy(&big, PQgetvalue(result, row, column), sizeof(big));
	return (int32_t)be32toh(big);
}

static int
read_verdicts(
    struct pn_batch *batch, const PGresult *result, struct pn_error *error)
{
	int rows = PQntuples(result);
	int32_t ord, verdict;

	for (int i = 0; i < rows; i++) {
		ord = int4_at(result, i, 0);
		verdict = int4_at(result, i, 1);
		assert(ord >= 1 && (size_t)ord <= batch->element_count);
		assert(verdict >= PN_ELEMENT_NEW);
		assert(verdict <= PN_ELEMENT_AGAIN);
		batch->verdicts[ord - 1] = (enum pn_element_verdict)verdict;
	}
	if (rows != 0 && (size_t)rows != batch->element_count)
		return pn_error_set(error, -EPROTO,
		    "%d verdicts for %zu events", rows, batch->element_count);
	return 0;
}

/* quarantine.sql says how many it took: all, or none for want of a standby. */
static void
read_quarantined(struct pn_batch *batch, const PGresult *result)
{
	uint64_t big;

	assert(PQntuples(result) == 1);
	assert(PQgetlength(result, 0, 0) == sizeof(big));
	memcpy(&big, PQgetvalue(result, 0, 0), sizeof(big));
	batch->element_count = batch->count;
	for (size_t i = 0; i < batch->count; i++) {
		batch->elements[i].member = (uint16_t)i;
		batch->verdicts[i] =
		    big == 0 ? PN_ELEMENT_UNKNOWN : PN_ELEMENT_NEW;
	}
}

static int
run_ingest(struct pn_batch *batch, struct pn_conn *conn, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_params params = { I_COUNT, batch->values, batch->lengths,
		batch->formats };
	int r;

	start(batch, INGEST_TYPES, I_ARRAYS);
	for (size_t i = 0; i < batch->count; i++)
		add_notification(batch, i);
	r = set_params(batch, I_ARRAYS);
	if (r < 0)
		return pn_error_set(error, r, "out of memory");
	r = pn_conn_run(conn,
	    is_resubmitted(batch) ? "ingest_resubmitted" : "ingest", &params,
	    &result, error);
	if (r == 0)
		r = read_verdicts(batch, result, error);
	return r;
}

static int
run_quarantine(
    struct pn_batch *batch, struct pn_conn *conn, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_params params = { Q_COUNT, batch->values, batch->lengths,
		batch->formats };
	int r;

	r = set_params(batch, Q_ARRAYS);
	if (r < 0)
		return pn_error_set(error, r, "out of memory");
	r = pn_conn_run(conn,
	    is_resubmitted(batch) ? "quarantine_resubmitted" : "quarantine",
	    &params, &result, error);
	if (r == 0)
		read_quarantined(batch, result);
	return r;
}

int
pn_batch_run(
    struct pn_batch *batch, struct pn_conn *conn, struct pn_error *ret_error)
{
	const struct pn_submission *s;

	assert(batch->count > 0);
	if (!batch->quarantine)
		return run_ingest(batch, conn, ret_error);
	start(batch, QUARANTINE_TYPES, Q_ARRAYS);
	for (size_t i = 0; i < batch->count; i++) {
		s = batch->members[i];
		add_quarantine(batch, s,
		    &(struct entry){
			.subject = s->quarantine_subject,
			.reason = pn_str_from(s->quarantine_reason),
			.verdict = s->quarantine_verdict.len == 0
				       ? PN_STR("quarantined")
				       : s->quarantine_verdict,
			.fingerprint = s->quarantine_fingerprint,
		    });
	}
	return run_quarantine(batch, conn, ret_error);
}

int
pn_batch_run_refused(struct pn_batch *batch, struct pn_conn *conn,
    const char *reason, struct pn_error *ret_error)
{
	const struct pn_submission *s = batch->members[0];
	bool had_events = !batch->quarantine;
	int r;

	assert(batch->count == 1);
	start(batch, QUARANTINE_TYPES, Q_ARRAYS);
	add_quarantine(batch, s,
	    &(struct entry){
		.subject =
		    had_events ? s->events[0].key : s->quarantine_subject,
		.reason = pn_str_from(reason),
		.verdict = PN_STR("quarantined"),
		.fingerprint = had_events ? s->events[0].request_hash
					  : s->quarantine_fingerprint,
		.mend = true,
	    });
	batch->quarantine = true;
	r = run_quarantine(batch, conn, ret_error);
	batch->quarantine = !had_events;
	return r;
}
