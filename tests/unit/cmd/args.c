/*
 * The command line: what is accepted, what is refused, and that a refused one is
 * never half used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl.h"

#include "paynotify/moment.h"

static const int64_t now_us = INT64_C(1772362806000000);

static int
parse(struct ctl_args *ret_args, const char *const *words)
{
	char *argv[32];
	int argc = 0;

	while (words[argc] != NULL)
		argc++;
	/* getopt moves the pointers about and leaves the words alone. */
	memcpy(argv, words, ((size_t)argc + 1) * sizeof(argv[0]));
	return ctl_args_parse(&ctl_commands[0], argc, argv, now_us, ret_args);
}

#define PARSE(args, ...) \
	parse(args, (const char *const[]){ "do", __VA_ARGS__, NULL })

/* An option that lands in another's place would send the wrong amount. */
static void
test_ctl_args__every_kind_lands_in_its_place(void **state)
{
	struct ctl_args a;

	(void)state;
	assert_int_equal(
	    PARSE(&a, "--account", "alipay/shop1", "--json", "--amount=1", "-n",
		"3", "--timeout", "500ms", "--at", "1772362806", "--since",
		"24h", "payment.succeeded", "--seed", "0"),
	    CTL_DONE);
	assert_string_equal(a.account, "alipay/shop1");
	assert_true(a.json && a.seed_given);
	assert_int_equal(a.amount, 1);
	assert_int_equal(a.count, 3);
	assert_int_equal(a.timeout_us, 500000);
	assert_int_equal(a.at_us, INT64_C(1772362806000000));
	assert_int_equal(a.since_us, now_us - INT64_C(86400000000));
	assert_int_equal(a.operand_count, 1);
	assert_string_equal(a.operands[0], "payment.succeeded");
}

/* Without options a command must behave as its help says. */
static void
test_ctl_args__defaults_are_those_of_the_help(void **state)
{
	struct ctl_args a;

	(void)state;
	assert_int_equal(PARSE(&a, "-a", "x/y", "word"), CTL_DONE);
	assert_string_equal(a.config, "/etc/paynotifyd/paynotifyd.conf");
	assert_int_equal(a.count, 1);
	assert_int_equal(a.connections, 1);
	assert_int_equal(a.timeout_us, 30 * PN_SECOND_US);
	assert_int_equal(a.at_us, PN_MOMENT_NONE);
	assert_int_equal(a.since_us, PN_MOMENT_NONE);
	assert_true(a.limit == UINT64_MAX);
	assert_false(a.json || a.seed_given);
}

/* A mistyped number must not become another one. */
static void
test_ctl_args__bad_values_are_usage(void **state)
{
	static const char *const bad[][2] = {
		{ "--amount", "0" },
		{ "--amount", "-1" },
		{ "--amount", "88.88" },
		{ "--amount", "9223372036854775808" },
		{ "--count", "0" },
		{ "--count", "1000001" },
		{ "--count", "1e3" },
		{ "--connections", "257" },
		{ "--timeout", "5" },
		{ "--timeout", "0" },
		{ "--at", "-1" },
		{ "--at", "now" },
		{ "--since", "yesterday" },
		{ "--since", "2026-02-30" },
		{ "--since", "99999999d" },
		{ "--tenant", "" },
		{ "--out", "" },
	};
	struct ctl_args a;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(
		    PARSE(&a, "-a", "x/y", bad[i][0], bad[i][1], "word"),
		    CTL_USAGE);
}

/* What goes into the record must be legible there, or be refused before anything
 * is done. */
static void
test_ctl_args__what_is_recorded_is_text(void **state)
{
	static const char *const bad[] = { "", " \t", "\xff", "a\xc3" };
	char line[CTL_REASON_BYTES_MAX + 2];
	struct ctl_args a;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		assert_int_equal(
		    PARSE(&a, "-a", "x/y", "word", "--reason", bad[i]),
		    CTL_USAGE);
		assert_int_equal(
		    PARSE(&a, "-a", "x/y", "word", "--actor", bad[i]),
		    CTL_USAGE);
	}
	assert_int_equal(PARSE(&a, "-a", "x/y", "word", "--reason", "已修复",
			     "--actor", "wang wei"),
	    CTL_DONE);
	assert_string_equal(a.reason, "已修复");
	assert_string_equal(a.actor, "wang wei");
	memset(line, 'x', sizeof(line));
	line[CTL_REASON_BYTES_MAX + 1] = '\0';
	assert_int_equal(
	    PARSE(&a, "-a", "x/y", "word", "--reason", line), CTL_USAGE);
	line[CTL_REASON_BYTES_MAX] = '\0';
	assert_int_equal(
	    PARSE(&a, "-a", "x/y", "word", "--reason", line), CTL_DONE);
}

/* What a command does not know must stop it: a filter that is silently dropped
 * would list, or send, too much. */
static void
test_ctl_args__unknown_missing_and_surplus_are_usage(void **state)
{
	struct ctl_args a;

	(void)state;
	assert_int_equal(
	    PARSE(&a, "-a", "x/y", "word", "--nonsense"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "-a", "x/y", "word", "--follow"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "-a", "x/y", "word", "-z"), CTL_USAGE);
	assert_int_equal(
	    PARSE(&a, "-a", "x/y", "word", "--json=yes"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "word", "--account"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "word"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "-a", "x/y"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "-a", "x/y", "1", "2", "3"), CTL_USAGE);
	assert_int_equal(PARSE(&a, "-a", "x/y", ""), CTL_USAGE);
	/* help needs nothing else */
	assert_int_equal(PARSE(&a, "--help"), CTL_DONE);
	assert_true(a.help);
	/* what begins with a dash stands behind -- */
	assert_int_equal(PARSE(&a, "-a", "x/y", "--", "--json"), CTL_DONE);
	assert_false(a.json);
	assert_string_equal(a.operands[0], "--json");
}

/* An operator who asks for a day must get that day. */
static void
test_ctl_args__since_takes_three_forms(void **state)
{
	int64_t us;

	(void)state;
	assert_int_equal(pn_moment_parse_since(
			     PN_STR("2026-03-01T10:00:00+08:00"), now_us, &us),
	    0);
	assert_int_equal(us, INT64_C(1772330400000000));
	assert_int_equal(
	    pn_moment_parse_since(PN_STR("2026-03-01"), now_us, &us), 0);
	assert_int_equal(us, INT64_C(1772323200000000));
	assert_int_equal(pn_moment_parse_since(PN_STR("15m"), now_us, &us), 0);
	assert_int_equal(us, now_us - INT64_C(900000000));
	assert_int_equal(
	    pn_moment_parse_since(PN_STR("2026-03-0"), now_us, &us), 1);
	assert_int_equal(pn_moment_parse_since(PN_STR(""), now_us, &us), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_args__every_kind_lands_in_its_place),
		cmocka_unit_test(test_ctl_args__defaults_are_those_of_the_help),
		cmocka_unit_test(test_ctl_args__bad_values_are_usage),
		cmocka_unit_test(test_ctl_args__what_is_recorded_is_text),
		cmocka_unit_test(
		    test_ctl_args__unknown_missing_and_surplus_are_usage),
		cmocka_unit_test(test_ctl_args__since_takes_three_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
