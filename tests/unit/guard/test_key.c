/*
 * Keys and the hash of a request. If these fail, two customers share one
 * charge, or one customer's repeat is another charge.
 */
#include "guard_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { KEY_MAX = 255 };

static int
arena_setup(void **state)
{
	*state = pn_arena_new(4 << 20);
	return *state == NULL;
}

static int
arena_teardown(void **state)
{
	pn_arena_free(*state);
	return 0;
}

static enum pn_problem
key_of(struct pn_arena *arena, struct pn_str value, struct pn_str *ret_key)
{
	const struct pn_header headers[] = {
		{ PN_STR("Host"), PN_STR("example.org") },
		{ PN_STR("idempotency-KEY"), value },
	};
	const struct pn_request request = { .headers = headers,
		.header_count = PN_COUNT(headers) };

	*ret_key = (struct pn_str){ NULL, 0 };
	return pn_guard_key(&request, arena, ret_key);
}

/* A key is not what the client meant, or its quoted form is another one. */
static void
test_key__bare_and_quoted_are_one(void **state)
{
	static const struct {
		struct pn_str value;
		const char *key;
	} cases[] = {
		{ PN_STR("abc"), "abc" },
		{ PN_STR("\"abc\""), "abc" },
		{ PN_STR(" \tabc "), "abc" },
		{ PN_STR("  \"abc\" "), "abc" },
		{ PN_STR("a b"), "a b" },
		{ PN_STR("a,b;c"), "a,b;c" },
		{ PN_STR("a\"b\""), "a\"b\"" },
		{ PN_STR("'abc'"), "'abc'" },
		{ PN_STR("a\\b"), "a\\b" },
		{ PN_STR("\"a\\\"b\\\\c\""), "a\"b\\c" },
		{ PN_STR("\"a;b,c d\""), "a;b,c d" },
		{ PN_STR("\"abc\";v=1"), "abc" },
		{ PN_STR("\"abc\"; a; *b=\"x;\\\"y\";c=?1;d=:YQ==:;e=t/x:1"),
		    "abc" },
		{ PN_STR("~!#$"), "~!#$" },
	};
	struct pn_str key;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		assert_int_equal(
		    key_of(*state, cases[i].value, &key), PN_PROBLEM_NONE);
		assert_string_equal(key.data, cases[i].key);
		assert_int_equal(key.len, strlen(cases[i].key));
	}
}

/* Half a key is a key: all that lost the other half share it. */
static void
test_key__refuses_what_is_none(void **state)
{
	static const struct {
		struct pn_str value;
		enum pn_problem problem;
	} cases[] = {
		{ PN_STR(""), PN_PROBLEM_KEY_EMPTY },
		{ PN_STR(" \t "), PN_PROBLEM_KEY_EMPTY },
		{ PN_STR("\"\""), PN_PROBLEM_KEY_EMPTY },
		{ PN_STR("\"  \""), PN_PROBLEM_KEY_EMPTY },
		{ PN_STR("\"\";a=1"), PN_PROBLEM_KEY_EMPTY },
		{ PN_STR("\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\\"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\\\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"a\\nb\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\"x"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\"xa"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\",def"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\" ;a"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\", \"def\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";a, \"def\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";A"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";a="), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";a=\"b"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc\";a \"b\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"a\tb\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"abc \""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\" abc\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\" \\\"\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"\\\"abc\\\"\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"\\\"\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\"\xc3\xa9\""), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("\xc3\xa9"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("a\tb"), PN_PROBLEM_KEY_MALFORMED },
		{ PN_STR("a\x7f"), PN_PROBLEM_KEY_MALFORMED },
		{ { "a\0b", 3 }, PN_PROBLEM_KEY_MALFORMED },
	};
	struct pn_str key;

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		if (key_of(*state, cases[i].value, &key) != cases[i].problem)
			fail_msg("case %zu: " PN_STR_FMT, i,
			    PN_STR_ARG(cases[i].value));
}

/* 255 is refused, 256 cut off, or quotes and escapes counted. */
static void
test_key__length_is_after_unquoting(void **state)
{
	char text[2 * (KEY_MAX + 1) + 2];
	struct pn_str key;

	memset(text, 'k', sizeof(text));
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, KEY_MAX }, &key), 0);
	assert_int_equal(key.len, KEY_MAX);
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, KEY_MAX + 1 }, &key),
	    PN_PROBLEM_KEY_TOO_LONG);
	text[0] = text[KEY_MAX + 1] = '"';
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, KEY_MAX + 2 }, &key), 0);
	assert_int_equal(key.len, KEY_MAX);
	text[KEY_MAX + 1] = 'k';
	text[KEY_MAX + 2] = '"';
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, KEY_MAX + 3 }, &key),
	    PN_PROBLEM_KEY_TOO_LONG);
	for (size_t i = 0; i <= KEY_MAX; i++)
		memcpy(text + 1 + 2 * i, "\\\\", 2);
	text[1 + 2 * KEY_MAX] = '"';
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, 2 * KEY_MAX + 2 }, &key), 0);
	assert_int_equal(key.len, KEY_MAX);
	memcpy(text + 1 + 2 * KEY_MAX, "\\\\\"", 3);
	assert_int_equal(
	    key_of(*state, (struct pn_str){ text, 2 * KEY_MAX + 4 }, &key),
	    PN_PROBLEM_KEY_TOO_LONG);
}

