/*
 * Requests and answers as they should be, over real sockets. If these fail,
 * what goes out is not what was asked for, or an answer is misread.
 */
#include "client_support.h"

struct state {
	struct peer *peer;
	struct pn_client *client;
};

static int
open_both(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->peer = peer_open(NULL, NULL);
	s->client = client_new(16, 8);
	*state = s;
	return 0;
}

static int
close_both(void **state)
{
	struct state *s = *state;

	pn_client_close(s->client);
	peer_close(s->peer);
	free(s);
	return 0;
}

static struct call *
call_to(struct state *s, const char *path)
{
	char url[PEER_URL_BYTES];

	return call_new(peer_url(s->peer, "127.0.0.1", path, url));
}

/* Headers of curl's own making go out (a form's Content-Type, Expect), or the
 * request is not the one that was asked for. */
static void
test_client__sends_what_was_asked_and_no_more(void **state)
{
	struct state *s = *state;
	struct call *call = call_to(s, "/ok?a=1");
	char expected[512];

	call->request.headers = PN_STR("X-One: 1\nX-Empty:\nX-Two:2\n"
				       "Expect: 100-continue\n"
				       "Content-Length: 7\n");
	assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
	(void)snprintf(expected, sizeof(expected),
	    "POST /ok?a=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "User-Agent: paynotifyd/" PN_VERSION "\r\nX-One: 1\r\n"
	    "X-Empty:\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\n{}",
	    s->peer->port);
	assert_string_equal(s->peer->last, expected);
	assert_int_equal(call->request.status, 200);
	assert_string_equal(call->body, "ok");
	assert_string_equal(call->head, "Content-Length: 2\n");
	assert_string_equal(call->request.error.text, "");
	assert_true(call->request.sent);
	call_free(call);
}

/* A caller's own Host, User-Agent, Accept or Content-Type is lost or sent
 * twice. */
static void
test_client__given_headers_replace_its_own(void **state)
{
	struct state *s = *state;
	struct call *call = call_to(s, "/ok");

	call->request.headers =
	    PN_STR("Host: shop.example\nUser-Agent: x\naccept: a/b\n"
		   "content-type: application/json");
	assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
	assert_string_equal(s->peer->last,
	    "POST /ok HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: x\r\n"
	    "accept: a/b\r\ncontent-type: application/json\r\n"
	    "Content-Length: 2\r\n\r\n{}");
	call_free(call);
}

/* A line that holds a line end smuggles a header in; or its text, which may be
 * a secret, stands in the error. */
static void
test_client__refuses_headers_that_are_no_lines(void **state)
{
	static const struct pn_str bad[] = { PN_STR("X: a\rSecret: 1\n"),
		PN_STR("X: Secret\x01\n"), PN_STR("X: Secret\0\n"),
		PN_STR("Secret"), PN_STR(": Secret\n"), PN_STR("Se cret: 1\n"),
		PN_STR("X: 1\n\nSecret: 1\n"),
		PN_STR("Transfer-Encoding: chunked, Secret\n") };
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		struct call *call = call_to(s, "/ok");

		call->request.headers = bad[i];
		assert_int_equal(call_run(s->client, call), PN_CLIENT_NOT_SENT);
		assert_false(call->request.sent);
		assert_non_null(
		    strstr(call->request.error.text, "header line"));
		assert_null(strstr(call->request.error.text, "Secret"));
		call_free(call);
	}
	assert_int_equal(peer_requests(s->peer), 0);
}

