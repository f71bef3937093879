/*
 * What commands read: each filter, pages, and one event by any of its names.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"
#include "paynotify/quarantine.h"
#include "paynotify/query.h"

#include "store_support.h"

enum { PAGES = 1203 }; /* more than two pages of the reader */

struct fixture {
	char dsn[DSN_BYTES];
	struct pn_query *query;
	PGconn *db;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct pn_store *store;
	struct pn_error error;
	struct note note;

	database_new(f->dsn);
	store = store_new(f->dsn, 1, 15 * PN_SECOND_US);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(put(store, "a", 100), PN_STORE_DUPLICATE);
	assert_int_equal(put(store, "a", 101), PN_STORE_CONFLICT);
	note_init(&note, "b", 200);
	note_add_refund(&note, "b", "r1");
	note.submission.tenant = PN_STR("shop2");
	for (int i = 0; i < 2; i++) {
		note.events[i].tenant = PN_STR("shop2");
		pn_event_seal(&note.events[i]);
	}
	assert_int_equal(pn_store_submit(store, &note.submission), 0);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	pn_store_close(store, PN_SECOND_US);
	assert_int_equal(pn_query_open(f->dsn, &f->query, &error), 0);
	f->db = db_open(f->dsn);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pn_query_close(f->query);
	PQfinish(f->db);
	free(f);
	return 0;
}

struct seen {
	int rows, stop_after;
	int64_t first, last;
	bool in_order;
	char json[2048];
};

static int
on_row(const struct pn_event_row *row, void *payload)
{
	struct seen *seen = payload;
	struct pn_buf json = pn_buf_init(sizeof(seen->json));

	if (seen->rows == 0) {
		seen->first = row->seq;
		seen->in_order = true;
	} else if (row->seq <= seen->last) {
		seen->in_order = false;
	}
	seen->last = row->seq;
	pn_event_add_json(&json, row);
	(void)snprintf(
	    seen->json, sizeof(seen->json), "%.*s", (int)json.len, json.data);
	pn_buf_done(&json);
	return ++seen->rows == seen->stop_after ? 7 : 0;
}

static struct pn_event_filter
everything(void)
{
	return (struct pn_event_filter){
		.since_us = PN_MOMENT_NONE,
		.after_seq = -1,
		.limit = INT64_MAX,
	};
}

static int
count(struct fixture *f, const struct pn_event_filter *filter,
    struct seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct seen){ 0 };
	assert_int_equal(
	    pn_query_events(f->query, filter, on_row, ret_seen, &error), 0);
	return ret_seen->rows;
}

/* If it failed: `events list` would show what was not asked for, or not all. */
static void
test_query__filters_events(void **state)
{
	struct fixture *f = *state;
	struct pn_event_filter filter = everything();
	struct seen seen;

	assert_int_equal(count(f, &filter, &seen), 3);
	assert_true(seen.in_order);
	filter.newest_first = true;
	assert_int_equal(count(f, &filter, &seen), 3);
	assert_int_equal(seen.first, 3);
	assert_int_equal(seen.last, 1);
	filter.after_seq = 1;
	assert_int_equal(count(f, &filter, &seen), 2);
	filter.newest_first = false;
	assert_int_equal(count(f, &filter, &seen), 2);
	filter.limit = 1;
	assert_int_equal(count(f, &filter, &seen), 1);
	filter = everything();
	filter.tenant = "shop2";
	assert_int_equal(count(f, &filter, &seen), 2);
	filter.type = "refund.succeeded";
	assert_int_equal(count(f, &filter, &seen), 1);
	filter.type = "refund.*";
	assert_int_equal(count(f, &filter, &seen), 1);
	filter.type = "refund"; /* the beginning only where it says so */
	assert_int_equal(count(f, &filter, &seen), 0);
	filter.type = "%*";
	assert_int_equal(count(f, &filter, &seen), 0);
	filter.newest_first = true;
	filter.type = "*";
	assert_int_equal(count(f, &filter, &seen), 2);
	filter.type = "refund.*";
	assert_int_equal(count(f, &filter, &seen), 1);
	filter.tenant = "shop1";
	assert_int_equal(count(f, &filter, &seen), 0);
	filter = everything();
	filter.key = "webhook:alipay:b";
	assert_int_equal(count(f, &filter, &seen), 1);
	filter.tenant = "shop1";
	assert_int_equal(count(f, &filter, &seen), 0);
	filter = everything();
	filter.out_trade_no = "b";
	assert_int_equal(count(f, &filter, &seen), 2);
	filter.out_trade_no = "'; --";
	assert_int_equal(count(f, &filter, &seen), 0);
	filter = everything();
	filter.since_us = pn_clock_realtime_us() - 3600 * PN_SECOND_US;
	assert_int_equal(count(f, &filter, &seen), 3);
	filter.since_us = pn_clock_realtime_us() + 3600 * PN_SECOND_US;
	assert_int_equal(count(f, &filter, &seen), 0);
}

