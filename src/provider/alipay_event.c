/*
 * From a verified notification to the events of DESIGN.md section 7.
 *
 * Payments, refunds and closings arrive under the same notify_type, and a
 * refund keeps trade_status TRADE_SUCCESS until the last part of the money is
 * back. So the kind is read from several fields together:
 *
 *   WAIT_BUYER_PAY		  payment.pending
 *   TRADE_CLOSED, no gmt_payment payment.closed
 *   else it is paid		  payment.succeeded, always and first: a refund
 *				  that overtook its payment brings it along
 *   ... and TRADE_FINISHED	  payment.finished: refund marks in it are of
 *				  refunds long told, so they are ignored
 *   ... and refund_fee > 0 or gmt_refund
 *				  refund.succeeded
 *
 * Every delivery about a paid order thus repeats its payment.succeeded with
 * the same key and the same fingerprint, and the store finds a duplicate.
 *
 * refund_fee is what has been given back in all, so the amount of one refund
 * is not told. Its key is the merchant's own out_biz_no; where the merchant
 * gave none Alipay fills in out_trade_no, and the growing sum tells the
 * refunds of an order apart.
 *
 * Amounts are hundredths of the currency that the order is in: trans_currency,
 * else CNY. Nothing else is computed here: whether an amount is the expected
 * one is the order check's business.
 */
#include "alipay_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

#define KEY_PREFIX "webhook:alipay:"

/* A payment, and what became of it. */
enum { EVENTS_MAX = 2 };

struct trade {
	struct pn_str out_trade_no, trade_no, out_biz_no, status;
	int64_t total_fen;
	struct pn_amount refund_fee;
	bool paid, finished, refunded;
};

static struct pn_str
get(const struct pn_alipay_message *message, const char *name)
{
	return pn_form_get(&message->text, name);
}

/* The first of the named dates that is there. */
static int64_t
moment_of(const struct pn_alipay_message *message, const char *const *names)
{
	int64_t us;

	for (; *names != NULL; names++) {
		struct pn_str text = get(message, *names);

		if (text.len > 0 && pn_moment_parse_beijing(text, &us) == 0)
			return us;
	}
	return PN_MOMENT_NONE;
}

/* What all events of one account and message share. */
static struct pn_event
event_base(
    const struct pn_alipay *account, const struct pn_alipay_message *message)
{
	const struct pn_conf_strings *sellers =
	    &account->conf->alipay.seller_id;
	struct pn_event event = {
		.provider = PN_STR("alipay"),
		.tenant = pn_str_from(account->conf->tenant),
		.route = PN_STR("notify/alipay"),
		.livemode = !account->conf->test,
		/* Hashed, so from the message alone: the configuration may
		 * change between two deliveries of one event. */
		.merchant = get(message, "seller_id"),
		.currency = PN_STR("CNY"),
		.occurred_at_us = PN_MOMENT_NONE,
	};
	struct pn_str currency = get(message, "trans_currency");

	event.account = event.merchant;
	if (event.account.len == 0 && sellers->count > 0)
		event.account = pn_str_from(sellers->values[0]);
	if (currency.len > 0)
		event.currency = currency;
	return event;
}

/* webhook:alipay:<id><suffix><last, if any>. data NULL: no memory. */
static struct pn_str
make_key(struct pn_arena *arena, struct pn_str id, const char *suffix,
    struct pn_str last)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf key = pn_buf_init(PN_KEY_BYTES_MAX);

	pn_buf_add_text(&key, KEY_PREFIX);
	pn_event_key_add(&key, id);
	pn_buf_add_text(&key, suffix);
	if (last.len > 0)
		pn_event_key_add(&key, last);
	if (pn_buf_failed(&key))
		return (struct pn_str){ NULL, 0 };
	return pn_arena_copy(arena, pn_buf_str(&key));
}

/* webhook:alipay:<out_trade_no>:refund:<...>, see above. */
static struct pn_str
make_refund_key(struct pn_arena *arena, const struct trade *trade)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf suffix = pn_buf_init(PN_KEY_BYTES_MAX);

	if (trade->out_biz_no.len > 0 &&
	    !pn_str_equal(trade->out_biz_no, trade->out_trade_no))
		return make_key(
		    arena, trade->out_trade_no, ":refund:", trade->out_biz_no);
	assert(trade->refund_fee.present);
	pn_buf_add_text(&suffix, ":refund:");
	pn_event_key_add(&suffix, trade->out_trade_no);
	pn_buf_printf(&suffix, ":%lld", (long long)trade->refund_fee.minor);
	if (pn_buf_failed(&suffix))
		return (struct pn_str){ NULL, 0 };
	return make_key(arena, trade->out_trade_no, suffix.data,
	    (struct pn_str){ NULL, 0 });
}

