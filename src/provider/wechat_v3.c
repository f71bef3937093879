/*
 * APIv3: from a request to a decrypted object of this account.
 *
 * The order of the checks is the order of the trust: header form, time window,
 * which key, signature over the bytes as they came. Up to there the sender is
 * nobody, and nothing is parsed or decrypted for him. Behind the signature the
 * sender is WeChat Pay: notification.verified is set, and whatever goes wrong
 * from then on is our matter (or a new kind of message) and is kept.
 *
 *   WECHATPAY2-SHA256-RSA2048 over  timestamp LF nonce LF body LF
 *
 * The header text goes into the message as it is, never a number printed
 * again: "+1789999200" or "01789999200" would verify for a reader that does
 * so, with another message than the one that was sent.
 *
 * A signature probe ("WECHATPAY/SIGNTEST/...") takes the path of every other
 * wrong signature; it is only counted.
 *
 * Not here: SM2/SM4 (refused as unsupported, never tried as RSA), and any look
 * at create_time: retries of a day ago carry a fresh header time.
 */
#include "wechat_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

/* Wechatpay-Timestamp has 1 to 11 digits. */
#define WECHAT_TIMESTAMP_MAX UINT64_C(99999999999)
enum {
	WECHAT_TIMESTAMP_DIGITS_MAX = 11,
	WECHAT_SERIAL_SHOWN_MAX = 64, /* of a header, in a reason */
};

struct v3_headers {
	struct pn_str timestamp, nonce, serial, signature;
	int64_t timestamp_us;
};

/* The message number of the account in a decrypted object, by the names that
 * it goes under; the first one that is there counts, and a service provider's
 * own number stands before the merchant's. */
static const char *const merchant_names[] = {
	"sp_mchid",
	"combine_mchid",
	"mchid",
	"mch_id",
};
static const char *const appid_names[] = {
	"sp_appid",
	"combine_appid",
	"appid",
};

static int
header_take(const struct pn_wechat_job *job, const char *name,
    const char *missing, struct pn_str *ret_value)
{
	size_t count = pn_request_header(job->request, name, ret_value);

	if (count > 1)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "a Wechatpay header came twice");
	if (count == 0 || ret_value->len == 0)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED, missing);
	return 0;
}

static int
headers_take(const struct pn_wechat_job *job, struct v3_headers *ret_headers)
{
	struct v3_headers h = { .timestamp_us = PN_MOMENT_NONE };
	struct pn_str type;
	uint64_t seconds;
	int r;

	r = header_take(job, "Wechatpay-Timestamp",
	    "header Wechatpay-Timestamp is missing", &h.timestamp);
	if (r == 0)
		r = header_take(job, "Wechatpay-Nonce",
		    "header Wechatpay-Nonce is missing", &h.nonce);
	if (r == 0)
		r = header_take(job, "Wechatpay-Serial",
		    "header Wechatpay-Serial is missing", &h.serial);
	if (r == 0)
		r = header_take(job, "Wechatpay-Signature",
		    "header Wechatpay-Signature is missing", &h.signature);
	if (r != 0)
		return r;
	if (h.timestamp.len > WECHAT_TIMESTAMP_DIGITS_MAX ||
	    pn_parse_uint(h.timestamp, WECHAT_TIMESTAMP_MAX, &seconds) != 0)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "Wechatpay-Timestamp is not 1 to 11 digits");
	h.timestamp_us = (int64_t)seconds * PN_SECOND_US;
	if (pn_request_header(job->request, "Wechatpay-Signature-Type", &type) >
	    1)
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "a Wechatpay header came twice");
	if (type.len > 0 && !pn_str_is(type, "WECHATPAY2-SHA256-RSA2048"))
		return pn_wechat_refuse(job, PN_VERDICT_UNSUPPORTED,
		    "this Wechatpay-Signature-Type is not supported");
	*ret_headers = h;
	return 0;
}

static int
window_check(const struct pn_wechat_job *job, const struct v3_headers *h)
{
	int64_t age_us = job->now_us - h->timestamp_us;
	int64_t tolerance_us = job->account->options->timestamp_tolerance_us;
	struct pn_str reason;

	assert(tolerance_us >= 0);
	if (age_us <= tolerance_us && age_us >= -tolerance_us)
		return 0;
	reason = pn_arena_printf(job->arena,
	    "Wechatpay-Timestamp is %" PRId64 " s %s (a wrong clock, or an "
	    "old capture)",
	    (age_us < 0 ? -age_us : age_us) / PN_SECOND_US,
	    age_us < 0 ? "in the future" : "old");
	if (reason.data == NULL)
		return -ENOMEM;
	return pn_wechat_refuse(job, PN_VERDICT_STALE, reason.data);
}

