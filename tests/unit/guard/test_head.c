/*
 * Headers. If these fail, an upstream believes a client what only the gateway
 * may say, a header is smuggled in, or a replay is not what was answered.
 */
#include "head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES_MAX = 1 << 16 };

static const unsigned char token[PN_LEASE_TOKEN_BYTES] = { 0x12, 0x3e, 0x45,
	0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40,
	0xff };

static char tenant_header[] = "X-Tenant";
static char *tenant_headers[] = { tenant_header };
/* Without one, and with one; a request is of the first. */
static struct pn_conf_guard_route confs[2] = {
	[1].tenant_header = { tenant_headers, NULL, 1 },
};
static const struct pn_conf all = { .guard_routes = confs,
	.guard_route_count = PN_COUNT(confs) };
static const struct pn_guard_route any_route = { .conf = confs, .all = &all };

static struct pn_guard_forward
forward_of(const struct pn_call *call)
{
	return (struct pn_guard_forward){ .route = &any_route,
		.call = call,
		.tenant = PN_STR("shop1"),
		.key = PN_STR("a \"b\""),
		.attempt = 3,
		.token = token };
}

static void
assert_forwarded(const struct pn_guard_forward *forward, const char *expected)
{
	struct pn_buf out = pn_buf_init(TEXT_BYTES_MAX);

	pn_guard_forward_headers(forward, &out);
	assert_false(pn_buf_failed(&out));
	assert_string_equal(out.data == NULL ? "" : out.data, expected);
	pn_buf_done(&out);
}

#define OWN                                                         \
	"Idempotency-Key: a \"b\"\n"                                \
	"Idempotency-Attempt: 3\n"                                  \
	"Idempotency-Token: 123e4567-e89b-12d3-a456-4266141740ff\n" \
	"Idempotency-Tenant: shop1\n"

/* What is of one connection, or what curl makes, goes through. */
static void
test_head__end_to_end_headers_go_upstream(void **state)
{
	static const struct pn_header headers[] = {
		{ PN_STR("Host"), PN_STR("api.example.org") },
		{ PN_STR("Content-Type"), PN_STR("application/json") },
		{ PN_STR("content-length"), PN_STR("5") },
		{ PN_STR("Connection"), PN_STR("close, x-HOP , ,y") },
		{ PN_STR("CONNECTION"), PN_STR("X-Other") },
		{ PN_STR("X-Hop"), PN_STR("1") },
		{ PN_STR("Y"), PN_STR("1") },
		{ PN_STR("x-other"), PN_STR("1") },
		{ PN_STR("Keep-Alive"), PN_STR("1") },
		{ PN_STR("TE"), PN_STR("trailers") },
		{ PN_STR("Trailer"), PN_STR("x") },
		{ PN_STR("Transfer-Encoding"), PN_STR("chunked") },
		{ PN_STR("Upgrade"), PN_STR("h2c") },
		{ PN_STR("Proxy-Connection"), PN_STR("close") },
		{ PN_STR("Proxy-Authorization"), PN_STR("Basic x") },
		{ PN_STR("Expect"), PN_STR("100-continue") },
		{ PN_STR("Accept-Encoding"), PN_STR("gzip") },
		{ PN_STR("Accept"), PN_STR("*/*") },
		{ PN_STR("Authorization"), PN_STR("Bearer x") },
		{ PN_STR("X-Empty"), PN_STR("") },
		{ PN_STR("X-Tab"), PN_STR("a\tb") },
		{ PN_STR("X-Latin"), PN_STR("caf\xe9") },
		{ PN_STR("Cookie"), PN_STR("a") },
		{ PN_STR("Cookie"), PN_STR("b") },
	};
	const struct pn_call call = { .request = {
					  .headers = headers,
					  .header_count = PN_COUNT(headers),
					  .peer = PN_STR("192.0.2.1"),
				      } };
	const struct pn_guard_forward forward = forward_of(&call);

	(void)state;
	assert_forwarded(&forward, "Content-Type: application/json\n"
				   "Accept: */*\n"
				   "Authorization: Bearer x\n"
				   "X-Empty: \n"
				   "X-Tab: a\tb\n"
				   "X-Latin: caf\xe9\n"
				   "Cookie: a\n"
				   "Cookie: b\n"
				   "X-Forwarded-For: 192.0.2.1\n"
				   "X-Forwarded-Host: api.example.org\n" OWN);
}

/* The upstream takes a client's word for the fencing number, the tenant or the
 * address; also where its framework writes "_" for "-". */