/* If it failed: an event would not come back as it was recorded. */
static void
test_query__gives_an_event_back_whole(void **state)
{
	struct fixture *f = *state;
	struct pn_event_filter filter = everything();
	struct seen seen;

	filter.type = "refund.succeeded";
	assert_int_equal(count(f, &filter, &seen), 1);
	assert_non_null(strstr(seen.json,
	    "\"seq\":3,\"livemode\":true,\"type\":\"refund.succeeded\","
	    "\"provider\":\"alipay\",\"tenant\":\"shop2\","
	    "\"account\":\"2088000000000001\","
	    "\"key\":\"webhook:alipay:b:refund:r1\",\"out_trade_no\":\"b\","
	    "\"transaction_id\":\"b\",\"amount\":null,\"order_amount\":200,"
	    "\"currency\":\"CNY\",\"refund\":{\"id\":\"r\\\"1\","
	    "\"out_refund_no\":null,\"refunded_total\":50},"
	    "\"order_check\":\"off\",\"flags\":[],"
	    "\"occurred_at\":\"2026-01-01T00:00:00Z\",\"received_at\":\""));
	assert_non_null(strstr(seen.json, "\"payload\":{\"out_trade_no\":"
					  "\"b\"}}"));
}

/* If it failed: an operator could not look up what a log line names. */
static void
test_query__finds_an_event_by_id_seq_and_key(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	struct seen seen = { 0 };
	char id[64] = "";

	assert_int_equal(
	    pn_query_event(f->query, "2", NULL, on_row, &seen, &error), 0);
	assert_int_equal(seen.rows, 1);
	(void)snprintf(
	    id, sizeof(id), "%.36s", strstr(seen.json, "\"id\":\"") + 6);
	assert_int_equal(
	    pn_query_event(f->query, id, NULL, on_row, &seen, &error), 0);
	assert_int_equal(pn_query_event(f->query, "webhook:alipay:b", NULL,
			     on_row, &seen, &error),
	    0);
	assert_int_equal(seen.rows, 3);
	assert_int_equal(seen.last, 2);
	/* Also when its key has moved. */
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"expires_at = now()");
	(void)db(f->db, "SELECT paynotify.archive_expired_keys(500)");
	assert_int_equal(pn_query_event(f->query, "webhook:alipay:b", NULL,
			     on_row, &seen, &error),
	    0);
	assert_int_equal(seen.rows, 4);
	assert_int_equal(pn_query_event(f->query, "webhook:alipay:b", "nobody",
			     on_row, &seen, &error),
	    1);
	assert_int_equal(seen.rows, 4);
	id[35] = id[35] == '0' ? '1' : '0';
	assert_int_equal(
	    pn_query_event(f->query, id, NULL, on_row, &seen, &error), 1);
	assert_int_equal(
	    pn_query_event(f->query, "99", NULL, on_row, &seen, &error), 1);
	assert_int_equal(
	    pn_query_event(f->query, "evt_x", NULL, on_row, &seen, &error), 1);
	assert_int_equal(seen.rows, 4);
}

/* If it failed: long lists would end early, repeat rows, or go on after the
 * reader has had enough. */
