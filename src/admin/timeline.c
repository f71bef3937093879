/*
 * One order as a timeline.
 *
 * Nothing here is a query of its own: the lists of receipts, events and
 * deliveries are asked for this order and sorted by time. They are short: a
 * provider sends a notification some ten times, an endpoint is tried some ten
 * times; what is longer is cut, and told. Rows live only as long as their
 * result, so each is written down as it comes, in the form that the caller
 * wants; only the writings are sorted.
 *
 * A receipt without an order number - a request that was not verified - is not
 * part of it: who sent it is not known, so neither is what it was about.
 */
#include "paynotify/timeline.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "paynotify/json.h"
#include "paynotify/moment.h"

enum {
	TEXT_BYTES_MAX = 64 << 20,
	SEQ_TEXT_BYTES = 24,
	ENTRIES_FIRST = 64,
};
/* Where something stands, as opposed to what happened: behind all else. */
static const int64_t NOW_US = INT64_MAX;

struct entry {
	int64_t at_us;
	size_t number; /* as they came: keeps what is of one time in order */
	const char *what;
	size_t from, to; /* in text */
};

struct pn_timeline {
	pn_timeline_write_fn write;
	struct pn_buf text;
	struct entry *entries;
	size_t count, room;
	int64_t seqs[PN_TIMELINE_ROWS_MAX]; /* of the events */
	size_t seq_count, receipt_count;
	int64_t seq; /* that deliveries are asked for */
};

/* -- gathering --------------------------------------------------------------- */

static int
add(struct pn_timeline *line, const struct pn_timeline_row *row)
{
	struct entry *e;

	if (line->count == line->room) {
		size_t room = line->room * 2 + ENTRIES_FIRST;

		e = reallocarray(line->entries, room, sizeof(*e));
		if (e == NULL)
			return -ENOMEM;
		line->entries = e;
		line->room = room;
	}
	e = &line->entries[line->count];
	*e = (struct entry){
		.at_us = row->at_us == PN_MOMENT_NONE ? NOW_US : row->at_us,
		.number = line->count++,
		.what = row->what,
		.from = line->text.len,
	};
	line->write(&line->text, row);
	e->to = line->text.len;
	return pn_buf_failed(&line->text) ? -ENOMEM : 0;
}

static int
add_receipt(const struct pn_receipt_row *row, void *payload)
{
	struct pn_timeline *line = payload;

	line->receipt_count++;
	return add(line, &(struct pn_timeline_row){
			     .at_us = row->received_at_us,
			     .what = "receipt",
			     .seq = -1,
			     .receipt = row,
			 });
}

static int
add_event(const struct pn_event_row *row, void *payload)
{
	struct pn_timeline *line = payload;

	assert(line->seq_count < PN_TIMELINE_ROWS_MAX);
	line->seqs[line->seq_count++] = row->seq;
	return add(line, &(struct pn_timeline_row){
			     .at_us = row->received_at_us,
			     .what = "event",
			     .seq = row->seq,
			     .event = row,
			 });
}

static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	return add(payload, &(struct pn_timeline_row){
				.at_us = PN_MOMENT_NONE,
				.what = "delivery",
				.seq = row->seq,
				.delivery = row,
			    });
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct pn_timeline *line = payload;

	return add(line, &(struct pn_timeline_row){
			     .at_us = row->started_at_us,
			     .what = "attempt",
			     .seq = line->seq,
			     .attempt = row,
			 });
}

static int
add_action(const struct pn_action_row *row, void *payload)
{
	struct pn_timeline *line = payload;

	return add(line, &(struct pn_timeline_row){
			     .at_us = row->at_us,
			     .what = "action",
			     .seq = line->seq,
			     .action = row,
			 });
}

static int
gather(struct pn_timeline *line, struct pn_query *query, const char *tenant,
    const char *out_trade_no, struct pn_error *error)
{
	struct pn_receipt_filter receipts = { .out_trade_no = out_trade_no,
		.tenant = tenant,
		.since_us = PN_MOMENT_NONE,
		.limit = PN_TIMELINE_ROWS_MAX };
	struct pn_event_filter events = { .out_trade_no = out_trade_no,
		.tenant = tenant,
		.since_us = PN_MOMENT_NONE,
		.after_seq = -1,
		.limit = PN_TIMELINE_ROWS_MAX };
	int r = pn_query_receipts(query, &receipts, add_receipt, line, error);

	if (r == 0)
		r = pn_query_events(query, &events, add_event, line, error);
	for (size_t i = 0; r == 0 && i < line->seq_count; i++) {
		char seq[SEQ_TEXT_BYTES];

		line->seq = line->seqs[i];
		(void)snprintf(seq, sizeof(seq), "%" PRId64, line->seq);
		r = pn_query_delivery(
		    query, seq, add_delivery, add_attempt, line, error);
		if (r == 0)
			r = pn_query_actions(
			    query, line->seq, add_action, line, error);
	}
	return r;
}

