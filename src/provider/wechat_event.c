/*
 * What APIv2 and APIv3 must make equal.
 *
 * One payment can be told by both: v3 by default, v2 when the order was made
 * through the old interface, both during a migration. They share the dedup key
 * (transaction_id), so they must share the fingerprint too, or the second one
 * would be taken for a forgery. Every event is therefore made here, from the
 * same few facts, whatever the message called them.
 *
 * Invariants: an event that leaves this file is sealed; its strings are in the
 * arena of the request; a key component is escaped, so that no two ids share a
 * key; the order's total is in order_amount of every payment and refund.
 *
 * Not here: what counts as a payment or a refund. That is a matter of shape,
 * and the shapes differ (wechat_v3_event.c, wechat_v2_event.c).
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/moment.h"

enum {
	/* An escaped byte takes three; the words around two ids and a status
	 * take less than 64. */
	WECHAT_KEY_BYTES = 2 * 3 * PN_ID_BYTES_MAX + 64,
};
static_assert(WECHAT_KEY_BYTES <= (int)PN_KEY_BYTES_MAX,
    "a refund of the longest ids must have a key");

/* v2 and overseas names on the left of what v3 calls the same. */
static const struct {
	const char *status, *canonical, *type;
} refund_kinds[] = {
	{ "SUCCESS", "SUCCESS", "refund.succeeded" },
	{ "ABNORMAL", "ABNORMAL", "refund.abnormal" },
	{ "CHANGE", "ABNORMAL", "refund.abnormal" },
	{ "CLOSED", "CLOSED", "refund.closed" },
	{ "REFUNDCLOSE", "CLOSED", "refund.closed" },
};

void
pn_wechat_refusal_set(const struct pn_wechat_job *job, enum pn_verdict verdict,
    const char *reason)
{
	assert(verdict != PN_VERDICT_ACCEPTED && verdict < PN_VERDICT_COUNT);
	assert(reason != NULL);
	job->notification->verdict = verdict;
	job->notification->reason = reason;
	job->notification->event_count = 0;
}

static bool
id_usable(struct pn_str id)
{
	return id.len <= PN_ID_BYTES_MAX &&
	       (id.len == 0 || memchr(id.data, '\0', id.len) == NULL);
}

int
pn_wechat_json_id(const struct pn_wechat_job *job, const json_t *object,
    const char *name, struct pn_str *ret_id)
{
	const json_t *value = json_object_get(object, name);
	struct pn_str id;

	*ret_id = (struct pn_str){ NULL, 0 };
	if (value == NULL || json_is_null(value))
		return 0;
	if (!json_is_string(value))
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "an id is not a string");
	id = (struct pn_str){ json_string_value(value),
		json_string_length(value) };
	if (id.len == 0)
		return 0;
	if (!id_usable(id))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "an id is too long or has a NUL in it");
	*ret_id = pn_arena_copy(job->arena, id);
	return ret_id->data == NULL ? -ENOMEM : 0;
}

int
pn_wechat_json_hint(const struct pn_wechat_job *job, const json_t *object,
    const char *name, struct pn_str *ret_id)
{
	struct pn_str text = pn_json_text(object, name);

	*ret_id = (struct pn_str){ NULL, 0 };
	if (text.len == 0 || !id_usable(text))
		return 0;
	*ret_id = pn_arena_copy(job->arena, text);
	return ret_id->data == NULL ? -ENOMEM : 0;
}

int
pn_wechat_field_id(const struct pn_wechat_job *job,
    const struct pn_form *fields, const char *name, struct pn_str *ret_id)
{
	struct pn_str id = pn_form_get(fields, name);

	*ret_id = (struct pn_str){ NULL, 0 };
	if (id.len == 0)
		return 0;
	if (!id_usable(id))
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "an id is too long");
	*ret_id = id;
	return 0;
}

bool
pn_wechat_refund_status_known(struct pn_str status)
{
	for (size_t i = 0; i < PN_COUNT(refund_kinds); i++)
		if (pn_str_is(status, refund_kinds[i].status))
			return true;
	return false;
}

bool
pn_wechat_currency_valid(struct pn_str currency)
{
	if (currency.len != 3)
		return false;
	for (size_t i = 0; i < currency.len; i++)
		if (currency.data[i] < 'A' || currency.data[i] > 'Z')
			return false;
	return true;
}

