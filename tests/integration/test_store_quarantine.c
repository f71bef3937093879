/*
 * What is not recorded: conflicts, what is signed but cannot be read, what the
 * database refuses, what was refused unverified. Nothing signed is dropped.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "store_support.h"

static const int64_t LONG_US = 15 * PN_SECOND_US;

/* If it failed: a forged or changed notification under a known key would pass
 * as a duplicate, or leave no trace. */
static void
test_store__quarantines_a_conflict_once(void **state)
{
	struct store_fixture *f = *state;

	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "a", 101), PN_STORE_CONFLICT);
	assert_int_equal(put(f->store, "a", 102), PN_STORE_CONFLICT);
	assert_int_equal(db(f->db, "SELECT count(*) FROM paynotify.events"), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "WHERE state = 'open' AND subject = 'webhook:alipay:a'"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE q.events -> 0 ->> 'amount' = "
		      "substring(convert_from(e.body, 'UTF8') from '[0-9]+$')"),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 3);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'conflict' AND status = 422"),
	    3);
}

/* If it failed: a signed notification that we cannot read would be dropped, or
 * fill the quarantine at each retry. */
static void
test_store__quarantines_what_is_signed_but_unreadable(void **state)
{
	struct store_fixture *f = *state;
	struct note note;

	for (int i = 0; i < 2; i++) {
		note_init_quarantine(&note, "n7", "could not decrypt");
		note.submission.quarantine_verdict = PN_STR("undecryptable");
		note.submission.refused_status = 500;
		note_submit(f->store, &note);
		assert_int_equal(note_wait(&note), PN_STORE_QUARANTINED);
		note_done(&note);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE subject = 'n7' AND reason = 'could not decrypt' "
		      "AND body = 'secret n7' AND payload IS NULL"),
	    1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.evidence"), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts "
		      "WHERE verdict = 'undecryptable' AND status = 500"),
	    2);
}

/* If it failed: one event that the database refuses would take its neighbours
 * with it, or vanish. */
static void
test_store__isolates_an_event_that_the_database_refuses(void **state)
{
	struct store_fixture *f = *state;
	enum { COUNT = 40, BAD = 17 };
	struct note notes[COUNT];
	char trade[16];

	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(trade, sizeof(trade), "t%d", i);
		note_init(&notes[i], trade, 100);
	}
	notes[BAD].events[0].account = PN_STR("not \xff UTF-8");
	notes[BAD].submission.notify_id = PN_STR("neither \xc3");
	for (int i = 0; i < COUNT; i++)
		note_submit(f->store, &notes[i]);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(note_wait(&notes[i]),
		    i == BAD ? PN_STORE_QUARANTINED : PN_STORE_RECORDED);
		note_done(&notes[i]);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.events"), COUNT - 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.quarantine "
		      "q JOIN paynotify.evidence e USING (receipt_id) "
		      "WHERE subject = 'webhook:alipay:t17' AND reason LIKE "
		      "'%%UTF8%%' "
		      "AND body = 'out_trade_no=t17&total=100'"),
	    1);
	assert_int_equal(
	    db(f->db,
		"SELECT count(*) FROM paynotify.receipts "
		"WHERE verdict = 'quarantined' AND notify_id = 'neither ?'"),
	    1);
	/* The writer goes on with the usual settings. */
	assert_int_equal(put(f->store, "t17b", 100), PN_STORE_RECORDED);
}

/* If it failed: a refused request would leave no receipt, or a hostile one
 * would stop the receipts of others. */
static void
test_store__writes_receipts_of_refusals(void **state)
{
	struct store_fixture *f = *state;
	char body[PN_REFUSAL_BODY_BYTES_MAX + 1000];
	struct pn_refusal refusal = {
		.provider = PN_STR("alipay"),
		.tenant = PN_STR("shop1"),
		.peer = PN_STR("192.0.2.9"),
		.notify_id = PN_STR("\xff\x00'; DROP"),
		.verdict = PN_STR("bad_signature"),
		.reason = PN_STR("signature does not match"),
		.status = 401,
		.headers = PN_STR("X: \xff\n"),
		.body = { body, sizeof(body) },
	};

	memset(body, 0, sizeof(body));
	for (int i = 0; i < 300; i++) {
		refusal.request_id[0] = (unsigned char)i;
		pn_store_refuse(f->store, &refusal);
	}
	db_wait(f->db, 300,
	    "SELECT count(*) FROM paynotify.receipts "
	    "WHERE verdict = 'bad_signature' AND status = 401 AND "
	    "notify_id = repeat('?', 2) || '''; DROP' AND length(raw) = 2048 "
	    "AND "
	    "body_bytes = 3048 AND convert_to(headers, 'LATIN1') = "
	    "'\\x583a20ff0a'");
}

/* If it failed: success would be answered although no standby keeps a copy. */
static void
test_store__refuses_without_a_standby_where_one_is_required(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store_options options = {
		.dsn = f->dsn,
		.writers = 1,
		.commit_timeout_us = LONG_US,
		.key_hot_us = PN_SECOND_US,
		.require_sync = true,
	};
	struct pn_error error;
	struct pn_store *store;
	struct note note;
	char text[256];

	assert_int_equal(pn_store_open(&options, &store, &error), 0);
	assert_int_equal(put(store, "a", 100), PN_STORE_UNAVAILABLE);
	note_init_quarantine(&note, "n7", "could not decrypt");
	note_submit(store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_UNAVAILABLE);
	note_done(&note);
	/* A load balancer would go on sending. */
	assert_int_equal(
	    pn_store_health(store, text, sizeof(text)), PN_STORE_FAILING);
	assert_non_null(strstr(text, "synchronous_standby_names is empty"));
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.receipts"), 0);
	assert_int_equal(db(f->db, "SELECT count(*) FROM "
				   "paynotify.idempotency_keys"),
	    0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__quarantines_a_conflict_once),
		TEST(test_store__quarantines_what_is_signed_but_unreadable),
		TEST(test_store__isolates_an_event_that_the_database_refuses),
		TEST(test_store__writes_receipts_of_refusals),
		TEST(
		    test_store__refuses_without_a_standby_where_one_is_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