/* A header value is a stranger's text: it is shown only if it is short and
 * plain. */
static int
refuse_serial(const struct pn_wechat_job *job, struct pn_str serial)
{
	struct pn_str reason;

	for (size_t i = 0; i < serial.len; i++)
		if (serial.len > WECHAT_SERIAL_SHOWN_MAX ||
		    serial.data[i] < 0x21 || serial.data[i] > 0x7e)
			return pn_wechat_refuse(job, PN_VERDICT_UNKNOWN_KEY,
			    "Wechatpay-Serial names no configured key");
	reason = pn_arena_printf(job->arena,
	    "Wechatpay-Serial \"" PN_STR_FMT "\" names no configured key",
	    PN_STR_ARG(serial));
	if (reason.data == NULL)
		return -ENOMEM;
	return pn_wechat_refuse(job, PN_VERDICT_UNKNOWN_KEY, reason.data);
}

static int
key_find(const struct pn_wechat_job *job, struct pn_str serial,
    const struct pn_wechat_key **ret_key)
{
	const struct pn_wechat_account *account = job->account;

	for (size_t i = 0; i < account->key_count; i++) {
		const struct pn_wechat_key *key = &account->keys[i];

		if (!pn_str_equal(key->serial, serial))
			continue;
		if (key->not_after_us != PN_MOMENT_NONE &&
		    key->not_after_us < job->now_us)
			return pn_wechat_refuse(job, PN_VERDICT_UNKNOWN_KEY,
			    "the platform certificate of this serial has "
			    "expired");
		*ret_key = key;
		return 0;
	}
	return refuse_serial(job, serial);
}

static int
signature_check(const struct pn_wechat_job *job, const struct v3_headers *h,
    const struct pn_public_key *key)
{
	struct pn_str body = job->request->body, signature;
	unsigned char *raw;
	size_t raw_len, len = 0;
	char *message;

	raw = pn_arena_alloc(
	    job->arena, PN_BASE64_DECODED_MAX(h->signature.len) + 1);
	message = pn_arena_alloc(
	    job->arena, h->timestamp.len + h->nonce.len + body.len + 3);
	if (raw == NULL || message == NULL)
		return -ENOMEM;
	if (pn_base64_decode(h->signature, raw, &raw_len) != 0)
		return pn_wechat_refuse(job, PN_VERDICT_BAD_SIGNATURE,
		    job->notification->probe
			? "a signature probe of WeChat Pay"
			: "Wechatpay-Signature is not base64");
	const struct pn_str lines[] = { h->timestamp, h->nonce, body };

	for (size_t i = 0; i < PN_COUNT(lines); i++) {
		if (lines[i].len > 0)
			memcpy(message + len, lines[i].data, lines[i].len);
		len += lines[i].len;
		message[len++] = '\n';
	}
	signature = (struct pn_str){ (const char *)raw, raw_len };
	if (!pn_public_key_verify(
		key, PN_RSA_SHA256, (struct pn_str){ message, len }, signature))
		return pn_wechat_refuse(job, PN_VERDICT_BAD_SIGNATURE,
		    job->notification->probe ? "a signature probe of WeChat Pay"
					     : "the signature is wrong");
	return 0;
}

int
pn_wechat_v3_reverify(
    const struct pn_wechat_job *job, const struct pn_public_key *key)
{
	struct v3_headers headers;
	int r = headers_take(job, &headers);

	return r == 0 ? signature_check(job, &headers, key) : r;
}

