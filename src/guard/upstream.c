/*
 * A flight whose key is ours: asks the upstream, and says what its end means.
 *
 *   end of the exchange          work      the client is told
 *   answered                     by status what the upstream said
 *   more than max_response, or   unknown   502
 *   headers that do not fit
 *   nothing was sent             not done  502, or 503 on a stop
 *   sent, no answer in time      unknown   504
 *   sent, connection lost        unknown   502
 *   sent, stopped meanwhile      unknown   503
 *
 *   work      the key
 *   done      completed with the answer
 *   not done  freed
 *   unknown   unknown = retry: in doubt; its lease runs out, then the next runs
 *             hold: set aside; release: let go, the next runs at once
 *
 * A route has at most max_in_flight requests at its upstream; what is more waits
 * here with its key held, oldest first, and its lease is renewed. An answer that
 * is kept until the database is back (lease.c) has a place among them.
 *
 * Whose turn it is is sent only while its lease holds by this process's clock:
 * it may have been lost while it waited (an operator, renewals that failed, a
 * process that was stopped), or be over when the claim's commit is through. Who
 * holds the key by then may be at work, or have its answer, so it is claimed
 * again. What remains is a process that is stopped between that look and the
 * sending: the upstream can tell by Idempotency-Attempt, which is the lower one.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "paynotify/limits.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "flight.h"

static void answered(struct pn_client_request *request);

/* -- rooms -------------------------------------------------------------------------- */

struct pn_room *
pn_flight_room(const struct pn_flight *flight)
{
	struct pn_guard *guard = flight->guard;

	return &guard->rooms[flight->route - guard->routes.routes];
}

void
pn_flight_unqueue(struct pn_flight *flight)
{
	struct pn_room *room = pn_flight_room(flight);
	struct pn_flight **at = &room->first;

	assert(flight->state == PN_FLIGHT_QUEUED);
	while (*at != flight)
		at = &(*at)->next_queued;
	*at = flight->next_queued;
	if (flight->next_queued == NULL)
		room->end = at;
}

/* -- sending -------------------------------------------------------------------------- */

/* It waits for no other one any more. */
static void
lead(struct pn_guard_job *job, int64_t now_us)
{
	job->leads = true;
	if (job->waits_since_us != 0)
		pn_series_observe(
		    job->route->series.wait, now_us - job->waits_since_us);
	job->waits_since_us = 0;
}

/* Nothing was sent, and nothing will be: the key is free again. */
static void
free_key(struct pn_flight *f, enum pn_problem problem, int64_t now_us)
{
	f->problem = problem;
	pn_flight_settle(f, PN_SETTLE_FREE, now_us);
}

/* The same, while a renewal is under way: when that is through. */
static void
end_unsent(struct pn_flight *f, int64_t now_us)
{
	assert(f->renewing);
	f->problem = PN_PROBLEM_MEMORY;
	f->work = PN_WORK_NOT;
	f->state = PN_FLIGHT_ANSWERED;
	f->since_us = now_us;
}

static bool
write_request(struct pn_flight *f)
{
	const struct pn_guard_job *job = f->jobs.first;
	struct pn_guard_forward forward = {
		.route = f->route,
		.call = job->call,
		.rest = job->rest,
		.tenant = f->scope.tenant,
		.key = f->scope.key,
		.attempt = f->attempt,
		.token = f->claim.token,
	};

	pn_guard_forward_url(&forward, &f->url);
	pn_guard_forward_headers(&forward, &f->headers);
	return !pn_buf_failed(&f->url) && !pn_buf_failed(&f->headers);
}

struct pn_client_request
pn_job_request(const struct pn_guard_job *job, const struct pn_buf *url,
    const struct pn_buf *headers)
{
	const struct pn_request *request = &job->call->request;
	const struct pn_conf_guard_route *conf = job->route->conf;

	return (struct pn_client_request){
		.method = request->method.data,
		.url = url->data,
		.ca_file = conf->ca_file.count == 0
			       ? NULL
			       : conf->ca_file.files[0].path,
		.headers = pn_buf_str(headers),
		.body = request->body,
		.timeout_us = conf->timeout_us,
		.answer_bytes_max = (size_t)conf->max_response_bytes,
	};
}

