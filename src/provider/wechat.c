/*
 * WeChat Pay (微信支付): the account, and which dialect a request speaks.
 *
 * Both dialects come to the same address. A body that begins with "<" is APIv2
 * (XML, signed with a shared key); anything else is APIv3 (JSON, signed with
 * RSA, encrypted), also when a proxy took its headers away. The dialect of the
 * answer follows from that and from nothing else, so a broken message is
 * refused in the words of the interface that sent it.
 *
 * Keys are parsed once, here. An account is immutable after that and read by
 * any thread without a lock. Key lists are short (a rotation has two), so a
 * serial is found by looking at each: no table to keep right.
 *
 * Deliberately not here: downloading certificates. An unknown serial is
 * refused and nothing is fetched because of it; a stranger could make the
 * daemon call WeChat otherwise. And a certificate that is not valid yet is
 * used all the same: WeChat does not sign with one, so such a signature only
 * says that a clock is wrong.
 */
#include "provider_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "wechat_internal.h"

static const char *const evidence_headers[] = {
	"Wechatpay-Timestamp",
	"Wechatpay-Nonce",
	"Wechatpay-Serial",
	"Wechatpay-Signature",
	"Wechatpay-Signature-Type",
	"Request-ID",
	"Content-Type",
	NULL,
};

static void
account_close(void *account_pointer)
{
	struct pn_wechat_account *account = account_pointer;

	if (account == NULL)
		return;
	for (size_t i = 0; i < account->key_count; i++)
		pn_public_key_unref(account->keys[i].key);
	for (size_t i = 0; i < account->v2_key_count; i++)
		pn_secret_done(&account->v2_keys[i].req_info_key);
	pn_private_key_free(account->sign_key);
	free(account);
}

static void
account_closep(struct pn_wechat_account **account)
{
	account_close(*account);
}

static int
place_error(
    struct pn_error *error, const struct pn_conf_file *file, const char *text)
{
	return pn_error_set(error, -EINVAL, "%s:%d: %s", file->place.file,
	    file->place.line, text);
}

/* The same key named twice does no harm; one name for two keys would make the
 * verdict depend on their order. */
static int
key_add(struct pn_wechat_account *account, const struct pn_conf_file *file,
    struct pn_str serial, struct pn_public_key *key, struct pn_error *error)
{
	for (size_t i = 0; i < account->key_count; i++) {
		const struct pn_wechat_key *other = &account->keys[i];

		if (pn_str_equal(other->serial, serial) &&
		    memcmp(pn_public_key_fingerprint(other->key),
			pn_public_key_fingerprint(key), PN_SHA256_BYTES) != 0)
			return pn_error_set(error, -EINVAL,
			    "%s:%d: \"" PN_STR_FMT
			    "\" is the name of another key already",
			    file->place.file, file->place.line,
			    PN_STR_ARG(serial));
	}
	if (account->key_count == PN_COUNT(account->keys))
		return place_error(error, file, "too many keys");
	account->keys[account->key_count++] = (struct pn_wechat_key){
		.serial = serial,
		.key = pn_public_key_ref(key),
		.not_after_us = pn_public_key_not_after_us(key),
	};
	return 0;
}

static void
key_unrefp(struct pn_public_key **key)
{
	pn_public_key_unref(*key);
}

static int
open_public_key(struct pn_wechat_account *account,
    const struct pn_conf_file *file, struct pn_error *error)
{
	PN_CLEANUP(key_unrefp) struct pn_public_key *key = NULL;
	struct pn_str serial = pn_str_from(file->label);
	int r;

	if (serial.len == 0)
		return place_error(error, file,
		    "public_key must be written PUB_KEY_ID_...:FILE (the id "
		    "stands beside the key on the merchant platform; for a "
		    "certificate use platform_cert)");
	r = pn_public_key_parse(pn_conf_file_text(file), &key, error);
	if (r < 0)
		return pn_error_prefix(error, r,
		    "%s:%d: %s: ", file->place.file, file->place.line,
		    file->path);
	r = key_add(account, file, serial, key, error);
	if (r < 0)
		return r;
	/* A public key has no end, whatever wraps it. */
	account->keys[account->key_count - 1].not_after_us = PN_MOMENT_NONE;
	return 0;
}

