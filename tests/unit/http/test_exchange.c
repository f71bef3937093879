/*
 * The server over real sockets with a pipeline of the test's own, which decides
 * at every possible moment: before the submission returns, at once from another
 * thread, or later. If these fail, a connection hangs suspended, is resumed
 * twice, or the program aborts in libmicrohttpd. Run it under ThreadSanitizer.
 */
#include "http_internal.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>

#include <cmocka.h>

#include "paynotify/parse.h"

enum { CLIENTS = 8, REQUESTS = 150, REPLY_BYTES_MAX = 4096 };

/* -- a pipeline --------------------------------------------------------------- */

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct pn_ingest_job *jobs[CLIENTS * 2]; /* waiting for the thread */
	int job_count;
	bool stop, hold;
	struct pn_ingest_job *between; /* to be decided around a suspension */
	bool before;                   /* rather before it than behind it */
	_Atomic int refused, submitted;
};
static struct fake fake;

const struct pn_route *
pn_ingest_route(const struct pn_ingest *ingest, struct pn_str path)
{
	(void)ingest;
	return pn_str_is(path, "/notify/fake/shop") ? (const void *)&fake
						    : NULL;
}

void
pn_ingest_set_statuses(
    struct pn_ingest *ingest, unsigned (*status_of)(enum pn_outcome outcome))
{
	(void)ingest;
	assert_int_equal(status_of(PN_OUTCOME_SUCCESS), 200);
}

static void
decide(struct pn_ingest_job *job)
{
	job->outcome = PN_OUTCOME_SUCCESS;
	job->reply = (struct pn_reply){ .body = job->request->body,
		.content_type = "text/plain" };
	job->done(job);
	job->release(job);
}

/* In front of libmicrohttpd's: the moments around a suspension, which another
 * thread meets once in a million requests, on demand. */
void
MHD_suspend_connection(struct MHD_Connection *connection)
{
	void (*real)(struct MHD_Connection *) = NULL;
	void *symbol = dlsym(RTLD_NEXT, "MHD_suspend_connection");
	struct pn_ingest_job *job = fake.between;

	memcpy(&real, &symbol, sizeof(real));
	if (job == NULL) {
		real(connection);
		return;
	}
	fake.between = NULL;
	if (fake.before)
		decide(job);
	real(connection);
	if (!fake.before)
		decide(job);
}

void
pn_ingest_submit(struct pn_ingest *ingest, struct pn_ingest_job *job)
{
	(void)ingest;
	(void)atomic_fetch_add(&fake.submitted, 1);
	if (pn_str_starts(job->request->body, "between")) {
		fake.between = job;
		fake.before = pn_str_is(job->request->body, "between, before");
		return;
	}
	/* The body's first byte says when. */
	if (pn_str_starts(job->request->body, "n")) {
		decide(job);
		return;
	}
	(void)pthread_mutex_lock(&fake.lock);
	fake.jobs[fake.job_count++] = job;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
	if (pn_str_starts(job->request->body, "y"))
		(void)sched_yield(); /* done() in between, more often */
}

void
pn_ingest_refuse(struct pn_ingest *ingest, struct pn_ingest_job *job,
    enum pn_ingest_refusal why)
{
	(void)ingest;
	(void)atomic_fetch_add(&fake.refused, 1);
	job->outcome = why == PN_REFUSE_QUEUE_FULL ? PN_OUTCOME_UNAVAILABLE
						   : PN_OUTCOME_MALFORMED;
	job->reply = (struct pn_reply){ .body = PN_STR("fail"),
		.content_type = "text/plain" };
}

static void *
fake_run(void *payload)
{
	struct pn_ingest_job *job;

	(void)payload;
	(void)pthread_mutex_lock(&fake.lock);
	while (!fake.stop || fake.job_count > 0) {
		if (fake.job_count == 0 || (fake.hold && !fake.stop)) {
			(void)pthread_cond_wait(&fake.changed, &fake.lock);
			continue;
		}
		job = fake.jobs[--fake.job_count];
		(void)pthread_mutex_unlock(&fake.lock);
		decide(job);
		(void)pthread_mutex_lock(&fake.lock);
	}
	(void)pthread_mutex_unlock(&fake.lock);
	return NULL;
}

static void
fake_hold(bool hold)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.hold = hold;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
}

/* -- server and clients --------------------------------------------------------- */

struct world {
	struct pn_conf conf;
	char *address;
	struct pn_server *server;
	int port;
};

