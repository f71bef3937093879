/*
 * The fields of Alipay's notifications as samples have them: names, order and
 * values after public captures, one function a family.
 *
 * Ids come from the seed alone, so that the nth attempt, or another event of
 * the same order, names the same order; where the order is given, the trade and
 * its buyer come from that, so that a refund is one of the payment before it.
 * notify_time is when an attempt is made: `attempt` n lies n steps of Alipay's
 * schedule behind now_us.
 *
 * Out of memory sticks to the draft; who encodes it asks once.
 */
#include "alipay_draft.h"

#include <assert.h>

#include "paynotify/moment.h"

enum {
	TRADE_NO_DIGITS = 28,
	NOTIFY_ID_DIGITS = 34,
};

/* When the nth attempt is made, in minutes: gaps 4m 10m 10m 1h 2h 6h 15h. */
static const int attempt_minutes[] = { 0, 4, 14, 24, 84, 204, 564, 1464 };

/* splitmix64: spreads a small seed over all bits. */
static uint64_t
mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static struct pn_str
digits(struct pn_alipay_draft *draft, uint64_t seed, const char *start,
    size_t len, uint64_t salt)
{
	char *text = pn_arena_alloc(draft->arena, len + 1);
	uint64_t state = mix(seed) ^ salt;
	size_t at = strlen(start);

	assert(at <= len);
	if (text == NULL) {
		draft->failed = true;
		return (struct pn_str){ NULL, 0 };
	}
	memcpy(text, start, at);
	for (; at < len; at++) {
		state = mix(state);
		text[at] = (char)('0' + state % 10);
	}
	return (struct pn_str){ text, len };
}

struct pn_str
pn_alipay_draft_digits(
    struct pn_alipay_draft *draft, const char *start, size_t len, uint64_t salt)
{
	return digits(draft, draft->sample->seed, start, len, salt);
}

static struct pn_str
trade_digits(
    struct pn_alipay_draft *draft, const char *start, size_t len, uint64_t salt)
{
	unsigned char digest[PN_SHA256_BYTES];
	uint64_t seed = draft->sample->seed;

	if (draft->sample->out_trade_no.len > 0) {
		pn_sha256(draft->sample->out_trade_no, digest);
		memcpy(&seed, digest, sizeof(seed));
	}
	return digits(draft, seed, start, len, salt);
}

void
pn_alipay_draft_add(
    struct pn_alipay_draft *draft, const char *name, struct pn_str value)
{
	assert(draft->count < DRAFT_FIELDS_MAX);

	if (value.data == NULL)
		draft->failed = true;
	draft->fields[draft->count++] =
	    (struct pn_field){ pn_str_from(name), value };
}

static void
add_text(struct pn_alipay_draft *draft, const char *name, const char *value)
{
	pn_alipay_draft_add(draft, name, pn_str_from(value));
}

static void
add_beijing(struct pn_alipay_draft *draft, const char *name, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES];

	pn_moment_format_beijing(us, text);
	pn_alipay_draft_add(
	    draft, name, pn_arena_copy(draft->arena, pn_str_from(text)));
}

static int64_t
whole_second(int64_t us)
{
	return us - us % PN_SECOND_US;
}

static int64_t
notify_time_us(const struct pn_alipay_draft *draft)
{
	size_t last = PN_COUNT(attempt_minutes) - 1;
	size_t attempt =
	    draft->sample->attempt < last ? draft->sample->attempt : last;

	return whole_second(draft->sample->now_us) +
	       attempt_minutes[attempt] * 60 * PN_SECOND_US;
}

static void
add_app(struct pn_alipay_draft *draft, bool merchant_app_id)
{
	struct pn_str app_id =
	    pn_str_from(draft->account->conf->alipay.app_id.values[0]);

	if (draft->oddity == ODDITY_OTHER_APP)
		app_id = pn_alipay_draft_digits(draft, "2021", 16, 7);
	pn_alipay_draft_add(draft, "app_id", app_id);
	pn_alipay_draft_add(draft, "auth_app_id", app_id);
	if (merchant_app_id)
		pn_alipay_draft_add(draft, "merchant_app_id", app_id);
}