/* One of two keys is chosen, and a proxy chooses the other. */
static void
test_key__one_line_of_either_name(void **state)
{
	const struct pn_header headers[] = {
		{ PN_STR("Idempotency-Key"), PN_STR("a") },
		{ PN_STR("Idempotency-Key"), PN_STR("a") },
		{ PN_STR("X-Idempotency-Key"), PN_STR("a") },
		{ PN_STR("X-Idempotency-Key"), PN_STR("\"a\"") },
	};
	static const enum pn_problem expected[5][5] = {
		/* [from][count] */
		{ PN_PROBLEM_KEY_MISSING, PN_PROBLEM_NONE,
		    PN_PROBLEM_KEY_REPEATED, PN_PROBLEM_KEY_REPEATED,
		    PN_PROBLEM_KEY_REPEATED },
		{ PN_PROBLEM_KEY_MISSING, PN_PROBLEM_NONE,
		    PN_PROBLEM_KEY_REPEATED, PN_PROBLEM_KEY_REPEATED },
		{ PN_PROBLEM_KEY_MISSING, PN_PROBLEM_NONE,
		    PN_PROBLEM_KEY_REPEATED },
		{ PN_PROBLEM_KEY_MISSING, PN_PROBLEM_NONE },
		{ PN_PROBLEM_KEY_MISSING },
	};
	struct pn_str key;

	for (size_t from = 0; from <= PN_COUNT(headers); from++)
		for (size_t n = 0; n <= PN_COUNT(headers) - from; n++) {
			const struct pn_request request = {
				.headers = headers + from, .header_count = n
			};

			assert_int_equal(pn_guard_key(&request, *state, &key),
			    expected[from][n]);
			if (expected[from][n] == PN_PROBLEM_NONE)
				assert_string_equal(key.data, "a");
		}
}

/* -- the hash of a request -------------------------------------------------- */

struct asked {
	const char *type;
	const char *rest, *query, *body;
};

static void
hash(struct pn_arena *arena, const struct asked *asked,
    unsigned char ret_hash[PN_SHA256_BYTES])
{
	const struct pn_header header = { PN_STR("Content-Type"),
		pn_str_from(asked->type) };
	const struct pn_request request = { .headers = &header,
		.header_count = asked->type != NULL,
		.query = pn_str_from(asked->query),
		.body = pn_str_from(asked->body) };

	assert_int_equal(pn_guard_request_hash(&request,
			     pn_str_from(asked->rest), arena, ret_hash),
	    0);
}

static bool
same(struct pn_arena *arena, struct asked a, struct asked b)
{
	unsigned char hash_a[PN_SHA256_BYTES], hash_b[PN_SHA256_BYTES];

	hash(arena, &a, hash_a);
	hash(arena, &b, hash_b);
	return memcmp(hash_a, hash_b, PN_SHA256_BYTES) == 0;
}

/* A repeat of an operation is refused as another one. */
static void
test_key__same_request_in_another_spelling(void **state)
{
	static const char json[] = "application/json";
	static const char a[] = "{\"amount\":100,\"to\":\"A\"}";
	static const char b[] = "{ \"to\": \"\\u0041\",\n\"amount\" : 100 }";

	assert_true(same(*state, (struct asked){ json, "", NULL, a },
	    (struct asked){ json, "", NULL, b }));
	assert_true(same(*state, (struct asked){ json, "", "", a },
	    (struct asked){ "Application/JSON ; charset=utf-8", "", NULL, b }));
	assert_true(
	    same(*state, (struct asked){ "application/x+JSON", "x", "q", a },
		(struct asked){ "text/vnd.y+json;a", "x", "q", b }));
	assert_true(same(*state, (struct asked){ json, "", "%61=%7e%2f|", a },
	    (struct asked){ json, "", "a=~%2F|", a }));
	/* What is sent to the upstream as the other one. */
	assert_true(same(*state, (struct asked){ json, "", "\xc3\xa9", a },
	    (struct asked){ json, "", "%C3%a9", a }));
	/* Nor what no notification may hold. */
	assert_true(same(*state,
	    (struct asked){ json, "", NULL,
		"{\"n\":[18446744073709551616,1e400],\"s\":\"\\ud800\"}" },
	    (struct asked){ json, "", NULL,
		"{\"s\":\"\\uD800\", \"n\":[18446744073709551616, 1e400]}" }));
	assert_true(same(*state,
	    (struct asked){ json, "", NULL, "{\"a\":1,\"b\":2,\"a\":3}" },
	    (struct asked){ json, "", NULL, "{ \"b\":2,\"a\":1,\"a\":3}" }));
}

