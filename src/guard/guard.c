/*
 * The gateway: opens and closes, and is what its server serves.
 *
 * A request is read whole, then looked at in this order: path, method (also what
 * a header says of it), whose it is, its key, its hash; what is wrong is answered
 * at once, and nothing was claimed. Then it joins the flight of its key.
 *
 *   http threads --join--> flight --claim--> claims' thread --> upstream
 *        ^                                                         |
 *        +---- answer <---- claims' thread <----- settle <---------+
 *
 * Closing has the server stop accepting; what is in flight goes on. At the end
 * of the grace the tick thread ends the client, and with it every exchange:
 * what was sent is unknown, what was not is free. When the server has answered
 * all, what is still to be told to the database is waited for, as long as a
 * commit may take; what is not told then is left to its lease.
 */
#include "paynotify/guard.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "paynotify/limits.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/service.h"

#include "flight.h"

/* What head.c adds to a request, at most: a key, a tenant and a host. */
enum { OWN_HEADERS_MAX = 6, OWN_HEADERS_BYTES_MAX = 2048 };

/* -- the lock ------------------------------------------------------------------- */

void
pn_guard_lock(struct pn_guard *guard)
{
	int r = pthread_mutex_lock(&guard->lock);

	assert(r == 0);
}

void
pn_guard_unlock(struct pn_guard *guard)
{
	int r = pthread_mutex_unlock(&guard->lock);

	assert(r == 0);
}

/* -- requests ------------------------------------------------------------------------ */

/* Whether the upstream's request can have all of it and what is added. */
static bool
head_is_too_long(const struct pn_request *request)
{
	size_t bytes = OWN_HEADERS_BYTES_MAX;

	for (size_t i = 0; i < request->header_count; i++)
		bytes += request->headers[i].name.len +
			 request->headers[i].value.len + 3;
	return bytes > PN_HEADER_BYTES_MAX ||
	       request->header_count + OWN_HEADERS_MAX > PN_HEADER_COUNT_MAX;
}

/* Whether its address, with what is escaped in it (a byte is three then), is one
 * that goes to the upstream: else it is refused before it has a key. */
static enum pn_problem
check_url(const struct pn_guard_job *job)
{
	const struct pn_guard_forward forward = {
		.route = job->route, .call = job->call, .rest = job->rest
	};
	size_t most = strlen(job->route->conf->upstream) + 2 +
		      3 * (job->rest.len + job->call->request.query.len);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf url = pn_buf_init(most + 1);

	if (most < PN_GUARD_URL_BYTES_MAX)
		return PN_PROBLEM_NONE; /* as nearly always */
	pn_guard_forward_url(&forward, &url);
	if (pn_buf_failed(&url))
		return PN_PROBLEM_MEMORY;
	return url.len < PN_GUARD_URL_BYTES_MAX ? PN_PROBLEM_NONE
						: PN_PROBLEM_URI_TOO_LONG;
}

static enum pn_refused
begin(void *service, struct pn_call *call)
{
	struct pn_guard *guard = service;
	struct pn_guard_job *job = call->job;
	struct pn_guard_match match;
	int r;

	job->call = call;
	job->guard = guard;
	if (call->request.path.len > PN_PATH_BYTES_MAX)
		return PN_REFUSED_PATH;
	r = pn_guard_path(call->request.path, call->arena, &job->path);
	if (r > 0)
		return PN_REFUSED_PATH;
	if (r < 0) {
		job->problem = PN_PROBLEM_MEMORY; /* submit() tells it */
		return PN_REFUSED_NOT;
	}
	match = pn_guard_route_find(
	    &guard->routes, call->request.method, job->path);
	if (match.route == NULL)
		return match.path_known ? PN_REFUSED_METHOD : PN_REFUSED_PATH;
	job->route = match.route;
	call->seconds = match.route->series.seconds;
	job->is_safe = match.is_safe;
	job->rest = match.rest;
	job->problem = pn_guard_overrides_method(&call->request)
			   ? PN_PROBLEM_METHOD_OVERRIDE
			   : check_url(job); /* submit() tells it */
	return head_is_too_long(&call->request) ? PN_REFUSED_HEADERS
						: PN_REFUSED_NOT;
}