/* Everything that a stranger can fail at. */
static int
authenticate(struct pn_wechat_job *job)
{
	struct pn_notification *n = job->notification;
	const struct pn_wechat_key *key = NULL;
	struct v3_headers headers;
	int r;

	r = headers_take(job, &headers);
	if (r != 0)
		return r;
	if (job->account->key_count == 0)
		return pn_wechat_refuse(job, PN_VERDICT_UNSUPPORTED,
		    "an APIv3 message, but the account has no APIv3 keys");
	r = window_check(job, &headers);
	if (r != 0)
		return r;
	n->probe = pn_str_starts(headers.signature, "WECHATPAY/SIGNTEST/");
	r = key_find(job, headers.serial, &key);
	if (r != 0)
		return r;
	assert(key != NULL);
	r = signature_check(job, &headers, key->key);
	if (r != 0)
		return r;
	n->verified = true;
	n->signed_at_us = headers.timestamp_us;
	n->key = key->key;
	memcpy(n->key_fingerprint, pn_public_key_fingerprint(key->key),
	    sizeof(n->key_fingerprint));
	return 0;
}

static int
refuse_json(const struct pn_wechat_job *job, const char *what,
    const struct pn_error *error)
{
	struct pn_str reason = pn_arena_printf(
	    job->arena, "%s is not strict JSON: %.128s", what, error->text);

	if (reason.data == NULL)
		return -ENOMEM;
	return pn_wechat_refuse(job, PN_VERDICT_MALFORMED, reason.data);
}

static int64_t
create_time_of(const json_t *object)
{
	struct pn_str text = pn_json_text(object, "create_time");
	int64_t us;

	/* One education product writes the compact form. */
	if (pn_moment_parse_rfc3339(text, &us) != 0 &&
	    pn_moment_parse_compact(text, &us) != 0)
		return PN_MOMENT_NONE;
	return us;
}

static int
envelope_take(struct pn_wechat_job *job, const json_t *object,
    struct pn_wechat_envelope *ret_envelope, const json_t **ret_resource)
{
	struct pn_wechat_envelope envelope = {
		.create_time_us = create_time_of(object),
	};
	const json_t *resource;
	int r;

	if (!json_is_object(object))
		return pn_wechat_refuse(
		    job, PN_VERDICT_MALFORMED, "the body is no JSON object");
	r = pn_wechat_json_id(job, object, "id", &envelope.id);
	if (r != 0)
		return r;
	job->notification->notify_id = envelope.id;
	r = pn_wechat_json_id(job, object, "event_type", &envelope.event_type);
	if (r != 0)
		return r;
	resource = json_object_get(object, "resource");
	if (!json_is_object(resource))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the body has no resource object");
	*ret_envelope = envelope;
	*ret_resource = resource;
	return 0;
}

/* With every key: during a key reset, messages of before are still under way. */
static int
decrypt(struct pn_wechat_job *job, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    struct pn_str *ret_plain)
{
	const struct pn_conf_files *keys =
	    &job->account->options->api_v3_key_file;
	unsigned char *plain;
	size_t len;
	int r;

	plain = pn_arena_alloc(job->arena, ciphertext.len + 1);
	if (plain == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < keys->count; i++) {
		r = pn_aes_gcm_decrypt(&keys->files[i].content, nonce,
		    associated_data, ciphertext, plain, &len);
		if (r < 0)
			return r;
		if (r == 0) {
			*ret_plain =
			    (struct pn_str){ (const char *)plain, len };
			return 0;
		}
	}
	return pn_wechat_refuse(job, PN_VERDICT_UNDECRYPTABLE,
	    "signed, but no api_v3_key_file decrypts it");
}

static int
resource_open(
    struct pn_wechat_job *job, const json_t *resource, struct pn_str *ret_plain)
{
	struct pn_str algorithm = pn_json_text(resource, "algorithm");
	struct pn_str nonce = pn_json_text(resource, "nonce");
	struct pn_str text = pn_json_text(resource, "ciphertext");
	const json_t *aad = json_object_get(resource, "associated_data");
	unsigned char *ciphertext;
	size_t len;

	if (algorithm.len == 0)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the resource names no algorithm");
	if (!pn_str_is(algorithm, "AEAD_AES_256_GCM"))
		return pn_wechat_refuse(job, PN_VERDICT_UNSUPPORTED,
		    "this resource algorithm is not supported");
	if (aad != NULL && !json_is_null(aad) && !json_is_string(aad))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "associated_data is not a string");
	if (nonce.len != PN_GCM_NONCE_BYTES)
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the nonce of the resource has not 12 bytes");
	if (!json_is_string(json_object_get(resource, "ciphertext")))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the resource has no ciphertext");
	ciphertext =
	    pn_arena_alloc(job->arena, PN_BASE64_DECODED_MAX(text.len) + 1);
	if (ciphertext == NULL)
		return -ENOMEM;
	if (text.len == 0 || pn_base64_decode(text, ciphertext, &len) != 0)
		return pn_wechat_refuse(job, PN_VERDICT_UNDECRYPTABLE,
		    "signed, but the ciphertext is not base64");
	/* Null, absent and empty are all the empty text. */
	return decrypt(job, nonce, pn_json_text(resource, "associated_data"),
	    (struct pn_str){ (const char *)ciphertext, len }, ret_plain);
}

