/*
 * Ids, fingerprints, keys, the JSON form, money. The digests below were
 * computed by another program from the forms of the contract: they are kept
 * for ever in databases, so these tests must never be "mended".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/encode.h"
#include "paynotify/event.h"
#include "paynotify/json.h"
#include "paynotify/moment.h"

static struct pn_event
payment(void)
{
	return (struct pn_event){
		.type = PN_STR("payment.succeeded"),
		.key = PN_STR("webhook:alipay:T1"),
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.route = PN_STR("notify/alipay"),
		.account = PN_STR("2088000000000001"),
		.merchant = PN_STR("2088000000000001"),
		.out_trade_no = PN_STR("T%1\n"),
		.transaction_id = PN_STR("2026"),
		.amount = { 8888, true },
		.order_amount = { 8888, true },
		.currency = PN_STR("CNY"),
		.occurred_at_us = INT64_C(1772330405000000),
	};
}

static struct pn_event
refund(void)
{
	struct pn_event event = payment();

	event.type = PN_STR("refund.succeeded");
	event.merchant = PN_STR("1900000109");
	event.out_trade_no = PN_STR("T1");
	event.transaction_id = PN_STR("42");
	event.refund = (struct pn_refund){ true, PN_STR("503"), PN_STR("R1"),
		{ 100, true } };
	return event;
}

static void
assert_hex(const unsigned char *data, size_t len, const char *want)
{
	char text[2 * PN_SHA256_BYTES + 1];

	pn_hex_lower(data, len, text);
	assert_string_equal(text, want);
}

/* Another id after an upgrade, and every event of the past comes again. */
static void
test_event__id_is_half_a_digest_of_tenant_route_key(void **state)
{
	struct pn_event event = payment();
	char text[PN_EVENT_ID_TEXT_BYTES];

	(void)state;
	pn_event_seal(&event);
	pn_event_id_text(event.id, text);
	assert_string_equal(text, "evt_2b9e77923e16390614dcb5a01e6044f3");
	assert_hex(event.key_digest, PN_SHA256_BYTES,
	    "fd07c2fe4f5b35c7937aacb9d78cccafa9ac8be28d0964d39a5f6f6525020541");
}

/* Another fingerprint after an upgrade, and every retry is a conflict. */
static void
test_event__fingerprint_is_that_of_the_canonical_form(void **state)
{
	struct pn_event event = payment();

	(void)state;
	pn_event_seal(&event);
	assert_hex(event.request_hash, PN_SHA256_BYTES,
	    "ae719d22f3fc5dcf2670121d9f11745de33d2cc5c5db7c33f4c1047c9c0b5757");
	event = refund();
	pn_event_seal(&event);
	assert_hex(event.request_hash, PN_SHA256_BYTES,
	    "88f734b7ce9f423084315cb1d33fae837e2aa4d96d59dc1f03cf4a053cab18fc");
}

static bool
same_fingerprint(const struct pn_event *a, const struct pn_event *b)
{
	struct pn_event left = *a, right = *b;

	pn_event_seal(&left);
	pn_event_seal(&right);
	return memcmp(left.request_hash, right.request_hash, PN_SHA256_BYTES) ==
	       0;
}

/* What differs between honest deliveries of one event must not count. */
static void
test_event__fingerprint_leaves_out_what_retries_change(void **state)
{
	struct pn_event a = refund(), b = refund();

	(void)state;
	b.occurred_at_us++;
	b.livemode = !b.livemode;
	b.amount.minor++;
	b.refund.refunded_total.minor += 100;
	b.account = PN_STR("1900000110"); /* sub_mchid beside the merchant */
	b.key = PN_STR("webhook:alipay:T1:again");
	assert_true(same_fingerprint(&a, &b));
}