bool
pn_flight_is_held(const struct pn_flight *flight, int64_t now_us)
{
	return !flight->lost && now_us < flight->lease_until_us;
}

/* Out of the queue, or never in it. A renewal may be under way, but only of a
 * lease that holds. */
static void
start(struct pn_flight *f, int64_t now_us)
{
	assert(f->jobs.first != NULL);
	if (!pn_flight_is_held(f, now_us)) {
		pn_flight_claim(f, now_us);
		return;
	}
	lead(f->jobs.first, now_us);
	if (!write_request(f)) {
		if (f->renewing)
			end_unsent(f, now_us);
		else
			free_key(f, PN_PROBLEM_MEMORY, now_us);
		return;
	}
	pn_flight_room(f)->running++;
	f->state = PN_FLIGHT_RUNNING;
	f->since_us = now_us;
	f->request = pn_job_request(f->jobs.first, &f->url, &f->headers);
	f->request.done = answered;
	f->request.payload = f;
	pn_client_send(f->guard->client, &f->request);
}

void
pn_flight_run(struct pn_flight *flight, int64_t now_us)
{
	struct pn_room *room = pn_flight_room(flight);

	flight->held_since_us = now_us;
	if (flight->jobs.first != NULL)
		lead(flight->jobs.first, now_us);
	/* What was left of it when the statement ran; that may be long ago. */
	flight->lease_until_us =
	    flight->since_us + flight->claim.retry_after_us;
	flight->renew_at_us = now_us + (flight->lease_until_us - now_us) / 3;
	if (flight->guard->stopping || flight->jobs.first == NULL) {
		free_key(flight, PN_PROBLEM_STOPPING, now_us);
	} else if (room->running < flight->route->conf->max_in_flight) {
		start(flight, now_us);
	} else {
		flight->state = PN_FLIGHT_QUEUED;
		flight->since_us = now_us;
		flight->next_queued = NULL;
		*room->end = flight;
		room->end = &flight->next_queued;
	}
}

/* A renewal is under way, and on it depends whether it may be sent; or it hung,
 * and nobody waits any more. It keeps its place, and renewed() goes on. */
static bool
waits_for_renewal(const struct pn_flight *f, int64_t now_us)
{
	return f->jobs.first == NULL ||
	       (f->renewing && !pn_flight_is_held(f, now_us));
}

/* Those whose turn it is, oldest first, as far as there is room. */
static void
fill_room(struct pn_guard *guard, struct pn_room *room, int64_t now_us)
{
	struct pn_flight *f, *next;

	for (f = room->first; f != NULL && !guard->stopping; f = next) {
		if (room->running >= f->route->conf->max_in_flight)
			return;
		next = f->next_queued;
		if (waits_for_renewal(f, now_us))
			continue;
		pn_flight_unqueue(f);
		start(f, now_us);
	}
}

void
pn_flight_leave_room(struct pn_flight *flight, int64_t now_us)
{
	struct pn_room *room = pn_flight_room(flight);

	assert(room->running > 0);
	room->running--;
	fill_room(flight->guard, room, now_us);
}

void
pn_flight_look_at_queue(struct pn_flight *flight, int64_t now_us)
{
	assert(flight->state == PN_FLIGHT_QUEUED && !flight->renewing);
	if (flight->guard->stopping || flight->jobs.first == NULL) {
		pn_flight_unqueue(flight);
		free_key(flight, PN_PROBLEM_STOPPING, now_us);
	} else if (!pn_flight_is_held(flight, now_us)) {
		pn_flight_unqueue(flight);
		pn_flight_claim(flight, now_us);
	} else {
		/* It may have been passed over meanwhile. */
		fill_room(flight->guard, pn_flight_room(flight), now_us);
	}
}