static void
refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	static const enum pn_problem problems[PN_REFUSED_COUNT] = {
		[PN_REFUSED_PATH] = PN_PROBLEM_NOT_FOUND,
		[PN_REFUSED_METHOD] = PN_PROBLEM_METHOD,
		[PN_REFUSED_BODY] = PN_PROBLEM_BODY_TOO_LARGE,
		[PN_REFUSED_HEADERS] = PN_PROBLEM_HEADERS_TOO_MANY,
		[PN_REFUSED_LENGTH] = PN_PROBLEM_LENGTH_AMBIGUOUS,
		[PN_REFUSED_STOPPING] = PN_PROBLEM_STOPPING,
	};
	const struct pn_guard *guard = service;
	const struct pn_guard_job *job = call->job;
	struct pn_str allow = { NULL, 0 };

	assert((unsigned)why < PN_REFUSED_COUNT && why != PN_REFUSED_NOT);
	if (why == PN_REFUSED_METHOD)
		allow = pn_guard_route_allow(
		    &guard->routes, job->path, call->arena);
	pn_guard_count(job, problems[why]);
	pn_problem_answer(
	    problems[why], NULL, 0, allow.data, call->arena, &call->answer);
}

static void
submit(void *service, struct pn_call *call)
{
	struct pn_guard *guard = service;
	struct pn_guard_job *job = call->job;
	enum pn_problem problem;

	if (job->problem != PN_PROBLEM_NONE) {
		pn_job_answer(job);
		return;
	}
	if (job->is_safe) {
		if (pn_str_is(call->request.method, "HEAD") &&
		    call->request.body.len > 0)
			pn_job_answer_problem(job, PN_PROBLEM_BODY_UNEXPECTED);
		else
			pn_guard_pass(guard, job);
		return;
	}
	problem = pn_guard_tenant(job->route, call, &job->tenant);
	if (problem == PN_PROBLEM_NONE)
		problem = pn_guard_key(&call->request, call->arena, &job->key);
	if (problem == PN_PROBLEM_NONE &&
	    pn_guard_request_hash(
		&call->request, job->rest, call->arena, job->hash) != 0)
		problem = PN_PROBLEM_MEMORY;
	if (problem != PN_PROBLEM_NONE)
		pn_job_answer_problem(job, problem);
	else
		pn_flight_join(guard, job);
}

/* Also of a call that had no begin(): its job is zeros. */
static void
end(struct pn_call *call)
{
	struct pn_guard_job *job = call->job;

	pn_result_unref(job->result);
}

static const struct pn_handler handler = {
	.job_bytes = sizeof(struct pn_guard_job),
	.begin = begin,
	.submit = submit,
	.refuse = refuse,
	.end = end,
};

/* -- opening ------------------------------------------------------------------------- */

static int
out_of_memory(struct pn_error *ret_error)
{
	return pn_error_set(ret_error, -ENOMEM, "out of memory");
}

