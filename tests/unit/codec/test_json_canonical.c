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
	struct pn_error error = { "" };
	struct pn_str out = { NULL, 0 };

	if (pn_json_canonical(text, arena, &out, &error) != 0)
		fail_msg("%s: " PN_STR_FMT, error.text, PN_STR_ARG(text));
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

/* Members are not where their names' bytes put them: an escape sorts as what it
 * is written as, or a name before its own beginning. */
static void
test_json_canonical__order_is_of_decoded_bytes(void **state)
{
	assert_canonical(*state,
	    PN_STR("{\"\xc3\xa9\":1,\"z\":2,\"]\":3,\"\\n\":4,\"[\":5,"
		   "\"\\u0001\":6,\"\\\\\":7,\"\\\"\":8,\"!\":9,\"\":0}"),
	    PN_STR("{\"\":0,\"\\u0001\":6,\"\\n\":4,\"!\":9,\"\\\"\":8,"
		   "\"[\":5,\"\\\\\":7,\"]\":3,\"z\":2,\"\xc3\xa9\":1}"));
	assert_canonical(*state,
	    PN_STR("{\"ab\":1,\"a\":2,\"abc\":3,\"a\\u0062d\":4}"),
	    PN_STR("{\"a\":2,\"ab\":1,\"abc\":3,\"abd\":4}"));
	assert_canonical(*state,
	    PN_STR("{\"\\u001f\":1,\"\\u0011\":2,\"\\u000f\":3,"
		   "\"\\u001a\":4,\"\\r\":5,\"\\u0009\":6}"),
	    PN_STR("{\"\\t\":6,\"\\r\":5,\"\\u000f\":3,\"\\u0011\":2,"
		   "\"\\u001a\":4,\"\\u001f\":1}"));
	/* U+FFFF before U+10000, unlike in UTF-16. */
	assert_canonical(*state, PN_STR("{\"\\ud800\\udc00\":1,\"\\uffff\":2}"),
	    PN_STR("{\"\xef\xbf\xbf\":2,\"\xf0\x90\x80\x80\":1}"));
}

/* 1.0 is taken for 1, or an amount is rounded on the way. */
static void
test_json_canonical__numbers_keep_their_text(void **state)
{
	static const struct pn_str numbers[] = { PN_STR("1"), PN_STR("1.0"),
		PN_STR("-0"), PN_STR("1e2"), PN_STR("1E2"), PN_STR("1e+2"),
		PN_STR("100"), PN_STR("9223372036854775807"),
		PN_STR("0.10000000000000000001") };

	for (size_t i = 0; i < PN_COUNT(numbers); i++)
		assert_canonical(*state, numbers[i], numbers[i]);
}

/* What pn_json_parse refuses has a form, and the daemon dies making it. */
static void
test_json_canonical__refuses_what_parse_refuses(void **state)
{
	static const struct pn_str bad[] = { PN_STR(""), PN_STR("{"),
		PN_STR("}"), PN_STR("[1,]"), PN_STR("{\"a\":1,\"a\":2}"),
		PN_STR("{\"a\":1,\"\\u0061\":2}"), PN_STR("\"\\ud800\""),
		PN_STR("\"\xff\""), PN_STR("{} x"), PN_STR("01"), PN_STR("\""),
		PN_STR("{\"a\"}"), PN_STR("{\"\\u0000\":1}"), { NULL, 0 } };

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		struct pn_error error = { "" };
		struct pn_str out;

		if (pn_json_canonical(bad[i], *state, &out, &error) != 1)
			fail_msg("taken: " PN_STR_FMT, PN_STR_ARG(bad[i]));
		assert_true(error.text[0] != '\0');
	}
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

/* The stack of open values is one too short. */
static void
test_json_canonical__as_deep_as_parse(void **state)
{
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_str out;

	add_nested(&text, PN_JSON_DEPTH_MAX);
	out = canonical(*state, pn_buf_str(&text));
	assert_int_equal(out.len, text.len);
	assert_true(pn_str_starts(out, "[{\"a\":[{\"a\":["));
	pn_buf_reset(&text);
	add_nested(&text, PN_JSON_DEPTH_MAX + 1);
	assert_int_equal(
	    pn_json_canonical(pn_buf_str(&text), *state, &out, NULL), 1);
	pn_buf_done(&text);
}

/* A body of the longest takes more memory than a request has, or its square in
 * time: names in reverse, each object inside of the next. */
static void
test_json_canonical__the_longest_body(void **state)
{
	struct pn_buf text = pn_buf_init(PN_BODY_BYTES_MAX);
	struct pn_str out;
	int i = 99999;

	for (int depth = 0; depth + 1 < PN_JSON_DEPTH_MAX; depth++)
		pn_buf_add_text(&text, "{\"~\":");
	pn_buf_add_text(&text, "{\"z\":0");
	for (; text.len + 64 < PN_BODY_BYTES_MAX && i > 9999; i--)
		pn_buf_printf(&text, ",\"%d\":0", i);
	for (int depth = 0; depth < PN_JSON_DEPTH_MAX; depth++)
		pn_buf_add_text(&text, depth == 0 ? "}" : ",\"!\":0}");
	assert_false(pn_buf_failed(&text));
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
	struct pn_error error = { "" };
	int refused = 0;

	(void)state;
	for (size_t max = 0; max < 512; max += 16) {
		struct pn_arena *arena = pn_arena_new(max);
		int r = pn_json_canonical(text, arena, &out, &error);

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
		cmocka_unit_test(
		    test_json_canonical__order_is_of_decoded_bytes),
		cmocka_unit_test(test_json_canonical__numbers_keep_their_text),
		cmocka_unit_test(
		    test_json_canonical__refuses_what_parse_refuses),
		cmocka_unit_test(test_json_canonical__as_deep_as_parse),
		cmocka_unit_test(test_json_canonical__the_longest_body),
		cmocka_unit_test(test_json_canonical__tells_that_memory_is_out),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
