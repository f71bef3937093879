/*
 * How fast the client is: small POSTs over kept connections of the loopback,
 * to a server of its own in a child process that does next to nothing.
 *
 *   client_load COUNT IN_FLIGHT [SLOW]
 *
 * keeps IN_FLIGHT requests in flight until COUNT are answered and prints the
 * rate and what one costs in CPU time of this process. SLOW further requests
 * to a server that never answers are in flight all the while: they must cost
 * nothing. Not a test: nothing is asserted about time.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "paynotify/client.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
#include "paynotify/parse.h"

enum { BODY_BYTES = 700, IN_FLIGHT_MAX = 4096, FD_MAX = 16384 };

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    "Date: Mon, 30 Nov 2026 01:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}";
static const char headers[] =
    "Content-Type: application/json\n"
    "webhook-id: evt_0123456789abcdef0123456789abcdef\n"
    "webhook-timestamp: 1764464400\n"
    "webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=\n";

struct load {
	struct pn_client *client;
	char url[64];
	char body[BODY_BYTES];
	long left;
	atomic_long running;
	struct pn_client_request *requests;
};

/* -- the server ---------------------------------------------------------------- */

/* Answers each body it has seen whole: all requests are equally long. */
static void
serve_one(int fd, size_t *seen, size_t *length)
{
	char input[16 << 10];
	ssize_t n = recv(fd, input, sizeof(input) - 1, 0);
	const char *end;

	if (n <= 0) {
		(void)close(fd);
		*seen = 0;
		return;
	}
	if (*length == 0) {
		input[n] = '\0';
		end = strstr(input, "\r\n\r\n");
		if (end == NULL)
			abort();
		*length = (size_t)(end + 4 - input) + BODY_BYTES;
	}
	for (*seen += (size_t)n; *seen >= *length; *seen -= *length)
		if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
			return;
}

static void
serve(int listener)
{
	size_t seen[FD_MAX] = { 0 };
	struct epoll_event events[256], event = { .events = EPOLLIN };
	int set = epoll_create1(0), one = 1, fd, count;
	size_t length = 0;

	event.data.fd = listener;
	(void)epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		count = epoll_wait(set, events, 256, -1);
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd != listener) {
				serve_one(events[i].data.fd,
				    &seen[events[i].data.fd], &length);
				continue;
			}
			fd = accept(listener, NULL, NULL);
			if (fd < 0 || fd >= FD_MAX)
				abort();
			(void)setsockopt(
			    fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			event.data.fd = fd;
			seen[fd] = 0;
			(void)epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
		}
	}
}

static int
listen_on(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, len) != 0 ||
	    listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)address, &len) != 0)
		abort();
	return fd;
}

/* -- the load -------------------------------------------------------------------- */

static void
done(struct pn_client_request *request)
{
	struct load *load = request->payload;

	if (request->end != PN_CLIENT_ANSWERED || request->status != 200) {
		(void)fprintf(stderr, "end %d, status %d: %s\n", request->end,
		    request->status, request->error.text);
		exit(1);
	}
	if (load->left > 0) {
		load->left--;
		pn_client_send(load->client, request);
	} else {
		atomic_fetch_sub(&load->running, 1);
	}
}

static void
ignore(struct pn_client_request *request)
{
	(void)request;
}

static double
cpu_seconds(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static long
number(const char *text, long max)
{
	uint64_t value;

	if (pn_parse_uint(pn_str_from(text), (uint64_t)max, &value) != 0 ||
	    value == 0)
		exit(2);
	return (long)value;
}

static void
make(struct load *load, long i, const char *url,
    void (*call)(struct pn_client_request *))
{
	load->requests[i] = (struct pn_client_request){
		.method = "POST",
		.url = url,
		.headers = PN_STR(headers),
		.body = { load->body, sizeof(load->body) },
		.timeout_us = 60 * PN_SECOND_US,
		.answer_bytes_max = 512,
		.done = call,
		.payload = load,
	};
	pn_client_send(load->client, &load->requests[i]);
}

static void
measure(struct load *load, long count, long in_flight)
{
	int64_t began_us = pn_clock_monotonic_us();
	double cpu = cpu_seconds(), seconds;

	load->left = count - in_flight;
	atomic_store(&load->running, in_flight);
	for (long i = 0; i < in_flight; i++)
		make(load, i, load->url, done);
	while (atomic_load(&load->running) > 0)
		(void)usleep(1000);
	seconds = (double)(pn_clock_monotonic_us() - began_us) / 1e6;
	cpu = cpu_seconds() - cpu;
	(void)printf("%ld in flight: %.0f/s, %.1f us of CPU each\n", in_flight,
	    (double)count / seconds, cpu * 1e6 / (double)count);
}

int
main(int argc, char **argv)
{
	struct load load = { .left = 0 };
	struct pn_client_options options = { 2 * IN_FLIGHT_MAX, IN_FLIGHT_MAX,
		0 };
	struct sockaddr_in address, deaf;
	struct pn_error error;
	int listener = listen_on(&address), silent = listen_on(&deaf);
	long count, in_flight, slow;
	char slow_url[64];

	if (argc < 3)
		return 2;
	count = number(argv[1], 1000000000);
	in_flight = number(argv[2], IN_FLIGHT_MAX);
	slow = argc > 3 ? number(argv[3], IN_FLIGHT_MAX) : 0;
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener);
	}
	(void)snprintf(load.url, sizeof(load.url), "http://127.0.0.1:%d/push",
	    ntohs(address.sin_port));
	(void)snprintf(slow_url, sizeof(slow_url), "http://127.0.0.1:%d/push",
	    ntohs(deaf.sin_port));
	memset(load.body, 'x', sizeof(load.body));
	load.requests =
	    calloc(2 * (size_t)IN_FLIGHT_MAX, sizeof(*load.requests));
	if (load.requests == NULL || pn_net_init() < 0 ||
	    pn_client_open(&options, &load.client, &error) < 0)
		return 1;
	for (long i = 0; i < slow; i++)
		make(&load, IN_FLIGHT_MAX + i, slow_url, ignore);
	measure(&load, count, in_flight);
	pn_client_close(load.client);
	(void)close(silent);
	free(load.requests);
	return 0;
}
