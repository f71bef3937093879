/*
 * The documented parameters of Alipay's notifications, the form of those that
 * matter, and the attack that needs both.
 *
 * The signed string joins values without escaping. Whoever can re-encode a
 * genuine body may move a boundary and keep the signature: "refund_fee" goes
 * away when the value before it becomes "...&refund_fee=10.00", and a refund
 * turns into a payment. Three checks together refuse it:
 *
 * 1. A name never holds "&" or "=": else the boundary moves into a name. The
 *    form parser sees to that before there is a signature to check.
 * 2. Ids, amounts, dates and enumerations have exactly their form, so none of
 *    them swallows a neighbour, documented or not.
 * 3. In free text (subject, body, passback_params, ...) "&<name>=" is refused
 *    when name is documented and sorts between the field's own name and the
 *    next one in the signed string: only there can a parameter have stood.
 *    A subject that merely says "&version=" further up passes.
 *
 * "The next one" is the next of the fields that the verified rule signs: an
 * unsigned empty field may be added by anyone and must not narrow the range.
 *
 * Parameters of the old MAPI gateway are deliberately not in the table: its
 * messages have no app_id and are refused, and names as common as "price" would
 * refuse honest texts.
 */
#include "alipay_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "paynotify/limits.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

enum form {
	FORM_TEXT,        /* anything */
	FORM_PROVIDER_ID, /* made by Alipay: visible ASCII */
	FORM_MERCHANT_ID, /* made by the merchant: any text of one line */
	FORM_AMOUNT,      /* [0-9]{1,9}\.[0-9]{2} */
	FORM_DATE,        /* yyyy-MM-dd HH:mm:ss, maybe a fraction */
	FORM_MILLISECONDS,
	FORM_STATUS, /* of a trade: one of four */
	FORM_WORD,   /* part of an event type: [A-Za-z0-9._-] */
	FORM_CURRENCY,
};

struct documented {
	const char *name;
	enum form form;
};

