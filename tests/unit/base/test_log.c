/*
 * The log. If these fail, a stranger writes lines of their own into it, or an
 * operator does not find what happened to a request.
 */
#include "paynotify/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/limits.h"

static char ones[5000], wide[5000];

/* stderr goes to a file between begin() and end(). */
struct capture {
	FILE *file;
	int saved;
	char text[8 * PN_LOG_LINE_BYTES_MAX];
};

static void
begin(struct capture *capture)
{
	capture->file = tmpfile();
	assert_non_null(capture->file);
	capture->saved = dup(STDERR_FILENO);
	assert_true(dup2(fileno(capture->file), STDERR_FILENO) >= 0);
}

static void
end(struct capture *capture)
{
	size_t len;

	assert_true(dup2(capture->saved, STDERR_FILENO) >= 0);
	(void)close(capture->saved);
	rewind(capture->file);
	len = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
	capture->text[len] = '\0';
	(void)fclose(capture->file);
}

/* What stands behind "time=2026-03-01T02:00:05.123456Z ": the line without its
 * time, which is checked to have that form. */
static const char *
untimed(const char *line)
{
	static const char form[] = "time=0000-00-00T00:00:00.000000Z ";

	for (size_t i = 0; form[i] != '\0'; i++) {
		if (form[i] == '0')
			assert_in_range(line[i], '0', '9');
		else
			assert_int_equal(line[i], form[i]);
	}
	return line + sizeof(form) - 1;
}

/* All lines, each without its time. */
static const char *
untimed_all(struct capture *capture)
{
	char *out = capture->text, *line = capture->text, *end;
	const char *from;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		from = untimed(line);
		memmove(out, from, (size_t)(end + 1 - from));
		out += end + 1 - from;
	}
	*out = '\0';
	return capture->text;
}

/* A field is missing, so that a line cannot be found by its order. */
static void
test_log__line_says_whom_it_is_about(void **state)
{
	const struct pn_log_about about = { .request_id = "0195",
		.provider = "alipay",
		.tenant = "shop1",
		.subject = "bad_signature",
		.key = PN_STR("webhook:alipay:1"),
		.peer = "192.0.2.1" };
	struct capture capture;

	(void)state;
	begin(&capture);
	errno = EBUSY;
	pn_log(PN_LOG_WARNING, &about, "could not verify: key \"%s\" unknown",
	    "k1");
	pn_log_err("x");
	assert_int_equal(errno, EBUSY);
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=warning category=cmd req=0195 provider=alipay tenant=shop1 "
	    "subject=bad_signature peer=192.0.2.1 key=webhook:alipay:1 "
	    "msg=\"could not verify: key \\\"k1\\\" unknown\"\n"
	    "level=err category=cmd msg=\"x\"\n");
}

/* The same, where JSON is asked for. */
static void
test_log__json_is_an_object_a_line(void **state)
{
	const struct pn_log_about about = { .tenant = "shop1",
		.key = PN_STR("a\nb\"\xff") };
	struct capture capture;
	const char *rest;

	(void)state;
	begin(&capture);
	pn_log_set_format(PN_LOG_JSON);
	pn_log(PN_LOG_NOTICE, &about, "%s", "1\n2\x1b[31m \xe4\xb8\xad");
	pn_log_set_format(PN_LOG_LOGFMT);
	end(&capture);
	assert_memory_equal(capture.text, "{\"time\":\"20", 11);
	rest = strstr(capture.text, ",\"level\"");
	assert_non_null(rest);
	assert_string_equal(rest,
	    ",\"level\":\"notice\",\"category\":\"cmd\",\"tenant\":\"shop1\","
	    "\"key\":\"a\\nb\\\"\\ufffd\",\"msg\":\"1\\n2\\u001b[31m "
	    "\xe4\xb8\xad\"}\n");
}

/* A stranger's value forges a line or paints the terminal. */
static void
test_log__escapes_what_strangers_send(void **state)
{
	const struct pn_log_about about = { .tenant = "a b",
		.key = PN_STR("a\nb\0\"\\") };
	struct capture capture;

	(void)state;
	begin(&capture);
	pn_log(PN_LOG_ERR, &about, "%s",
	    "1\n2\x1b[31m\x7f \xe4\xb8\xad \xc2\x9b \xe2\x80\xae");
	pn_log_err("%s", "bad \xff\xe4\xb8 good \xe4\xb8\xad");
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=err category=cmd tenant=\"a b\" "
	    "key=\"a\\nb\\u0000\\\"\\\\\" "
	    "msg=\"1\\n2\\u001b[31m\\u007f \xe4\xb8\xad \\u009b "
	    "\\u202e\"\n"
	    "level=err category=cmd msg=\"bad \\ufffd\\ufffd good "
	    "\xe4\xb8\xad\"\n");
}