static int
first_of(const struct pn_wechat_job *job, const json_t *object,
    const char *const *names, size_t count, struct pn_str *ret_id)
{
	*ret_id = (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < count && ret_id->len == 0; i++) {
		int r = pn_wechat_json_id(job, object, names[i], ret_id);

		if (r != 0)
			return r;
	}
	return 0;
}

static bool
appid_configured(const struct pn_wechat_job *job, struct pn_str appid)
{
	const struct pn_conf_strings *list = &job->account->options->appid;

	for (size_t i = 0; i < list->count; i++)
		if (pn_str_is(appid, list->values[i]))
			return true;
	return list->count == 0;
}

/* A notice of profit sharing names the merchant who splits and goes to the one
 * who receives, so there the receiver's number is as good. Complaints and the
 * like name nobody: the key that decrypted them is this account's own. */
static int
account_check(const struct pn_wechat_job *job, const json_t *plain)
{
	struct pn_str mchid, appid;
	int r;

	r = first_of(
	    job, plain, merchant_names, PN_COUNT(merchant_names), &mchid);
	if (r != 0)
		return r;
	if (mchid.len > 0 && !pn_str_equal(mchid, job->account->mchid)) {
		const json_t *receiver = json_object_get(plain, "receiver");

		if (pn_wechat_v3_is_profit_sharing(plain) &&
		    pn_str_equal(
			pn_json_text(receiver, "account"), job->account->mchid))
			return 0;
		return pn_wechat_refuse(job, PN_VERDICT_WRONG_ACCOUNT,
		    "the message is of another merchant number");
	}
	r = first_of(job, plain, appid_names, PN_COUNT(appid_names), &appid);
	if (r != 0)
		return r;
	if (appid.len > 0 && !appid_configured(job, appid))
		return pn_wechat_refuse(job, PN_VERDICT_WRONG_ACCOUNT,
		    "the message is of an appid that is not configured");
	return 0;
}

/* For the receipt, whatever comes of the message. */
static int
order_take(struct pn_wechat_job *job, const json_t *plain)
{
	struct pn_str *order = &job->notification->out_trade_no;
	int r = pn_wechat_json_hint(job, plain, "out_trade_no", order);

	if (r == 0 && order->len == 0)
		r = pn_wechat_json_hint(
		    job, plain, "combine_out_trade_no", order);
	return r;
}

int
pn_wechat_v3_verify(struct pn_wechat_job *job)
{
	PN_CLEANUP(pn_json_freep) json_t *body = NULL;
	PN_CLEANUP(pn_json_freep) json_t *plain = NULL;
	struct pn_wechat_envelope envelope;
	struct pn_error error = { .text = "" };
	const json_t *resource = NULL;
	struct pn_str text;
	int r;

	r = authenticate(job);
	if (r != 0)
		return r;
	r = pn_json_parse(job->request->body, &body, &error);
	if (r > 0)
		return refuse_json(job, "the body", &error);
	if (r == 0)
		r = envelope_take(job, body, &envelope, &resource);
	if (r == 0)
		r = resource_open(job, resource, &text);
	if (r != 0)
		return r;
	r = pn_json_parse(text, &plain, &error);
	if (r > 0)
		return refuse_json(job, "the decrypted text", &error);
	if (r < 0)
		return r;
	job->notification->payload = pn_json_sanitise(job->arena, text);
	if (job->notification->payload.data == NULL)
		return -ENOMEM;
	if (!json_is_object(plain))
		return pn_wechat_refuse(job, PN_VERDICT_MALFORMED,
		    "the decrypted text is no JSON object");
	r = order_take(job, plain);
	if (r == 0)
		r = account_check(job, plain);
	if (r == 0)
		r = pn_wechat_v3_events(job, &envelope, plain);
	return r;
}
