/*
 * The decrypted object of APIv3 to events, by its shape.
 *
 * event_type does not tell what a message is: single payments, combined orders
 * and profit sharing all come as TRANSACTION.SUCCESS, and the list of types
 * grows. So the fields decide:
 *
 *   refund_status                          a refund
 *   combine_out_trade_no and sub_orders    a combined order: an event each
 *   trade_state and transaction_id         a payment (overseas: id)
 *   anything else                          wechat.<event_type>
 *
 * A state that is not final (a refund PROCESSING, a trade_state other than
 * SUCCESS) is "anything else" as well: it is recorded, and never under the key
 * of the payment, which must stay free for the real one.
 *
 * Once a shape is recognised, what its event needs must be there: without an
 * amount or an id the notification is refused and, being signed, kept. Fields
 * that no event needs are not looked at, whatever their type: they differ
 * between products and change without notice.
 *
 * An unclassified TRANSACTION.* is recorded and raises the alarm: it may be
 * money in a form that this file has not learnt yet.
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/moment.h"

enum {
	WECHAT_EVENT_TYPE_BYTES_MAX =
	    PN_TYPE_BYTES_MAX - (int)sizeof("wechat.") + 1,
};

bool
pn_wechat_v3_is_profit_sharing(const json_t *plain)
{
	return json_is_object(json_object_get(plain, "receiver")) &&
	       pn_json_text(plain, "order_id").len > 0 &&
	       pn_json_text(plain, "out_order_no").len > 0;
}

static bool
is_refund(const json_t *plain)
{
	return pn_wechat_refund_status_known(
	    pn_json_text(plain, "refund_status"));
}

static bool
is_combined(const json_t *plain)
{
	return pn_json_text(plain, "combine_out_trade_no").len > 0 &&
	       json_is_array(json_object_get(plain, "sub_orders"));
}

/* An empty value counts as absent. */
static bool
is_present(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return value != NULL && !json_is_null(value) &&
	       !(json_is_string(value) && json_string_length(value) == 0);
}

static bool
is_payment(const json_t *plain)
{
	return pn_str_is(pn_json_text(plain, "trade_state"), "SUCCESS") &&
	       (is_present(plain, "transaction_id") || is_present(plain, "id"));
}

/* A whole number of minor units, not negative. */
static int
amount_take(const struct pn_wechat_job *job, const json_t *object,
    const char *name, struct pn_amount *ret_amount)
{
	int64_t minor;

	if (pn_json_int64(object, name, &minor) != 0)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "an amount is missing or not a whole number");
	if (minor < 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "an amount is negative");
	*ret_amount = (struct pn_amount){ .minor = minor, .present = true };
	return 0;
}

static int
currency_take(const struct pn_wechat_job *job, const json_t *amount,
    struct pn_str *ret_currency)
{
	int r = pn_wechat_json_id(job, amount, "currency", ret_currency);

	if (r != 0)
		return r;
	if (ret_currency->len > 0 && !pn_wechat_currency_valid(*ret_currency))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "a currency has not three letters");
	return 0;
}

/* success_time where there is one that can be read, else when the message was
 * made. */
static int64_t
occurred_at(const json_t *object, const struct pn_wechat_envelope *envelope)
{
	int64_t us;

	if (pn_moment_parse_rfc3339(
		pn_json_text(object, "success_time"), &us) == 0)
		return us;
	return envelope->create_time_us;
}

/* Whose it is and which order it is about. */
static int
trade_take(const struct pn_wechat_job *job, const json_t *object,
    const struct pn_wechat_envelope *envelope,
    struct pn_wechat_facts *ret_facts)
{
	struct pn_wechat_facts facts = {
		.occurred_at_us = occurred_at(object, envelope),
	};
	int r;

	r = pn_wechat_json_id(job, object, "sub_mchid", &facts.account);
	if (r == 0)
		r = pn_wechat_json_id(
		    job, object, "out_trade_no", &facts.out_trade_no);
	if (r == 0)
		r = pn_wechat_json_id(
		    job, object, "transaction_id", &facts.transaction_id);
	if (r == 0 && facts.transaction_id.len == 0)
		r = pn_wechat_json_id(job, object, "id", &facts.transaction_id);
	if (r != 0)
		return r;
	if (facts.transaction_id.len == 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "transaction_id is missing");
	if (facts.out_trade_no.len == 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "out_trade_no is missing");
	*ret_facts = facts;
	return 0;
}

static int
payment_take(const struct pn_wechat_job *job, const json_t *object,
    const struct pn_wechat_envelope *envelope, const char *amount_name,
    struct pn_wechat_facts *ret_facts)
{
	const json_t *amount = json_object_get(object, "amount");
	int r = trade_take(job, object, envelope, ret_facts);

	if (r == 0)
		r = amount_take(
		    job, amount, amount_name, &ret_facts->order_amount);
	if (r == 0)
		r = currency_take(job, amount, &ret_facts->currency);
	if (r == 0)
		ret_facts->amount = ret_facts->order_amount;
	return r;
}

static int
add_payment(struct pn_wechat_job *job,
    const struct pn_wechat_envelope *envelope, const json_t *plain)
{
	struct pn_wechat_facts facts;
	int r;

	r = payment_take(job, plain, envelope, "total", &facts);
	if (r == 0)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	return pn_wechat_add_payment(job, &facts);
}