static void
test_query__pages_through_long_lists(void **state)
{
	struct fixture *f = *state;
	struct pn_event_filter filter = everything();
	struct pn_error error = { { 0 } };
	struct seen seen;

	(void)db(f->db,
	    "INSERT INTO paynotify.event_log (received_at, id, "
	    "receipt_id, livemode, type, provider, tenant, key, "
	    "request_hash) SELECT now(), gen_random_uuid(), gen_random_uuid(), "
	    "true, 'x', 'alipay', 'shop3', 'k' || i, '' "
	    "FROM generate_series(1, %d) i",
	    PAGES);
	filter.tenant = "shop3";
	assert_int_equal(count(f, &filter, &seen), PAGES);
	assert_true(seen.in_order);
	filter.newest_first = true;
	assert_int_equal(count(f, &filter, &seen), PAGES);
	filter.limit = PAGES - 1;
	assert_int_equal(count(f, &filter, &seen), PAGES - 1);
	seen = (struct seen){ .stop_after = 600 };
	assert_int_equal(
	    pn_query_events(f->query, &filter, on_row, &seen, &error), 7);
	assert_int_equal(seen.rows, 600);
}

struct receipts_seen {
	int rows;
	char last_verdict[32];
	char last_id[40];
	bool in_order;
};

static int
on_receipt(const struct pn_receipt_row *row, void *payload)
{
	struct receipts_seen *seen = payload;
	char id[40];

	(void)snprintf(id, sizeof(id), PN_STR_FMT, PN_STR_ARG(row->id));
	if (seen->rows++ == 0)
		seen->in_order = true;
	else if (strcmp(id, seen->last_id) >= 0)
		seen->in_order = false;
	(void)snprintf(seen->last_id, sizeof(seen->last_id), "%s", id);
	(void)snprintf(seen->last_verdict, sizeof(seen->last_verdict),
	    PN_STR_FMT, PN_STR_ARG(row->verdict));
	return 0;
}

static int
count_receipts(struct fixture *f, const struct pn_receipt_filter *filter,
    struct receipts_seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct receipts_seen){ 0 };
	assert_int_equal(
	    pn_query_receipts(f->query, filter, on_receipt, ret_seen, &error),
	    0);
	return ret_seen->rows;
}

/* If it failed: `receipts list` would not show what came and what was said. */
static void
test_query__filters_receipts(void **state)
{
	struct fixture *f = *state;
	struct pn_receipt_filter filter = { .since_us = PN_MOMENT_NONE,
		.limit = INT64_MAX };
	struct receipts_seen seen;

	assert_int_equal(count_receipts(f, &filter, &seen), 4);
	assert_true(seen.in_order);
	assert_string_equal(seen.last_verdict, "recorded");
	filter.verdict = "conflict";
	assert_int_equal(count_receipts(f, &filter, &seen), 1);
	filter.tenant = "shop2";
	assert_int_equal(count_receipts(f, &filter, &seen), 0);
	filter.verdict = NULL;
	assert_int_equal(count_receipts(f, &filter, &seen), 1);
	filter.tenant = NULL;
	filter.out_trade_no = "a";
	assert_int_equal(count_receipts(f, &filter, &seen), 3);
	filter.provider = "wechat";
	assert_int_equal(count_receipts(f, &filter, &seen), 0);
	(void)db(f->db,
	    "INSERT INTO paynotify.receipts (id, received_at, "
	    "provider, tenant, verdict, status, body_bytes) SELECT "
	    "gen_random_uuid(), now(), 'wechat', 't', 'malformed', 400, 7 "
	    "FROM generate_series(1, %d)",
	    PAGES);
	filter = (struct pn_receipt_filter){ .since_us = PN_MOMENT_NONE,
		.limit = INT64_MAX,
		.provider = "wechat" };
	assert_int_equal(count_receipts(f, &filter, &seen), PAGES);
	assert_true(seen.in_order);
	/* A request whose COMMIT was cut has two receipts. */
	(void)db(f->db, "INSERT INTO paynotify.receipts SELECT * FROM "
			"paynotify.receipts WHERE provider = 'wechat'");
	assert_int_equal(count_receipts(f, &filter, &seen), PAGES);
	assert_true(seen.in_order);
	filter.limit = 3;
	assert_int_equal(count_receipts(f, &filter, &seen), 3);
}

