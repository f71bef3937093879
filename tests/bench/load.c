/*
 * load: replays prepared HTTP/1.1 requests over keep-alive connections to a
 * server on 127.0.0.1 and prints one line of JSON.
 *
 * Each record is sent once, or --repeat times by turns, in the order of the
 * file, by whichever connection is free. A request whose connection breaks before the answer is never sent
 * again: it counts as wrong.
 *
 *  closed loop: a connection sends its next request when it has the answer to
 *    its last; latency runs from the write to the end of the answer.
 *  open loop (--rate R): requests are due after exponential gaps of 1/R on
 *    average and are sent when due if a connection is free, else as soon as one
 *    is; latency runs from the due time, so that waiting counts too.
 *
 * The first --warmup requests are sent closed loop and not measured. One
 * thread, epoll; it deliberately knows only what the servers here answer with:
 * Content-Length, no chunks.
 *
 * Exit status: 0 every answer was right, 2 some were not, 1 could not run.
 */
#include "load.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/parse.h"
#include "paynotify/str.h"

enum { EVENTS_MAX = 256, SILENCE_SECONDS_MAX = 15 };
static const uint64_t second_ns = 1000000000;

struct connection {
	int fd;
	bool busy;
	uint32_t request;
	const char *out; /* what is not written yet */
	size_t out_len;
	uint64_t start_ns; /* of the latency */
	size_t have;
	char reply[LOAD_REPLY_BYTES_MAX];
};

struct load {
	/* what was asked for */
	uint64_t port, connections, seconds, max, skip, warmup, rate, repeat;
	const char *file;

	struct load_record *records;
	size_t record_count, request_count; /* the records, repeated */
	bool *seen;                         /* by trade */
	struct connection *conns;
	struct connection **idle;
	size_t idle_count;
	int epoll, timer;
	uint64_t due_ns, stop_ns, random;
	bool paced, stopped;
	struct load_stats stats;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * second_ns + (uint64_t)t.tv_nsec;
}

static void
open_connection(struct load *load, struct connection *conn)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };
	int one = 1;

	address.sin_port = htons((uint16_t)load->port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		load_die("socket");
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(conn->fd, (struct sockaddr *)&address, sizeof(address)) !=
	    0)
		load_die("connect"); /* loopback answers at once */
	if (fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0)
		load_die("epoll");
	conn->busy = false;
	conn->have = 0;
}

static void
write_out(struct load *load, struct connection *conn)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };
	ssize_t n = 0;

	while (conn->out_len > 0) {
		n = send(conn->fd, conn->out, conn->out_len, MSG_NOSIGNAL);
		if (n < 0)
			break; /* full, or broken: then reading tells */
		conn->out += n;
		conn->out_len -= (size_t)n;
	}
	if (n < 0)
		event.events |= EPOLLOUT;
	(void)epoll_ctl(load->epoll, EPOLL_CTL_MOD, conn->fd, &event);
}

static void
send_next(struct load *load, uint64_t start_ns)
{
	struct connection *conn = load->idle[--load->idle_count];
	uint32_t at = (uint32_t)load->stats.sent++;
	const struct load_record *record =
	    &load->records[at % load->record_count];
	ssize_t n;

	if (isupper((unsigned char)record->kind) &&
	    !load->seen[record->trade]) {
		load->seen[record->trade] = true;
		load->stats.distinct++;
	}
	conn->request = at;
	conn->busy = true;
	conn->have = 0;
	conn->start_ns = start_ns;
	if (at == load->warmup)
		load->stats.first_ns = start_ns;
	n = send(conn->fd, record->data, record->len, MSG_NOSIGNAL);
	if (n < 0)
		n = 0;
	conn->out = record->data + n;
	conn->out_len = record->len - (size_t)n;
	if (conn->out_len > 0)
		write_out(load, conn);
}

/* Length of the body, or -1 when the head has none. */
static ptrdiff_t
content_length(struct pn_str head)
{
	struct pn_str line, name;
	uint64_t len;

	while (head.data != NULL) {
		line = pn_str_split(&head, '\n');
		name = pn_str_split(&line, ':');
		if (!pn_str_equal_fold(name, PN_STR("content-length")))
			continue;
		if (pn_parse_uint(
			pn_str_trim(line), LOAD_REPLY_BYTES_MAX, &len) != 0)
			return -1;
		return (ptrdiff_t)len;
	}
	return -1;
}

