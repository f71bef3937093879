/*
 * Alipay: form-encoded POSTs signed with RSA, answered by one word.
 *
 * verify() goes through the order of checks of DESIGN.md section 6, one step a
 * line: form, signature, then what the verified fields say. Up to the
 * signature nothing but the form is decoded; from there on every refusal keeps
 * `verified` set, so that what Alipay really sent is quarantined with its
 * payload and never dropped.
 *
 * Only the body counts. A query string is the merchant's own routing and not
 * signed; the Content-Type is not signed either and need not be right. Legacy
 * MAPI notifications have no app_id and are refused after their signature.
 *
 * An account is immutable after opening: keys are parsed once, here, and an
 * unreadable one is an error of the configuration, not of the first
 * notification. Dates of certificates are deliberately not looked at: Alipay
 * goes on signing with keys whose certificate has expired.
 */
#include "provider_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "paynotify/moment.h"

#include "alipay_internal.h"

enum { REFUSED = 1 };

static void account_close(void *account);

static int
refuse(struct pn_notification *notification, enum pn_verdict verdict,
    const char *reason)
{
	assert(reason != NULL);

	notification->verdict = verdict;
	notification->reason = reason;
	notification->event_count = 0;
	notification->alarm = false;
	return REFUSED;
}

/* --- accounts ---------------------------------------------------------- */

static int
at_place(struct pn_error *error, int r, const struct pn_conf_place *place,
    const char *key, const char *path)
{
	return pn_error_prefix(error, r, "%s:%d: %s %s: ",
	    place->file == NULL ? "configuration" : place->file, place->line,
	    key, path == NULL ? "" : path);
}

/* What the option table cannot check: counts that depend on each other. */
static int
check_conf(const struct pn_conf_account *conf, struct pn_error *ret_error)
{
	const struct pn_conf_alipay *alipay = &conf->alipay;
	const char *file =
	    conf->place.file == NULL ? "configuration" : conf->place.file;

	if (alipay->app_id.count == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: [alipay %s] needs app_id", file, conf->place.line,
		    conf->tenant);
	if (alipay->public_key.count == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: [alipay %s] needs public_key: Alipay's key of this "
		    "application, not the merchant's own",
		    file, conf->place.line, conf->tenant);
	if (alipay->public_key.count > PN_ACCOUNT_KEYS_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: [alipay %s] has more than %d public_key", file,
		    conf->place.line, conf->tenant, PN_ACCOUNT_KEYS_MAX);
	if (alipay->app_id.count > 1 && alipay->seller_id.count == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: [alipay %s] has several app_id and needs "
		    "seller_id: one account is one seller",
		    file, conf->place.line, conf->tenant);
	return 0;
}

static int
parse_keys(struct pn_alipay *account, struct pn_error *ret_error)
{
	const struct pn_conf_files *files = &account->conf->alipay.public_key;
	const struct pn_conf_files *samples = &account->conf->test_private_key;
	int r;

	account->keys = calloc(files->count, sizeof(*account->keys));
	if (account->keys == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	for (size_t i = 0; i < files->count; i++) {
		const struct pn_conf_file *file = &files->files[i];

		r = pn_public_key_parse(
		    pn_conf_file_text(file), &account->keys[i], ret_error);
		if (r < 0)
			return at_place(ret_error, r, &file->place,
			    "public_key", file->path);
		account->key_count++;
	}
	if (samples->count > 0) {
		r = pn_private_key_parse(pn_conf_file_text(&samples->files[0]),
		    &account->sample_key, ret_error);
		if (r < 0)
			return at_place(ret_error, r, &samples->files[0].place,
			    "test_private_key", samples->files[0].path);
	}
	return 0;
}

static int
account_open(const struct pn_conf_account *conf, void **ret_account,
    struct pn_error *ret_error)
{
	struct pn_alipay *account;
	int r;

	assert(conf != NULL && conf->tenant != NULL);

	r = check_conf(conf, ret_error);
	if (r < 0)
		return r;
	account = calloc(1, sizeof(*account));
	if (account == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	account->conf = conf;
	account->hash =
	    conf->alipay.sign_type == PN_SIGN_RSA ? PN_RSA_SHA1 : PN_RSA_SHA256;
	r = parse_keys(account, ret_error);
	if (r < 0) {
		account_close(account);
		return r;
	}
	*ret_account = account;
	return 0;
}

static void
account_close(void *account)
{
	struct pn_alipay *alipay = account;

	if (alipay == NULL)
		return;
	for (size_t i = 0; i < alipay->key_count; i++)
		pn_public_key_unref(alipay->keys[i]);
	free(alipay->keys);
	pn_private_key_free(alipay->sample_key);
	free(alipay);
}

static int
account_keys(const void *account,
    int (*visit)(
	void *payload, const unsigned char *fingerprint, const char *pem),
    void *payload)
{
	const struct pn_alipay *alipay = account;
	int r = 0;

	for (size_t i = 0; i < alipay->key_count && r == 0; i++)
		r = visit(payload, pn_public_key_fingerprint(alipay->keys[i]),
		    pn_public_key_pem(alipay->keys[i]));
	return r;
}

static int
account_doubts(const void *account, const struct pn_doubts *doubts)
{
	static const struct pn_certificate_words words = {
		.ended = "it goes on verifying; where Alipay has a newer one, "
			 "add that as another public_key",
	};
	const struct pn_alipay *alipay = account;
	const struct pn_conf_account *conf = alipay->conf;
	bool known = alipay->sample_key == NULL;
	int r = 0;

	for (size_t i = 0; i < alipay->key_count && r == 0; i++) {
		known =
		    known || memcmp(pn_public_key_fingerprint(alipay->keys[i]),
				 pn_private_key_fingerprint(alipay->sample_key),
				 PN_SHA256_BYTES) == 0;
		r = pn_doubt_certificate(doubts,
		    &conf->alipay.public_key.files[i], "public_key",
		    alipay->keys[i], &words);
	}
	if (r == 0 && !known)
		r = pn_doubt_sample_key(doubts, conf,
		    "what `paynotifyctl trigger` signs is refused; add its "
		    "public half as another public_key");
	return r;
}

/* --- verification ------------------------------------------------------ */

/* The value if it is one visible ASCII word: fit for a receipt even when
 * nothing is verified. */
static struct pn_str
plain(struct pn_str value)
{
	if (value.len > PN_ID_BYTES_MAX)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] < 0x21 || value.data[i] > 0x7e)
			return (struct pn_str){ NULL, 0 };
	}
	return value;
}

