/*
 * `order show`: all that is known of one order, as one timeline: the requests
 * that told of it, the events that were recorded, every attempt to push one,
 * what was done by hand; and at the end where each event stands with each
 * consumer now.
 *
 * What is read and how it is sorted is the timeline's affair; here each row
 * becomes three cells of a table, or one object.
 */
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/moment.h"
#include "paynotify/timeline.h"

/* Behind each cell but the last: cleaned text has none. */
static const char CELL_END = '\0';

static const char *const titles[] = { "TIME", "WHAT", "WHO", "RESULT",
	"DETAIL" };

/* -- rows as text: who, result, detail --------------------------------------- */

/* ", text" */
static void
add_part(struct pn_buf *out, struct pn_str text)
{
	if (text.len == 0)
		return;
	pn_buf_add_text(out, ", ");
	ctl_add_clean(out, text);
}

/* "alipay/shop1" */
static void
add_account(struct pn_buf *out, struct pn_str provider, struct pn_str tenant)
{
	ctl_add_clean(out, provider);
	pn_buf_add_char(out, '/');
	ctl_add_clean(out, tenant);
	pn_buf_add_char(out, CELL_END);
}

static void
add_receipt(struct pn_buf *out, const struct pn_receipt_row *row)
{
	add_account(out, row->provider, row->tenant);
	ctl_add_clean(out, row->verdict);
	pn_buf_printf(out, " %" PRId64, row->status);
	pn_buf_add_char(out, CELL_END);
	ctl_add_clean(out, row->id);
	add_part(out, row->reason);
}

static void
add_event(struct pn_buf *out, const struct pn_event_row *row)
{
	const struct pn_event *event = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	pn_event_id_text(event->id, id);
	add_account(out, event->provider, event->tenant);
	ctl_add_clean(out, event->type);
	pn_buf_add_char(out, CELL_END);
	pn_buf_printf(out, "event %" PRId64, row->seq);
	ctl_add_amount(out, ", ", event);
	add_part(out, pn_str_from(id));
}

static void
add_delivery(struct pn_buf *out, const struct pn_delivery_row *row)
{
	ctl_add_clean(out, row->consumer);
	pn_buf_add_char(out, CELL_END);
	ctl_add_clean(out, row->state);
	pn_buf_add_char(out, CELL_END);
	pn_buf_printf(out, "event %" PRId64, row->seq);
	if (row->due_us != PN_MOMENT_NONE) {
		pn_buf_add_text(out, ", due ");
		ctl_add_time(out, row->due_us);
	}
	add_part(out, row->reason);
}

static void
add_attempt(struct pn_buf *out, int64_t seq, const struct pn_attempt_row *row)
{
	ctl_add_clean(out, row->consumer);
	pn_buf_add_char(out, CELL_END);
	ctl_add_clean(out, row->outcome);
	if (row->status != 0)
		pn_buf_printf(out, " %" PRId64, row->status);
	pn_buf_add_char(out, CELL_END);
	pn_buf_printf(out, "event %" PRId64 ", attempt %" PRId64 "%s", seq,
	    row->attempt, row->redelivery ? " again" : "");
	add_part(out, row->error);
}

static void
add_action(struct pn_buf *out, int64_t seq, const struct pn_action_row *row)
{
	ctl_add_clean(out, row->consumer);
	pn_buf_add_char(out, CELL_END);
	ctl_add_clean(out, row->action);
	pn_buf_add_char(out, CELL_END);
	pn_buf_printf(out, "event %" PRId64 ", by ", seq);
	ctl_add_clean(out, row->actor);
	add_part(out, row->reason);
}

static void
write_text(struct pn_buf *out, const struct pn_timeline_row *row)
{
	if (row->receipt != NULL)
		add_receipt(out, row->receipt);
	else if (row->event != NULL)
		add_event(out, row->event);
	else if (row->delivery != NULL)
		add_delivery(out, row->delivery);
	else if (row->attempt != NULL)
		add_attempt(out, row->seq, row->attempt);
	else if (row->action != NULL)
		add_action(out, row->seq, row->action);
}

/* -- printing ---------------------------------------------------------------- */

static int
add_cells(struct ctl_table *table, const struct pn_timeline_entry *entry)
{
	struct pn_str rest = entry->text;
	int r = entry->at_us == PN_MOMENT_NONE
		    ? ctl_table_cell(table, PN_STR("now"))
		    : ctl_table_time(table, entry->at_us);

	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(entry->what));
	while (r == 0 && rest.data != NULL)
		r = ctl_table_cell(table, pn_str_split(&rest, CELL_END));
	return r;
}

static int
print_table(const struct pn_timeline *timeline, struct pn_buf *out)
{
	struct ctl_table *table = ctl_table_new(titles, PN_COUNT(titles));
	int r = table == NULL ? -ENOMEM : 0;

	for (size_t i = 0; r == 0 && i < pn_timeline_count(timeline); i++) {
		struct pn_timeline_entry entry = pn_timeline_at(timeline, i);

		r = add_cells(table, &entry);
	}
	if (r == 0)
		ctl_table_print(table, false, out);
	ctl_table_free(table);
	return r;
}

static void
print_json(const struct pn_timeline *timeline, struct pn_buf *out)
{
	for (size_t i = 0; i < pn_timeline_count(timeline); i++) {
		pn_buf_add_str(out, pn_timeline_at(timeline, i).text);
		pn_buf_add_char(out, '\n');
	}
}

int
ctl_order_show(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	PN_CLEANUP(pn_timeline_freep) struct pn_timeline *timeline = NULL;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	int r = pn_timeline_read(ctl->query, args->tenant, args->operands[0],
	    args->json ? pn_timeline_write_json : write_text, &timeline,
	    &error);

	if (r == 0 && args->json)
		print_json(timeline, &out);
	else if (r == 0)
		r = print_table(timeline, &out);
	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (pn_timeline_count(timeline) == 0) {
		ctl_complain(
		    "nothing is known of an order \"%s\"", args->operands[0]);
		return CTL_REFUSED;
	}
	if (pn_timeline_is_cut(timeline))
		ctl_complain("this is not all: at most %d receipts and events "
			     "are shown",
		    (int)PN_TIMELINE_ROWS_MAX);
	return ctl_flush(&out);
}
