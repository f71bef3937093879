/*
 * Evidence as it is read to be verified again: each row once, whatever the pages
 * are, and that of one event.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/evidence.h"
#include "paynotify/moment.h"

#include "store_support.h"

enum { PAGES = 1203 };

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
	assert_int_equal(put(store, "a", 101), PN_STORE_CONFLICT);
	note_init_quarantine(&note, "subject", "cannot be decrypted");
	note_submit(store, &note);
	(void)note_wait(&note);
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

struct read {
	int rows, missing, bodies;
	char last[40];
	bool in_order;
	char event_id[40];
};

static int
on_evidence(const struct pn_evidence_row *row, void *payload)
{
	struct read *read = payload;
	char id[40];

	(void)snprintf(id, sizeof(id), PN_STR_FMT, PN_STR_ARG(row->receipt_id));
	read->in_order =
	    read->rows == 0 || (read->in_order && strcmp(id, read->last) >= 0);
	(void)snprintf(read->last, sizeof(read->last), "%s", id);
	(void)snprintf(read->event_id, sizeof(read->event_id), PN_STR_FMT,
	    PN_STR_ARG(row->event_id));
	read->missing += row->receipt_id.len == 0;
	read->bodies +=
	    pn_str_equal(row->body, (struct pn_str){ "\0\xff\\x'", 5 });
	read->rows++;
	return 0;
}

static int
read_all(struct fixture *f, const char *tenant, int64_t since_us,
    struct read *ret_read)
{
	const struct pn_evidence_filter filter = { tenant, since_us };
	struct pn_error error = { { 0 } };

	*ret_read = (struct read){ 0 };
	assert_int_equal(
	    pn_query_evidence(f->query, &filter, on_evidence, ret_read, &error),
	    0);
	return ret_read->rows;
}

/* If it failed: evidence would be passed over, and be called verified. */
static void
test_evidence__every_row_is_read_once(void **state)
{
	struct fixture *f = *state;
	struct read read;

	assert_int_equal(read_all(f, NULL, PN_MOMENT_NONE, &read), 3);
	/* In two months, and with receipts of one row, of many (more than a
	 * page), and of rows in both months. */
	(void)db(f->db,
	    "INSERT INTO paynotify.evidence (receipt_id, received_at, "
	    "provider, tenant, headers, body, key_fingerprint) SELECT "
	    "CASE WHEN i > 250 THEN gen_random_uuid() ELSE "
	    "('00000000-0000-7000-8000-' || lpad((i / 3)::text, 12, "
	    "'0'))::uuid "
	    "END, now() - (i %% 2) * interval '20 days', 'alipay', 'many', '', "
	    "'\\x00ff5c7827', '\\x01' FROM generate_series(1, %d) i",
	    PAGES);
	(void)db(f->db,
	    "INSERT INTO paynotify.evidence (receipt_id, received_at, "
	    "provider, tenant, headers, body, key_fingerprint) SELECT "
	    "'10000000-0000-7000-8000-000000000000', now(), 'alipay', 'many', "
	    "'', '\\x00ff5c7827', '\\x01' FROM generate_series(1, 350)");
	assert_int_equal(read_all(f, NULL, PN_MOMENT_NONE, &read), PAGES + 353);
	assert_true(read.in_order);
	assert_int_equal(read.bodies, PAGES + 350);
	assert_int_equal(
	    read_all(f, "many", PN_MOMENT_NONE, &read), PAGES + 350);
	assert_int_equal(
	    read_all(
		f, "many", pn_clock_realtime_us() - 3600 * PN_SECOND_US, &read),
	    PAGES / 2 + 350);
}

static int
read_of(struct fixture *f, const char *which, const char *tenant,
    struct read *ret_read)
{
	struct pn_error error = { { 0 } };

	*ret_read = (struct read){ 0 };
	return pn_query_evidence_of(
	    f->query, which, tenant, on_evidence, ret_read, &error);
}

/* If it failed: an event could not be shown to be the provider's word, or one
 * whose evidence is gone would pass for it. */
static void
test_evidence__of_an_event_by_any_of_its_names(void **state)
{
	struct fixture *f = *state;
	struct read read;
	char id[40];

	assert_int_equal(read_of(f, "1", NULL, &read), 0);
	assert_int_equal(read.rows, 1);
	assert_int_equal(read.missing, 0);
	(void)snprintf(id, sizeof(id), "%s", read.event_id);
	assert_int_equal(read_of(f, id, NULL, &read), 0);
	assert_int_equal(read_of(f, "webhook:alipay:a", "shop1", &read), 0);
	assert_string_equal(read.event_id, id);
	assert_int_equal(read_of(f, "webhook:alipay:a", "shop2", &read), 1);
	assert_int_equal(read_of(f, "99", NULL, &read), 1);
	(void)db(f->db, "DELETE FROM paynotify.evidence");
	assert_int_equal(read_of(f, "1", NULL, &read), 0);
	assert_int_equal(read.missing, 1);
}

/* If it failed: the bar of a long verification would run past its end. */
static void
test_evidence__is_counted_by_statistics(void **state)
{
	struct fixture *f = *state;
	struct pn_error error = { { 0 } };
	int64_t rows = -1;

	assert_int_equal(
	    pn_query_evidence_estimate(f->query, &rows, &error), 0);
	assert_true(rows >= 0);
	(void)db(f->db, "ANALYZE paynotify.evidence");
	assert_int_equal(
	    pn_query_evidence_estimate(f->query, &rows, &error), 0);
	assert_int_equal(rows, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_evidence__every_row_is_read_once),
		TEST(test_evidence__of_an_event_by_any_of_its_names),
		TEST(test_evidence__is_counted_by_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