static int
world_make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	static const char address[] = "127.0.0.1:0";
	uint64_t port;

	assert_non_null(w);
	w->address = strdup(address);
	w->conf.server = (struct pn_conf_server){
		.listen = { .values = &w->address, .count = 1 },
		.threads = 2,
		.max_body_bytes = 2000,
		.max_connections = 64,
		.max_connections_per_peer = 64,
		.idle_timeout_us = 60 * PN_SECOND_US,
		.request_timeout_us = 60 * PN_SECOND_US,
	};
	fake.stop = fake.hold = false;
	fake.job_count = 0;
	assert_int_equal(pthread_mutex_init(&fake.lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&fake.changed, NULL), 0);
	assert_int_equal(pthread_create(&fake.thread, NULL, fake_run, NULL), 0);
	assert_int_equal(pn_server_open(&w->conf, (struct pn_ingest *)&fake,
			     &w->server, NULL),
	    0);
	assert_int_equal(
	    pn_parse_uint(
		pn_str_from(strchr(pn_server_listening(w->server), ':') + 1),
		65535, &port),
	    0);
	w->port = (int)port;
	*state = w;
	return 0;
}

static int
world_end(void **state)
{
	struct world *w = *state;

	/* Clients that vanished in the middle are not waited for. */
	pn_server_close(w->server, 100 * PN_MILLISECOND_US);
	(void)pthread_mutex_lock(&fake.lock);
	fake.stop = true;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
	(void)pthread_join(fake.thread, NULL);
	(void)pthread_mutex_destroy(&fake.lock);
	(void)pthread_cond_destroy(&fake.changed);
	free(w->address);
	free(w);
	return 0;
}

static int
client_open(const struct world *w)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)w->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0)
		abort();
	return fd;
}

static void
client_send(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		abort();
}

/* Reads one reply with a Content-Length; its status, or 0 at the end. The body
 * goes to reply behind the head. */
static int
client_read(int fd, char reply[REPLY_BYTES_MAX])
{
	size_t len = 0, head = 0;
	uint64_t body = 0, status = 0;
	char *end;

	memset(reply, 0, REPLY_BYTES_MAX);
	while (head == 0 || len < head + body) {
		/* Byte by byte: the next reply stays in the socket. */
		if (len + 1 >= REPLY_BYTES_MAX ||
		    recv(fd, reply + len, 1, 0) != 1)
			return 0;
		len++;
		end = strstr(reply, "\r\n\r\n");
		if (head == 0 && end != NULL) {
			char *length = strstr(reply, "Content-Length: ");

			head = (size_t)(end - reply) + 4;
			if (length != NULL &&
			    pn_parse_uint((struct pn_str){ length + 16,
					      strcspn(length + 16, "\r") },
				REPLY_BYTES_MAX, &body) != 0)
				return 0;
		}
	}
	if (pn_parse_uint((struct pn_str){ reply + 9, 3 }, 999, &status) != 0)
		return 0;
	return (int)status;
}

static void
post(int fd, const char *path, const char *body)
{
	char text[REPLY_BYTES_MAX];

	(void)snprintf(text, sizeof(text),
	    "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
	    path, strlen(body), body);
	client_send(fd, text);
}

/* -- tests ------------------------------------------------------------------------ */

