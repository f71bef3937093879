/*
 * `deliveries list`: what has not been handed off yet.
 *
 * The list is what is not done; for people with the overview of the consumers
 * above it, since "nothing is listed" and "nobody claims" must not look alike.
 * With --json it is the deliveries alone, one object a line: `consumers list`
 * has the rest.
 */
#include "ctl_deliveries.h"

#include <errno.h>
#include <string.h>

enum { BLOCK_ROWS = 500 };

static const char *const titles[] = { "SEQ", "CONSUMER", "STATE", "ATTEMPTS",
	"DUE", "TYPE", "TENANT", "OUT_TRADE_NO", "EVENT", "REASON" };

struct listing {
	bool json;
	struct ctl_table *table; /* NULL for JSON */
	struct pn_buf out;
	uint64_t rows;
	int exit;
};

void
ctl_delivery_add_members(struct pn_buf *out, const struct pn_delivery_row *row)
{
	ctl_add_member(out, "consumer", row->consumer);
	ctl_add_member(out, "state", row->state);
	ctl_add_number(out, "attempts", row->attempts);
	ctl_add_time_member(out, "due_at", row->due_us);
	ctl_add_bool(out, "redelivery", row->redelivery);
	ctl_add_member(out, "reason", row->reason);
}

static void
add_list_json(struct pn_buf *out, const struct pn_delivery_row *row)
{
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "event_id", row->event_id);
	ctl_add_number(out, "seq", row->seq);
	ctl_delivery_add_members(out, row);
	ctl_add_member(out, "type", row->type);
	ctl_add_member(out, "tenant", row->tenant);
	ctl_add_member(out, "out_trade_no", row->out_trade_no);
	ctl_add_time_member(out, "received_at", row->received_at_us);
	pn_buf_add_text(out, "}\n");
}

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
listing_flush(struct listing *listing)
{
	if (listing->table != NULL)
		ctl_table_print(listing->table, false, &listing->out);
	return ctl_flush(&listing->out);
}

static int
add_list_row(const struct pn_delivery_row *row, void *payload)
{
	struct listing *listing = payload;
	int r = 0;

	if (listing->rows++ == 0 && !listing->json)
		pn_buf_add_char(&listing->out, '\n'); /* below the overview */
	if (listing->json)
		add_list_json(&listing->out, row);
	else
		r = add_list_cells(listing->table, row);
	if (r < 0) {
		ctl_complain("out of memory: ask for less with --limit");
		listing->exit = CTL_REFUSED;
	} else if (listing->rows % BLOCK_ROWS == 0) {
		listing->exit = listing_flush(listing);
	}
	return listing->exit == CTL_DONE ? 0 : -EIO;
}

static int
query_deliveries(struct ctl *ctl, struct listing *listing)
{
	uint64_t limit =
	    ctl->args.limit == UINT64_MAX ? CTL_LIST_LIMIT : ctl->args.limit;
	struct pn_delivery_filter filter = {
		.consumer = ctl->args.consumer,
		.state = ctl->args.state,
		.tenant = ctl->args.tenant,
		.after_seq = -1,
		.limit = limit == 0 ? INT64_MAX : (int64_t)limit,
	};
	struct pn_error error = { .text = "" };
	int r = pn_query_deliveries(
	    ctl->query, &filter, add_list_row, listing, &error);

	if (listing->exit != CTL_DONE)
		return listing->exit; /* told already */
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return listing_flush(listing);
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
list_consumers(struct ctl *ctl, struct listing *listing)
{
	int r = ctl_consumers_overview(ctl, ctl->args.consumer, &listing->out);

	if (r != CTL_DONE)
		return r;
	if (listing->json)
		pn_buf_reset(&listing->out);
	else if (listing->out.len == 0)
		(void)fprintf(stderr, "no consumers yet\n");
	return ctl_flush(&listing->out);
}

static void
say_how_many(const struct ctl *ctl, const struct listing *listing)
{
	if (!listing->json && listing->rows == 0)
		(void)fprintf(stderr,
		    "nothing that was claimed is unfinished%s\n",
		    ctl->args.consumer || ctl->args.state || ctl->args.tenant
			? " and matches"
			: "");
	if (ctl->args.limit == UINT64_MAX && listing->rows == CTL_LIST_LIMIT)
		(void)fprintf(stderr,
		    "these are the oldest %d; --limit N "
		    "shows more, --limit 0 all\n",
		    CTL_LIST_LIMIT);
}

int
ctl_deliveries_list(struct ctl *ctl)
{
	struct listing listing = { .json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r;

	if (ctl->args.state != NULL && !is_listed_state(ctl->args.state))
		return ctl_usage(ctl->command,
		    "--state \"%s\" is none of leased, waiting, retry, dead",
		    ctl->args.state);
	if (!listing.json)
		listing.table = ctl_table_new(titles, PN_COUNT(titles));
	if (!listing.json && listing.table == NULL) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	r = list_consumers(ctl, &listing);
	if (r == CTL_DONE)
		r = query_deliveries(ctl, &listing);
	if (r == CTL_DONE)
		say_how_many(ctl, &listing);
	ctl_table_free(listing.table);
	pn_buf_done(&listing.out);
	return r;
}
