/*
 * `verify`: a captured request judged as the daemon would, without the daemon:
 * parse the capture, ask the provider, print the verdict and the events.
 *
 * Invariants: no database, no network, only the account's section and keys;
 * exit 0 only for accepted. Whatever is in the capture gets a verdict: what is
 * no HTTP request, or over a limit, is malformed. Only a file that cannot be
 * read at all is a usage error.
 *
 * The path in the capture does not matter: which account is asked is said by
 * --account.
 */
#include "ctl.h"

#include <errno.h>
#include <string.h>

#include "paynotify/arena.h"
#include "paynotify/capture.h"
#include "paynotify/moment.h"

static void
malformed(struct pn_notification *ret_notification, const char *reason)
{
	*ret_notification = (struct pn_notification){
		.verdict = PN_VERDICT_MALFORMED,
		.reason = reason,
	};
}

/* Only the account's section was read, so the limit at hand is the default;
 * the rest is read only where it matters, and a fault in it does not. */
static bool
is_over_max_body(const struct ctl *ctl, size_t body_bytes)
{
	PN_CLEANUP(pn_conf_unrefp) struct pn_conf *whole = NULL;

	if ((int64_t)body_bytes <= ctl->conf->server.max_body_bytes)
		return false;
	if (pn_conf_load(ctl->args.config, NULL, &whole, NULL) < 0)
		return true;
	return (int64_t)body_bytes > whole->server.max_body_bytes;
}

/* What the daemon asks before the provider: is it a request, is it too long. */
static int
judge(const struct ctl *ctl, struct pn_arena *arena, struct pn_str raw,
    bool too_long, struct pn_notification *ret_notification)
{
	struct pn_request request;
	struct pn_error error = { .text = "" };
	struct pn_str reason;
	int64_t now_us = ctl->args.at_us != PN_MOMENT_NONE
			     ? ctl->args.at_us
			     : pn_clock_realtime_us();
	int r;

	if (too_long) {
		malformed(ret_notification, "the capture is longer than any "
					    "request may be");
		return 0;
	}
	r = pn_capture_parse(arena, raw, &request, &error);
	if (r < 0)
		return r;
	if (r > 0) {
		reason = pn_arena_copy(arena, pn_str_from(error.text));
		malformed(
		    ret_notification, reason.data != NULL ? reason.data : "");
		return 0;
	}
	if (is_over_max_body(ctl, request.body.len)) {
		malformed(ret_notification, "the body is over [server] "
					    "max_body");
		return 0;
	}
	return ctl->provider->verify(
	    ctl->provider_account, &request, now_us, arena, ret_notification);
}

static struct pn_event_row
row_of(const struct pn_notification *notification, size_t index)
{
	return (struct pn_event_row){
		.event = &notification->events[index],
		.seq = -1,
		.received_at_us = PN_MOMENT_NONE,
		.order_check = PN_STR("off"),
		.payload = notification->payload,
	};
}

static void
add_json(struct pn_buf *out, const struct pn_notification *notification,
    size_t events)
{
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "verdict",
	    pn_str_from(pn_verdict_name(notification->verdict)));
	if (notification->reason[0] == '\0')
		pn_buf_add_text(out, ",\"reason\":\"\"");
	else
		ctl_add_member(
		    out, "reason", pn_str_from(notification->reason));
	pn_buf_add_text(out, ",\"events\":[");
	for (size_t i = 0; i < events; i++) {
		struct pn_event_row row = row_of(notification, i);

		if (i > 0)
			pn_buf_add_char(out, ',');
		pn_event_add_json(out, &row);
	}
	pn_buf_add_text(out, "]}\n");
}

static void
add_text(struct pn_buf *out, const struct pn_notification *notification,
    size_t events)
{
	pn_buf_add_text(out, pn_verdict_name(notification->verdict));
	if (notification->reason[0] != '\0') {
		pn_buf_add_text(out, ": ");
		ctl_add_clean(out, pn_str_from(notification->reason));
	}
	pn_buf_add_char(out, '\n');
	for (size_t i = 0; i < events; i++) {
		struct pn_event_row row = row_of(notification, i);

		pn_buf_add_char(out, '\n');
		ctl_event_add_text(out, &row);
	}
	if (events > 0 && notification->payload.len > 0) {
		pn_buf_add_char(out, '\n');
		ctl_payload_add_text(out, notification->payload);
	}
}

int
ctl_verify(struct ctl *ctl)
{
	const char *path = ctl->args.operands[0];
	PN_CLEANUP(pn_buf_done)
	struct pn_buf raw = pn_buf_init(PN_CAPTURE_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	struct pn_notification notification = { .reason = "" };
	size_t events;
	int r;

	r = ctl_file_read(path, PN_CAPTURE_BYTES_MAX, &raw);
	if (r < 0)
		return ctl_usage(ctl->command, "cannot read capture \"%s\": %s",
		    path, ctl_fault_text(r));
	if (arena == NULL ||
	    judge(ctl, arena, pn_buf_str(&raw), r > 0, &notification) < 0) {
		ctl_complain("could not verify \"%s\": out of memory", path);
		return CTL_REFUSED;
	}
	if (notification.reason == NULL)
		notification.reason = "";
	/* A refused notification carries nothing that may be relied on. */
	events = notification.verdict == PN_VERDICT_ACCEPTED
		     ? notification.event_count
		     : 0;
	if (ctl->args.json)
		add_json(&out, &notification, events);
	else
		add_text(&out, &notification, events);
	if (ctl_flush(&out) != CTL_DONE)
		return CTL_REFUSED;
	return notification.verdict == PN_VERDICT_ACCEPTED ? CTL_DONE
							   : CTL_REFUSED;
}
