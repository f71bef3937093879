/*
 * `deliveries list`: what has not been handed off yet.
 *
 * The list is what is not done; for people with the overview of the consumers
 * above it, since "nothing is listed" and "nobody claims" must not look alike.
 * With --json it is the deliveries alone, one object a line: `consumers list`
 * has the rest.
 */
#include "ctl_deliveries.h"

#include <string.h>

#include "paynotify/render.h"

#include "ctl_list.h"

static const char *const titles[] = { "SEQ", "CONSUMER", "STATE", "ATTEMPTS",
	"DUE", "TYPE", "TENANT", "OUT_TRADE_NO", "EVENT", "REASON" };

int
ctl_delivery_state_cell(
    struct ctl_table *table, const struct pn_delivery_row *row)
{
	char text[64];

	(void)snprintf(text, sizeof(text), PN_STR_FMT "%s",
	    PN_STR_ARG(row->state), row->redelivery ? " again" : "");
	return ctl_table_cell(table, pn_str_from(text));
}

static int
add_list_cells(struct ctl_table *table, const struct pn_delivery_row *row)
{
	int r = ctl_table_number(table, row->seq);

	r = r < 0 ? r : ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : ctl_delivery_state_cell(table, row);
	r = r < 0 ? r : ctl_table_number(table, row->attempts);
	r = r < 0 ? r : ctl_table_time(table, row->due_us);
	r = r < 0 ? r : ctl_table_cell(table, row->type);
	r = r < 0 ? r : ctl_table_cell(table, row->tenant);
	r = r < 0 ? r : ctl_table_cell(table, row->out_trade_no);
	r = r < 0 ? r : ctl_table_cell(table, row->event_id);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
add_list_row(const struct pn_delivery_row *row, void *payload)
{
	struct ctl_list *list = payload;
	int r = 0;

	if (list->rows == 0 && list->table != NULL)
		pn_buf_add_char(&list->out, '\n'); /* below the overview */
	if (list->table == NULL) {
		pn_render_delivery(&list->out, row);
		pn_buf_add_char(&list->out, '\n');
	} else {
		r = add_list_cells(list->table, row);
	}
	return ctl_list_added(list, r);
}

static bool
is_listed_state(const char *state)
{
	static const char *const states[] = { "leased", "waiting", "retry",
		"dead" };

	for (size_t i = 0; i < PN_COUNT(states); i++)
		if (strcmp(state, states[i]) == 0)
			return true;
	return false;
}

/* The overview; or, for programs, only whether the consumer exists. */
static int
list_consumers(struct ctl *ctl, struct ctl_list *list)
{
	int r = ctl_consumers_overview(ctl, ctl->args.consumer, &list->out);

	if (r != CTL_DONE)
		return r;
	if (list->table == NULL)
		pn_buf_reset(&list->out);
	else if (list->out.len == 0)
		(void)fprintf(stderr, "no consumers yet\n");
	return ctl_flush(&list->out);
}

static int
list_deliveries(struct ctl *ctl, struct ctl_list *list)
{
	const struct ctl_args *args = &ctl->args;
	const struct pn_delivery_filter filter = {
		.consumer = args->consumer,
		.state = args->state,
		.tenant = args->tenant,
		.after_seq = -1,
		.limit = ctl_list_limit(ctl),
	};
	struct pn_error error = { .text = "" };
	int r = pn_query_deliveries(
	    ctl->query, &filter, add_list_row, list, &error);

	return ctl_list_end(list, ctl, r, &error);
}

int
ctl_deliveries_list_check(const struct ctl *ctl)
{
	const char *state = ctl->args.state;

	if (state != NULL && !is_listed_state(state))
		return ctl_usage(ctl->command,
		    "--state \"%s\" is none of leased, waiting, retry, dead",
		    state);
	return CTL_DONE;
}

int
ctl_deliveries_list(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	struct ctl_list list;
	int r;

	r = ctl_list_open(&list, ctl, titles, PN_COUNT(titles));
	if (r == CTL_DONE)
		r = list_consumers(ctl, &list);
	if (r == CTL_DONE)
		r = list_deliveries(ctl, &list);
	if (r == CTL_DONE && list.rows == 0 && list.table != NULL)
		(void)fprintf(stderr,
		    "nothing that was claimed is unfinished%s\n",
		    args->consumer || args->state || args->tenant
			? " and matches"
			: "");
	else if (r == CTL_DONE)
		ctl_list_say_how_many(&list, ctl, "deliveries", "oldest", true);
	ctl_list_done(&list);
	return r;
}
