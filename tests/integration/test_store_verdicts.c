/*
 * What the store says about a notification that it records, or has recorded, and
 * what is then in the tables: both tiers, events, evidence, receipts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "store_support.h"

/* If it failed: an event would be lost, doubled, or acknowledged without its
 * evidence and receipt. */
static void
test_store__records_once_with_evidence_and_receipts(void **state)
{
	struct store_fixture *f = *state;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.events "
		"WHERE key = 'webhook:alipay:a' AND amount = 100 AND seq = 1 "
		"AND payload ->> 'out_trade_no' = 'a' AND refund IS NULL "
		"AND occurred_at = '2026-01-01T00:00:00Z' AND flags = '{}'"),
	    1);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.evidence "
				   "WHERE body = 'out_trade_no=a&total=100' "
				   "AND key_fingerprint = E'\\\\xfe' || "
				   "decode(repeat('00', 31), 'hex')"),
	    1);
	/* Bytes that are not UTF-8 come back as they were. */
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.evidence "
		"WHERE convert_to(headers, 'LATIN1') = "
		"'\\x436f6e74656e742d547970653a20746578742f706c61696ee90a'"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'recorded' AND status = 200"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'duplicate' AND status = 200 "
		      "AND out_trade_no = 'a' AND notify_id = 'n1'"),
	    1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM "
		"paynotify.idempotency_keys WHERE state = 'COMPLETED' AND "
		"response_status = 200 AND response_body = 'success' AND "
		"expires_at = created_at + interval '72 hours'"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.verifying_keys"), 1);
}

/* If it failed: a replay after the key's hot life would be recorded again. */
static void
test_store__finds_keys_in_the_permanent_tier(void **state)
{
	struct store_fixture *f = *state;
	struct note note;
	char hex[2 * PN_SHA256_BYTES + 1];

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now() WHERE key = 'webhook:alipay:a'");
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 1);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_DUPLICATE);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);
	/* The digest that SQL makes is the one that the store looks up. */
	note_init(&note, "a", 100);
	pn_hex_lower(note.events[0].key_digest, PN_SHA256_BYTES, hex);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM "
		"paynotify.idempotency_archive WHERE tenant = 'shop1' AND "
		"digest = '\\x%s'",
		hex),
	    1);
	note_done(&note);
}

/* If it failed: keys in use would leave the hot tier, or expired ones stay. */
static void
test_store__archives_only_expired_completed_keys(void **state)
{
	struct store_fixture *f = *state;

	(void)db(f->db,
	    "INSERT INTO paynotify.idempotency_keys (tenant, "
	    "request_path, key, request_hash, state, lease_token, created_at, "
	    "expires_at) VALUES "
	    "('t', 'notify/alipay', 'processing', '', 'PROCESSING', NULL, "
	    "now(), now()),"
	    "('t', 'notify/alipay', 'held', '', 'COMPLETED', "
	    "gen_random_uuid(), now(), now()),"
	    "('t', 'notify/alipay', 'fresh', '', 'COMPLETED', NULL, now(), "
	    "now() + interval '1 h'),"
	    "('t', 'POST /v1/charges', 'guard', '', 'FAILED', NULL, now(), "
	    "now()),"
	    "('t', 'POST /v1/charges', 'old', '', 'COMPLETED', NULL, now(), "
	    "now()),"
	    "('t', 'notify/alipay', 'old', '', 'COMPLETED', NULL, now(), "
	    "now()),"
	    "('t', 'notify/wechat', 'old', '', 'COMPLETED', NULL, now(), "
	    "now())");
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(1)"), 1);
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 2);
	assert_int_equal(
	    db(f->db, "SELECT paynotify.archive_expired_keys(500)"), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM "
		      "paynotify.idempotency_keys WHERE key <> 'old'"),
	    4);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.idempotency_keys"),
	    4);
}

/* If it failed: a refund, which Alipay tells together with its payment, would
 * be listed and counted as if it had come before. */
