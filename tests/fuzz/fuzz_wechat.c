/*
 * WeChat Pay's verify and parse over a raw capture, both dialects, with one
 * fixed account.
 *
 * No fuzzer signs or encrypts, so what stands before the interesting code is
 * replaced when this is linked (--wrap): every RSA signature and every sign is
 * right, and what does not decrypt is taken as if it were the plaintext. So a
 * mutation of the ciphertext of a seed is a mutation of the JSON, or of the
 * XML in req_info, that the account would see. The time window is open.
 *
 * What is tested is everything around that, and that the promises about an
 * accepted notification hold for any content whatever: keys, types and payload
 * are well-formed, no key twice, refusals have a reason.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "paynotify/buf.h"
#include "paynotify/capture.h"
#include "paynotify/cipher.h"
#include "paynotify/json.h"
#include "paynotify/moment.h"
#include "paynotify/provider.h"
#include "paynotify/xml.h"

/* Any key of 2048 bits: only its length counts here. */
static const char key_text[] =
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA402089Kuac5hrQDiCjwP"
    "Vz24GbgHIdMGp/kuQQvjvFYsMF3RwqkD+sJJvPscndJrb255DXlFB7f67AvGESwC"
    "vBurBO7HYY4cgbDjX8WKvQ6PiCVj5tF3MB0tuhcK5RrLtTVPHx5ppLMWx8sR3hGU"
    "P9qPJzyyIwr41Obxq9+nneN/u2y82gSMH73UWMxF0m13rQvCvqw3LXet8BPhiyw0"
    "GTGkcWc1t4UEP2HQcGZCKQGGUuX2h/HEvfRYGSWmhTPy7rmO/yKib3r+Ayko/olk"
    "NzSxXrYhrNRg0qC0J69bvaRoL6wSPxKlbhbtuUHrytdBV+R6K2j5/xelyyySOs6q"
    "WwIDAQAB";

/* As the golden cases have them, so that their ciphertexts decrypt. */
static const char v3_key[] = "golden-api-v3-key-of-32-bytes-01";
static const char v2_key[] = "golden0api0v2key0of0032bytes0001";
static char mchid[] = "1900000109", tenant[] = "case";
static char label_cert[] = "5157F09EFDC096DE15EBE81A47057A7200000001";
static char label_id[] = "PUB_KEY_ID_0119000001092026010100000000000001";

static struct pn_conf_account conf;
static struct pn_conf_file key_files[2], v3_file, v2_file;
static char *mchids[] = { mchid };
static void *account;

bool __wrap_pn_public_key_verify(const struct pn_public_key *key,
    enum pn_rsa_hash hash, struct pn_str message, struct pn_str signature);
bool __wrap_pn_equal_constant_time(struct pn_str a, struct pn_str b);
int __real_pn_aes_gcm_decrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len);
int __wrap_pn_aes_gcm_decrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len);
int __real_pn_aes_ecb_decrypt(const struct pn_secret *key,
    struct pn_str ciphertext, unsigned char *ret_plain, size_t *ret_len);
int __wrap_pn_aes_ecb_decrypt(const struct pn_secret *key,
    struct pn_str ciphertext, unsigned char *ret_plain, size_t *ret_len);

bool
__wrap_pn_public_key_verify(const struct pn_public_key *key,
    enum pn_rsa_hash hash, struct pn_str message, struct pn_str signature)
{
	assert(key != NULL && message.data != NULL && signature.len > 0);
	assert(hash == PN_RSA_SHA256);
	return true;
}

bool
__wrap_pn_equal_constant_time(struct pn_str a, struct pn_str b)
{
	assert(a.len > 0 && b.len > 0);
	return true;
}

static int
take_as_plain(struct pn_str text, unsigned char *ret_plain, size_t *ret_len)
{
	if (text.len > 0)
		memcpy(ret_plain, text.data, text.len);
	*ret_len = text.len;
	return 0;
}

int
__wrap_pn_aes_gcm_decrypt(const struct pn_secret *key, struct pn_str nonce,
    struct pn_str associated_data, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len)
{
	assert(nonce.len == PN_GCM_NONCE_BYTES);
	if (__real_pn_aes_gcm_decrypt(key, nonce, associated_data, ciphertext,
		ret_plain, ret_len) == 0)
		return 0;
	return take_as_plain(ciphertext, ret_plain, ret_len);
}