/* What makes it another payment must count, or a forged one is a duplicate. */
static void
test_event__fingerprint_has_every_business_field(void **state)
{
	const struct pn_event a = refund();
	struct pn_event b[10];

	(void)state;
	for (size_t i = 0; i < PN_COUNT(b); i++)
		b[i] = refund();
	b[0].type = PN_STR("refund.closed");
	b[1].tenant = PN_STR("shop2");
	b[2].merchant = PN_STR("1900000110");
	b[3].out_trade_no = PN_STR("T2");
	b[4].transaction_id = PN_STR("43");
	b[5].order_amount.minor++;
	b[6].order_amount.present = false;
	b[7].currency = PN_STR("USD");
	b[8].refund.id = PN_STR("504");
	b[9].refund.out_refund_no = PN_STR("R2");
	for (size_t i = 0; i < PN_COUNT(b); i++)
		if (same_fingerprint(&a, &b[i]))
			fail_msg("field %zu does not count", i);
}

/* A value that could write the next line would let two events share a form. */
static void
test_event__fingerprint_cannot_be_shifted_between_fields(void **state)
{
	struct pn_event a = payment(), b = payment();

	(void)state;
	a.out_trade_no = PN_STR("T1\ntransaction_id=9");
	a.transaction_id = PN_STR("");
	b.out_trade_no = PN_STR("T1");
	b.transaction_id = PN_STR("9");
	assert_false(same_fingerprint(&a, &b));
	a.transaction_id = b.transaction_id = PN_STR("9");
	a.out_trade_no = PN_STR("T%0A");
	b.out_trade_no = PN_STR("T\n");
	assert_false(same_fingerprint(&a, &b));
}

/* Two ids that make one key would swallow a payment. */
static void
test_event__key_components_are_escaped(void **state)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(PN_KEY_BYTES_MAX);

	(void)state;
	pn_event_key_add(&out, PN_STR("Az09-_.~/!}"));
	pn_buf_add_char(&out, '|');
	pn_event_key_add(&out, PN_STR("a:b%c d\x7f\n\0\xe4\xb8\xad"));
	assert_string_equal(
	    out.data, "Az09-_.~/!}|a%3Ab%25c%20d%7F%0A%00%E4%B8%AD");
}

static json_t *
printed(const struct pn_event_row *row, struct pn_buf *out)
{
	struct pn_error error;
	json_t *value = NULL;

	pn_buf_reset(out);
	pn_event_add_json(out, row);
	assert_false(pn_buf_failed(out));
	assert_null(memchr(out->data, '\n', out->len));
	if (pn_json_parse(pn_buf_str(out), &value, &error) != 0)
		fail_msg("%s: %s", error.text, out->data);
	return value;
}

/* The form is a contract with every application: names, order, nulls. */
static void
test_event__json_is_the_form_of_the_design(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);
	struct pn_event event = refund();
	struct pn_event_row row = {
		.event = &event,
		.seq = 7,
		.received_at_us = INT64_C(1772330406123456),
		.order_check = PN_STR("matched"),
		.flags = PN_STR("[\"second_payment\"]"),
		.payload = PN_STR("{\"a\":\r\n\"\\n\u4e2d\"}"),
	};

	(void)state;
	pn_event_seal(&event);
	json_decref(printed(&row, &out));
	assert_string_equal(out.data,
	    "{\"schema\":1,\"id\":\"evt_2b9e77923e16390614dcb5a01e6044f3\","
	    "\"seq\":7,\"livemode\":false,\"type\":\"refund.succeeded\","
	    "\"provider\":\"alipay\",\"tenant\":\"shop1\","
	    "\"account\":\"2088000000000001\",\"key\":\"webhook:alipay:T1\","
	    "\"out_trade_no\":\"T1\",\"transaction_id\":\"42\","
	    "\"amount\":8888,\"order_amount\":8888,\"currency\":\"CNY\","
	    "\"refund\":{\"id\":\"503\",\"out_refund_no\":\"R1\","
	    "\"refunded_total\":100},\"order_check\":\"matched\","
	    "\"flags\":[\"second_payment\"],"
	    "\"occurred_at\":\"2026-03-01T02:00:05Z\","
	    "\"received_at\":\"2026-03-01T02:00:06.123456Z\","
	    "\"payload\":{\"a\":  \"\\n\u4e2d\"}}");
}

