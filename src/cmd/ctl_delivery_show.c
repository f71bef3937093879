/*
 * `deliveries show`: where one event stands with every consumer, every attempt
 * of a push, and what was done by hand.
 *
 * The event is asked for first, by id, key or seq - a key may be an event of
 * several tenants - and then, for each, its lists. For people these are tables,
 * one below the other; with --json an event is one object with the lists in it.
 */
#include "ctl_deliveries.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/moment.h"

enum part { PART_DELIVERIES, PART_ATTEMPTS, PART_ACTIONS, PART_COUNT };

static const char *const delivery_titles[] = { "CONSUMER", "STATE", "ATTEMPTS",
	"DUE", "REASON" };
static const char *const attempt_titles[] = { "STARTED", "CONSUMER", "ATTEMPT",
	"OUTCOME", "STATUS", "LATENCY", "ERROR", "ANSWER" };
static const char *const action_titles[] = { "DONE AT", "CONSUMER", "ACTION",
	"ACTOR", "REASON" };

static const struct part_kind {
	const char *name; /* of the JSON list */
	const char *const *titles;
	size_t columns;
} kinds[PART_COUNT] = {
	[PART_DELIVERIES] = { "deliveries", delivery_titles,
	    PN_COUNT(delivery_titles) },
	[PART_ATTEMPTS] = { "attempts", attempt_titles,
	    PN_COUNT(attempt_titles) },
	[PART_ACTIONS] = { "actions", action_titles, PN_COUNT(action_titles) },
};

struct showing {
	bool json;
	size_t count; /* events found, at most CTL_SAME_KEY_MAX */
	int64_t seqs[CTL_SAME_KEY_MAX];
	size_t head_ends[CTL_SAME_KEY_MAX]; /* in heads */
	struct pn_buf heads;
	/* Of one event at a time: the one or the other. */
	struct pn_buf lists[PART_COUNT];
	struct ctl_table *tables[PART_COUNT];
};

/* -- rows -------------------------------------------------------------------- */

static int
add_head(const struct pn_event_row *row, void *payload)
{
	struct showing *show = payload;
	struct pn_buf *out = &show->heads;
	const struct pn_event *e = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	if (show->count == CTL_SAME_KEY_MAX)
		return 0;
	if (show->json) {
		pn_event_id_text(e->id, id);
		pn_buf_add_char(out, '{');
		ctl_add_member(out, "event_id", pn_str_from(id));
		ctl_add_number(out, "seq", row->seq);
		ctl_add_member(out, "type", e->type);
		ctl_add_member(out, "provider", e->provider);
		ctl_add_member(out, "tenant", e->tenant);
		ctl_add_member(out, "key", e->key);
		ctl_add_member(out, "out_trade_no", e->out_trade_no);
		ctl_add_time_member(out, "received_at", row->received_at_us);
	} else {
		ctl_event_add_text(out, row);
	}
	show->seqs[show->count] = row->seq;
	show->head_ends[show->count++] = out->len;
	return 0;
}

/* The list with the next object begun. */
static struct pn_buf *
begin_object(struct showing *show, enum part part)
{
	struct pn_buf *list = &show->lists[part];

	pn_buf_add_text(list, list->len > 0 ? ",{" : "{");
	return list;
}

static int
end_object(struct pn_buf *list)
{
	pn_buf_add_char(list, '}');
	return pn_buf_failed(list) ? -ENOMEM : 0;
}

static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->tables[PART_DELIVERIES];
	struct pn_buf *list;
	int r;

	if (show->json) {
		list = begin_object(show, PART_DELIVERIES);
		ctl_delivery_add_members(list, row);
		return end_object(list);
	}
	r = ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : ctl_delivery_state_cell(table, row);
	r = r < 0 ? r : ctl_table_number(table, row->attempts);
	r = r < 0 ? r : ctl_table_time(table, row->due_us);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
