/*
 * The JSON form of an event: what commands print and deliveries carry. Every
 * field is always there, null where the notification told nothing, so that a
 * reader need not ask whether a name exists. The order is fixed.
 *
 * It is one line. The payload is copied as it is, and JSON allows raw line
 * ends between its tokens only, so they become blanks.
 */
#include "paynotify/event.h"

#include <assert.h>
#include <inttypes.h>

#include "paynotify/json.h"
#include "paynotify/moment.h"

enum { SCHEMA = 1 };

static void
add_name(struct pn_buf *out, const char *name)
{
	pn_buf_add_text(out, ",\"");
	pn_buf_add_text(out, name);
	pn_buf_add_text(out, "\":");
}

static void
add_text(struct pn_buf *out, const char *name, struct pn_str value)
{
	add_name(out, name);
	if (value.len == 0)
		pn_buf_add_text(out, "null");
	else
		pn_json_add_string(out, value);
}

static void
add_number(struct pn_buf *out, const char *name, int64_t value, bool present)
{
	add_name(out, name);
	if (present)
		pn_buf_printf(out, "%" PRId64, value);
	else
		pn_buf_add_text(out, "null");
}

static void
add_moment(struct pn_buf *out, const char *name, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES] = "";

	if (us != PN_MOMENT_NONE)
		pn_moment_format_rfc3339(us, text);
	add_text(out, name, pn_str_from(text));
}

static void
add_refund(struct pn_buf *out, const struct pn_refund *refund)
{
	add_name(out, "refund");
	if (!refund->present) {
		pn_buf_add_text(out, "null");
		return;
	}
	/* The first name has no comma before it. */
	pn_buf_add_text(out, "{\"id\":");
	if (refund->id.len == 0)
		pn_buf_add_text(out, "null");
	else
		pn_json_add_string(out, refund->id);
	add_text(out, "out_refund_no", refund->out_refund_no);
	add_number(out, "refunded_total", refund->refunded_total.minor,
	    refund->refunded_total.present);
	pn_buf_add_char(out, '}');
}

/* JSON text, its line ends turned into blanks; data of fallback if empty. */
static void
add_json(struct pn_buf *out, const char *name, struct pn_str json,
    const char *fallback)
{
	add_name(out, name);
	if (json.len == 0) {
		pn_buf_add_text(out, fallback);
		return;
	}
	for (size_t i = 0, from = 0; i <= json.len; i++) {
		if (i < json.len && json.data[i] != '\n' &&
		    json.data[i] != '\r')
			continue;
		pn_buf_add(out, json.data + from, i - from);
		if (i < json.len)
			pn_buf_add_char(out, ' ');
		from = i + 1;
	}
}

void
pn_event_add_json(struct pn_buf *out, const struct pn_event_row *row)
{
	const struct pn_event *event = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	assert(event->type.len > 0 && event->key.len > 0);
	pn_event_id_text(event->id, id);
	pn_buf_printf(out, "{\"schema\":%d", (int)SCHEMA);
	add_text(out, "id", pn_str_from(id));
	add_number(out, "seq", row->seq, row->seq >= 0);
	add_name(out, "livemode");
	pn_buf_add_text(out, event->livemode ? "true" : "false");
	add_text(out, "type", event->type);
	add_text(out, "provider", event->provider);
	add_text(out, "tenant", event->tenant);
	add_text(out, "account", event->account);
	add_text(out, "key", event->key);
	add_text(out, "out_trade_no", event->out_trade_no);
	add_text(out, "transaction_id", event->transaction_id);
	add_number(out, "amount", event->amount.minor, event->amount.present);
	add_number(out, "order_amount", event->order_amount.minor,
	    event->order_amount.present);
	add_text(out, "currency", event->currency);
	add_refund(out, &event->refund);
	add_text(out, "order_check",
	    row->order_check.len > 0 ? row->order_check : PN_STR("off"));
	add_json(out, "flags", row->flags, "[]");
	add_moment(out, "occurred_at", event->occurred_at_us);
	add_moment(out, "received_at", row->received_at_us);
	add_json(out, "payload", row->payload, "null");
	pn_buf_add_char(out, '}');
}