/* The method is not the one asked for, or a body appears or disappears. */
static void
test_client__methods_and_bodies(void **state)
{
	static const struct {
		const char *method, *body, *begins, *ends;
	} cases[] = {
		{ "GET", "", "GET /ok HTTP/1.1\r\n", "\r\n\r\n" },
		{ "GET", "x", "GET /ok HTTP/1.1\r\n",
		    "Content-Length: 1\r\n\r\nx" },
		{ "HEAD", "", "HEAD /head HTTP/1.1\r\n", "\r\n\r\n" },
		{ "POST", "", "POST /ok HTTP/1.1\r\n",
		    "Content-Length: 0\r\n\r\n" },
		{ "PUT", "", "PUT /ok HTTP/1.1\r\n",
		    "Content-Length: 0\r\n\r\n" },
		{ "PATCH", "xyz", "PATCH /ok HTTP/1.1\r\n",
		    "Content-Length: 3\r\n\r\nxyz" },
		{ "DELETE", "", "DELETE /ok HTTP/1.1\r\n", "\r\n\r\n" },
		{ "HEAD", "", "HEAD /head HTTP/1.1\r\n", "\r\n\r\n" },
		{ "POST", "{}", "POST /ok HTTP/1.1\r\n",
		    "Content-Length: 2\r\n\r\n{}" },
	};
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct call *call = call_to(
		    s, strcmp(cases[i].method, "HEAD") == 0 ? "/head" : "/ok");
		const char *last = s->peer->last;

		call->request.method = cases[i].method;
		call->request.body = pn_str_from(cases[i].body);
		assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
		assert_int_equal(
		    strncmp(last, cases[i].begins, strlen(cases[i].begins)), 0);
		assert_string_equal(
		    last + strlen(last) - strlen(cases[i].ends), cases[i].ends);
		if (cases[i].body[0] == '\0' && cases[i].method[0] != 'P')
			assert_null(strstr(last, "Content-Length"));
		call_free(call);
	}
	assert_int_equal(peer_connections(s->peer), 1);
}

/* A method that is none starts another request on the line. */
static void
test_client__refuses_methods_that_are_none(void **state)
{
	static const char *const bad[] = { "", "GE T", "GET /x HTTP/1.1\r\nX:",
		"AVERYLONGMETHODOFMORETHANTHIRTYTWOBYTES" };
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		struct call *call = call_to(s, "/ok");

		call->request.method = bad[i];
		assert_int_equal(call_run(s->client, call), PN_CLIENT_NOT_SENT);
		call_free(call);
	}
	assert_int_equal(peer_requests(s->peer), 0);
}

/* Statuses, bodies of all framings and headers are misread; a redirect is
 * followed, and with it the request goes to who knows where. */
static void
test_client__reads_answers(void **state)
{
	static const struct {
		const char *path;
		int status;
		const char *body, *head;
	} cases[] = {
		{ "/204", 204, "", "" },
		{ "/302", 302, "", "Location: /ok\nContent-Length: 0\n" },
		{ "/417", 417, "", "Content-Length: 0\n" },
		{ "/404", 404, "", "Content-Length: 0\n" },
		{ "/503", 503, "busy",
		    "retry-after: 120\nX-Folded: a b\nContent-Length: 4\n" },
		{ "/interim", 200, "ok", "Content-Length: 2\n" },
		{ "/chunked", 200, "chunked", "Transfer-Encoding: chunked\n" },
		{ "/until-close", 200, "until the end", "" },
		{ "/length-twice", 200, "ok",
		    "Content-Length: 2\nContent-Length: 2\n" },
		{ "/ok-close", 200, "ok",
		    "Connection: close\nContent-Length: 2\n" },
	};
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct call *call = call_to(s, cases[i].path);

		assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
		assert_int_equal(call->request.status, cases[i].status);
		assert_string_equal(call->body, cases[i].body);
		assert_string_equal(call->head, cases[i].head);
		call_free(call);
	}
	assert_int_equal(peer_requests(s->peer), PN_COUNT(cases));
}

/* Retry-After is not found because it is written in another case. */
static void
test_client__finds_headers_by_name(void **state)
{
	struct state *s = *state;
	struct call *call = call_to(s, "/503");
	const struct pn_client_request *request = &call->request;

	assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
	assert_true(pn_str_is(pn_client_header(request, "Retry-After"), "120"));
	assert_true(pn_str_is(pn_client_header(request, "x-folded"), "a b"));
	assert_null(pn_client_header(request, "Retry").data);
	assert_null(pn_client_header(request, "").data);
	call_free(call);
}

