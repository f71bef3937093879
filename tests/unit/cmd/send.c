/*
 * Where a request goes, what goes over the wire, and what counts as the
 * provider's success.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl_send.h"

static void
assert_target(
    const char *to, const char *url, const char *host, const char *path)
{
	struct ctl_target t;
	struct pn_error error;

	assert_int_equal(ctl_target_parse(to, &t, &error), 0);
	assert_string_equal(t.url, url);
	assert_string_equal(t.host, host);
	assert_string_equal(t.path, path);
}

/* A sample that goes to another place than the operator named could reach a
 * live receiver. */
static void
test_ctl_send__a_url_is_taken_apart_exactly(void **state)
{
	static const char *const bad[] = { "", "127.0.0.1:8600", "https://h/",
		"ftp://h", "http://", "http:///x", "http://u:p@h/",
		"http://h?x", "http://h/a b", "http://h/\n", "unix:x",
		"unix:" };
	struct ctl_target t;
	struct pn_error error;

	(void)state;
	assert_target("http://127.0.0.1:8600", "http://127.0.0.1:8600",
	    "127.0.0.1:8600", "");
	assert_target("http://h:1/", "http://h:1", "h:1", "");
	assert_target("http://[::1]:8600/notify/alipay/shop1",
	    "http://[::1]:8600", "[::1]:8600", "/notify/alipay/shop1");
	assert_target("unix:/run/p.sock", "unix:/run/p.sock", "localhost", "");
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(ctl_target_parse(bad[i], &t, &error), 1);
}

static void
assert_listen(const char *listen, const char *url)
{
	struct ctl_target t;
	struct pn_error error;

	assert_int_equal(ctl_target_of_listen(listen, &t, &error), 0);
	assert_string_equal(t.url, url);
}

/* A daemon that listens on all addresses has none of its own. */
static void
test_ctl_send__a_wildcard_is_reached_by_loopback(void **state)
{
	(void)state;
	assert_listen("127.0.0.1:8600", "http://127.0.0.1:8600");
	assert_listen("0.0.0.0:8600", "http://127.0.0.1:8600");
	assert_listen("[::]:8600", "http://[::1]:8600");
	assert_listen("[::1]:1", "http://[::1]:1");
	assert_listen("localhost:1", "http://localhost:1");
	assert_listen("unix:/run/p.sock", "unix:/run/p.sock");
}

/* One byte more or less in the body, or a second Content-Length, and the
 * signature or the server says no. */
static void
test_ctl_send__a_request_is_written_byte_for_byte(void **state)
{
	static const struct pn_header plain[] = {
		{ { "Content-Type", 12 }, { "a/b", 3 } },
	};
	static const struct pn_header own[] = {
		{ { "content-length", 14 }, { "7", 1 } },
		{ { "HOST", 4 }, { "x", 1 } },
	};
	struct pn_request request = { .method = PN_STR("POST"),
		.headers = plain,
		.header_count = 1,
		.body = PN_STR("a=\0b") };
	struct pn_buf out = pn_buf_init(4096);
	static const char wanted[] = "POST /p HTTP/1.1\r\nHost: h:1\r\n"
				     "Content-Type: a/b\r\n"
				     "Content-Length: 4\r\n\r\na=\0b";

	(void)state;
	ctl_request_add(&out, &request, "/p", "h:1");
	assert_int_equal(out.len, sizeof(wanted) - 1);
	assert_memory_equal(out.data, wanted, out.len);
	pn_buf_reset(&out);
	request.headers = own;
	request.header_count = 2;
	request.query = PN_STR("q=1");
	request.body = PN_STR("");
	ctl_request_add(&out, &request, "/p", "h:1");
	assert_string_equal(out.data, "POST /p?q=1 HTTP/1.1\r\n"
				      "content-length: 7\r\nHOST: x\r\n\r\n");
	pn_buf_done(&out);
}

static int
dialect_of(const struct pn_request *request)
{
	return request->body.len > 0 ? 2 : 1;
}

static int
reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply)
{
	(void)message;
	(void)arena;
	assert_int_equal(outcome, PN_OUTCOME_SUCCESS);
	*ret_reply =
	    (struct pn_reply){ .body = dialect == 2 ? PN_STR("<ok/>")
						    : PN_STR("success") };
	return 0;
}

/* An APIv2 failure is a 200 too: only the bytes tell. */
static void
test_ctl_send__only_the_exact_reply_is_a_success(void **state)
{
	static const struct pn_provider provider = { .dialect_of = dialect_of,
		.reply = reply };
	struct pn_request v1 = { .body = PN_STR("") };
	struct pn_request v2 = { .body = PN_STR("<x/>") };
	struct pn_net_reply ok = { .status = 200, .body = PN_STR("success") };
	struct pn_net_reply nl = { .status = 200, .body = PN_STR("success\n") };
	struct pn_net_reply created = { .status = 201,
		.body = PN_STR("success") };
	struct pn_net_reply xml = { .status = 200, .body = PN_STR("<ok/>") };

	(void)state;
	assert_true(ctl_reply_is_success(&provider, &v1, &ok, NULL));
	assert_false(ctl_reply_is_success(&provider, &v1, &nl, NULL));
	assert_false(ctl_reply_is_success(&provider, &v1, &created, NULL));
	assert_false(ctl_reply_is_success(&provider, &v2, &ok, NULL));
	assert_true(ctl_reply_is_success(&provider, &v2, &xml, NULL));
	assert_true(ctl_reply_is_success(NULL, &v1, &created, NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_send__a_url_is_taken_apart_exactly),
		cmocka_unit_test(
		    test_ctl_send__a_wildcard_is_reached_by_loopback),
		cmocka_unit_test(
		    test_ctl_send__a_request_is_written_byte_for_byte),
		cmocka_unit_test(
		    test_ctl_send__only_the_exact_reply_is_a_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
