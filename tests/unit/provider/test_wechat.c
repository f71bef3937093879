/*
 * What golden cases cannot see of WeChat Pay: the bytes of the answers, the
 * dialect of what was never verified, what an account refuses to open, the keys
 * that evidence will need, and amounts beyond the numbers of JavaScript.
 */
#include "wechat_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "paynotify/digest.h"
#include "paynotify/json.h"
#include "paynotify/xml.h"

enum { V3, V2 }; /* dialects, as dialect_of() gives them */

static struct pn_reply
reply_of(struct wechat_fixture *fixture, int dialect, enum pn_outcome outcome,
    const char *message)
{
	struct pn_reply reply;

	assert_int_equal(fixture->provider->reply(
			     dialect, outcome, message, fixture->arena, &reply),
	    0);
	return reply;
}

/* Fails if a byte of the success answers changed: WeChat Pay would retry. */
static void
test_wechat__success_is_exact(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_reply reply;

	reply = reply_of(fixture, V3, PN_OUTCOME_SUCCESS, "ignored");
	assert_true(pn_str_is(reply.body, "{\"code\":\"SUCCESS\"}"));
	assert_string_equal(reply.content_type, "application/json");
	assert_false(reply.status_is_200);
	reply = reply_of(fixture, V2, PN_OUTCOME_SUCCESS, NULL);
	assert_true(pn_str_is(reply.body,
	    "<xml><return_code><![CDATA[SUCCESS]]></return_code>"
	    "<return_msg><![CDATA[OK]]></return_msg></xml>"));
	assert_string_equal(reply.content_type, "text/xml");
	assert_true(reply.status_is_200);
}

/* Fails if any refusal looked like a success, in either dialect. */
static void
test_wechat__failures_say_fail(void **state)
{
	struct wechat_fixture *fixture = *state;

	for (int i = PN_OUTCOME_SUCCESS + 1; i < PN_OUTCOME_COUNT; i++) {
		struct pn_reply v3 = reply_of(fixture, V3, i, NULL);
		struct pn_reply v2 = reply_of(fixture, V2, i, "");
		struct pn_error error;
		struct pn_form fields;
		json_t *object;

		assert_int_equal(pn_json_parse(v3.body, &object, &error), 0);
		assert_true(pn_str_is(pn_json_text(object, "code"), "FAIL"));
		assert_true(pn_json_text(object, "message").len > 0);
		assert_int_equal(json_object_size(object), 2);
		json_decref(object);
		assert_int_equal(pn_xml_parse(fixture->arena, v2.body, "xml",
				     &fields, &error),
		    0);
		assert_true(
		    pn_str_is(pn_form_get(&fields, "return_code"), "FAIL"));
		assert_true(pn_form_get(&fields, "return_msg").len > 0);
		assert_true(v2.status_is_200);
		assert_false(v3.status_is_200);
	}
}

/* Fails if a message could break out of its JSON string or CDATA section, or
 * were longer than the interface takes. */
static void
test_wechat__failure_message_is_cut_and_escaped(void **state)
{
	static const char *const messages[] = {
		"a \"quoted\" \\ message\n",
		"]]></return_msg><return_code>SUCCESS</return_code>",
		"支付支付支付支付支付支付支付支付支付支付支付支付",
		"\xff\xfe not utf-8",
	};
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(messages); i++) {
		struct pn_reply v3 =
		    reply_of(fixture, V3, PN_OUTCOME_MALFORMED, messages[i]);
		struct pn_reply v2 =
		    reply_of(fixture, V2, PN_OUTCOME_MALFORMED, messages[i]);
		struct pn_error error;
		struct pn_form fields;
		json_t *object;

		assert_int_equal(pn_json_parse(v3.body, &object, &error), 0);
		assert_in_range(pn_json_text(object, "message").len, 1, 66);
		json_decref(object);
		assert_int_equal(pn_xml_parse(fixture->arena, v2.body, "xml",
				     &fields, &error),
		    0);
		assert_int_equal(fields.count, 2);
		assert_true(
		    pn_str_is(pn_form_get(&fields, "return_code"), "FAIL"));
		assert_in_range(pn_form_get(&fields, "return_msg").len, 1, 64);
	}
}

/* Fails if a v3 message whose headers a proxy took away were answered in XML
 * with status 200, which WeChat Pay would take for received. */
static void
test_wechat__dialect_is_the_first_byte(void **state)
{
	static const struct {
		const char *body;
		int dialect;
	} rows[] = {
		{ "<xml>", V2 },
		{ "<", V2 },
		{ "", V3 },
		{ "{\"id\":1}", V3 },
		{ " <xml>", V3 },
		{ "\xef\xbb\xbf<xml>", V3 },
	};
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_request request = { .body =
						  pn_str_from(rows[i].body) };

		assert_int_equal(
		    fixture->provider->dialect_of(&request), rows[i].dialect);
		assert_int_equal(
		    wechat_fixture_verify(fixture, &request).dialect,
		    rows[i].dialect);
	}
}

struct visited {
	size_t count, symmetric;
	unsigned char last[PN_SHA256_BYTES];
};