/* A body of some size is sent in part, or waits for "100 Continue". */
static void
test_client__sends_large_bodies(void **state)
{
	struct state *s = *state;
	static const size_t sizes[] = { 1 << 10, 16 << 10, 70 << 10, 1500000 };

	for (size_t i = 0; i < PN_COUNT(sizes); i++) {
		struct call *call = call_to(s, "/echo");
		char *body = malloc(sizes[i]);

		assert_non_null(body);
		for (size_t j = 0; j < sizes[i]; j++)
			body[j] = (char)('a' + (j * 7 + j / 1000) % 26);
		call->request.body = (struct pn_str){ body, sizes[i] };
		call->request.answer_bytes_max = ANSWER_BYTES;
		assert_int_equal(call_run(s->client, call),
		    sizes[i] > ANSWER_BYTES ? PN_CLIENT_CUT
					    : PN_CLIENT_ANSWERED);
		assert_int_equal(call->request.status, 201);
		assert_int_equal(call->body_len,
		    sizes[i] > ANSWER_BYTES ? (size_t)ANSWER_BYTES : sizes[i]);
		assert_memory_equal(call->body, body, call->body_len);
		assert_null(strstr(s->peer->last, "Expect"));
		free(body);
		call_free(call);
	}
}

/* An endless or too long answer holds the exchange until its time is up, or
 * fills the memory; one that just fits is called cut. */
static void
test_client__cuts_long_answers(void **state)
{
	static const struct {
		const char *path;
		size_t max;
		enum pn_client_end end;
		const char *body;
	} cases[] = {
		{ "/chunked", 7, PN_CLIENT_ANSWERED, "chunked" },
		{ "/chunked", 6, PN_CLIENT_CUT, "chunke" },
		{ "/until-close", 5, PN_CLIENT_CUT, "until" },
		{ "/ok", 2, PN_CLIENT_ANSWERED, "ok" },
		{ "/ok", 1, PN_CLIENT_CUT, "o" },
		{ "/ok", 0, PN_CLIENT_CUT, "" },
		{ "/204", 0, PN_CLIENT_ANSWERED, "" },
		{ "/endless-body", 15, PN_CLIENT_CUT, "an endless body" },
		{ "/endless-chunks", 10, PN_CLIENT_CUT, "moremoremo" },
		{ "/ok", 2, PN_CLIENT_ANSWERED, "ok" },
	};
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct call *call = call_to(s, cases[i].path);

		call->request.answer_bytes_max = cases[i].max;
		assert_int_equal(call_run(s->client, call), cases[i].end);
		assert_true(call->request.status / 100 == 2);
		assert_string_equal(call->body, cases[i].body);
		assert_string_equal(call->request.error.text, "");
		call_free(call);
	}
}

/* Many headers are kept without bound, or make a good answer a bad one. */
static void
test_client__caps_headers_and_keeps_the_first(void **state)
{
	struct state *s = *state;
	struct call *call = call_to(s, "/many-headers");
	const struct pn_client_request *request = &call->request;
	size_t lines = 0;

	assert_int_equal(call_run(s->client, call), PN_CLIENT_ANSWERED);
	assert_true(request->answer_headers.len <= PN_HEADER_BYTES_MAX);
	assert_true(request->headers_cut);
	for (size_t i = 0; i < request->answer_headers.len; i++)
		lines += request->answer_headers.data[i] == '\n';
	assert_int_equal(lines, PN_HEADER_COUNT_MAX);
	assert_true(pn_str_is(pn_client_header(request, "x-first"), "1"));
	assert_null(pn_client_header(request, "x-last").data);
	assert_string_equal(call->body, "ok");
	call_free(call);
}

/* Each request costs a new connection. */
static void
test_client__keeps_connections(void **state)
{
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	(void)peer_url(s->peer, "127.0.0.1", "/ok", url);
	for (int i = 0; i < 50; i++)
		expect_end(s->client, url, PN_CLIENT_ANSWERED, true, NULL);
	assert_int_equal(peer_requests(s->peer), 50);
	assert_int_equal(peer_connections(s->peer), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_client__sends_what_was_asked_and_no_more),
		TEST(test_client__given_headers_replace_its_own),
		TEST(test_client__refuses_headers_that_are_no_lines),
		TEST(test_client__methods_and_bodies),
		TEST(test_client__refuses_methods_that_are_none),
		TEST(test_client__reads_answers),
		TEST(test_client__finds_headers_by_name),
		TEST(test_client__sends_large_bodies),
		TEST(test_client__cuts_long_answers),
		TEST(test_client__caps_headers_and_keeps_the_first),
		TEST(test_client__keeps_connections),
	};

	client_tests_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
