/*
 * Metrics. If these fail, an alarm rule finds nothing to look at.
 */
#include "paynotify/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A value under another name, or a counter that is overwritten. */
static void
test_metrics__prints_what_was_counted(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);

	(void)state;
	pn_metric_add(PN_METRIC_DUPLICATES, 2);
	pn_metric_add(PN_METRIC_DUPLICATES, 3);
	pn_metric_set(PN_METRIC_QUEUE_EVENTS, 9);
	pn_metric_set(PN_METRIC_QUEUE_EVENTS, 7);
	pn_metric_add(PN_METRIC_CONNECTIONS, 1);
	pn_metric_add(PN_METRIC_CONNECTIONS, -1);
	assert_int_equal(pn_metric_get(PN_METRIC_DUPLICATES), 5);
	pn_metrics_print(&out);
	assert_false(pn_buf_failed(&out));
	assert_non_null(strstr(
	    out.data, "\npaynotify_events_total{verdict=\"duplicate\"} 5\n"));
	assert_non_null(strstr(out.data, "\npaynotify_queue_events 7\n"));
	assert_non_null(strstr(out.data, "\npaynotify_connections 0\n"));
	assert_non_null(
	    strstr(out.data, "# TYPE paynotify_connections gauge\n"));
	assert_non_null(
	    strstr(out.data, "# TYPE paynotify_batches_total counter\n"));
}

static size_t
occurrences(const char *text, const char *needle)
{
	size_t count = 0;

	while ((text = strstr(text, needle)) != NULL) {
		text += strlen(needle);
		count++;
	}
	return count;
}

/* A family announced twice: Prometheus refuses the whole page. */
static void
test_metrics__announces_each_family_once(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);
	char *line, *next, *end;

	(void)state;
	pn_metrics_print(&out);
	for (line = out.data; line != NULL; line = next) {
		next = strstr(line + 1, "# TYPE ");
		end = strchr(line, '\n');
		assert_non_null(end);
		if (strncmp(line, "# TYPE ", 7) != 0)
			continue;
		*end = '\0';
		assert_int_equal(
		    occurrences(out.data, line) + occurrences(end + 1, line),
		    1);
		*end = '\n';
	}
	/* One line a metric besides HELP and TYPE; nothing has other labels. */
	assert_int_equal(
	    occurrences(out.data, "\n") - occurrences(out.data, "# "),
	    PN_METRIC_COUNT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics__prints_what_was_counted),
		cmocka_unit_test(test_metrics__announces_each_family_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
