/*
 * A provider to copy from: small, complete, and fictitious. README.md beside
 * this file goes through it step by step. It is compiled and tested always, but
 * stands in the registry only in a build with PN_TEMPLATE_PROVIDER, so that no
 * operator can configure it by accident.
 *
 * What it would look like on the wire:
 *
 *   X-Template-Timestamp: 1772330405
 *   X-Template-Signature: hex of HMAC-SHA256(secret, timestamp "." body)
 *
 *   {"id":"n1","type":"payment.succeeded","merchant":"M1","order":"T1",
 *    "transaction":"X1","amount":8888,"currency":"CNY",
 *    "time":"2026-03-01T10:00:05+08:00"}
 *
 * What is signed and of another type is an event "template.<type>" under its id,
 * with an alarm: nothing verified is dropped.
 *
 * Pure, as every provider: bytes, keys and a time come in, a verdict goes out.
 * An account is immutable and read by any thread.
 */
#include "template_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "paynotify/buf.h"
#include "paynotify/encode.h"
#include "paynotify/json.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

/* A header of 11 digits lasts until the year 5138. */
static const uint64_t timestamp_s_max = UINT64_C(99999999999);
static const int64_t tolerance_us = 300 * PN_SECOND_US;

/* -- the account ------------------------------------------------------------- */

/* A secret's fingerprint is on record for ever, so it must not be the plain
 * digest of what may be guessed. */
static int
account_open(const struct pn_conf_account *conf, void **ret_account,
    struct pn_error *ret_error)
{
	struct pn_template *account = calloc(1, sizeof(*account));

	if (account == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	account->conf = conf;
	account->secret = &conf->template.secret_file.files[0].content;
	pn_hmac_sha256(account->secret, PN_STR("paynotify-template"),
	    account->fingerprint);
	*ret_account = account;
	return 0;
}

static int
account_keys(const void *account,
    int (*visit)(
	void *payload, const unsigned char *fingerprint, const char *pem),
    void *payload)
{
	return visit(
	    payload, ((const struct pn_template *)account)->fingerprint, NULL);
}

/* -- verifying: headers, time window, key and signature ------------------------ */

/* > 0: so that a check ends in `return refuse(...)`. */
static int
refuse(struct pn_notification *n, enum pn_verdict verdict, const char *reason)
{
	n->verdict = verdict;
	n->reason = reason;
	return 1;
}

int
pn_template_hmac(const struct pn_secret *secret, struct pn_str timestamp,
    struct pn_str body, unsigned char ret_digest[PN_SHA256_BYTES])
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(timestamp.len + 1 + PN_BODY_BYTES_MAX);

	pn_buf_add_str(&text, timestamp);
	pn_buf_add_char(&text, '.');
	pn_buf_add_str(&text, body);
	if (pn_buf_failed(&text))
		return -ENOMEM;
	pn_hmac_sha256(secret, pn_buf_str(&text), ret_digest);
	return 0;
}

/* now_us PN_MOMENT_NONE: whatever the time. */
static int
authenticate(const struct pn_template *account,
    const struct pn_request *request, int64_t now_us, struct pn_notification *n)
{
	unsigned char given[PN_SHA256_BYTES], made[PN_SHA256_BYTES];
	struct pn_str timestamp, signature;
	uint64_t seconds;
	int64_t age_us;

	if (pn_request_header(request, PN_TEMPLATE_TIMESTAMP, &timestamp) !=
		1 ||
	    pn_request_header(request, PN_TEMPLATE_SIGNATURE, &signature) !=
		1 ||
	    pn_parse_uint(timestamp, timestamp_s_max, &seconds) != 0)
		return refuse(n, PN_VERDICT_MALFORMED,
		    "timestamp and signature must be there once each");
	age_us = now_us == PN_MOMENT_NONE
		     ? 0
		     : now_us - (int64_t)seconds * PN_SECOND_US;
	if (age_us > tolerance_us || age_us < -tolerance_us)
		return refuse(
		    n, PN_VERDICT_STALE, "timestamp is too far from now");
	if (pn_hex_decode(signature, given, sizeof(given)) != 0)
		return refuse(n, PN_VERDICT_BAD_SIGNATURE,
		    "signature is not hex of a SHA-256");
	if (pn_template_hmac(account->secret, timestamp, request->body, made) <
	    0)
		return -ENOMEM;
	if (!pn_equal_constant_time(
		(struct pn_str){ (const char *)made, sizeof(made) },
		(struct pn_str){ (const char *)given, sizeof(given) }))
		return refuse(n, PN_VERDICT_BAD_SIGNATURE,
		    "signature does not match the body");
	memcpy(n->key_fingerprint, account->fingerprint, PN_SHA256_BYTES);
	n->verified = true; /* from here on it is never dropped */
	return 0;
}

