/*
 * A sample in APIv3: the JSON of its kind (wechat_sample_plain.c), encrypted,
 * wrapped and signed.
 *
 * The order of the fields and the headers are those of real notifications, so
 * that what a proxy does to a sample it does to the real one.
 */
#include "wechat_sample_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"
#include "paynotify/moment.h"

enum {
	WECHAT_SAMPLE_BYTES_MAX = 16 << 10,
	WECHAT_HEADERS = 8,
	WECHAT_NONCE_CHARS = 32,
	WECHAT_PROBE_CHARS = 336, /* behind the prefix; as seen in a capture */
};

struct wording {
	const char *summary, *original_type;
};

static struct wording
wording_of(const struct pn_wechat_sample_job *job)
{
	switch (job->kind) {
	case PN_WECHAT_SAMPLE_PAYMENT:
		return (struct wording){ "支付成功", "transaction" };
	case PN_WECHAT_SAMPLE_REFUND:
		if (pn_str_is(job->status, "SUCCESS"))
			return (struct wording){ "退款成功", "refund" };
		if (pn_str_is(job->status, "CLOSED"))
			return (struct wording){ "退款关闭", "refund" };
		return (struct wording){ "退款异常", "refund" };
	default:
		if (pn_str_is(job->event, "wechat.transaction.success"))
			return (struct wording){ "分账", "profitsharing" };
		return (struct wording){ "通知", "other" };
	}
}

static struct pn_str
event_type_of(const struct pn_wechat_sample_job *job)
{
	struct pn_str lower = job->event;
	char *text;

	if (job->kind == PN_WECHAT_SAMPLE_PAYMENT)
		return PN_STR("TRANSACTION.SUCCESS");
	if (job->kind == PN_WECHAT_SAMPLE_REFUND)
		return pn_arena_printf(
		    job->arena, "REFUND." PN_STR_FMT, PN_STR_ARG(job->status));
	/* kind_find() saw to it. */
	assert(lower.data != NULL && pn_str_starts(lower, "wechat."));
	lower.data += strlen("wechat.");
	lower.len -= strlen("wechat.");
	text = pn_arena_alloc(job->arena, lower.len + 1);
	if (text == NULL)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < lower.len; i++) {
		char c = lower.data[i];

		text[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	}
	return (struct pn_str){ text, lower.len };
}

/* Base64 of the encrypted plaintext. "undecryptable": with a key that nobody
 * configured. */
static int
encrypt(struct pn_wechat_sample_job *job, struct pn_str plain,
    struct pn_str nonce, struct pn_str associated_data, struct pn_str *ret_text)
{
	unsigned char other[PN_AES256_KEY_BYTES] = { 0 };
	const struct pn_secret *key =
	    &job->account->options->api_v3_key_file.files[0].content;
	const struct pn_secret other_key = { other, sizeof(other) };
	unsigned char *cipher;
	size_t len;
	char *text;
	int r;

	if (pn_wechat_sample_is(job, "undecryptable"))
		key = &other_key;
	cipher = pn_arena_alloc(job->arena, plain.len + PN_GCM_TAG_BYTES);
	if (cipher == NULL)
		return -ENOMEM;
	r = pn_aes_gcm_encrypt(
	    key, nonce, associated_data, plain, cipher, &len);
	if (r != 0)
		return r < 0 ? r : -EINVAL;
	text = pn_arena_alloc(job->arena, PN_BASE64_ENCODED_BYTES(len) + 1);
	if (text == NULL)
		return -ENOMEM;
	pn_base64_encode(cipher, len, text);
	*ret_text = pn_str_from(text);
	return 0;
}

static int
envelope_add(
    struct pn_wechat_sample_job *job, struct pn_str plain, struct pn_buf *out)
{
	struct wording wording = wording_of(job);
	struct pn_str id, nonce, ciphertext, type, label;
	int r;