/* Sorted as bytes; pn_alipay_documented() searches by halves. */
static const struct documented table[] = {
	{ "advance_amount", FORM_TEXT },
	{ "agreement_no", FORM_PROVIDER_ID },
	{ "alipay_logon_id", FORM_TEXT },
	{ "alipay_user_id", FORM_TEXT },
	{ "app_id", FORM_PROVIDER_ID },
	{ "auth_app_id", FORM_PROVIDER_ID },
	{ "auth_trade_pay_mode", FORM_TEXT },
	{ "bank_ack_time", FORM_TEXT },
	{ "biz_content", FORM_TEXT },
	{ "body", FORM_TEXT },
	{ "buyer_id", FORM_PROVIDER_ID },
	{ "buyer_logon_id", FORM_TEXT },
	{ "buyer_open_id", FORM_PROVIDER_ID },
	{ "buyer_pay_amount", FORM_AMOUNT },
	{ "charge_amount", FORM_TEXT },
	{ "charge_flags", FORM_TEXT },
	{ "charge_info_list", FORM_TEXT },
	{ "charset", FORM_TEXT },
	{ "commodity_order_id", FORM_TEXT },
	{ "current_seller_received_amount", FORM_TEXT },
	{ "dback_amount", FORM_TEXT },
	{ "dback_status", FORM_TEXT },
	{ "discount_amount", FORM_TEXT },
	{ "discount_goods_detail", FORM_TEXT },
	{ "external_agreement_no", FORM_TEXT },
	{ "ff_current_period", FORM_TEXT },
	{ "fund_bill_list", FORM_TEXT },
	{ "gmt_close", FORM_DATE },
	{ "gmt_create", FORM_DATE },
	{ "gmt_payment", FORM_DATE },
	{ "gmt_refund", FORM_DATE },
	{ "hb_fq_pay_info", FORM_TEXT },
	{ "hyb_amount", FORM_TEXT },
	{ "industry_sepc_detail", FORM_TEXT },
	{ "industry_sepc_detail_acc", FORM_TEXT },
	{ "industry_sepc_detail_gov", FORM_TEXT },
	{ "invalid_time", FORM_TEXT },
	{ "invoice_amount", FORM_AMOUNT },
	{ "login_token", FORM_TEXT },
	{ "mdiscount_amount", FORM_TEXT },
	{ "merchant_app_id", FORM_PROVIDER_ID },
	{ "merchant_pid", FORM_TEXT },
	{ "method", FORM_TEXT },
	{ "msg_method", FORM_WORD },
	{ "notify_action_type", FORM_TEXT },
	{ "notify_id", FORM_PROVIDER_ID },
	{ "notify_time", FORM_DATE },
	{ "notify_type", FORM_WORD },
	{ "open_id", FORM_TEXT },
	{ "order_ticket", FORM_TEXT },
	{ "out_biz_no", FORM_MERCHANT_ID },
	{ "out_channel_type", FORM_TEXT },
	{ "out_trade_no", FORM_MERCHANT_ID },
	{ "passback_params", FORM_TEXT },
	{ "pay_amount", FORM_TEXT },
	{ "pay_currency", FORM_TEXT },
	{ "personal_product_code", FORM_TEXT },
	{ "point_amount", FORM_AMOUNT },
	{ "receipt_amount", FORM_AMOUNT },
	{ "receipt_currency_type", FORM_TEXT },
	{ "refund_fee", FORM_AMOUNT },
	{ "refund_preset_paytool_list", FORM_TEXT },
	{ "seller_email", FORM_TEXT },
	{ "seller_id", FORM_PROVIDER_ID },
	{ "seller_received_total_amount", FORM_TEXT },
	{ "send_back_fee", FORM_TEXT },
	{ "service_code", FORM_TEXT },
	{ "settle_amount", FORM_TEXT },
	{ "settle_currency", FORM_TEXT },
	{ "settle_trans_rate", FORM_TEXT },
	{ "settlement_id", FORM_TEXT },
	{ "sign_scene", FORM_TEXT },
	{ "sign_time", FORM_TEXT },
	{ "sign_type", FORM_TEXT },
	{ "status", FORM_TEXT },
	{ "subject", FORM_TEXT },
	{ "timestamp", FORM_TEXT },
	{ "total_amount", FORM_AMOUNT },
	{ "total_from_seller_fee", FORM_TEXT },
	{ "total_price", FORM_TEXT },
	{ "trade_no", FORM_PROVIDER_ID },
	{ "trade_status", FORM_STATUS },
	{ "trans_currency", FORM_CURRENCY },
	{ "trans_pay_rate", FORM_TEXT },
	{ "unfreeze_amount", FORM_TEXT },
	{ "unsign_time", FORM_TEXT },
	{ "utc_timestamp", FORM_MILLISECONDS },
	{ "valid_time", FORM_TEXT },
	{ "version", FORM_TEXT },
	{ "voucher_detail_list", FORM_TEXT },
};

enum { CURRENCY_BYTES = 3 };

int
pn_alipay_documented(struct pn_str name)
{
	size_t low = 0, high = PN_COUNT(table);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order =
		    pn_str_compare(name, pn_str_from(table[middle].name));

		if (order == 0)
			return (int)middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

size_t
pn_alipay_documented_count(void)
{
	return PN_COUNT(table);
}

const char *
pn_alipay_documented_at(size_t index)
{
	assert(index < PN_COUNT(table));

	return table[index].name;
}

static bool
is_provider_id(struct pn_str value)
{
	if (value.len > PN_ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if (c < 0x21 || c > 0x7e || c == '&')
			return false;
	}
	return true;
}

/* Undecodable bytes are U+FFFD by now: two such ids could share a key. */
static bool
is_merchant_id(struct pn_str value)
{
	if (value.len > PN_ID_BYTES_MAX ||
	    pn_str_find(value, PN_STR("\xef\xbf\xbd")) >= 0)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if (c < 0x20 || c == 0x7f || c == '&')
			return false;
	}
	return true;
}

static bool
is_word(struct pn_str value)
{
	if (value.len > PN_TYPE_BYTES_MAX / 2)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
			return false;
	}
	return true;
}

static bool
is_currency(struct pn_str value)
{
	if (value.len != CURRENCY_BYTES)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] < 'A' || value.data[i] > 'Z')
			return false;
	}
	return true;
}