/* A long value breaks the line in two or leaves it without an end. */
static void
test_log__long_lines_are_cut_whole(void **state)
{
	const struct pn_log_about about = { .key = { ones, sizeof(ones) - 1 },
		.peer = "p" };
	const struct pn_log_about chinese = { .key = {
						  wide, sizeof(wide) - 1 } };
	struct capture capture;
	char *second, *third;

	(void)state;
	memset(ones, '\1', sizeof(ones) - 1);
	for (size_t i = 0; i + 3 < sizeof(wide); i += 3)
		memcpy(wide + i, "\xe4\xb8\xad", 3);
	begin(&capture);
	pn_log(PN_LOG_ERR, &about, "%s", ones);
	pn_log_err("%s", wide);
	pn_log(PN_LOG_ERR, &chinese, "x");
	end(&capture);
	second = strchr(capture.text, '\n') + 1;
	third = strchr(second, '\n') + 1;
	assert_true(second - capture.text <= PN_LOG_LINE_BYTES_MAX);
	assert_true(second - capture.text > PN_LOG_LINE_BYTES_MAX - 16);
	/* Cut between two escapes, both fields. */
	assert_memory_equal(second - 11, "\\u0001...\"\n", 11);
	assert_non_null(strstr(capture.text, "\\u0001...\" msg="));
	/* No half character, which would be U+FFFD. */
	assert_null(strstr(second, "ufffd"));
	assert_memory_equal(third - 5, "\xe4\xb8\xad\"\n", 5);
	assert_non_null(strstr(third, "\xe4\xb8\xad...\" msg=\"x\"\n"));
	assert_ptr_equal(strchr(third, '\n'), third + strlen(third) - 1);
}

/* A caller that looks at errno after it has logged finds the log's fault. */
static void
test_log__failing_to_write_harms_nobody(void **state)
{
	int saved = dup(STDERR_FILENO);

	(void)state;
	assert_true(saved >= 0);
	assert_int_equal(close(STDERR_FILENO), 0);
	errno = EBUSY;
	pn_log_err("nowhere to go");
	assert_int_equal(errno, EBUSY);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_int_equal(close(saved), 0);
}

static int calls;

static int
count_call(void)
{
	return ++calls;
}

/* Debug lines in production, or errors held back; arguments that are computed
 * for a line that nobody reads. */
static void
test_log__level_decides_what_is_written(void **state)
{
	enum pn_log_level level = PN_LOG_INFO;
	struct capture capture;

	(void)state;
	assert_int_equal(pn_log_level_parse(PN_STR("notice"), &level), 0);
	assert_int_equal(level, PN_LOG_NOTICE);
	assert_int_equal(pn_log_level_parse(PN_STR("loud"), &level), 1);
	assert_int_equal(pn_log_level_parse(PN_STR(""), &level), 1);
	calls = 0;
	begin(&capture);
	pn_log_configure(PN_LOG_NOTICE, 0);
	pn_log_info("hidden %d", count_call());
	pn_log_notice("shown");
	pn_log_configure(PN_LOG_DEBUG, 0);
	pn_log_debug("shown too %d", count_call());
	pn_log_configure(PN_LOG_INFO, 0);
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=notice category=cmd msg=\"shown\"\n"
	    "level=debug category=cmd msg=\"shown too 1\"\n");
}

/* Who lowers the level hides what is done after that, and alarms. */
static void
test_log__records_and_alarms_ignore_the_level(void **state)
{
	struct capture capture;

	(void)state;
	begin(&capture);
	pn_log_configure(PN_LOG_ERR, 0);
	pn_log_warning("hidden");
	pn_log_always(PN_LOG_NOTICE, NULL, "done by \"%s\"", "mei");
	pn_log_always(PN_LOG_WARNING, NULL, "quarantined");
	pn_log_configure(PN_LOG_INFO, 0);
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=notice category=cmd msg=\"done by \\\"mei\\\"\"\n"
	    "level=warning category=cmd msg=\"quarantined\"\n");
}

/* A client's key may be a buyer's phone number; an event's is what an operator
 * looks for. */
static void
test_log__masks_the_keys_of_the_gateway(void **state)
{
	const struct pn_log_about phone = { .key = PN_STR("13812345678") };
	struct capture capture;

	(void)state;
	begin(&capture);
	pn_log_line(PN_LOG_IN_GUARD, PN_LOG_INFO, PN_LOG_ALL, &phone, "a");
	pn_log_line(PN_LOG_IN_GUARD, PN_LOG_INFO, PN_LOG_ALL, NULL, "b");
	pn_log_line(PN_LOG_IN_INGEST, PN_LOG_INFO, PN_LOG_ALL, &phone, "c");
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=info category=guard key=138****5678 msg=\"a\"\n"
	    "level=info category=guard msg=\"b\"\n"
	    "level=info category=ingest key=13812345678 msg=\"c\"\n");
}

