/*
 * JSON. If these fail, an amount is rounded, a document has two meanings, or a
 * signed message cannot be stored.
 */
#include "paynotify/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"

static json_t *
parsed(struct pn_str text)
{
	struct pn_error error = { "" };
	json_t *value = NULL;

	if (pn_json_parse(text, &value, &error) != 0)
		fail_msg("%s: " PN_STR_FMT, error.text, PN_STR_ARG(text));
	return value;
}

static void
assert_refused(struct pn_str text)
{
	struct pn_error error = { "" };
	json_t *value = NULL;

	if (pn_json_parse(text, &value, &error) != 1)
		fail_msg("accepted: " PN_STR_FMT, PN_STR_ARG(text));
	assert_null(value);
	assert_true(error.text[0] != '\0');
}

/* Text that PostgreSQL or another reader understands differently. */
static void
test_json__refuses_ambiguous_documents(void **state)
{
	static const struct pn_str bad[] = {
		{ "", 0 },
		{ " ", 1 },
		{ "\0", 1 },
		{ "{}\0", 3 },
		{ "1\0", 2 },
		{ "[1\0]", 4 },
		{ "{} {}", 5 },
		{ "{}x", 3 },
		{ "{\"a\":1,\"a\":1}", 13 },
		{ "{\"a\":1,\"\\u0061\":1}", 18 },
		{ "{\"a\":{\"b\":1,\"b\":2}}", 19 },
		{ "\xef\xbb\xbf{}", 5 },
		{ "\"\xff\"", 3 },
		{ "\"\xed\xa0\x80\"", 5 },
		{ "\"\\ud800\"", 8 },
		{ "\"\\udc00\"", 8 },
		{ "\"\\ud800\\u0041\"", 14 },
		{ "{\"\\u0000\":1}", 12 },
		{ "\"a\0b\"", 5 },
		{ "\"a\nb\"", 5 },
		{ "[1,]", 4 },
		{ "{'a':1}", 7 },
		{ "[01]", 4 },
		{ "[.5]", 4 },
		{ "[+1]", 4 },
		{ "NaN", 3 },
		{ "// x\n1", 6 },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_refused(bad[i]);
}

/* An amount over 2^53 that was rounded on the way. */
static void
test_json__integers_are_exact(void **state)
{
	PN_CLEANUP(pn_json_freep)
	json_t *value = parsed(
	    PN_STR("{\"max\":9223372036854775807,\"min\":-9223372036854775808,"
		   "\"odd\":9007199254740993,\"real\":1.0,\"text\":\"1\","
		   "\"null\":null}"));
	int64_t number = 5;

	(void)state;
	assert_int_equal(pn_json_int64(value, "max", &number), 0);
	assert_true(number == INT64_MAX);
	assert_int_equal(pn_json_int64(value, "min", &number), 0);
	assert_true(number == INT64_MIN);
	assert_int_equal(pn_json_int64(value, "odd", &number), 0);
	assert_true(number == INT64_C(9007199254740993));
	assert_int_equal(pn_json_int64(value, "real", &number), 2);
	assert_int_equal(pn_json_int64(value, "text", &number), 2);
	assert_int_equal(pn_json_int64(value, "null", &number), 1);
	assert_int_equal(pn_json_int64(value, "absent", &number), 1);
	assert_true(number == INT64_C(9007199254740993));
	assert_refused(PN_STR("9223372036854775808"));
	assert_refused(PN_STR("-9223372036854775809"));
}

/* A name of a buyer, or a path, that is not what was sent. */
static void
test_json__undoes_every_escape(void **state)
{
	PN_CLEANUP(pn_json_freep)
	json_t *value = parsed(
	    PN_STR("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\","
		   "\"\\u0062\":\"\\u007f\\u0080\\u07ff\\u0800\\u4E2d\\uffff\","
		   "\"c\":\"x\\ud83d\\uDE00y\\udbff\\udfff\\ud800\\udc00\","
		   "\"d\":[\"plain\",\"\\u0041\",{\"\":[]}]}"));

	(void)state;
	assert_true(pn_str_is(pn_json_text(value, "a"), "\"\\/\b\f\n\r\t"));
	assert_true(pn_str_is(pn_json_text(value, "b"),
	    "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xe4\xb8\xad\xef\xbf\xbf"));
	assert_true(pn_str_is(pn_json_text(value, "c"),
	    "x\xf0\x9f\x98\x80y\xf4\x8f\xbf\xbf\xf0\x90\x80\x80"));
	assert_int_equal(json_array_size(json_object_get(value, "d")), 3);
	assert_refused(PN_STR("\"\\x41\""));
	assert_refused(PN_STR("\"\\u004\""));
	assert_refused(PN_STR("\"\\u004g\""));
	assert_refused(PN_STR("\"\\U0041\""));
	assert_refused(PN_STR("\"\\"));
	assert_refused(PN_STR("\"\\\0\""));
	assert_refused(PN_STR("\"\\\""));
	assert_refused(PN_STR("\"\\ud800x\""));
	assert_refused(PN_STR("\"\\ud800\\n\""));
	assert_refused(PN_STR("\"\\ud800\\ud800\""));
}

/* Whether pn_json_parse() and jansson by itself say the same of the text. Only
 * what we refuse beyond jansson may differ: NUL, and long numbers. */
static void
assert_as_jansson(struct pn_str text)
{
	const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT;
	json_auto_t *ours = NULL;
	json_auto_t *theirs = json_loadb(text.data, text.len,
	    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	char *a, *b;

	if (pn_json_parse(text, &ours, NULL) != 0) {
		if (theirs != NULL && memchr(text.data, '\0', text.len) == NULL)
			fail_msg("refused: " PN_STR_FMT, PN_STR_ARG(text));
		return;
	}
	if (theirs == NULL)
		fail_msg("accepted: " PN_STR_FMT, PN_STR_ARG(text));
	a = json_dumps(ours, flags);
	b = json_dumps(theirs, flags);
	assert_non_null(a);
	assert_non_null(b);
	assert_string_equal(a, b);
	free(a);
	free(b);
}

/* The short way for plain documents reads one that jansson would refuse, or
 * reads it differently: an amount, a name, an order of members. */
static void
test_json__plain_documents_read_as_jansson_reads_them(void **state)
{
	static const char *const plain[] = {
		"{}",
		" { \"a\" : [ ] , \"b\" : { } } \r\n",
		"{\"b\":[1,20,{\"c\":[[0]]}],\"a\":true,\"\":null,\"d\":false}",
		"{\"n\":999999999999999999,\"m\":123456789012345678}",
		"{\"more than eight\":\"\xe4\xb8\xad\xe6\x96\x87\"}",
		"{\"a\":{\"b\":1},\"c\":{\"b\":1},\"b\":[{\"b\":\"\"}]}",
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < PN_COUNT(plain); i++) {
		struct pn_str whole = pn_str_from(plain[i]);

		assert_true(whole.len < sizeof(text));
		for (size_t at = 0; at < whole.len; at++) {
			assert_as_jansson((struct pn_str){ plain[i], at });
			for (int byte = 0; byte < 256; byte++) {
				memcpy(text, plain[i], whole.len);
				text[at] = (char)byte;
				assert_as_jansson(
				    (struct pn_str){ text, whole.len });
				memcpy(text + at + 1, plain[i] + at,
				    whole.len - at);
				assert_as_jansson(
				    (struct pn_str){ text, whole.len + 1 });
			}
			memcpy(text, plain[i], at);
			memcpy(
			    text + at, plain[i] + at + 1, whole.len - at - 1);
			assert_as_jansson(
			    (struct pn_str){ text, whole.len - 1 });
		}
		assert_as_jansson(whole);
	}
}

/* A second member of a name counts, whatever stands in between. */
static void
test_json__plain_documents_have_each_name_once(void **state)
{
	(void)state;
	assert_refused(PN_STR("{\"a\":1,\"b\":2,\"a\":1}"));
	assert_refused(PN_STR("{\"a\":{},\"a\":[]}"));
	assert_refused(PN_STR("{\"x\":{\"a\":\"1\",\"a\":\"1\"}}"));
}

/* A cut document accepted, or memory that a stranger makes us lose. */
static void
test_json__refusal_at_any_byte_leaks_nothing(void **state)
{
	const struct pn_str text = PN_STR(
	    "{\"a\":[1,-2.5,\"x\\n\",{\"b\":null}],\"c\":true,\"d\":{}}");
	struct pn_error error;
	json_t *value;

	(void)state;
	for (size_t len = 0; len < text.len; len++)
		assert_refused((struct pn_str){ text.data, len });
	assert_int_equal(pn_json_parse(text, &value, &error), 0);
	json_decref(value);
}

/* A number that makes the statement fail in PostgreSQL, or a huge one. */
static void
test_json__refuses_numbers_without_measure(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf text = pn_buf_init(1 << 16);

	(void)state;
	assert_refused(PN_STR("1e400"));
	assert_refused(PN_STR("-1e400"));
	assert_refused(PN_STR("1e-20000"));
	assert_refused(PN_STR("[1E-0001]"));
	pn_buf_add_text(&text, "0.");
	for (int i = 0; i < 63; i++)
		pn_buf_add_char(&text, '0');
	assert_refused(pn_buf_str(&text));
	pn_buf_reset(&text);
	/* The same digits in a string are nobody's business. */
	pn_buf_add_text(&text, "[\"\\\"1e99999\",1e-300,0.5,-1.25E+3]");
	json_decref(parsed(pn_buf_str(&text)));
}

/* Recursion until the stack of a server thread is used up. */
static void
test_json__depth_is_limited_before_parsing(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf text = pn_buf_init(1 << 16);

	(void)state;
	for (int i = 0; i < PN_JSON_DEPTH_MAX; i++)
		pn_buf_add_char(&text, '[');
	/* Brackets in strings do not count, wherever the quotes are. */
	pn_buf_add_text(&text, "\"\\\\\\\"[[[[{{{{\"");
	for (int i = 0; i < PN_JSON_DEPTH_MAX; i++)
		pn_buf_add_char(&text, ']');
	json_decref(parsed(pn_buf_str(&text)));
	pn_buf_reset(&text);
	for (int i = 0; i <= PN_JSON_DEPTH_MAX; i++)
		pn_buf_add_text(&text, i % 2 == 0 ? "[" : "{\"a\":");
	for (int i = PN_JSON_DEPTH_MAX; i >= 0; i--)
		pn_buf_add_char(&text, i % 2 == 0 ? ']' : '}');
	assert_refused(pn_buf_str(&text));
	pn_buf_reset(&text);
	for (int i = 0; i < 1000; i++)
		pn_buf_add_text(&text, i == 0 ? "[[]" : ",[]");
	pn_buf_add_char(&text, ']');
	json_decref(parsed(pn_buf_str(&text)));
}

/* A payer's data in the log of the merchant. */
static void
test_json__fault_does_not_quote_the_document(void **state)
{
	struct pn_error error = { "" };
	json_t *value;

	(void)state;
	assert_int_equal(pn_json_parse(PN_STR("{\"phone\":\"13800138000\" x"),
			     &value, &error),
	    1);
	assert_null(strstr(error.text, "13800138000"));
	assert_null(strstr(error.text, "near"));
	assert_non_null(strstr(error.text, "at byte"));
}

/* An empty id taken for an id, or a text cut at its NUL. */
static void
test_json__empty_text_counts_as_absent(void **state)
{
	PN_CLEANUP(pn_json_freep)
	json_t *value =
	    parsed(PN_STR("{\"a\":\"x\\u0000y\",\"e\":\"\",\"n\":1}"));
	struct pn_str text = pn_json_text(value, "a");

	(void)state;
	assert_int_equal(text.len, 3);
	assert_memory_equal(text.data, "x\0y", 3);
	assert_null(pn_json_text(value, "e").data);
	assert_null(pn_json_text(value, "n").data);
	assert_null(pn_json_text(value, "absent").data);
	assert_null(pn_json_text(NULL, "a").data);
	assert_null(pn_json_text(json_object_get(value, "n"), "a").data);
}

/* jsonb refuses \u0000; an escaped backslash before u0000 is plain text. */
static void
test_json__sanitise_replaces_escaped_nul_only(void **state)
{
	static const char *const pairs[][2] = {
		{ "{\"b\":1, \"a\":1.50}", "{\"b\":1, \"a\":1.50}" },
		{ "\"\\u0000\"", "\"\\ufffd\"" },
		{ "\"\\\\u0000\"", "\"\\\\u0000\"" },
		{ "\"\\\\\\u0000\\u0000\"", "\"\\\\\\ufffd\\ufffd\"" },
		{ "\"\\u00001\\u0001\"", "\"\\ufffd1\\u0001\"" },
		{ "\"\\\"\\u0000\\\\\"", "\"\\\"\\ufffd\\\\\"" },
		{ "{\"u0000\":\"\\\\u0000 \\u0000\"}",
		    "{\"u0000\":\"\\\\u0000 \\ufffd\"}" },
	};
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < PN_COUNT(pairs); i++) {
		struct pn_str text = pn_str_from(pairs[i][0]);

		json_decref(parsed(text));
		text = pn_json_sanitise(arena, text);
		assert_true(pn_str_is(text, pairs[i][1]));
		json_decref(parsed(text));
	}
}

/* A subject with a quote or a broken character that breaks the payload. */
static void
test_json__add_string_always_gives_json(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);
	PN_CLEANUP(pn_json_freep) json_t *value = NULL;
	char all[256];

	(void)state;
	pn_json_add_string(&out, PN_STR("a\"\\/\n\x1f\0\x7f\xe4\xb8\xad"));
	assert_string_equal(
	    out.data, "\"a\\\"\\\\/\\u000a\\u001f\\ufffd\x7f\xe4\xb8\xad\"");
	pn_buf_reset(&out);
	pn_json_add_string(&out, PN_STR("\xff"
					"x\xe4\xb8"));
	assert_string_equal(out.data, "\"\\ufffdx\\ufffd\"");
	pn_buf_reset(&out);
	pn_json_add_string(&out, (struct pn_str){ NULL, 0 });
	assert_string_equal(out.data, "\"\"");
	pn_buf_reset(&out);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	pn_json_add_string(&out, (struct pn_str){ all, sizeof(all) });
	value = parsed(pn_buf_str(&out));
	assert_int_equal(json_string_length(value), 3 + 127 + 128 * 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json__refuses_ambiguous_documents),
		cmocka_unit_test(test_json__integers_are_exact),
		cmocka_unit_test(test_json__undoes_every_escape),
		cmocka_unit_test(
		    test_json__plain_documents_read_as_jansson_reads_them),
		cmocka_unit_test(
		    test_json__plain_documents_have_each_name_once),
		cmocka_unit_test(test_json__refusal_at_any_byte_leaks_nothing),
		cmocka_unit_test(test_json__refuses_numbers_without_measure),
		cmocka_unit_test(test_json__depth_is_limited_before_parsing),
		cmocka_unit_test(test_json__fault_does_not_quote_the_document),
		cmocka_unit_test(test_json__empty_text_counts_as_absent),
		cmocka_unit_test(test_json__sanitise_replaces_escaped_nul_only),
		cmocka_unit_test(test_json__add_string_always_gives_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