/* -- what it came to -------------------------------------------------------------------- */

static const struct {
	enum pn_work work;
	enum pn_problem problem;
	const char *reason;
} ends[PN_CLIENT_END_COUNT] = {
	[PN_CLIENT_ANSWERED] = { PN_WORK_UNKNOWN, PN_PROBLEM_MEMORY, "" },
	[PN_CLIENT_CUT] = { PN_WORK_UNKNOWN, PN_PROBLEM_RESPONSE_TOO_LARGE,
	    "the upstream's answer was longer than max_response, or its "
	    "headers than 16k" },
	[PN_CLIENT_NOT_SENT] = { PN_WORK_NOT, PN_PROBLEM_UPSTREAM_UNREACHABLE,
	    "the upstream could not be reached" },
	[PN_CLIENT_LOST] = { PN_WORK_UNKNOWN, PN_PROBLEM_UPSTREAM_LOST,
	    "the connection to the upstream was lost" },
	[PN_CLIENT_TIMEOUT] = { PN_WORK_UNKNOWN, PN_PROBLEM_UPSTREAM_TIMEOUT,
	    "the upstream did not answer in time" },
	[PN_CLIENT_STOPPED] = { PN_WORK_UNKNOWN, PN_PROBLEM_INTERRUPTED,
	    "stopped while the upstream was asked" },
};

/* What is not kept may say when to come again: to all who wait, not only to who
 * leads. Unless keep_header has it already. */
static void
add_retry_after(const struct pn_client_request *request, struct pn_buf *kept)
{
	static const char name[] = "Retry-After";
	struct pn_client_request had = { .answer_headers = pn_buf_str(kept) };
	struct pn_str value = pn_client_header(request, name);

	if (value.data == NULL || pn_client_header(&had, name).data != NULL)
		return;
	pn_buf_add_text(kept, name);
	pn_buf_add_text(kept, ": ");
	pn_buf_add_str(kept, value);
	pn_buf_add_char(kept, '\n');
}

/* The answer as a result. NULL: no memory. */
static struct pn_result *
take_answer(const struct pn_flight *f, enum pn_work work)
{
	const struct pn_client_request *request = &f->request;
	struct pn_result *result = NULL;
	struct pn_buf headers = pn_buf_init(2 * PN_HEADER_BYTES_MAX);
	struct pn_buf kept = pn_buf_init(2 * PN_HEADER_BYTES_MAX);

	pn_guard_answer_headers(request->answer_headers, &headers);
	pn_guard_kept_headers(f->route, pn_buf_str(&headers), &kept);
	if (work != PN_WORK_DONE)
		add_retry_after(request, &kept);
	if (!pn_buf_failed(&headers) && !pn_buf_failed(&kept))
		result = pn_result_new(request->status, pn_buf_str(&headers),
		    pn_buf_str(&kept), request->answer);
	pn_buf_done(&headers);
	pn_buf_done(&kept);
	return result;
}

enum pn_client_end
pn_guard_end(const struct pn_client_request *request)
{
	if (request->end == PN_CLIENT_ANSWERED &&
	    (request->status < 200 || request->status >= PN_STATUS_COUNT))
		return PN_CLIENT_LOST;
	if (request->end == PN_CLIENT_ANSWERED && request->headers_cut)
		return PN_CLIENT_CUT;
	return request->end;
}

/* When the answer's life ends. One that is over begins anew, as it does where it
 * is stored. */
static int64_t
life_end_us(const struct pn_flight *f)
{
	int64_t now_us = pn_clock_realtime_us();

	return f->expires_at_us > now_us ? f->expires_at_us
					 : now_us + f->route->conf->ttl_us;
}

/* Sets work, and the result or the problem. Not under the lock: until this is
 * through the flight is the client's. */
