/*
 * `quarantine list` and `show`: notifications whose signature was right and that
 * could not be recorded.
 *
 * Behind each stands a payment, a refund or a notice that the application has
 * not seen, so an entry is shown with what it came to mean: why it was refused,
 * what would have been recorded, what it conflicts with, and what mends the
 * cause. The reasons are those of the provider's verdicts and of the store; a
 * reason that is not known here is shown as it is.
 */
#include "ctl_list.h"

#include <errno.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"
#include "paynotify/quarantine.h"

static const char *const titles[] = { "ID", "RECEIVED", "ACCOUNT", "STATE",
	"OUT_TRADE_NO", "SUBJECT", "REASON" };
static const char *const states[] = { "open", "accepted", "rejected",
	"resolved" };

static const char conflict_reason[] = "known key with other content";

/* What begins a reason, and what to do about it. */
static const struct {
	const char *reason, *hint;
} hints[] = {
	{ conflict_reason,
	    "the same key came before with other content. Ask the provider "
	    "(its merchant platform, or its order query) which of the two is "
	    "true; until then the application has the first one" },
	{ "signed, but no api_v3_key_file decrypts it",
	    "add the APIv3 key that was set on the merchant platform when it "
	    "came as one more api_v3_key_file; the provider's next retry is "
	    "judged anew" },
	{ "no api_v2_key_file decrypts req_info",
	    "add the APIv2 key of that time as one more api_v2_key_file; the "
	    "provider's next retry is judged anew" },
	{ "app_id is not of this account",
	    "add the app_id to this account, or point that application's "
	    "notify_url at the account it belongs to" },
	{ "seller_id is not of this account",
	    "the notification is of another seller: point its notify_url at "
	    "the account that has that seller_id" },
	{ "the message is of another merchant number",
	    "point that merchant number's notify_url at the account that has "
	    "it as mchid" },
	{ "the message is of an appid that is not configured",
	    "add the appid to this account; the provider's next retry is "
	    "judged anew" },
};
static const char usual_hint[] =
    "read what was sent (`events` below, and the evidence of its receipt); a "
    "form of message that this version does not know is worth a report";

static const char *
hint_of(struct pn_str reason)
{
	for (size_t i = 0; i < PN_COUNT(hints); i++)
		if (pn_str_starts(reason, hints[i].reason))
			return hints[i].hint;
	return usual_hint;
}

static void
add_members(struct pn_buf *out, const struct pn_quarantine_row *row)
{
	ctl_add_number(out, "id", row->id);
	ctl_add_time_member(out, "received_at", row->received_at_us);
	ctl_add_member(out, "provider", row->provider);
	ctl_add_member(out, "tenant", row->tenant);
	ctl_add_member(out, "route", row->route);
	ctl_add_member(out, "subject", row->subject);
	ctl_add_member(out, "fingerprint", row->fingerprint);
	ctl_add_member(out, "state", row->state);
	ctl_add_member(out, "reason", row->reason);
	ctl_add_member(out, "out_trade_no", row->out_trade_no);
	ctl_add_member(out, "receipt_id", row->receipt_id);
	ctl_add_time_member(out, "resolved_at", row->resolved_at_us);
	ctl_add_member(out, "resolved_by", row->resolved_by);
	ctl_add_member(out, "resolution", row->resolution);
}

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
		pn_buf_add_char(&list->out, '{');
		add_members(&list->out, row);
		pn_buf_add_text(&list->out, "}\n");
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
	/* The event that has the entry's key. */
	struct pn_buf tenant; /* of the entry */
	struct pn_buf id;
	int64_t seq, received_at_us;
};

static int
on_event(const struct pn_event_row *row, void *payload)
{
	struct showing *showing = payload;
	char id[PN_EVENT_ID_TEXT_BYTES];

	if (!pn_str_equal(row->event->tenant, pn_buf_str(&showing->tenant)))
		return 0;
	pn_event_id_text(row->event->id, id);
	pn_buf_add_text(&showing->id, id);
	showing->seq = row->seq;
	showing->received_at_us = row->received_at_us;
	return 0;
}

