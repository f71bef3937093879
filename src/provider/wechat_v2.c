/*
 * APIv2: from XML to fields that WeChat Pay signed, or encrypted.
 *
 * The message must be parsed before its sign can be checked, so the parser is
 * the part that strangers reach: it refuses a DOCTYPE before any entity work
 * (see xml.h), and an account without an APIv2 key does not even get there.
 *
 * sign covers every field with a value but itself, known or not, sorted by
 * name, then "&key=" and the key. The algorithm is the account's; the message
 * does not choose. A `sign_type` that names another one is refused, since the
 * sender then signed something else than we check.
 *
 * A refund has no sign. Its content is in req_info, encrypted with a key made
 * of the same secret in ECB mode, which has no integrity: legal padding comes
 * out of one wrong key in about 256. So it counts as WeChat's only when the
 * plaintext is the expected XML document; what does not decrypt to text is
 * unverified and not kept. req_info never stands in for a sign: a message with
 * a sign is checked by it, and of a message without one only what is inside
 * req_info is used, next to the account numbers that must match anyway.
 *
 * APIv2 has no time stamp: a replay is a matter of the dedup key alone.
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"

enum {
	/* Names and values escaped for JSON, of two documents. */
	WECHAT_V2_PAYLOAD_BYTES_MAX = PN_XML_BYTES_MAX * 2 * 8,
};
static_assert(WECHAT_V2_PAYLOAD_BYTES_MAX * 2 <= PN_ARENA_BYTES_MAX,
    "the payload of the largest XML message fits a request's memory");

static bool
is_signed_field(const struct pn_field *field)
{
	return field->value.len > 0 && !pn_str_is(field->name, "sign");
}

/* `a=1&b=2&key=...`; in the arena, which is cleansed. */
static int
canonical_make(struct pn_arena *arena, const struct pn_form *fields,
    const struct pn_secret *secret, struct pn_str *ret_text)
{
	static const char key_is[] = "key=";
	size_t size = sizeof(key_is) + secret->len, len = 0;
	char *text;

	for (size_t i = 0; i < fields->count; i++)
		if (is_signed_field(&fields->fields[i]))
			size += fields->fields[i].name.len +
				fields->fields[i].value.len + 2;
	text = pn_arena_alloc(arena, size);
	if (text == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fields->count; i++) {
		const struct pn_field *field = &fields->fields[i];

		if (!is_signed_field(field))
			continue;
		memcpy(text + len, field->name.data, field->name.len);
		len += field->name.len;
		text[len++] = '=';
		memcpy(text + len, field->value.data, field->value.len);
		len += field->value.len;
		text[len++] = '&';
	}
	memcpy(text + len, key_is, sizeof(key_is) - 1);
	len += sizeof(key_is) - 1;
	memcpy(text + len, secret->data, secret->len);
	len += secret->len;
	assert(len < size);
	*ret_text = (struct pn_str){ text, len };
	return 0;
}

int
pn_wechat_v2_sign(struct pn_arena *arena, const struct pn_form *fields,
    enum pn_v2_sign_type type, const struct pn_secret *secret,
    char ret_hex[PN_WECHAT_SIGN_TEXT_BYTES])
{
	unsigned char digest[PN_SHA256_BYTES];
	struct pn_str text;
	int r;

	assert(secret->len > 0);
	r = canonical_make(arena, fields, secret, &text);
	if (r < 0)
		return r;
	if (type == PN_V2_SIGN_HMAC_SHA256) {
		pn_hmac_sha256(secret, text, digest);
		pn_hex_upper(digest, PN_SHA256_BYTES, ret_hex);
	} else {
		pn_md5(text, digest);
		pn_hex_upper(digest, PN_MD5_BYTES, ret_hex);
	}
	return 0;
}

static void
verified_by(struct pn_wechat_job *job, const struct pn_wechat_v2_key *key)
{
	job->notification->verified = true;
	memcpy(job->notification->key_fingerprint, key->fingerprint,
	    sizeof(key->fingerprint));
}

static int
sign_check(struct pn_wechat_job *job, const struct pn_form *fields)
{
	const struct pn_wechat_account *account = job->account;
	enum pn_v2_sign_type type = account->options->v2_sign_type;
	struct pn_str named = pn_form_get(fields, "sign_type");
	struct pn_str sign = pn_form_get(fields, "sign");
	char hex[PN_WECHAT_SIGN_TEXT_BYTES];
	int r;

	assert(sign.len > 0);
	if (named.len > 0 &&
	    !pn_str_is(
		named, type == PN_V2_SIGN_HMAC_SHA256 ? "HMAC-SHA256" : "MD5"))
		return pn_wechat_refuse(job, PN_VERDICT_BAD_SIGNATURE,
		    "sign_type of the message is not the account's "
		    "v2_sign_type");
	for (size_t i = 0; i < account->v2_key_count; i++) {
		const struct pn_wechat_v2_key *key = &account->v2_keys[i];

		r = pn_wechat_v2_sign(
		    job->arena, fields, type, key->secret, hex);
		if (r < 0)
			return r;
		if (pn_equal_constant_time(pn_str_from(hex), sign)) {
			verified_by(job, key);
			return 0;
		}
	}
	return pn_wechat_refuse(
	    job, PN_VERDICT_BAD_SIGNATURE, "the sign is wrong");
}

