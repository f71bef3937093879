/*
 * `order show`: all that is known of one order, as one timeline: the requests
 * that told of it, the events that were recorded, every attempt to push one,
 * what was done by hand; and at the end where each event stands with each
 * consumer now.
 *
 * Nothing here is a query of its own: the lists that `receipts`, `events` and
 * `deliveries` print are asked for this order and sorted by time. They are short:
 * a provider sends a notification some ten times, an endpoint is tried some ten
 * times; what is longer is cut, and told.
 *
 * A receipt without an order number - a request that was not verified - is not
 * part of it: who sent it is not known, so neither is what it was about.
 */
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "paynotify/deliveries.h"
#include "paynotify/moment.h"

enum {
	ROWS_MAX = 2000, /* of each kind */
	CELLS = 3,       /* who, result, detail; for JSON one: the object */
};
/* Where something stands, as opposed to what happened: behind all else. */
static const int64_t NOW_US = INT64_MAX;

static const char *const titles[] = { "TIME", "WHAT", "WHO", "RESULT",
	"DETAIL" };

struct entry {
	int64_t at_us;
	size_t number; /* as they came: keeps what is of one time in order */
	const char *what;
	size_t from, ends[CELLS]; /* in text */
};

struct timeline {
	struct ctl *ctl;
	struct pn_buf text;
	struct entry *entries;
	size_t count, room;
	int64_t seqs[ROWS_MAX]; /* of the events */
	size_t seq_count, receipt_count;
	int64_t seq; /* that deliveries are asked for */
};

/* -- gathering --------------------------------------------------------------- */

/* The entry whose cells are written next; NULL: no memory. */
static struct entry *
add_entry(struct timeline *line, int64_t at_us, const char *what)
{
	struct entry *e;

	if (line->count == line->room) {
		size_t room = line->room * 2 + 64;

		e = reallocarray(line->entries, room, sizeof(*e));
		if (e == NULL)
			return NULL;
		line->entries = e;
		line->room = room;
	}
	e = &line->entries[line->count];
	*e = (struct entry){ .at_us = at_us,
		.number = line->count++,
		.what = what,
		.from = line->text.len };
	if (line->ctl->args.json) {
		pn_buf_add_char(&line->text, '{');
		ctl_add_time_member(&line->text, "at",
		    at_us == NOW_US ? PN_MOMENT_NONE : at_us);
		ctl_add_member(&line->text, "what", pn_str_from(what));
	}
	return e;
}

static int
end_cell(struct timeline *line, struct entry *e, size_t cell)
{
	e->ends[cell] = line->text.len;
	return pn_buf_failed(&line->text) ? -ENOMEM : 0;
}

static int
end_json(struct timeline *line, struct entry *e)
{
	pn_buf_add_text(&line->text, "}\n");
	return end_cell(line, e, 0);
}

/* ", text" */
static void
add_part(struct pn_buf *out, struct pn_str text)
{
	if (text.len == 0)
		return;
	pn_buf_add_text(out, ", ");
	ctl_add_clean(out, text);
}

static int
add_receipt(const struct pn_receipt_row *row, void *payload)
{
	struct timeline *line = payload;
	struct pn_buf *out = &line->text;
	struct entry *e = add_entry(line, row->received_at_us, "receipt");

	if (e == NULL)
		return -ENOMEM;
	line->receipt_count++;
	if (line->ctl->args.json) {
		ctl_add_member(out, "id", row->id);
		ctl_add_member(out, "provider", row->provider);
		ctl_add_member(out, "tenant", row->tenant);
		ctl_add_member(out, "verdict", row->verdict);
		ctl_add_number(out, "status", row->status);
		ctl_add_member(out, "reason", row->reason);
		ctl_add_member(out, "notify_id", row->notify_id);
		ctl_add_member(out, "peer", row->peer);
		return end_json(line, e);
	}
	pn_buf_printf(out, PN_STR_FMT "/" PN_STR_FMT, PN_STR_ARG(row->provider),
	    PN_STR_ARG(row->tenant));
	(void)end_cell(line, e, 0);
	pn_buf_printf(
	    out, PN_STR_FMT " %" PRId64, PN_STR_ARG(row->verdict), row->status);
	(void)end_cell(line, e, 1);
	ctl_add_clean(out, row->id);
	add_part(out, row->reason);
	return end_cell(line, e, 2);
}

