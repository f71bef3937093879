/*
 * Times. If these fail, a payment is booked on another day.
 */
#include "paynotify/moment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

typedef int parse_fn(struct pn_str text, int64_t *ret_us);

static void
assert_time(parse_fn *parse, const char *text, int64_t us)
{
	int64_t got = -1;

	assert_int_equal(parse(pn_str_from(text), &got), 0);
	assert_true(got == us);
}

static void
assert_no_time(parse_fn *parse, const char *text)
{
	int64_t got = 42;

	if (parse(pn_str_from(text), &got) != 1)
		fail_msg("taken as a time: %s", text);
	assert_int_equal(got, 42);
}

/* Beijing time taken as UTC or as the zone of the host. */
static void
test_moment__beijing_is_eight_hours_ahead(void **state)
{
	const int64_t at = INT64_C(1772330405) * PN_SECOND_US;

	(void)state;
	assert_int_equal(setenv("TZ", "America/New_York", 1), 0);
	tzset();
	assert_time(pn_moment_parse_beijing, "2026-03-01 10:00:05", at);
	assert_time(
	    pn_moment_parse_beijing, "2026-03-01 10:00:05.287", at + 287000);
	assert_time(
	    pn_moment_parse_beijing, "2026-03-01 10:00:05.287123", at + 287123);
	assert_time(pn_moment_parse_compact, "20260301100005", at);
	assert_time(pn_moment_parse_rfc3339, "2026-03-01T10:00:05+08:00", at);
	assert_time(pn_moment_parse_rfc3339, "2026-03-01T02:00:05Z", at);
	assert_time(pn_moment_parse_rfc3339, "2026-02-28T20:30:05-05:30", at);
	assert_time(pn_moment_parse_rfc3339, "2026-03-01T02:00:05.5+00:00",
	    at + 500000);
	assert_time(pn_moment_parse_rfc3339, "2026-03-01T02:00:05.123456789Z",
	    at + 123456);
}

/* 30 February becomes 2 March, hour 24 the next day. */
static void
test_moment__refuses_dates_that_do_not_exist(void **state)
{
	static const char *const bad[] = { "2026-02-29 00:00:00",
		"2100-02-29 00:00:00", "2024-02-30 00:00:00",
		"2026-04-31 00:00:00", "2026-00-01 00:00:00",
		"2026-13-01 00:00:00", "2026-01-00 00:00:00",
		"2026-01-32 00:00:00", "2026-01-01 24:00:00",
		"2026-01-01 23:60:00", "2026-01-01 23:59:60",
		"1969-12-31 23:59:59", "1970-01-01 07:59:59",
		"0000-01-01 00:00:00" };

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_no_time(pn_moment_parse_beijing, bad[i]);
	assert_time(pn_moment_parse_beijing, "1970-01-01 08:00:00", 0);
	assert_time(pn_moment_parse_beijing, "2024-02-29 00:00:00",
	    INT64_C(1709136000) * PN_SECOND_US);
	assert_time(pn_moment_parse_beijing, "2000-02-29 00:00:00",
	    INT64_C(951753600) * PN_SECOND_US);
	assert_no_time(pn_moment_parse_rfc3339, "9999-12-31T23:59:59-08:00");
	assert_time(pn_moment_parse_rfc3339, "9999-12-31T23:59:59Z",
	    INT64_C(253402300799) * PN_SECOND_US);
}

/* A value with something before, behind or inside it that is still a time. */
static void
test_moment__refuses_other_forms(void **state)
{
	static const char *const beijing[] = { "", "2026-03-01",
		"2026-03-01T10:00:05", "2026-03-01 10:00",
		" 2026-03-01 10:00:05", "2026-03-01 10:00:05 ",
		"2026-03-01 10:00:05.", "2026-03-01 10:00:05.1234567",
		"2026-3-1 10:00:05", "2026-03-01 10:00:05&a",
		"+026-03-01 10:00:05" };
	static const char *const compact[] = { "", "2026030110000",
		"202603011000055", "2026030110000x", "2026-03-01100005" };
	static const char *const rfc3339[] = { "", "2026-03-01T10:00:05",
		"2026-03-01 10:00:05Z", "2026-03-01T10:00:05+0800",
		"2026-03-01T10:00:05+08", "2026-03-01T10:00:05+24:00",
		"2026-03-01T10:00:05+08:60", "2026-03-01T10:00:05.Z",
		"2026-03-01T10:00:05Zx", "2026-03-01T10:00:05+08:00x",
		"2026-03-01T10:00:05.1234567890Z" };

	(void)state;
	for (size_t i = 0; i < PN_COUNT(beijing); i++)
		assert_no_time(pn_moment_parse_beijing, beijing[i]);
	for (size_t i = 0; i < PN_COUNT(compact); i++)
		assert_no_time(pn_moment_parse_compact, compact[i]);
	for (size_t i = 0; i < PN_COUNT(rfc3339); i++)
		assert_no_time(pn_moment_parse_rfc3339, rfc3339[i]);
}

