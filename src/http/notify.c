/*
 * Notifications: what the server serves to payment providers. A call becomes a
 * job of the pipeline (ingest), its outcome an answer. This is the one place
 * where an outcome becomes a status code (DESIGN.md section 6); what the body
 * says is the provider's affair.
 *
 * What is refused before there is a whole request is answered in plain text, and
 * has a receipt as well, except a 404: a path that is no account's has nobody
 * whose receipt it could be, and scanners ask for many. One that looks like an
 * account's is told in the log now and then: a mistyped notify_url would show
 * nowhere else. An address that is not
 * allowed, an ambiguous length and a stop are told in the provider's own words
 * instead: those may be a genuine notification that must come again.
 *
 * Retry-After goes with 429 and 503: 2 to 5 seconds, spread, so that the senders
 * that a short outage refused do not all come back in the same second.
 */
#include <assert.h>

#include "paynotify/ingest.h"
#include "paynotify/limits.h"
#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/server.h"

static const unsigned status_of_outcome[PN_OUTCOME_COUNT] = {
	[PN_OUTCOME_SUCCESS] = 200,
	[PN_OUTCOME_MALFORMED] = 400,
	[PN_OUTCOME_UNAUTHENTIC] = 401,
	[PN_OUTCOME_NOT_ALLOWED] = 403,
	[PN_OUTCOME_WRONG_ACCOUNT] = 403,
	[PN_OUTCOME_CONFLICT] = 422,
	[PN_OUTCOME_RATE_LIMITED] = 429,
	[PN_OUTCOME_UNDECRYPTABLE] = 500,
	[PN_OUTCOME_UNAVAILABLE] = 503,
};

static const struct pn_header page_headers[] = {
	{ { "Content-Type", 12 }, { "text/plain", 10 } },
	{ { "Allow", 5 }, { "POST", 4 } }, /* only of a 405 */
};

/* clang-format off */
#define PAGE(code, count, text) \
	{ .status = (code), .headers = page_headers, .header_count = (count), \
	  .body = { (text), sizeof(text) - 1 } }
/* clang-format on */

static const struct refusal_row {
	enum pn_ingest_refusal why; /* for the receipt */
	struct pn_answer page;      /* status 0: the pipeline's reply */
} refusal_rows[PN_REFUSED_COUNT] = {
	[PN_REFUSED_PATH] = { .page = PAGE(404, 1, "not found") },
	[PN_REFUSED_ADDRESS] = { .why = PN_REFUSE_ADDRESS },
	[PN_REFUSED_METHOD] = { PN_REFUSE_METHOD,
	    PAGE(405, 2, "method not allowed") },
	[PN_REFUSED_BODY] = { PN_REFUSE_BODY_OVER_LIMIT,
	    PAGE(413, 1, "body too large") },
	[PN_REFUSED_HEADERS] = { PN_REFUSE_HEADERS,
	    PAGE(431, 1, "too many headers") },
	[PN_REFUSED_LENGTH] = { .why = PN_REFUSE_LENGTH_AMBIGUOUS },
	[PN_REFUSED_STOPPING] = { .why = PN_REFUSE_QUEUE_FULL },
};

enum { PATH_TOLD_BYTES_MAX = 128 }; /* of a path that is no account's */
static const int64_t LOG_INTERVAL_US = 10 * PN_SECOND_US;

static const char *const retry_after[] = { "2", "3", "4", "5" };

/* What a call carries. */
struct notify_job {
	struct pn_ingest_job job;
	struct pn_header headers[2]; /* of the answer */
};

static unsigned
status_of(enum pn_outcome outcome)
{
	assert((unsigned)outcome < PN_OUTCOME_COUNT);
	return status_of_outcome[outcome];
}

/* -- the pipeline's answer -------------------------------------------------- */

