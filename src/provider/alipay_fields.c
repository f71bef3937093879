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
	FORM_PROVIDER_ID, /* made by Alipay: visible ASCII */
	FORM_MERCHANT_ID, /* made by the merchant: any text of one line */
	FORM_AMOUNT,      /* [0-9]{1,9}\.[0-9]{2} */
	FORM_DATE,        /* yyyy-MM-dd HH:mm:ss, maybe a fraction */
	FORM_MILLISECONDS,
	FORM_STATUS, /* of a trade: one of four */
	FORM_WORD,   /* part of an event type: [A-Za-z0-9._-] */
	FORM_CURRENCY,
};

/* Those whose values have a form, sorted as bytes: walked beside the fields,
 * which are sorted too. */
static const struct {
	struct pn_str name;
	enum form form;
} forms[] = {
	{ PN_STR("agreement_no"), FORM_PROVIDER_ID },
	{ PN_STR("app_id"), FORM_PROVIDER_ID },
	{ PN_STR("auth_app_id"), FORM_PROVIDER_ID },
	{ PN_STR("buyer_id"), FORM_PROVIDER_ID },
	{ PN_STR("buyer_open_id"), FORM_PROVIDER_ID },
	{ PN_STR("buyer_pay_amount"), FORM_AMOUNT },
	{ PN_STR("gmt_close"), FORM_DATE },
	{ PN_STR("gmt_create"), FORM_DATE },
	{ PN_STR("gmt_payment"), FORM_DATE },
	{ PN_STR("gmt_refund"), FORM_DATE },
	{ PN_STR("invoice_amount"), FORM_AMOUNT },
	{ PN_STR("merchant_app_id"), FORM_PROVIDER_ID },
	{ PN_STR("msg_method"), FORM_WORD },
	{ PN_STR("notify_id"), FORM_PROVIDER_ID },
	{ PN_STR("notify_time"), FORM_DATE },
	{ PN_STR("notify_type"), FORM_WORD },
	{ PN_STR("out_biz_no"), FORM_MERCHANT_ID },
	{ PN_STR("out_trade_no"), FORM_MERCHANT_ID },
	{ PN_STR("point_amount"), FORM_AMOUNT },
	{ PN_STR("receipt_amount"), FORM_AMOUNT },
	{ PN_STR("refund_fee"), FORM_AMOUNT },
	{ PN_STR("seller_id"), FORM_PROVIDER_ID },
	{ PN_STR("total_amount"), FORM_AMOUNT },
	{ PN_STR("trade_no"), FORM_PROVIDER_ID },
	{ PN_STR("trade_status"), FORM_STATUS },
	{ PN_STR("trans_currency"), FORM_CURRENCY },
	{ PN_STR("utc_timestamp"), FORM_MILLISECONDS },
};

/* All of them, sorted as bytes. */
static const char *const names[] = {
	"advance_amount",
	"agreement_no",
	"alipay_logon_id",
	"alipay_user_id",
	"app_id",
	"auth_app_id",
	"auth_trade_pay_mode",
	"bank_ack_time",
	"biz_content",
	"body",
	"buyer_id",
	"buyer_logon_id",
	"buyer_open_id",
	"buyer_pay_amount",
	"charge_amount",
	"charge_flags",
	"charge_info_list",
	"charset",
	"commodity_order_id",
	"current_seller_received_amount",
	"dback_amount",
	"dback_status",
	"discount_amount",
	"discount_goods_detail",
	"external_agreement_no",
	"ff_current_period",
	"fund_bill_list",
	"gmt_close",
	"gmt_create",
	"gmt_payment",
	"gmt_refund",
	"hb_fq_pay_info",
	"hyb_amount",
	"industry_sepc_detail",
	"industry_sepc_detail_acc",
	"industry_sepc_detail_gov",
	"invalid_time",
	"invoice_amount",
	"login_token",
	"mdiscount_amount",
	"merchant_app_id",
	"merchant_pid",
	"method",
	"msg_method",
	"notify_action_type",
	"notify_id",
	"notify_time",
	"notify_type",
	"open_id",
	"order_ticket",
	"out_biz_no",
	"out_channel_type",
	"out_trade_no",
	"passback_params",
	"pay_amount",
	"pay_currency",
	"personal_product_code",
	"point_amount",
	"receipt_amount",
	"receipt_currency_type",
	"refund_fee",
	"refund_preset_paytool_list",
	"seller_email",
	"seller_id",
	"seller_received_total_amount",
	"send_back_fee",
	"service_code",
	"settle_amount",
	"settle_currency",
	"settle_trans_rate",
	"settlement_id",
	"sign_scene",
	"sign_time",
	"sign_type",
	"status",
	"subject",
	"timestamp",
	"total_amount",
	"total_from_seller_fee",
	"total_price",
	"trade_no",
	"trade_status",
	"trans_currency",
	"trans_pay_rate",
	"unfreeze_amount",
	"unsign_time",
	"utc_timestamp",
	"valid_time",
	"version",
	"voucher_detail_list",
};

enum { CURRENCY_BYTES = 3 };

int
pn_alipay_documented(struct pn_str name)
{
	size_t low = 0, high = PN_COUNT(names);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = pn_str_compare(name, pn_str_from(names[middle]));

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
	return PN_COUNT(names);
}

const char *
pn_alipay_documented_at(size_t index)
{
	assert(index < PN_COUNT(names));

	return names[index];
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
	size_t at = 0;

	for (size_t row = 0; row < PN_COUNT(forms); row++) {
		struct pn_str reason;
		int order = -1;

		for (; at < text->count; at++) {
			order = pn_str_compare(
			    text->fields[at].name, forms[row].name);
			if (order >= 0)
				break;
		}
		/* An empty value counts as absent. */
		if (order != 0 || text->fields[at].value.len == 0 ||
		    has_form(forms[row].form, text->fields[at].value))
			continue;
		reason = pn_arena_printf(arena,
		    "\"" PN_STR_FMT "\" has not the form of that parameter",
		    PN_STR_ARG(forms[row].name));
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
			return names[row];
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