/* An event not yet recorded, with nothing told, still has every name. */
static void
test_event__json_prints_null_for_what_is_absent(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);
	struct pn_event event = {
		.type = PN_STR("alipay.x\"\\\x01"),
		.key = PN_STR("webhook:alipay:notify:1"),
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.route = PN_STR("notify/alipay"),
		.livemode = true,
		.occurred_at_us = PN_MOMENT_NONE,
	};
	struct pn_event_row row = {
		.event = &event, .seq = -1, .received_at_us = PN_MOMENT_NONE
	};
	static const char *const nulls[] = { "seq", "account", "out_trade_no",
		"transaction_id", "amount", "order_amount", "currency",
		"refund", "occurred_at", "received_at", "payload" };
	json_t *value;

	(void)state;
	pn_event_seal(&event);
	value = printed(&row, &out);
	assert_int_equal(json_object_size(value), 20);
	for (size_t i = 0; i < PN_COUNT(nulls); i++)
		assert_true(json_is_null(json_object_get(value, nulls[i])));
	assert_true(json_is_true(json_object_get(value, "livemode")));
	assert_int_equal(json_array_size(json_object_get(value, "flags")), 0);
	assert_true(pn_str_is(pn_json_text(value, "order_check"), "off"));
	assert_true(pn_str_is(pn_json_text(value, "type"), "alipay.x\"\\\x01"));
	json_decref(value);

	event.refund.present = true;
	value = printed(&row, &out);
	assert_int_equal(json_object_size(json_object_get(value, "refund")), 3);
	json_decref(value);
}

/* 0.29 yuan is 29 fen; a lax reader is a loss or a hole. */
static void
test_event__money_is_exact(void **state)
{
	static const struct {
		const char *text;
		int64_t fen;
	} good[] = { { "0.00", 0 }, { "0.29", 29 }, { "88.88", 8888 },
		{ "000000001.05", 105 }, { "999999999.99", 99999999999 } };
	static const char *const bad[] = { "", "1", "1.0", "1.000", ".00", "1.",
		"-1.00", "+1.00", " 1.00", "1.00 ", "1,00", "1.0a", "1e2.00",
		"1..00", "1000", "10000", "1234567890.00", "1.00\n" };
	char text[32];
	int64_t fen = 77;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		if (pn_money_parse_yuan(pn_str_from(bad[i]), &fen) != 1)
			fail_msg("\"%s\" was accepted", bad[i]);
	assert_int_equal(fen, 77);
	for (size_t i = 0; i < PN_COUNT(good); i++) {
		assert_int_equal(
		    pn_money_parse_yuan(pn_str_from(good[i].text), &fen), 0);
		assert_true(fen == good[i].fen);
	}
	pn_money_format_yuan(99999999999, text);
	assert_string_equal(text, "999999999.99");
	pn_money_format_yuan(5, text);
	assert_string_equal(text, "0.05");
	pn_money_format_yuan(-105, text);
	assert_string_equal(text, "-1.05");
	pn_money_format_yuan(INT64_MIN, text);
	assert_string_equal(text, "-92233720368547758.08");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_event__id_is_half_a_digest_of_tenant_route_key),
		cmocka_unit_test(
		    test_event__fingerprint_is_that_of_the_canonical_form),
		cmocka_unit_test(
		    test_event__fingerprint_leaves_out_what_retries_change),
		cmocka_unit_test(
		    test_event__fingerprint_has_every_business_field),
		cmocka_unit_test(
		    test_event__fingerprint_cannot_be_shifted_between_fields),
		cmocka_unit_test(test_event__key_components_are_escaped),
		cmocka_unit_test(test_event__json_is_the_form_of_the_design),
		cmocka_unit_test(
		    test_event__json_prints_null_for_what_is_absent),
		cmocka_unit_test(test_event__money_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