static int
init_lock(struct pn_guard *guard)
{
	pthread_condattr_t attributes;
	int r = pthread_condattr_init(&attributes);

	if (r == 0)
		r = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(&guard->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (r == 0)
		r = pthread_mutex_init(&guard->lock, NULL);
	return -r;
}

static int
open_rooms(struct pn_guard *guard, struct pn_error *ret_error)
{
	guard->rooms = calloc(guard->routes.count + 1, sizeof(*guard->rooms));
	if (guard->rooms == NULL || pn_memory_open(&guard->memory) < 0)
		return out_of_memory(ret_error);
	for (size_t i = 0; i < guard->routes.count; i++)
		guard->rooms[i].end = &guard->rooms[i].first;
	return 0;
}

/* One for all that may be sent at the same time: none ever waits for another's. */
static int
open_client(struct pn_guard *guard, struct pn_error *ret_error)
{
	unsigned connections = PN_PASSING_MAX;

	for (size_t i = 0; i < guard->routes.count; i++)
		connections +=
		    (unsigned)guard->routes.routes[i].conf->max_in_flight;
	return pn_client_open(
	    &(struct pn_client_options){ connections, connections, 0 },
	    &guard->client, ret_error);
}

static int
open_claims(struct pn_guard *guard, struct pn_error *ret_error)
{
	return pn_claims_open(
	    &(struct pn_claims_options){
		.dsn = guard->conf->database.dsn,
		.commit_timeout_us = guard->conf->server.commit_timeout_us,
		.settled = pn_flight_noted,
		.payload = guard,
	    },
	    &guard->claims, ret_error);
}

static int
open_tick(struct pn_guard *guard, struct pn_error *ret_error)
{
	if (pthread_create(&guard->tick, NULL, pn_tick_main, guard) != 0)
		return pn_error_set(
		    ret_error, -EAGAIN, "could not start the gateway's thread");
	guard->tick_started = true;
	return 0;
}

static int
open_server(struct pn_guard *guard, struct pn_error *ret_error)
{
	const struct pn_conf *conf = guard->conf;

	return pn_server_open(
	    &(struct pn_server_options){
		.conf = &conf->server,
		.listen = &conf->guard.listen,
		.socket_name = PN_SOCKET_GUARD,
		.body_bytes_max = (size_t)conf->guard.max_body_bytes,
		/* An upstream's head is as long as it likes, up to what
		 * net takes. */
		.head_bytes_max = 2 * PN_HEADER_BYTES_MAX,
		.handler = &handler,
		.service = guard,
	    },
	    &guard->server, ret_error);
}

int
pn_guard_open(const struct pn_conf *conf, struct pn_guard **ret_guard,
    struct pn_error *ret_error)
{
	/* Each relies on those before; requests come with the last. */
	static int (*const openers[])(
	    struct pn_guard * guard, struct pn_error * ret_error) = {
		open_rooms,
		open_client,
		open_claims,
		open_tick,
		open_server,
	};
	struct pn_guard *guard;
	int r;

	*ret_guard = NULL;
	if (conf->guard.listen.count == 0)
		return 0;
	guard = calloc(1, sizeof(*guard));
	if (guard == NULL)
		return out_of_memory(ret_error);
	guard->conf = conf;
	guard->stop_at_us = INT64_MAX;
	if (init_lock(guard) < 0) {
		free(guard);
		return out_of_memory(ret_error);
	}
	r = pn_guard_routes_open(conf, &guard->routes, ret_error);
	if (r == 0)
		pn_guard_series_open(&guard->routes);
	for (size_t i = 0; r == 0 && i < PN_COUNT(openers); i++)
		r = openers[i](guard, ret_error);
	if (r < 0) {
		pn_guard_close(guard, 0);
		return r;
	}
	*ret_guard = guard;
	return 0;
}

const char *
pn_guard_listening(const struct pn_guard *guard)
{
	return pn_server_listening(guard->server);
}

bool
pn_guard_is_alive(struct pn_guard *guard)
{
	return pn_server_is_alive(guard->server);
}

/* -- closing --------------------------------------------------------------------------- */

/* From now on the tick thread looks at the clock for it. */
static void
stop_at(struct pn_guard *guard, int64_t at_us)
{
	pn_guard_lock(guard);
	guard->stop_at_us = at_us;
	(void)pthread_cond_signal(&guard->changed);
	pn_guard_unlock(guard);
}

/* Nobody waits any more; what is left is what the database is told. */
static void
finish_flights(struct pn_guard *guard, int64_t until_us)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	size_t left;

	do {
		pn_guard_lock(guard);
		left = guard->flight_count;
		pn_guard_unlock(guard);
		if (left > 0)
			(void)nanosleep(&ms, NULL);
	} while (left > 0 && pn_clock_monotonic_us() < until_us);
}

static void
end_tick(struct pn_guard *guard)
{
	pn_guard_lock(guard);
	guard->ending = true;
	(void)pthread_cond_signal(&guard->changed);
	pn_guard_unlock(guard);
	(void)pthread_join(guard->tick, NULL);
}

void
pn_guard_close(struct pn_guard *guard, int64_t grace_us)
{
	int64_t commit_us, until_us, left_us;

	if (guard == NULL)
		return;
	assert(grace_us >= 0);
	commit_us = guard->conf->server.commit_timeout_us;
	until_us = pn_clock_monotonic_us() + commit_us;
	if (guard->tick_started) {
		stop_at(guard, pn_clock_monotonic_us() + grace_us);
		pn_server_close(guard->server, grace_us + commit_us);
		stop_at(guard, 0);
		until_us = pn_clock_monotonic_us() + commit_us;
		finish_flights(guard, until_us);
		end_tick(guard);
	}
	pn_client_close(guard->client);
	left_us = until_us - pn_clock_monotonic_us();
	pn_claims_close(guard->claims, left_us > 0 ? left_us : 0);
	assert(guard->flight_count == 0);
	pn_memory_close(&guard->memory);
	free(guard->rooms);
	pn_guard_series_close(&guard->routes);
	pn_guard_routes_close(&guard->routes);
	(void)pthread_cond_destroy(&guard->changed);
	(void)pthread_mutex_destroy(&guard->lock);
	free(guard);
}