/* -- parsing: decode, account, event ------------------------------------------- */

/* A copy of each text, since the document is freed before they are used; "" when
 * absent. 1: one is too long. */
static int
take_texts(struct pn_arena *arena, const json_t *object, size_t count,
    const char *const *names, struct pn_str *const *ret_texts)
{
	for (size_t i = 0; i < count; i++) {
		struct pn_str text = pn_json_text(object, names[i]);

		if (text.len > PN_ID_BYTES_MAX)
			return 1;
		*ret_texts[i] =
		    pn_arena_copy(arena, text.data == NULL ? PN_STR("") : text);
		if (ret_texts[i]->data == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* The key is what makes an event once and for ever: ids of the provider, each a
 * component of its own. */
static int
set_key(struct pn_arena *arena, const char *prefix, struct pn_str id,
    struct pn_event *event)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf key = pn_buf_init(PN_KEY_BYTES_MAX);

	pn_buf_add_text(&key, prefix);
	pn_event_key_add(&key, id);
	if (pn_buf_failed(&key))
		return -ENOMEM;
	event->key = pn_arena_copy(arena, pn_buf_str(&key));
	return event->key.data == NULL ? -ENOMEM : 0;
}

static int
classify(struct pn_arena *arena, const json_t *object, struct pn_str type,
    struct pn_event *event, struct pn_notification *n)
{
	if (!pn_str_is(type, "payment.succeeded")) {
		n->alarm = true;
		event->type = pn_arena_printf(
		    arena, "template." PN_STR_FMT, PN_STR_ARG(type));
		return event->type.data == NULL
			   ? -ENOMEM
			   : set_key(arena,
				 "webhook:template:notify:", n->notify_id,
				 event);
	}
	if (event->transaction_id.len == 0 || event->out_trade_no.len == 0 ||
	    pn_json_int64(object, "amount", &event->amount.minor) != 0 ||
	    event->amount.minor < 0)
		return refuse(n, PN_VERDICT_MALFORMED,
		    "order, transaction or amount is missing or wrong");
	event->amount.present = true;
	event->order_amount = event->amount;
	event->type = PN_STR("payment.succeeded");
	return set_key(
	    arena, "webhook:template:", event->transaction_id, event);
}

static int
take_event(const struct pn_template *account, const json_t *object,
    struct pn_arena *arena, struct pn_event *event, struct pn_notification *n)
{
	static const char *const names[] = { "id", "type", "merchant", "order",
		"transaction", "currency" };
	struct pn_str type;
	struct pn_str *const texts[] = { &n->notify_id, &type, &event->merchant,
		&event->out_trade_no, &event->transaction_id,
		&event->currency };
	int r = take_texts(arena, object, PN_COUNT(names), names, texts);

	if (r < 0)
		return r;
	if (r > 0 || n->notify_id.len == 0 || type.len == 0)
		return refuse(n, PN_VERDICT_MALFORMED,
		    "id or type is missing, or an id is too long");
	n->out_trade_no = event->out_trade_no;
	event->account = event->merchant;
	if (!pn_str_is(
		event->merchant, account->conf->template.merchant.values[0]))
		return refuse(n, PN_VERDICT_WRONG_ACCOUNT,
		    "merchant is not this account's");
	if (event->currency.len == 0)
		event->currency = PN_STR("CNY");
	if (pn_moment_parse_rfc3339(
		pn_json_text(object, "time"), &event->occurred_at_us) != 0)
		event->occurred_at_us = PN_MOMENT_NONE;
	return classify(arena, object, type, event, n);
}

static int
parse(const struct pn_template *account, struct pn_str body,
    struct pn_arena *arena, struct pn_notification *n)
{
	PN_CLEANUP(pn_json_freep) json_t *object = NULL;
	struct pn_event *event = pn_arena_alloc(arena, sizeof(*event));
	int r = pn_json_parse(body, &object, NULL);

	if (event == NULL || r < 0)
		return -ENOMEM;
	if (r > 0 || !json_is_object(object))
		return refuse(
		    n, PN_VERDICT_MALFORMED, "the body is not a JSON object");
	n->payload = pn_json_sanitise(arena, body);
	if (n->payload.data == NULL)
		return -ENOMEM;
	*event = (struct pn_event){
		.provider = PN_STR("template"),
		.tenant = pn_str_from(account->conf->tenant),
		.route = PN_STR("notify/template"),
		.livemode = !account->conf->test,
	};
	r = take_event(account, object, arena, event, n);
	if (r != 0)
		return r;
	pn_event_seal(event);
	n->events = event;
	n->event_count = 1;
	return 0;
}

static int
verify(const void *account, const struct pn_request *request, int64_t now_us,
    struct pn_arena *arena, struct pn_notification *ret_notification)
{
	int r;

	*ret_notification = (struct pn_notification){ .reason = "" };
	r = authenticate(account, request, now_us, ret_notification);
	if (r == 0)
		r = parse(account, request->body, arena, ret_notification);
	return r < 0 ? r : 0;
}

/* Years later: the signature alone. */
static int
reverify(const struct pn_request *request, struct pn_public_key *key,
    const void *account, const unsigned char fingerprint[PN_SHA256_BYTES],
    struct pn_arena *arena, const char **ret_reason)
{
	const struct pn_template *template = account;
	struct pn_notification n = { .reason = "" };
	int r;

	(void)key; /* there is none: it signs with a secret */
	(void)arena;
	if (template == NULL ||
	    memcmp(template->fingerprint, fingerprint, PN_SHA256_BYTES) != 0)
		return PN_REVERIFY_NO_KEY;
	r = authenticate(template, request, PN_MOMENT_NONE, &n);
	if (r <= 0)
		return r;
	*ret_reason = n.reason;
	return PN_REVERIFY_WRONG;
}

/* -- the reply ------------------------------------------------------ */

static int
dialect_of(const struct pn_request *request)
{
	(void)request; /* it speaks one language only */
	return 0;
}

static int
reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply)
{
	(void)dialect;
	(void)message; /* this provider reads none */
	(void)arena;
	*ret_reply = (struct pn_reply){
		.body = outcome == PN_OUTCOME_SUCCESS ? PN_STR("ok")
						      : PN_STR("failed"),
		.content_type = "text/plain",
	};
	return 0;
}

const struct pn_provider pn_provider_template = {
	.name = "template",
	.evidence_headers = (const char *const[]){ PN_TEMPLATE_TIMESTAMP,
	    PN_TEMPLATE_SIGNATURE, "Content-Type", NULL },
	.account_open = account_open,
	.account_close = free,
	.account_keys = account_keys,
	.verify = verify,
	.reverify = reverify,
	.dialect_of = dialect_of,
	.reply = reply,
	.sample = pn_template_sample,
	.sample_events = (const char *const[]){ "payment.succeeded", NULL },
	.sample_oddities =
	    (const struct pn_sample_oddity[]){
		{ "tampered", "changed after signing: 401" }, { NULL, NULL } },
};
