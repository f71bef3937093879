/*
 * From notifications that cannot be recorded to the parameters of
 * quarantine.sql: one that came as such is one entry; of one that has conflicts
 * each conflicting event is one; of one that the database refused, its first.
 *
 * What is signed is never dropped, so this must work for any bytes: text that
 * the database refused is mended, a payload that it refused is left out (it can
 * be made from the body again), body and headers are exact always.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "paynotify/moment.h"

#include "batch_internal.h"

/* clang-format off */
enum param { /* $n is n - 1 */
	P_ID, P_PROVIDER, P_TENANT, P_PATH, P_SUBJECT, P_FINGERPRINT, P_REASON,
	P_EVENTS, P_PEER, P_NOTIFY_ID, P_VERDICT, P_STATUS, P_BODY_BYTES,
	P_HEADERS, P_BODY, P_KEY_FINGERPRINT, P_PAYLOAD, P_OUT_TRADE_NO,
	P_IS_FIRST,
	P_ARRAYS,
	P_REQUIRE_SYNC = P_ARRAYS,
	P_COUNT
};

static const enum pn_array_type TYPES[P_ARRAYS] = {
	[P_ID] = PN_ARRAY_UUID, [P_PROVIDER] = PN_ARRAY_TEXT,
	[P_TENANT] = PN_ARRAY_TEXT, [P_PATH] = PN_ARRAY_TEXT,
	[P_SUBJECT] = PN_ARRAY_TEXT, [P_FINGERPRINT] = PN_ARRAY_BYTEA,
	[P_REASON] = PN_ARRAY_TEXT, [P_EVENTS] = PN_ARRAY_JSON,
	[P_PEER] = PN_ARRAY_TEXT, [P_NOTIFY_ID] = PN_ARRAY_TEXT,
	[P_VERDICT] = PN_ARRAY_TEXT, [P_STATUS] = PN_ARRAY_INT4,
	[P_BODY_BYTES] = PN_ARRAY_INT4, [P_HEADERS] = PN_ARRAY_TEXT,
	[P_BODY] = PN_ARRAY_BYTEA, [P_KEY_FINGERPRINT] = PN_ARRAY_BYTEA,
	[P_PAYLOAD] = PN_ARRAY_TEXT, [P_OUT_TRADE_NO] = PN_ARRAY_TEXT,
	[P_IS_FIRST] = PN_ARRAY_BOOL,
};
/* clang-format on */

static_assert(P_COUNT == 20, "quarantine.sql has $1 to $20");
static_assert((int)P_COUNT <= (int)PN_BATCH_PARAMS_MAX, "all have a place");

enum {
	STATUS_REFUSED = 422,
	EVENT_BYTES_MAX = 64 << 10, /* an event as JSON, without its payload */
};

/* One row of quarantine. */
struct entry {
	struct pn_str subject, reason, verdict;
	const unsigned char *fingerprint;
	const struct pn_event *event; /* NULL: none that can be told */
	bool is_first;                /* of its notification */
	bool mend;                    /* the database has refused it once */
};

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

/* [{...}], or [] when there is no event to tell. */
static void
add_events(struct pn_array *array, const struct pn_event *event)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf json = pn_buf_init(EVENT_BYTES_MAX);

	pn_buf_add_char(&json, '[');
	if (event != NULL)
		pn_event_add_json(&json, &(struct pn_event_row){
					     .event = event,
					     .seq = -1,
					     .received_at_us = PN_MOMENT_NONE,
					 });
	pn_buf_add_char(&json, ']');
	pn_array_add_str(
	    array, pn_buf_failed(&json) ? PN_STR("[]") : pn_buf_str(&json));
}

