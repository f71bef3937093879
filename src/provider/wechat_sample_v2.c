/*
 * A sample in APIv2: the fields of its kind, signed, or encrypted for a refund.
 *
 * There is no header to sign and no time stamp: a retry is the same message
 * with another nonce_str, and so another sign.
 */
#include "wechat_sample_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"
#include "paynotify/moment.h"

enum {
	WECHAT_SAMPLE_FIELDS_MAX = 32,
	WECHAT_SAMPLE_XML_BYTES_MAX = 16 << 10,
	WECHAT_NONCE_STR_CHARS = 32,
};

struct fields {
	struct pn_field list[WECHAT_SAMPLE_FIELDS_MAX];
	size_t count;
	bool failed; /* memory was out */
};

static void
put(struct fields *fields, const char *name, struct pn_str value)
{
	assert(fields->count < WECHAT_SAMPLE_FIELDS_MAX);
	if (value.data == NULL)
		fields->failed = true;
	fields->list[fields->count++] =
	    (struct pn_field){ pn_str_from(name), value };
}

static void
put_number(const struct pn_wechat_sample_job *job, struct fields *fields,
    const char *name, int64_t value)
{
	put(fields, name, pn_arena_printf(job->arena, "%" PRId64, value));
}

static int
name_compare(const void *a, const void *b)
{
	const struct pn_field *x = a, *y = b;
	size_t len = x->name.len < y->name.len ? x->name.len : y->name.len;
	int order = memcmp(x->name.data, y->name.data, len);

	if (order != 0)
		return order;
	return (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* "]]>" cannot stand in one CDATA section: it is cut in two. */
static void
add_cdata(struct pn_buf *out, struct pn_str value)
{
	pn_buf_add_text(out, "<![CDATA[");
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] == '>' && i >= 2 &&
		    value.data[i - 1] == ']' && value.data[i - 2] == ']')
			pn_buf_add_text(out, "]]><![CDATA[");
		pn_buf_add_char(out, value.data[i]);
	}
	pn_buf_add_text(out, "]]>");
}

static struct pn_str
xml_make(const struct pn_wechat_sample_job *job, const char *root,
    const struct fields *fields)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(WECHAT_SAMPLE_XML_BYTES_MAX);

	pn_buf_printf(&out, "<%s>", root);
	for (size_t i = 0; i < fields->count; i++) {
		pn_buf_printf(&out, "<%s>", fields->list[i].name.data);
		add_cdata(&out, fields->list[i].value);
		pn_buf_printf(&out, "</%s>", fields->list[i].name.data);
	}
	pn_buf_printf(&out, "</%s>", root);
	if (pn_buf_failed(&out) || fields->failed)
		return (struct pn_str){ NULL, 0 };
	return pn_arena_copy(job->arena, pn_buf_str(&out));
}

static void
put_frame(const struct pn_wechat_sample_job *job, struct fields *fields)
{
	put(fields, "return_code", PN_STR("SUCCESS"));
	put(fields, "appid", job->appid);
	put(fields, "mch_id", job->mchid);
	if (pn_wechat_sample_is(job, "partner"))
		put(fields, "sub_mch_id", job->sub_mchid);
	put(fields, "nonce_str",
	    pn_wechat_sample_text(job, "nonce_str", job->sample->attempt,
		PN_WECHAT_ALNUM, WECHAT_NONCE_STR_CHARS));
}

static int64_t
odd_amount(const struct pn_wechat_sample_job *job, int64_t minor)
{
	return pn_wechat_sample_is(job, "negative-amount") ? -minor : minor;
}

static void
put_payment(const struct pn_wechat_sample_job *job, struct fields *fields)
{
	char time_end[PN_MOMENT_TEXT_BYTES];
	bool failed = job->kind == PN_WECHAT_SAMPLE_FAILED;

	pn_moment_format_compact(job->happened_us, time_end);
	put(fields, "result_code", failed ? PN_STR("FAIL") : PN_STR("SUCCESS"));
	if (failed) {
		put(fields, "err_code", PN_STR("SYSTEMERROR"));
		put(fields, "err_code_des", PN_STR("系统错误"));
	}
	put(fields, "openid", PN_STR("oSampleOpenid0000000000000000"));
	put(fields, "is_subscribe", PN_STR("N"));
	put(fields, "trade_type", PN_STR("NATIVE"));
	put(fields, "bank_type", PN_STR("OTHERS"));
	put_number(
	    job, fields, "total_fee", odd_amount(job, job->amount_minor));
	put(fields, "fee_type", PN_STR("CNY"));
	put_number(job, fields, "cash_fee", job->amount_minor);
	put(fields, "transaction_id", job->transaction_id);
	put(fields, "out_trade_no", job->out_trade_no);
	put(fields, "time_end",
	    pn_arena_copy(job->arena, pn_str_from(time_end)));
}

/* A contract for later deductions was signed. */
static void
put_notice(const struct pn_wechat_sample_job *job, struct fields *fields)
{
	char time[PN_MOMENT_TEXT_BYTES];

	pn_moment_format_beijing(job->happened_us, time);
	put(fields, "result_code", PN_STR("SUCCESS"));
	put(fields, "change_type", PN_STR("ADD"));
	put(fields, "contract_code", job->out_refund_no);
	put(fields, "contract_id", job->refund_id);
	put(fields, "plan_id", PN_STR("1"));
	put(fields, "operate_time",
	    pn_arena_copy(job->arena, pn_str_from(time)));
}