static void
add_seller(struct pn_alipay_draft *draft)
{
	const struct pn_conf_strings *sellers =
	    &draft->account->conf->alipay.seller_id;

	if (draft->oddity == ODDITY_OTHER_SELLER)
		pn_alipay_draft_add(draft, "seller_id",
		    pn_alipay_draft_digits(draft, "2088", 16, 8));
	else if (sellers->count > 0)
		add_text(draft, "seller_id", sellers->values[0]);
	else
		add_text(draft, "seller_id", "2088000000000001");
	add_text(draft, "seller_email", "shop@example.test");
}

/* Each event of an order has a notify_id of its own, each part of a refund
 * too; attempts of one event share it. */
static uint64_t
notify_salt(const struct pn_alipay_draft *draft)
{
	uint64_t salt = 100 + (uint64_t)draft->kind->shape;

	if (draft->kind->shape == SHAPE_REFUND)
		salt += (uint64_t)draft->refund_fen << 8;
	return salt;
}

static void
add_notify(struct pn_alipay_draft *draft, const char *notify_type)
{
	uint64_t salt = notify_salt(draft);

	add_text(draft, "notify_type", notify_type);
	pn_alipay_draft_add(draft, "notify_id",
	    pn_alipay_draft_digits(draft, "20260301", NOTIFY_ID_DIGITS, salt));
	add_beijing(draft, "notify_time", notify_time_us(draft));
}

static void
add_paid_amounts(struct pn_alipay_draft *draft)
{
	add_text(draft, "receipt_amount", draft->total);
	add_text(draft, "invoice_amount", draft->total);
	add_text(draft, "buyer_pay_amount", draft->total);
	add_text(draft, "point_amount", "0.00");
	pn_alipay_draft_add(draft, "fund_bill_list",
	    pn_arena_printf(draft->arena,
		"[{\"amount\":\"%s\",\"fundChannel\":\"ALIPAYACCOUNT\"}]",
		draft->total));
}

static void
add_refund(struct pn_alipay_draft *draft, int64_t second)
{
	add_text(draft, "refund_fee", draft->refund);
	add_beijing(draft, "gmt_refund",
	    second - PN_SECOND_US + 287 * PN_MILLISECOND_US);
	/* Named by the sum, so that parts of one order differ. */
	pn_alipay_draft_add(draft, "out_biz_no",
	    pn_arena_printf(draft->arena, "R-" PN_STR_FMT "-%lld",
		PN_STR_ARG(draft->out_trade_no), (long long)draft->refund_fen));
}

static const char *
trade_status(const struct pn_alipay_draft *draft)
{
	switch (draft->kind->shape) {
	case SHAPE_PENDING: return "WAIT_BUYER_PAY";
	case SHAPE_FINISHED: return "TRADE_FINISHED";
	case SHAPE_CLOSED: return "TRADE_CLOSED";
	case SHAPE_REFUND:
		return draft->refund_fen < draft->total_fen ? "TRADE_SUCCESS"
							    : "TRADE_CLOSED";
	default: return "TRADE_SUCCESS";
	}
}

static void
draft_trade(struct pn_alipay_draft *draft)
{
	enum pn_alipay_shape shape = draft->kind->shape;
	int64_t second = whole_second(draft->sample->now_us);
	const char *status = trade_status(draft);
	bool paid = shape != SHAPE_PENDING && shape != SHAPE_CLOSED;

	add_beijing(draft, "gmt_create", second - 7 * PN_SECOND_US);
	add_text(draft, "charset",
	    draft->sample->charset == NULL ? "utf-8" : draft->sample->charset);
	add_seller(draft);
	add_text(draft, "subject", "测试订单 Order + 1");
	pn_alipay_draft_add(draft, "buyer_open_id",
	    trade_digits(draft, "000aBcDeFgHiJkLmNoPqRsTuVwXyZ", 47, 1));
	add_text(draft, "buyer_logon_id", "tes***@example.test");
	add_notify(draft, "trade_status_sync");
	add_text(draft, "trade_status", status);
	add_app(draft, true);
	add_text(draft, "version", "1.0");
	pn_alipay_draft_add(draft, "out_trade_no", draft->out_trade_no);
	add_text(draft, "total_amount", draft->total);
	pn_alipay_draft_add(draft, "trade_no",
	    trade_digits(draft, "2026030122001400", TRADE_NO_DIGITS, 2));
	if (paid)
		add_beijing(draft, "gmt_payment", second - 2 * PN_SECOND_US);
	if (shape == SHAPE_PAID)
		add_paid_amounts(draft);
	if (shape == SHAPE_REFUND)
		add_refund(draft, second);
	if (strcmp(status, "TRADE_CLOSED") == 0 ||
	    strcmp(status, "TRADE_FINISHED") == 0)
		add_beijing(draft, "gmt_close", second - PN_SECOND_US);
}