static bool
is_status(struct pn_str value)
{
	return pn_str_is(value, "WAIT_BUYER_PAY") ||
	       pn_str_is(value, "TRADE_SUCCESS") ||
	       pn_str_is(value, "TRADE_FINISHED") ||
	       pn_str_is(value, "TRADE_CLOSED");
}

static bool
has_form(enum form form, struct pn_str value)
{
	int64_t number;
	uint64_t milliseconds;

	switch (form) {
	case FORM_TEXT: return true;
	case FORM_PROVIDER_ID: return is_provider_id(value);
	case FORM_MERCHANT_ID: return is_merchant_id(value);
	case FORM_AMOUNT: return pn_money_parse_yuan(value, &number) == 0;
	case FORM_DATE: return pn_moment_parse_beijing(value, &number) == 0;
	case FORM_MILLISECONDS:
		return pn_parse_uint(value, PN_ALIPAY_MILLISECONDS_MAX,
			   &milliseconds) == 0;
	case FORM_STATUS: return is_status(value);
	case FORM_WORD: return is_word(value);
	case FORM_CURRENCY: return is_currency(value);
	}
	return false;
}

static int
check_forms(
    const struct pn_form *text, struct pn_arena *arena, const char **ret_reason)
{
	for (size_t i = 0; i < text->count; i++) {
		const struct pn_field *field = &text->fields[i];
		int row = pn_alipay_documented(field->name);
		struct pn_str reason;

		/* An empty value counts as absent. */
		if (row < 0 || field->value.len == 0 ||
		    has_form(table[row].form, field->value))
			continue;
		reason = pn_arena_printf(arena,
		    "\"%s\" has not the form of that parameter",
		    table[row].name);
		if (reason.data == NULL)
			return -ENOMEM;
		*ret_reason = reason.data;
		return 1;
	}
	return 0;
}

/* The documented name that value hides, or NULL. below: the name of the next
 * signed field, data NULL behind the last. */
static const char *
hidden_name(struct pn_str own, struct pn_str value, struct pn_str below)
{
	struct pn_str rest = value;

	/* What stands before the first "&" is the field's own. */
	(void)pn_str_split(&rest, '&');
	while (rest.data != NULL) {
		struct pn_str pair = pn_str_split(&rest, '&');
		const char *equals =
		    pair.len == 0 ? NULL : memchr(pair.data, '=', pair.len);
		struct pn_str name;
		int row;

		if (equals == NULL)
			continue;
		name =
		    (struct pn_str){ pair.data, (size_t)(equals - pair.data) };
		row = pn_alipay_documented(name);
		if (row >= 0 && pn_str_compare(name, own) > 0 &&
		    (below.data == NULL || pn_str_compare(name, below) < 0))
			return table[row].name;
	}
	return NULL;
}

static int
check_hidden(const struct pn_alipay_message *message, struct pn_arena *arena,
    const char **ret_reason)
{
	struct pn_str below = { NULL, 0 };

	/* From the last one up, so that the next signed name is at hand. */
	for (size_t i = message->raw.count; i > 0; i--) {
		const struct pn_field *field = &message->raw.fields[i - 1];
		const char *hidden;
		struct pn_str reason;

		/* 1. above; a name with "=" or "&" never gets here. */
		assert(memchr(field->name.data, '&', field->name.len) == NULL);
		assert(memchr(field->name.data, '=', field->name.len) == NULL);
		if (!pn_alipay_rule_signs(message->rule, field))
			continue;
		hidden = field->value.len == 0
			     ? NULL
			     : hidden_name(field->name, field->value, below);
		below = field->name;
		if (hidden == NULL)
			continue;
		reason = pn_arena_printf(
		    arena, "a value hides the parameter \"%s\"", hidden);
		if (reason.data == NULL)
			return -ENOMEM;
		*ret_reason = reason.data;
		return 1;
	}
	return 0;
}

int
pn_alipay_check_fields(const struct pn_alipay_message *message,
    struct pn_arena *arena, const char **ret_reason)
{
	int r;

	assert(message->text.count == message->raw.count);

	r = check_hidden(message, arena, ret_reason);
	if (r != 0)
		return r;
	return check_forms(&message->text, arena, ret_reason);
}
