/*
 * Connection limits and the watchdog. If these fail, one client takes all
 * connections, a proxy is taken for one client, or a byte a second holds a
 * connection for ever.
 */
#include "http_internal.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct pn_conf_cidr blocks[] = {
	{ .address = { [10] = 0xff, 0xff, 10 }, .bits = 104 },
};
static const struct pn_conf_cidrs trusted = { blocks, 1 };

static struct pn_watch *
watch_with(const struct pn_conf_cidrs *proxies, int64_t all, int64_t each,
    int64_t timeout_us)
{
	struct pn_watch_options options = {
		.idle_timeout_us = timeout_us,
		.request_timeout_us = timeout_us,
		.connections_max = all,
		.connections_per_peer_max = each,
		.trusted = proxies,
	};
	struct pn_watch *watch = NULL;

	assert_int_equal(pn_watch_open(&options, &watch, NULL), 0);
	return watch;
}

static struct pn_watch *
watch_of(int64_t all, int64_t each, int64_t timeout_us)
{
	return watch_with(&trusted, all, each, timeout_us);
}

static struct pn_peer
peer_of(const char *text)
{
	struct pn_peer peer;

	assert_int_equal(pn_peer_parse(pn_str_from(text), &peer), 0);
	return peer;
}

/* Adds what is admitted; how many were. */
static int
fill(struct pn_watch *watch, const char *from, struct pn_conn **conns, int n)
{
	struct pn_peer peer = peer_of(from);
	int count = 0;

	while (count < n && pn_watch_admits(watch, &peer)) {
		conns[count] = pn_watch_add(watch, 0, &peer);
		assert_non_null(conns[count]);
		count++;
	}
	return count;
}

static void
empty(struct pn_watch *watch, struct pn_conn **conns, int n)
{
	for (int i = 0; i < n; i++)
		pn_watch_remove(watch, conns[i]);
}

/* One peer fills the server; or it never gets its places back. */
static void
test_watch__peer_has_a_maximum(void **state)
{
	struct pn_watch *watch = watch_of(100, 3, 3600 * PN_SECOND_US);
	struct pn_conn *a[10], *b[10];

	(void)state;
	assert_int_equal(fill(watch, "203.0.113.1", a, 10), 3);
	assert_int_equal(fill(watch, "203.0.113.2", b, 10), 3);
	empty(watch, a, 3);
	assert_int_equal(fill(watch, "203.0.113.1", a, 2), 2);
	empty(watch, b, 3);
	empty(watch, a, 2);
	pn_watch_close(watch);
}

/* All of a proxy's clients are counted as one. */
static void
test_watch__loopback_and_proxies_are_exempt(void **state)
{
	struct pn_watch *watch = watch_of(100, 3, 3600 * PN_SECOND_US);
	struct pn_conn *a[20];

	(void)state;
	assert_int_equal(fill(watch, "127.0.0.1", a, 10), 10);
	empty(watch, a, 10);
	assert_int_equal(fill(watch, "::1", a, 10), 10);
	empty(watch, a, 10);
	assert_int_equal(fill(watch, "10.3.2.1", a, 10), 10);
	empty(watch, a, 10);
	pn_watch_close(watch);
}

/* A stranger's headers are believed, or those of a proxy are not. */
static void
test_watch__proxies_and_unix_sockets_are_trusted(void **state)
{
	static const struct {
		const char *peer;
		bool trusted;
	} rows[] = {
		{ "10.3.2.1", true },
		{ "::ffff:10.3.2.1", true },
		{ "11.3.2.1", false },
		{ "127.0.0.1", false },
		{ "::1", false },
	};
	struct pn_watch *watch = watch_of(100, 3, 3600 * PN_SECOND_US);
	static const struct pn_conf_cidrs none;
	struct pn_peer unix_peer = { .text = "" };
	struct pn_conn *conn;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_peer peer = peer_of(rows[i].peer);

		conn = pn_watch_add(watch, 0, &peer);
		assert_non_null(conn);
		assert_int_equal(conn->trusted, rows[i].trusted);
		pn_watch_remove(watch, conn);
	}
	pn_watch_close(watch);
	/* Whose rights on the socket say who may, with no proxy in the list. */
	watch = watch_with(&none, 100, 3, 3600 * PN_SECOND_US);
	conn = pn_watch_add(watch, 0, &unix_peer);
	assert_non_null(conn);
	assert_true(conn->trusted);
	pn_watch_remove(watch, conn);
	pn_watch_close(watch);
}