add_attempt_json(struct showing *show, const struct pn_attempt_row *row)
{
	struct pn_buf *list = begin_object(show, PART_ATTEMPTS);

	ctl_add_member(list, "consumer", row->consumer);
	ctl_add_number(list, "attempt", row->attempt);
	ctl_add_time_member(list, "started_at", row->started_at_us);
	ctl_add_number(list, "latency_us", row->latency_us);
	ctl_add_number(list, "status", row->status);
	ctl_add_member(list, "outcome", row->outcome);
	ctl_add_member(list, "error", row->error);
	ctl_add_member(list, "answer", row->answer);
	ctl_add_bool(list, "redelivery", row->redelivery);
	return end_object(list);
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->tables[PART_ATTEMPTS];
	char number[48], latency[48];
	int r;

	if (show->json)
		return add_attempt_json(show, row);
	(void)snprintf(number, sizeof(number), "%" PRId64 "%s", row->attempt,
	    row->redelivery ? " again" : "");
	(void)snprintf(latency, sizeof(latency), "%" PRId64 ".%" PRId64 " ms",
	    row->latency_us / 1000, row->latency_us % 1000 / 100);
	r = ctl_table_time(table, row->started_at_us);
	r = r < 0 ? r : ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(number));
	r = r < 0 ? r : ctl_table_cell(table, row->outcome);
	if (r == 0 && row->status == 0)
		r = ctl_table_cell(table, PN_STR("")); /* no answer */
	else if (r == 0)
		r = ctl_table_number(table, row->status);
	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(latency));
	r = r < 0 ? r : ctl_table_cell(table, row->error);
	return r < 0 ? r : ctl_table_cell(table, row->answer);
}

static int
add_action(const struct pn_action_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->tables[PART_ACTIONS];
	struct pn_buf *list;
	int r;

	if (show->json) {
		list = begin_object(show, PART_ACTIONS);
		ctl_add_time_member(list, "at", row->at_us);
		ctl_add_member(list, "consumer", row->consumer);
		ctl_add_member(list, "action", row->action);
		ctl_add_member(list, "actor", row->actor);
		ctl_add_member(list, "reason", row->reason);
		return end_object(list);
	}
	r = ctl_table_time(table, row->at_us);
	r = r < 0 ? r : ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : ctl_table_cell(table, row->action);
	r = r < 0 ? r : ctl_table_cell(table, row->actor);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

/* -- events ------------------------------------------------------------------ */

/* Puts the pieces of one event together. */
static void
add_event(struct showing *show, size_t index, struct pn_buf *out)
{
	size_t from = index == 0 ? 0 : show->head_ends[index - 1];

	if (!show->json && index > 0)
		pn_buf_add_char(out, '\n');
	pn_buf_add(out, show->heads.data + from, show->head_ends[index] - from);
	for (int p = 0; p < PART_COUNT; p++) {
		if (show->json) {
			pn_buf_printf(out, ",\"%s\":[", kinds[p].name);
			pn_buf_add_str(out, pn_buf_str(&show->lists[p]));
			pn_buf_add_char(out, ']');
		} else if (ctl_table_rows(show->tables[p]) > 0) {
			pn_buf_add_char(out, '\n');
			ctl_table_print(show->tables[p], false, out);
		} else if (p == PART_DELIVERIES) {
			pn_buf_add_text(out, "\nno consumer takes it\n");
		}
	}
	if (show->json)
		pn_buf_add_text(out, "}\n");
}

static int
parts_open(struct showing *show)
{
	for (int p = 0; p < PART_COUNT; p++) {
		show->lists[p] = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
		show->tables[p] =
		    ctl_table_new(kinds[p].titles, kinds[p].columns);
		if (show->tables[p] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
parts_close(struct showing *show)
{
	for (int p = 0; p < PART_COUNT; p++) {
		pn_buf_done(&show->lists[p]);
		ctl_table_free(show->tables[p]);
		show->tables[p] = NULL;
	}
}

static int
show_event(struct ctl *ctl, struct showing *show, size_t index)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	char seq[24];
	int r = parts_open(show);

	(void)snprintf(seq, sizeof(seq), "%" PRId64, show->seqs[index]);
	if (r == 0)
		r = pn_query_delivery(
		    ctl->query, seq, add_delivery, add_attempt, show, &error);
	if (r == 0)
		r = pn_query_actions(
		    ctl->query, show->seqs[index], add_action, show, &error);
	if (r == 0)
		add_event(show, index, &out);
	parts_close(show);
	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return ctl_flush(&out);
}

int
ctl_deliveries_show(struct ctl *ctl)
{
	const char *which = ctl->args.operands[0];
	struct showing show = { .json = ctl->args.json,
		.heads = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	struct pn_error error = { .text = "" };
	int r = pn_query_event(ctl->query, which, add_head, &show, &error);

	if (r < 0) {
		r = ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	} else if (show.count == 0) {
		ctl_complain("there is no event \"%s\"; `" CTL_NAME " events "
			     "list -c %s` shows those there are",
		    which, ctl->args.config);
		r = CTL_REFUSED;
	} else if (pn_buf_failed(&show.heads)) {
		ctl_complain("out of memory");
		r = CTL_REFUSED;
	} else {
		r = CTL_DONE;
	}
	for (size_t i = 0; r == CTL_DONE && i < show.count; i++)
		r = show_event(ctl, &show, i);
	pn_buf_done(&show.heads);
	return r;
}
