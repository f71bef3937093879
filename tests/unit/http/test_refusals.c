/*
 * What the server does not let through to a handler's submit(), and what the
 * handler hears of it instead. If these fail, a flood of bytes is kept, a refusal
 * is answered as another, or a stranger's headers are believed.
 */
#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The body is cut, or answered before the limit is known. */
static void
test_refusals__bodies_over_the_limit(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX], chunk[1100];
	int fd = wire_connect(w), before = atomic_load(&fake.submitted);

	wire_send(fd, "POST /fake HTTP/1.1\r\nHost: x\r\n"
		      "Expect: 100-continue\r\n"
		      "Content-Length: 2001\r\n\r\n");
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_BODY);
	assert_non_null(strstr(reply, "Connection: close"));
	assert_int_equal(recv(fd, reply, 1, 0), 0);
	(void)close(fd);
	fd = wire_connect(w);
	wire_send(fd, "POST /fake HTTP/1.1\r\nHost: x\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n");
	memset(chunk, 'n', sizeof(chunk));
	memcpy(chunk, "3e8\r\n", 5);
	memcpy(chunk + 5 + 1000, "\r\n", 3);
	wire_send(fd, chunk);
	wire_send(fd, chunk);
	wire_send(fd, "1\r\nx\r\n0\r\n\r\n");
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_BODY);
	assert_int_equal(recv(fd, reply, 1, 0), 0);
	(void)close(fd);
	assert_int_equal(atomic_load(&fake.submitted), before);
	/* Exactly the limit passes. */
	fd = wire_connect(w);
	wire_send(fd, "POST /fake HTTP/1.1\r\nHost: x\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n");
	wire_send(fd, chunk);
	wire_send(fd, chunk);
	wire_send(fd, "0\r\n\r\n");
	assert_int_equal(wire_read(fd, reply), 200);
	(void)close(fd);
}

/* A refusal is told as another, without what the handler needs, or submitted. */
static void
test_refusals__refusals_reach_the_handler(void **state)
{
	static const struct {
		const char *head;
		enum pn_refused why;
		const char *told;
	} rows[] = {
		{ "POST /x?q=1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		    PN_REFUSED_PATH, "begun, /x?q=1, 0 of 0 bytes, direct" },
		{ "PUT /fake HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
		    PN_REFUSED_METHOD, "begun, /fake?, 3 of 3 bytes, direct" },
		{ "POST /fake HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n",
		    PN_REFUSED_BODY, "begun, /fake?, 9999999 of 0" },
		{ "POST /x HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n",
		    PN_REFUSED_PATH, "begun, /x?, 9999999 of 0" },
		{ "POST /fake HTTP/1.1\r\nContent-Length: 2\r\n"
		  "Content-Length: 9999999\r\n\r\n",
		    PN_REFUSED_LENGTH, "begun, /fake?, 0 of 0" },
		{ "PUT /fake HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
		    PN_REFUSED_METHOD, "begun, /fake?, 0 of 0" },
	};
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];

	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		int fd = wire_connect(w);

		wire_send(fd, rows[i].head);
		assert_int_equal(wire_read(fd, reply), 400 + (int)rows[i].why);
		assert_non_null(strstr(reply, rows[i].told));
		(void)close(fd);
	}
	assert_int_equal(atomic_load(&fake.submitted), 0);
}

/* Too many headers hide what comes first, or are kept. */
static void
test_refusals__too_many_headers_come_before_all_else(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);

	wire_send(fd, "POST /x HTTP/1.1\r\nContent-Length: 9999999\r\n");
	for (int i = 0; i < PN_HEADER_COUNT_MAX; i++)
		wire_send(fd, "X-A: b\r\n");
	wire_send(fd, "\r\n");
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_HEADERS);
	assert_non_null(strstr(reply, "new, /x?, 0 of 0 bytes"));
	(void)close(fd);
}

/* When the grace is over, a request is submitted all the same. */
static void
test_refusals__refuses_when_stopping(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);

	atomic_store(&w->server->refusing, true);
	wire_post(fd, "/fake", "now");
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_STOPPING);
	assert_non_null(strstr(reply, "Connection: close"));
	assert_non_null(strstr(reply, "begun, /fake?, 3 of 3 bytes"));
	(void)close(fd);
}

/* A flood of one peer's is never limited, or all of it is. */
static void
test_refusals__allowance_of_a_peer_is_used_up(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w), ok = 0, limited = 0;

	for (int i = 0; i < 50; i++) {
		int status;

		wire_post(fd, "/fake", "now, limited");
		status = wire_read(fd, reply);
		ok += status == 200;
		limited += status == 429;
	}
	(void)close(fd);
	assert_true(ok > 0 && limited > 0);
	assert_int_equal(ok + limited, 50);
}

/* Anybody's headers are believed, or a proxy's are not. */
static void
test_refusals__proxies_are_told_from_others(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd;

	wire_close(w);
	w->trusted =
	    (struct pn_conf_cidr){ .address = { [10] = 0xff, 0xff, 127 },
		    .bits = 104 };
	w->conf.trusted_proxies = (struct pn_conf_cidrs){ &w->trusted, 1 };
	fake_serve(w);
	fd = wire_connect(w);
	wire_post(fd, "/x", "");
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_PATH);
	assert_non_null(strstr(reply, "a proxy"));
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
		TEST(test_refusals__bodies_over_the_limit),
		TEST(test_refusals__refusals_reach_the_handler),
		TEST(test_refusals__too_many_headers_come_before_all_else),
		TEST(test_refusals__refuses_when_stopping),
		TEST(test_refusals__allowance_of_a_peer_is_used_up),
		TEST(test_refusals__proxies_are_told_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
