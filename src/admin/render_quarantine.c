/*
 * Quarantine entries as JSON, with what an entry came to mean: the event that
 * has its key already, and what mends the cause. The reasons are those of the
 * provider's verdicts and of the store; one that is not known here gets the
 * usual hint.
 */
#include "paynotify/render.h"

#include <errno.h>
#include <string.h>

#include "paynotify/json.h"
#include "paynotify/limits.h"

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

const char *
pn_quarantine_hint(struct pn_str reason)
{
	for (size_t i = 0; i < PN_COUNT(hints); i++)
		if (pn_str_starts(reason, hints[i].reason))
			return hints[i].hint;
	return usual_hint;
}

/* -- the event that is there ------------------------------------------------- */

struct search {
	struct pn_str tenant; /* of the entry */
	struct pn_quarantine_recorded *recorded;
};

static int
on_event(const struct pn_event_row *row, void *payload)
{
	struct search *search = payload;

	if (!pn_str_equal(row->event->tenant, search->tenant))
		return 0;
	pn_event_id_text(row->event->id, search->recorded->id);
	search->recorded->seq = row->seq;
	search->recorded->received_at_us = row->received_at_us;
	return 0;
}

int
pn_quarantine_recorded(struct pn_query *query,
    const struct pn_quarantine_row *row,
    struct pn_quarantine_recorded *ret_recorded, struct pn_error *ret_error)
{
	struct search search = { row->tenant, ret_recorded };
	char subject[PN_KEY_BYTES_MAX + 1];
	int r;

	*ret_recorded = (struct pn_quarantine_recorded){ .seq = -1 };
	/* A notification's id may look like a seq. */
	if (!pn_str_starts(row->subject, "webhook:") ||
	    row->subject.len >= sizeof(subject))
		return 0;
	memcpy(subject, row->subject.data, row->subject.len);
	subject[row->subject.len] = '\0';
	r = pn_query_event(query, subject, NULL, on_event, &search, ret_error);
	return r < 0 ? r : 0;
}

/* -- JSON -------------------------------------------------------------------- */

static void
add_members(struct pn_buf *out, const struct pn_quarantine_row *row)
{
	pn_json_add_number(out, "id", row->id);
	pn_json_add_moment(out, "received_at", row->received_at_us);
	pn_json_add_text(out, "provider", row->provider);
	pn_json_add_text(out, "tenant", row->tenant);
	pn_json_add_text(out, "route", row->route);
	pn_json_add_text(out, "subject", row->subject);
	pn_json_add_text(out, "fingerprint", row->fingerprint);
	pn_json_add_text(out, "state", row->state);
	pn_json_add_text(out, "reason", row->reason);
	pn_json_add_text(out, "out_trade_no", row->out_trade_no);
	pn_json_add_text(out, "receipt_id", row->receipt_id);
	pn_json_add_moment(out, "resolved_at", row->resolved_at_us);
	pn_json_add_text(out, "resolved_by", row->resolved_by);
	pn_json_add_text(out, "resolution", row->resolution);
}

void
pn_render_quarantine(struct pn_buf *out, const struct pn_quarantine_row *row)
{
	pn_buf_add_char(out, '{');
	add_members(out, row);
	pn_buf_add_char(out, '}');
}

void
pn_render_quarantine_entry(struct pn_buf *out,
    const struct pn_quarantine_row *row,
    const struct pn_quarantine_recorded *recorded)
{
	bool open = pn_str_is(row->state, "open");

	pn_buf_add_char(out, '{');
	add_members(out, row);
	pn_json_add_raw(out, "events", row->events);
	pn_json_add_text(out, "recorded_event_id", pn_str_from(recorded->id));
	pn_json_add_text(out, "hint",
	    open ? pn_str_from(pn_quarantine_hint(row->reason)) : PN_STR(""));
	pn_buf_add_char(out, '}');
}