static int
add_event(const struct pn_event_row *row, void *payload)
{
	struct timeline *line = payload;
	struct pn_buf *out = &line->text;
	const struct pn_event *event = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];
	struct entry *e = add_entry(line, row->received_at_us, "event");

	if (e == NULL || line->seq_count == ROWS_MAX)
		return -ENOMEM;
	line->seqs[line->seq_count++] = row->seq;
	pn_event_id_text(event->id, id);
	if (line->ctl->args.json) {
		pn_buf_add_text(out, ",\"event\":");
		pn_event_add_json(out, row);
		return end_json(line, e);
	}
	pn_buf_printf(out, PN_STR_FMT "/" PN_STR_FMT,
	    PN_STR_ARG(event->provider), PN_STR_ARG(event->tenant));
	(void)end_cell(line, e, 0);
	ctl_add_clean(out, event->type);
	(void)end_cell(line, e, 1);
	pn_buf_printf(out, "event %" PRId64, row->seq);
	if (event->amount.present) {
		pn_buf_add_text(out, ", ");
		ctl_add_money(out, event->amount.minor, event->currency);
	}
	add_part(out, pn_str_from(id));
	return end_cell(line, e, 2);
}

static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct timeline *line = payload;
	struct pn_buf *out = &line->text;
	struct entry *e = add_entry(line, NOW_US, "delivery");

	if (e == NULL)
		return -ENOMEM;
	if (line->ctl->args.json) {
		ctl_add_number(out, "seq", row->seq);
		ctl_add_member(out, "consumer", row->consumer);
		ctl_add_member(out, "state", row->state);
		ctl_add_number(out, "attempts", row->attempts);
		ctl_add_time_member(out, "due_at", row->due_us);
		ctl_add_member(out, "reason", row->reason);
		return end_json(line, e);
	}
	ctl_add_clean(out, row->consumer);
	(void)end_cell(line, e, 0);
	ctl_add_clean(out, row->state);
	(void)end_cell(line, e, 1);
	pn_buf_printf(out, "event %" PRId64, row->seq);
	if (row->due_us != PN_MOMENT_NONE) {
		pn_buf_add_text(out, ", due ");
		ctl_add_time(out, row->due_us);
	}
	add_part(out, row->reason);
	return end_cell(line, e, 2);
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct timeline *line = payload;
	struct pn_buf *out = &line->text;
	struct entry *e = add_entry(line, row->started_at_us, "attempt");

	if (e == NULL)
		return -ENOMEM;
	if (line->ctl->args.json) {
		ctl_add_number(out, "seq", line->seq);
		ctl_add_member(out, "consumer", row->consumer);
		ctl_add_number(out, "attempt", row->attempt);
		ctl_add_member(out, "outcome", row->outcome);
		ctl_add_number(out, "status", row->status);
		ctl_add_number(out, "latency_us", row->latency_us);
		ctl_add_member(out, "error", row->error);
		ctl_add_bool(out, "redelivery", row->redelivery);
		return end_json(line, e);
	}
	ctl_add_clean(out, row->consumer);
	(void)end_cell(line, e, 0);
	ctl_add_clean(out, row->outcome);
	if (row->status != 0)
		pn_buf_printf(out, " %" PRId64, row->status);
	(void)end_cell(line, e, 1);
	pn_buf_printf(out, "event %" PRId64 ", attempt %" PRId64 "%s",
	    line->seq, row->attempt, row->redelivery ? " again" : "");
	add_part(out, row->error);
	return end_cell(line, e, 2);
}