/* 1 when the whole answer is there, 0 when more must come, -1: nonsense. */
static int
parse_reply(
    const struct connection *conn, int *ret_status, struct pn_str *ret_body)
{
	struct pn_str all = { conn->reply, conn->have };
	ptrdiff_t end = pn_str_find(all, PN_STR("\r\n\r\n")), len;
	uint64_t status;

	if (end < 0)
		return conn->have < sizeof(conn->reply) ? 0 : -1;
	if (end < 12 || memcmp(all.data, "HTTP/1.1 ", 9) != 0 ||
	    pn_parse_uint((struct pn_str){ all.data + 9, 3 }, 999, &status) !=
		0)
		return -1;
	len = content_length((struct pn_str){ all.data, (size_t)end + 2 });
	if (len < 0)
		return -1;
	*ret_status = (int)status;
	*ret_body = (struct pn_str){ all.data + end + 4, (size_t)len };
	return conn->have >= (size_t)end + 4 + (size_t)len;
}

static char
kind_of(const struct load *load, const struct connection *conn)
{
	return load->records[conn->request % load->record_count].kind;
}

static void
drop(struct load *load, struct connection *conn)
{
	struct load_stats *stats = &load->stats;

	if (conn->busy) {
		stats->broken++;
		load_count(stats, kind_of(load, conn), 0, "(no answer)", 11);
		stats->last_ns = now_ns();
		load->idle[load->idle_count++] = conn;
	}
	(void)close(conn->fd);
	open_connection(load, conn);
}

static void
read_reply(struct load *load, struct connection *conn)
{
	struct load_stats *stats = &load->stats;
	struct pn_str body = { NULL, 0 };
	int status = 0, r;
	ssize_t n;

	n = recv(conn->fd, conn->reply + conn->have,
	    sizeof(conn->reply) - conn->have, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !conn->busy) {
		drop(load, conn);
		return;
	}
	conn->have += (size_t)n;
	r = parse_reply(conn, &status, &body);
	if (r < 0)
		drop(load, conn);
	if (r <= 0)
		return;
	stats->last_ns = now_ns();
	load_count(stats, kind_of(load, conn), status, body.data, body.len);
	if (conn->request >= load->warmup)
		stats->latency_ns[stats->measured++] =
		    stats->last_ns - conn->start_ns;
	conn->busy = false;
	load->idle[load->idle_count++] = conn;
}

/* Moves the due time on by an exponential gap. */
static void
next_due(struct load *load)
{
	uint64_t x = load->random;
	double share;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	load->random = x;
	share = ((double)(x >> 11) + 1) / 9007199254740993.0;
	load->due_ns +=
	    (uint64_t)(-log(share) * (double)second_ns / (double)load->rate);
}

