/*
 * The server over real sockets with a handler of the test's own, which decides
 * at every possible moment: before the submission returns, at once from another
 * thread, or later. If these fail, a connection hangs suspended, is resumed
 * twice, a call is lost or freed under its handler, or the program aborts in
 * libmicrohttpd. Run it under ThreadSanitizer.
 */
#include "wire.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CLIENTS = 8, REQUESTS = 150 };

/* -- a handler ---------------------------------------------------------------- */

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct pn_call *calls[CLIENTS * 2]; /* waiting for the thread */
	int call_count;
	bool stop, hold;
	struct pn_call *between; /* to be decided around a suspension */
	bool before;             /* rather before it than behind it */
	struct pn_call *kept;    /* decided, to be released by the test */
	_Atomic int opened, submitted, seen, ended;
};
static struct fake fake;

struct fake_job {
	struct pn_header header;
	unsigned char untouched[40];
	bool begun, submitted, refused, decided, ended;
};

static const struct pn_header plain[] = {
	{ { "Content-Type", 12 }, { "text/plain", 10 } },
};

static void
must(bool condition)
{
	if (!condition)
		abort();
}

static void
decide(struct pn_call *call)
{
	struct fake_job *job = call->job;

	must(job->submitted && !job->decided && !job->ended);
	job->decided = true;
	call->answer = (struct pn_answer){ 200, plain, 1, call->request.body };
	if (pn_str_starts(call->request.body, "now, limited") &&
	    pn_call_rate_limited(call))
		call->answer.status = 429;
	if (pn_str_starts(call->request.body, "now, kept")) {
		fake.kept = call;
		pn_call_done(call);
		return;
	}
	pn_call_done(call);
	pn_call_release(call);
}

/* In front of libmicrohttpd's: the moments around a suspension, which another
 * thread meets once in a million requests, on demand. */
void
MHD_suspend_connection(struct MHD_Connection *connection)
{
	void (*real)(struct MHD_Connection *) = NULL;
	void *symbol = dlsym(RTLD_NEXT, "MHD_suspend_connection");
	struct pn_call *call = fake.between;

	memcpy(&real, &symbol, sizeof(real));
	if (call == NULL) {
		real(connection);
		return;
	}
	fake.between = NULL;
	if (fake.before)
		decide(call);
	real(connection);
	if (!fake.before)
		decide(call);
}

static void
fake_open(void *service)
{
	must(service == &fake);
	(void)atomic_fetch_add(&fake.opened, 1);
}

static enum pn_refused
fake_begin(void *service, struct pn_call *call)
{
	static const unsigned char zeros[sizeof(struct fake_job)];
	struct fake_job *job = call->job;

	must(service == &fake && atomic_load(&fake.opened) == 1);
	must(memcmp(job, zeros, sizeof(zeros)) == 0);
	must((uintptr_t)job % _Alignof(max_align_t) == 0);
	job->begun = true;
	(void)atomic_fetch_add(&fake.seen, 1);
	if (!pn_str_is(call->request.path, "/fake"))
		return PN_REFUSED_PATH;
	return pn_str_is(call->request.method, "POST") ? PN_REFUSED_NOT
						       : PN_REFUSED_METHOD;
}

static void
fake_submit(void *service, struct pn_call *call)
{
	struct fake_job *job = call->job;
	struct pn_str body = call->request.body;

	must(service == &fake && job->begun && !job->submitted);
	job->submitted = true;
	(void)atomic_fetch_add(&fake.submitted, 1);
	if (pn_str_starts(body, "between")) {
		fake.between = call;
		fake.before = pn_str_is(body, "between, before");
		return;
	}
	/* The body's first byte says when. */
	if (pn_str_starts(body, "n")) {
		decide(call);
		return;
	}
	(void)pthread_mutex_lock(&fake.lock);
	fake.calls[fake.call_count++] = call;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
	if (pn_str_starts(body, "y"))
		(void)sched_yield(); /* done() in between, more often */
}

/* The answer tells what was asked for. */
static void
fake_refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	struct fake_job *job = call->job;

	must(service == &fake && !job->submitted && !job->refused);
	job->refused = true;
	if (!job->begun)
		(void)atomic_fetch_add(&fake.seen, 1);
	call->answer = (struct pn_answer){ 400 + (unsigned)why, plain, 1,
		pn_arena_printf(call->arena,
		    "%s, " PN_STR_FMT "?" PN_STR_FMT ", %llu of %zu bytes, %s",
		    job->begun ? "begun" : "new",
		    PN_STR_ARG(call->request.path),
		    PN_STR_ARG(call->request.query),
		    (unsigned long long)call->body_bytes,
		    call->request.body.len,
		    call->from_proxy ? "a proxy" : "direct") };
}

