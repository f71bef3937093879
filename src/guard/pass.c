/*
 * Methods without effect (RFC 9110, 9.2.1) to a path of a route: they need no
 * key and claim none, and go to the route's upstream as they are. So the whole
 * of an API can be put behind the gateway, not only what must not happen twice.
 *
 * They are not counted in max_in_flight, which is there for work. They have a room
 * of their own, without a queue, and the client has a connection for each place in
 * it beside those of max_in_flight: so however many are asked for, and however long
 * they hang, no guarded request ever waits for a connection that one of them has.
 */
#include <assert.h>
#include <stdlib.h>

#include "paynotify/limits.h"
#include "paynotify/metrics.h"
#include "paynotify/parse.h"

#include "flight.h"

static_assert(PN_PASSING_MAX == 256, "a detail below says so");

struct pass {
	struct pn_guard_job *job;
	struct pn_client_request request;
	struct pn_buf url, headers;
};

static const enum pn_problem problems[PN_CLIENT_END_COUNT] = {
	[PN_CLIENT_CUT] = PN_PROBLEM_RESPONSE_TOO_LARGE,
	[PN_CLIENT_NOT_SENT] = PN_PROBLEM_UPSTREAM_UNREACHABLE,
	[PN_CLIENT_LOST] = PN_PROBLEM_UPSTREAM_LOST,
	[PN_CLIENT_TIMEOUT] = PN_PROBLEM_UPSTREAM_TIMEOUT,
	[PN_CLIENT_STOPPED] = PN_PROBLEM_STOPPING,
};

static void
pass_free(struct pass *pass)
{
	pn_buf_done(&pass->url);
	pn_buf_done(&pass->headers);
	free(pass);
}

/* How long the body of a HEAD or a 304 would be, as the upstream says. 0: it does
 * not. */
static uint64_t
unsent_bytes(const struct pn_client_request *request)
{
	struct pn_str text = pn_client_header(request, "Content-Length");
	uint64_t bytes = 0;

	if (text.data == NULL || pn_parse_uint(text, INT64_MAX, &bytes) != 0)
		return 0;
	return bytes;
}

/* On the client's thread. */
static void
passed(struct pn_client_request *request)
{
	struct pass *pass = request->payload;
	struct pn_guard_job *job = pass->job;
	struct pn_guard *guard = job->guard;
	struct pn_buf headers = pn_buf_init(2 * PN_HEADER_BYTES_MAX);

	job->leads = true;
	job->problem = problems[pn_guard_end(request)];
	if (job->problem == PN_PROBLEM_NONE) {
		job->call->answer.unsent_bytes = unsent_bytes(request);
		pn_guard_answer_headers(request->answer_headers, &headers);
		if (!pn_buf_failed(&headers))
			job->result =
			    pn_result_new(request->status, pn_buf_str(&headers),
				(struct pn_str){ NULL, 0 }, request->answer);
		if (job->result == NULL)
			job->problem = PN_PROBLEM_MEMORY;
	}
	pn_buf_done(&headers);
	pass_free(pass);
	/* Before it is told: whoever has its answer finds its place free. */
	pn_guard_lock(guard);
	assert(guard->passing > 0);
	guard->passing--;
	pn_guard_unlock(guard);
	pn_job_answer(job);
}

static struct pass *
pass_new(struct pn_guard_job *job)
{
	const struct pn_guard_forward forward = {
		.route = job->route,
		.call = job->call,
		.rest = job->rest,
	};
	struct pass *pass = calloc(1, sizeof(*pass));

	if (pass == NULL)
		return NULL;
	pass->job = job;
	pass->url = pn_buf_init(PN_GUARD_URL_BYTES_MAX);
	pass->headers = pn_buf_init(2 * PN_HEADER_BYTES_MAX);
	pn_guard_forward_url(&forward, &pass->url);
	pn_guard_forward_headers(&forward, &pass->headers);
	if (pn_buf_failed(&pass->url) || pn_buf_failed(&pass->headers)) {
		pass_free(pass);
		return NULL;
	}
	pass->request = pn_job_request(job, &pass->url, &pass->headers);
	pass->request.done = passed;
	pass->request.payload = pass;
	return pass;
}

void
pn_guard_pass(struct pn_guard *guard, struct pn_guard_job *job)
{
	struct pass *pass = pass_new(job);
	enum pn_problem problem = PN_PROBLEM_NONE;

	if (pass == NULL) {
		pn_job_answer_problem(job, PN_PROBLEM_MEMORY);
		return;
	}
	pn_guard_lock(guard);
	assert(guard->passing <= PN_PASSING_MAX);
	if (guard->stopping)
		problem = PN_PROBLEM_STOPPING;
	else if (guard->passing == PN_PASSING_MAX)
		problem = PN_PROBLEM_NO_ROOM;
	if (problem == PN_PROBLEM_NONE) {
		guard->passing++;
		pn_client_send(guard->client, &pass->request);
	}
	pn_guard_unlock(guard);
	if (problem == PN_PROBLEM_NONE)
		return;
	pass_free(pass);
	if (problem == PN_PROBLEM_NO_ROOM)
		job->detail = "It is one of those that pass through without a "
			      "key: of these the gateway has 256 at a time.";
	pn_job_answer_problem(job, problem);
}