static int
decode(const struct pn_request *request, struct pn_arena *arena,
    struct pn_alipay_message *message, struct pn_notification *notification)
{
	struct pn_error error;
	struct pn_str reason;
	int r;

	if (!pn_str_is(request->method, "POST"))
		return refuse(notification, PN_VERDICT_MALFORMED,
		    "not a POST: a notification comes in a body");
	r = pn_form_parse(arena, request->body, &message->raw, &error);
	if (r < 0)
		return r;
	if (r > 0) {
		reason = pn_arena_copy(arena, pn_str_from(error.text));
		if (reason.data == NULL)
			return -ENOMEM;
		return refuse(notification, PN_VERDICT_MALFORMED, reason.data);
	}
	notification->notify_id =
	    plain(pn_form_get(&message->raw, "notify_id"));
	notification->out_trade_no =
	    plain(pn_form_get(&message->raw, "out_trade_no"));
	return 0;
}

static int
check_signature(const struct pn_alipay *account, struct pn_arena *arena,
    struct pn_alipay_message *message, struct pn_notification *notification)
{
	const struct pn_public_key *key;
	const char *reason;
	int r;

	if (pn_form_get(&message->raw, "sign").len == 0)
		return refuse(notification, PN_VERDICT_MALFORMED,
		    "sign is missing or empty");
	r = pn_alipay_verify_sign(
	    account, &message->raw, arena, &message->rule, &key, &reason);
	if (r < 0)
		return r;
	if (r > 0)
		return refuse(notification, PN_VERDICT_BAD_SIGNATURE, reason);
	notification->verified = true;
	notification->key = key;
	memcpy(notification->key_fingerprint, pn_public_key_fingerprint(key),
	    sizeof(notification->key_fingerprint));
	return 0;
}

static bool
is_one_of(const struct pn_conf_strings *strings, struct pn_str value)
{
	for (size_t i = 0; i < strings->count; i++) {
		if (pn_str_is(value, strings->values[i]))
			return true;
	}
	return false;
}

static int
check_account(const struct pn_alipay *account,
    const struct pn_alipay_message *message,
    struct pn_notification *notification)
{
	const struct pn_conf_alipay *conf = &account->conf->alipay;
	struct pn_str app_id = pn_form_get(&message->text, "app_id");
	struct pn_str seller_id = pn_form_get(&message->text, "seller_id");

	if (app_id.len == 0)
		return refuse(notification, PN_VERDICT_MALFORMED,
		    "app_id is missing or empty");
	if (!is_one_of(&conf->app_id, app_id))
		return refuse(notification, PN_VERDICT_WRONG_ACCOUNT,
		    "app_id is not of this account");
	if (seller_id.len > 0 && conf->seller_id.count > 0 &&
	    !is_one_of(&conf->seller_id, seller_id))
		return refuse(notification, PN_VERDICT_WRONG_ACCOUNT,
		    "seller_id is not of this account");
	return 0;
}

