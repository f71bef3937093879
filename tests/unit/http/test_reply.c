/*
 * Answers on the wire, of a handler that gives what the path asks for. If these
 * fail, an answer is changed on its way, or the next one on the connection is
 * read from the middle of it.
 */
#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/parse.h"

static char long_value[PN_HEADER_BYTES_MAX];

#define H(name, value)                           \
	{                                        \
		{ name, sizeof(name) - 1 },      \
		{                                \
			value, sizeof(value) - 1 \
		}                                \
	}
static const struct pn_header many[] = {
	H("X-First", "1"),
	H("Set-Cookie", "a=1"),
	H("Content-Type", "application/json"),
	H("Set-Cookie", "b=2"),
	H("X-Last", "9"),
};
/* What a handler passes on from somebody else's server. */
static const struct pn_header odd[] = {
	H("X-Empty", ""),
	H("X-Tab", "a\tb\tc"),
	H("X-Split", "a\r\nX-Injected: 1"),
	H("X-Nul", "a\0b"),
	H("X-Na\nme", "a"),
	H("", "nameless"),
	H("content-length", "7"),
	H("Transfer-Encoding", "chunked"),
	H("Connection", "close"),
	H("DATE", "yesterday"),
	H("X-Good", "good"),
};
static const struct pn_header longer[] = {
	{ { "X-Long", 6 }, { long_value, 12000 } },
	{ { "X-Longer", 8 }, { long_value, sizeof(long_value) } },
};

/* "/STATUS/many" and the like. */
static enum pn_refused
begin(void *service, struct pn_call *call)
{
	struct pn_str rest = call->request.path, status;
	struct pn_answer *answer = &call->answer;
	uint64_t number = 0;

	(void)service;
	(void)pn_str_split(&rest, '/');
	status = pn_str_split(&rest, '/');
	if (pn_parse_uint(status, 999, &number) != 0)
		abort();
	answer->status = (unsigned)number;
	answer->body = PN_STR("body");
	if (pn_str_is(rest, "many")) {
		answer->headers = many;
		answer->header_count = PN_COUNT(many);
	} else if (pn_str_is(rest, "odd")) {
		answer->headers = odd;
		answer->header_count = PN_COUNT(odd);
	} else if (pn_str_is(rest, "long")) {
		answer->headers = longer;
		answer->header_count = PN_COUNT(longer);
	} else if (pn_str_is(rest, "empty")) {
		answer->body = (struct pn_str){ NULL, 0 };
	}
	return PN_REFUSED_NOT;
}

static void
submit(void *service, struct pn_call *call)
{
	(void)service;
	pn_call_done(call);
	pn_call_release(call);
}

static void
refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	(void)service;
	(void)call;
	(void)why;
	abort();
}

/* No job, no end, nothing to open: all a handler needs. */
static const struct pn_handler handler = {
	.begin = begin,
	.submit = submit,
	.refuse = refuse,
};

static int
world_make(void **state)
{
	struct wire *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->options.head_bytes_max = 2 * PN_HEADER_BYTES_MAX;
	wire_open(w, &handler, NULL);
	*state = w;
	return 0;
}

static int
world_end(void **state)
{
	wire_close(*state);
	free(*state);
	return 0;
}

static void
ask(int fd, const char *method, const char *path)
{
	wire_send(fd, method);
	wire_send(fd, " ");
	wire_send(fd, path);
	wire_send(fd, " HTTP/1.1\r\nHost: x\r\n\r\n");
}

/* Cookies are set in another order than they were; a name is changed. */
static void
test_reply__headers_keep_their_order(void **state)
{
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(*state);

	ask(fd, "GET", "/200/many");
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply,
	    "\r\nX-First: 1\r\nSet-Cookie: a=1\r\n"
	    "Content-Type: application/json\r\nSet-Cookie: b=2\r\n"
	    "X-Last: 9\r\n"));
	assert_non_null(strstr(reply, "\r\n\r\nbody"));
	(void)close(fd);
}

