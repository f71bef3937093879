/*
 * Charsets. If these fail, a subject is unreadable, or a value that PostgreSQL
 * refuses reaches it.
 */
#include "paynotify/charset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct charset_case {
	const char *charset;
	struct pn_str in, out;
};

#define ZHONG_UTF8 "\xe4\xb8\xad" /* U+4E2D */
#define BAD        "\xef\xbf\xbd"

static const struct charset_case cases[] = {
	{ "utf-8", { "abc", 3 }, { "abc", 3 } },
	{ "gbk", { "abc", 3 }, { "abc", 3 } },
	{ "GBK", { "", 0 }, { "", 0 } },
	{ "UTF-8", { ZHONG_UTF8, 3 }, { ZHONG_UTF8, 3 } },
	{ "GBK", { "\xd6\xd0", 2 }, { ZHONG_UTF8, 3 } },
	{ "gbk", { "a\xd6\xd0z", 4 }, { "a" ZHONG_UTF8 "z", 5 } },
	{ "gb2312", { "\xd6\xd0", 2 }, { ZHONG_UTF8, 3 } },
	/* Beyond GBK, but labelled so: U+20000. */
	{ "GBK", { "\x95\x32\x82\x36", 4 }, { "\xf0\xa0\x80\x80", 4 } },
	{ "GB18030", { "\x95\x32\x82\x36", 4 }, { "\xf0\xa0\x80\x80", 4 } },
	/* NUL stays: JSON is where it changes. */
	{ "gbk", { "\xd6\xd0\0x", 4 }, { ZHONG_UTF8 "\0x", 5 } },
	{ "utf-8", { "\0" ZHONG_UTF8, 4 }, { "\0" ZHONG_UTF8, 4 } },
	/* Undecodable, and the text goes on. */
	{ "utf-8",
	    { "a\xff"
	      "b",
		3 },
	    { "a" BAD "b", 5 } },
	{ "utf-8",
	    { "a\xd6\xd0"
	      "b",
		4 },
	    { "a" BAD BAD "b", 8 } },
	{ "utf-8", { "a\xe4\xb8", 3 }, { "a" BAD, 4 } },
	{ "gbk", { "\xff\xd6\xd0", 3 }, { BAD ZHONG_UTF8, 6 } },
	{ "gbk", { "\xd6\xd0\xd6", 3 }, { ZHONG_UTF8 BAD, 6 } },
	/* UTF-8 that happens to be GBK too: the label decides. */
	{ "gbk", { "caf\xc3\xa9", 5 }, { "caf\xe8\x8c\x85", 6 } },
	/* The label lies: well-formed UTF-8 and no GB18030. */
	{ "gbk", { ZHONG_UTF8 " x", 5 }, { ZHONG_UTF8 " x", 5 } },
	{ "gbk", { "\xe4\xb8\xad", 3 }, { ZHONG_UTF8, 3 } },
	/* Nothing said, or an unknown name. */
	{ "", { ZHONG_UTF8, 3 }, { ZHONG_UTF8, 3 } },
	{ "", { "\xd6\xd0", 2 }, { ZHONG_UTF8, 3 } },
	{ "latin1", { "\xd6\xd0", 2 }, { ZHONG_UTF8, 3 } },
	{ "latin1", { ZHONG_UTF8, 3 }, { ZHONG_UTF8, 3 } },
};

/* A label believed too much or too little; an ill-formed byte let through. */
static void
test_charset__decodes_what_providers_send(void **state)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct pn_str out = pn_charset_to_utf8(
		    arena, pn_str_from(cases[i].charset), cases[i].in);

		assert_non_null(out.data);
		if (!pn_str_equal(out, cases[i].out))
			fail_msg("case %zu: " PN_STR_FMT, i, PN_STR_ARG(out));
		assert_true(pn_str_is_utf8(out));
	}
}

/* Some two bytes that make the decoder stop or give ill-formed text. */
static void
test_charset__any_bytes_become_utf8(void **state)
{
	static const char *const charsets[] = { "gbk", "utf-8", "" };
	struct pn_str out;
	char text[3];

	(void)state;
	for (unsigned pair = 0; pair < 65536; pair += 7) {
		PN_CLEANUP(pn_arena_freep)
		struct pn_arena *arena = pn_arena_new(1 << 20);

		text[0] = (char)(pair >> 8);
		text[1] = (char)pair;
		text[2] = 'z';
		for (size_t i = 0; i < PN_COUNT(charsets); i++) {
			out =
			    pn_charset_to_utf8(arena, pn_str_from(charsets[i]),
				(struct pn_str){ text, 3 });
			assert_true(pn_str_is_utf8(out));
			assert_true(out.len >= 1);
		}
	}
}

/* A sample in GBK that cannot be read back. */
static void
test_charset__encodes_samples(void **state)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(1 << 20);
	struct pn_str out;

	(void)state;
	assert_int_equal(
	    pn_charset_from_utf8(arena, "GBK", PN_STR("a" ZHONG_UTF8), &out),
	    0);
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.data, "a\xd6\xd0", 3);
	assert_int_equal(
	    pn_charset_from_utf8(arena, "utf-8", PN_STR(ZHONG_UTF8), &out), 0);
	assert_memory_equal(out.data, ZHONG_UTF8, 3);
	assert_int_equal(
	    pn_charset_from_utf8(arena, "GBK", PN_STR(""), &out), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(pn_charset_from_utf8(
			     arena, "GBK", PN_STR("\xf0\x9f\x98\x80"), &out),
	    1);
	assert_int_equal(
	    pn_charset_from_utf8(arena, "nonsense", PN_STR("a"), &out), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_charset__decodes_what_providers_send),
		cmocka_unit_test(test_charset__any_bytes_become_utf8),
		cmocka_unit_test(test_charset__encodes_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