static int
visit(void *payload, const unsigned char *fingerprint, const char *pem)
{
	struct visited *visited = payload;

	visited->count++;
	if (pem == NULL) {
		visited->symmetric++;
		memcpy(visited->last, fingerprint, PN_SHA256_BYTES);
	} else {
		assert_non_null(strstr(pem, "BEGIN PUBLIC KEY"));
	}
	return 0;
}

/* Fails if evidence named a key that verifying_keys does not have, or the
 * secret of APIv2 itself got there. */
static void
test_wechat__keys_are_told_for_evidence(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct visited visited = { 0 };
	unsigned char want[PN_SHA256_BYTES];
	struct pn_request request;
	struct pn_notification n;

	assert_int_equal(
	    fixture->provider->account_keys(fixture->account, visit, &visited),
	    0);
	assert_int_equal(visited.count, 3);
	assert_int_equal(visited.symmetric, 1);
	pn_sha256(
	    PN_STR("paynotify-v2:unit0test0api0v2key0of032bytes00"), want);
	assert_memory_equal(visited.last, want, sizeof(want));
	sample.dialect = "v2";
	request = wechat_fixture_sample(fixture, &sample);
	n = wechat_fixture_verify(fixture, &request);
	assert_null(n.key);
	assert_memory_equal(n.key_fingerprint, want, sizeof(want));
	sample.dialect = "v3";
	request = wechat_fixture_sample(fixture, &sample);
	n = wechat_fixture_verify(fixture, &request);
	assert_non_null(n.key);
	assert_memory_equal(n.key_fingerprint, pn_public_key_fingerprint(n.key),
	    PN_SHA256_BYTES);
}

static void
open_must_fail(struct wechat_fixture *fixture, struct pn_conf_account *conf,
    const char *place, const char *word)
{
	struct pn_error error = { "" };
	void *account = NULL;

	assert_int_equal(
	    fixture->provider->account_open(conf, &account, &error), -EINVAL);
	assert_null(account);
	if (strstr(error.text, place) != error.text ||
	    strstr(error.text, word) == NULL)
		fail_msg("error is \"%s\"", error.text);
}

/* Fails if a configuration that can verify nothing, or would verify with a key
 * that is none, were found only when the first payment came. */
static void
test_wechat__account_open_refuses(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_conf_file file = fixture->v3_file;

	conf.wechat.api_v3_key_file.count = 0;
	open_must_fail(fixture, &conf, "test.conf:3: ", "api_v3_key_file");
	conf = fixture->conf;
	conf.wechat.public_key.count = 0;
	open_must_fail(fixture, &conf, "test.conf:3: ", "platform_cert");
	conf.wechat.api_v3_key_file.count = 0;
	conf.wechat.api_v2_key_file.count = 0;
	open_must_fail(fixture, &conf, "test.conf:3: ", "no keys");
	conf = fixture->conf;
	file.content.len = 31;
	conf.wechat.api_v3_key_file.files = &file;
	open_must_fail(fixture, &conf, "test.conf:7: ", "32 bytes");
	conf = fixture->conf;
	file.content.len = 0;
	conf.wechat.api_v2_key_file.files = &file;
	open_must_fail(fixture, &conf, "test.conf:7: ", "empty");
	/* A bare key has no serial; a public key without its id neither. */
	conf = fixture->conf;
	conf.wechat.platform_cert = conf.wechat.public_key;
	open_must_fail(fixture, &conf, "test.conf:7: ", "PUB_KEY_ID_");
	conf = fixture->conf;
	file = fixture->public_files[0];
	file.label = NULL;
	conf.wechat.public_key =
	    (struct pn_conf_files){ .files = &file, .count = 1 };
	open_must_fail(fixture, &conf, "test.conf:7: ", "PUB_KEY_ID_");
	/* Not a key at all, with the path that says which file. */
	conf.wechat.public_key.files = &fixture->v3_file;
	fixture->v3_file.label = fixture->labels[0];
	open_must_fail(fixture, &conf, "test.conf:7: key.pem: ", "");
	fixture->v3_file.label = NULL;
}

/* Fails if two keys could share a serial: which one counts would be chance. */
static void
test_wechat__one_serial_is_one_key(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_conf_file files[WECHAT_PUBLIC_KEYS];
	struct pn_error error = { "" };
	void *account;

	memcpy(files, fixture->public_files, sizeof(files));
	files[1].label = files[0].label;
	conf.wechat.public_key.files = files;
	open_must_fail(fixture, &conf, "test.conf:7: ", "another key");
	/* The same key named twice is no contradiction. */
	files[1] = files[0];
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	fixture->provider->account_close(account);
}

/* Fails if an APIv2 key with a stray blank were taken as it stands: every sign
 * would be wrong and nobody would see why. */
static void
test_wechat__v2_key_with_a_blank_is_refused(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_conf_file file = fixture->v2_file;
	unsigned char text[] = "unit0test0api0v2key0of032bytes0 ";

	file.content = (struct pn_secret){ text, sizeof(text) - 1 };
	conf.wechat.api_v2_key_file.files = &file;
	open_must_fail(fixture, &conf, "test.conf:7: ", "blanks");
}