/* Calendar arithmetic that is wrong in some year: compared with libc. */
static void
test_moment__agrees_with_libc_over_all_years(void **state)
{
	/* A step of a week and a bit meets every day of the year at other
	 * hours. */
	const int64_t step = 7 * 86400 + 3607;
	char text[PN_MOMENT_TEXT_BYTES], expected[PN_MOMENT_TEXT_BYTES];
	struct tm tm;
	int64_t got;
	time_t at;

	(void)state;
	for (int64_t s = 0; s <= INT64_C(253402300799); s += step) {
		at = (time_t)s;
		assert_non_null(gmtime_r(&at, &tm));
		assert_true(strftime(expected, sizeof(expected),
				"%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
		pn_moment_format_rfc3339(s * PN_SECOND_US, text);
		assert_string_equal(text, expected);
		assert_int_equal(
		    pn_moment_parse_rfc3339(pn_str_from(text), &got), 0);
		assert_true(got == s * PN_SECOND_US);
	}
}

/* A sample that its own parser would read as another time. */
static void
test_moment__formats_what_it_parses(void **state)
{
	const int64_t at = INT64_C(1772330405) * PN_SECOND_US;
	char text[PN_MOMENT_TEXT_BYTES];

	(void)state;
	pn_moment_format_rfc3339(at, text);
	assert_string_equal(text, "2026-03-01T02:00:05Z");
	pn_moment_format_rfc3339(at + 287000, text);
	assert_string_equal(text, "2026-03-01T02:00:05.287Z");
	pn_moment_format_rfc3339(at + 287123, text);
	assert_string_equal(text, "2026-03-01T02:00:05.287123Z");
	pn_moment_format_rfc3339(at + 7, text);
	assert_string_equal(text, "2026-03-01T02:00:05.000007Z");
	pn_moment_format_beijing(at, text);
	assert_string_equal(text, "2026-03-01 10:00:05");
	pn_moment_format_beijing(at + 287000, text);
	assert_string_equal(text, "2026-03-01 10:00:05.287");
	pn_moment_format_compact(at + 287000, text);
	assert_string_equal(text, "20260301100005");
	pn_moment_format_rfc3339_beijing(at, text);
	assert_string_equal(text, "2026-03-01T10:00:05+08:00");
	pn_moment_format_rfc3339(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
}

/* A time that an application stored would end whoever lists it. */
static void
test_moment__formats_what_has_no_text(void **state)
{
	static const int64_t late[] = { INT64_C(253402300800000000),
		INT64_C(9222424646400000000), INT64_MAX };
	static const int64_t early[] = { -1, -PN_SECOND_US, PN_MOMENT_NONE };
	char text[PN_MOMENT_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < PN_COUNT(late); i++) {
		pn_moment_format_rfc3339(late[i], text);
		assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
		pn_moment_format_beijing(late[i], text);
		assert_string_equal(text, "9999-12-31 23:59:59.999999");
		pn_moment_format_compact(late[i], text);
		assert_string_equal(text, "99991231235959");
		pn_moment_format_rfc3339_beijing(late[i], text);
		assert_string_equal(text, "9999-12-31T23:59:59.999999+08:00");
	}
	for (size_t i = 0; i < PN_COUNT(early); i++) {
		pn_moment_format_rfc3339(early[i], text);
		assert_string_equal(text, "1970-01-01T00:00:00Z");
		pn_moment_format_beijing(early[i], text);
		assert_string_equal(text, "1970-01-01 08:00:00");
		pn_moment_format_compact(early[i], text);
		assert_string_equal(text, "19700101080000");
		pn_moment_format_rfc3339_beijing(early[i], text);
		assert_string_equal(text, "1970-01-01T08:00:00+08:00");
	}
}

/* A clock in another unit. */
static void
test_moment__clocks_count_microseconds(void **state)
{
	int64_t first = pn_clock_monotonic_us();

	(void)state;
	assert_true(pn_clock_monotonic_us() >= first);
	assert_true(pn_clock_realtime_us() / PN_SECOND_US - time(NULL) <= 1);
	assert_true(pn_clock_realtime_us() / PN_SECOND_US - time(NULL) >= -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moment__beijing_is_eight_hours_ahead),
		cmocka_unit_test(test_moment__refuses_dates_that_do_not_exist),
		cmocka_unit_test(test_moment__refuses_other_forms),
		cmocka_unit_test(test_moment__agrees_with_libc_over_all_years),
		cmocka_unit_test(test_moment__formats_what_it_parses),
		cmocka_unit_test(test_moment__formats_what_has_no_text),
		cmocka_unit_test(test_moment__clocks_count_microseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
