/*
 * Sending raw requests to a server of the test's own. If these fail, a capture
 * does not go out byte for byte, or a connection is not used again.
 */
#include "paynotify/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/moment.h"

/* What the server does on each connection, in order. */
struct act {
	const char *expect; /* reads exactly this; NULL: the end of the list */
	const char *answer; /* NULL: closes without one */
	bool close;         /* then waits for the next connection */
};

struct server {
	int fd;
	const struct act *acts;
	pthread_t thread;
	int connections;
	char folder[32], url[64];
	struct sockaddr_un un;
};

static void *
serve(void *payload)
{
	struct server *s = payload;
	int fd = -1;
	char got[256];

	for (const struct act *act = s->acts; act->expect != NULL; act++) {
		size_t len = strlen(act->expect), at = 0;

		if (fd < 0) {
			fd = accept(s->fd, NULL, NULL);
			s->connections++;
		}
		while (at < len) {
			ssize_t n = recv(fd, got + at, len - at, 0);

			if (n <= 0)
				abort();
			at += (size_t)n;
		}
		if (memcmp(got, act->expect, len) != 0)
			abort();
		if (act->answer != NULL &&
		    send(fd, act->answer, strlen(act->answer), MSG_NOSIGNAL) <
			0)
			abort();
		if (act->close) {
			(void)close(fd);
			fd = -1;
		}
	}
	if (fd >= 0) { /* until the client has closed */
		while (recv(fd, got, sizeof(got), 0) > 0)
			continue;
		(void)close(fd);
	}
	return NULL;
}

static void
server_open(struct server *s, const struct act *acts)
{
	*s = (struct server){ .acts = acts, .un = { .sun_family = AF_UNIX } };
	(void)snprintf(s->folder, sizeof(s->folder), "/tmp/pnn.XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	(void)snprintf(
	    s->un.sun_path, sizeof(s->un.sun_path), "%s/s", s->folder);
	(void)snprintf(s->url, sizeof(s->url), "unix:%s/s", s->folder);
	s->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(
	    bind(s->fd, (struct sockaddr *)&s->un, sizeof(s->un)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void
server_close(struct server *s)
{
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	(void)close(s->fd);
	(void)unlink(s->un.sun_path);
	(void)rmdir(s->folder);
}

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static int
ask(struct pn_net *net, const char *url, const char *raw,
    struct pn_net_reply *reply)
{
	struct pn_arena *arena = pn_arena_new(1 << 20);
	struct pn_error error = { .text = "" };
	int r = pn_net_send_raw(net, url, pn_str_from(raw), 30 * PN_SECOND_US,
	    arena, reply, &error);

	if (r < 0)
		assert_string_not_equal(error.text, "");
	else
		assert_true(pn_str_is(reply->body, "ok"));
	pn_arena_free(arena);
	return r;
}

/* Oddities of a capture are mended on the way, or each costs a connection. */
static void
test_net__sends_bytes_as_they_are_and_keeps_the_connection(void **state)
{
	static const char raw[] = "pOsT /x HTTP/1.1\nodd : header\r\n\r\n\x01";
	static const struct act acts[] = { { raw, ok, false },
		{ raw, ok, false }, { raw, ok, false }, { NULL, NULL, false } };
	struct pn_net *net = NULL;
	struct pn_net_reply reply;
	struct server s;

	(void)state;
	server_open(&s, acts);
	assert_int_equal(pn_net_open(&net), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(net, s.url, raw, &reply), 0);
		assert_int_equal(reply.status, 200);
		assert_true(reply.elapsed_us >= 0);
	}
	pn_net_close(net);
	server_close(&s);
	assert_int_equal(s.connections, 1);
}

/* A server that closed the idle connection is an error. */
static void
test_net__sends_again_when_a_kept_connection_was_closed(void **state)
{
	static const struct act acts[] = { { "one", ok, true },
		{ "two", NULL, true }, { "two", ok, false },
		{ NULL, NULL, false } };
	static const struct act once[] = { { "one", ok, false },
		{ "two", NULL, true }, { "two", ok, false },
		{ NULL, NULL, false } };
	struct pn_net *net = NULL;
	struct pn_net_reply reply;
	struct server s;

	(void)state;
	/* Closed after the second request was read: sent once more. */
	server_open(&s, once);
	assert_int_equal(pn_net_open(&net), 0);
	assert_int_equal(ask(net, s.url, "one", &reply), 0);
	assert_int_equal(ask(net, s.url, "two", &reply), 0);
	pn_net_close(net);
	server_close(&s);
	assert_int_equal(s.connections, 2);
	/* On a new connection it is an error: nobody knows what happened. */
	server_open(&s, acts + 1);
	assert_int_equal(pn_net_open(&net), 0);
	assert_int_equal(ask(net, s.url, "two", &reply), -ECONNRESET);
	assert_int_equal(ask(net, s.url, "two", &reply), 0);
	pn_net_close(net);
	server_close(&s);
}

/* Nobody there, and the program hangs or says nothing. */
static void
test_net__refused_connection_is_an_error(void **state)
{
	struct pn_net *net = NULL;
	struct pn_net_reply reply;

	(void)state;
	assert_int_equal(pn_net_open(&net), 0);
	assert_int_equal(
	    ask(net, "unix:/nonexistent/s", "x", &reply), -ECONNREFUSED);
	assert_int_equal(
	    ask(net, "ftp://127.0.0.1:1", "x", &reply), -ECONNREFUSED);
	pn_net_close(net);
}

/* A server that never answers holds the program for ever. */
static void
test_net__deadline_ends_the_wait(void **state)
{
	static const struct act acts[] = { { "x", NULL, false },
		{ NULL, NULL, false } };
	struct pn_net *net = NULL;
	struct pn_net_reply reply;
	struct pn_error error = { .text = "" };
	struct pn_arena *arena = pn_arena_new(1 << 20);
	struct server s;

	(void)state;
	server_open(&s, acts);
	assert_int_equal(pn_net_open(&net), 0);
	assert_int_equal(pn_net_send_raw(net, s.url, PN_STR("x"),
			     20 * PN_MILLISECOND_US, arena, &reply, &error),
	    -ETIMEDOUT);
	assert_non_null(strstr(error.text, "in time"));
	pn_net_close(net);
	pn_arena_free(arena);
	server_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_net__sends_bytes_as_they_are_and_keeps_the_connection),
		cmocka_unit_test(
		    test_net__sends_again_when_a_kept_connection_was_closed),
		cmocka_unit_test(test_net__refused_connection_is_an_error),
		cmocka_unit_test(test_net__deadline_ends_the_wait),
	};

	if (pn_net_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