static void
test_head__nothing_of_the_gateways_is_a_clients(void **state)
{
	static const struct pn_header headers[] = {
		{ PN_STR("idempotency-key"), PN_STR("x") },
		{ PN_STR("X-Idempotency-Key"), PN_STR("x") },
		{ PN_STR("Idempotency-Attempt"), PN_STR("99") },
		{ PN_STR("Idempotency_Attempt"), PN_STR("99") },
		{ PN_STR("IDEMPOTENCY_token"), PN_STR("x") },
		{ PN_STR("Idempotency.Key"), PN_STR("x") },
		{ PN_STR("X_Idempotency-Tenant"), PN_STR("x") },
		{ PN_STR("Idempotency-Tenant"), PN_STR("x") },
		{ PN_STR("Idempotency-Replayed"), PN_STR("true") },
		{ PN_STR("X-Forwarded-For"), PN_STR("10.0.0.1") },
		{ PN_STR("x_forwarded_for"), PN_STR("10.0.0.1") },
		{ PN_STR("X-Forwarded-Host"), PN_STR("evil.example") },
		{ PN_STR("X-Forwarded-Proto"), PN_STR("https") },
		{ PN_STR("Forwarded"), PN_STR("for=10.0.0.1") },
		{ PN_STR("X-Real-IP"), PN_STR("10.0.0.1") },
		{ PN_STR("X_Real_IP"), PN_STR("10.0.0.2") },
		{ PN_STR("X-Forwarded_Proto"), PN_STR("http") },
		{ PN_STR("Connection"), PN_STR("Idempotency-Tenant") },
		{ PN_STR("X-Kept"), PN_STR("1") },
	};
	struct pn_call call = { .request = {
				    .headers = headers,
				    .header_count = PN_COUNT(headers),
				    .peer = PN_STR("192.0.2.1"),
				} };
	struct pn_guard_forward forward = forward_of(&call);

	(void)state;
	assert_forwarded(
	    &forward, "X-Kept: 1\nX-Forwarded-For: 192.0.2.1\n" OWN);
	/* Without a key nothing is said of one. */
	forward.key.data = NULL;
	assert_forwarded(&forward, "X-Kept: 1\nX-Forwarded-For: 192.0.2.1\n");
	/* A trusted proxy knows the scheme and the host, but the address is
	 * the one that the server found out. */
	call.from_proxy = true;
	assert_forwarded(&forward, "X-Forwarded-Proto: https\n"
				   "Forwarded: for=10.0.0.1\n"
				   "X-Real-IP: 10.0.0.1\n"
				   "X-Kept: 1\n"
				   "X-Forwarded-For: 192.0.2.1\n"
				   "X-Forwarded-Host: evil.example\n");
}

/* A client names itself the tenant that it wants to be: alone, beside the proxy's
 * line, or with a name that the upstream's framework makes the same. */
static void
test_head__a_tenant_is_named_by_a_proxy_only(void **state)
{
	struct pn_header headers[] = {
		{ PN_STR("X_Tenant"), PN_STR("shop2") },
		{ PN_STR("x-tenant"), PN_STR("shop1") },
		{ PN_STR("X.Tenant"), PN_STR("shop3") },
		{ PN_STR("X_Api_Key"), PN_STR("k2") },
		{ PN_STR("X-Api-Key"), PN_STR("k1") },
		{ PN_STR("X-Tenants"), PN_STR("1") },
	};
	struct pn_call call = { .request = {
				    .headers = headers,
				    .header_count = PN_COUNT(headers),
				} };
	struct pn_guard_forward forward = forward_of(&call);

	(void)state;
	assert_forwarded(&forward, "X-Api-Key: k1\nX-Tenants: 1\n" OWN);
	forward.key.data = NULL;
	assert_forwarded(&forward, "X-Api-Key: k1\nX-Tenants: 1\n");
	call.from_proxy = true;
	assert_forwarded(
	    &forward, "x-tenant: shop1\nX-Api-Key: k1\nX-Tenants: 1\n");
	/* Whose is which? */
	headers[5].name = PN_STR("X-TENANT");
	assert_forwarded(&forward, "X-Api-Key: k1\n");
}

