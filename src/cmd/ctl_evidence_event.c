/*
 * An event against its evidence: what the provider signed, read again, must tell
 * this event and no other.
 *
 * A right signature alone proves only that some message was signed. The row of
 * the event may have been changed, or made to point at another genuine receipt.
 * So the message goes through the provider once more, as of the moment it came,
 * and the event that comes out is compared with the one on record: id,
 * fingerprint, and each field as `events show --json` gives it.
 *
 * Of the account as it is configured now: a message that it cannot read any more
 * (another key, another number, no secret to decrypt it) is not comparable, which
 * is told and is no success. What no message says is not compared: livemode,
 * order_check, flags, seq and received_at; nor the payload, which is stored with
 * the evidence.
 */
#include "ctl_evidence.h"

#include <errno.h>
#include <string.h>

struct comparing {
	const struct pn_notification *told;
	const struct pn_evidence_row *evidence;
	int result;
	const char *reason;
};

static bool
is_same(const struct pn_event_row *row, const struct pn_event *told)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf recorded = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf again = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_event event = *told;
	struct pn_event_row other = *row;

	event.livemode = row->event->livemode;
	other.event = &event;
	pn_event_add_json(&recorded, row);
	pn_event_add_json(&again, &other);
	return !pn_buf_failed(&recorded) && !pn_buf_failed(&again) &&
	       pn_str_equal(pn_buf_str(&recorded), pn_buf_str(&again));
}

static int
compare_row(const struct pn_event_row *row, void *payload)
{
	struct comparing *comparing = payload;
	struct pn_str hash = comparing->evidence->event_hash;

	comparing->result = CTL_EVENT_DIFFERS;
	comparing->reason = "its evidence is of another event";
	for (size_t i = 0; i < comparing->told->event_count; i++) {
		const struct pn_event *told = &comparing->told->events[i];

		if (memcmp(told->id, row->event->id, sizeof(told->id)) != 0)
			continue;
		if (hash.len != PN_SHA256_BYTES ||
		    memcmp(told->request_hash, hash.data, hash.len) != 0) {
			comparing->reason = "its fingerprint is not that of "
					    "the event that was signed";
		} else if (!is_same(row, told)) {
			comparing->reason = "it is not the event that was "
					    "signed: a field is another";
		} else {
			comparing->result = CTL_EVENT_SAME;
			comparing->reason = "";
		}
		break;
	}
	return 0;
}

int
ctl_evidence_compare(struct pn_query *query, const struct pn_provider *provider,
    const void *account, const struct pn_evidence_row *row,
    const struct pn_request *request, struct pn_arena *arena,
    const char **ret_reason)
{
	struct pn_notification told = { .reason = "" };
	struct comparing comparing = { .told = &told, .evidence = row };
	struct pn_error error = { .text = "" };
	struct pn_str which, why;
	int r;

	r = provider->verify(
	    account, request, row->received_at_us, arena, &told);
	if (r < 0)
		return r;
	if (told.verdict != PN_VERDICT_ACCEPTED) {
		why = pn_arena_printf(arena,
		    "its signature is right, but the account as it is "
		    "configured now does not read it: %s",
		    told.reason);
		*ret_reason = why.data != NULL ? why.data : told.reason;
		return CTL_EVENT_UNREAD;
	}
	which = pn_arena_copy(arena, row->event_id);
	if (which.data == NULL)
		return -ENOMEM;
	r = pn_query_event(
	    query, which.data, NULL, compare_row, &comparing, &error);
	if (r != 0)
		return r < 0 ? r : -ENOENT;
	*ret_reason = comparing.reason;
	return comparing.result;
}
