/*
 * What makes an event the same event: its id, the digest of its key, and the
 * fingerprint of its business fields. All three are kept for ever and compared
 * with what other hosts and other years have computed, so their forms are
 * contracts and may not change: DESIGN.md section 7 and event.h.
 *
 * The forms are unambiguous because no field can hold the separator: tenant
 * and route by their syntax, keys and values by percent-encoding.
 *
 * Memory being out is not a result here: an event without a fingerprint must
 * not exist, so it aborts, as a digest does.
 */
#include "paynotify/event.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "paynotify/encode.h"

enum {
	/* No field is longer than the request it came in. */
	FORM_BYTES_MAX = PN_ARENA_BYTES_MAX,
	NUMBER_BYTES = 24,
};

static const char hex[] = "0123456789ABCDEF";

static void
add_escaped(struct pn_buf *out, unsigned char c)
{
	const char escaped[] = { '%', hex[c >> 4], hex[c & 15] };

	pn_buf_add(out, escaped, sizeof(escaped));
}

static void
add_field(struct pn_buf *out, const char *name, struct pn_str value)
{
	size_t plain = 0;

	if (value.len == 0)
		return;
	pn_buf_add_text(out, name);
	pn_buf_add_char(out, '=');
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if (c >= 0x20 && c != '%' && c != 0x7f)
			continue;
		pn_buf_add(out, value.data + plain, i - plain);
		add_escaped(out, c);
		plain = i + 1;
	}
	pn_buf_add(out, value.data + plain, value.len - plain);
	pn_buf_add_char(out, '\n');
}

static void
add_amount(struct pn_buf *out, const char *name, struct pn_amount amount)
{
	char text[NUMBER_BYTES];

	if (!amount.present)
		return;
	(void)snprintf(text, sizeof(text), "%" PRId64, amount.minor);
	add_field(out, name, pn_str_from(text));
}

static void
digest(const struct pn_buf *form, unsigned char ret_digest[PN_SHA256_BYTES])
{
	if (pn_buf_failed(form)) {
		fputs(
		    "out of memory for the fingerprint of an event\n", stderr);
		abort();
	}
	pn_sha256(pn_buf_str(form), ret_digest);
}

static void
seal_fingerprint(struct pn_event *event, struct pn_buf *form)
{
	pn_buf_reset(form);
	add_field(form, "type", event->type);
	add_field(form, "tenant", event->tenant);
	add_field(form, "merchant", event->merchant);
	add_field(form, "out_trade_no", event->out_trade_no);
	add_field(form, "transaction_id", event->transaction_id);
	add_amount(form, "order_amount", event->order_amount);
	add_field(form, "currency", event->currency);
	if (event->refund.present) {
		add_field(form, "refund.id", event->refund.id);
		add_field(
		    form, "refund.out_refund_no", event->refund.out_refund_no);
	}
	digest(form, event->request_hash);
}

static void
put_scope(struct pn_buf *form, struct pn_str tenant, struct pn_str route,
    struct pn_str key)
{
	pn_buf_reset(form);
	pn_buf_add_str(form, tenant);
	pn_buf_add_char(form, '\n');
	pn_buf_add_str(form, route);
	pn_buf_add_char(form, '\n');
	pn_buf_add_str(form, key);
}

void
pn_event_scope_id(struct pn_str tenant, struct pn_str route, struct pn_str key,
    unsigned char ret_id[16])
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf form = pn_buf_init(FORM_BYTES_MAX);
	unsigned char whole[PN_SHA256_BYTES];

	put_scope(&form, tenant, route, key);
	digest(&form, whole);
	memcpy(ret_id, whole, 16);
}

void
pn_event_seal(struct pn_event *event)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf form = pn_buf_init(FORM_BYTES_MAX);
	unsigned char whole[PN_SHA256_BYTES];
	struct pn_str behind_tenant;

	assert(event->type.len > 0 && event->key.len > 0);
	assert(event->tenant.len > 0 && event->route.len > 0);
	assert(pn_str_find(event->tenant, PN_STR("\n")) < 0);
	assert(pn_str_find(event->route, PN_STR("\n")) < 0);
	seal_fingerprint(event, &form);

	put_scope(&form, event->tenant, event->route, event->key);
	digest(&form, whole);
	memcpy(event->id, whole, sizeof(event->id));

	behind_tenant = (struct pn_str){ form.data + event->tenant.len + 1,
		form.len - event->tenant.len - 1 };
	pn_sha256(behind_tenant, event->key_digest);
}

void
pn_event_id_text(
    const unsigned char id[16], char ret_text[PN_EVENT_ID_TEXT_BYTES])
{
	static const char prefix[] = { 'e', 'v', 't', '_' };

	static_assert(sizeof(prefix) + 2 * 16 + 1 == PN_EVENT_ID_TEXT_BYTES,
	    "prefix, two digits a byte, and the NUL");
	memcpy(ret_text, prefix, sizeof(prefix));
	pn_hex_lower(id, 16, ret_text + sizeof(prefix));
}

void
pn_event_key_add(struct pn_buf *out, struct pn_str component)
{
	for (size_t i = 0; i < component.len; i++) {
		unsigned char c = (unsigned char)component.data[i];

		if (c < 0x21 || c > 0x7e || c == '%' || c == ':')
			add_escaped(out, c);
		else
			pn_buf_add_char(out, (char)c);
	}
}