/* A line ends early and starts another one, or curl refuses them all. */
static void
test_head__lines_cannot_be_broken(void **state)
{
	static const struct pn_header headers[] = {
		{ PN_STR("A"), PN_STR("1\nIdempotency-Attempt: 9") },
		{ PN_STR("B"), PN_STR("1\r") },
		{ PN_STR("C"), { "1\0", 2 } },
		{ PN_STR("D"), PN_STR("\x7f") },
		{ PN_STR("E\nF"), PN_STR("1") },
		{ PN_STR("G:H"), PN_STR("1") },
		{ PN_STR("I "), PN_STR("1") },
		{ PN_STR(""), PN_STR("1") },
		{ PN_STR("J\xc3\xa9"), PN_STR("1") },
		{ PN_STR("Host"), PN_STR("a\nb") },
	};
	const struct pn_call call = { .request = {
					  .headers = headers,
					  .header_count = PN_COUNT(headers),
				      } };
	const struct pn_guard_forward forward = forward_of(&call);

	(void)state;
	assert_forwarded(&forward, OWN);
}

/* The query or the rest is lost, or what follows a "#" is. */
static void
test_head__url(void **state)
{
	static const struct {
		const char *upstream;
		bool has_rest;
		const char *rest, *query, *url;
	} cases[] = {
		{ "http://h:1/a", false, "", NULL, "http://h:1/a" },
		{ "http://h:1/a", false, "", "b=c", "http://h:1/a?b=c" },
		{ "http://h:1/a", false, "", "", "http://h:1/a?" },
		{ "http://h:1/a/", true, "b/c", "d", "http://h:1/a/b/c?d" },
		{ "http://h:1/a", true, "b/c", NULL, "http://h:1/a/b/c" },
		{ "http://h:1/a", true, "", NULL, "http://h:1/a/" },
		{ "http://h:1", true, "b", NULL, "http://h:1/b" },
		{ "https://h", false, "", "b", "https://h/?b" },
		{ "http://h/", true, "%2F#x y", "q=#\xc3\xa9%20",
		    "http://h/%2F%23x%20y?q=%23%C3%A9%20" },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct pn_buf out = pn_buf_init(TEXT_BYTES_MAX);
		char upstream[64];
		const struct pn_conf_guard_route conf = { .upstream =
							      upstream };
		const struct pn_guard_route route = { .conf = &conf,
			.has_rest = cases[i].has_rest };
		const struct pn_call call = { .request.query =
						  pn_str_from(cases[i].query) };
		const struct pn_guard_forward forward = { .route = &route,
			.call = &call,
			.rest = pn_str_from(cases[i].rest) };

		(void)snprintf(
		    upstream, sizeof(upstream), "%s", cases[i].upstream);
		pn_guard_forward_url(&forward, &out);
		assert_string_equal(out.data, cases[i].url);
		pn_buf_done(&out);
	}
}

/* -- answers ---------------------------------------------------------------- */

static const struct pn_str lines =
    PN_STR("Content-Type: application/json\n"
	   "Content-Length: 12\n"
	   "date: Thu, 01 Jan 1970 00:00:00 GMT\n"
	   "Connection: keep-alive, X-Hop\n"
	   "X-Hop: 1\n"
	   "Keep-Alive: timeout=5\n"
	   "Transfer-Encoding: chunked\n"
	   "Idempotency-Replayed: true\n"
	   "Idempotency-Key: k\n"
	   "Idempotent-Replayed: true\n"
	   "X-Idempotent-Replay: true\n"
	   "Set-Cookie: a=b\n"
	   "Set-Cookie: c=d\n"
	   "Location:  /v1/charges/7 \n"
	   "ETag: \"caf\xe9\"\n"
	   "X-Bad: a\x01z\n"
	   "no colon\n"
	   "X Y: 1\n"
	   ": 1\n"
	   "\n"
	   "LINK: <x>\n"
	   "X-Last:1");

/* The client sees the length of another body, or that an answer is a replay
 * when it is none. */
static void
test_head__answers_go_on(void **state)
{
	struct pn_buf out = pn_buf_init(TEXT_BYTES_MAX), again = out;

	(void)state;
	pn_guard_answer_headers(lines, &out);
	assert_string_equal(out.data, "Content-Type: application/json\n"
				      "Set-Cookie: a=b\n"
				      "Set-Cookie: c=d\n"
				      "Location: /v1/charges/7\n"
				      "ETag: \"caf\xe9\"\n"
				      "LINK: <x>\n"
				      "X-Last: 1\n");
	pn_guard_answer_headers(pn_buf_str(&out), &again);
	assert_string_equal(again.data, out.data);
	pn_buf_done(&again);
	pn_guard_answer_headers((struct pn_str){ NULL, 0 }, &again);
	assert_int_equal(again.len, 0);
	pn_buf_done(&out);
	pn_buf_done(&again);
}

/* A session cookie is replayed to whoever repeats the key; or a header that
 * was asked for is not; or the database refuses the bytes. */
