/*
 * See fake.h. What is checked in the server's threads aborts.
 */
#include "fake.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake fake;

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
	call->answer = (struct pn_answer){ .status = 200,
		.headers = plain,
		.header_count = 1,
		.body = call->request.body };
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
	const unsigned char *bytes = call->job;
	struct fake_job *job = call->job;

	must(service == &fake && atomic_load(&fake.opened) == 1);
	for (size_t i = 0; i < sizeof(*job); i++)
		must(bytes[i] == 0);
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
	call->answer = (struct pn_answer){ .status = 400 + (unsigned)why,
		.headers = plain,
		.header_count = 1,
		.body = pn_arena_printf(call->arena,
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

void
fake_hold(bool hold)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.hold = hold;
	(void)pthread_cond_broadcast(&fake.changed);
	(void)pthread_mutex_unlock(&fake.lock);
}

void
fake_serve(struct wire *wire)
{
	atomic_store(&fake.opened, 0);
	wire_open(wire, &fake_handler, &fake);
}

int
world_make(void **state)
{
	struct wire *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(pthread_mutex_init(&fake.lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&fake.changed, NULL), 0);
	assert_int_equal(pthread_create(&fake.thread, NULL, fake_run, NULL), 0);
	w->conf.rate_limit_per_second = 1;
	fake_serve(w);
	*state = w;
	return 0;
}

int
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
