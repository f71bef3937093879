/*
 * Strict parsing. If these fail, a limit or a timestamp wraps around, or a
 * configuration is understood as something else than was written.
 */
#include "paynotify/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int
uint_of(const char *text, uint64_t max, uint64_t *ret_value)
{
	return pn_parse_uint(pn_str_from(text), max, ret_value);
}

/* A number over its maximum that wraps to a small one. */
static void
test_parse__uint_stops_at_its_maximum(void **state)
{
	uint64_t value = 7;

	(void)state;
	assert_int_equal(
	    uint_of("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(
	    uint_of("18446744073709551616", UINT64_MAX, &value), 1);
	assert_int_equal(
	    uint_of("99999999999999999999", UINT64_MAX, &value), 1);
	assert_int_equal(uint_of("100", 100, &value), 0);
	assert_int_equal(uint_of("101", 100, &value), 1);
	assert_int_equal(uint_of("5", 3, &value), 1);
	assert_int_equal(uint_of("0", 0, &value), 0);
	assert_int_equal(uint_of("007", 9, &value), 0);
	assert_int_equal(value, 7);
}

/* "+300", " 300" or "300 " taken as a timestamp. */
static void
test_parse__uint_refuses_what_is_not_all_digits(void **state)
{
	static const char *const bad[] = { "", "+1", "-1", " 1", "1 ", "1a",
		"0x1", "1.0", "1\n", "\xd9\xa1" };
	uint64_t value = 42;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(uint_of(bad[i], 1000, &value), 1);
	assert_int_equal(pn_parse_uint(PN_STR("1\0"), 1000, &value), 1);
	assert_int_equal(value, 42);
}

/* The most negative number lost, or a wrap past it. */
static void
test_parse__int64_has_its_whole_range(void **state)
{
	int64_t value = 0;

	(void)state;
	assert_int_equal(
	    pn_parse_int64(PN_STR("-9223372036854775808"), &value), 0);
	assert_true(value == INT64_MIN);
	assert_int_equal(
	    pn_parse_int64(PN_STR("9223372036854775807"), &value), 0);
	assert_true(value == INT64_MAX);
	assert_int_equal(
	    pn_parse_int64(PN_STR("9223372036854775808"), &value), 1);
	assert_int_equal(
	    pn_parse_int64(PN_STR("-9223372036854775809"), &value), 1);
	assert_int_equal(pn_parse_int64(PN_STR("-"), &value), 1);
	assert_int_equal(pn_parse_int64(PN_STR("--1"), &value), 1);
	assert_int_equal(pn_parse_int64(PN_STR("-0"), &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(pn_parse_int64(PN_STR("-12"), &value), 0);
	assert_int_equal(value, -12);
}

/* "5" taken for five of some unit, "5M" for five minutes. */
static void
test_parse__duration_needs_its_unit(void **state)
{
	static const char *const bad[] = { "", "5", "s", "5 s", "5S", "5M",
		"5Y", "292472y", "-5s", "5s ", "1h30m", "1.5s",
		"9223372036854775807s" };
	int64_t us = 1;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(
		    pn_parse_duration_us(pn_str_from(bad[i]), &us), 1);
	assert_int_equal(
	    pn_parse_duration_us((struct pn_str){ NULL, 0 }, &us), 1);
	assert_int_equal(us, 1);
	assert_int_equal(pn_parse_duration_us(PN_STR("0"), &us), 0);
	assert_int_equal(us, 0);
	assert_int_equal(pn_parse_duration_us(PN_STR("300ms"), &us), 0);
	assert_int_equal(us, 300000);
	assert_int_equal(pn_parse_duration_us(PN_STR("15s"), &us), 0);
	assert_int_equal(us, 15000000);
	assert_int_equal(pn_parse_duration_us(PN_STR("5m"), &us), 0);
	assert_int_equal(us, 300000000);
	assert_int_equal(pn_parse_duration_us(PN_STR("72h"), &us), 0);
	assert_int_equal(us, INT64_C(259200000000));
	assert_int_equal(pn_parse_duration_us(PN_STR("90d"), &us), 0);
	assert_int_equal(us, INT64_C(7776000000000));
	assert_int_equal(pn_parse_duration_us(PN_STR("3y"), &us), 0);
	assert_int_equal(us, INT64_C(94608000000000));
}

/* A size that passes the maximum because of its unit. */
static void
test_parse__size_counts_its_unit_against_the_maximum(void **state)
{
	uint64_t bytes = 1;

	(void)state;
	assert_int_equal(pn_parse_size_bytes(PN_STR("64k"), 65536, &bytes), 0);
	assert_int_equal(bytes, 65536);
	assert_int_equal(pn_parse_size_bytes(PN_STR("65k"), 65536, &bytes), 1);
	assert_int_equal(pn_parse_size_bytes(PN_STR("1m"), 1 << 20, &bytes), 0);
	assert_int_equal(bytes, 1 << 20);
	assert_int_equal(pn_parse_size_bytes(PN_STR("10"), 10, &bytes), 0);
	assert_int_equal(bytes, 10);
	assert_int_equal(pn_parse_size_bytes(PN_STR("1K"), 65536, &bytes), 1);
	assert_int_equal(pn_parse_size_bytes(PN_STR("k"), 65536, &bytes), 1);
	assert_int_equal(pn_parse_size_bytes(PN_STR("1kb"), 65536, &bytes), 1);
	assert_int_equal(pn_parse_size_bytes(
			     PN_STR("18014398509481984k"), UINT64_MAX, &bytes),
	    1);
}

/* A word that is neither yes nor no taken as one of them. */
static void
test_parse__bool_knows_six_words(void **state)
{
	static const char *const yes[] = { "yes", "on", "true" };
	static const char *const no[] = { "no", "off", "false" };
	static const char *const bad[] = { "", "1", "0", "Yes", "y", "yes " };
	bool value;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		value = false;
		assert_int_equal(pn_parse_bool(pn_str_from(yes[i]), &value), 0);
		assert_true(value);
		assert_int_equal(pn_parse_bool(pn_str_from(no[i]), &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(pn_parse_bool(pn_str_from(bad[i]), &value), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse__uint_stops_at_its_maximum),
		cmocka_unit_test(
		    test_parse__uint_refuses_what_is_not_all_digits),
		cmocka_unit_test(test_parse__int64_has_its_whole_range),
		cmocka_unit_test(test_parse__duration_needs_its_unit),
		cmocka_unit_test(
		    test_parse__size_counts_its_unit_against_the_maximum),
		cmocka_unit_test(test_parse__bool_knows_six_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