struct quarantine_seen {
	int rows;
	int64_t last_id;
	bool in_order;
	char out_trade_no[32], events[64];
};

static int
on_quarantined(const struct pn_quarantine_row *row, void *payload)
{
	struct quarantine_seen *seen = payload;

	if (seen->rows++ == 0)
		seen->in_order = true;
	else if (row->id >= seen->last_id)
		seen->in_order = false;
	seen->last_id = row->id;
	(void)snprintf(seen->out_trade_no, sizeof(seen->out_trade_no),
	    PN_STR_FMT, PN_STR_ARG(row->out_trade_no));
	(void)snprintf(seen->events, sizeof(seen->events), PN_STR_FMT,
	    PN_STR_ARG(row->events));
	return 0;
}

static int
count_quarantined(struct fixture *f, const struct pn_quarantine_filter *filter,
    struct quarantine_seen *ret_seen)
{
	struct pn_error error = { { 0 } };

	*ret_seen = (struct quarantine_seen){ 0 };
	assert_int_equal(pn_query_quarantine(f->query, filter, on_quarantined,
			     ret_seen, &error),
	    0);
	return ret_seen->rows;
}

/* If it failed: an operator would not find what is in quarantine, or not all of
 * it. */
static void
test_query__lists_and_shows_the_quarantine(void **state)
{
	struct fixture *f = *state;
	struct pn_quarantine_filter filter = { .since_us = PN_MOMENT_NONE,
		.limit = INT64_MAX };
	struct pn_error error = { { 0 } };
	struct quarantine_seen seen;
	int64_t conflict;

	assert_int_equal(count_quarantined(f, &filter, &seen), 1);
	assert_string_equal(seen.out_trade_no, "a");
	assert_string_equal(seen.events, "");
	conflict = seen.last_id;
	assert_int_equal(pn_query_quarantine_entry(
			     f->query, conflict, on_quarantined, &seen, &error),
	    0);
	assert_int_equal(strncmp(seen.events, "[{\"schema\":1", 12), 0);
	assert_int_equal(pn_query_quarantine_entry(f->query, conflict + 1,
			     on_quarantined, &seen, &error),
	    1);
	(void)db(f->db,
	    "INSERT INTO paynotify.quarantine (tenant, subject, fingerprint, "
	    "provider, request_path, reason, events, receipt_id, received_at, "
	    "state) SELECT 't', 's' || i, '', 'wechat', 'notify/wechat', 'r', "
	    "'[]', gen_random_uuid(), now(), 'rejected' "
	    "FROM generate_series(1, %d) i",
	    PAGES);
	assert_int_equal(count_quarantined(f, &filter, &seen), PAGES + 1);
	assert_true(seen.in_order);
	filter.before_id = conflict + 11;
	assert_int_equal(count_quarantined(f, &filter, &seen), 11);
	filter.provider = "wechat";
	assert_int_equal(count_quarantined(f, &filter, &seen), 10);
	filter.state = "open";
	assert_int_equal(count_quarantined(f, &filter, &seen), 0);
	filter.provider = NULL;
	assert_int_equal(count_quarantined(f, &filter, &seen), 1);
	filter.tenant = "t";
	assert_int_equal(count_quarantined(f, &filter, &seen), 0);
}

/* If it failed: a command on a fresh database would print a riddle. */
static void
test_query__names_the_command_when_there_is_no_schema(void **state)
{
	struct fixture *f = *state;
	struct pn_event_filter filter = everything();
	struct pn_error error = { { 0 } };
	struct seen seen = { 0 };

	(void)db(f->db, "ALTER SCHEMA paynotify RENAME TO elsewhere");
	assert_true(
	    pn_query_events(f->query, &filter, on_row, &seen, &error) < 0);
	assert_non_null(strstr(error.text, "paynotifyctl db migrate"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_query__filters_events),
		TEST(test_query__gives_an_event_back_whole),
		TEST(test_query__finds_an_event_by_id_seq_and_key),
		TEST(test_query__pages_through_long_lists),
		TEST(test_query__filters_receipts),
		TEST(test_query__lists_and_shows_the_quarantine),
		TEST(test_query__names_the_command_when_there_is_no_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
