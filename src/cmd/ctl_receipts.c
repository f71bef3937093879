/*
 * `receipts list`: one row a request that the receiver answered, accepted or
 * not, newest first.
 */
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/moment.h"

enum { BLOCK_ROWS = 500 };

static const char *const titles[] = { "RECEIVED", "ACCOUNT", "VERDICT",
	"STATUS", "OUT_TRADE_NO", "PEER", "ID", "REASON" };

struct listing {
	bool json;
	struct ctl_table *table;
	struct pn_buf out;
	uint64_t rows;
	int exit;
};

static void
add_json(struct pn_buf *out, const struct pn_receipt_row *row)
{
	char at[PN_MOMENT_TEXT_BYTES];

	pn_moment_format_rfc3339(row->received_at_us, at);
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "id", row->id);
	ctl_add_member(out, "received_at", pn_str_from(at));
	ctl_add_member(out, "provider", row->provider);
	ctl_add_member(out, "tenant", row->tenant);
	ctl_add_member(out, "verdict", row->verdict);
	ctl_add_member(out, "reason", row->reason);
	ctl_add_member(out, "notify_id", row->notify_id);
	ctl_add_member(out, "out_trade_no", row->out_trade_no);
	ctl_add_member(out, "peer", row->peer);
	ctl_add_number(out, "status", row->status);
	ctl_add_number(out, "body_bytes", row->body_bytes);
	pn_buf_add_text(out, "}\n");
}

static int
add_cells(struct ctl_table *table, const struct pn_receipt_row *row)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf cell = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r;

	ctl_add_time(&cell, row->received_at_us);
	r = ctl_table_cell(table, pn_buf_str(&cell));
	pn_buf_reset(&cell);
	pn_buf_printf(&cell, PN_STR_FMT "/" PN_STR_FMT,
	    PN_STR_ARG(row->provider), PN_STR_ARG(row->tenant));
	r = r < 0 ? r : ctl_table_cell(table, pn_buf_str(&cell));
	r = r < 0 ? r : ctl_table_cell(table, row->verdict);
	pn_buf_reset(&cell);
	pn_buf_printf(&cell, "%" PRId64, row->status);
	r = r < 0 ? r : ctl_table_cell(table, pn_buf_str(&cell));
	r = r < 0 ? r : ctl_table_cell(table, row->out_trade_no);
	r = r < 0 ? r : ctl_table_cell(table, row->peer);
	r = r < 0 ? r : ctl_table_cell(table, row->id);
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
add_row(const struct pn_receipt_row *row, void *payload)
{
	struct listing *listing = payload;
	int r = 0;

	listing->rows++;
	if (listing->json)
		add_json(&listing->out, row);
	else
		r = add_cells(listing->table, row);
	if (r < 0) {
		ctl_complain("out of memory: ask for less with --limit");
		listing->exit = CTL_REFUSED;
	} else if (listing->rows % BLOCK_ROWS == 0) {
		listing->exit = listing_flush(listing);
	}
	return listing->exit == CTL_DONE ? 0 : -EIO;
}

static int
query_receipts(struct ctl *ctl, struct listing *listing)
{
	uint64_t limit =
	    ctl->args.limit == UINT64_MAX ? CTL_LIST_LIMIT : ctl->args.limit;
	struct pn_receipt_filter filter = {
		.tenant = ctl->args.tenant,
		.provider = ctl->args.provider,
		.verdict = ctl->args.verdict,
		.out_trade_no = ctl->args.out_trade_no,
		.since_us = ctl->args.since_us,
		.limit = limit == 0 ? INT64_MAX : (int64_t)limit,
	};
	struct pn_error error = { .text = "" };
	int r =
	    pn_query_receipts(ctl->query, &filter, add_row, listing, &error);

	if (listing->exit != CTL_DONE)
		return listing->exit; /* told already */
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return listing_flush(listing);
}

int
ctl_receipts_list(struct ctl *ctl)
{
	struct listing listing = { .json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r;

	if (!listing.json)
		listing.table = ctl_table_new(titles, PN_COUNT(titles));
	if (!listing.json && listing.table == NULL) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	r = query_receipts(ctl, &listing);
	if (r == CTL_DONE && !listing.json && listing.rows == 0)
		(void)fprintf(stderr, "no receipts%s\n",
		    ctl->args.tenant || ctl->args.provider ||
			    ctl->args.verdict || ctl->args.out_trade_no ||
			    ctl->args.since_us != PN_MOMENT_NONE
			? " match"
			: " yet");
	if (r == CTL_DONE && ctl->args.limit == UINT64_MAX &&
	    listing.rows == CTL_LIST_LIMIT)
		(void)fprintf(stderr,
		    "these are the newest %d; --limit N "
		    "shows more, --limit 0 all\n",
		    CTL_LIST_LIMIT);
	ctl_table_free(listing.table);
	pn_buf_done(&listing.out);
	return r;
}
