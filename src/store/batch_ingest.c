/*
 * From notifications with events to the parameters of ingest.sql, and from its
 * rows to verdicts.
 *
 * Parameters are binary arrays, one column each: members of the first 19 are
 * elements (events), of the others notifications. The names below are their
 * places in the statement; the two must change together. Elements stand in the
 * order of their keys, which is that in which every writer claims them.
 *
 * One event alone, which is what most requests meet when there is little to do,
 * goes as plain values instead (ingest_one.sql): its cost is all in setting up
 * the statement.
 *
 * Invariant: within a batch no two elements have the same key and content. The
 * queue sees to that between notifications; here a notification that names the
 * same event twice gets one element for both.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch_internal.h"

/* clang-format off */
enum param { /* $n is n - 1 */
	P_POS, P_ORD, P_N, P_TENANT, P_PATH, P_KEY, P_DIGEST, P_HASH, P_ID,
	P_LIVEMODE, P_TYPE, P_ACCOUNT, P_OUT_TRADE_NO, P_TRANSACTION_ID, P_AMOUNT,
	P_ORDER_AMOUNT, P_CURRENCY, P_REFUND, P_OCCURRED_AT,
	/* of notifications: */
	P_SUCCESS_BODY, P_RECEIPT_ID, P_PROVIDER, P_N_TENANT, P_N_PATH, P_PEER,
	P_NOTIFY_ID, P_HEADERS, P_BODY, P_KEY_FINGERPRINT, P_PAYLOAD,
	P_N_OUT_TRADE_NO, P_BODY_BYTES,
	P_ARRAYS,
	P_REQUIRE_SYNC = P_ARRAYS, P_KEY_HOT,
	P_COUNT,
	P_OF_ONE = P_TENANT /* ingest_one.sql begins with this one */
};

static const enum pn_array_type TYPES[P_ARRAYS] = {
	[P_POS] = PN_ARRAY_INT4, [P_ORD] = PN_ARRAY_INT4,
	[P_N] = PN_ARRAY_INT4,
	[P_TENANT] = PN_ARRAY_TEXT, [P_PATH] = PN_ARRAY_TEXT,
	[P_KEY] = PN_ARRAY_TEXT, [P_DIGEST] = PN_ARRAY_BYTEA,
	[P_HASH] = PN_ARRAY_BYTEA, [P_ID] = PN_ARRAY_UUID,
	[P_LIVEMODE] = PN_ARRAY_BOOL, [P_TYPE] = PN_ARRAY_TEXT,
	[P_ACCOUNT] = PN_ARRAY_TEXT, [P_OUT_TRADE_NO] = PN_ARRAY_TEXT,
	[P_TRANSACTION_ID] = PN_ARRAY_TEXT, [P_AMOUNT] = PN_ARRAY_INT8,
	[P_ORDER_AMOUNT] = PN_ARRAY_INT8, [P_CURRENCY] = PN_ARRAY_TEXT,
	[P_REFUND] = PN_ARRAY_JSONB, [P_OCCURRED_AT] = PN_ARRAY_TIMESTAMPTZ,
	[P_SUCCESS_BODY] = PN_ARRAY_BYTEA, [P_RECEIPT_ID] = PN_ARRAY_UUID,
	[P_PROVIDER] = PN_ARRAY_TEXT, [P_N_TENANT] = PN_ARRAY_TEXT,
	[P_N_PATH] = PN_ARRAY_TEXT, [P_PEER] = PN_ARRAY_TEXT,
	[P_NOTIFY_ID] = PN_ARRAY_TEXT, [P_HEADERS] = PN_ARRAY_TEXT,
	[P_BODY] = PN_ARRAY_BYTEA, [P_KEY_FINGERPRINT] = PN_ARRAY_BYTEA,
	[P_PAYLOAD] = PN_ARRAY_TEXT, [P_N_OUT_TRADE_NO] = PN_ARRAY_TEXT,
	[P_BODY_BYTES] = PN_ARRAY_INT4,
};
/* clang-format on */