/* Fails if an amount went through a double, or stopped short of int64. */
static void
test_wechat__amounts_are_exact_to_the_last_fen(void **state)
{
	static const int64_t amounts[] = { INT64_C(9007199254740993),
		INT64_MAX };
	static const char *const dialects[] = { "v3", "v2" };
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < 4; i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of("payment.succeeded");
		struct pn_request request;
		struct pn_notification n;

		sample.amount_minor = amounts[i / 2];
		sample.dialect = dialects[i % 2];
		request = wechat_fixture_sample(fixture, &sample);
		n = wechat_fixture_verify(fixture, &request);
		assert_int_equal(n.event_count, 1);
		assert_true(n.events[0].amount.minor == amounts[i / 2]);
	}
}

/* Fails if a reason, which goes to the log and the receipts, quoted a serial
 * that is no plain text. */
static void
test_wechat__reason_never_quotes_raw_bytes(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request request = wechat_fixture_sample(fixture, &sample);
	struct pn_header headers[16];
	struct pn_notification n;

	assert_in_range(request.header_count, 1, PN_COUNT(headers));
	memcpy(headers, request.headers,
	    request.header_count * sizeof(headers[0]));
	request.headers = headers;
	for (size_t i = 0; i < request.header_count; i++)
		if (pn_str_is(headers[i].name, "Wechatpay-Serial"))
			headers[i].value = PN_STR("\xff\x01 evil");
	n = wechat_fixture_verify(fixture, &request);
	assert_int_equal(n.verdict, PN_VERDICT_UNKNOWN_KEY);
	for (const char *c = n.reason; *c != '\0'; c++)
		assert_in_range(*c, 0x20, 0x7e);
	for (size_t i = 0; i < request.header_count; i++)
		if (pn_str_is(headers[i].name, "Wechatpay-Serial"))
			headers[i].value = PN_STR("PUB_KEY_ID_9");
	n = wechat_fixture_verify(fixture, &request);
	assert_non_null(strstr(n.reason, "PUB_KEY_ID_9"));
}

/* Fails if a refused notification could not be found by its order: the payment
 * that went wrong is the one that is looked for. */
static void
test_wechat__refused_ones_name_their_order(void **state)
{
	static const struct {
		const char *event, *dialect, *oddity;
	} rows[] = {
		{ "payment.succeeded", "v3", "negative-amount" },
		{ "payment.succeeded", "v3", "other-mchid" },
		{ "refund.succeeded", "v3", "negative-amount" },
		{ "payment.succeeded", "v2", "negative-amount" },
		{ "payment.succeeded", "v2", "other-mchid" },
		{ "refund.succeeded", "v2", "negative-amount" },
		{ "refund.succeeded", "v2", "other-mchid" },
		{ "payment.succeeded", "v3", "combined" },
	};
	struct wechat_fixture *fixture = *state;

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of(rows[i].event);
		struct pn_request request;
		struct pn_notification n;

		sample.out_trade_no = PN_STR("ORDER1");
		sample.dialect = rows[i].dialect;
		sample.oddity = rows[i].oddity;
		request = wechat_fixture_sample(fixture, &sample);
		n = wechat_fixture_verify(fixture, &request);
		assert_true(n.verified);
		assert_true(pn_str_is(n.out_trade_no, "ORDER1"));
		assert_true(n.payload.len > 0);
	}
}

/* An application would keep a signature that says nothing about the payment; the
 * evidence has it, where it can be verified. */
static void
test_wechat__the_payload_leaves_the_sign_out(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_request request;
	struct pn_notification n;

	sample.dialect = "v2";
	request = wechat_fixture_sample(fixture, &sample);
	assert_true(pn_str_find(request.body, PN_STR("<sign>")) > 0);
	n = wechat_fixture_verify(fixture, &request);
	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
	assert_true(pn_str_find(n.payload, PN_STR("\"nonce_str\":")) > 0);
	assert_true(pn_str_find(n.payload, PN_STR("\"sign\":")) < 0);
}

#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, wechat_fixture_arena, wechat_fixture_arena_done)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wechat__success_is_exact),
		TEST(test_wechat__failures_say_fail),
		TEST(test_wechat__failure_message_is_cut_and_escaped),
		TEST(test_wechat__dialect_is_the_first_byte),
		TEST(test_wechat__keys_are_told_for_evidence),
		TEST(test_wechat__account_open_refuses),
		TEST(test_wechat__one_serial_is_one_key),
		TEST(test_wechat__v2_key_with_a_blank_is_refused),
		TEST(test_wechat__amounts_are_exact_to_the_last_fen),
		TEST(test_wechat__reason_never_quotes_raw_bytes),
		TEST(test_wechat__refused_ones_name_their_order),
		TEST(test_wechat__the_payload_leaves_the_sign_out),
	};

	return cmocka_run_group_tests(
	    tests, wechat_fixture_setup, wechat_fixture_teardown);
}