static void *
hammer(void *payload)
{
	const struct world *w = payload;
	static const char *const bodies[] = { "now", "elsewhere", "yield", "" };
	char reply[REPLY_BYTES_MAX];
	int fd = client_open(w);

	for (int i = 0; i < REQUESTS; i++) {
		const char *body = bodies[(size_t)i % PN_COUNT(bodies)];
		const char *got;

		post(fd, "/notify/fake/shop?x=1", body);
		if (client_read(fd, reply) != 200)
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
	struct world *w = *state;
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
	struct world *w = *state;
	static const char *const bodies[] = { "between, before",
		"between, behind" };
	char reply[REPLY_BYTES_MAX];
	int fd = client_open(w);

	for (size_t i = 0; i < 6; i++) {
		post(fd, "/notify/fake/shop", bodies[i % 2]);
		assert_int_equal(client_read(fd, reply), 200);
		assert_non_null(strstr(reply, bodies[i % 2]));
	}
	(void)close(fd);
}

/* Requests sent without waiting are answered out of order, or not at all. */
static void
test_exchange__pipelined_requests_keep_their_order(void **state)
{
	struct world *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = client_open(w);

	post(fd, "/notify/fake/shop", "later");
	post(fd, "/notify/fake/shop", "now");
	post(fd, "/nowhere", "");
	post(fd, "/notify/fake/shop", "yes");
	assert_int_equal(client_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nlater"));
	assert_int_equal(client_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nnow"));
	assert_int_equal(client_read(fd, reply), 404);
	assert_int_equal(client_read(fd, reply), 200);
	assert_non_null(strstr(reply, "\r\n\r\nyes"));
	(void)close(fd);
}

static void *
close_later(void *payload)
{
	struct world *w = payload;

	pn_server_close(w->server, 5 * PN_SECOND_US);
	w->server = NULL;
	return NULL;
}

/* A stop drops what waits for the database, or aborts (suspended). */
static void
test_exchange__stop_waits_for_suspended_requests(void **state)
{
	struct world *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fds[CLIENTS], idle = client_open(w), before;
	pthread_t closer;

	fake_hold(true);
	before = atomic_load(&fake.submitted);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = client_open(w);
		post(fds[i], "/notify/fake/shop", "held");
	}
	while (atomic_load(&fake.submitted) < before + CLIENTS)
		(void)sched_yield();
	assert_int_equal(pthread_create(&closer, NULL, close_later, w), 0);
	fake_hold(false);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(client_read(fds[i], reply), 200);
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
	struct world *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd = client_open(w);
	pthread_t closer;

	client_send(fd, "POST /notify/fake/shop HTTP/1.1\r\nHost: x\r\n"
			"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	assert_int_equal(client_read(fd, reply), 100);
	client_send(fd, "la");
	assert_int_equal(pthread_create(&closer, NULL, close_later, w), 0);
	while (!atomic_load(&w->server->stopping))
		(void)sched_yield();
	client_send(fd, "te");
	assert_int_equal(client_read(fd, reply), 200);
	assert_non_null(strstr(reply, "Connection: close"));
	assert_int_equal(pthread_join(closer, NULL), 0);
	(void)close(fd);
}

/* A client that goes away leaves its request, or its arena, behind. */
static void
test_exchange__clients_may_vanish_at_any_moment(void **state)
{
	struct world *w = *state;
	static const char whole[] = "POST /notify/fake/shop HTTP/1.1\r\n"
				    "Host: x\r\nContent-Length: 4\r\n\r\nyyyy";
	char part[sizeof(whole)];

	for (size_t i = 1; i < sizeof(whole); i++) {
		int fd = client_open(w);

		memcpy(part, whole, i);
		part[i] = '\0';
		client_send(fd, part);
		(void)close(fd);
	}
	/* Closing asserts that no connection and no request is left. */
}

/* The body is cut, or answered before the limit is known. */
static void
test_exchange__bodies_over_the_limit(void **state)
{
	struct world *w = *state;
	char reply[REPLY_BYTES_MAX], chunk[1100];
	int fd = client_open(w), before = atomic_load(&fake.submitted);

	client_send(fd, "POST /notify/fake/shop HTTP/1.1\r\nHost: x\r\n"
			"Expect: 100-continue\r\n"
			"Content-Length: 2001\r\n\r\n");
	assert_int_equal(client_read(fd, reply), 413);
	assert_non_null(strstr(reply, "Connection: close"));
	assert_int_equal(recv(fd, reply, 1, 0), 0);
	(void)close(fd);
	fd = client_open(w);
	client_send(fd, "POST /notify/fake/shop HTTP/1.1\r\nHost: x\r\n"
			"Transfer-Encoding: chunked\r\n\r\n");
	memset(chunk, 'n', sizeof(chunk));
	memcpy(chunk, "3e8\r\n", 5);
	memcpy(chunk + 5 + 1000, "\r\n", 3);
	client_send(fd, chunk);
	client_send(fd, chunk);
	client_send(fd, "1\r\nx\r\n0\r\n\r\n");
	assert_int_equal(client_read(fd, reply), 413);
	assert_int_equal(recv(fd, reply, 1, 0), 0);
	(void)close(fd);
	assert_int_equal(atomic_load(&fake.submitted), before);
	/* Exactly the limit passes. */
	fd = client_open(w);
	client_send(fd, "POST /notify/fake/shop HTTP/1.1\r\nHost: x\r\n"
			"Transfer-Encoding: chunked\r\n\r\n");
	client_send(fd, chunk);
	client_send(fd, chunk);
	client_send(fd, "0\r\n\r\n");
	assert_int_equal(client_read(fd, reply), 200);
	(void)close(fd);
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
		TEST(test_exchange__bodies_over_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