/* A status becomes another one on the way. */
static void
test_reply__any_status_passes(void **state)
{
	static const char *const paths[] = { "/200", "/201/many", "/299",
		"/302", "/422/empty", "/429", "/500", "/503/many", "/599" };
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(*state);

	for (size_t i = 0; i < PN_COUNT(paths); i++) {
		uint64_t status = 0;

		ask(fd, "GET", paths[i]);
		assert_int_equal(
		    pn_parse_uint(
			(struct pn_str){ paths[i] + 1, 3 }, 999, &status),
		    0);
		assert_int_equal(wire_read(fd, reply), (int)status);
		assert_non_null(
		    strstr(reply, strstr(paths[i], "empty") != NULL
				      ? "Content-Length: 0\r\n\r\n"
				      : "Content-Length: 4\r\n\r\nbody"));
	}
	(void)close(fd);
}

/* A body where HTTP has none is taken for the next answer. */
static void
test_reply__no_body_where_there_is_none(void **state)
{
	static const char *const asked[][2] = { { "GET", "/204" },
		{ "GET", "/204/empty" }, { "HEAD", "/204" }, { "GET", "/304" },
		{ "HEAD", "/200" }, { "HEAD", "/404" } };
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(*state);

	for (size_t i = 0; i < PN_COUNT(asked); i++) {
		ask(fd, asked[i][0], asked[i][1]);
		assert_true(wire_read_head(fd, reply) >= 200);
		if (strstr(asked[i][1], "204") != NULL)
			assert_null(strstr(reply, "Content-Length"));
		ask(fd, "GET", "/299");
		assert_int_equal(wire_read(fd, reply), 299);
		assert_non_null(strstr(reply, "\r\n\r\nbody"));
	}
	(void)close(fd);
}

/* A HEAD is told that what it asks about is empty. */
static void
test_reply__no_length_where_it_is_unknown(void **state)
{
	static const char *const asked[][2] = { { "HEAD", "/200/empty" },
		{ "GET", "/304/empty" }, { "HEAD", "/304/empty" } };
	char reply[REPLY_BYTES_MAX];

	for (size_t i = 0; i < PN_COUNT(asked); i++) {
		int fd = wire_connect(*state);

		ask(fd, asked[i][0], asked[i][1]);
		assert_true(wire_read_head(fd, reply) >= 200);
		assert_null(strstr(reply, "Content-Length"));
		assert_null(strstr(reply, "Transfer-Encoding"));
		assert_non_null(strstr(reply, "Connection: close"));
		/* Nothing behind the head. */
		assert_int_equal(recv(fd, reply, 1, 0), 0);
		(void)close(fd);
	}
}

/* A foreign header splits the answer, frames it anew, or loses it. */
static void
test_reply__headers_that_cannot_be_sent_are_passed_over(void **state)
{
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(*state);

	for (int i = 0; i < 2; i++) {
		ask(fd, "GET", "/200/odd");
		assert_int_equal(wire_read(fd, reply), 200);
		/* An empty value is blanks alone: both are taken off. */
		assert_non_null(strstr(reply,
		    "\r\nX-Empty:  \r\nX-Tab: a\tb\tc\r\nX-Good: good\r\n"));
		assert_non_null(strstr(reply, "Content-Length: 4\r\n\r\nbody"));
		assert_null(strstr(reply, "Injected"));
		assert_null(strstr(reply, "X-Nul"));
		assert_null(strstr(reply, "nameless"));
		assert_null(strstr(reply, "chunked"));
		assert_null(strstr(reply, "yesterday"));
	}
	(void)close(fd);
}

/* A long header ends the connection, or one beyond any bound does. */
static void
test_reply__long_headers_fit(void **state)
{
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(*state);

	memset(long_value, 'v', sizeof(long_value));
	ask(fd, "GET", "/200/long");
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply, "X-Long: vvvv"));
	assert_null(strstr(reply, "X-Longer"));
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
		TEST(test_reply__headers_keep_their_order),
		TEST(test_reply__any_status_passes),
		TEST(test_reply__no_body_where_there_is_none),
		TEST(test_reply__no_length_where_it_is_unknown),
		TEST(test_reply__headers_that_cannot_be_sent_are_passed_over),
		TEST(test_reply__long_headers_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