static void
test_head__what_is_kept(void **state)
{
	char a[] = "set-cookie", b[] = "X-LAST", c[] = "Content-Length";
	char *names[] = { a, b, c };
	struct pn_conf_guard_route conf = { .name = NULL };
	const struct pn_guard_route route = { .conf = &conf };
	struct pn_buf out = pn_buf_init(TEXT_BYTES_MAX);

	(void)state;
	pn_guard_kept_headers(&route, lines, &out);
	assert_string_equal(out.data, "Content-Type: application/json\n"
				      "Location: /v1/charges/7\n"
				      "LINK: <x>\n"
				      "X-Last: 1\n");
	conf.keep_header = (struct pn_conf_strings){ names, NULL, 3 };
	pn_buf_reset(&out);
	pn_guard_kept_headers(&route, lines, &out);
	assert_string_equal(out.data, "Set-Cookie: a=b\n"
				      "Set-Cookie: c=d\n"
				      "X-Last: 1\n");
	pn_buf_done(&out);
}

static void
assert_list(struct pn_str text, bool replayed, int64_t expires_at_us,
    const char *expected)
{
	struct pn_arena *arena = pn_arena_new(TEXT_BYTES_MAX);
	struct pn_buf out = pn_buf_init(TEXT_BYTES_MAX);
	struct pn_answer answer = { .status = 201, .body = PN_STR("x") };

	assert_int_equal(
	    pn_guard_header_list(text, replayed, expires_at_us, arena, &answer),
	    0);
	assert_int_equal(answer.status, 201);
	assert_true(pn_str_is(answer.body, "x"));
	for (size_t i = 0; i < answer.header_count; i++)
		pn_buf_printf(&out, PN_STR_FMT "=" PN_STR_FMT "|",
		    PN_STR_ARG(answer.headers[i].name),
		    PN_STR_ARG(answer.headers[i].value));
	assert_string_equal(out.data == NULL ? "" : out.data, expected);
	pn_buf_done(&out);
	pn_arena_free(arena);
}

/* A client cannot tell a replay, or is told of a key's end that is later than
 * it is; or what an application stored breaks an answer. */
static void
test_head__list(void **state)
{
	(void)state;
	assert_list((struct pn_str){ NULL, 0 }, false, 0, "");
	assert_list(PN_STR("A: 1\nB:2\n"), false, 0, "A=1|B=2|");
	assert_list(PN_STR("A: 1\n"), true, INT64_C(1767225600999999),
	    "A=1|Idempotency-Replayed=true|Idempotent-Replayed=true|"
	    "X-Idempotent-Replay=true|"
	    "Idempotency-Expires=2026-01-01T00:00:00Z|");
	assert_list(PN_STR("A: 1\n"), false, INT64_C(1767225600000000),
	    "A=1|Idempotency-Expires=2026-01-01T00:00:00Z|");
	assert_list(PN_STR("{\"Content-Type\": \"x\"}\nContent-Length: 9\r\n"
			   "Transfer-Encoding: chunked\nA: 1\r\nB\n"
			   "Idempotency-Expires: never\nC: \x01\n"),
	    false, 0, "A=1|");
}

/* More lines than there is room for are written anyway. */
static void
test_head__list_has_an_end(void **state)
{
	struct pn_arena *arena = pn_arena_new(TEXT_BYTES_MAX);
	struct pn_arena *none = pn_arena_new(0);
	struct pn_buf text = pn_buf_init(TEXT_BYTES_MAX);
	struct pn_answer answer = { .status = 200 };

	(void)state;
	for (int i = 0; i < PN_HEADER_COUNT_MAX + 50; i++)
		pn_buf_add_text(&text, "A: 1\n");
	assert_int_equal(
	    pn_guard_header_list(pn_buf_str(&text), true, 1, arena, &answer),
	    0);
	assert_int_equal(answer.header_count, PN_HEADER_COUNT_MAX + 4);
	assert_int_equal(
	    pn_guard_header_list(pn_buf_str(&text), true, 1, none, &answer),
	    -ENOMEM);
	pn_buf_done(&text);
	pn_arena_free(arena);
	pn_arena_free(none);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head__end_to_end_headers_go_upstream),
		cmocka_unit_test(
		    test_head__nothing_of_the_gateways_is_a_clients),
		cmocka_unit_test(test_head__a_tenant_is_named_by_a_proxy_only),
		cmocka_unit_test(test_head__lines_cannot_be_broken),
		cmocka_unit_test(test_head__url),
		cmocka_unit_test(test_head__answers_go_on),
		cmocka_unit_test(test_head__what_is_kept),
		cmocka_unit_test(test_head__list),
		cmocka_unit_test(test_head__list_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
