/*
 * What is told elsewhere of the metrics: METRICS of paynotifyd(8), the alert
 * rules and their tests, the dashboard. If these fail, an operator looks for a
 * metric that there is not, or never hears of one that there is.
 */
#include "paynotify/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char man[] = "src/cmd/man/paynotifyd.8";
static const char rules[] = "systemd/prometheus/paynotifyd.rules.yml";
static const char rules_test[] = "tests/prometheus/rules_test.yml";
static const char dashboard[] = "systemd/prometheus/grafana.json";

enum { NAME_BYTES_MAX = 80, FILE_BYTES_MAX = 1 << 20 };

static void
read_file(const char *path, struct pn_buf *ret_text)
{
	FILE *file = fopen(path, "r");
	char chunk[4096];
	size_t n;

	if (file == NULL)
		fail_msg("could not open %s", path);
	*ret_text = pn_buf_init(FILE_BYTES_MAX);
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		pn_buf_add(ret_text, chunk, n);
	(void)fclose(file);
	assert_false(pn_buf_failed(ret_text));
}

/* The word behind a prefix, from *at on; false: there is none any more. */
static bool
next_word(const char **at, const char *prefix, char ret_word[NAME_BYTES_MAX])
{
	const char *word = strstr(*at, prefix);
	size_t len;

	if (word == NULL)
		return false;
	word += strlen(prefix);
	len = strspn(word, "abcdefghijklmnopqrstuvwxyz"
			   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	assert_true(len < NAME_BYTES_MAX);
	memcpy(ret_word, word, len);
	ret_word[len] = '\0';
	*at = word + len;
	return true;
}

static bool
has_line(const struct pn_buf *text, const char *before, const char *name,
    const char *after)
{
	char line[2 * NAME_BYTES_MAX];
	const char *at;

	(void)snprintf(line, sizeof(line), "%s%s", before, name);
	at = text->data;
	while ((at = strstr(at, line)) != NULL) {
		at += strlen(line);
		if (strchr(after, *at) != NULL)
			return true;
	}
	return false;
}

/* A metric that the manual does not have. */
static void
test_metrics__the_manual_has_each_family(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf page = pn_buf_init(1 << 20);
	PN_CLEANUP(pn_buf_done) struct pn_buf text;
	char name[NAME_BYTES_MAX];
	const char *at, *end;

	(void)state;
	read_file(man, &text);
	pn_metrics_print(&page);
	at = page.data;
	while (next_word(&at, "# HELP ", name))
		if (!has_line(&text, "\n.It Sy ", name, " \n"))
			fail_msg("%s has no %s", man, name);
	/* And the other way round: one that is no more. */
	at = strstr(text.data, "\n.Sh METRICS\n");
	assert_non_null(at);
	end = strstr(at + 1, "\n.Sh ");
	while (next_word(&at, "\n.It Sy paynotify_", name) && at < end) {
		char whole[NAME_BYTES_MAX + 16];

		(void)snprintf(whole, sizeof(whole), "paynotify_%s", name);
		if (!has_line(&page, "# HELP ", whole, " "))
			fail_msg("%s has %s, which is none", man, whole);
	}
}

/* A family, or one of the three that a histogram has. */
static bool
is_known(const struct pn_buf *page, const char *name)
{
	static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
	char stem[NAME_BYTES_MAX + 16], line[2 * NAME_BYTES_MAX];

	(void)snprintf(stem, sizeof(stem), "paynotify_%s", name);
	if (has_line(page, "# TYPE ", stem, " "))
		return true;
	for (size_t i = 0; i < PN_COUNT(suffixes); i++) {
		char *end = strstr(stem, suffixes[i]);

		if (end == NULL || strcmp(end, suffixes[i]) != 0)
			continue;
		*end = '\0';
		(void)snprintf(
		    line, sizeof(line), "# TYPE %s histogram\n", stem);
		return strstr(page->data, line) != NULL;
	}
	return false;
}

/* A rule that never fires, a panel that stays empty. */
static void
test_metrics__rules_and_dashboard_ask_for_what_there_is(void **state)
{
	static const char *const files[] = { rules, rules_test, dashboard };
	PN_CLEANUP(pn_buf_done) struct pn_buf page = pn_buf_init(1 << 20);
	char name[NAME_BYTES_MAX];
	int found = 0;

	(void)state;
	pn_metrics_print(&page);
	for (size_t i = 0; i < PN_COUNT(files); i++) {
		PN_CLEANUP(pn_buf_done) struct pn_buf text;
		const char *at;

		read_file(files[i], &text);
		at = text.data;
		while (next_word(&at, "paynotify_", name)) {
			found++;
			if (!is_known(&page, name))
				fail_msg(
				    "%s asks for paynotify_%s, which is no "
				    "metric",
				    files[i], name);
		}
	}
	assert_true(found > 100);
}

/* An alert that nobody has seen fire. */
static void
test_metrics__each_alert_is_tested(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf text;
	PN_CLEANUP(pn_buf_done) struct pn_buf tests;
	char name[NAME_BYTES_MAX];
	const char *at;
	int found = 0;

	(void)state;
	read_file(rules, &text);
	read_file(rules_test, &tests);
	at = text.data;
	while (next_word(&at, "- alert: ", name)) {
		found++;
		if (!has_line(&tests, "alertname=\"", name, "\""))
			fail_msg("%s does not make %s fire", rules_test, name);
	}
	assert_true(found > 15);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics__the_manual_has_each_family),
		cmocka_unit_test(
		    test_metrics__rules_and_dashboard_ask_for_what_there_is),
		cmocka_unit_test(test_metrics__each_alert_is_tested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