static void
fake_end(struct pn_call *call)
{
	struct fake_job *job = call->job;

	must(!job->ended);
	must(!job->submitted || job->decided);
	job->ended = true;
	(void)atomic_fetch_add(&fake.ended, 1);
}

static const struct pn_handler fake_handler = {
	.job_bytes = sizeof(struct fake_job),
	.begin = fake_begin,
	.submit = fake_submit,
	.refuse = fake_refuse,
	.end = fake_end,
	.open = fake_open,
};

static void *
fake_run(void *payload)
{
	struct pn_call *call;

	(void)payload;
	(void)pthread_mutex_lock(&fake.lock);
	while (!fake.stop || fake.call_count > 0) {
		if (fake.call_count == 0 || (fake.hold && !fake.stop)) {
			(void)pthread_cond_wait(&fake.changed, &fake.lock);
			continue;
		}
		call = fake.calls[--fake.call_count];
		(void)pthread_mutex_unlock(&fake.lock);
		decide(call);
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

static int
world_make(void **state)
{
	struct wire *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(pthread_mutex_init(&fake.lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&fake.changed, NULL), 0);
	assert_int_equal(pthread_create(&fake.thread, NULL, fake_run, NULL), 0);
	w->conf.rate_limit_per_second = 1;
	wire_open(w, &fake_handler, &fake);
	*state = w;
	return 0;
}

static int
world_end(void **state)
{
	struct wire *w = *state;

	wire_close(w);
	(void)pthread_mutex_lock(&fake.lock);
	fake.stop = true;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
	(void)pthread_join(fake.thread, NULL);
	(void)pthread_mutex_destroy(&fake.lock);
	(void)pthread_cond_destroy(&fake.changed);
	free(w);
	/* Whatever became of it: each call that was seen has ended. */
	assert_int_equal(atomic_load(&fake.opened), 1);
	assert_int_equal(atomic_load(&fake.seen), atomic_load(&fake.ended));
	return 0;
}

/* -- tests ------------------------------------------------------------------------ */

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

/* The body is cut, or answered before the limit is known. */
static void
test_exchange__bodies_over_the_limit(void **state)
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
test_exchange__refusals_reach_the_handler(void **state)
{
	static const struct {
		const char *head;
		enum pn_refused why;
		const char *told;
	} rows[] = {
		{ "POST /x?q=1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		    PN_REFUSED_PATH, "begun, /x?q=1, 0 of 0 bytes, direct" },
		{ "PUT /fake HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
		    PN_REFUSED_METHOD, "begun, /fake?, 3 of 0 bytes, direct" },
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
test_exchange__too_many_headers_come_before_all_else(void **state)
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
test_exchange__refuses_when_stopping(void **state)
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

/* A flood of one peer's is never limited, or all of it is. */
static void
test_exchange__allowance_of_a_peer_is_used_up(void **state)
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
test_exchange__proxies_are_told_from_others(void **state)
{
	struct wire *w = *state;
	char reply[REPLY_BYTES_MAX];
	int fd;

	wire_close(w);
	w->trusted =
	    (struct pn_conf_cidr){ .address = { [10] = 0xff, 0xff, 127 },
		    .bits = 104 };
	w->conf.trusted_proxies = (struct pn_conf_cidrs){ &w->trusted, 1 };
	atomic_store(&fake.opened, 0);
	wire_open(w, &fake_handler, &fake);
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
		TEST(test_exchange__every_request_is_answered_once),
		TEST(test_exchange__decided_around_the_suspension),
		TEST(test_exchange__pipelined_requests_keep_their_order),
		TEST(test_exchange__stop_waits_for_suspended_requests),
		TEST(test_exchange__stop_waits_for_a_request_being_read),
		TEST(test_exchange__clients_may_vanish_at_any_moment),
		TEST(test_exchange__bodies_over_the_limit),
		TEST(test_exchange__refusals_reach_the_handler),
		TEST(test_exchange__too_many_headers_come_before_all_else),
		TEST(test_exchange__refuses_when_stopping),
		TEST(test_exchange__a_call_outlives_its_server),
		TEST(test_exchange__allowance_of_a_peer_is_used_up),
		TEST(test_exchange__proxies_are_told_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