static_assert(P_COUNT == 34, "ingest.sql has $1 to $34");
enum { JSONB_VERSION = 1 }; /* before the text, in its binary form */

static_assert((int)P_COUNT <= (int)PN_BATCH_PARAMS_MAX, "all have a place");

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
	pn_buf_add_char(&json, JSONB_VERSION);
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

/* An event of the batch. */
struct element {
	const struct pn_event *event;
	uint16_t member, number; /* which notification, which event of it */
	uint16_t ord;            /* in the order of arrival */
};

/* The order in which keys are claimed: of the primary key. */
static int
compare_elements(const void *a, const void *b)
{
	const struct element *x = a, *y = b;
	int r;

	r = pn_str_compare(x->event->tenant, y->event->tenant);
	if (r == 0)
		r = pn_str_compare(x->event->route, y->event->route);
	if (r == 0)
		r = pn_str_compare(x->event->key, y->event->key);
	return r != 0 ? r : x->ord - y->ord;
}

static void
add_element(struct pn_batch *batch, const struct element *element)
{
	const struct pn_event *e = element->event;
	struct pn_array *a = batch->arrays;
	size_t at = batch->element_count++;

	assert(at < PN_BATCH_EVENTS_MAX);
	batch->elements[at].member = element->member;
	batch->elements[at].event = element->number;
	batch->verdicts[at] = PN_ELEMENT_UNKNOWN;
	pn_array_add_int4(&a[P_POS], (int32_t)at + 1);
	pn_array_add_int4(&a[P_ORD], element->ord);
	pn_array_add_int4(&a[P_N], element->member + 1);
	pn_array_add_bytes(&a[P_TENANT], e->tenant.data, e->tenant.len);
	pn_array_add_bytes(&a[P_PATH], e->route.data, e->route.len);
	pn_array_add_bytes(&a[P_KEY], e->key.data, e->key.len);
	pn_array_add_bytes(&a[P_DIGEST], e->key_digest, PN_SHA256_BYTES);
	pn_array_add_bytes(&a[P_HASH], e->request_hash, PN_SHA256_BYTES);
	pn_array_add_bytes(&a[P_ID], e->id, sizeof(e->id));
	pn_array_add_bool(&a[P_LIVEMODE], e->livemode);
	pn_array_add_bytes(&a[P_TYPE], e->type.data, e->type.len);
	pn_array_add_filled(&a[P_ACCOUNT], e->account);
	pn_array_add_filled(&a[P_OUT_TRADE_NO], e->out_trade_no);
	pn_array_add_filled(&a[P_TRANSACTION_ID], e->transaction_id);
	add_amount(&a[P_AMOUNT], e->amount);
	add_amount(&a[P_ORDER_AMOUNT], e->order_amount);
	pn_array_add_filled(&a[P_CURRENCY], e->currency);
	add_refund(&a[P_REFUND], &e->refund);
	pn_array_add_moment(&a[P_OCCURRED_AT], e->occurred_at_us);
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

static void
add_notification(struct pn_batch *batch, size_t member)
{
	const struct pn_submission *s = batch->members[member];
	struct pn_array *a = batch->arrays;

	pn_array_add_filled(&a[P_SUCCESS_BODY], s->success_body);
	pn_array_add_bytes(
	    &a[P_RECEIPT_ID], s->request_id, PN_REQUEST_ID_BYTES);
	pn_array_add_bytes(&a[P_PROVIDER], s->provider.data, s->provider.len);
	pn_array_add_bytes(&a[P_N_TENANT], s->tenant.data, s->tenant.len);
	pn_array_add_bytes(&a[P_N_PATH], s->route.data, s->route.len);
	pn_array_add_filled(&a[P_PEER], s->peer);
	pn_array_add_filled(&a[P_NOTIFY_ID], s->notify_id);
	pn_array_add_latin1(&a[P_HEADERS], s->headers);
	pn_array_add_bytes(&a[P_BODY], s->body.data, s->body.len);
	pn_array_add_bytes(
	    &a[P_KEY_FINGERPRINT], s->key_fingerprint, PN_SHA256_BYTES);
	pn_array_add_filled(&a[P_PAYLOAD], s->payload);
	pn_array_add_filled(&a[P_N_OUT_TRADE_NO], s->events[0].out_trade_no);
	pn_array_add_int4(&a[P_BODY_BYTES], (int32_t)s->body.len);
}

static void
add_elements(struct pn_batch *batch)
{
	struct element elements[PN_BATCH_EVENTS_MAX];
	const struct pn_submission *s;
	uint16_t count = 0;

	for (size_t i = 0; i < batch->count; i++) {
		s = batch->members[i];
		for (size_t j = 0; j < s->event_count; j++) {
			if (is_repeated(s, j))
				continue;
			assert(count < PN_BATCH_EVENTS_MAX);
			elements[count] = (struct element){
				.event = &s->events[j],
				.member = (uint16_t)i,
				.number = (uint16_t)j,
				.ord = count,
			};
			count++;
		}
	}
	qsort(elements, count, sizeof(elements[0]), compare_elements);
	for (size_t i = 0; i < count; i++)
		add_element(batch, &elements[i]);
}

/* How long a key stays in the hot tier, as PostgreSQL's interval. */
static int
set_key_hot(struct pn_batch *batch)
{
	struct {
		uint64_t us;
		uint32_t days, months;
	} interval = { htobe64((uint64_t)batch->key_hot_us), 0, 0 };

	static_assert(sizeof(interval) == sizeof(batch->key_hot_param),
	    "an interval is 16 bytes");
	memcpy(batch->key_hot_param, &interval, sizeof(interval));
	return pn_batch_set(batch, P_KEY_HOT, batch->key_hot_param,
	    sizeof(batch->key_hot_param));
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
	int32_t pos, verdict;

	for (int i = 0; i < rows; i++) {
		pos = int4_at(result, i, 0);
		verdict = int4_at(result, i, 1);
		assert(pos >= 1 && (size_t)pos <= batch->element_count);
		assert(verdict >= PN_ELEMENT_NEW);
		assert(verdict <= PN_ELEMENT_AGAIN);
		batch->verdicts[pos - 1] = (enum pn_element_verdict)verdict;
	}
	if (rows != 0 && (size_t)rows != batch->element_count)
		return pn_error_set(error, -EPROTO,
		    "%d verdicts for %zu events", rows, batch->element_count);
	return 0;
}

/* The only member of each array instead of the array. */
static void
set_plain(struct pn_batch *batch)
{
	struct pn_str value;

	for (size_t i = P_OF_ONE; i < P_ARRAYS; i++) {
		value = pn_array_only(&batch->arrays[i]);
		batch->values[i] = value.data; /* NULL is NULL */
		batch->lengths[i] = (int)value.len;
	}
}

int
pn_batch_run_ingest(
    struct pn_batch *batch, struct pn_conn *conn, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	size_t first = 0;
	int r;

	assert(batch->count > 0 && !batch->quarantine);
	pn_batch_start(batch, TYPES, P_ARRAYS);
	batch->element_count = 0;
	add_elements(batch);
	for (size_t i = 0; i < batch->count; i++)
		add_notification(batch, i);
	assert(batch->element_count >= batch->count);
	r = pn_batch_finish(batch, P_ARRAYS);
	if (r == 0)
		r = set_key_hot(batch);
	if (r < 0)
		return pn_error_set(ret_error, r, "out of memory");
	if (batch->element_count == 1 && !batch->resubmitted) {
		set_plain(batch);
		first = P_OF_ONE;
	}
	r = pn_batch_send(batch, conn, first == 0 ? "ingest" : "ingest_one",
	    first, P_COUNT, &result, ret_error);
	if (r == 0)
		r = read_verdicts(batch, result, ret_error);
	return r;
}
