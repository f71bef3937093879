/*
 * The gateway's own answers. If these fail, a client cannot read why it was
 * refused, or is told to do what charges somebody twice.
 */
#include "guard_internal.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/json.h"

static int
arena_setup(void **state)
{
	*state = pn_arena_new(1 << 20);
	return *state == NULL;
}

static int
arena_teardown(void **state)
{
	pn_arena_free(*state);
	return 0;
}

static struct pn_str
header(const struct pn_answer *answer, const char *name)
{
	struct pn_str value = { NULL, 0 };

	for (size_t i = 0; i < answer->header_count; i++)
		if (pn_str_equal_fold(
			answer->headers[i].name, pn_str_from(name))) {
			assert_null(value.data); /* once */
			value = answer->headers[i].value;
		}
	return value;
}

static void
assert_header(
    const struct pn_answer *answer, const char *name, const char *expected)
{
	struct pn_str value = header(answer, name);

	if (expected == NULL ? value.data != NULL : !pn_str_is(value, expected))
		fail_msg("%s: \"" PN_STR_FMT "\", not \"%s\"", name,
		    PN_STR_ARG(value), expected == NULL ? "" : expected);
}

/* The answer's body, read; checked against its own row. */
static json_t *
document(enum pn_problem problem, const struct pn_answer *answer)
{
	struct pn_str type;
	int64_t status = 0;
	json_t *value;

	assert_int_equal(pn_json_parse(answer->body, &value, NULL), 0);
	assert_int_equal(json_object_size(value), 4);
	type = pn_json_text(value, "type");
	assert_true(pn_str_starts(type, "urn:paynotify:problem:"));
	assert_string_equal(type.data + strlen("urn:paynotify:problem:"),
	    pn_problem_name(problem));
	assert_true(pn_json_text(value, "title").len > 0);
	assert_true(pn_json_text(value, "detail").len > 0);
	assert_int_equal(pn_json_int64(value, "status", &status), 0);
	assert_int_equal(status, answer->status);
	assert_int_equal(status, pn_problem_status(problem));
	return value;
}

/* A row is missing, or its text is no JSON as it stands. */
static void
test_problem__every_row_is_a_document(void **state)
{
	for (int i = PN_PROBLEM_NONE + 1; i < PN_PROBLEM_COUNT; i++) {
		enum pn_problem problem = (enum pn_problem)i;
		struct pn_answer answer;

		pn_problem_answer(problem, NULL, 0, NULL, *state, &answer);
		json_decref(document(problem, &answer));
		assert_header(
		    &answer, "Content-Type", "application/problem+json");
		for (size_t at = 0; at < answer.body.len; at++) {
			unsigned char c = (unsigned char)answer.body.data[at];

			assert_true(c == '\n' || (isprint(c) && c != '\\'));
		}
	}
}

/* A client that switches on them: types and statuses never change. */
static void
test_problem__types_and_statuses_are_stable(void **state)
{
	static const struct {
		enum pn_problem problem;
		const char *name;
		unsigned status;
		const char *retry_after;
	} rows[] = {
		{ PN_PROBLEM_NOT_FOUND, "not-found", 404, NULL },
		{ PN_PROBLEM_METHOD, "method", 405, NULL },
		{ PN_PROBLEM_BODY_TOO_LARGE, "body-too-large", 413, NULL },
		{ PN_PROBLEM_URI_TOO_LONG, "uri-too-long", 414, NULL },
		{ PN_PROBLEM_HEADERS_TOO_MANY, "headers-too-many", 431, NULL },
		{ PN_PROBLEM_LENGTH_AMBIGUOUS, "length-ambiguous", 400, NULL },
		{ PN_PROBLEM_BODY_UNEXPECTED, "body-unexpected", 400, NULL },
		{ PN_PROBLEM_METHOD_OVERRIDE, "method-override", 400, NULL },
		{ PN_PROBLEM_STOPPING, "stopping", 503, "1" },
		{ PN_PROBLEM_KEY_MISSING, "key-missing", 400, NULL },
		{ PN_PROBLEM_KEY_EMPTY, "key-empty", 400, NULL },
		{ PN_PROBLEM_KEY_TOO_LONG, "key-too-long", 400, NULL },
		{ PN_PROBLEM_KEY_REPEATED, "key-repeated", 400, NULL },
		{ PN_PROBLEM_KEY_MALFORMED, "key-malformed", 400, NULL },
		{ PN_PROBLEM_TENANT_MISSING, "tenant-missing", 400, NULL },
		{ PN_PROBLEM_TENANT_UNTRUSTED, "tenant-untrusted", 403, NULL },
		{ PN_PROBLEM_API_KEY, "api-key", 401, NULL },
		{ PN_PROBLEM_MISMATCH, "mismatch", 422, NULL },
		{ PN_PROBLEM_IN_PROGRESS, "in-progress", 409, "1" },
		{ PN_PROBLEM_SET_ASIDE, "set-aside", 409, NULL },
		{ PN_PROBLEM_EXPIRED, "expired", 422, NULL },
		{ PN_PROBLEM_DATABASE, "database", 503, "1" },
		{ PN_PROBLEM_NO_ROOM, "no-room", 503, "1" },
		{ PN_PROBLEM_UPSTREAM_UNREACHABLE, "upstream-unreachable", 502,
		    "1" },
		{ PN_PROBLEM_UPSTREAM_TIMEOUT, "upstream-timeout", 504, NULL },
		{ PN_PROBLEM_UPSTREAM_LOST, "upstream-lost", 502, NULL },
		{ PN_PROBLEM_RESPONSE_TOO_LARGE, "response-too-large", 502,
		    NULL },
		{ PN_PROBLEM_LEASE_LOST, "lease-lost", 409, "1" },
		{ PN_PROBLEM_NOT_STORED, "not-stored", 503, "1" },
		{ PN_PROBLEM_INTERRUPTED, "interrupted", 503, "1" },
		{ PN_PROBLEM_MEMORY, "memory", 503, "1" },
	};

	assert_int_equal(PN_COUNT(rows), PN_PROBLEM_COUNT - 1);
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_answer answer;

		pn_problem_answer(
		    rows[i].problem, NULL, 0, NULL, *state, &answer);
		assert_string_equal(
		    pn_problem_name(rows[i].problem), rows[i].name);
		assert_int_equal(answer.status, rows[i].status);
		assert_header(&answer, "Retry-After", rows[i].retry_after);
		assert_header(&answer, "WWW-Authenticate",
		    rows[i].problem == PN_PROBLEM_API_KEY ? "Bearer" : NULL);
		assert_header(&answer, "Allow", NULL);
	}
}