static int
open_certificate(struct pn_wechat_account *account,
    const struct pn_conf_file *file, struct pn_error *error)
{
	PN_CLEANUP(key_unrefp) struct pn_public_key *key = NULL;
	int r;

	r = pn_public_key_parse(pn_conf_file_text(file), &key, error);
	if (r < 0)
		return pn_error_prefix(error, r,
		    "%s:%d: %s: ", file->place.file, file->place.line,
		    file->path);
	if (pn_public_key_serial(key) == NULL)
		return place_error(error, file,
		    "platform_cert is not a certificate but a bare key (write "
		    "public_key = PUB_KEY_ID_...:FILE for WeChat Pay's public "
		    "key)");
	return key_add(
	    account, file, pn_str_from(pn_public_key_serial(key)), key, error);
}

static int
check_v3_key(const struct pn_conf_file *file, struct pn_error *error)
{
	if (file->content.len == PN_AES256_KEY_BYTES)
		return 0;
	return pn_error_set(error, -EINVAL,
	    "%s:%d: %s: an APIv3 key has 32 bytes, this file has %zu",
	    file->place.file, file->place.line, file->path, file->content.len);
}

/* req_info is encrypted with the 32 characters of the hex of the MD5, leading
 * zeros and all: not with the 16 bytes. */
static int
open_v2_key(struct pn_wechat_account *account, const struct pn_conf_file *file,
    struct pn_error *error)
{
	static const struct pn_str label = PN_STR("paynotify-v2:");
	struct pn_wechat_v2_key *v2 = &account->v2_keys[account->v2_key_count];
	PN_CLEANUP(pn_buf_done)
	struct pn_buf named = pn_buf_init(PN_KEY_FILE_BYTES_MAX * 2);
	struct pn_str secret = pn_conf_file_text(file);
	unsigned char md5[PN_MD5_BYTES];
	char hex[2 * PN_MD5_BYTES + 1];
	int r;

	if (secret.len == 0)
		return place_error(error, file, "the APIv2 key is empty");
	for (size_t i = 0; i < secret.len; i++)
		if (secret.data[i] < 0x21 || secret.data[i] > 0x7e)
			return place_error(error, file,
			    "an APIv2 key is one line of letters and digits, "
			    "without blanks");
	if (account->v2_key_count == PN_COUNT(account->v2_keys))
		return place_error(error, file, "too many keys");
	pn_buf_add_str(&named, label);
	pn_buf_add_str(&named, secret);
	if (pn_buf_failed(&named))
		return -ENOMEM;
	pn_sha256(pn_buf_str(&named), v2->fingerprint);
	pn_md5(secret, md5);
	pn_hex_lower(md5, sizeof(md5), hex);
	r = pn_secret_set(&v2->req_info_key, hex, 2 * PN_MD5_BYTES);
	explicit_bzero(md5, sizeof(md5));
	explicit_bzero(hex, sizeof(hex));
	if (r < 0)
		return r;
	v2->secret = &file->content;
	account->v2_key_count++;
	return 0;
}

static int
open_sign_key(struct pn_wechat_account *account,
    const struct pn_conf_files *files, struct pn_error *error)
{
	const struct pn_conf_file *file;
	int r;

	if (files->count == 0)
		return 0;
	file = &files->files[0];
	r = pn_private_key_parse(
	    pn_conf_file_text(file), &account->sign_key, error);
	if (r < 0)
		return pn_error_prefix(error, r,
		    "%s:%d: %s: ", file->place.file, file->place.line,
		    file->path);
	return 0;
}

/* What no single option can tell: the two halves of APIv3 belong together, and
 * an account must be able to verify something. */
