/*
 * The canonical form. If these fail, a client that retries a payment in another
 * spelling is told that it is another request, or another payment is answered
 * with the first one's receipt.
 */
#include "paynotify/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"

static int
arena_setup(void **state)
{
	*state = pn_arena_new(PN_ARENA_BYTES_MAX);
	return *state == NULL;
}

static int
arena_teardown(void **state)
{
	pn_arena_free(*state);
	return 0;
}

static struct pn_str
canonical(struct pn_arena *arena, struct pn_str text)
{
	struct pn_str out = { NULL, 0 };

	if (pn_json_canonical(text, arena, &out) != 0)
		fail_msg("refused: " PN_STR_FMT, PN_STR_ARG(text));
	return out;
}

static void
assert_canonical(
    struct pn_arena *arena, struct pn_str text, struct pn_str expected)
{
	struct pn_str out = canonical(arena, text);

	if (!pn_str_equal(out, expected))
		fail_msg(PN_STR_FMT " became " PN_STR_FMT, PN_STR_ARG(text),
		    PN_STR_ARG(out));
	assert_true(pn_str_equal(canonical(arena, out), expected));
}

/* White space, the order of members or a spelling of a string counts. */
static void
test_json_canonical__one_form_of_one_meaning(void **state)
{
	static const struct {
		struct pn_str text, form;
	} cases[] = {
		{ PN_STR(" \t\r\n1 "), PN_STR("1") },
		{ PN_STR("null"), PN_STR("null") },
		{ PN_STR("{ }"), PN_STR("{}") },
		{ PN_STR("[ ]"), PN_STR("[]") },
		{ PN_STR("[ true , false ]"), PN_STR("[true,false]") },
		{ PN_STR("{\"b\" : 1, \"a\" : [ 2 ]}"),
		    PN_STR("{\"a\":[2],\"b\":1}") },
		{ PN_STR("{\"z\":{\"b\":1,\"a\":2},\"y\":{}}"),
		    PN_STR("{\"y\":{},\"z\":{\"a\":2,\"b\":1}}") },
		{ PN_STR("[{\"b\":1,\"a\":2},{\"c\":{\"e\":1,\"d\":2}}]"),
		    PN_STR("[{\"a\":2,\"b\":1},{\"c\":{\"d\":2,\"e\":1}}]") },
		{ PN_STR("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\""),
		    PN_STR("\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"") },
		{ PN_STR("\"\\/ / \\u002f\""), PN_STR("\"/ / /\"") },
		{ PN_STR("\"\\u0022\\\" \\u005c\\\\\""),
		    PN_STR("\"\\\"\\\" \\\\\\\\\"") },
		{ PN_STR("\"\\u000a\\n\\u0009\\t\\u000D\\r\\b\\f\\u0008\""),
		    PN_STR("\"\\n\\n\\t\\t\\r\\r\\b\\f\\b\"") },
		{ PN_STR("\"\\u0000\\u001F\\u007f\""),
		    PN_STR("\"\\u0000\\u001f\x7f\"") },
	};

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		assert_canonical(*state, cases[i].text, cases[i].form);
}

/* The order depends on how a name was written, or on how members came. */
static void
test_json_canonical__members_are_by_name(void **state)
{
	assert_canonical(*state,
	    PN_STR("{\"\xc3\xa9\":1,\"z\":2,\"]\":3,\"\\n\":4,\"[\":5,"
		   "\"\\u0001\":6,\"\\\\\":7,\"\\\"\":8,\"!\":9,\"\":0}"),
	    PN_STR("{\"\":0,\"!\":9,\"[\":5,\"\\\"\":8,\"\\\\\":7,\"\\n\":4,"
		   "\"\\u0001\":6,\"]\":3,\"z\":2,\"\xc3\xa9\":1}"));
	assert_canonical(*state,
	    PN_STR("{\"ab\":1,\"a\":2,\"abc\":3,\"a\\u0062d\":4,\"a!\":5}"),
	    PN_STR("{\"a\":2,\"a!\":5,\"ab\":1,\"abc\":3,\"abd\":4}"));
	/* U+FFFF before U+10000, unlike in UTF-16. */
	assert_canonical(*state, PN_STR("{\"\\ud800\\udc00\":1,\"\\uffff\":2}"),
	    PN_STR("{\"\xef\xbf\xbf\":2,\"\xf0\x90\x80\x80\":1}"));
}

/* An object is not put in order because the one around it is, or has nothing in
 * it that is not, or stands behind or inside of another such. */
static void
test_json_canonical__objects_in_objects(void **state)
{
	assert_canonical(*state, PN_STR("{\"a\":{\"c\":0,\"b\":0},\"d\":0}"),
	    PN_STR("{\"a\":{\"b\":0,\"c\":0},\"d\":0}"));
	assert_canonical(*state,
	    PN_STR("{\"b\":[{\"d\":1,\"c\":2},3,{\"e\":{},\"f\":{\"h\":4,"
		   "\"g\":[]}},{}],\"a\":{\"j\":5,\"i\":6}}"),
	    PN_STR("{\"a\":{\"i\":6,\"j\":5},\"b\":[{\"c\":2,\"d\":1},3,"
		   "{\"e\":{},\"f\":{\"g\":[],\"h\":4}},{}]}"));
	assert_canonical(*state,
	    PN_STR("[[{\"b\":{\"d\":0,\"c\":0},\"a\":{}},[{\"f\":0,\"e\":[{}]}]"
		   "],\"}\",{\"g\":1}]"),
	    PN_STR("[[{\"a\":{},\"b\":{\"c\":0,\"d\":0}},[{\"e\":[{}],\"f\":0}]"
		   "],\"}\",{\"g\":1}]"));
}

/* 1.0 is taken for 1, or an amount is rounded on the way. */
static void
test_json_canonical__numbers_keep_their_text(void **state)
{
	static const struct pn_str numbers[] = { PN_STR("1"), PN_STR("1.0"),
		PN_STR("0"), PN_STR("-0"), PN_STR("1e2"), PN_STR("1E2"),
		PN_STR("1e+2"), PN_STR("-0.0e-07"), PN_STR("100"),
		PN_STR("9223372036854775807"),
		PN_STR("0.10000000000000000001") };

	for (size_t i = 0; i < PN_COUNT(numbers); i++)
		assert_canonical(*state, numbers[i], numbers[i]);
}

/* JSON that the strict parser must go on refusing. */
static void
assert_only_canonical(
    struct pn_arena *arena, struct pn_str text, struct pn_str expected)
{
	json_auto_t *value = NULL;

	if (pn_json_parse(text, &value, NULL) != 1)
		fail_msg("parsed: " PN_STR_FMT, PN_STR_ARG(text));
	assert_canonical(arena, text, expected);
}

/* A retry of what another reader takes is refused, because this one would not
 * take it; or two numbers that are one to a double are one. */
static void
test_json_canonical__numbers_of_any_size(void **state)
{
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_str digits;

	assert_only_canonical(*state,
	    PN_STR("[ 9223372036854775808, -9223372036854775809 ]"),
	    PN_STR("[9223372036854775808,-9223372036854775809]"));
	assert_only_canonical(
	    *state, PN_STR("[ 1e400 , 1E-20000 ]"), PN_STR("[1e400,1E-20000]"));
	pn_buf_add_char(&text, ' ');
	for (int i = 0; i < 100000; i++)
		pn_buf_add_char(&text, '7');
	digits = (struct pn_str){ text.data + 1, text.len - 1 };
	assert_only_canonical(*state, pn_buf_str(&text), digits);
	pn_buf_done(&text);
}

/* Half of a pair is lost, or becomes what a reader puts in its place; a pair is
 * no longer its character. */
static void
test_json_canonical__halves_of_pairs_stay(void **state)
{
	assert_only_canonical(
	    *state, PN_STR(" \"\\uD83D\""), PN_STR("\"\\ud83d\""));
	assert_only_canonical(
	    *state, PN_STR("\"\\uDE00\\uD83D\""), PN_STR("\"\\ude00\\ud83d\""));
	assert_only_canonical(*state, PN_STR("\"\\uD83D\\uD83D\\uDE00\""),
	    PN_STR("\"\\ud83d\xf0\x9f\x98\x80\""));
	assert_only_canonical(
	    *state, PN_STR("\"\\uD83D\\u0041\\n\""), PN_STR("\"\\ud83dA\\n\""));
	assert_only_canonical(*state, PN_STR("\"\\uDBFF\xed\x9f\xbf\\uE000\""),
	    PN_STR("\"\\udbff\xed\x9f\xbf\xee\x80\x80\""));
	assert_only_canonical(*state, PN_STR("{\"\\ud801\":1,\"\\ud800\":2}"),
	    PN_STR("{\"\\ud800\":2,\"\\ud801\":1}"));
}

/* Of two members of one name one is lost, or they change places: a reader who
 * takes the first, or the last, would be told another amount. */
static void
test_json_canonical__members_of_one_name_stay(void **state)
{
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_buf form = pn_buf_init(PN_BODY_BYTES_MAX);

	assert_only_canonical(*state,
	    PN_STR("{\"a\":2, \"b\":0, \"\\u0061\":1}"),
	    PN_STR("{\"a\":2,\"a\":1,\"b\":0}"));
	assert_only_canonical(
	    *state, PN_STR("{\"a\":1,\"a\":1}"), PN_STR("{\"a\":1,\"a\":1}"));
	assert_only_canonical(
	    *state, PN_STR("{\"\\u0000\":1}"), PN_STR("{\"\\u0000\":1}"));
	/* As many as no sort keeps in order by chance. */
	pn_buf_add_text(&text, "{\"b\":0");
	pn_buf_add_text(&form, "{");
	for (int i = 2000; i-- > 0;) {
		pn_buf_printf(&text, ",\"a\":%d", i);
		pn_buf_printf(&form, "\"a\":%d,", i);
	}
	pn_buf_add_text(&text, "}");
	pn_buf_add_text(&form, "\"b\":0}");
	assert_only_canonical(*state, pn_buf_str(&text), pn_buf_str(&form));
	pn_buf_done(&text);
	pn_buf_done(&form);
}

/* What is not JSON has a form: bytes that differ become the same request. */
static void
test_json_canonical__refuses_what_is_not_json(void **state)
{
	static const struct pn_str bad[] = { { NULL, 0 }, PN_STR(""),
		PN_STR(" "), PN_STR("{"), PN_STR("}"), PN_STR("["), PN_STR("]"),
		PN_STR("[1,]"), PN_STR("[,1]"), PN_STR("[,]"), PN_STR("[1 2]"),
		PN_STR("[1}"), PN_STR("{\"a\":1]"), PN_STR("[}"), PN_STR("{]"),
		PN_STR("[\"a\":1]"), PN_STR("{1:2}"), PN_STR("{\"a\"}"),
		PN_STR("{\"a\":}"), PN_STR("{\"a\":1,}"), PN_STR("{,}"),
		PN_STR("{\"a\":1 \"b\":2}"), PN_STR("{\"a\"::1}"),
		PN_STR("{\"a\",1}"), PN_STR("{\"a\":[}]"), PN_STR("{} x"),
		PN_STR("{}{}"), PN_STR("1 1"), PN_STR("1,"), PN_STR(":"),
		PN_STR("01"), PN_STR("-"), PN_STR("-01"), PN_STR("+1"),
		PN_STR(".5"), PN_STR("1."), PN_STR("1.e1"), PN_STR("1e"),
		PN_STR("1e+"), PN_STR("1e1.0"), PN_STR("0x1"), PN_STR("1-"),
		PN_STR("NaN"), PN_STR("Infinity"), PN_STR("tru"),
		PN_STR("truee"), PN_STR("True"), PN_STR("nul"), PN_STR("\""),
		PN_STR("\"\\\""), PN_STR("\"\\x\""), PN_STR("\"\\u12\""),
		PN_STR("\"\\u12g4\""), PN_STR("\"\\ud800\\u\""), PN_STR("\"\\"),
		PN_STR("\"\\u"), PN_STR("\"\t\""), PN_STR("\"\0\""),
		PN_STR("\"\\\0\""), PN_STR("1\0"), PN_STR("\0"),
		PN_STR("\"\xff\""), PN_STR("\"\xed\xa0\x80\""),
		PN_STR("\xef\xbb\xbf{}"), PN_STR("\f1"), PN_STR("'a'"),
		PN_STR("/**/1"), PN_STR("{a:1}") };
	struct pn_str out;

	for (size_t i = 0; i < PN_COUNT(bad); i++)
		if (pn_json_canonical(bad[i], *state, &out) != 1)
			fail_msg("taken: " PN_STR_FMT, PN_STR_ARG(bad[i]));
}

static void
add_nested(struct pn_buf *text, int depth)
{
	for (int i = 0; i < depth; i++)
		pn_buf_add_text(text, i % 2 == 0 ? "[" : "{\"b\":0,\"a\":");
	pn_buf_add_text(text, "1");
	for (int i = depth; i-- > 0;)
		pn_buf_add_text(text, i % 2 == 0 ? "]" : "}");
}

/* A depth has no form, or the stack overflows. */
static void
test_json_canonical__any_depth(void **state)
{
	static const int depths[] = { PN_JSON_DEPTH_MAX + 1, 2048, 100000 };
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_str out;

	for (size_t i = 0; i < PN_COUNT(depths); i++) {
		json_auto_t *value = NULL;

		pn_buf_reset(&text);
		add_nested(&text, depths[i]);
		assert_false(pn_buf_failed(&text));
		assert_int_equal(
		    pn_json_parse(pn_buf_str(&text), &value, NULL), 1);
		out = canonical(*state, pn_buf_str(&text));
		assert_int_equal(out.len, text.len);
		assert_true(pn_str_starts(out, "[{\"a\":[{\"a\":["));
		assert_true(
		    pn_str_find(out, PN_STR(",\"b\":0}],\"b\":0}]")) > 0);
	}
	pn_buf_reset(&text);
	for (int i = 0; i < PN_BODY_BYTES_MAX; i++)
		pn_buf_add_char(&text, '[');
	assert_false(pn_buf_failed(&text));
	assert_int_equal(pn_json_canonical(pn_buf_str(&text), *state, &out), 1);
	pn_buf_done(&text);
}

/* A body of the longest takes more memory than a request has, or its square in
 * time: each object inside of the next, and half of the bytes in the innermost,
 * whose names are in reverse. */
static void
test_json_canonical__the_longest_body(void **state)
{
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_str out;
	int depth = 0;

	for (; text.len < PN_BODY_BYTES_MAX / 5; depth++)
		pn_buf_add_text(&text, "{\"~\":");
	pn_buf_add_text(&text, "{\"z\":0");
	for (int i = 99999; i > 49999; i--)
		pn_buf_printf(&text, ",\"%d\":0", i);
	pn_buf_add_text(&text, "}");
	for (; depth > 0; depth--)
		pn_buf_add_text(&text, ",\"!\":0}");
	assert_false(pn_buf_failed(&text));
	assert_true(text.len > PN_BODY_BYTES_MAX / 10 * 9);
	out = canonical(*state, pn_buf_str(&text));
	assert_int_equal(out.len, text.len);
	assert_true(pn_str_starts(out, "{\"!\":0,\"~\":{\"!\":0,\"~\":"));
	assert_true(
	    pn_str_find(out, PN_STR("\"99998\":0,\"99999\":0,\"z\":0}}")) > 0);
	pn_buf_done(&text);
}

/* Without memory a form is given that is none. */
static void
test_json_canonical__tells_that_memory_is_out(void **state)
{
	static const struct pn_str text =
	    PN_STR("{\"b\":\"0123456789012345678901234567890123456789\","
		   "\"a\":1}");
	struct pn_str out = { NULL, 0 };
	int refused = 0;

	(void)state;
	for (size_t max = 0; max < 512; max += 16) {
		struct pn_arena *arena = pn_arena_new(max);
		int r = pn_json_canonical(text, arena, &out);

		assert_true(r == 0 || r == -ENOMEM);
		refused += r != 0;
		pn_arena_free(arena);
	}
	/* Both rooms of it, one after the other. */
	assert_in_range(refused, 6, 12);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_canonical__one_form_of_one_meaning),
		cmocka_unit_test(test_json_canonical__members_are_by_name),
		cmocka_unit_test(test_json_canonical__objects_in_objects),
		cmocka_unit_test(test_json_canonical__numbers_keep_their_text),
		cmocka_unit_test(test_json_canonical__numbers_of_any_size),
		cmocka_unit_test(test_json_canonical__halves_of_pairs_stay),
		cmocka_unit_test(test_json_canonical__members_of_one_name_stay),
		cmocka_unit_test(test_json_canonical__refuses_what_is_not_json),
		cmocka_unit_test(test_json_canonical__any_depth),
		cmocka_unit_test(test_json_canonical__the_longest_body),
		cmocka_unit_test(test_json_canonical__tells_that_memory_is_out),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
