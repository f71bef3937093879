/*
 * `quarantine list` and `show`: notifications whose signature was right and that
 * could not be recorded.
 *
 * Behind each stands a payment, a refund or a notice that the application has
 * not seen, so an entry is shown with what it came to mean: why it was refused,
 * what would have been recorded, what it conflicts with, and what mends the
 * cause.
 */
#include "ctl_list.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"
#include "paynotify/quarantine.h"
#include "paynotify/render.h"

static const char *const titles[] = { "ID", "RECEIVED", "ACCOUNT", "STATE",
	"OUT_TRADE_NO", "SUBJECT", "REASON" };
static const char *const states[] = { "open", "accepted", "rejected",
	"resolved" };

/* -- list -------------------------------------------------------------------- */

static int
add_cells(struct ctl_table *table, const struct pn_quarantine_row *row)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf account = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r = ctl_table_number(table, row->id);

	pn_buf_printf(&account, PN_STR_FMT "/" PN_STR_FMT,
	    PN_STR_ARG(row->provider), PN_STR_ARG(row->tenant));
	r = r < 0 ? r : ctl_table_time(table, row->received_at_us);
	r = r < 0 ? r : ctl_table_cell(table, pn_buf_str(&account));
	r = r < 0 ? r : ctl_table_cell(table, row->state);
	r = r < 0 ? r : ctl_table_cell(table, row->out_trade_no);
	r = r < 0 ? r : ctl_table_cell(table, row->subject);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
add_row(const struct pn_quarantine_row *row, void *payload)
{
	struct ctl_list *list = payload;
	int r = 0;

	if (list->table == NULL) {
		pn_render_quarantine(&list->out, row);
		pn_buf_add_char(&list->out, '\n');
	} else {
		r = add_cells(list->table, row);
	}
	return ctl_list_added(list, r);
}

static bool
is_state(const char *state)
{
	for (size_t i = 0; i < PN_COUNT(states); i++)
		if (strcmp(state, states[i]) == 0)
			return true;
	return false;
}

int
ctl_quarantine_check(const struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;

	if (args->state != NULL && !is_state(args->state))
		return ctl_usage(ctl->command,
		    "--state \"%s\" is none of open, accepted, rejected, "
		    "resolved",
		    args->state);
	return CTL_DONE;
}

int
ctl_quarantine_list(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	const struct pn_quarantine_filter filter = {
		.tenant = args->tenant,
		.provider = args->provider,
		.state = args->state,
		.since_us = args->since_us,
		.limit = ctl_list_limit(ctl),
	};
	struct pn_error error = { .text = "" };
	struct ctl_list list;
	int r;

	r = ctl_list_open(&list, ctl, titles, PN_COUNT(titles));
	if (r == CTL_DONE) {
		r = pn_query_quarantine(
		    ctl->query, &filter, add_row, &list, &error);
		r = ctl_list_end(&list, ctl, r, &error);
	}
	if (r == CTL_DONE)
		ctl_list_say_how_many(&list, ctl, "quarantine entries",
		    "newest",
		    args->tenant || args->provider || args->state ||
			args->since_us != PN_MOMENT_NONE);
	ctl_list_done(&list);
	return r;
}

/* -- show -------------------------------------------------------------------- */

struct showing {
	struct ctl *ctl;
	struct pn_buf out;
	struct pn_error error;
};

static void
add_text(struct showing *showing, const struct pn_quarantine_row *row,
    const struct pn_quarantine_recorded *recorded)
{
	struct pn_buf *out = &showing->out;

	pn_buf_printf(out, "%-16s %lld\n", "quarantine", (long long)row->id);
	ctl_add_line(out, "state", row->state);
	ctl_add_line(out, "why", row->reason);
	pn_buf_printf(
	    out, "%-16s " PN_STR_FMT "/", "account", PN_STR_ARG(row->provider));
	ctl_add_clean(out, row->tenant);
	pn_buf_add_char(out, '\n');
	ctl_add_time_line(out, "received_at", row->received_at_us);
	ctl_add_line(out, "out_trade_no", row->out_trade_no);
	ctl_add_line(out, "subject", row->subject);
	ctl_add_line(out, "fingerprint", row->fingerprint);
	ctl_add_line(out, "receipt", row->receipt_id);
	if (recorded->seq >= 0) {
		pn_buf_printf(out, "%-16s seq %lld of ", "recorded event",
		    (long long)recorded->seq);
		ctl_add_time(out, recorded->received_at_us);
		pn_buf_printf(out, ": `" CTL_NAME " events show %s -c %s`\n",
		    recorded->id, showing->ctl->args.config);
	}
	ctl_add_line(out, "events", row->events);
	ctl_add_time_line(out, "resolved_at", row->resolved_at_us);
	ctl_add_line(out, "resolved_by", row->resolved_by);
	ctl_add_line(out, "resolution", row->resolution);
	if (pn_str_is(row->state, "open"))
		pn_buf_printf(out, "%-16s %s\n", "what to do",
		    pn_quarantine_hint(row->reason));
}

static int
on_entry(const struct pn_quarantine_row *row, void *payload)
{
	struct showing *showing = payload;
	struct pn_quarantine_recorded recorded;
	int r = pn_quarantine_recorded(
	    showing->ctl->query, row, &recorded, &showing->error);

	if (r < 0)
		return r;
	if (showing->ctl->args.json) {
		pn_render_quarantine_entry(&showing->out, row, &recorded);
		pn_buf_add_char(&showing->out, '\n');
	} else {
		add_text(showing, row, &recorded);
	}
	return 0;
}

static int
id_of(const struct ctl *ctl, uint64_t *ret_id)
{
	return pn_parse_uint(
	    pn_str_from(ctl->args.operands[0]), INT64_MAX, ret_id);
}

int
ctl_quarantine_show_check(const struct ctl *ctl)
{
	uint64_t id;

	if (id_of(ctl, &id) != 0)
		return ctl_usage(ctl->command,
		    "\"%s\" is no ID, which is a number: `" CTL_NAME
		    " quarantine list` has them",
		    ctl->args.operands[0]);
	return CTL_DONE;
}

int
ctl_quarantine_show(struct ctl *ctl)
{
	struct showing showing = {
		.ctl = ctl,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
	};
	uint64_t id = 0;
	int r = id_of(ctl, &id);

	assert(r == 0); /* ctl_quarantine_show_check() */
	r = pn_query_quarantine_entry(
	    ctl->query, (int64_t)id, on_entry, &showing, &showing.error);
	if (r < 0) {
		r = ctl_database_complain(
		    ctl->conf, ctl->dsn, r, &showing.error);
	} else if (r > 0) {
		ctl_complain("there is no quarantine entry %llu; `" CTL_NAME
			     " quarantine list -c %s` shows those there are",
		    (unsigned long long)id, ctl->args.config);
		r = CTL_REFUSED;
	} else {
		r = ctl_flush(&showing.out);
	}
	pn_buf_done(&showing.out);
	return r;
}