static void
set_answer(struct pn_call *call)
{
	struct notify_job *notify = call->job;
	const struct pn_reply *reply = &notify->job.reply;
	struct pn_header *headers = notify->headers;
	struct pn_answer *answer = &call->answer;

	answer->status =
	    reply->status_is_200 ? 200 : status_of(notify->job.outcome);
	answer->body = reply->body;
	answer->headers = headers;
	answer->header_count = 1;
	headers[0].name = PN_STR("Content-Type");
	headers[0].value = pn_str_from(
	    reply->content_type == NULL ? "text/plain" : reply->content_type);
	if (answer->status == 429 || answer->status == 503) {
		uint64_t spread = (uint64_t)pn_clock_monotonic_us();

		answer->header_count = 2;
		headers[1].name = PN_STR("Retry-After");
		headers[1].value =
		    pn_str_from(retry_after[spread % PN_COUNT(retry_after)]);
	}
}

static void
job_done(struct pn_ingest_job *job)
{
	set_answer(job->payload);
	pn_call_done(job->payload);
}

static void
job_release(struct pn_ingest_job *job)
{
	pn_call_release(job->payload);
}

static bool
job_rate_limited(struct pn_ingest_job *job)
{
	return pn_call_rate_limited(job->payload);
}

/* -- the handler -------------------------------------------------------------- */

static void
notify_open(void *service)
{
	pn_ingest_set_statuses(service, status_of);
}

/* The job is zeroed by then. */
static struct pn_ingest_job *
prepare(struct pn_ingest *ingest, struct pn_call *call)
{
	struct pn_ingest_job *job = &((struct notify_job *)call->job)->job;

	if (call->request.path.len <= PN_PATH_BYTES_MAX)
		job->route = pn_ingest_route(ingest, call->request.path);
	job->request = &call->request;
	job->arena = call->arena;
	job->done = job_done;
	job->release = job_release;
	job->rate_limited = job_rate_limited;
	job->payload = call;
	return job;
}

static enum pn_refused
notify_begin(void *service, struct pn_call *call)
{
	const struct pn_route *route = prepare(service, call)->route;

	if (route == NULL)
		return PN_REFUSED_PATH;
	call->seconds = pn_ingest_request_seconds(route);
	if (!pn_ingest_admits(route, call->request.peer))
		return PN_REFUSED_ADDRESS;
	if (!pn_str_is(call->request.method, "POST"))
		return PN_REFUSED_METHOD;
	return PN_REFUSED_NOT;
}

static void
notify_submit(void *service, struct pn_call *call)
{
	struct notify_job *notify = call->job;

	pn_ingest_submit(service, &notify->job);
}

/* Scanners ask for anything, but hardly for this. */
static void
tell_unknown(struct pn_str path)
{
	if (!pn_str_starts(path, "/notify/"))
		return;
	if (path.len > PATH_TOLD_BYTES_MAX)
		path.len = PATH_TOLD_BYTES_MAX;
	pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
	    "no account is served at \"%.*s\": is it a notify_url that is "
	    "mistyped, or lacks its section",
	    (int)path.len, path.data);
}

static void
notify_refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	const struct refusal_row *row = &refusal_rows[why];
	struct pn_ingest_job *job = &((struct notify_job *)call->job)->job;

	assert(why > PN_REFUSED_NOT && why < PN_REFUSED_COUNT);
	if (job->request == NULL) /* there was no begin() */
		job = prepare(service, call);
	job->body_bytes = call->body_bytes;
	if (job->route == NULL) {
		pn_metric_add(PN_METRIC_NOT_FOUND, 1);
		tell_unknown(call->request.path);
	} else {
		pn_ingest_refuse(service, job, row->why);
	}
	if (row->page.status != 0)
		call->answer = row->page;
	else
		set_answer(call);
}

/* Only now: what was submitted refers to the account's texts to the last. */
static void
notify_end(struct pn_call *call)
{
	pn_route_unref(((struct notify_job *)call->job)->job.route);
}

const struct pn_handler pn_notifications = {
	.job_bytes = sizeof(struct notify_job),
	.begin = notify_begin,
	.submit = notify_submit,
	.refuse = notify_refuse,
	.end = notify_end,
	.open = notify_open,
};