static void
draft_agreement(struct pn_alipay_draft *draft)
{
	bool sign = draft->kind->shape == SHAPE_SIGN;
	int64_t second = whole_second(draft->sample->now_us);

	add_text(draft, "charset",
	    draft->sample->charset == NULL ? "UTF-8" : draft->sample->charset);
	pn_alipay_draft_add(draft, "alipay_user_id",
	    pn_alipay_draft_digits(draft, "2088", 16, 3));
	pn_alipay_draft_add(draft, "external_agreement_no",
	    pn_alipay_draft_digits(draft, "SN", 14, 4));
	add_text(draft, "version", "1.0");
	add_notify(draft, sign ? "dut_user_sign" : "dut_user_unsign");
	pn_alipay_draft_add(draft, "agreement_no",
	    pn_alipay_draft_digits(draft, "2026", 20, 5));
	if (sign) {
		add_beijing(draft, "valid_time", second);
		add_text(draft, "invalid_time", "2115-02-01 00:00:00");
	}
	add_text(draft, "personal_product_code", "GENERAL_WITHHOLDING_P");
	add_app(draft, false);
	add_text(draft, "alipay_logon_id", "156******06");
	add_text(draft, "status", sign ? "NORMAL" : "UNSIGN");
	add_text(draft, "sign_scene", "INDUSTRY|GAME_CHARGE");
	add_beijing(draft, sign ? "sign_time" : "unsign_time", second);
}

static void
draft_fund(struct pn_alipay_draft *draft)
{
	add_text(draft, "charset",
	    draft->sample->charset == NULL ? "UTF-8" : draft->sample->charset);
	pn_alipay_draft_add(draft, "biz_content",
	    pn_arena_printf(draft->arena,
		"{\"biz_scene\":\"DIRECT_TRANSFER\",\"action_type\":\"FINISH\","
		"\"origin_interface\":\"alipay.fund.trans.uni.transfer\","
		"\"out_biz_no\":\"" PN_STR_FMT "\",\"trans_amount\":\"%s\","
		"\"product_code\":\"TRANS_ACCOUNT_NO_PWD\","
		"\"status\":\"SUCCESS\"}",
		PN_STR_ARG(draft->out_trade_no), draft->total));
	pn_alipay_draft_add(draft, "utc_timestamp",
	    pn_arena_printf(draft->arena, "%lld",
		(long long)(notify_time_us(draft) / PN_MILLISECOND_US)));
	add_app(draft, false);
	add_text(draft, "version", "1.1");
	pn_alipay_draft_add(draft, "notify_id",
	    pn_alipay_draft_digits(
		draft, "20260301", NOTIFY_ID_DIGITS, notify_salt(draft)));
	add_text(draft, "msg_method", "alipay.fund.trans.order.changed");
}

static void
draft_service(struct pn_alipay_draft *draft)
{
	add_text(draft, "charset",
	    draft->sample->charset == NULL ? "utf-8" : draft->sample->charset);
	add_text(draft, "method", "alipay.open.servicemarket.order.notify");
	add_notify(draft, "servicemarket_order_notify");
	add_beijing(draft, "timestamp", notify_time_us(draft));
	add_app(draft, false);
	add_text(draft, "version", "1.0");
	pn_alipay_draft_add(draft, "commodity_order_id",
	    pn_alipay_draft_digits(draft, "2026", 20, 6));
	pn_alipay_draft_add(draft, "merchant_pid",
	    pn_alipay_draft_digits(draft, "2088", 16, 9));
	add_text(draft, "service_code", "service-1");
	add_text(draft, "total_price", draft->total);
}

void
pn_alipay_draft_fill(struct pn_alipay_draft *draft)
{
	switch (draft->kind->shape) {
	case SHAPE_SIGN:
	case SHAPE_UNSIGN: draft_agreement(draft); break;
	case SHAPE_FUND: draft_fund(draft); break;
	case SHAPE_SERVICE: draft_service(draft); break;
	default: draft_trade(draft); break;
	}
}