static int
check_whole(const struct pn_wechat_account *account, struct pn_error *error)
{
	const struct pn_conf_place *place = &account->conf->place;
	bool has_v3_key = account->options->api_v3_key_file.count > 0;

	if (account->key_count == 0 && has_v3_key)
		return pn_error_set(error, -EINVAL,
		    "%s:%d: api_v3_key_file needs a public_key or "
		    "platform_cert to verify with",
		    place->file, place->line);
	if (account->key_count > 0 && !has_v3_key)
		return pn_error_set(error, -EINVAL,
		    "%s:%d: public_key and platform_cert need an "
		    "api_v3_key_file to decrypt with",
		    place->file, place->line);
	if (account->key_count == 0 && account->v2_key_count == 0)
		return pn_error_set(error, -EINVAL,
		    "%s:%d: no keys: give public_key or platform_cert with "
		    "api_v3_key_file, or api_v2_key_file",
		    place->file, place->line);
	return 0;
}

static int
open_keys(struct pn_wechat_account *account, struct pn_error *error)
{
	const struct pn_conf_wechat *options = account->options;
	int r;

	for (size_t i = 0; i < options->public_key.count; i++) {
		r = open_public_key(
		    account, &options->public_key.files[i], error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < options->platform_cert.count; i++) {
		r = open_certificate(
		    account, &options->platform_cert.files[i], error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < options->api_v3_key_file.count; i++) {
		r = check_v3_key(&options->api_v3_key_file.files[i], error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < options->api_v2_key_file.count; i++) {
		r = open_v2_key(
		    account, &options->api_v2_key_file.files[i], error);
		if (r < 0)
			return r;
	}
	return open_sign_key(account, &account->conf->test_private_key, error);
}

static int
account_open(const struct pn_conf_account *conf, void **ret_account,
    struct pn_error *ret_error)
{
	PN_CLEANUP(account_closep) struct pn_wechat_account *account = NULL;
	int r;

	account = calloc(1, sizeof(*account));
	if (account == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	account->conf = conf;
	account->options = &conf->wechat;
	account->tenant = pn_str_from(conf->tenant);
	if (conf->wechat.mchid.count != 1 ||
	    conf->wechat.mchid.values[0][0] == '\0')
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: an account has exactly one mchid", conf->place.file,
		    conf->place.line);
	account->mchid = pn_str_from(conf->wechat.mchid.values[0]);
	r = open_keys(account, ret_error);
	if (r == 0)
		r = check_whole(account, ret_error);
	if (r < 0)
		return r;
	*ret_account = account;
	account = NULL; /* the caller's now */
	return 0;
}

static int
account_keys(const void *account_pointer,
    int (*visit)(
	void *payload, const unsigned char *fingerprint, const char *pem),
    void *payload)
{
	const struct pn_wechat_account *account = account_pointer;
	int r;

	for (size_t i = 0; i < account->key_count; i++) {
		const struct pn_public_key *key = account->keys[i].key;

		r = visit(payload, pn_public_key_fingerprint(key),
		    pn_public_key_pem(key));
		if (r != 0)
			return r;
	}
	for (size_t i = 0; i < account->v2_key_count; i++) {
		r = visit(payload, account->v2_keys[i].fingerprint, NULL);
		if (r != 0)
			return r;
	}
	return 0;
}

static int
account_certificates(const void *account_pointer,
    int (*visit)(void *payload, const char *serial, int64_t not_after_us),
    void *payload)
{
	const struct pn_wechat_account *account = account_pointer;
	int r = 0;

	for (size_t i = 0; i < account->key_count && r == 0; i++)
		if (account->keys[i].not_after_us != PN_MOMENT_NONE)
			r = visit(payload,
			    pn_public_key_serial(account->keys[i].key),
			    account->keys[i].not_after_us);
	return r;
}

static int
account_doubts(const void *account_pointer, const struct pn_doubts *doubts)
{
	static const struct pn_certificate_words words = {
		.ended = "what it signs is refused; add its successor as "
			 "another platform_cert",
		.ends = "add its successor as another platform_cert before",
	};
	const struct pn_wechat_account *account = account_pointer;
	const struct pn_conf_files *certificates =
	    &account->options->platform_cert;
	/* They were opened last. */
	size_t first = account->key_count - certificates->count;
	bool known = account->sign_key == NULL || account->key_count == 0;
	int r = 0;

	for (size_t i = 0; i < certificates->count && r == 0; i++)
		r = pn_doubt_certificate(doubts, &certificates->files[i],
		    "platform_cert", account->keys[first + i].key, &words);
	for (size_t i = 0; i < account->key_count && !known; i++)
		known = memcmp(pn_public_key_fingerprint(account->keys[i].key),
			    pn_private_key_fingerprint(account->sign_key),
			    PN_SHA256_BYTES) == 0;
	if (r == 0 && !known)
		r = pn_doubt_sample_key(doubts, account->conf,
		    "`paynotifyctl trigger` can sign no APIv3 with it; add "
		    "its public half as another public_key");
	return r;
}

static int
dialect_of(const struct pn_request *request)
{
	return pn_str_starts(request->body, "<") ? PN_WECHAT_V2 : PN_WECHAT_V3;
}

static int
verify(const void *account, const struct pn_request *request, int64_t now_us,
    struct pn_arena *arena, struct pn_notification *ret_notification)
{
	struct pn_wechat_job job = {
		.account = account,
		.request = request,
		.now_us = now_us,
		.arena = arena,
		.notification = ret_notification,
	};
	int r;

	*ret_notification = (struct pn_notification){
		.verdict = PN_VERDICT_ACCEPTED,
		.reason = "",
		.dialect = dialect_of(request),
		.signed_at_us = PN_MOMENT_NONE,
	};
	r = ret_notification->dialect == PN_WECHAT_V2
		? pn_wechat_v2_verify(&job)
		: pn_wechat_v3_verify(&job);
	return r < 0 ? r : 0;
}

static const struct pn_wechat_v2_key *
v2_key_of(
    const struct pn_wechat_account *account, const unsigned char *fingerprint)
{
	for (size_t i = 0; account != NULL && i < account->v2_key_count; i++)
		if (memcmp(account->v2_keys[i].fingerprint, fingerprint,
			PN_SHA256_BYTES) == 0)
			return &account->v2_keys[i];
	return NULL;
}

/* By the kind of the key that is on record, not by what the body looks like by
 * now. */
static int
reverify(const struct pn_request *request, struct pn_public_key *key,
    const void *account, const unsigned char *fingerprint,
    struct pn_arena *arena, const char **ret_reason)
{
	struct pn_notification notification = { .reason = "" };
	struct pn_wechat_job job = {
		.account = account,
		.request = request,
		.arena = arena,
		.notification = &notification,
	};
	const struct pn_wechat_v2_key *v2_key;
	int r;

	if (key != NULL) {
		r = pn_wechat_v3_reverify(&job, key);
	} else if (dialect_of(request) == PN_WECHAT_V3) {
		*ret_reason = "no public key is on record, and it is no APIv2 "
			      "message, which would need none";
		return PN_REVERIFY_WRONG;
	} else {
		v2_key = v2_key_of(account, fingerprint);
		if (v2_key == NULL)
			return PN_REVERIFY_NO_KEY;
		r = pn_wechat_v2_reverify(&job, v2_key);
	}
	if (r > 0)
		*ret_reason = notification.reason;
	return r > 0 ? PN_REVERIFY_WRONG : r;
}

const struct pn_provider pn_provider_wechat = {
	.name = "wechat",
	.evidence_headers = evidence_headers,
	.account_open = account_open,
	.account_close = account_close,
	.account_keys = account_keys,
	.account_certificates = account_certificates,
	.account_doubts = account_doubts,
	.verify = verify,
	.reverify = reverify,
	.dialect_of = dialect_of,
	.reply = pn_wechat_reply,
	.sample = pn_wechat_sample,
	.sample_events = pn_wechat_sample_events,
	.sample_oddities = pn_wechat_sample_oddities,
};
