/*
 * The server over real sockets with a handler that decides at every possible
 * moment: before the submission returns, at once from another thread, or later.
 * If these fail, a connection hangs suspended, is resumed twice, a call is lost
 * or freed under its handler, or the program aborts in libmicrohttpd. Run it
 * under ThreadSanitizer.
 */
#include "fake.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CLIENTS = 8, REQUESTS = 150 };
static_assert((int)CLIENTS <= (int)FAKE_CALLS_MAX, "each may wait");

static void *
hammer(void *payload)
{
	const struct wire *w = payload;
	static const char *const bodies[] = { "now", "elsewhere", "yield", "" };
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);

	for (int i = 0; i < REQUESTS; i++) {
		const char *body = bodies[(size_t)i % PN_COUNT(bodies)];
		const char *got;

		wire_post(fd, "/fake?x=1", body);
		if (wire_read(fd, reply) != 200)
			abort();
		got = strstr(reply, "\r\n\r\n") + 4;
		if (strcmp(got, body) != 0)
			abort();
	}
	(void)close(fd);
	return NULL;
}

/* A reply is lost, doubled, or goes to another request. */
static void
test_exchange__every_request_is_answered_once(void **state)
{
	struct wire *w = *state;
	pthread_t threads[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, hammer, w), 0);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&fake.submitted) % REQUESTS, 0);
}

/* done() between the submission and the suspension's publication: the
 * connection is never resumed. */
static void
test_exchange__decided_around_the_suspension(void **state)
{
	struct wire *w = *state;
	static const char *const bodies[] = { "between, before",
		"between, behind" };
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);

	for (size_t i = 0; i < 6; i++) {
		wire_post(fd, "/fake", bodies[i % 2]);
		assert_int_equal(wire_read(fd, reply), 200);
		assert_non_null(strstr(reply, bodies[i % 2]));
	}
	(void)close(fd);
}

/* Requests sent without waiting are answered out of order, or not at all. */
static void
test_exchange__pipelined_requests_keep_their_order(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);

	wire_post(fd, "/fake", "later");
	wire_post(fd, "/fake", "now");
	wire_post(fd, "/nowhere", "");
	wire_post(fd, "/fake", "yes");
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nlater"));
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nnow"));
	assert_int_equal(wire_read(fd, reply), 400 + PN_REFUSED_PATH);
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nyes"));
	(void)close(fd);
}

static void *
close_later(void *payload)
{
	struct wire *w = payload;

	pn_server_close(w->server, 5 * PN_SECOND_US);
	w->server = NULL;
	return NULL;
}

/* A stop drops what waits for the database, or aborts (suspended). */
static void
test_exchange__stop_waits_for_suspended_requests(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fds[CLIENTS], idle = wire_connect(w), before;
	pthread_t closer;

	fake_hold(true);
	before = atomic_load(&fake.submitted);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = wire_connect(w);
		wire_post(fds[i], "/fake", "held");
	}
	while (atomic_load(&fake.submitted) < before + CLIENTS)
		(void)sched_yield();
	assert_int_equal(pthread_create(&closer, NULL, close_later, w), 0);
	fake_hold(false);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(wire_read(fds[i], reply), 200);
		(void)close(fds[i]);
	}
	assert_int_equal(pthread_join(closer, NULL), 0);
	assert_int_equal(recv(idle, reply, 1, 0), 0);
	(void)close(idle);
}

/* A request that is being read when the stop begins is cut off. */
static void
test_exchange__stop_waits_for_a_request_being_read(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);
	pthread_t closer;

	wire_send(fd, "POST /fake HTTP/1.1\r\nHost: x\r\n"
		      "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	assert_int_equal(wire_read(fd, reply), 100);
	wire_send(fd, "la");
	assert_int_equal(pthread_create(&closer, NULL, close_later, w), 0);
	while (!atomic_load(&w->server->stopping))
		(void)sched_yield();
	wire_send(fd, "te");
	assert_int_equal(wire_read(fd, reply), 200);
	assert_non_null(strstr(reply, "Connection: close"));
	assert_int_equal(pthread_join(closer, NULL), 0);
	(void)close(fd);
}

/* A client that goes away leaves its request, or its arena, behind. */
static void
test_exchange__clients_may_vanish_at_any_moment(void **state)
{
	struct wire *w = *state;
	static const char whole[] = "POST /fake HTTP/1.1\r\n"
				    "Host: x\r\nContent-Length: 4\r\n\r\nyyyy";
	char part[sizeof(whole)];

	for (size_t i = 1; i < sizeof(whole); i++) {
		int fd = wire_connect(w);

		memcpy(part, whole, i);
		part[i] = '\0';
		wire_send(fd, part);
		(void)close(fd);
	}
	/* Closing asserts that no connection and no request is left. */
}

/* What a statement still reads is freed with the connection, or the server. */
static void
test_exchange__a_call_outlives_its_server(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = wire_connect(w);
	struct pn_call *call;

	wire_post(fd, "/fake", "now, kept");
	assert_int_equal(wire_read(fd, reply), 200);
	(void)close(fd);
	wire_close(w);
	call = fake.kept;
	assert_non_null(call);
	assert_int_equal(atomic_load(&fake.ended), 0);
	assert_true(pn_str_is(call->request.body, "now, kept"));
	assert_true(pn_str_is(call->request.peer, "127.0.0.1"));
	pn_call_release(call);
	assert_int_equal(atomic_load(&fake.ended), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
		TEST(test_exchange__every_request_is_answered_once),
		TEST(test_exchange__decided_around_the_suspension),
		TEST(test_exchange__pipelined_requests_keep_their_order),
		TEST(test_exchange__stop_waits_for_suspended_requests),
		TEST(test_exchange__stop_waits_for_a_request_being_read),
		TEST(test_exchange__clients_may_vanish_at_any_moment),
		TEST(test_exchange__a_call_outlives_its_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
