/*
 * The fields of APIv2 to events.
 *
 *   req_info                              a refund, by its refund_status
 *   result_code FAIL and out_trade_no     payment.failed
 *   result_code SUCCESS and
 *     transaction_id or total_fee         payment.succeeded
 *   anything else                         wechat.v2.notice
 *
 * A deduction (papay) tells a failed payment with result_code SUCCESS and a
 * trade_state of its own, so a trade_state that is there must be SUCCESS too.
 *
 * APIv2 has no notification id. Notices that are no payment (a contract was
 * signed or ended, a car was bound) are told apart by what they say: the key is
 * made of the digest of all fields but sign, sign_type and nonce_str, which a
 * retry may make anew. So a retry is a duplicate, and a second contract is not.
 *
 * What is signed and fits none of this is refused as malformed, and kept.
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

enum {
	WECHAT_NOTICE_ID_BYTES = 16, /* of the digest, printed as hex */
};

static int
amount_take(const struct pn_wechat_job *job, const struct pn_form *fields,
    const char *name, struct pn_amount *ret_amount)
{
	struct pn_str text = pn_form_get(fields, name);
	uint64_t minor;

	if (pn_parse_uint(text, INT64_MAX, &minor) != 0)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "an amount is missing or not a whole number");
	*ret_amount = (struct pn_amount){
		.minor = (int64_t)minor,
		.present = true,
	};
	return 0;
}

static int
currency_take(const struct pn_wechat_job *job, const struct pn_form *fields,
    struct pn_str *ret_currency)
{
	*ret_currency = pn_form_get(fields, "fee_type");
	if (ret_currency->len > 0 && !pn_wechat_currency_valid(*ret_currency))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "fee_type has not three letters");
	return 0;
}

/* What payments and refunds both have. */
static int
trade_take(const struct pn_wechat_job *job, const struct pn_form *fields,
    struct pn_wechat_facts *ret_facts)
{
	struct pn_wechat_facts facts = { .occurred_at_us = PN_MOMENT_NONE };
	int64_t us;
	int r;

	if (pn_moment_parse_compact(pn_form_get(fields, "time_end"), &us) == 0)
		facts.occurred_at_us = us;
	else if (pn_moment_parse_beijing(
		     pn_form_get(fields, "success_time"), &us) == 0)
		facts.occurred_at_us = us;
	r = pn_wechat_field_id(job, fields, "sub_mch_id", &facts.account);
	if (r == 0)
		r = pn_wechat_field_id(
		    job, fields, "out_trade_no", &facts.out_trade_no);
	if (r == 0)
		r = pn_wechat_field_id(
		    job, fields, "transaction_id", &facts.transaction_id);
	if (r == 0)
		r = currency_take(job, fields, &facts.currency);
	if (r != 0)
		return r;
	*ret_facts = facts;
	return 0;
}

static int
require(const struct pn_wechat_job *job, struct pn_str id, const char *reason)
{
	if (id.len > 0)
		return 0;
	return pn_wechat_refuse(job, PN_VERDICT_MALFORMED, reason);
}

static int
add_payment(struct pn_wechat_job *job, struct pn_wechat_facts *facts,
    const struct pn_form *fields)
{
	int r;

	r = require(job, facts->transaction_id, "transaction_id is missing");
	if (r == 0)
		r = require(
		    job, facts->out_trade_no, "out_trade_no is missing");
	if (r == 0)
		r = amount_take(job, fields, "total_fee", &facts->order_amount);
	if (r == 0)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	facts->amount = facts->order_amount;
	return pn_wechat_add_payment(job, facts);
}

/* A failure need not name an amount; one that is there must be one. */
static int
add_failed(struct pn_wechat_job *job, struct pn_wechat_facts *facts,
    const struct pn_form *fields)
{
	int r = 0;

	if (pn_form_get(fields, "total_fee").len > 0)
		r = amount_take(job, fields, "total_fee", &facts->order_amount);
	if (r == 0)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	facts->amount = facts->order_amount;
	return pn_wechat_add_failed(job, facts);
}

static bool
changes_between_retries(struct pn_str name)
{
	return pn_str_is(name, "sign") || pn_str_is(name, "sign_type") ||
	       pn_str_is(name, "nonce_str");
}

