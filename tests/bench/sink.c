/*
 * sink: what events are pushed to in the bench, and the upstream of the guard: a
 * keep-alive HTTP/1.1 server on 127.0.0.1 that reads requests and answers at
 * once, 200 or with --charge 201 and a small JSON. Prints its port; on
 * SIGTERM one line of JSON: how many requests came and the seconds from the
 * first to the last.
 *
 * One thread, epoll. It knows Content-Length only, as the pushes have it, and
 * one request at a time on a connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/compiler.h"
#include "paynotify/parse.h"
#include "paynotify/str.h"

enum { EVENTS_MAX = 256, REQUEST_BYTES_MAX = 128 << 10, LISTEN_BACKLOG = 512 };

struct peer {
	int fd;
	size_t have;
	char data[REQUEST_BYTES_MAX];
};

struct sink {
	int epoll, listener, signals;
	struct pn_str answer;
	uint64_t requests;
	double first, last;
};

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static const char charge[] =
    "HTTP/1.1 201 Created\r\n"
    "Content-Type: application/json\r\n"
    "Location: /v1/charges/ch_20261130000001\r\n"
    "Content-Length: 76\r\n\r\n"
    "{\"id\":\"ch_20261130000001\",\"amount\":1234,\"currency\":\"CNY\","
    "\"status\":\"created\"}";

static double
now_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void
watch(const struct sink *sink, int fd, void *payload)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = payload };

	if (epoll_ctl(sink->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		die("epoll_ctl");
}

static void
greet(const struct sink *sink)
{
	struct peer *peer = malloc(sizeof(*peer));
	int one = 1;

	if (peer == NULL)
		die("malloc");
	peer->have = 0;
	peer->fd = accept(sink->listener, NULL, NULL);
	if (peer->fd < 0)
		die("accept");
	(void)setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	watch(sink, peer->fd, peer);
}

/* Bytes of the whole request that stands in front; 0: not all of it yet. */
static size_t
request_bytes(const struct peer *peer)
{
	const char *end = memmem(peer->data, peer->have, "\r\n\r\n", 4);
	const char *length;
	struct pn_str digits;
	int64_t n = 0;

	if (end == NULL)
		return 0;
	length = memmem(
	    peer->data, (size_t)(end - peer->data), "\r\nContent-Length: ", 18);
	if (length != NULL) {
		digits.data = length + 18;
		digits.len =
		    (size_t)((const char *)memchr(digits.data, '\r', 32) -
			     digits.data);
		if (pn_parse_int64(digits, &n) != 0 || n < 0)
			die("Content-Length");
	}
	n += end + 4 - peer->data;
	return (size_t)n <= peer->have ? (size_t)n : 0;
}

/* False when the connection is over. */
static bool
serve(struct sink *sink, struct peer *peer)
{
	ssize_t n = read(
	    peer->fd, peer->data + peer->have, sizeof(peer->data) - peer->have);
	size_t bytes;

	if (n <= 0)
		return false;
	peer->have += (size_t)n;
	bytes = request_bytes(peer);
	if (bytes == 0)
		return peer->have < sizeof(peer->data);
	peer->have -= bytes;
	memmove(peer->data, peer->data + bytes, peer->have);
	sink->last = now_seconds();
	if (sink->requests++ == 0)
		sink->first = sink->last;
	return write(peer->fd, sink->answer.data, sink->answer.len) ==
	       (ssize_t)sink->answer.len;
}

static void
open_sink(struct sink *sink)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(address);
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	sink->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	sink->epoll = epoll_create1(EPOLL_CLOEXEC);
	sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (sink->signals < 0 || sink->epoll < 0 || sink->listener < 0 ||
	    bind(sink->listener, (struct sockaddr *)&address,
		sizeof(address)) != 0 ||
	    listen(sink->listener, LISTEN_BACKLOG) != 0 ||
	    getsockname(sink->listener, (struct sockaddr *)&address, &bytes) !=
		0)
		die("sink");
	watch(sink, sink->listener, &sink->listener);
	watch(sink, sink->signals, &sink->signals);
	(void)printf("%u\n", ntohs(address.sin_port));
	(void)fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct sink sink = { .answer = PN_STR(ok) };
	struct epoll_event events[EVENTS_MAX];
	bool stopping = false;

	if (argc == 2 && strcmp(argv[1], "--charge") == 0)
		sink.answer = PN_STR(charge);
	else if (argc != 1) {
		(void)fprintf(stderr, "usage: sink [--charge]\n");
		return 1;
	}
	open_sink(&sink);
	while (!stopping) {
		int n = epoll_wait(sink.epoll, events, EVENTS_MAX, -1);

		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			void *payload = events[i].data.ptr;
			struct peer *peer = payload;

			if (payload == &sink.signals)
				stopping = true;
			else if (payload == &sink.listener)
				greet(&sink);
			else if (!serve(&sink, peer)) {
				(void)close(peer->fd);
				free(peer);
			}
		}
	}
	(void)printf("{\"requests\": %llu, \"seconds\": %.3f}\n",
	    (unsigned long long)sink.requests, sink.last - sink.first);
	return 0;
}