static void
test_store__a_receipt_is_recorded_if_anything_was_new(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	for (int i = 0; i < 2; i++) {
		note_init(&note, "a", 100);
		note_add_refund(&note, "a", "r1");
		note_submit(f->store, &note);
		assert_int_equal(note_wait(&note),
		    i == 0 ? PN_STORE_RECORDED : PN_STORE_DUPLICATE);
		note_done(&note);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts r "
		      "JOIN paynotify.event_log e ON e.receipt_id = r.id "
		      "WHERE r.verdict = 'recorded'"),
	    2);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.receipts "
				   "WHERE verdict = 'duplicate'"),
	    1);
}

/* If it failed: of a notification with several events only some would be
 * recorded, or evidence would be doubled. */
static void
test_store__records_all_events_of_a_notification(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r1");
	note_add_refund(&note, "a", "r2");
	note_submit(f->store, &note);
	/* One of them was known, and that is no matter. */
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 3);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.events "
		"WHERE refund = '{\"id\": \"r\\\"1\", \"out_refund_no\": null, "
		"\"refunded_total\": 50}' AND amount IS NULL AND seq = "
		"CASE key WHEN 'webhook:alipay:a:refund:r1' THEN 2 ELSE 3 END "
		"AND payload IS NOT NULL"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), 2);
}

/* If it failed: a notification that names an event twice would record it twice
 * or never be committed; one that contradicts itself would lose a half. */
static void
test_store__takes_a_notification_that_repeats_itself(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r");
	note_add_refund(&note, "a", "r");
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 2);

	note_init(&note, "b", 100);
	note_add_refund(&note, "b", "r");
	note.events[1] = note.events[0];
	note.events[1].order_amount.minor = 101;
	pn_event_seal(&note.events[1]);
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_CONFLICT);
	note_done(&note);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events "
				   "WHERE key = 'webhook:alipay:b'"),
	    1);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.quarantine"),
	    1);
}

/* If it failed: an operator would be sent to the order that is in order. */
static void
test_store__tells_which_event_was_the_conflict(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	for (int i = 0; i < 2; i++) {
		note_init(&note, "a", 100);
		note_add_refund(&note, "a", "r");
		note.events[1].order_amount.minor += i;
		pn_event_seal(&note.events[1]);
		note_submit(f->store, &note);
		assert_int_equal(note_wait(&note),
		    i == 0 ? PN_STORE_RECORDED : PN_STORE_CONFLICT);
		note_done(&note);
		assert_int_equal(note.submission.conflicting_event, i);
	}
}

/* If it failed: an application would see a refund before its payment. */
static void
test_store__records_events_in_order_of_arrival(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	/* The order of the keys is another. */
	note_init(&note, "m", 100);
	note_add_refund(&note, "z", "r1");
	note_add_refund(&note, "b", "r2");
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events "
		      "WHERE seq = CASE key WHEN 'webhook:alipay:m' THEN 1 "
		      "WHEN 'webhook:alipay:z:refund:r1' THEN 2 ELSE 3 END"),
	    3);
}

/* If it failed: a tenant could take or see another's keys. */
static void
test_store__keeps_tenants_apart(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	note_init(&note, "a", 100);
	note.submission.tenant = PN_STR("shop2");
	note.events[0].tenant = PN_STR("shop2");
	pn_event_seal(&note.events[0]);
	note_submit(f->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(
	    db(f->db, "SELECT count(DISTINCT id) FROM "
		      "paynotify.events WHERE key = 'webhook:alipay:a'"),
	    2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__records_once_with_evidence_and_receipts),
		TEST(test_store__finds_keys_in_the_permanent_tier),
		TEST(test_store__archives_only_expired_completed_keys),
		TEST(test_store__records_all_events_of_a_notification),
		TEST(test_store__a_receipt_is_recorded_if_anything_was_new),
		TEST(test_store__takes_a_notification_that_repeats_itself),
		TEST(test_store__tells_which_event_was_the_conflict),
		TEST(test_store__records_events_in_order_of_arrival),
		TEST(test_store__keeps_tenants_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