	/* Two notifications of one seed are two: the event is in the id. */
	label = pn_arena_printf(
	    job->arena, "envelope " PN_STR_FMT, PN_STR_ARG(job->event));
	if (label.data == NULL)
		return -ENOMEM;
	id = pn_wechat_sample_text(job, label.data, 0, "0123456789abcdef", 32);
	nonce = pn_wechat_sample_text(
	    job, "resource nonce", 0, PN_WECHAT_ALNUM, PN_GCM_NONCE_BYTES);
	type = event_type_of(job);
	if (id.data == NULL || nonce.data == NULL || type.data == NULL)
		return -ENOMEM;
	id = pn_arena_printf(job->arena, "%.8s-%.4s-5%.3s-a%.3s-%.12s", id.data,
	    id.data + 8, id.data + 12, id.data + 15, id.data + 18);
	if (id.data == NULL)
		return -ENOMEM;
	r = encrypt(
	    job, plain, nonce, pn_str_from(wording.original_type), &ciphertext);
	if (r < 0)
		return r;
	pn_buf_add_char(out, '{');
	pn_wechat_sample_add_text(out, "id", id);
	pn_wechat_sample_add_time(out, "create_time", job->happened_us);
	pn_wechat_sample_add_text(
	    out, "resource_type", PN_STR("encrypt-resource"));
	pn_wechat_sample_add_text(out, "event_type", type);
	pn_wechat_sample_add_text(out, "summary", pn_str_from(wording.summary));
	pn_wechat_sample_add_open(out, "resource");
	pn_wechat_sample_add_text(
	    out, "original_type", pn_str_from(wording.original_type));
	pn_wechat_sample_add_text(out, "algorithm", PN_STR("AEAD_AES_256_GCM"));
	pn_wechat_sample_add_text(out, "ciphertext", ciphertext);
	pn_wechat_sample_add_text(
	    out, "associated_data", pn_str_from(wording.original_type));
	pn_wechat_sample_add_text(out, "nonce", nonce);
	pn_buf_add_text(out, "}}");
	return 0;
}

/* The serial that belongs to the signing key; with a foreign key the first
 * one, so that it is the signature that fails. */
static int
serial_find(const struct pn_wechat_sample_job *job,
    const struct pn_private_key *sign_key, struct pn_str *ret_serial)
{
	const struct pn_wechat_account *account = job->account;
	const unsigned char *own = pn_private_key_fingerprint(sign_key);
	const struct pn_wechat_key *match = NULL, *old = NULL;

	if (pn_wechat_sample_is(job, "unknown-serial")) {
		*ret_serial =
		    PN_STR("0000000000000000000000000000000000000000");
		return 0;
	}
	for (size_t i = 0; i < account->key_count; i++) {
		const struct pn_wechat_key *key = &account->keys[i];
		bool same = memcmp(pn_public_key_fingerprint(key->key), own,
				PN_SHA256_BYTES) == 0;

		if (same && match == NULL)
			match = key;
		else if (old == NULL || same)
			old = key;
	}
	if (pn_wechat_sample_is(job, "old-cert")) {
		if (old == NULL)
			return pn_error_set(job->error, -EINVAL,
			    "oddity old-cert needs a second public_key or "
			    "platform_cert");
		match = old;
	}
	if (match == NULL && job->sample->sign_key == NULL)
		return pn_error_set(job->error, -EINVAL,
		    "test_private_key does not belong to any public_key or "
		    "platform_cert of the account");
	*ret_serial = match == NULL ? account->keys[0].serial : match->serial;
	return 0;
}

static int
sign(struct pn_wechat_sample_job *job, const struct pn_private_key *key,
    struct pn_str timestamp, struct pn_str nonce, struct pn_str body,
    struct pn_str *ret_signature)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf message = pn_buf_init(WECHAT_SAMPLE_BYTES_MAX * 3);
	struct pn_str probe;
	int r;

	if (pn_wechat_sample_is(job, "probe")) {
		probe =
		    pn_wechat_sample_text(job, "probe", job->sample->attempt,
			PN_WECHAT_ALNUM "+/", WECHAT_PROBE_CHARS);
		*ret_signature = pn_arena_printf(job->arena,
		    "WECHATPAY/SIGNTEST/" PN_STR_FMT, PN_STR_ARG(probe));
		return probe.data == NULL || ret_signature->data == NULL
			   ? -ENOMEM
			   : 0;
	}
	pn_buf_add_str(&message, timestamp);
	pn_buf_add_char(&message, '\n');
	pn_buf_add_str(&message, nonce);
	pn_buf_add_char(&message, '\n');
	pn_buf_add_str(&message, body);
	pn_buf_add_char(&message, '\n');
	if (pn_buf_failed(&message))
		return -ENOMEM;
	r = pn_private_key_sign(key, PN_RSA_SHA256, pn_buf_str(&message),
	    job->arena, ret_signature);
	if (r < 0 || !pn_wechat_sample_is(job, "wrong-key") ||
	    job->sample->sign_key != NULL)
		return r;
	*ret_signature = pn_arena_printf(job->arena, "%c" PN_STR_FMT,
	    ret_signature->data[0] == 'A' ? 'B' : 'A',
	    (int)ret_signature->len - 1, ret_signature->data + 1);
	return ret_signature->data == NULL ? -ENOMEM : 0;
}

