/*
 * Byte slices. If these fail, headers are not found, keys are sorted in an
 * order the store does not expect, or text that PostgreSQL refuses gets in.
 */
#include "paynotify/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "paynotify/compiler.h"

/* Rows locked in another order than the writers agree on: deadlocks. */
static void
test_str__compares_as_bytes_then_shorter_first(void **state)
{
	(void)state;
	assert_true(pn_str_compare(PN_STR("a"), PN_STR("b")) < 0);
	assert_true(pn_str_compare(PN_STR("ab"), PN_STR("a")) > 0);
	assert_true(pn_str_compare(PN_STR("b"), PN_STR("ab")) > 0);
	assert_true(pn_str_compare(PN_STR("a\0b"), PN_STR("a\0a")) > 0);
	assert_true(pn_str_compare(PN_STR("\xff"), PN_STR("a")) > 0);
	assert_int_equal(pn_str_compare(PN_STR(""), (struct pn_str){ 0 }), 0);
}

/* Wechatpay-* headers in lower case, as HTTP/2 proxies send, not found. */
static void
test_str__folds_ascii_letters_only(void **state)
{
	(void)state;
	assert_true(pn_str_equal_fold(PN_STR("aZ-09"), PN_STR("Az-09")));
	assert_false(pn_str_equal_fold(PN_STR("@"), PN_STR("`")));
	assert_false(pn_str_equal_fold(PN_STR("["), PN_STR("{")));
	assert_false(pn_str_equal_fold(PN_STR("\xc4"), PN_STR("\xe4")));
	assert_false(pn_str_equal_fold(PN_STR("a"), PN_STR("ab")));
}

/* A search that looks for a NUL or runs past the end. */
static void
test_str__finds_and_trims_within_the_slice(void **state)
{
	struct pn_str s = PN_STR("ab\0cd");

	(void)state;
	assert_int_equal(pn_str_find(s, PN_STR("cd")), 3);
	assert_int_equal(pn_str_find(s, PN_STR("ce")), -1);
	assert_int_equal(pn_str_find(s, PN_STR("")), 0);
	assert_int_equal(pn_str_find(PN_STR("a"), PN_STR("aa")), -1);
	s.len = 4;
	assert_int_equal(pn_str_find(s, PN_STR("cd")), -1);
	assert_true(pn_str_is(pn_str_trim(PN_STR(" \t\r\na b\n ")), "a b"));
	assert_int_equal(pn_str_trim(PN_STR(" \t ")).len, 0);
	assert_true(pn_str_starts(PN_STR("abc"), "ab"));
	assert_false(pn_str_starts(PN_STR("a"), "ab"));
}

/* A list whose last or empty piece is lost: "a&&" has three pieces. */
static void
test_str__splits_every_piece(void **state)
{
	struct pn_str rest = PN_STR("a&&");

	(void)state;
	assert_true(pn_str_is(pn_str_split(&rest, '&'), "a"));
	assert_non_null(rest.data);
	assert_int_equal(pn_str_split(&rest, '&').len, 0);
	assert_non_null(rest.data);
	assert_int_equal(pn_str_split(&rest, '&').len, 0);
	assert_null(rest.data);
}

struct utf8_case {
	struct pn_str text;
	size_t prefix, bad;
};

/* Text that PostgreSQL refuses: the statement, and its batch, would fail. */
static void
test_str__knows_well_formed_utf8(void **state)
{
	static const struct utf8_case cases[] = {
		{ { "", 0 }, 0, 0 },
		{ { "0123456789abcdef\0x", 18 }, 18, 0 },
		{ { "\x7f\xc2\x80\xdf\xbf", 5 }, 5, 0 },
		{ { "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 12 },
		    12, 0 },
		{ { "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8 }, 8, 0 },
		{ { "12345678\x80", 9 }, 8, 1 },     /* lone continuation */
		{ { "1234567\x80", 8 }, 7, 1 },      /* last of eight */
		{ { "a\xc0\xaf", 3 }, 1, 1 },        /* overlong "/" */
		{ { "\xc1\xbf", 2 }, 0, 1 },         /* overlong */
		{ { "\xe0\x9f\xbf", 3 }, 0, 1 },     /* overlong */
		{ { "\xf0\x8f\xbf\xbf", 4 }, 0, 1 }, /* overlong */
		{ { "\xed\xa0\x80", 3 }, 0, 1 },     /* surrogate */
		{ { "\xf4\x90\x80\x80", 4 }, 0, 1 }, /* over U+10FFFF */
		{ { "\xf5\x80\x80\x80", 4 }, 0, 1 },
		{ { "\xff", 1 }, 0, 1 },
		{ { "ab\xe4\xb8", 4 }, 2, 2 },   /* cut */
		{ { "\xf0\x9f\x98", 3 }, 0, 3 }, /* cut */
		{ { "\xe4\xb8"
		    "a",
		      3 },
		    0, 2 },
	};
	size_t bad;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		const struct utf8_case *c = &cases[i];

		assert_int_equal(pn_str_utf8_prefix(c->text, &bad), c->prefix);
		assert_int_equal(bad, c->bad);
		assert_int_equal(
		    pn_str_is_utf8(c->text), c->prefix == c->text.len);
	}
}

/* What is no header's name would pass for one. */
static void
test_str__knows_tokens(void **state)
{
	static const struct pn_str others[] = {
		PN_STR(""),
		PN_STR(" A"),
		PN_STR("A "),
		PN_STR("A\t"),
		PN_STR("A:b"),
		PN_STR("A(b)"),
		PN_STR("A\0"),
		PN_STR("A\x7f"),
		PN_STR("\xc3\xa9"),
	};

	(void)state;
	assert_true(pn_str_is_token(PN_STR("!#$%&'*+-.^_`|~09AZaz")));
	for (size_t i = 0; i < PN_COUNT(others); i++)
		assert_false(pn_str_is_token(others[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_str__compares_as_bytes_then_shorter_first),
		cmocka_unit_test(test_str__folds_ascii_letters_only),
		cmocka_unit_test(test_str__finds_and_trims_within_the_slice),
		cmocka_unit_test(test_str__splits_every_piece),
		cmocka_unit_test(test_str__knows_well_formed_utf8),
		cmocka_unit_test(test_str__knows_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