static void
add_line(struct pn_buf *out, const char *label, struct pn_str text)
{
	if (text.len == 0)
		return;
	pn_buf_printf(out, "%-16s ", label);
	ctl_add_clean(out, text);
	pn_buf_add_char(out, '\n');
}

static void
add_time_line(struct pn_buf *out, const char *label, int64_t us)
{
	if (us == PN_MOMENT_NONE)
		return;
	pn_buf_printf(out, "%-16s ", label);
	ctl_add_time(out, us);
	pn_buf_add_char(out, '\n');
}

static void
add_text(struct showing *showing, const struct pn_quarantine_row *row)
{
	struct pn_buf *out = &showing->out;

	pn_buf_printf(out, "%-16s %lld\n", "quarantine", (long long)row->id);
	add_line(out, "state", row->state);
	add_line(out, "why", row->reason);
	pn_buf_printf(
	    out, "%-16s " PN_STR_FMT "/", "account", PN_STR_ARG(row->provider));
	ctl_add_clean(out, row->tenant);
	pn_buf_add_char(out, '\n');
	add_time_line(out, "received_at", row->received_at_us);
	add_line(out, "out_trade_no", row->out_trade_no);
	add_line(out, "subject", row->subject);
	add_line(out, "fingerprint", row->fingerprint);
	add_line(out, "receipt", row->receipt_id);
	if (showing->seq >= 0) {
		pn_buf_printf(out, "%-16s seq %lld of ", "recorded event",
		    (long long)showing->seq);
		ctl_add_time(out, showing->received_at_us);
		pn_buf_printf(out, ": `" CTL_NAME " events show %s -c %s`\n",
		    showing->id.data, showing->ctl->args.config);
	}
	add_line(out, "events", row->events);
	add_time_line(out, "resolved_at", row->resolved_at_us);
	add_line(out, "resolved_by", row->resolved_by);
	add_line(out, "resolution", row->resolution);
	if (pn_str_is(row->state, "open"))
		pn_buf_printf(
		    out, "%-16s %s\n", "what to do", hint_of(row->reason));
}

static void
add_json(struct showing *showing, const struct pn_quarantine_row *row)
{
	struct pn_buf *out = &showing->out;

	pn_buf_add_char(out, '{');
	add_members(out, row);
	pn_buf_add_text(out, ",\"events\":");
	pn_buf_add_str(out, row->events);
	ctl_add_member(out, "recorded_event_id", pn_buf_str(&showing->id));
	ctl_add_member(out, "hint",
	    pn_str_is(row->state, "open") ? pn_str_from(hint_of(row->reason))
					  : PN_STR(""));
	pn_buf_add_text(out, "}\n");
}

static int
on_entry(const struct pn_quarantine_row *row, void *payload)
{
	struct showing *showing = payload;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf subject = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r = 0;

	pn_buf_add_str(&showing->tenant, row->tenant);
	pn_buf_add_str(&subject, row->subject);
	pn_buf_add_char(&subject, '\0');
	if (pn_buf_failed(&subject))
		return -ENOMEM;
	/* A notification's id may look like a seq. */
	if (pn_str_starts(row->subject, "webhook:"))
		r = pn_query_event(showing->ctl->query, subject.data, on_event,
		    showing, &showing->error);
	if (r < 0)
		return r;
	if (showing->ctl->args.json)
		add_json(showing, row);
	else
		add_text(showing, row);
	return 0;
}

int
ctl_quarantine_show(struct ctl *ctl)
{
	struct showing showing = {
		.ctl = ctl,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.tenant = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.id = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.seq = -1,
	};
	uint64_t id;
	int r;

	if (pn_parse_uint(pn_str_from(ctl->args.operands[0]), INT64_MAX, &id) !=
	    0)
		return ctl_usage(ctl->command,
		    "\"%s\" is no ID, which is a number: `" CTL_NAME
		    " quarantine list` has them",
		    ctl->args.operands[0]);
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
	pn_buf_done(&showing.tenant);
	pn_buf_done(&showing.id);
	return r;
}
