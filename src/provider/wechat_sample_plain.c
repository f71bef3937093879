/*
 * What is inside a sample of APIv3: the JSON of its kind, before encryption.
 *
 * Field names and their order are those of real notifications, so that what an
 * application does to a sample it does to the real one.
 */
#include "wechat_sample_internal.h"

#include <inttypes.h>

#include "paynotify/moment.h"

static void
add_name(struct pn_buf *out, const char *name)
{
	if (out->len > 0 && out->data[out->len - 1] != '{')
		pn_buf_add_char(out, ',');
	pn_json_add_string(out, pn_str_from(name));
	pn_buf_add_char(out, ':');
}

void
pn_wechat_sample_add_text(
    struct pn_buf *out, const char *name, struct pn_str value)
{
	add_name(out, name);
	pn_json_add_string(out, value);
}

static void
add_number(struct pn_buf *out, const char *name, int64_t value)
{
	add_name(out, name);
	pn_buf_printf(out, "%" PRId64, value);
}

void
pn_wechat_sample_add_open(struct pn_buf *out, const char *name)
{
	add_name(out, name);
	pn_buf_add_char(out, '{');
}

void
pn_wechat_sample_add_time(struct pn_buf *out, const char *name, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES];

	pn_moment_format_rfc3339_beijing(us, text);
	pn_wechat_sample_add_text(out, name, pn_str_from(text));
}

static void
add_merchant(struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	if (pn_wechat_sample_is(job, "partner")) {
		pn_wechat_sample_add_text(out, "sp_appid", job->appid);
		pn_wechat_sample_add_text(out, "sp_mchid", job->mchid);
		pn_wechat_sample_add_text(out, "sub_mchid", job->sub_mchid);
		return;
	}
	if (job->kind == PN_WECHAT_SAMPLE_PAYMENT)
		pn_wechat_sample_add_text(out, "appid", job->appid);
	pn_wechat_sample_add_text(out, "mchid", job->mchid);
}

static int64_t
amount_minor(const struct pn_wechat_sample_job *job)
{
	return pn_wechat_sample_is(job, "negative-amount") ? -job->amount_minor
							   : job->amount_minor;
}

static void
add_trade(struct pn_buf *out, struct pn_str transaction_id)
{
	pn_wechat_sample_add_text(out, "transaction_id", transaction_id);
	pn_wechat_sample_add_text(out, "trade_type", PN_STR("NATIVE"));
	pn_wechat_sample_add_text(out, "trade_state", PN_STR("SUCCESS"));
	pn_wechat_sample_add_text(out, "bank_type", PN_STR("OTHERS"));
	pn_wechat_sample_add_text(out, "attach", PN_STR(""));
}

static void
plain_payment(struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	add_merchant(out, job);
	pn_wechat_sample_add_text(out, "out_trade_no", job->out_trade_no);
	add_trade(out, job->transaction_id);
	pn_wechat_sample_add_text(out, "trade_state_desc", PN_STR("支付成功"));
	pn_wechat_sample_add_time(out, "success_time", job->happened_us);
	pn_wechat_sample_add_open(out, "payer");
	pn_wechat_sample_add_text(out,
	    pn_wechat_sample_is(job, "partner") ? "sp_openid" : "openid",
	    PN_STR("oSampleOpenid0000000000000000"));
	pn_buf_add_char(out, '}');
	pn_wechat_sample_add_open(out, "amount");
	add_number(out, "total", amount_minor(job));
	add_number(out, "payer_total", amount_minor(job));
	pn_wechat_sample_add_text(out, "currency", PN_STR("CNY"));
	pn_wechat_sample_add_text(out, "payer_currency", PN_STR("CNY"));
	pn_buf_add_text(out, "}");
}

static void
add_sub_order(struct pn_buf *out, const struct pn_wechat_sample_job *job,
    unsigned number, int64_t minor)
{
	struct pn_str order, transaction;

	order = pn_arena_printf(job->arena, PN_STR_FMT "-%u",
	    PN_STR_ARG(job->out_trade_no), number);
	transaction = pn_wechat_sample_trade(job, "sub-order", number, 23);
	transaction = pn_arena_printf(
	    job->arena, "42000" PN_STR_FMT, PN_STR_ARG(transaction));
	pn_buf_add_char(out, '{');
	pn_wechat_sample_add_text(out, "mchid", job->mchid);
	add_trade(out, transaction);
	pn_wechat_sample_add_text(out, "out_trade_no", order);
	pn_wechat_sample_add_time(out, "success_time", job->happened_us);
	pn_wechat_sample_add_open(out, "amount");
	add_number(out, "total_amount", minor);
	add_number(out, "payer_amount", minor);
	pn_wechat_sample_add_text(out, "currency", PN_STR("CNY"));
	pn_wechat_sample_add_text(out, "payer_currency", PN_STR("CNY"));
	pn_buf_add_text(out, "}}");
}