static void
put_refund(const struct pn_wechat_sample_job *job, struct fields *fields)
{
	char time[PN_MOMENT_TEXT_BYTES];
	struct pn_str status = job->status;

	if (pn_str_is(status, "ABNORMAL"))
		status = PN_STR("CHANGE");
	if (pn_str_is(status, "CLOSED"))
		status = PN_STR("REFUNDCLOSE");
	pn_moment_format_beijing(job->happened_us, time);
	put(fields, "out_refund_no", job->out_refund_no);
	put(fields, "out_trade_no", job->out_trade_no);
	put(fields, "refund_account", PN_STR("REFUND_SOURCE_RECHARGE_FUNDS"));
	put_number(
	    job, fields, "refund_fee", odd_amount(job, job->refund_minor));
	put(fields, "refund_id", job->refund_id);
	put(fields, "refund_recv_accout", PN_STR("支付用户零钱"));
	put(fields, "refund_request_source", PN_STR("API"));
	put(fields, "refund_status", status);
	put_number(job, fields, "settlement_refund_fee", job->refund_minor);
	put_number(job, fields, "settlement_total_fee", job->amount_minor);
	if (pn_str_is(status, "SUCCESS"))
		put(fields, "success_time",
		    pn_arena_copy(job->arena, pn_str_from(time)));
	put_number(job, fields, "total_fee", job->amount_minor);
	put(fields, "transaction_id", job->transaction_id);
}

static int
put_req_info(const struct pn_wechat_sample_job *job, struct fields *outer)
{
	unsigned char other[PN_AES256_KEY_BYTES] = { 0 };
	const struct pn_secret other_key = { other, sizeof(other) };
	const struct pn_secret *key = &job->account->v2_keys[0].req_info_key;
	struct fields inner = { .count = 0 };
	unsigned char *cipher;
	struct pn_str plain;
	size_t len;
	char *text;
	int r;

	put_refund(job, &inner);
	plain = xml_make(job, "root", &inner);
	if (plain.data == NULL)
		return -ENOMEM;
	cipher = pn_arena_alloc(job->arena, plain.len + PN_AES_BLOCK_BYTES);
	if (cipher == NULL)
		return -ENOMEM;
	if (pn_wechat_sample_is(job, "undecryptable"))
		key = &other_key;
	r = pn_aes_ecb_encrypt(key, plain, cipher, &len);
	if (r != 0)
		return r < 0 ? r : -EINVAL;
	/* ECB has no integrity; a broken first block is no XML any more. */
	if (pn_wechat_sample_is(job, "tampered"))
		cipher[0] ^= 1;
	text = pn_arena_alloc(job->arena, PN_BASE64_ENCODED_BYTES(len) + 1);
	if (text == NULL)
		return -ENOMEM;
	pn_base64_encode(cipher, len, text);
	put(outer, "req_info", pn_str_from(text));
	return 0;
}

static int
put_sign(const struct pn_wechat_sample_job *job, struct fields *fields)
{
	char hex[PN_WECHAT_SIGN_TEXT_BYTES];
	struct pn_form form = { fields->list, fields->count };
	int r;

	if (fields->failed)
		return -ENOMEM;
	qsort(
	    fields->list, fields->count, sizeof(fields->list[0]), name_compare);
	r = pn_wechat_v2_sign(job->arena, &form, job->sign_type,
	    job->account->v2_keys[0].secret, hex);
	if (r < 0)
		return r;
	if (pn_wechat_sample_is(job, "wrong-key"))
		hex[0] = hex[0] == '0' ? '1' : '0';
	if (pn_wechat_sample_is(job, "tampered"))
		put(fields, "attach", PN_STR("added behind the sign"));
	if (!pn_wechat_sample_is(job, "no-sign"))
		put(fields, "sign",
		    pn_arena_copy(job->arena, pn_str_from(hex)));
	return 0;
}

int
pn_wechat_sample_v2(
    struct pn_wechat_sample_job *job, struct pn_request *ret_request)
{
	static const struct pn_header headers[] = {
		{ PN_STR("User-Agent"), PN_STR("Mozilla/4.0") },
		{ PN_STR("Accept"), PN_STR("*/*") },
		{ PN_STR("Content-Type"), PN_STR("text/xml") },
	};
	struct fields fields = { .count = 0 };
	int r;

	put_frame(job, &fields);
	if (job->kind == PN_WECHAT_SAMPLE_REFUND) {
		r = put_req_info(job, &fields);
	} else {
		if (job->kind == PN_WECHAT_SAMPLE_OTHER)
			put_notice(job, &fields);
		else
			put_payment(job, &fields);
		r = put_sign(job, &fields);
	}
	if (r < 0)
		return r;
	ret_request->body = xml_make(job, "xml", &fields);
	if (ret_request->body.data == NULL)
		return -ENOMEM;
	ret_request->headers = headers;
	ret_request->header_count = PN_COUNT(headers);
	return 0;
}
