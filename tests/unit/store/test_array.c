/*
 * Binary arrays, byte by byte as PostgreSQL's array_recv() reads them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "array.h"

enum { BYTES_MAX = 1 << 16 };

static void
check(struct pn_array *array, const char *bytes, size_t len)
{
	struct pn_str got = pn_array_finish(array);

	assert_int_equal(got.len, len);
	assert_memory_equal(got.data, bytes, len);
	pn_array_done(array);
}

/* If it failed: PostgreSQL would refuse a batch, or read other values. */
static void
test_array__has_postgresqls_binary_form(void **state)
{
	static const char bytes[] = "\0\0\0\1"         /* dimensions */
				    "\0\0\0\1"         /* has NULLs */
				    "\0\0\0\x19"       /* text */
				    "\0\0\0\3\0\0\0\1" /* members, first */
				    "\0\0\0\2ab"
				    "\xff\xff\xff\xff" /* NULL */
				    "\0\0\0\0";        /* empty */
	struct pn_array array = pn_array_init(PN_ARRAY_TEXT, BYTES_MAX);

	(void)state;
	pn_array_add_str(&array, PN_STR("ab"));
	pn_array_add_str(&array, (struct pn_str){ NULL, 0 });
	pn_array_add_str(&array, PN_STR(""));
	check(&array, bytes, sizeof(bytes) - 1);
}

/* If it failed: numbers and times would be stored wrong. */
static void
test_array__writes_numbers_big_endian_and_times_from_2000(void **state)
{
	static const char numbers[] =
	    "\0\0\0\1\0\0\0\0\0\0\0\x14"
	    "\0\0\0\2\0\0\0\1"
	    "\0\0\0\x8\0\0\0\0\0\0\1\2"
	    "\0\0\0\x8\xff\xff\xff\xff\xff\xff\xff\xff";
	static const char moments[] = "\0\0\0\1\0\0\0\0\0\0\x4\xa0"
				      "\0\0\0\1\0\0\0\1"
				      "\0\0\0\x8\0\0\0\0\0\0\0\5";
	struct pn_array array = pn_array_init(PN_ARRAY_INT8, BYTES_MAX);

	(void)state;
	pn_array_add_int8(&array, 258);
	pn_array_add_int8(&array, -1);
	check(&array, numbers, sizeof(numbers) - 1);
	array = pn_array_init(PN_ARRAY_TIMESTAMPTZ, BYTES_MAX);
	pn_array_add_moment(&array, 946684800 * PN_SECOND_US + 5);
	/* NULLs at the end are left out: a subscript there is NULL too. */
	pn_array_add_moment(&array, PN_MOMENT_NONE);
	check(&array, moments, sizeof(moments) - 1);
}

/* If it failed: a retry would come at another time than it was put off to. */
static void
test_array__writes_intervals_as_microseconds(void **state)
{
	static const char bytes[] = "\0\0\0\1\0\0\0\0\0\0\x4\xa2"
				    "\0\0\0\1\0\0\0\1"
				    "\0\0\0\x10\0\0\0\0\0\0\1\2"
				    "\0\0\0\0\0\0\0\0"; /* days, months */
	struct pn_array array = pn_array_init(PN_ARRAY_INTERVAL, BYTES_MAX);

	(void)state;
	pn_array_add_interval(&array, 258);
	check(&array, bytes, sizeof(bytes) - 1);
}

/* If it failed: text from outside could make PostgreSQL refuse a statement, for
 * ever. */
static void
test_array__makes_any_bytes_plain_text(void **state)
{
	static const char bytes[] = "\0\0\0\1\0\0\0\1\0\0\0\x19"
				    "\0\0\0\2\0\0\0\1"
				    "\xff\xff\xff\xff" /* empty: NULL */
				    "\0\0\0\6 ~????";
	struct pn_array array = pn_array_init(PN_ARRAY_TEXT, BYTES_MAX);

	(void)state;
	pn_array_add_ascii(&array, PN_STR(""));
	pn_array_add_ascii(&array, PN_STR(" ~\0\n\x7f\xe9"));
	check(&array, bytes, sizeof(bytes) - 1);
}

/* If it failed: an array without values would be refused: it has no
 * dimensions. */
static void
test_array__of_nulls_is_the_empty_one(void **state)
{
	static const char bytes[] = "\0\0\0\0\0\0\0\0\0\0\0\x17";
	struct pn_array array = pn_array_init(PN_ARRAY_INT4, BYTES_MAX);

	(void)state;
	pn_array_add_int4(&array, 7);
	pn_array_reset(&array); /* what was in it is gone */
	pn_array_add_null(&array);
	pn_array_add_filled(&array, PN_STR(""));
	check(&array, bytes, sizeof(bytes) - 1);
}

/* If it failed: a header that is not UTF-8 would be refused or changed. */
static void
test_array__keeps_every_byte_as_latin1(void **state)
{
	struct pn_array array = pn_array_init(PN_ARRAY_TEXT, BYTES_MAX);
	struct pn_str got;

	(void)state;
	pn_array_add_latin1(&array, PN_STR("a\x7f\x80\xbf\xc0\xff"));
	(void)pn_array_finish(&array);
	got = pn_array_only(&array);
	assert_true(
	    pn_str_equal(got, PN_STR("a\x7f\xc2\x80\xc2\xbf\xc3\x80\xc3\xbf")));
	assert_true(pn_str_is_utf8(got));
	pn_array_done(&array);
}

/* If it failed: a lone event would be sent with other values. */
static void
test_array__gives_its_only_member(void **state)
{
	struct pn_array array = pn_array_init(PN_ARRAY_TEXT, BYTES_MAX);
	struct pn_str got;

	(void)state;
	pn_array_add_str(&array, PN_STR(""));
	(void)pn_array_finish(&array);
	got = pn_array_only(&array);
	assert_non_null(got.data); /* empty is not NULL */
	assert_int_equal(got.len, 0);
	pn_array_reset(&array);
	pn_array_add_null(&array);
	(void)pn_array_finish(&array);
	assert_null(pn_array_only(&array).data);
	pn_array_done(&array);
}

/* If it failed: a batch that is too large would be sent cut. */
static void
test_array__says_when_it_is_full(void **state)
{
	struct pn_array array = pn_array_init(PN_ARRAY_TEXT, 40);

	(void)state;
	pn_array_add_str(&array, PN_STR("0123456789"));
	assert_false(pn_array_failed(&array));
	pn_array_add_str(&array, PN_STR("0123456789"));
	assert_true(pn_array_failed(&array));
	assert_null(pn_array_finish(&array).data);
	pn_array_done(&array);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_array__has_postgresqls_binary_form),
		cmocka_unit_test(
		    test_array__writes_numbers_big_endian_and_times_from_2000),
		cmocka_unit_test(test_array__writes_intervals_as_microseconds),
		cmocka_unit_test(test_array__makes_any_bytes_plain_text),
		cmocka_unit_test(test_array__of_nulls_is_the_empty_one),
		cmocka_unit_test(test_array__keeps_every_byte_as_latin1),
		cmocka_unit_test(test_array__gives_its_only_member),
		cmocka_unit_test(test_array__says_when_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