/* 0; 1 and a reason when something that every trade has is missing. */
static int
read_trade(const struct pn_alipay_message *message, struct trade *ret_trade,
    const char **ret_reason)
{
	struct pn_str fee = get(message, "refund_fee");
	struct trade trade = {
		.out_trade_no = get(message, "out_trade_no"),
		.trade_no = get(message, "trade_no"),
		.out_biz_no = get(message, "out_biz_no"),
		.status = get(message, "trade_status"),
	};

	if (trade.status.len == 0) {
		*ret_reason = "trade notification without trade_status";
		return 1;
	}
	if (trade.out_trade_no.len == 0) {
		*ret_reason = "trade notification without out_trade_no";
		return 1;
	}
	if (trade.trade_no.len == 0) {
		*ret_reason = "trade notification without trade_no";
		return 1;
	}
	/* The form was checked; an empty value is what is left. */
	if (pn_money_parse_yuan(
		get(message, "total_amount"), &trade.total_fen) != 0) {
		*ret_reason = "trade notification without total_amount";
		return 1;
	}
	trade.refund_fee.present =
	    fee.len > 0 &&
	    pn_money_parse_yuan(fee, &trade.refund_fee.minor) == 0;
	trade.finished = pn_str_is(trade.status, "TRADE_FINISHED");
	trade.refunded =
	    !trade.finished &&
	    ((trade.refund_fee.present && trade.refund_fee.minor > 0) ||
		get(message, "gmt_refund").len > 0);
	trade.paid = pn_str_is(trade.status, "TRADE_SUCCESS") ||
		     trade.finished ||
		     (pn_str_is(trade.status, "TRADE_CLOSED") &&
			 get(message, "gmt_payment").len > 0);
	if (trade.paid && trade.refunded && !trade.refund_fee.present &&
	    (trade.out_biz_no.len == 0 ||
		pn_str_equal(trade.out_biz_no, trade.out_trade_no))) {
		*ret_reason = "refund with neither out_biz_no nor refund_fee";
		return 1;
	}
	*ret_trade = trade;
	return 0;
}

static void
make_payment(const struct pn_alipay_message *message, struct pn_arena *arena,
    const struct trade *trade, struct pn_event *event)
{
	static const char *const dates[] = { "gmt_payment", "notify_time",
		NULL };

	event->type = PN_STR("payment.succeeded");
	event->key = make_key(
	    arena, trade->out_trade_no, "", (struct pn_str){ NULL, 0 });
	event->amount = event->order_amount;
	event->occurred_at_us = moment_of(message, dates);
}

/* What became of a payment: payment.finished or refund.succeeded. */
static void
make_sequel(const struct pn_alipay_message *message, struct pn_arena *arena,
    const struct trade *trade, struct pn_event *event)
{
	static const char *const finish_dates[] = { "gmt_close", "notify_time",
		NULL };
	static const char *const refund_dates[] = { "gmt_refund", "notify_time",
		NULL };

	if (trade->finished) {
		event->type = PN_STR("payment.finished");
		event->key = make_key(arena, trade->out_trade_no, ":finished",
		    (struct pn_str){ NULL, 0 });
		event->amount = event->order_amount;
		event->occurred_at_us = moment_of(message, finish_dates);
		return;
	}
	event->type = PN_STR("refund.succeeded");
	event->key = make_refund_key(arena, trade);
	event->refund = (struct pn_refund){
		.present = true,
		.out_refund_no = trade->out_biz_no,
		.refunded_total = trade->refund_fee,
	};
	event->occurred_at_us = moment_of(message, refund_dates);
}

static void
make_unpaid(const struct pn_alipay_message *message, struct pn_arena *arena,
    const struct trade *trade, struct pn_event *event)
{
	static const char *const pending_dates[] = { "gmt_create",
		"notify_time", NULL };
	static const char *const closed_dates[] = { "gmt_close", "notify_time",
		NULL };
	bool closed = pn_str_is(trade->status, "TRADE_CLOSED");

	event->type =
	    closed ? PN_STR("payment.closed") : PN_STR("payment.pending");
	event->key = make_key(arena, trade->out_trade_no,
	    closed ? ":closed" : ":pending", (struct pn_str){ NULL, 0 });
	event->amount = event->order_amount;
	event->occurred_at_us =
	    moment_of(message, closed ? closed_dates : pending_dates);
}