static void
judge(struct pn_flight *f)
{
	const struct pn_client_request *request = &f->request;
	enum pn_client_end end = pn_guard_end(request);
	enum pn_work work;

	f->work = ends[end].work;
	f->problem = ends[end].problem;
	(void)snprintf(f->reason, sizeof(f->reason), "%s", ends[end].reason);
	if (end == PN_CLIENT_ANSWERED) {
		(void)snprintf(f->reason, sizeof(f->reason),
		    "the upstream answered %d", request->status);
		work = pn_guard_route_work(f->route, request->status);
		f->result = take_answer(f, work);
		if (f->result != NULL) {
			f->problem = PN_PROBLEM_NONE;
			f->work = work;
		}
		if (f->result != NULL && f->work == PN_WORK_DONE)
			f->result->expires_at_us = life_end_us(f);
	} else if (!request->sent) {
		f->work = PN_WORK_NOT;
		if (request->end == PN_CLIENT_STOPPED)
			f->problem = PN_PROBLEM_STOPPING;
		else
			f->problem = PN_PROBLEM_UPSTREAM_UNREACHABLE;
	}
}

void
pn_flight_conclude(
    struct pn_flight *flight, int64_t now_us, struct pn_after *after)
{
	static const enum pn_settle_act acts[] = {
		[PN_GUARD_RETRY] = PN_SETTLE_DOUBT,
		[PN_GUARD_HOLD] = PN_SETTLE_ASIDE,
		[PN_GUARD_RELEASE] = PN_SETTLE_AGAIN,
	};
	enum pn_guard_unknown unknown = flight->route->conf->unknown;

	assert(flight->state == PN_FLIGHT_ANSWERED && !flight->renewing);
	if (flight->lost && flight->work == PN_WORK_DONE)
		flight->problem = PN_PROBLEM_LEASE_LOST;
	if (flight->lost)
		pn_flight_end(flight, after);
	else if (flight->work == PN_WORK_UNKNOWN)
		pn_flight_settle(flight, acts[unknown], now_us);
	else
		pn_flight_settle(flight,
		    flight->work == PN_WORK_DONE ? PN_SETTLE_COMPLETE
						 : PN_SETTLE_FREE,
		    now_us);
}

static void
tell(const struct pn_flight *f)
{
	static const enum pn_guard_work works[] = {
		[PN_WORK_DONE] = PN_GUARD_WORK_DONE,
		[PN_WORK_NOT] = PN_GUARD_WORK_NOT,
		[PN_WORK_UNKNOWN] = PN_GUARD_WORK_UNKNOWN,
	};
	char text[2 * PN_REASON_BYTES_MAX];

	pn_series_add(f->route->series.upstream, works[f->work], 1);
	if (pn_log_is_on(PN_LOG_DEBUG, PN_LOG_CATEGORY)) {
		(void)snprintf(text, sizeof(text),
		    "the upstream took %" PRId64 " us: status %d",
		    f->request.elapsed_us, f->request.status);
		pn_flight_log(f, PN_LOG_DEBUG, text);
	}
	if (f->work == PN_WORK_DONE)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%.200s; %s", f->reason,
	    f->request.error.text[0] == '\0' ? "" : ": ", f->request.error.text,
	    f->work == PN_WORK_NOT ? "the key is free"
				   : "whether the work was done is not known");
	pn_flight_log(f, PN_LOG_WARNING, text);
}

/* On the client's thread. */
static void
answered(struct pn_client_request *request)
{
	struct pn_flight *f = request->payload;
	struct pn_guard *guard = f->guard;
	int64_t now_us;
	struct pn_after after;

	pn_after_init(&after);
	judge(f);
	pn_guard_lock(guard);
	/* Not earlier: what waited for this is sent by it. */
	now_us = pn_clock_monotonic_us();
	assert(f->state == PN_FLIGHT_RUNNING);
	f->state = PN_FLIGHT_ANSWERED;
	f->since_us = now_us;
	tell(f);
	pn_flight_leave_room(f, now_us);
	if (!f->renewing)
		pn_flight_conclude(f, now_us, &after);
	pn_guard_unlock(guard);
	pn_after_do(&after);
}
