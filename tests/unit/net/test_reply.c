/*
 * Reading replies. If these fail, `trigger` and `replay` call a cut, a confused
 * or another request's reply a success.
 */
#include "net_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct pn_buf body = { .max = PN_NET_BODY_BYTES_MAX };

static int
parse(const char *text, bool at_end, struct pn_net_parsed *parsed)
{
	return pn_net_reply_parse(
	    pn_str_from(text), at_end, false, &body, parsed, NULL);
}

/* A reply is taken for whole while its end is still under way. */
static void
test_net_reply__incomplete_at_every_byte(void **state)
{
	static const char *const replies[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsuccess",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nsuc\r\n4;x=y\r\ncess\r\n0\r\nTrailer: 1\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n"
		"HTTP/1.1 200 OK\nContent-Length: 7\n\nsuccess",
	};
	struct pn_net_parsed parsed;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(replies); i++) {
		struct pn_str whole = pn_str_from(replies[i]), part = whole;

		for (part.len = 0; part.len < whole.len; part.len++) {
			assert_int_equal(pn_net_reply_parse(part, false, false,
					     &body, &parsed, NULL),
			    PN_NET_MORE);
			assert_int_equal(pn_net_reply_parse(part, true, false,
					     &body, &parsed, NULL),
			    -EPROTO);
		}
		assert_int_equal(parse(replies[i], false, &parsed), 0);
		assert_int_equal(parsed.status, 200);
		assert_true(pn_str_is(pn_buf_str(&body), "success"));
		assert_int_equal(parsed.used, whole.len);
		assert_true(parsed.keep);
	}
}

/* A connection that the server ends, or that has more, is used again. */
static void
test_net_reply__keeps_only_what_can_be_kept(void **state)
{
	struct pn_net_parsed parsed;

	(void)state;
	assert_int_equal(parse("HTTP/1.1 200 OK\r\nConnection: CLOSE\r\n"
			       "Content-Length: 0\r\n\r\n",
			     false, &parsed),
	    0);
	assert_false(parsed.keep);
	assert_int_equal(parse("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
			     false, &parsed),
	    0);
	assert_false(parsed.keep);
	assert_int_equal(parse("HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\nHTTP",
			     false, &parsed),
	    0);
	assert_false(parsed.keep);
	assert_int_equal(
	    parse("HTTP/1.1 200 OK\r\n\r\nto the end", false, &parsed),
	    PN_NET_MORE);
	assert_int_equal(
	    parse("HTTP/1.1 200 OK\r\n\r\nto the end", true, &parsed), 0);
	assert_true(pn_str_is(pn_buf_str(&body), "to the end"));
	assert_false(parsed.keep);
}

/* Something that two readers would read in two ways is read in one. */
static void
test_net_reply__refuses_what_is_ambiguous(void **state)
{
	static const char *const bad[] = {
		"SMTP ready\r\n\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
		"Content-Length: 1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabcd\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"x\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"\r\n",
	};
	struct pn_net_parsed parsed;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(parse(bad[i], true, &parsed), -EPROTO);
}

/* A hostile server fills the memory. */
static void
test_net_reply__body_is_capped(void **state)
{
	struct pn_net_parsed parsed;

	(void)state;
	assert_int_equal(
	    parse("HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n", false,
		&parsed),
	    -EMSGSIZE);
	assert_int_equal(
	    parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "ffffffff\r\n",
		false, &parsed),
	    -EMSGSIZE);
	assert_int_equal(
	    parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "1ffffffff\r\n",
		false, &parsed),
	    -EPROTO);
}

/* The reply to a HEAD is waited for until the deadline. */
static void
test_net_reply__head_has_no_body(void **state)
{
	struct pn_net_parsed parsed;

	(void)state;
	assert_int_equal(
	    pn_net_reply_parse(
		PN_STR("HTTP/1.1 405 x\r\nContent-Length: 18\r\n\r\n"), false,
		true, &body, &parsed, NULL),
	    0);
	assert_true(parsed.keep);
	assert_int_equal(body.len, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_net_reply__incomplete_at_every_byte),
		cmocka_unit_test(test_net_reply__keeps_only_what_can_be_kept),
		cmocka_unit_test(test_net_reply__refuses_what_is_ambiguous),
		cmocka_unit_test(test_net_reply__body_is_capped),
		cmocka_unit_test(test_net_reply__head_has_no_body),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	pn_buf_done(&body);
	return failed;
}
