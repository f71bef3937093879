/*
 * What a request came to, and how a client is told.
 *
 * A result is one piece of memory that all clients of a flight, its replays and
 * the settlement point into: two thousand who waited for one answer cost two
 * thousand pointers. Each call holds a reference until the server has let go of
 * it (end()), since the bytes on the wire are the result's own.
 *
 * Whose request was sent (leads) gets the upstream's headers: they may be meant
 * for that client alone, as a session's cookie is. All others get those that are
 * kept, so that what is told in the next second and what is told tomorrow are
 * the same. That holds too for an answer that is not kept.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "flight.h"

/* -- results ------------------------------------------------------------------- */

static struct pn_str
put(char **at, struct pn_str s)
{
	struct pn_str copy = { *at, s.len };

	if (s.len > 0)
		memcpy(*at, s.data, s.len);
	*at += s.len;
	return copy;
}

struct pn_result *
pn_result_new(
    int status, struct pn_str headers, struct pn_str kept, struct pn_str body)
{
	struct pn_result *result =
	    malloc(sizeof(*result) + headers.len + kept.len + body.len + 1);
	char *at;

	if (result == NULL)
		return NULL;
	at = (char *)(result + 1);
	*result = (struct pn_result){ .status = status };
	atomic_init(&result->refs, 1);
	result->headers = put(&at, headers);
	result->kept = put(&at, kept);
	result->body = put(&at, body);
	return result;
}

struct pn_result *
pn_result_ref(struct pn_result *result)
{
	int before =
	    atomic_fetch_add_explicit(&result->refs, 1, memory_order_relaxed);

	assert(before > 0);
	return result;
}

void
pn_result_unref(struct pn_result *result)
{
	int before;

	if (result == NULL)
		return;
	before =
	    atomic_fetch_sub_explicit(&result->refs, 1, memory_order_acq_rel);
	assert(before > 0);
	if (before == 1)
		free(result);
}

/* -- lists of jobs ---------------------------------------------------------------- */

void
pn_jobs_init(struct pn_jobs *jobs)
{
	jobs->first = NULL;
	jobs->end = &jobs->first;
}

void
pn_jobs_add(struct pn_jobs *jobs, struct pn_guard_job *job)
{
	assert(*jobs->end == NULL);
	job->next = NULL;
	*jobs->end = job;
	jobs->end = &job->next;
}

struct pn_guard_job *
pn_jobs_take(struct pn_jobs *jobs)
{
	struct pn_guard_job *job = jobs->first;

	if (job == NULL)
		return NULL;
	jobs->first = job->next;
	if (jobs->first == NULL)
		jobs->end = &jobs->first;
	job->next = NULL;
	return job;
}

void
pn_job_waits(struct pn_guard_job *job, int64_t now_us)
{
	if (job->waits_since_us != 0)
		return;
	pn_metric_add(PN_METRIC_GUARD_WAITS, 1);
	job->waits_since_us = now_us;
}

/* -- answers ------------------------------------------------------------------------ */

static int
answer_result(struct pn_guard_job *job)
{
	const struct pn_result *result = job->result;
	struct pn_answer *answer = &job->call->answer;

	answer->status = (unsigned)result->status;
	answer->body = result->body;
	return pn_guard_header_list(job->leads ? result->headers : result->kept,
	    job->replayed, result->expires_at_us, job->call->arena, answer);
}

void
pn_job_answer(struct pn_guard_job *job)
{
	struct pn_call *call = job->call;

	if (job->result == NULL)
		assert(job->problem != PN_PROBLEM_NONE);
	else if (answer_result(job) != 0)
		job->problem = PN_PROBLEM_MEMORY;
	if (job->problem != PN_PROBLEM_NONE)
		pn_problem_answer(job->problem, job->detail,
		    job->retry_after_us, NULL, call->arena, &call->answer);
	pn_guard_count(job, job->problem);
	if (job->waits_since_us != 0)
		pn_series_observe(job->route->series.wait,
		    pn_clock_monotonic_us() - job->waits_since_us);
	pn_call_done(call);
	pn_call_release(call);
}

void
pn_job_answer_problem(struct pn_guard_job *job, enum pn_problem problem)
{
	assert(job->result == NULL);
	job->problem = problem;
	pn_job_answer(job);
}