/* With which of these keys. Behind the right one stands an XML document: text
 * that begins with "<". */
static int
req_info_decrypt(const struct pn_wechat_job *job, struct pn_str req_info,
    const struct pn_wechat_v2_key *keys, size_t key_count,
    struct pn_str *ret_plain, const struct pn_wechat_v2_key **ret_key)
{
	unsigned char *raw, *plain;
	size_t raw_len, len;
	int r;

	raw =
	    pn_arena_alloc(job->arena, PN_BASE64_DECODED_MAX(req_info.len) + 1);
	plain =
	    pn_arena_alloc(job->arena, PN_BASE64_DECODED_MAX(req_info.len) + 1);
	if (raw == NULL || plain == NULL)
		return -ENOMEM;
	if (pn_base64_decode(req_info, raw, &raw_len) != 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_UNDECRYPTABLE, "req_info is not base64");
	for (size_t i = 0; i < key_count; i++) {
		struct pn_str text;

		r = pn_aes_ecb_decrypt(&keys[i].req_info_key,
		    (struct pn_str){ (const char *)raw, raw_len }, plain, &len);
		if (r < 0)
			return r;
		text = (struct pn_str){ (const char *)plain, len };
		if (r > 0 || !pn_str_starts(text, "<") || !pn_str_is_utf8(text))
			continue;
		*ret_plain = text;
		*ret_key = &keys[i];
		return 0;
	}
	return pn_wechat_refuse(job, PN_VERDICT_UNDECRYPTABLE,
	    "no api_v2_key_file decrypts req_info");
}

static bool
has_field(const struct pn_form *form, struct pn_str name)
{
	for (size_t i = 0; i < form->count; i++)
		if (pn_str_equal(form->fields[i].name, name))
			return true;
	return false;
}

/* For the receipt, whatever comes of the message. */
static void
order_take(struct pn_wechat_job *job, const struct pn_form *fields)
{
	struct pn_str order = pn_form_get(fields, "out_trade_no");

	if (order.len <= PN_ID_BYTES_MAX)
		job->notification->out_trade_no = order;
}

/* What stands in the payload: of outer (that is, not inner) only what inner does
 * not say, and not req_info, which is inner. The sign is left out as everywhere:
 * the evidence has it. */
static bool
is_payload_field(
    const struct pn_field *field, const struct pn_form *inner, bool is_outer)
{
	if (pn_str_is(field->name, "sign"))
		return false;
	return !is_outer ||
	       (!has_field(inner, field->name) &&
		   !(inner->count > 0 && pn_str_is(field->name, "req_info")));
}

/* The fields as one JSON object; inner may be empty. */
static int
payload_make(struct pn_wechat_job *job, const struct pn_form *outer,
    const struct pn_form *inner)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(WECHAT_V2_PAYLOAD_BYTES_MAX);
	char before = '{';

	for (size_t i = 0; i < outer->count + inner->count; i++) {
		bool is_outer = i < outer->count;
		const struct pn_field *field =
		    is_outer ? &outer->fields[i]
			     : &inner->fields[i - outer->count];

		if (!is_payload_field(field, inner, is_outer))
			continue;
		pn_buf_add_char(&out, before);
		pn_json_add_string(&out, field->name);
		pn_buf_add_char(&out, ':');
		pn_json_add_string(&out, field->value);
		before = ',';
	}
	if (before == '{')
		pn_buf_add_char(&out, '{');
	pn_buf_add_char(&out, '}');
	if (pn_buf_failed(&out))
		return -ENOMEM;
	job->notification->payload =
	    pn_arena_copy(job->arena, pn_buf_str(&out));
	return job->notification->payload.data == NULL ? -ENOMEM : 0;
}

static int
account_check(const struct pn_wechat_job *job, const struct pn_form *fields)
{
	const struct pn_conf_strings *appids = &job->account->options->appid;
	struct pn_str mch_id = pn_form_get(fields, "mch_id");
	struct pn_str appid = pn_form_get(fields, "appid");

	if (mch_id.len > 0 && !pn_str_equal(mch_id, job->account->mchid))
		return pn_wechat_refuse(job, PN_VERDICT_WRONG_ACCOUNT,
		    "the message is of another merchant number");
	if (appid.len == 0 || appids->count == 0)
		return 0;
	for (size_t i = 0; i < appids->count; i++)
		if (pn_str_is(appid, appids->values[i]))
			return 0;
	return pn_wechat_refuse(job, PN_VERDICT_WRONG_ACCOUNT,
	    "the message is of an appid that is not configured");
}