static int
headers_add(struct pn_wechat_sample_job *job, struct pn_request *request)
{
	const struct pn_private_key *key = job->sample->sign_key;
	struct pn_header *h;
	struct pn_str timestamp, nonce, serial, signature;
	size_t n = 0;
	int r;

	if (key == NULL)
		key = job->account->sign_key;
	if (key == NULL)
		return pn_error_set(job->error, -EINVAL,
		    "the account has no test_private_key to sign APIv3 with");
	timestamp = pn_arena_printf(
	    job->arena, "%" PRId64, job->sent_us / PN_SECOND_US);
	nonce = pn_wechat_sample_text(job, "header nonce", job->sample->attempt,
	    PN_WECHAT_ALNUM, WECHAT_NONCE_CHARS);
	h = pn_arena_alloc(job->arena, WECHAT_HEADERS * sizeof(*h));
	if (timestamp.data == NULL || nonce.data == NULL || h == NULL)
		return -ENOMEM;
	r = serial_find(job, key, &serial);
	if (r == 0)
		r = sign(job, key, timestamp, nonce, request->body, &signature);
	if (r != 0)
		return r;
	h[n++] =
	    (struct pn_header){ PN_STR("User-Agent"), PN_STR("Mozilla/4.0") };
	h[n++] = (struct pn_header){ PN_STR("Accept"), PN_STR("*/*") };
	h[n++] = (struct pn_header){ PN_STR("Content-Type"),
		PN_STR("application/json") };
	if (!pn_wechat_sample_is(job, "no-headers")) {
		h[n++] = (struct pn_header){ PN_STR("Wechatpay-Timestamp"),
			timestamp };
		h[n++] = (struct pn_header){ PN_STR("Wechatpay-Nonce"), nonce };
		h[n++] =
		    (struct pn_header){ PN_STR("Wechatpay-Serial"), serial };
		h[n++] = (struct pn_header){ PN_STR("Wechatpay-Signature-Type"),
			PN_STR("WECHATPAY2-SHA256-RSA2048") };
		if (!pn_wechat_sample_is(job, "no-sign"))
			h[n++] =
			    (struct pn_header){ PN_STR("Wechatpay-Signature"),
				    signature };
	}
	request->headers = h;
	request->header_count = n;
	return 0;
}

/* What a relay or a forger does: other bytes than were signed. The last "}" is
 * followed by a blank, so that the JSON stays JSON. */
static int
tamper(struct pn_wechat_sample_job *job, struct pn_request *request)
{
	if (!pn_wechat_sample_is(job, "tampered"))
		return 0;
	request->body = pn_arena_printf(
	    job->arena, PN_STR_FMT " ", PN_STR_ARG(request->body));
	return request->body.data == NULL ? -ENOMEM : 0;
}

int
pn_wechat_sample_v3(
    struct pn_wechat_sample_job *job, struct pn_request *ret_request)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf plain = pn_buf_init(WECHAT_SAMPLE_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf body = pn_buf_init(WECHAT_SAMPLE_BYTES_MAX * 2);
	int r;

	pn_wechat_sample_plain(&plain, job);
	if (pn_buf_failed(&plain))
		return -ENOMEM;
	r = envelope_add(job, pn_buf_str(&plain), &body);
	if (r < 0)
		return r;
	if (pn_buf_failed(&body))
		return -ENOMEM;
	ret_request->body = pn_arena_copy(job->arena, pn_buf_str(&body));
	if (ret_request->body.data == NULL)
		return -ENOMEM;
	r = headers_add(job, ret_request);
	return r != 0 ? r : tamper(job, ret_request);
}