static int
trade_events(const struct pn_alipay *account,
    const struct pn_alipay_message *message, struct pn_arena *arena,
    struct pn_notification *notification, const char **ret_reason)
{
	struct pn_event *events = notification->events;
	struct pn_event base = event_base(account, message);
	struct trade trade;
	size_t count = 0;
	int r;

	r = read_trade(message, &trade, ret_reason);
	if (r != 0)
		return r;
	base.out_trade_no = trade.out_trade_no;
	base.transaction_id = trade.trade_no;
	base.order_amount = (struct pn_amount){ trade.total_fen, true };
	events[count] = base;
	if (trade.paid)
		make_payment(message, arena, &trade, &events[count++]);
	else
		make_unpaid(message, arena, &trade, &events[count++]);
	if (trade.paid && (trade.finished || trade.refunded)) {
		events[count] = base;
		make_sequel(message, arena, &trade, &events[count++]);
	}
	/* A refund of an order that was never paid: somebody should look. */
	notification->alarm = !trade.paid && trade.refunded;
	notification->event_count = count;
	return 0;
}

/* notify_time, or utc_timestamp where the family has no notify_time. */
static int64_t
other_moment(const struct pn_alipay_message *message)
{
	static const char *const dates[] = { "notify_time", NULL };
	int64_t us = moment_of(message, dates);
	uint64_t ms;

	if (us == PN_MOMENT_NONE && pn_parse_uint(get(message, "utc_timestamp"),
					PN_ALIPAY_MILLISECONDS_MAX, &ms) == 0)
		us = (int64_t)ms * PN_MILLISECOND_US;
	return us;
}

/* "alipay.<that>" of notify_type, else of msg_method. */
static struct pn_str
other_type(struct pn_arena *arena, struct pn_str word)
{
	static const struct pn_str prefix = { "alipay.", 7 };

	if (word.len > prefix.len && pn_str_starts(word, prefix.data)) {
		word.data += prefix.len;
		word.len -= prefix.len;
	}
	return pn_arena_printf(arena, "alipay." PN_STR_FMT, PN_STR_ARG(word));
}

static int
other_event(const struct pn_alipay *account,
    const struct pn_alipay_message *message, struct pn_arena *arena,
    struct pn_notification *notification, const char **ret_reason)
{
	struct pn_event *event = &notification->events[0];
	struct pn_str notify_id = get(message, "notify_id");
	struct pn_str word = get(message, "notify_type");

	if (word.len == 0)
		word = get(message, "msg_method");
	if (word.len == 0) {
		*ret_reason = "neither notify_type nor msg_method: a "
			      "return_url of the browser is no notification";
		return 1;
	}
	if (notify_id.len == 0) {
		*ret_reason = "notification without notify_id";
		return 1;
	}
	*event = event_base(account, message);
	event->type = other_type(arena, word);
	if (event->type.data == NULL)
		return -ENOMEM;
	event->key = make_key(arena, PN_STR("notify"), ":", notify_id);
	event->out_trade_no = get(message, "out_trade_no");
	event->transaction_id = get(message, "trade_no");
	event->occurred_at_us = other_moment(message);
	notification->event_count = 1;
	return 0;
}

int
pn_alipay_events(const struct pn_alipay *account,
    const struct pn_alipay_message *message, struct pn_arena *arena,
    struct pn_notification *notification, const char **ret_reason)
{
	int r;

	assert(notification->verified && notification->event_count == 0);

	notification->events =
	    pn_arena_alloc(arena, EVENTS_MAX * sizeof(*notification->events));
	if (notification->events == NULL)
		return -ENOMEM;
	if (pn_alipay_is_trade(&message->raw))
		r = trade_events(
		    account, message, arena, notification, ret_reason);
	else
		r = other_event(
		    account, message, arena, notification, ret_reason);
	if (r != 0)
		return r;
	assert(notification->event_count <= EVENTS_MAX);
	for (size_t i = 0; i < notification->event_count; i++) {
		if (notification->events[i].key.data == NULL)
			return -ENOMEM;
		pn_event_seal(&notification->events[i]);
	}
	return 0;
}