/* The client comes back too early, never, or is told zero seconds. */
static void
test_problem__retry_after_is_rounded_up(void **state)
{
	static const struct {
		int64_t us;
		const char *text;
	} cases[] = {
		{ 0, "1" },
		{ -5, "1" },
		{ -1500000, "1" },
		{ 1, "1" },
		{ 1000000, "1" },
		{ 1000001, "2" },
		{ 29500000, "30" },
		{ INT64_MAX, "86400" },
		{ INT64_MIN, "1" },
	};
	struct pn_answer answer;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		pn_problem_answer(PN_PROBLEM_IN_PROGRESS, NULL, cases[i].us,
		    NULL, *state, &answer);
		assert_header(&answer, "Retry-After", cases[i].text);
	}
	pn_problem_answer(
	    PN_PROBLEM_MISMATCH, NULL, 5000000, NULL, *state, &answer);
	assert_header(&answer, "Retry-After", NULL);
}

/* 405 without Allow is not HTTP; 404 with it is a lie. */
static void
test_problem__allow_is_of_method_only(void **state)
{
	char allow[] = "GET, POST";
	struct pn_answer answer;

	pn_problem_answer(PN_PROBLEM_METHOD, NULL, 0, allow, *state, &answer);
	memset(allow, 'x', strlen(allow));
	assert_header(&answer, "Allow", "GET, POST");
	assert_header(&answer, "Content-Type", "application/problem+json");
	pn_problem_answer(
	    PN_PROBLEM_NOT_FOUND, NULL, 0, "GET", *state, &answer);
	assert_header(&answer, "Allow", NULL);
}

/* What is special of this case is lost, or breaks the document. */
static void
test_problem__detail_is_told_too(void **state)
{
	struct pn_answer answer;
	struct pn_str text;
	json_t *value;

	pn_problem_answer(PN_PROBLEM_SET_ASIDE, "answered \"a\\b\"\n502", 0,
	    NULL, *state, &answer);
	value = document(PN_PROBLEM_SET_ASIDE, &answer);
	text = pn_json_text(value, "detail");
	assert_true(pn_str_find(text, PN_STR("paynotifyctl keys show")) > 0);
	assert_true(
	    pn_str_find(text, PN_STR(". Reason: answered \"a\\b\"\n502.")) > 0);
	json_decref(value);
}

/* Without memory the client gets no answer at all, or half of one. */
static void
test_problem__needs_no_memory(void **state)
{
	struct pn_arena *none = pn_arena_new(0);
	struct pn_answer answer;

	(void)state;
	pn_problem_answer(
	    PN_PROBLEM_IN_PROGRESS, "detail", 9000000, NULL, none, &answer);
	json_decref(document(PN_PROBLEM_IN_PROGRESS, &answer));
	assert_header(&answer, "Retry-After", "1");
	pn_problem_answer(
	    PN_PROBLEM_SET_ASIDE, "detail", 0, NULL, none, &answer);
	json_decref(document(PN_PROBLEM_SET_ASIDE, &answer));
	pn_problem_answer(
	    PN_PROBLEM_METHOD, NULL, 0, "GET, POST", none, &answer);
	json_decref(document(PN_PROBLEM_METHOD, &answer));
	assert_header(&answer, "Content-Type", "application/problem+json");
	pn_arena_free(none);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_problem__every_row_is_a_document),
		cmocka_unit_test(test_problem__types_and_statuses_are_stable),
		cmocka_unit_test(test_problem__retry_after_is_rounded_up),
		cmocka_unit_test(test_problem__allow_is_of_method_only),
		cmocka_unit_test(test_problem__detail_is_told_too),
		cmocka_unit_test(test_problem__needs_no_memory),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