int
pn_wechat_events_reserve(struct pn_wechat_job *job, size_t count)
{
	struct pn_notification *n = job->notification;

	assert(n->event_count == 0);
	assert(count > 0 && count <= PN_EVENTS_PER_NOTIFICATION_MAX);
	n->events = pn_arena_alloc(job->arena, count * sizeof(*n->events));
	return n->events == NULL ? -ENOMEM : 0;
}

/* "webhook:wechat" and each component behind a colon. Words are components
 * too: escaping leaves them as they are. */
static int
key_make(struct pn_arena *arena, const struct pn_str *components, size_t count,
    struct pn_str *ret_key)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf key = pn_buf_init(WECHAT_KEY_BYTES);

	pn_buf_add_text(&key, "webhook:wechat");
	for (size_t i = 0; i < count; i++) {
		assert(components[i].len > 0);
		pn_buf_add_char(&key, ':');
		pn_event_key_add(&key, components[i]);
	}
	if (pn_buf_failed(&key))
		return -ENOMEM;
	*ret_key = pn_arena_copy(arena, pn_buf_str(&key));
	return ret_key->data == NULL ? -ENOMEM : 0;
}

/* The next event with all that does not depend on its kind. */
static int
event_add(struct pn_wechat_job *job, const struct pn_wechat_facts *facts,
    struct pn_str type, const struct pn_str *components, size_t count)
{
	const struct pn_wechat_account *account = job->account;
	struct pn_notification *n = job->notification;
	struct pn_event *event = &n->events[n->event_count];
	int r;

	*event = (struct pn_event){
		.type = type,
		.provider = PN_STR("wechat"),
		.tenant = account->tenant,
		.route = PN_STR("notify/wechat"),
		.livemode = !account->conf->test,
		.account = facts->account,
		.merchant = facts->merchant,
		.out_trade_no = facts->out_trade_no,
		.transaction_id = facts->transaction_id,
		.amount = facts->amount,
		.order_amount = facts->order_amount,
		.currency = facts->currency,
		.occurred_at_us = facts->occurred_at_us,
	};
	if (event->account.len == 0)
		event->account = account->mchid;
	if (event->merchant.len == 0)
		event->merchant = account->mchid;
	if (event->currency.len == 0)
		event->currency = PN_STR("CNY");
	if (facts->refund_id.len > 0) {
		event->refund.present = true;
		event->refund.id = facts->refund_id;
		event->refund.out_refund_no = facts->out_refund_no;
	}
	r = key_make(job->arena, components, count, &event->key);
	if (r < 0)
		return r;
	pn_event_seal(event);
	n->event_count++;
	return 0;
}

int
pn_wechat_add_payment(
    struct pn_wechat_job *job, const struct pn_wechat_facts *facts)
{
	assert(facts->amount.present && facts->order_amount.present);
	return event_add(
	    job, facts, PN_STR("payment.succeeded"), &facts->transaction_id, 1);
}

int
pn_wechat_add_failed(
    struct pn_wechat_job *job, const struct pn_wechat_facts *facts)
{
	const struct pn_str components[] = {
		PN_STR("order"),
		facts->out_trade_no,
		PN_STR("failed"),
	};

	return event_add(job, facts, PN_STR("payment.failed"), components,
	    PN_COUNT(components));
}

int
pn_wechat_add_refund(struct pn_wechat_job *job,
    const struct pn_wechat_facts *facts, struct pn_str status)
{
	size_t kind = 0;

	assert(pn_wechat_refund_status_known(status));
	assert(facts->amount.present && facts->order_amount.present);
	while (!pn_str_is(status, refund_kinds[kind].status))
		kind++;

	const struct pn_str components[] = {
		facts->transaction_id,
		PN_STR("refund"),
		facts->refund_id,
		pn_str_from(refund_kinds[kind].canonical),
	};

	return event_add(job, facts, pn_str_from(refund_kinds[kind].type),
	    components, PN_COUNT(components));
}

int
pn_wechat_add_other(struct pn_wechat_job *job,
    const struct pn_wechat_facts *facts, struct pn_str type,
    struct pn_str notify_id)
{
	const struct pn_str components[] = { PN_STR("notify"), notify_id };
	static const char prefix[] = "wechat.";
	const size_t prefix_len = sizeof(prefix) - 1;
	char *text;

	text = pn_arena_alloc(job->arena, prefix_len + type.len);
	if (text == NULL)
		return -ENOMEM;
	memcpy(text, prefix, prefix_len);
	for (size_t i = 0; i < type.len; i++) {
		char c = type.data[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		text[prefix_len + i] = c;
	}
	return event_add(job, facts,
	    (struct pn_str){ text, prefix_len + type.len }, components,
	    PN_COUNT(components));
}