static int
add_action(const struct pn_action_row *row, void *payload)
{
	struct timeline *line = payload;
	struct pn_buf *out = &line->text;
	struct entry *e = add_entry(line, row->at_us, "action");

	if (e == NULL)
		return -ENOMEM;
	if (line->ctl->args.json) {
		ctl_add_number(out, "seq", line->seq);
		ctl_add_member(out, "consumer", row->consumer);
		ctl_add_member(out, "action", row->action);
		ctl_add_member(out, "actor", row->actor);
		ctl_add_member(out, "reason", row->reason);
		return end_json(line, e);
	}
	ctl_add_clean(out, row->consumer);
	(void)end_cell(line, e, 0);
	ctl_add_clean(out, row->action);
	(void)end_cell(line, e, 1);
	pn_buf_printf(out, "event %" PRId64 ", by ", line->seq);
	ctl_add_clean(out, row->actor);
	add_part(out, row->reason);
	return end_cell(line, e, 2);
}

static int
gather(struct timeline *line, struct pn_error *error)
{
	struct ctl *ctl = line->ctl;
	const char *number = ctl->args.operands[0];
	struct pn_receipt_filter receipts = { .out_trade_no = number,
		.tenant = ctl->args.tenant,
		.since_us = PN_MOMENT_NONE,
		.limit = ROWS_MAX };
	struct pn_event_filter events = { .out_trade_no = number,
		.tenant = ctl->args.tenant,
		.since_us = PN_MOMENT_NONE,
		.after_seq = -1,
		.limit = ROWS_MAX };
	int r =
	    pn_query_receipts(ctl->query, &receipts, add_receipt, line, error);

	if (r == 0)
		r = pn_query_events(
		    ctl->query, &events, add_event, line, error);
	for (size_t i = 0; r == 0 && i < line->seq_count; i++) {
		char seq[24];

		line->seq = line->seqs[i];
		(void)snprintf(seq, sizeof(seq), "%" PRId64, line->seq);
		r = pn_query_delivery(
		    ctl->query, seq, add_delivery, add_attempt, line, error);
		if (r == 0)
			r = pn_query_actions(
			    ctl->query, line->seq, add_action, line, error);
	}
	return r;
}

/* -- printing ---------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int
add_cells(
    const struct timeline *line, const struct entry *e, struct ctl_table *table)
{
	size_t from = e->from;
	int r = e->at_us == NOW_US ? ctl_table_cell(table, PN_STR("now"))
				   : ctl_table_time(table, e->at_us);

	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(e->what));
	for (size_t i = 0; r == 0 && i < CELLS; i++) {
		r = ctl_table_cell(
		    table, (struct pn_str){
			       line->text.data + from, e->ends[i] - from });
		from = e->ends[i];
	}
	return r;
}

static int
print(struct timeline *line, struct pn_buf *out)
{
	struct ctl_table *table = ctl_table_new(titles, PN_COUNT(titles));
	int r = table == NULL ? -ENOMEM : 0;

	qsort(line->entries, line->count, sizeof(*line->entries), compare);
	for (size_t i = 0; r == 0 && i < line->count; i++) {
		const struct entry *e = &line->entries[i];

		if (line->ctl->args.json)
			pn_buf_add(out, line->text.data + e->from,
			    e->ends[0] - e->from);
		else
			r = add_cells(line, e, table);
	}
	if (r == 0 && !line->ctl->args.json)
		ctl_table_print(table, false, out);
	ctl_table_free(table);
	return r;
}

int
ctl_order_show(struct ctl *ctl)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	struct timeline *line = calloc(1, sizeof(*line));
	int r = line == NULL ? -ENOMEM : 0;

	if (r == 0) {
		line->ctl = ctl;
		line->text = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
		r = gather(line, &error);
	}
	if (r == 0 && line->count > 0)
		r = print(line, &out);
	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		r = CTL_REFUSED;
	} else if (r < 0) {
		r = ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	} else if (line->count == 0) {
		ctl_complain("nothing is known of an order \"%s\"",
		    ctl->args.operands[0]);
		r = CTL_REFUSED;
	} else {
		if (line->receipt_count == ROWS_MAX ||
		    line->seq_count == ROWS_MAX)
			ctl_complain("this is not all: at most %d receipts "
				     "and events are shown",
			    (int)ROWS_MAX);
		r = ctl_flush(&out);
	}
	if (line != NULL) {
		pn_buf_done(&line->text);
		free(line->entries);
	}
	free(line);
	return r;
}