static void
add_entry(struct pn_batch *batch, const struct pn_submission *s,
    const struct entry *entry)
{
	const struct pn_str none = { NULL, 0 };
	struct pn_array *a = batch->arrays;
	bool mend = entry->mend, whole = entry->is_first;

	pn_array_add_bytes(&a[P_ID], s->request_id, PN_REQUEST_ID_BYTES);
	pn_array_add_bytes(&a[P_PROVIDER], s->provider.data, s->provider.len);
	pn_array_add_bytes(&a[P_TENANT], s->tenant.data, s->tenant.len);
	pn_array_add_bytes(&a[P_PATH], s->route.data, s->route.len);
	add_mended(&a[P_SUBJECT], entry->subject, mend);
	pn_array_add_bytes(
	    &a[P_FINGERPRINT], entry->fingerprint, PN_SHA256_BYTES);
	add_mended(&a[P_REASON], entry->reason, mend);
	add_events(&a[P_EVENTS], entry->event);
	add_mended(&a[P_PEER], s->peer, mend);
	add_mended(&a[P_NOTIFY_ID], s->notify_id, mend);
	pn_array_add_str(&a[P_VERDICT], entry->verdict);
	pn_array_add_int4(&a[P_STATUS],
	    s->refused_status == 0 ? STATUS_REFUSED : s->refused_status);
	pn_array_add_int4(&a[P_BODY_BYTES], (int32_t)s->body.len);
	pn_array_add_latin1(&a[P_HEADERS], whole ? s->headers : none);
	pn_array_add_bytes(&a[P_BODY], s->body.data, whole ? s->body.len : 0);
	pn_array_add_bytes(
	    &a[P_KEY_FINGERPRINT], s->key_fingerprint, PN_SHA256_BYTES);
	pn_array_add_filled(&a[P_PAYLOAD], whole && !mend ? s->payload : none);
	pn_array_add_filled(&a[P_OUT_TRADE_NO],
	    entry->event == NULL ? none : entry->event->out_trade_no);
	pn_array_add_bool(&a[P_IS_FIRST], entry->is_first);
}

/* Sends the entries. *ret_taken: false where a standby is required and none is
 * named. */
static int
run(struct pn_batch *batch, struct pn_conn *conn, bool *ret_taken,
    struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	uint64_t count;
	int r;

	r = pn_batch_finish(batch, P_ARRAYS);
	if (r < 0)
		return pn_error_set(error, r, "out of memory");
	r = pn_batch_send(
	    batch, conn, "quarantine", 0, P_COUNT, &result, error);
	if (r != 0)
		return r;
	assert(PQntuples(result) == 1);
	assert(PQgetlength(result, 0, 0) == sizeof(count));
	memcpy(&count, PQgetvalue(result, 0, 0), sizeof(count));
	*ret_taken = count != 0;
	return 0;
}

int
pn_batch_run_quarantine(struct pn_batch *batch, struct pn_conn *conn,
    bool *ret_taken, struct pn_error *ret_error)
{
	const struct pn_submission *s;

	assert(batch->count > 0 && batch->quarantine);
	pn_batch_start(batch, TYPES, P_ARRAYS);
	for (size_t i = 0; i < batch->count; i++) {
		s = batch->members[i];
		add_entry(batch, s,
		    &(struct entry){
			.subject = s->quarantine_subject,
			.reason = pn_str_from(s->quarantine_reason),
			.verdict = s->quarantine_verdict.len == 0
				       ? PN_STR("quarantined")
				       : s->quarantine_verdict,
			.fingerprint = s->quarantine_fingerprint,
			.is_first = true,
		    });
	}
	return run(batch, conn, ret_taken, ret_error);
}

int
pn_batch_run_conflicts(struct pn_batch *batch, struct pn_conn *conn,
    const bool *chosen, bool *ret_taken, struct pn_error *ret_error)
{
	bool seen[PN_BATCH_EVENTS_MAX] = { false };
	const struct pn_event *event;
	size_t member;

	assert(batch->count > 0 && !batch->quarantine);
	pn_batch_start(batch, TYPES, P_ARRAYS);
	for (size_t i = 0; i < batch->element_count; i++) {
		member = batch->elements[i].member;
		if (!chosen[member] ||
		    batch->verdicts[i] != PN_ELEMENT_CONFLICT)
			continue;
		event =
		    &batch->members[member]->events[batch->elements[i].event];
		add_entry(batch, batch->members[member],
		    &(struct entry){
			.subject = event->key,
			.reason = PN_STR("known key with other content"),
			.verdict = PN_STR("conflict"),
			.fingerprint = event->request_hash,
			.event = event,
			.is_first = !seen[member],
		    });
		if (!seen[member])
			batch->members[member]->conflicting_event =
			    batch->elements[i].event;
		seen[member] = true;
	}
	return run(batch, conn, ret_taken, ret_error);
}

int
pn_batch_run_refused(struct pn_batch *batch, struct pn_conn *conn,
    const char *reason, bool *ret_taken, struct pn_error *ret_error)
{
	const struct pn_submission *s = batch->members[0];
	bool has_events = s->event_count > 0;

	assert(batch->count == 1);
	pn_batch_start(batch, TYPES, P_ARRAYS);
	add_entry(batch, s,
	    &(struct entry){
		.subject =
		    has_events ? s->events[0].key : s->quarantine_subject,
		.reason = pn_str_from(reason),
		.verdict = PN_STR("quarantined"),
		.fingerprint = has_events ? s->events[0].request_hash
					  : s->quarantine_fingerprint,
		.is_first = true,
		.mend = true,
	    });
	return run(batch, conn, ret_taken, ret_error);
}
