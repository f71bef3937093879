/*
 * Alipay's verify and parse over a raw capture, with one fixed account.
 *
 * RSA is left out: pn_public_key_verify() is replaced when this is linked
 * (--wrap) and finds every signature right, since no fuzzer would ever get
 * behind a real one. So what is tested is everything around it, and that every
 * promise about an accepted notification holds for any content whatever: keys,
 * types and payload are well-formed, refusals have a reason.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "paynotify/buf.h"
#include "paynotify/capture.h"
#include "paynotify/json.h"
#include "paynotify/moment.h"
#include "paynotify/provider.h"

/* Any key of 2048 bits: only its length counts here. */
static const char key_text[] =
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA402089Kuac5hrQDiCjwP"
    "Vz24GbgHIdMGp/kuQQvjvFYsMF3RwqkD+sJJvPscndJrb255DXlFB7f67AvGESwC"
    "vBurBO7HYY4cgbDjX8WKvQ6PiCVj5tF3MB0tuhcK5RrLtTVPHx5ppLMWx8sR3hGU"
    "P9qPJzyyIwr41Obxq9+nneN/u2y82gSMH73UWMxF0m13rQvCvqw3LXet8BPhiyw0"
    "GTGkcWc1t4UEP2HQcGZCKQGGUuX2h/HEvfRYGSWmhTPy7rmO/yKib3r+Ayko/olk"
    "NzSxXrYhrNRg0qC0J69bvaRoL6wSPxKlbhbtuUHrytdBV+R6K2j5/xelyyySOs6q"
    "WwIDAQAB";

static struct pn_conf_account conf;
static struct pn_conf_file key_file;
static char app_id[] = "2021000000000001", tenant[] = "case";
static char *app_ids[] = { app_id };
static void *account;

bool __wrap_pn_public_key_verify(const struct pn_public_key *key,
    enum pn_rsa_hash hash, struct pn_str message, struct pn_str signature);

bool
__wrap_pn_public_key_verify(const struct pn_public_key *key,
    enum pn_rsa_hash hash, struct pn_str message, struct pn_str signature)
{
	assert(key != NULL && message.data != NULL && signature.len > 0);
	(void)hash;
	return true;
}

static void
account_done(void)
{
	pn_provider_find(PN_STR("alipay"))->account_close(account);
	pn_secret_done(&key_file.content);
}

static void
account_init(const struct pn_provider *provider)
{
	struct pn_error error = { "" };
	int r;

	r = pn_secret_set(&key_file.content, key_text, sizeof(key_text) - 1);
	assert(r == 0);
	conf.tenant = tenant;
	conf.alipay.app_id = (struct pn_conf_strings){ app_ids, NULL, 1 };
	conf.alipay.public_key = (struct pn_conf_files){ &key_file, 1 };
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

	assert(pn_str_starts(event->key, "webhook:alipay:"));
	assert(event->key.len <= PN_KEY_BYTES_MAX);
	for (size_t i = 0; i < event->key.len; i++)
		assert(event->key.data[i] > 0x20 && event->key.data[i] < 0x7f);
	assert(pn_str_starts(event->type, "alipay.") ||
	       pn_str_starts(event->type, "payment.") ||
	       pn_str_is(event->type, "refund.succeeded"));
	assert(event->type.len <= PN_TYPE_BYTES_MAX);
	pn_event_add_json(&text, &row);
	assert(!pn_buf_failed(&text));
	json = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
	assert(json != NULL);
	json_decref(json);
	pn_buf_done(&text);
}

static void
check(const struct pn_notification *notification)
{
	bool accepted = notification->verdict == PN_VERDICT_ACCEPTED;

	assert(accepted == (notification->event_count > 0));
	assert(accepted == (notification->reason[0] == '\0'));
	assert(pn_str_is_utf8(notification->payload));
	assert(pn_str_is_utf8(notification->notify_id));
	assert(pn_str_is_utf8(notification->out_trade_no));
	if (accepted)
		assert(notification->verified && notification->key != NULL);
	for (size_t i = 0; i < notification->event_count; i++)
		check_event(&notification->events[i], notification->payload);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pn_provider *provider = pn_provider_find(PN_STR("alipay"));
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