static void
arm_timer(struct load *load)
{
	struct itimerspec when = { .it_value = {
				       (time_t)(load->due_ns / second_ns),
				       (long)(load->due_ns % second_ns) } };

	(void)timerfd_settime(load->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Sends what may be sent now. */
static void
send_all(struct load *load)
{
	struct load_stats *stats = &load->stats;
	uint64_t now = now_ns();

	if (now >= load->stop_ns || stats->sent == load->request_count)
		load->stopped = true;
	while (!load->stopped && load->idle_count > 0 &&
	       stats->sent < load->request_count) {
		if (load->rate == 0 || stats->sent < load->warmup) {
			send_next(load, now_ns());
			continue;
		}
		if (!load->paced) {
			if (stats->answered < load->warmup)
				return;
			load->paced = true;
			load->due_ns = now = now_ns();
			load->stop_ns = now + load->seconds * second_ns;
		}
		if (load->due_ns > now) {
			arm_timer(load);
			return;
		}
		if (now - load->due_ns > stats->late_ns_max)
			stats->late_ns_max = now - load->due_ns;
		send_next(load, load->due_ns);
		next_due(load);
		now = now_ns();
	}
}

static void
run(struct load *load)
{
	struct epoll_event events[EVENTS_MAX];
	struct load_stats *stats = &load->stats;
	uint64_t ticks;
	int n;

	load->stop_ns = now_ns() + load->seconds * second_ns;
	stats->last_ns = now_ns();
	for (;;) {
		send_all(load);
		if (load->stopped && stats->answered == stats->sent)
			return;
		if (now_ns() - stats->last_ns >
			SILENCE_SECONDS_MAX * second_ns &&
		    stats->answered < stats->sent)
			return; /* the report tells */
		n = epoll_wait(load->epoll, events, EVENTS_MAX, 100);
		for (int i = 0; i < n; i++) {
			struct connection *conn = events[i].data.ptr;

			if (conn == NULL) {
				(void)!read(load->timer, &ticks, sizeof(ticks));
				continue;
			}
			if ((events[i].events & EPOLLOUT) != 0)
				write_out(load, conn);
			if ((events[i].events &
				(EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
				read_reply(load, conn);
		}
	}
}

static void
prepare(struct load *load)
{
	struct epoll_event event = { .events = EPOLLIN };
	uint32_t trade_max = 0;

	load->records = load_records(
	    load->file, load->skip, load->max, &load->record_count);
	load->request_count = load->record_count * load->repeat;
	if (load->request_count <= load->warmup ||
	    load->request_count > UINT32_MAX) {
		(void)fprintf(stderr, "load: nothing to send\n");
		exit(1);
	}
	for (size_t i = 0; i < load->record_count; i++)
		if (load->records[i].trade > trade_max)
			trade_max = load->records[i].trade;
	load->seen = calloc((size_t)trade_max + 1, sizeof(bool));
	load->conns = calloc(load->connections, sizeof(*load->conns));
	load->idle = calloc(load->connections, sizeof(struct connection *));
	load->stats.latency_ns = calloc(load->request_count, sizeof(uint64_t));
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	load->timer =
	    timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (load->seen == NULL || load->conns == NULL || load->idle == NULL ||
	    load->stats.latency_ns == NULL || load->epoll < 0 ||
	    load->timer < 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event) != 0)
		load_die("prepare");
	for (size_t i = 0; i < load->connections; i++) {
		open_connection(load, &load->conns[i]);
		load->idle[load->idle_count++] = &load->conns[i];
	}
}

static bool
parse_options(struct load *load, int argc, char **argv)
{
	static const struct option options[] = {
		{ "file", 1, NULL, 'f' },
		{ "port", 1, NULL, 'p' },
		{ "connections", 1, NULL, 'c' },
		{ "seconds", 1, NULL, 'd' },
		{ "max", 1, NULL, 'n' },
		{ "skip", 1, NULL, 's' },
		{ "warmup", 1, NULL, 'w' },
		{ "rate", 1, NULL, 'r' },
		{ "repeat", 1, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t ignored;
	int o;

	while ((o = getopt_long(
		    argc, argv, "f:p:c:d:n:s:w:r:t:", options, NULL)) != -1) {
		struct pn_str text = pn_str_from(o == '?' ? "" : optarg);
		uint64_t *to = o == 'p'   ? &load->port
			       : o == 'c' ? &load->connections
			       : o == 'd' ? &load->seconds
			       : o == 'n' ? &load->max
			       : o == 's' ? &load->skip
			       : o == 'w' ? &load->warmup
			       : o == 'r' ? &load->rate
			       : o == 't' ? &load->repeat
					  : &ignored;
		if (o == 'f')
			load->file = optarg;
		else if (to == &ignored ||
			 pn_parse_uint(text, UINT32_MAX, to) != 0)
			return false;
	}
	return optind == argc && load->file != NULL && load->port > 0 &&
	       load->port < 65536 && load->connections > 0 &&
	       load->connections <= LOAD_CONNECTIONS_MAX;
}

int
main(int argc, char **argv)
{
	struct load load = { .connections = 8,
		.seconds = 10,
		.max = UINT32_MAX,
		.repeat = 1,
		.random = 88172645463325252u };
	struct rusage usage;

	if (!parse_options(&load, argc, argv)) {
		(void)fprintf(stderr, "usage: load --file FILE --port PORT "
				      "[--connections N] [--seconds S] "
				      "[--max N] [--skip N] [--warmup N] "
				      "[--rate R] [--repeat N]\n");
		return 1;
	}
	prepare(&load);
	run(&load);
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		load.stats.cpu_us =
		    (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
			1000000 +
		    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	return load_report(
	    &load.stats, (unsigned)load.connections, (double)load.rate);
}