static int
add_refund(struct pn_wechat_job *job, const struct pn_wechat_envelope *envelope,
    const json_t *plain)
{
	const json_t *amount = json_object_get(plain, "amount");
	struct pn_wechat_facts facts;
	int r;

	r = trade_take(job, plain, envelope, &facts);
	if (r == 0)
		r = pn_wechat_json_id(
		    job, plain, "refund_id", &facts.refund_id);
	if (r == 0)
		r = pn_wechat_json_id(
		    job, plain, "out_refund_no", &facts.out_refund_no);
	if (r == 0 && facts.refund_id.len == 0)
		r = pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "refund_id is missing");
	if (r == 0)
		r = amount_take(job, amount, "refund", &facts.amount);
	if (r == 0)
		r = amount_take(job, amount, "total", &facts.order_amount);
	if (r == 0)
		r = currency_take(job, amount, &facts.currency);
	if (r == 0)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	return pn_wechat_add_refund(
	    job, &facts, pn_json_text(plain, "refund_status"));
}

/* The event of whatever has none of its own. */
static int
add_other(struct pn_wechat_job *job, const struct pn_wechat_envelope *envelope,
    const json_t *plain)
{
	struct pn_wechat_facts facts = {
		.occurred_at_us = occurred_at(plain, envelope),
	};
	struct pn_str type = envelope->event_type;
	int r;

	if (envelope->id.len == 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "the envelope has no id");
	if (type.len == 0 || type.len > WECHAT_EVENT_TYPE_BYTES_MAX)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the envelope has no usable event_type");
	for (size_t i = 0; i < type.len; i++)
		if (type.data[i] < 0x21 || type.data[i] > 0x7e)
			return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
			    "the envelope has no usable event_type");
	r = pn_wechat_json_hint(job, plain, "sub_mchid", &facts.account);
	if (r == 0)
		r = pn_wechat_json_hint(
		    job, plain, "out_trade_no", &facts.out_trade_no);
	if (r == 0)
		r = pn_wechat_json_hint(
		    job, plain, "transaction_id", &facts.transaction_id);
	if (r == 0 && job->notification->events == NULL)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	if (pn_str_starts(type, "TRANSACTION.") &&
	    !pn_wechat_v3_is_profit_sharing(plain))
		job->notification->alarm = true;
	return pn_wechat_add_other(job, &facts, type, envelope->id);
}

/* One key twice in one notification could not be told from a forgery, and the
 * store takes a key once a batch. */
static bool
seen_before(const struct pn_notification *n, struct pn_str transaction_id)
{
	for (size_t i = 0; i < n->event_count; i++)
		if (pn_str_equal(n->events[i].transaction_id, transaction_id))
			return true;
	return false;
}

/* The number that is hashed is the sub-order's own: it is the one that a
 * notification of this order alone would carry. */
static int
add_sub_order(struct pn_wechat_job *job,
    const struct pn_wechat_envelope *envelope, const json_t *order)
{
	struct pn_wechat_facts facts;
	int r;

	r = payment_take(job, order, envelope, "total_amount", &facts);
	if (r == 0)
		r = pn_wechat_json_id(job, order, "mchid", &facts.merchant);
	if (r != 0)
		return r;
	if (facts.account.len == 0)
		facts.account = facts.merchant;
	if (seen_before(job->notification, facts.transaction_id))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "two sub-orders have one transaction_id");
	return pn_wechat_add_payment(job, &facts);
}

static bool
is_paid(const json_t *order)
{
	return pn_str_is(pn_json_text(order, "trade_state"), "SUCCESS");
}

/* All sub-orders are paid or none, says the document. If it ever is otherwise,
 * the paid ones are events and the rest is told by one of the other kind. */
static int
add_combined(struct pn_wechat_job *job,
    const struct pn_wechat_envelope *envelope, const json_t *plain)
{
	const json_t *orders = json_object_get(plain, "sub_orders");
	size_t count = json_array_size(orders), paid = 0;
	int r;

	if (count == 0 || count > PN_EVENTS_PER_NOTIFICATION_MAX)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "a combined order of no or too many sub-orders");
	for (size_t i = 0; i < count; i++) {
		const json_t *order = json_array_get(orders, i);

		if (!json_is_object(order))
			return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
			    "a sub-order is no object");
		paid += is_paid(order);
	}
	r = pn_wechat_events_reserve(job, paid + (paid < count));
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *order = json_array_get(orders, i);

		if (is_paid(order))
			r = add_sub_order(job, envelope, order);
	}
	if (r == 0 && paid < count)
		r = add_other(job, envelope, plain);
	return r;
}

int
pn_wechat_v3_events(struct pn_wechat_job *job,
    const struct pn_wechat_envelope *envelope, const json_t *plain)
{
	assert(json_is_object(plain));
	assert(job->notification->verified);
	if (is_refund(plain))
		return add_refund(job, envelope, plain);
	if (is_combined(plain))
		return add_combined(job, envelope, plain);
	if (is_payment(plain))
		return add_payment(job, envelope, plain);
	return add_other(job, envelope, plain);
}
