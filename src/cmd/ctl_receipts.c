/*
 * `receipts list`: one row a request that the receiver answered, accepted or
 * not, newest first.
 */
#include "ctl_list.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/render.h"

static const char *const titles[] = { "RECEIVED", "ACCOUNT", "VERDICT",
	"STATUS", "OUT_TRADE_NO", "PEER", "ID", "REASON" };

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
add_row(const struct pn_receipt_row *row, void *payload)
{
	struct ctl_list *list = payload;
	int r = 0;

	if (list->table == NULL) {
		pn_render_receipt(&list->out, row);
		pn_buf_add_char(&list->out, '\n');
	} else {
		r = add_cells(list->table, row);
	}
	return ctl_list_added(list, r);
}

int
ctl_receipts_check(const struct ctl *ctl)
{
	const char *verdict = ctl->args.verdict;
	char all[256] = "";
	size_t len = 0;

	for (size_t i = 0; pn_receipt_verdicts[i] != NULL; i++) {
		if (verdict == NULL ||
		    strcmp(verdict, pn_receipt_verdicts[i]) == 0)
			return CTL_DONE;
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
		    i > 0 ? ", " : "", pn_receipt_verdicts[i]);
	}
	assert(len < sizeof(all));
	return ctl_usage(
	    ctl->command, "--verdict \"%s\" is none of %s", verdict, all);
}

int
ctl_receipts_list(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	const struct pn_receipt_filter filter = {
		.tenant = args->tenant,
		.provider = args->provider,
		.verdict = args->verdict,
		.out_trade_no = args->out_trade_no,
		.since_us = args->since_us,
		.limit = ctl_list_limit(ctl),
	};
	struct pn_error error = { .text = "" };
	struct ctl_list list;
	int r = ctl_list_open(&list, ctl, titles, PN_COUNT(titles));

	if (r == CTL_DONE) {
		r = pn_query_receipts(
		    ctl->query, &filter, add_row, &list, &error);
		r = ctl_list_end(&list, ctl, r, &error);
	}
	if (r == CTL_DONE)
		ctl_list_say_how_many(&list, ctl, "receipts", "newest",
		    args->tenant || args->provider || args->verdict ||
			args->out_trade_no || args->since_us != PN_MOMENT_NONE);
	ctl_list_done(&list);
	return r;
}
