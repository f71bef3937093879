/*
 * What is counted of an account. If these fail, an alarm tells of the wrong
 * merchant, a rotation looks finished that is not, or a clock that is off goes
 * unseen.
 */
#include "fakes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

static int64_t
count_of(const struct world *w, enum pn_request_end end)
{
	return pn_series_get(w->job.route->series.requests, end);
}

static int64_t
count_of_all(const struct world *w)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < PN_REQUEST_END_COUNT; i++)
		sum += count_of(w, (enum pn_request_end)i);
	return sum;
}

/* One that counts twice, or not, or as another: shares add up to no whole. */
static void
test_series__a_request_counts_once_as_it_ended(void **state)
{
	static const struct {
		enum pn_verdict verdict;
		bool verified, probe, limited;
		enum pn_store_verdict says;
		enum pn_request_end end;
	} rows[] = {
		{ PN_VERDICT_ACCEPTED, true, false, false, PN_STORE_RECORDED,
		    PN_REQUEST_ACCEPTED },
		{ PN_VERDICT_ACCEPTED, true, false, false, PN_STORE_DUPLICATE,
		    PN_REQUEST_DUPLICATE },
		{ PN_VERDICT_ACCEPTED, true, false, false, PN_STORE_CONFLICT,
		    PN_REQUEST_CONFLICT },
		{ PN_VERDICT_ACCEPTED, true, false, false, PN_STORE_QUARANTINED,
		    PN_REQUEST_QUARANTINED },
		{ PN_VERDICT_ACCEPTED, true, false, false, PN_STORE_UNAVAILABLE,
		    PN_REQUEST_UNAVAILABLE },
		{ PN_VERDICT_UNDECRYPTABLE, true, false, false,
		    PN_STORE_QUARANTINED, PN_REQUEST_UNDECRYPTABLE },
		{ PN_VERDICT_WRONG_ACCOUNT, true, false, false,
		    PN_STORE_UNAVAILABLE, PN_REQUEST_UNAVAILABLE },
		{ PN_VERDICT_MALFORMED, false, false, false,
		    PN_STORE_UNAVAILABLE, PN_REQUEST_MALFORMED },
		{ PN_VERDICT_BAD_SIGNATURE, false, false, false,
		    PN_STORE_UNAVAILABLE, PN_REQUEST_BAD_SIGNATURE },
		{ PN_VERDICT_BAD_SIGNATURE, false, true, false,
		    PN_STORE_UNAVAILABLE, PN_REQUEST_PROBE },
		{ PN_VERDICT_STALE, false, false, false, PN_STORE_UNAVAILABLE,
		    PN_REQUEST_STALE },
		{ PN_VERDICT_STALE, false, false, true, PN_STORE_UNAVAILABLE,
		    PN_REQUEST_RATE_LIMITED },
	};
	struct world *w = *state;

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		int64_t before = count_of(w, rows[i].end);
		int64_t all = count_of_all(w);

		tell(rows[i].verdict, rows[i].verified);
		told.notification.probe = rows[i].probe;
		w->limited = rows[i].limited;
		pn_ingest_submit(w->ingest, &w->job);
		if (rows[i].verified)
			store_says(rows[i].says);
		w->done = w->released = 0;
		assert_int_equal(count_of(w, rows[i].end), before + 1);
		assert_int_equal(count_of_all(w), all + 1);
	}
}

/* The store is full, or the daemon stops: an outage that nobody sees. */
static void
test_series__what_was_not_taken_is_unavailable(void **state)
{
	struct world *w = *state;
	int64_t before = count_of(w, PN_REQUEST_UNAVAILABLE);

	tell(PN_VERDICT_ACCEPTED, true);
	store_full = 1;
	pn_ingest_submit(w->ingest, &w->job);
	assert_int_equal(count_of(w, PN_REQUEST_UNAVAILABLE), before + 1);
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_QUEUE_FULL);
	assert_int_equal(count_of(w, PN_REQUEST_UNAVAILABLE), before + 2);
}

/* A browser's GET would raise the rate of malformed notifications. */
static void
test_series__what_is_no_notification_is_not_counted(void **state)
{
	struct world *w = *state;
	int64_t all = count_of_all(w);

	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_METHOD);
	assert_int_equal(count_of_all(w), all);
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_BODY_OVER_LIMIT);
	assert_int_equal(count_of_all(w), all + 1);
}

