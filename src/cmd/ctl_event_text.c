/*
 * An event as people read it: one line a field that it has, money as money, and
 * the provider's own fields below, one a line.
 */
#include "ctl.h"

#include <jansson.h>

#include "paynotify/json.h"

static void
add_amount_line(struct pn_buf *out, const char *label, struct pn_amount amount,
    struct pn_str currency)
{
	if (!amount.present)
		return;
	ctl_add_label(out, label);
	ctl_add_money(out, amount.minor, currency);
	pn_buf_add_char(out, '\n');
}

void
ctl_event_add_text(struct pn_buf *out, const struct pn_event_row *row)
{
	const struct pn_event *e = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	pn_event_id_text(e->id, id);
	ctl_add_label(out, "event");
	ctl_add_clean(out, e->type);
	pn_buf_add_text(out, e->livemode ? "\n" : "  (test account)\n");
	ctl_add_line(out, "key", e->key);
	ctl_add_line(out, "id", pn_str_from(id));
	if (row->seq >= 0) {
		ctl_add_label(out, "seq");
		pn_buf_printf(out, "%lld\n", (long long)row->seq);
	}
	ctl_add_label(out, "tenant");
	ctl_add_clean(out, e->provider);
	pn_buf_add_char(out, '/');
	ctl_add_clean(out, e->tenant);
	pn_buf_add_char(out, '\n');
	ctl_add_line(out, "account", e->account);
	ctl_add_line(out, "out_trade_no", e->out_trade_no);
	ctl_add_line(out, "transaction_id", e->transaction_id);
	add_amount_line(out, "amount", e->amount, e->currency);
	add_amount_line(out, "order_amount", e->order_amount, e->currency);
	if (e->refund.present) {
		ctl_add_line(out, "refund id", e->refund.id);
		ctl_add_line(out, "out_refund_no", e->refund.out_refund_no);
		add_amount_line(out, "refunded_total", e->refund.refunded_total,
		    e->currency);
	}
	if (row->flags.len > 2) /* more than [] */
		ctl_add_line(out, "flags", row->flags);
	ctl_add_time_line(out, "occurred_at", e->occurred_at_us);
	ctl_add_time_line(out, "received_at", row->received_at_us);
}

void
ctl_payload_add_text(struct pn_buf *out, struct pn_str payload)
{
	PN_CLEANUP(pn_json_freep) json_t *object = NULL;
	const char *name;
	json_t *value;

	if (payload.len == 0)
		return;
	pn_buf_add_text(out, "payload\n");
	if (pn_json_parse(payload, &object, NULL) != 0 ||
	    !json_is_object(object)) {
		pn_buf_add_text(out, "  ");
		ctl_add_clean(out, payload);
		pn_buf_add_char(out, '\n');
		return;
	}
	json_object_foreach(object, name, value)
	{
		char *text = NULL;
		struct pn_str shown;

		if (json_is_string(value)) {
			shown = (struct pn_str){ json_string_value(value),
				json_string_length(value) };
		} else {
			text =
			    json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
			shown = pn_str_from(text);
		}
		pn_buf_add_text(out, "  ");
		ctl_add_clean(out, pn_str_from(name));
		pn_buf_add_text(out, " = ");
		if (shown.len > 0)
			ctl_add_clean(out, shown);
		pn_buf_add_char(out, '\n');
		free(text);
	}
}