static int
compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* -- the timeline ------------------------------------------------------------ */

int
pn_timeline_read(struct pn_query *query, const char *tenant,
    const char *out_trade_no, pn_timeline_write_fn write,
    struct pn_timeline **ret_timeline, struct pn_error *ret_error)
{
	struct pn_timeline *line = calloc(1, sizeof(*line));
	int r;

	assert(out_trade_no != NULL);
	if (line == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	line->write = write;
	line->text = pn_buf_init(TEXT_BYTES_MAX);
	r = gather(line, query, tenant, out_trade_no, ret_error);
	if (r == -ENOMEM)
		(void)pn_error_set(ret_error, r, "out of memory");
	if (r < 0) {
		pn_timeline_free(line);
		return r;
	}
	if (line->count > 0)
		qsort(line->entries, line->count, sizeof(*line->entries),
		    compare);
	*ret_timeline = line;
	return 0;
}

void
pn_timeline_free(struct pn_timeline *timeline)
{
	if (timeline == NULL)
		return;
	pn_buf_done(&timeline->text);
	free(timeline->entries);
	free(timeline);
}

void
pn_timeline_freep(struct pn_timeline **timeline)
{
	pn_timeline_free(*timeline);
	*timeline = NULL;
}

size_t
pn_timeline_count(const struct pn_timeline *timeline)
{
	return timeline->count;
}

struct pn_timeline_entry
pn_timeline_at(const struct pn_timeline *timeline, size_t index)
{
	const struct entry *e = &timeline->entries[index];

	assert(index < timeline->count);
	return (struct pn_timeline_entry){
		.at_us = e->at_us == NOW_US ? PN_MOMENT_NONE : e->at_us,
		.what = e->what,
		.text = { timeline->text.data + e->from, e->to - e->from },
	};
}

bool
pn_timeline_is_cut(const struct pn_timeline *timeline)
{
	return timeline->receipt_count == PN_TIMELINE_ROWS_MAX ||
	       timeline->seq_count == PN_TIMELINE_ROWS_MAX;
}

/* -- as JSON ----------------------------------------------------------------- */

static void
add_receipt_members(struct pn_buf *out, const struct pn_receipt_row *row)
{
	pn_json_add_text(out, "id", row->id);
	pn_json_add_text(out, "provider", row->provider);
	pn_json_add_text(out, "tenant", row->tenant);
	pn_json_add_text(out, "verdict", row->verdict);
	pn_json_add_number(out, "status", row->status);
	pn_json_add_text(out, "reason", row->reason);
	pn_json_add_text(out, "notify_id", row->notify_id);
	pn_json_add_text(out, "peer", row->peer);
}

static void
add_delivery_members(struct pn_buf *out, const struct pn_delivery_row *row)
{
	pn_json_add_text(out, "consumer", row->consumer);
	pn_json_add_text(out, "state", row->state);
	pn_json_add_number(out, "attempts", row->attempts);
	pn_json_add_moment(out, "due_at", row->due_us);
	pn_json_add_text(out, "reason", row->reason);
}

static void
add_attempt_members(struct pn_buf *out, const struct pn_attempt_row *row)
{
	pn_json_add_text(out, "consumer", row->consumer);
	pn_json_add_number(out, "attempt", row->attempt);
	pn_json_add_text(out, "outcome", row->outcome);
	pn_json_add_number(out, "status", row->status);
	pn_json_add_number(out, "latency_us", row->latency_us);
	pn_json_add_text(out, "error", row->error);
	pn_json_add_bool(out, "redelivery", row->redelivery);
}

static void
add_action_members(struct pn_buf *out, const struct pn_action_row *row)
{
	pn_json_add_text(out, "consumer", row->consumer);
	pn_json_add_text(out, "action", row->action);
	pn_json_add_text(out, "actor", row->actor);
	pn_json_add_text(out, "reason", row->reason);
}

void
pn_timeline_write_json(struct pn_buf *out, const struct pn_timeline_row *row)
{
	pn_buf_add_char(out, '{');
	pn_json_add_moment(out, "at", row->at_us);
	pn_json_add_text(out, "what", pn_str_from(row->what));
	if (row->event != NULL) {
		pn_buf_add_text(out, ",\"event\":");
		pn_event_add_json(out, row->event);
	} else if (row->seq >= 0) {
		pn_json_add_number(out, "seq", row->seq);
	}
	if (row->receipt != NULL)
		add_receipt_members(out, row->receipt);
	else if (row->delivery != NULL)
		add_delivery_members(out, row->delivery);
	else if (row->attempt != NULL)
		add_attempt_members(out, row->attempt);
	else if (row->action != NULL)
		add_action_members(out, row->action);
	pn_buf_add_char(out, '}');
}