/* Name, length, value: no two different messages have one text. */
static int
notice_id(struct pn_wechat_job *job, const struct pn_form *fields,
    struct pn_str *ret_id)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(PN_XML_BYTES_MAX * 4);
	unsigned char digest[PN_SHA256_BYTES];
	char hex[2 * WECHAT_NOTICE_ID_BYTES + 1];

	for (size_t i = 0; i < fields->count; i++) {
		const struct pn_field *field = &fields->fields[i];

		if (changes_between_retries(field->name))
			continue;
		pn_buf_add_str(&text, field->name);
		pn_buf_printf(&text, "=%zu:", field->value.len);
		pn_buf_add_str(&text, field->value);
	}
	if (pn_buf_failed(&text))
		return -ENOMEM;
	pn_sha256(pn_buf_str(&text), digest);
	pn_hex_lower(digest, WECHAT_NOTICE_ID_BYTES, hex);
	*ret_id = pn_arena_copy(job->arena, pn_str_from(hex));
	return ret_id->data == NULL ? -ENOMEM : 0;
}

static int
add_notice(struct pn_wechat_job *job, const struct pn_wechat_facts *facts,
    const struct pn_form *fields)
{
	struct pn_str id;
	int r;

	r = notice_id(job, fields, &id);
	if (r == 0)
		r = pn_wechat_events_reserve(job, 1);
	if (r != 0)
		return r;
	return pn_wechat_add_other(job, facts, PN_STR("v2.notice"), id);
}

int
pn_wechat_v2_events(struct pn_wechat_job *job, const struct pn_form *fields)
{
	struct pn_str result = pn_form_get(fields, "result_code");
	struct pn_str state = pn_form_get(fields, "trade_state");
	struct pn_wechat_facts facts;
	bool has_money;
	int r;

	assert(job->notification->verified);
	r = trade_take(job, fields, &facts);
	if (r != 0)
		return r;
	has_money = facts.transaction_id.len > 0 ||
		    pn_form_get(fields, "total_fee").len > 0;
	if (pn_str_is(result, "FAIL") && facts.out_trade_no.len > 0)
		return add_failed(job, &facts, fields);
	if (!has_money)
		return add_notice(job, &facts, fields);
	if (state.len > 0 && !pn_str_is(state, "SUCCESS")) {
		job->notification->alarm = true;
		return add_notice(job, &facts, fields);
	}
	if (!pn_str_is(result, "SUCCESS"))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "result_code is neither SUCCESS nor FAIL of an order");
	return add_payment(job, &facts, fields);
}

int
pn_wechat_v2_refund_events(struct pn_wechat_job *job,
    const struct pn_form *outer, const struct pn_form *inner)
{
	struct pn_str status = pn_form_get(inner, "refund_status");
	struct pn_wechat_facts facts;
	int r;

	assert(job->notification->verified);
	r = trade_take(job, inner, &facts);
	if (r == 0 && facts.account.len == 0)
		r = pn_wechat_field_id(
		    job, outer, "sub_mch_id", &facts.account);
	if (r == 0)
		r = pn_wechat_field_id(
		    job, inner, "refund_id", &facts.refund_id);
	if (r == 0)
		r = pn_wechat_field_id(
		    job, inner, "out_refund_no", &facts.out_refund_no);
	if (r == 0)
		r = require(
		    job, facts.transaction_id, "transaction_id is missing");
	if (r == 0)
		r = require(job, facts.out_trade_no, "out_trade_no is missing");
	if (r == 0)
		r = require(job, facts.refund_id, "refund_id is missing");
	if (r == 0)
		r = require(job, status, "refund_status is missing");
	if (r == 0)
		r = amount_take(job, inner, "refund_fee", &facts.amount);
	if (r == 0)
		r = amount_take(job, inner, "total_fee", &facts.order_amount);
	if (r != 0)
		return r;
	if (!pn_wechat_refund_status_known(status))
		return add_notice(job, &facts, inner);
	r = pn_wechat_events_reserve(job, 1);
	return r != 0 ? r : pn_wechat_add_refund(job, &facts, status);
}
