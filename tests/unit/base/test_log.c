/*
 * The log. If these fail, a stranger writes lines of their own into it, or an
 * operator does not find what happened to a request.
 */
#include "paynotify/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/limits.h"

static struct pn_log_gate gate;
static char ones[5000], wide[5000];

/* stderr goes to a file between begin() and end(). */
struct capture {
	FILE *file;
	int saved;
	char text[4 * PN_LOG_LINE_BYTES_MAX];
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

/* A field is missing, so that a line cannot be found by its order. */
static void
test_log__line_says_whom_it_is_about(void **state)
{
	const struct pn_log_about about = { .request_id = "0195",
		.provider = "alipay",
		.tenant = "shop1",
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
	assert_string_equal(capture.text,
	    "level=warning req=0195 provider=alipay tenant=shop1 "
	    "key=\"webhook:alipay:1\" peer=192.0.2.1 "
	    "msg=\"could not verify: key \\\"k1\\\" unknown\"\n"
	    "level=err msg=\"x\"\n");
}

/* A stranger's value forges a line or paints the terminal. */
static void
test_log__escapes_what_strangers_send(void **state)
{
	const struct pn_log_about about = { .key = PN_STR("a\nb\0\"\\") };
	struct capture capture;

	(void)state;
	begin(&capture);
	pn_log(
	    PN_LOG_ERR, &about, "%s", "1\n2\x1b[31m\x7f \xe4\xb8\xad \xc2\x9b");
	pn_log_err("%s", "bad \xff\xe4\xb8");
	end(&capture);
	assert_string_equal(capture.text,
	    "level=err key=\"a\\x0ab\\x00\\\"\\\\\" "
	    "msg=\"1\\x0a2\\x1b[31m\\x7f \xe4\xb8\xad \\xc2\\x9b\"\n"
	    "level=err msg=\"bad \\xff\\xe4\\xb8\"\n");
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
	for (size_t i = 0; i + 2 < sizeof(ones); i += 2)
		memcpy(ones + i, "\1a", 2);
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
	assert_true(second - capture.text > PN_LOG_LINE_BYTES_MAX - 8);
	assert_memory_equal(second - 2, "\"\n", 2);
	/* Nothing is added behind the first piece that did not fit. */
	assert_null(
	    memmem(capture.text, (size_t)(second - capture.text), "aa", 2));
	/* No half character, which would make all of it look ill-formed. */
	assert_null(strstr(second, "\\x"));
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

/* Debug lines in production, or errors held back. */
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
	begin(&capture);
	pn_log_set_level(PN_LOG_NOTICE);
	pn_log_info("hidden");
	pn_log_notice("shown");
	pn_log_set_level(PN_LOG_DEBUG);
	pn_log_debug("shown too");
	pn_log_set_level(PN_LOG_INFO);
	end(&capture);
	assert_string_equal(capture.text,
	    "level=notice msg=\"shown\"\nlevel=debug msg=\"shown too\"\n");
}

/* A flood of forgeries fills the disk, or hides how many they were. */
static void
test_log__gate_holds_back_and_counts(void **state)
{
	const long long hour_us = 3600LL * 1000 * 1000;
	struct capture capture;

	(void)state;
	begin(&capture);
	for (int i = 0; i < 4; i++)
		pn_log_gated(&gate, hour_us, PN_LOG_ERR, NULL, "line %d", i);
	atomic_store(&gate.next_us, 0);
	pn_log_gated(&gate, hour_us, PN_LOG_ERR, NULL, "later");
	end(&capture);
	assert_string_equal(capture.text,
	    "level=err msg=\"line 0\"\n"
	    "level=err msg=\"later (3 like it held back)\"\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log__line_says_whom_it_is_about),
		cmocka_unit_test(test_log__escapes_what_strangers_send),
		cmocka_unit_test(test_log__long_lines_are_cut_whole),
		cmocka_unit_test(test_log__failing_to_write_harms_nobody),
		cmocka_unit_test(test_log__level_decides_what_is_written),
		cmocka_unit_test(test_log__gate_holds_back_and_counts),
	};

	/* Another process's journal stream: not ours, so logfmt it is. */
	if (setenv("JOURNAL_STREAM", "1:1", 1) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