/* Another operation gets the answer of the first one. */
static void
test_key__another_request_is_another(void **state)
{
	static const char json[] = "application/json";
	static const struct asked all[] = {
		{ json, "", NULL, "{\"amount\":100}" },
		{ json, "", NULL, "{\"amount\":100.0}" },
		{ json, "", NULL, "{\"amount\":1e2}" },
		{ json, "", NULL, "{\"amount\":\"100\"}" },
		{ json, "", NULL, "{\"amount\":100,\"amount\":100}" },
		{ json, "", NULL, "{\"amount\":100,\"amount\":1}" },
		{ json, "", NULL, "{\"amount\":1,\"amount\":100}" },
		{ json, "", NULL, "{\"amount\":18446744073709551616}" },
		{ json, "", NULL, "{\"amount\":18446744073709551617}" },
		{ json, "", NULL, "{\"amount\":1e400}" },
		{ json, "", NULL, "{\"amount\":1e401}" },
		{ json, "", NULL, "\"\\ud800\"" },
		{ json, "", NULL, "\"\\ud801\"" },
		{ json, "", NULL, "\"\\ufffd\"" },
		{ json, "", "a=1", "{\"amount\":100}" },
		{ json, "", "a=/", "{\"amount\":100}" },
		{ json, "", "a=%2F", "{\"amount\":100}" },
		/* No URI: as it came, and none that is one. */
		{ json, "", "c", "{\"amount\":100}" },
		{ json, "", "%%36%33", "{\"amount\":100}" },
		{ json, "", "%6%33", "{\"amount\":100}" },
		{ json, "", "%7E%", "{\"amount\":100}" },
		{ json, "", "~%", "{\"amount\":100}" },
		{ json, "a=1", NULL, "{\"amount\":100}" },
		{ json, "1", "2,3:", "{\"amount\":100}" },
		{ json, "1,1:2", "3:", "{\"amount\":100}" },
		{ json, "", NULL, "" },
		{ json, "", NULL, "{\"amount\":100" },
		{ json, "", NULL, "{\"amount\":100 " },
		/* Not JSON by its type: bytes. */
		{ "text/plain", "", NULL, "{\"amount\":100}" },
		{ "text/plain", "", NULL, "{\"amount\": 100}" },
		{ NULL, "", NULL, "{ \"amount\":100}" },
		{ "application/jsonx", "", NULL, "{\"amount\":100 }" },
		{ "", "", NULL, "{\"amount\":100    }" },
		{ "a/b", "", NULL, "{\"amount\":100     }" },
		{ "+json", "", NULL, "{\"amount\":100  }" },
		{ "application/json-seq", "", NULL, "{\"amount\":100   }" },
	};

	for (size_t i = 0; i < PN_COUNT(all); i++)
		for (size_t k = 0; k < PN_COUNT(all); k++)
			if (same(*state, all[i], all[k]) != (i == k))
				fail_msg("%zu and %zu", i, k);
}

/* A hash changes in another version: all keys of a day ago mismatch. */
static void
test_key__hash_is_stable(void **state)
{
	static const unsigned char expected[PN_SHA256_BYTES] = { 0xe7, 0x3a,
		0x21, 0x26, 0xac, 0x7b, 0xc0, 0x4e, 0x36, 0xe9, 0x41, 0xf0,
		0x75, 0x9f, 0xb5, 0x87, 0x7f, 0x63, 0x66, 0x62, 0x28, 0xe5,
		0x36, 0x06, 0xf2, 0x0d, 0x51, 0xf2, 0xde, 0x22, 0x2b, 0x18 };
	const struct asked asked = { "application/json", "7/refund", "a=1",
		"{\"b\":1,\"a\":[1.0]}" };
	unsigned char got[PN_SHA256_BYTES];

	hash(*state, &asked, got);
	assert_memory_equal(got, expected, sizeof(got));
}

/* Out of memory a request is hashed as another one. */
static void
test_key__tells_that_memory_is_out(void **state)
{
	const struct pn_header headers[] = {
		{ PN_STR("Content-Type"), PN_STR("application/json") },
		{ PN_STR("Idempotency-Key"), PN_STR("abc") },
	};
	const struct pn_request request = { .headers = headers,
		.header_count = 2,
		.body = PN_STR("{\"a\":1}") };
	unsigned char got[PN_SHA256_BYTES];
	struct pn_arena *none = pn_arena_new(0);
	struct pn_str key;

	(void)state;
	assert_true(pn_guard_request_hash(&request, PN_STR(""), none, got) < 0);
	assert_int_equal(pn_guard_key(&request, none, &key), PN_PROBLEM_MEMORY);
	pn_arena_free(none);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key__bare_and_quoted_are_one),
		cmocka_unit_test(test_key__refuses_what_is_none),
		cmocka_unit_test(test_key__length_is_after_unquoting),
		cmocka_unit_test(test_key__one_line_of_either_name),
		cmocka_unit_test(test_key__same_request_in_another_spelling),
		cmocka_unit_test(test_key__another_request_is_another),
		cmocka_unit_test(test_key__hash_is_stable),
		cmocka_unit_test(test_key__tells_that_memory_is_out),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