static int
refuse_xml(const struct pn_wechat_job *job, const char *what,
    const struct pn_error *error)
{
	struct pn_str reason = pn_arena_printf(
	    job->arena, "%s is refused: %.128s", what, error->text);

	if (reason.data == NULL)
		return -ENOMEM;
	return pn_wechat_refuse(job, PN_VERDICT_MALFORMED, reason.data);
}

static int
refund_verify(struct pn_wechat_job *job, const struct pn_form *outer)
{
	struct pn_error error = { .text = "" };
	const struct pn_wechat_v2_key *key;
	struct pn_form inner;
	struct pn_str plain;
	int r;

	r = req_info_decrypt(job, pn_form_get(outer, "req_info"),
	    job->account->v2_keys, job->account->v2_key_count, &plain, &key);
	if (r != 0)
		return r;
	r = pn_xml_parse(job->arena, plain, "root", &inner, &error);
	if (r > 0)
		return refuse_xml(job, "the XML in req_info", &error);
	if (r < 0)
		return r;
	verified_by(job, key);
	order_take(job, &inner);
	r = payload_make(job, outer, &inner);
	if (r == 0)
		r = account_check(job, outer);
	if (r == 0)
		r = pn_wechat_v2_refund_events(job, outer, &inner);
	return r;
}

static int
signed_verify(struct pn_wechat_job *job, const struct pn_form *fields)
{
	const struct pn_form none = { NULL, 0 };
	int r;

	r = sign_check(job, fields);
	if (r != 0)
		return r;
	/* Signed and encrypted: not seen yet, and no reason to lose it. */
	if (pn_form_get(fields, "req_info").len > 0 &&
	    pn_form_get(fields, "transaction_id").len == 0)
		return refund_verify(job, fields);
	order_take(job, fields);
	r = payload_make(job, fields, &none);
	if (r == 0)
		r = account_check(job, fields);
	if (r == 0 && !pn_str_is(pn_form_get(fields, "return_code"), "SUCCESS"))
		r = pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "return_code is not SUCCESS, so the message tells nothing");
	if (r == 0)
		r = pn_wechat_v2_events(job, fields);
	return r;
}

int
pn_wechat_v2_verify(struct pn_wechat_job *job)
{
	struct pn_error error = { .text = "" };
	struct pn_form fields;
	int r;

	if (job->account->v2_key_count == 0)
		return pn_wechat_refuse(job, PN_VERDICT_UNSUPPORTED,
		    "an APIv2 message, but the account has no "
		    "api_v2_key_file");
	r = pn_xml_parse(
	    job->arena, job->request->body, "xml", &fields, &error);
	if (r > 0)
		return refuse_xml(job, "the XML", &error);
	if (r < 0)
		return r;
	if (pn_form_get(&fields, "sign").len > 0)
		return signed_verify(job, &fields);
	if (!pn_str_is(pn_form_get(&fields, "return_code"), "SUCCESS"))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "unsigned, and return_code is not SUCCESS");
	if (pn_form_get(&fields, "req_info").len > 0)
		return refund_verify(job, &fields);
	return pn_wechat_refuse(
	    job, PN_VERDICT_MALFORMED, "the sign is missing");
}

/* A sign by either algorithm: which one was configured then is not on record. A
 * refund has none; what decrypts to its document is as good as it ever was. */
int
pn_wechat_v2_reverify(
    struct pn_wechat_job *job, const struct pn_wechat_v2_key *key)
{
	static const enum pn_v2_sign_type types[] = { PN_V2_SIGN_MD5,
		PN_V2_SIGN_HMAC_SHA256 };
	struct pn_error error = { .text = "" };
	const struct pn_wechat_v2_key *used;
	struct pn_form fields, inner;
	struct pn_str sign, plain;
	int r;

	r = pn_xml_parse(
	    job->arena, job->request->body, "xml", &fields, &error);
	if (r != 0)
		return r < 0 ? r : refuse_xml(job, "the XML", &error);
	sign = pn_form_get(&fields, "sign");
	for (size_t i = 0; sign.len > 0 && i < PN_COUNT(types); i++) {
		char hex[PN_WECHAT_SIGN_TEXT_BYTES];

		r = pn_wechat_v2_sign(
		    job->arena, &fields, types[i], key->secret, hex);
		if (r < 0)
			return r;
		if (pn_equal_constant_time(pn_str_from(hex), sign))
			return 0;
	}
	if (sign.len > 0)
		return pn_wechat_refuse(
		    job, PN_VERDICT_BAD_SIGNATURE, "the sign is wrong");
	r = req_info_decrypt(
	    job, pn_form_get(&fields, "req_info"), key, 1, &plain, &used);
	if (r != 0)
		return r;
	r = pn_xml_parse(job->arena, plain, "root", &inner, &error);
	return r > 0 ? refuse_xml(job, "the XML in req_info", &error) : r;
}
