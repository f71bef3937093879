/*
 * Captures. If these fail, `verify` judges other bytes than were signed.
 */
#include "paynotify/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"

struct fixture {
	struct pn_arena *arena;
	struct pn_request request;
	struct pn_error error;
};

static struct fixture fixture;

static int
setup(void **state)
{
	fixture = (struct fixture){ .arena = pn_arena_new(PN_ARENA_BYTES_MAX) };
	*state = &fixture;
	return fixture.arena == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pn_arena_free(f->arena);
	return 0;
}

static int
parse(struct fixture *f, struct pn_str raw)
{
	f->error.text[0] = '\0';
	return pn_capture_parse(f->arena, raw, &f->request, &f->error);
}

/* A header or a byte of the body that is lost. */
static void
test_capture__takes_the_request_apart(void **state)
{
	struct fixture *f = *state;
	struct pn_str value;

	assert_int_equal(
	    parse(f, PN_STR("POST /notify/alipay/shop1?id=1&x=/? HTTP/1.1\r\n"
			    "Host: pay.example.test\r\nX-Empty:\r\nX-Tab:\t a "
			    "\tb \t\r\n"
			    "Content-Length: 7\r\n\r\n\r\na\0b\n\n")),
	    0);
	assert_true(pn_str_is(f->request.method, "POST"));
	assert_true(pn_str_is(f->request.path, "/notify/alipay/shop1"));
	assert_true(pn_str_is(f->request.query, "id=1&x=/?"));
	assert_int_equal(f->request.header_count, 4);
	assert_int_equal(pn_request_header(&f->request, "x-tab", &value), 1);
	assert_true(pn_str_is(value, "a \tb"));
	assert_int_equal(pn_request_header(&f->request, "X-Empty", &value), 1);
	assert_int_equal(value.len, 0);
	assert_int_equal(f->request.body.len, 7);
	assert_memory_equal(f->request.body.data, "\r\na\0b\n\n", 7);
	assert_int_equal(parse(f, PN_STR("GET / HTTP/1.0\nA:b\n\n")), 0);
	assert_null(f->request.query.data);
	assert_int_equal(f->request.body.len, 0);
	assert_non_null(f->request.body.data);
	assert_int_equal(parse(f, PN_STR("POST /a HTTP/1.1\n\nbody")), 0);
	assert_int_equal(f->request.header_count, 0);
	assert_true(pn_str_is(f->request.body, "body"));
}

/* A body of which nobody knows where it ends. */
static void
test_capture__refuses_a_doubtful_length(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nContent-Length: 3\n\nabc\n")), 1);
	assert_non_null(strstr(f->error.text, "Content-Length says less"));
	assert_int_equal(
	    parse(f,
		PN_STR(
		    "POST / HTTP/1.1\nContent-Length: 3\ncontent-length: 3\n\n"
		    "abc")),
	    1);
	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n"
			    "3\r\nabc\r\n0\r\n\r\n")),
	    1);
	assert_int_equal(parse(f, PN_STR("POST / HTTP/1.1\nContent-Length: 3\n"
					 "Transfer-Encoding: identity\n\nabc")),
	    1);
	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nContent-Length: +3\n\nabc")), 1);
	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nContent-Length: 3, 3\n\nabc")),
	    1);
	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nContent-Length:\n\n")), 1);
	assert_int_equal(
	    parse(f,
		PN_STR(
		    "POST / HTTP/1.1\nContent-Length: 18446744073709551619\n\n"
		    "abc")),
	    1);
	/* The connection was cut: the verdict is what is asked for. */
	assert_int_equal(
	    parse(f, PN_STR("POST / HTTP/1.1\nContent-Length: 4\n\nabc")), 0);
	assert_true(pn_str_is(f->request.body, "abc"));
}

/* Rubbish taken for a request. */
static void
test_capture__refuses_what_is_no_request(void **state)
{
	static const struct pn_str bad[] = {
		{ "", 0 },
		{ "POST / HTTP/1.1", 15 },
		{ "POST / HTTP/1.1\r\n", 17 },
		{ "POST / HTTP/1.1\nA: b\n", 21 },
		{ "\nPOST / HTTP/1.1\n\n", 18 },
		{ "POST  / HTTP/1.1\n\n", 18 },
		{ "POST / HTTP/1.1 \n\n", 18 },
		{ "POST / HTTP/2\n\n", 15 },
		{ "POST /\n\n", 8 },
		{ "POST http://a/ HTTP/1.1\n\n", 25 },
		{ "P(ST / HTTP/1.1\n\n", 17 },
		{ "POST /\x01 HTTP/1.1\n\n", 18 },
		{ "POST /\0 HTTP/1.1\n\n", 18 },
		{ "HTTP/1.1 200 OK\n\n", 17 },
		{ "POST / HTTP/1.1\nno colon\n\n", 26 },
		{ "POST / HTTP/1.1\n: b\n\n", 21 },
		{ "POST / HTTP/1.1\nA : b\n\n", 23 },
		{ "POST / HTTP/1.1\nA: b\n c\n\n", 25 },
		{ "POST / HTTP/1.1\nA: b\rc\n\n", 24 },
		{ "POST / HTTP/1.1\nA: b\0c\n\n", 24 },
		{ "POST / HTTP/1.1\nA\0: b\n\n", 23 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		if (parse(f, bad[i]) != 1)
			fail_msg("accepted: case %zu", i);
		assert_true(f->error.text[0] != '\0');
	}
}

/* A file of any size read into structures of fixed size. */
static void
test_capture__stops_at_its_limits(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf raw = pn_buf_init(1 << 22);
	struct fixture *f = *state;
	size_t head;

	pn_buf_add_text(&raw, "POST / HTTP/1.1\n");
	for (int i = 0; i < PN_HEADER_COUNT_MAX; i++)
		pn_buf_add_text(&raw, "A: b\n");
	head = raw.len;
	pn_buf_add_text(&raw, "\n");
	assert_int_equal(parse(f, pn_buf_str(&raw)), 0);
	assert_int_equal(f->request.header_count, PN_HEADER_COUNT_MAX);
	raw.len = head;
	pn_buf_add_text(&raw, "A: b\n\n");
	assert_int_equal(parse(f, pn_buf_str(&raw)), 1);

	pn_buf_reset(&raw);
	pn_buf_add_text(&raw, "POST / HTTP/1.1\nA: ");
	while (raw.len < PN_HEAD_BYTES_MAX - 2)
		pn_buf_add_char(&raw, 'x');
	pn_buf_add_text(&raw, "\n\nbody");
	assert_int_equal(parse(f, pn_buf_str(&raw)), 0);
	raw.len = PN_HEAD_BYTES_MAX - 2;
	pn_buf_add_text(&raw, "x\n\nbody");
	assert_int_equal(parse(f, pn_buf_str(&raw)), 1);

	pn_buf_reset(&raw);
	pn_buf_add_text(&raw, "POST / HTTP/1.1\n\n");
	assert_non_null(pn_buf_extend(&raw, PN_BODY_BYTES_MAX));
	assert_int_equal(parse(f, pn_buf_str(&raw)), 0);
	assert_int_equal(f->request.body.len, PN_BODY_BYTES_MAX);
	pn_buf_add_char(&raw, 'x');
	assert_int_equal(parse(f, pn_buf_str(&raw)), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_capture__takes_the_request_apart),
		TEST(test_capture__refuses_a_doubtful_length),
		TEST(test_capture__refuses_what_is_no_request),
		TEST(test_capture__stops_at_its_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