/* An old key is taken away that still verifies. */
static void
test_series__keys_are_told_apart(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf page = pn_buf_init(1 << 20);
	struct world *w = *state;
	const struct pn_route *route = w->job.route;

	/* The key in common, and that of shop1: see fakes.c. */
	assert_int_equal(route->series.key_count, 2);
	tell(PN_VERDICT_ACCEPTED, true);
	told.notification.key_fingerprint[0] = 2;
	for (int i = 0; i < 3; i++) {
		pn_ingest_submit(w->ingest, &w->job);
		store_says(PN_STORE_DUPLICATE);
		w->done = w->released = 0;
	}
	pn_series_print(&page);
	assert_non_null(strstr(page.data,
	    "\npaynotify_verified_total{provider=\"fake\",tenant=\"shop1\","
	    "key=\"0200000000000000\"} 3\n"));
	assert_non_null(strstr(page.data,
	    "\npaynotify_verified_total{provider=\"fake\",tenant=\"shop1\","
	    "key=\"0000000000000000\"} 0\n"));
}

static void
submit_sent(struct world *w, int64_t ago_us, enum pn_store_verdict says)
{
	tell(PN_VERDICT_ACCEPTED, true);
	told.notification.signed_at_us =
	    ago_us == PN_MOMENT_NONE ? ago_us : pn_clock_realtime_us() - ago_us;
	pn_ingest_submit(w->ingest, &w->job);
	store_says(says);
	w->done = w->released = 0;
}

/* Captures that are sent again, or one late message, look like a clock. */
static void
test_series__the_clock_is_that_of_new_notifications(void **state)
{
	struct world *w = *state;
	struct pn_series *gauge = w->job.route->series.clock_offset;
	int64_t offset_us;

	assert_true(pn_series_get(gauge, 0) == PN_SERIES_ABSENT);
	submit_sent(w, PN_MOMENT_NONE, PN_STORE_RECORDED);
	submit_sent(w, 90 * PN_SECOND_US, PN_STORE_DUPLICATE);
	submit_sent(w, 24 * 3600 * PN_SECOND_US, PN_STORE_RECORDED);
	assert_true(pn_series_get(gauge, 0) == PN_SERIES_ABSENT);
	submit_sent(w, -80 * PN_SECOND_US, PN_STORE_RECORDED);
	offset_us = pn_series_get(gauge, 0);
	assert_in_range(offset_us, 20 * PN_SECOND_US, 80 * PN_SECOND_US);
	/* One that was late moves it by an eighth. */
	submit_sent(w, 800 * PN_SECOND_US, PN_STORE_RECORDED);
	assert_true(pn_series_get(gauge, 0) < offset_us - 99 * PN_SECOND_US);
	assert_true(pn_series_get(gauge, 0) > offset_us - 200 * PN_SECOND_US);
}

/* After a reload without the account its gauge would be told for ever. */
static void
test_series__a_closed_account_has_no_gauge(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf page = pn_buf_init(1 << 20);
	struct world *w = *state;
	static const char name[] = "\npaynotify_clock_offset_seconds{";
	struct pn_accounts *other;

	submit_sent(w, 0, PN_STORE_RECORDED);
	pn_series_print(&page);
	assert_non_null(strstr(page.data, name));
	/* A reload: the next is open before this one is closed. */
	assert_int_equal(pn_accounts_open(&w->conf, &other, NULL), 0);
	pn_accounts_unref(other);
	pn_buf_reset(&page);
	pn_series_print(&page);
	assert_non_null(strstr(page.data, name));
	pn_ingest_close(w->ingest);
	pn_accounts_unref(w->open);
	pn_route_unref(w->job.route);
	w->ingest = NULL;
	w->open = NULL;
	w->job.route = NULL;
	pn_buf_reset(&page);
	pn_series_print(&page);
	assert_null(strstr(page.data, name));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
	const struct CMUnitTest tests[] = {
		TEST(test_series__a_request_counts_once_as_it_ended),
		TEST(test_series__what_was_not_taken_is_unavailable),
		TEST(test_series__what_is_no_notification_is_not_counted),
		TEST(test_series__keys_are_told_apart),
		TEST(test_series__the_clock_is_that_of_new_notifications),
		TEST(test_series__a_closed_account_has_no_gauge),
	};

	pn_log_configure(PN_LOG_ERR, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