/* notify_time is when this attempt was sent, in whole seconds. */
static int64_t
signed_at(const struct pn_alipay_message *message)
{
	int64_t us;

	if (pn_moment_parse_beijing(
		pn_form_get(&message->text, "notify_time"), &us) != 0)
		return PN_MOMENT_NONE;
	return us;
}

/* From here on the signature was right. */
static int
read_verified(const struct pn_alipay *account, const struct pn_request *request,
    struct pn_arena *arena, struct pn_alipay_message *message,
    struct pn_notification *notification)
{
	const char *reason;
	int r;

	r = pn_alipay_to_text(message, request, arena);
	if (r != 0)
		return r;
	r = pn_alipay_payload(message, arena, &notification->payload);
	if (r != 0)
		return r;
	r = pn_alipay_check_fields(message, arena, &reason);
	if (r < 0)
		return r;
	if (r > 0)
		return refuse(notification, PN_VERDICT_MALFORMED, reason);
	notification->out_trade_no =
	    pn_form_get(&message->text, "out_trade_no");
	notification->signed_at_us = signed_at(message);
	r = check_account(account, message, notification);
	if (r != 0)
		return r;
	r = pn_alipay_events(account, message, arena, notification, &reason);
	if (r > 0)
		return refuse(notification, PN_VERDICT_MALFORMED, reason);
	return r;
}

static int
verify(const void *account, const struct pn_request *request, int64_t now_us,
    struct pn_arena *arena, struct pn_notification *ret_notification)
{
	struct pn_alipay_message message = { .raw = { NULL, 0 } };
	int r;

	/* Not every kind of message has a time of sending: there is no window. */
	(void)now_us;

	*ret_notification = (struct pn_notification){
		.verdict = PN_VERDICT_ACCEPTED,
		.reason = "",
		.signed_at_us = PN_MOMENT_NONE,
	};
	r = decode(request, arena, &message, ret_notification);
	if (r == 0)
		r = check_signature(account, arena, &message, ret_notification);
	if (r == 0)
		r = read_verified(
		    account, request, arena, &message, ret_notification);
	if (r > 0 && message.text.count > 0)
		r = pn_alipay_witness(
		    &message, arena, &ret_notification->witness);
	if (r < 0)
		return r;
	assert((ret_notification->verdict == PN_VERDICT_ACCEPTED) ==
	       (ret_notification->event_count > 0));
	return 0;
}

/* The algorithm that was configured then is not on record. Either is believed:
 * whoever could make a SHA-1 signature of Alipay's key is not the one to change
 * what is stored. */
static int
reverify(const struct pn_request *request, struct pn_public_key *key,
    const void *account, const unsigned char *fingerprint,
    struct pn_arena *arena, const char **ret_reason)
{
	struct pn_alipay alone = { .keys = &key, .key_count = 1 };
	struct pn_alipay_message message = { .raw = { NULL, 0 } };
	struct pn_notification notification = { .reason = "" };
	int r;

	(void)account;
	(void)fingerprint;
	if (key == NULL) {
		*ret_reason = "no public key is on record, and Alipay has no "
			      "other kind";
		return PN_REVERIFY_WRONG;
	}
	r = decode(request, arena, &message, &notification);
	for (int i = 0; r == 0 && i < 2; i++) {
		alone.hash = i == 0 ? PN_RSA_SHA256 : PN_RSA_SHA1;
		r = check_signature(&alone, arena, &message, &notification);
		if (r == 0)
			break;
		if (r == REFUSED && i == 0 &&
		    notification.verdict == PN_VERDICT_BAD_SIGNATURE)
			r = 0;
	}
	if (r == REFUSED)
		*ret_reason = notification.reason;
	return r;
}

/* --- replies ----------------------------------------------------------- */

static int
dialect_of(const struct pn_request *request)
{
	(void)request;
	return 0;
}

/* Exactly these bytes: Alipay takes anything else, a newline too, for a
 * failure, and reads no detail. */
static int
reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply)
{
	assert(dialect == 0 && outcome < PN_OUTCOME_COUNT);
	(void)dialect;
	(void)message;
	(void)arena;

	*ret_reply = (struct pn_reply){
		.body = outcome == PN_OUTCOME_SUCCESS ? PN_STR("success")
						      : PN_STR("fail"),
		.content_type = "text/plain",
	};
	return 0;
}

/* The charset that a conversion may have gone by. */
static const char *const evidence_headers[] = { "Content-Type", NULL };

const struct pn_provider pn_provider_alipay = {
	.name = "alipay",
	.evidence_headers = evidence_headers,
	.account_open = account_open,
	.account_close = account_close,
	.account_keys = account_keys,
	.account_doubts = account_doubts,
	.verify = verify,
	.reverify = reverify,
	.dialect_of = dialect_of,
	.reply = reply,
	.sample = pn_alipay_sample,
	.sample_events = pn_alipay_sample_events,
	.sample_oddities = pn_alipay_sample_oddities,
};