int
__wrap_pn_aes_ecb_decrypt(const struct pn_secret *key, struct pn_str ciphertext,
    unsigned char *ret_plain, size_t *ret_len)
{
	if (__real_pn_aes_ecb_decrypt(key, ciphertext, ret_plain, ret_len) == 0)
		return 0;
	return take_as_plain(ciphertext, ret_plain, ret_len);
}

static void
account_done(void)
{
	pn_provider_find(PN_STR("wechat"))->account_close(account);
	pn_secret_done(&key_files[0].content);
	pn_secret_done(&key_files[1].content);
	pn_secret_done(&v3_file.content);
	pn_secret_done(&v2_file.content);
}

static void
set(struct pn_conf_file *file, char *label, const char *text, size_t len)
{
	int r = pn_secret_set(&file->content, text, len);

	assert(r == 0);
	file->label = label;
}

static void
account_init(const struct pn_provider *provider)
{
	struct pn_error error = { "" };
	int r;

	pn_xml_init();
	set(&key_files[0], label_cert, key_text, sizeof(key_text) - 1);
	set(&key_files[1], label_id, key_text, sizeof(key_text) - 1);
	set(&v3_file, NULL, v3_key, sizeof(v3_key) - 1);
	set(&v2_file, NULL, v2_key, sizeof(v2_key) - 1);
	conf.tenant = tenant;
	conf.wechat = (struct pn_conf_wechat){
		.mchid = { mchids, NULL, 1 },
		.public_key = { key_files, 2 },
		.api_v3_key_file = { &v3_file, 1 },
		.api_v2_key_file = { &v2_file, 1 },
		.v2_sign_type = PN_V2_SIGN_MD5,
		.timestamp_tolerance_us = INT64_MAX,
	};
	r = provider->account_open(&conf, &account, &error);
	assert(r == 0);
	r = atexit(account_done);
	assert(r == 0);
}

static void
check_event(const struct pn_event *event, struct pn_str payload)
{
	struct pn_buf text = pn_buf_init(PN_ARENA_BYTES_MAX);
	struct pn_event_row row = { .event = event,
		.seq = -1,
		.received_at_us = PN_MOMENT_NONE,
		.payload = payload };
	json_t *json;

	assert(pn_str_starts(event->key, "webhook:wechat:"));
	assert(event->key.len <= PN_KEY_BYTES_MAX);
	for (size_t i = 0; i < event->key.len; i++)
		assert(event->key.data[i] > 0x20 && event->key.data[i] < 0x7f);
	assert(pn_str_starts(event->type, "wechat.") ||
	       pn_str_starts(event->type, "payment.") ||
	       pn_str_starts(event->type, "refund."));
	assert(event->type.len <= PN_TYPE_BYTES_MAX);
	assert(!event->amount.present || event->amount.minor >= 0);
	pn_event_add_json(&text, &row);
	assert(!pn_buf_failed(&text));
	json = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
	assert(json != NULL);
	json_decref(json);
	pn_buf_done(&text);
}

static void
check(const struct pn_notification *n)
{
	bool accepted = n->verdict == PN_VERDICT_ACCEPTED;

	assert(accepted == (n->event_count > 0));
	assert(accepted == (n->reason[0] == '\0'));
	assert(n->event_count <= PN_EVENTS_PER_NOTIFICATION_MAX);
	assert(pn_str_is_utf8(n->payload));
	assert(pn_str_is_utf8(n->notify_id));
	assert(pn_str_is_utf8(n->out_trade_no));
	if (accepted)
		assert(n->verified && n->payload.len > 0);
	for (size_t i = 0; i < n->event_count; i++) {
		check_event(&n->events[i], n->payload);
		for (size_t j = 0; j < i; j++)
			assert(
			    !pn_str_equal(n->events[i].key, n->events[j].key));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pn_provider *provider = pn_provider_find(PN_STR("wechat"));
	const struct pn_str raw = { (const char *)data, size };
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	struct pn_notification notification;
	struct pn_request request;
	struct pn_error error = { "" };

	if (account == NULL)
		account_init(provider);
	if (arena != NULL && size <= PN_CAPTURE_BYTES_MAX &&
	    pn_capture_parse(arena, raw, &request, &error) == 0 &&
	    request.body.len <= PN_BODY_BYTES_MAX &&
	    provider->verify(account, &request, 0, arena, &notification) == 0)
		check(&notification);
	pn_arena_free(arena);
	return 0;
}