/* Two sub-orders that share the amount. */
static void
plain_combined(struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	int64_t half = amount_minor(job) / 2;

	pn_wechat_sample_add_text(out, "combine_appid", job->appid);
	pn_wechat_sample_add_text(out, "combine_mchid", job->mchid);
	pn_wechat_sample_add_text(
	    out, "combine_out_trade_no", job->out_trade_no);
	add_name(out, "sub_orders");
	pn_buf_add_char(out, '[');
	add_sub_order(out, job, 1, half);
	pn_buf_add_char(out, ',');
	add_sub_order(out, job, 2, amount_minor(job) - half);
	pn_buf_add_char(out, ']');
	pn_wechat_sample_add_open(out, "combine_payer_info");
	pn_wechat_sample_add_text(
	    out, "openid", PN_STR("oSampleOpenid0000000000000000"));
	pn_buf_add_char(out, '}');
}

static void
plain_refund(struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	int64_t refund = pn_wechat_sample_is(job, "negative-amount")
			     ? -job->refund_minor
			     : job->refund_minor;

	add_merchant(out, job);
	pn_wechat_sample_add_text(out, "transaction_id", job->transaction_id);
	pn_wechat_sample_add_text(out, "out_trade_no", job->out_trade_no);
	pn_wechat_sample_add_text(out, "refund_id", job->refund_id);
	pn_wechat_sample_add_text(out, "out_refund_no", job->out_refund_no);
	pn_wechat_sample_add_text(out, "refund_status", job->status);
	if (pn_str_is(job->status, "SUCCESS"))
		pn_wechat_sample_add_time(
		    out, "success_time", job->happened_us);
	pn_wechat_sample_add_text(
	    out, "user_received_account", PN_STR("支付用户零钱"));
	pn_wechat_sample_add_open(out, "amount");
	add_number(out, "total", job->amount_minor);
	add_number(out, "refund", refund);
	add_number(out, "payer_total", job->amount_minor);
	add_number(out, "payer_refund", refund);
	pn_buf_add_char(out, '}');
}

static void
plain_other(struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	if (pn_str_starts(job->event, "wechat.complaint.")) {
		/* Names no merchant, as the real one. */
		if (pn_wechat_sample_is(job, "other-mchid"))
			pn_wechat_sample_add_text(out, "mchid", job->mchid);
		pn_wechat_sample_add_text(out, "complaint_id", job->refund_id);
		pn_wechat_sample_add_text(
		    out, "action_type", PN_STR("CREATE_COMPLAINT"));
		return;
	}
	if (pn_str_starts(job->event, "wechat.mchtransfer.")) {
		pn_wechat_sample_add_text(
		    out, "out_bill_no", job->out_trade_no);
		pn_wechat_sample_add_text(
		    out, "transfer_bill_no", job->transaction_id);
		pn_wechat_sample_add_text(out, "state", PN_STR("SUCCESS"));
		pn_wechat_sample_add_text(out, "mch_id", job->mchid);
		add_number(out, "transfer_amount", job->amount_minor);
		pn_wechat_sample_add_time(out, "update_time", job->happened_us);
		return;
	}
	pn_wechat_sample_add_text(out, "mchid", job->mchid);
	if (!pn_str_is(job->event, "wechat.transaction.success"))
		return;
	/* Profit sharing comes under the event_type of a payment. */
	pn_wechat_sample_add_text(out, "transaction_id", job->transaction_id);
	pn_wechat_sample_add_text(out, "order_id", job->refund_id);
	pn_wechat_sample_add_text(out, "out_order_no", job->out_refund_no);
	pn_wechat_sample_add_open(out, "receiver");
	pn_wechat_sample_add_text(out, "type", PN_STR("MERCHANT_ID"));
	pn_wechat_sample_add_text(out, "account", job->mchid);
	add_number(out, "amount", job->amount_minor);
	pn_buf_add_char(out, '}');
	pn_wechat_sample_add_time(out, "success_time", job->happened_us);
}

void
pn_wechat_sample_plain(
    struct pn_buf *out, const struct pn_wechat_sample_job *job)
{
	pn_buf_add_char(out, '{');
	if (pn_wechat_sample_is(job, "combined"))
		plain_combined(out, job);
	else if (job->kind == PN_WECHAT_SAMPLE_PAYMENT)
		plain_payment(out, job);
	else if (job->kind == PN_WECHAT_SAMPLE_REFUND)
		plain_refund(out, job);
	else
		plain_other(out, job);
	pn_buf_add_char(out, '}');
}
