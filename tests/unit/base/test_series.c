/*
 * Metrics with labels, and histograms. If these fail, Prometheus refuses the
 * page, or an alarm rule is about another merchant than it says.
 */
#include "paynotify/series.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/limits.h"
#include "paynotify/metrics.h"

static struct pn_buf out;

static const char *
page(void)
{
	pn_buf_done(&out);
	out = pn_buf_init(PN_METRICS_PAGE_BYTES_MAX);
	pn_metrics_print(&out);
	assert_false(pn_buf_failed(&out));
	return out.data;
}

static void
expect(const char *lines)
{
	if (strstr(page(), lines) == NULL)
		fail_msg("not on the page: %s", lines);
}

static void
expect_not(const char *text)
{
	if (strstr(page(), text) != NULL)
		fail_msg("on the page: %s", text);
}

/* A reload would begin to count anew, and every rate be wrong. */
static void
test_series__same_labels_are_the_same_series(void **state)
{
	const char *const one[] = { "alipay", "shop1" };
	const char *const other[] = { "alipay", "shop2" };
	struct pn_series *a = pn_series_open(PN_FAMILY_REQUESTS, one);
	struct pn_series *b = pn_series_open(PN_FAMILY_REQUESTS, other);

	(void)state;
	assert_non_null(a);
	assert_ptr_not_equal(a, b);
	pn_series_add(a, PN_REQUEST_CONFLICT, 2);
	pn_series_close(a);
	assert_ptr_equal(pn_series_open(PN_FAMILY_REQUESTS, one), a);
	pn_series_add(a, PN_REQUEST_CONFLICT, 3);
	assert_int_equal(pn_series_get(a, PN_REQUEST_CONFLICT), 5);
	expect("\npaynotify_requests_total{provider=\"alipay\",tenant=\"shop1\""
	       ",verdict=\"conflict\"} 5\n");
	/* What has not happened is 0, so that a first time is an increase. */
	expect("\npaynotify_requests_total{provider=\"alipay\",tenant=\"shop2\""
	       ",verdict=\"conflict\"} 0\n");
	pn_series_close(a);
	pn_series_close(b);
}

/* A value that ends its quotes: the page is refused, or says another thing. */
static void
test_series__label_values_are_escaped_and_cut(void **state)
{
	char long_value[PN_LABEL_BYTES_MAX + 20], line[256];
	struct pn_series *s;

	(void)state;
	s = pn_series_open(
	    PN_FAMILY_DEAD_LETTERS, (const char *const[]){ "a\"} 1\nb\\" });
	pn_series_set(s, 7);
	expect("\npaynotify_dead_letters{consumer=\"a\\\"} 1\\nb\\\\\"} 7\n");
	pn_series_close(s);
	memset(long_value, 'x', sizeof(long_value) - 1);
	long_value[sizeof(long_value) - 1] = '\0';
	s = pn_series_open(
	    PN_FAMILY_DEAD_LETTERS, (const char *const[]){ long_value });
	pn_series_set(s, 8);
	(void)snprintf(line, sizeof(line),
	    "\npaynotify_dead_letters{consumer=\"%.*s\"} 8\n",
	    PN_LABEL_BYTES_MAX, long_value);
	expect(line);
	/* The longest line there can be: its room is what the cap supposes. */
	memset(long_value, '"', sizeof(long_value) - 1);
	assert_non_null(pn_series_open(PN_FAMILY_CERTIFICATE,
	    (const char *const[]){ long_value, long_value, long_value }));
}

/* Buckets that are not cumulative, or off by one: every quantile is wrong. */
static void
test_series__histograms_are_cumulative_and_in_seconds(void **state)
{
	struct pn_series *s = pn_series_open(PN_FAMILY_COMMIT_SECONDS, NULL);

	(void)state;
	assert_ptr_equal(pn_series_open(PN_FAMILY_COMMIT_SECONDS, NULL), s);
	pn_series_observe(s, 0);
	pn_series_observe(s, 100); /* a bound belongs to its bucket */
	pn_series_observe(s, 101);
	pn_series_observe(s, 2600000);
	pn_series_observe(s, 20000000);
	expect("# TYPE paynotify_commit_seconds histogram\n"
	       "paynotify_commit_seconds_bucket{le=\"0.0001\"} 2\n"
	       "paynotify_commit_seconds_bucket{le=\"0.00025\"} 3\n");
	expect("paynotify_commit_seconds_bucket{le=\"2.5\"} 3\n"
	       "paynotify_commit_seconds_bucket{le=\"5\"} 4\n"
	       "paynotify_commit_seconds_bucket{le=\"10\"} 4\n"
	       "paynotify_commit_seconds_bucket{le=\"+Inf\"} 5\n"
	       "paynotify_commit_seconds_sum 22.600201\n"
	       "paynotify_commit_seconds_count 5\n");
	s = pn_series_open(PN_FAMILY_BATCH_SIZE, NULL);
	pn_series_observe(s, 128);
	expect("paynotify_batch_notifications_bucket{le=\"64\"} 0\n"
	       "paynotify_batch_notifications_bucket{le=\"128\"} 1\n"
	       "paynotify_batch_notifications_bucket{le=\"+Inf\"} 1\n"
	       "paynotify_batch_notifications_sum 128\n");
	s = pn_series_open(
	    PN_FAMILY_DELIVERY_SECONDS, (const char *const[]){ "app" });
	pn_series_observe(s, 1);
	expect("\npaynotify_delivery_seconds_bucket{endpoint=\"app\",le="
	       "\"0.0001\"} 1\n");
	expect("\npaynotify_delivery_seconds_sum{endpoint=\"app\"} 0.000001\n");
}