/* Several listeners together pass the maximum of the server. */
static void
test_watch__all_together_have_a_maximum(void **state)
{
	struct pn_watch *watch = watch_of(5, 100, 3600 * PN_SECOND_US);
	struct pn_conn *a[10];

	(void)state;
	assert_int_equal(fill(watch, "127.0.0.1", a, 10), 5);
	empty(watch, a, 5);
	pn_watch_close(watch);
}

/* A late connection is left open, or one in the pipeline is cut. */
static void
test_watch__late_connections_are_cut(void **state)
{
	struct pn_watch *watch = watch_of(5, 5, 20 * PN_MILLISECOND_US);
	struct pn_peer peer = peer_of("127.0.0.1");
	struct pn_conn *late, *paused;
	int l[2], p[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, l), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	paused = pn_watch_add(watch, p[0], &peer);
	assert_non_null(paused);
	pn_watch_pause(paused);
	late = pn_watch_add(watch, l[0], &peer);
	assert_non_null(late);
	/* Returns when the watchdog has cut it: the other end sees the end. */
	assert_int_equal(read(l[1], &byte, 1), 0);
	/* The paused one was due first, had it not been paused. */
	assert_int_equal(
	    poll(&(struct pollfd){ .fd = p[1], .events = POLLIN }, 1, 0), 0);
	pn_watch_request(watch, paused);
	assert_int_equal(read(p[1], &byte, 1), 0);
	pn_watch_remove(watch, late);
	pn_watch_remove(watch, paused);
	pn_watch_close(watch);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(l[i]), 0);
		assert_int_equal(close(p[i]), 0);
	}
}

/* Data and end in one edge, then a read that does not fill its buffer: what is
 * behind the data is not seen, as by libmicrohttpd. */
static int
read_one_edge(int epoll, int fd)
{
	struct epoll_event event;
	char bytes[8];

	assert_int_equal(epoll_wait(epoll, &event, 1, 60000), 1);
	return (int)recv(fd, bytes, sizeof(bytes), 0);
}

/* A client that went in mid-request is held until its deadline; or one that has
 * said all and closed its half is not answered. */
static void
test_watch__ends_are_told(void **state)
{
	struct pn_watch *watch = watch_of(5, 5, 800 * PN_MILLISECOND_US);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct pn_peer peer = peer_of("127.0.0.1");
	struct pn_conn *gone, *paused;
	int g[2], p[2], epoll = epoll_create1(EPOLL_CLOEXEC),
			paused_epoll = epoll_create1(EPOLL_CLOEXEC);
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, g), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, g[0], &event), 0);
	assert_int_equal(
	    epoll_ctl(paused_epoll, EPOLL_CTL_ADD, p[0], &event), 0);
	/* So that no deadline ends them. */
	gone = pn_watch_add(watch, g[0], &peer);
	paused = pn_watch_add(watch, p[0], &peer);
	assert_non_null(gone);
	assert_non_null(paused);
	pn_watch_pause(paused);
	atomic_store(&gone->deadline_us, PN_DEADLINE_NONE - 1);
	for (int i = 0; i < 2; i++) {
		int *pair = i == 0 ? p : g;

		assert_int_equal(send(pair[1], "abc", 3, 0), 3);
		assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	}
	assert_int_equal(read_one_edge(paused_epoll, p[0]), 3);
	assert_int_equal(read_one_edge(epoll, g[0]), 3);
	assert_int_equal(read_one_edge(epoll, g[0]), 0);
	/* Nobody reads from the one in the pipeline, and it waits for its
	 * answer. */
	assert_int_equal(epoll_wait(paused_epoll, &event, 1, 0), 0);
	assert_int_equal(send(p[0], "y", 1, 0), 1);
	assert_int_equal(recv(p[1], &byte, 1, 0), 1);
	atomic_store(&paused->deadline_us, PN_DEADLINE_NONE - 1);
	assert_int_equal(read_one_edge(paused_epoll, p[0]), 0);
	pn_watch_remove(watch, gone);
	pn_watch_remove(watch, paused);
	pn_watch_close(watch);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(g[i]), 0);
		assert_int_equal(close(p[i]), 0);
	}
	assert_int_equal(close(epoll), 0);
	assert_int_equal(close(paused_epoll), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watch__peer_has_a_maximum),
		cmocka_unit_test(test_watch__loopback_and_proxies_are_exempt),
		cmocka_unit_test(
		    test_watch__proxies_and_unix_sockets_are_trusted),
		cmocka_unit_test(test_watch__all_together_have_a_maximum),
		cmocka_unit_test(test_watch__late_connections_are_cut),
		cmocka_unit_test(test_watch__ends_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
