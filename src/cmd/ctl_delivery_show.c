/*
 * `deliveries show`: where one event stands with every consumer, every attempt
 * of a push, and what was done by hand.
 *
 * For people the event is asked for first, by id, key or seq - a key may be an
 * event of several tenants - and then, for each, its lists, as tables one below
 * the other. With --json an event is one object with the lists in it.
 */
#include "ctl_deliveries.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/moment.h"
#include "paynotify/render.h"

enum part { PART_DELIVERIES, PART_ATTEMPTS, PART_ACTIONS, PART_COUNT };

static const char *const delivery_titles[] = { "CONSUMER", "STATE", "ATTEMPTS",
	"DUE", "REASON" };
static const char *const attempt_titles[] = { "STARTED", "CONSUMER", "ATTEMPT",
	"OUTCOME", "STATUS", "LATENCY", "ERROR", "ANSWER" };
static const char *const action_titles[] = { "DONE AT", "CONSUMER", "ACTION",
	"ACTOR", "REASON" };

static const struct part_kind {
	const char *const *titles;
	size_t columns;
} kinds[PART_COUNT] = {
	[PART_DELIVERIES] = { delivery_titles, PN_COUNT(delivery_titles) },
	[PART_ATTEMPTS] = { attempt_titles, PN_COUNT(attempt_titles) },
	[PART_ACTIONS] = { action_titles, PN_COUNT(action_titles) },
};

struct showing {
	size_t count; /* events found, at most CTL_SAME_KEY_MAX */
	int64_t seqs[CTL_SAME_KEY_MAX];
	size_t head_ends[CTL_SAME_KEY_MAX]; /* in heads */
	struct pn_buf heads;
	struct ctl_table *tables[PART_COUNT]; /* of one event at a time */
};

/* -- rows -------------------------------------------------------------------- */

static int
add_head(const struct pn_event_row *row, void *payload)
{
	struct showing *show = payload;

	if (show->count == CTL_SAME_KEY_MAX)
		return 0;
	ctl_event_add_text(&show->heads, row);
	show->seqs[show->count] = row->seq;
	show->head_ends[show->count++] = show->heads.len;
	return 0;
}

static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->tables[PART_DELIVERIES];
	int r = ctl_table_cell(table, row->consumer);

	r = r < 0 ? r : ctl_delivery_state_cell(table, row);
	r = r < 0 ? r : ctl_table_number(table, row->attempts);
	r = r < 0 ? r : ctl_table_time(table, row->due_us);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->tables[PART_ATTEMPTS];
	char number[48], latency[48];
	int r;

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
	int r = ctl_table_time(table, row->at_us);

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

	if (index > 0)
		pn_buf_add_char(out, '\n');
	pn_buf_add(out, show->heads.data + from, show->head_ends[index] - from);
	for (int p = 0; p < PART_COUNT; p++) {
		if (ctl_table_rows(show->tables[p]) > 0) {
			pn_buf_add_char(out, '\n');
			ctl_table_print(show->tables[p], false, out);
		} else if (p == PART_DELIVERIES) {
			pn_buf_add_text(out, "\nno consumer takes it\n");
		}
	}
}

static int
tables_open(struct showing *show)
{
	for (int p = 0; p < PART_COUNT; p++) {
		show->tables[p] =
		    ctl_table_new(kinds[p].titles, kinds[p].columns);
		if (show->tables[p] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
tables_close(struct showing *show)
{
	for (int p = 0; p < PART_COUNT; p++) {
		ctl_table_free(show->tables[p]);
		show->tables[p] = NULL;
	}
}

static int
show_event(struct ctl *ctl, struct showing *show, size_t index,
    struct pn_buf *out, struct pn_error *error)
{
	char seq[24];
	int r = tables_open(show);

	(void)snprintf(seq, sizeof(seq), "%" PRId64, show->seqs[index]);
	if (r == 0)
		r = pn_query_delivery(
		    ctl->query, seq, add_delivery, add_attempt, show, error);
	if (r == 0)
		r = pn_query_actions(
		    ctl->query, show->seqs[index], add_action, show, error);
	if (r == 0)
		add_event(show, index, out);
	tables_close(show);
	return r;
}

/* As pn_render_handoff(), as text. */
static int
show_tables(struct ctl *ctl, const char *which, struct pn_buf *out,
    struct pn_error *error)
{
	struct showing show = { .heads = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r = pn_query_event(
	    ctl->query, which, ctl->args.tenant, add_head, &show, error);

	if (r == 0 && pn_buf_failed(&show.heads))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < show.count; i++)
		r = show_event(ctl, &show, i, out, error);
	pn_buf_done(&show.heads);
	return r;
}

static int
add_line(struct pn_str json, void *payload)
{
	struct pn_buf *out = payload;

	pn_buf_add_str(out, json);
	pn_buf_add_char(out, '\n');
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
ctl_deliveries_show(struct ctl *ctl)
{
	const char *which = ctl->args.operands[0];
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	int r = ctl->args.json ? pn_render_handoff(ctl->query, which,
				     ctl->args.tenant, add_line, &out, &error)
			       : show_tables(ctl, which, &out, &error);

	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (r > 0) {
		ctl_event_complain(ctl, which);
		return CTL_REFUSED;
	}
	return ctl_flush(&out);
}