/* A zero where nothing is known would be believed. */
static void
test_series__unknown_gauges_are_absent(void **state)
{
	const char *const account[] = { "wechat", "shop1" };
	struct pn_series *s = pn_series_open(PN_FAMILY_CLOCK_OFFSET, account);

	(void)state;
	expect_not("\npaynotify_clock_offset_seconds{");
	pn_series_set(s, -1500000);
	expect("\npaynotify_clock_offset_seconds{provider=\"wechat\",tenant="
	       "\"shop1\"} -1.500000\n");
	assert_ptr_equal(pn_series_open(PN_FAMILY_CLOCK_OFFSET, account), s);
	pn_series_close(s);
	expect("\npaynotify_clock_offset_seconds{"); /* one user is left */
	pn_series_close(s);
	expect_not("\npaynotify_clock_offset_seconds{");
	pn_series_close(NULL);
	pn_series_add(NULL, 0, 1);
	pn_series_set(NULL, 1);
	pn_series_observe(NULL, 1);
	assert_true(pn_series_get(NULL, 0) == PN_SERIES_ABSENT);
}

enum { THREADS = 4, ADDS = 20000 };

static void *
adds(void *payload)
{
	struct pn_series *s = pn_series_open(
	    PN_FAMILY_VERIFY_SECONDS, (const char *const[]){ "fake" });

	for (int i = 0; i < ADDS; i++)
		pn_series_observe(s, 200);
	(void)payload;
	return NULL;
}

/* Counts that are lost between threads. */
static void
test_series__any_thread_counts(void **state)
{
	pthread_t threads[THREADS];
	char line[128];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, adds, NULL), 0);
	(void)page(); /* while they count */
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	(void)snprintf(line, sizeof(line),
	    "\npaynotify_verify_seconds_count{provider=\"fake\"} %d\n",
	    THREADS * ADDS);
	expect(line);
}

/* The page of as many accounts as there may be is cut off; and beyond that the
 * table grows without an end. */
static void
test_series__is_bounded_and_the_page_holds_all(void **state)
{
	int64_t refused = pn_metric_get(PN_METRIC_SERIES_REFUSED);
	struct pn_series *s = NULL;
	char tenant[16];
	size_t i;

	(void)state;
	for (i = 0; i < PN_CONF_ACCOUNTS_MAX; i++) {
		(void)snprintf(tenant, sizeof(tenant), "t%zu", i);
		s = pn_series_open(PN_FAMILY_REQUESTS,
		    (const char *const[]){ "alipay", tenant });
		assert_non_null(s);
	}
	assert_int_equal(pn_metric_get(PN_METRIC_SERIES_REFUSED), refused);
	expect("tenant=\"t4095\",verdict=\"unavailable\"} 0\n");
	for (; s != NULL; i++) {
		assert_true(i < PN_SERIES_LINES_MAX);
		(void)snprintf(tenant, sizeof(tenant), "t%zu", i);
		s = pn_series_open(PN_FAMILY_REQUESTS,
		    (const char *const[]){ "alipay", tenant });
	}
	assert_int_equal(pn_metric_get(PN_METRIC_SERIES_REFUSED), refused + 1);
	(void)page();
	/* Those that are there are still found. */
	assert_non_null(pn_series_open(
	    PN_FAMILY_REQUESTS, (const char *const[]){ "alipay", "t9" }));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series__same_labels_are_the_same_series),
		cmocka_unit_test(test_series__label_values_are_escaped_and_cut),
		cmocka_unit_test(
		    test_series__histograms_are_cumulative_and_in_seconds),
		cmocka_unit_test(test_series__unknown_gauges_are_absent),
		cmocka_unit_test(test_series__any_thread_counts),
		cmocka_unit_test(
		    test_series__is_bounded_and_the_page_holds_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