/* Debug of one layer cannot be had without that of all. */
static void
test_log__categories_are_switched_by_themselves(void **state)
{
	enum pn_log_category category = PN_LOG_IN_BASE;
	struct capture capture;

	(void)state;
	assert_int_equal(pn_log_category_parse(PN_STR("store"), &category), 0);
	assert_int_equal(category, PN_LOG_IN_STORE);
	assert_int_equal(pn_log_category_parse(PN_STR("shop"), &category), 1);
	for (int i = 0; i < PN_LOG_CATEGORY_COUNT; i++)
		assert_non_null(pn_log_category_names[i]);
	assert_null(pn_log_category_names[PN_LOG_CATEGORY_COUNT]);
	begin(&capture);
	pn_log_configure(PN_LOG_WARNING, 1U << PN_LOG_IN_STORE);
	assert_true(pn_log_is_on(PN_LOG_DEBUG, PN_LOG_IN_STORE));
	assert_false(pn_log_is_on(PN_LOG_INFO, PN_LOG_IN_HTTP));
	pn_log_debug("hidden");
	pn_log_configure(PN_LOG_WARNING, 1U << PN_LOG_IN_CMD);
	assert_int_equal(pn_log_level(), PN_LOG_WARNING);
	assert_int_equal(pn_log_debug_categories(), 1U << PN_LOG_IN_CMD);
	pn_log_debug("shown");
	pn_log_configure(PN_LOG_INFO, 0);
	end(&capture);
	assert_string_equal(
	    untimed_all(&capture), "level=debug category=cmd msg=\"shown\"\n");
}

static void
refuse(const char *tenant, int i)
{
	pn_log(PN_LOG_WARNING, &(struct pn_log_about){ .tenant = tenant },
	    "refused %d", i);
}

/* A flood of forgeries fills the disk, hides how many they were, or hides
 * another account's lines; an alarm or a debug line is held back. */
static void
test_log__floods_collapse(void **state)
{
	struct capture capture;
	const char *text;

	(void)state;
	begin(&capture);
	pn_log_configure(PN_LOG_DEBUG, 0);
	for (int i = 0; i < 100; i++)
		refuse("shop1", i);
	refuse("shop2", 100);
	for (int i = 0; i < 20; i++) {
		pn_log_debug("debug");
		pn_log_always(PN_LOG_WARNING, NULL, "alarm");
	}
	pn_log_tell_held(false); /* it may go on: not yet */
	pn_log_tell_held(true);
	pn_log_tell_held(true);
	pn_log_configure(PN_LOG_INFO, 0);
	end(&capture);
	text = untimed_all(&capture);
	assert_non_null(strstr(text, "tenant=shop1 msg=\"refused 9\""));
	assert_null(strstr(text, "refused 99\""));
	assert_non_null(strstr(text, "tenant=shop2 msg=\"refused 100\""));
	assert_non_null(strstr(text, " like it held back"));
	/* 10 of the flood (or more, if this took seconds), 1, 40, 1. */
	size_t lines = 0;
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_in_range(lines, 52, 60);
}

/* What is dear is computed for lines that are not written. */
static void
test_log__tells_beforehand_what_is_held(void **state)
{
	static const char line[] = "lasting %d";
	const struct pn_log_about about = { .tenant = "shop3" };
	struct capture capture;

	(void)state;
	begin(&capture);
	assert_false(pn_log_is_held(&about, line));
	pn_log_every(3600 * INT64_C(1000000), PN_LOG_ERR, &about, line, 1);
	assert_true(pn_log_is_held(&about, line));
	assert_false(pn_log_is_held(NULL, line));
	pn_log_every(3600 * INT64_C(1000000), PN_LOG_ERR, &about, line, 2);
	end(&capture);
	assert_string_equal(untimed_all(&capture),
	    "level=err category=cmd tenant=shop3 msg=\"lasting 1\"\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log__line_says_whom_it_is_about),
		cmocka_unit_test(test_log__json_is_an_object_a_line),
		cmocka_unit_test(test_log__escapes_what_strangers_send),
		cmocka_unit_test(test_log__long_lines_are_cut_whole),
		cmocka_unit_test(test_log__failing_to_write_harms_nobody),
		cmocka_unit_test(test_log__level_decides_what_is_written),
		cmocka_unit_test(
		    test_log__categories_are_switched_by_themselves),
		cmocka_unit_test(test_log__records_and_alarms_ignore_the_level),
		cmocka_unit_test(test_log__masks_the_keys_of_the_gateway),
		cmocka_unit_test(test_log__floods_collapse),
		cmocka_unit_test(test_log__tells_beforehand_what_is_held),
	};

	/* Another process's journal stream: not ours, so logfmt it is. */
	if (setenv("JOURNAL_STREAM", "1:1", 1) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
