/*
 * A flight: from the first request under a key to the answer of all equal ones.
 *
 * Requests that are the same - scope and hash - while one of them is under way
 * join it in memory and wait there: one claim, one statement and no thread for
 * any number of them. A request with another hash is another flight, and the
 * database tells it that the key is somebody else's.
 *
 * What a client may be told, and when:
 * - an answer of the upstream that is kept, after the commit that keeps it;
 * - any other outcome, after the commit that says what it means for the key (if
 *   that one is lost the lease runs out, which is the cautious reading);
 * - that it must wait longer (409), at any time;
 * - 503 when the database does not say in time. Then the flight goes on without
 *   its clients: a key that turns out to be ours is freed, nothing was sent.
 *
 * Where this process can die: before the claim's commit, the key is free; from
 * then on until the settlement's, it is leased, and the lease runs out (the
 * upstream may have worked: `unknown` decides); after it, the key is settled and
 * the client's retry is told the same.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/digest.h"
#include "paynotify/limits.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "flight.h"

enum { SCOPE_BYTES_MAX = 1024 };

/* -- what is done without the lock ------------------------------------------------ */

void
pn_after_init(struct pn_after *after)
{
	pn_jobs_init(&after->answers);
	after->freed = NULL;
}

void
pn_after_do(struct pn_after *after)
{
	struct pn_guard_job *job;
	struct pn_flight *flight;

	while ((job = pn_jobs_take(&after->answers)) != NULL)
		pn_job_answer(job);
	while ((flight = after->freed) != NULL) {
		after->freed = flight->next;
		pn_result_unref(flight->result);
		pn_buf_done(&flight->texts);
		pn_buf_done(&flight->url);
		pn_buf_done(&flight->headers);
		free(flight);
	}
}

void
pn_flight_log(
    const struct pn_flight *flight, enum pn_log_level level, const char *what)
{
	char tenant[PN_ID_BYTES_MAX + 1];

	(void)snprintf(tenant, sizeof(tenant), PN_STR_FMT,
	    PN_STR_ARG(flight->scope.tenant));
	pn_log(level,
	    &(struct pn_log_about){ .tenant = tenant,
		.subject = flight->route->conf->name,
		.key = flight->scope.key },
	    "[guard %s] attempt %d: %s", flight->route->conf->name,
	    flight->attempt, what);
}

/* -- the table ------------------------------------------------------------------------ */

struct pn_flight **
pn_flight_bucket(struct pn_guard *guard, const unsigned char *digest)
{
	size_t at = (size_t)digest[1] << 8 | digest[0];

	return &guard->buckets[at % PN_FLIGHT_BUCKETS];
}

static struct pn_flight *
find(struct pn_guard *guard, const unsigned char *digest,
    const unsigned char *hash)
{
	struct pn_flight *f = *pn_flight_bucket(guard, digest);

	while (f != NULL &&
	       (memcmp(f->digest, digest, PN_CLAIM_DIGEST_BYTES) != 0 ||
		   memcmp(f->hash, hash, PN_SHA256_BYTES) != 0))
		f = f->next_in_bucket;
	return f;
}

static void
link_in(struct pn_flight *f)
{
	struct pn_guard *guard = f->guard;
	struct pn_flight **at = pn_flight_bucket(guard, f->digest);

	f->next_in_bucket = *at;
	*at = f;
	f->next = guard->first;
	if (f->next != NULL)
		f->next->prev = f;
	guard->first = f;
	if (guard->flight_count++ == 0)
		(void)pthread_cond_signal(&guard->changed);
	pn_metric_set(PN_METRIC_GUARD_FLIGHTS, (int64_t)guard->flight_count);
}

static void
leave_bucket(struct pn_flight *f)
{
	struct pn_flight **at = pn_flight_bucket(f->guard, f->digest);

	while (*at != f)
		at = &(*at)->next_in_bucket;
	*at = f->next_in_bucket;
}

static void
link_out(struct pn_flight *f)
{
	struct pn_guard *guard = f->guard;

	if (!f->is_hidden)
		leave_bucket(f);
	*(f->prev == NULL ? &guard->first : &f->prev->next) = f->next;
	if (f->next != NULL)
		f->next->prev = f->prev;
	assert(guard->flight_count > 0);
	guard->flight_count--;
	pn_metric_set(PN_METRIC_GUARD_FLIGHTS, (int64_t)guard->flight_count);
}

/* -- who waits ---------------------------------------------------------------------------- */

static void
refuse(
    struct pn_guard_job *job, enum pn_problem problem, struct pn_after *after)
{
	job->problem = problem;
	pn_jobs_add(&after->answers, job);
}

/* How long who must wait should: the lease of another, or a moment. */
static void
refuse_in_progress(const struct pn_flight *f, struct pn_guard_job *job,
    int64_t now_us, struct pn_after *after)
{
	if (f->busy_until_us > now_us)
		job->retry_after_us = f->busy_until_us - now_us;
	refuse(job, PN_PROBLEM_IN_PROGRESS, after);
}

void
pn_flight_expire_jobs(
    struct pn_flight *flight, int64_t now_us, struct pn_after *after)
{
	struct pn_jobs kept;
	struct pn_guard_job *job;

	if (!flight->judged)
		return; /* the claim tells soon, and most often the answer */
	pn_jobs_init(&kept);
	while ((job = pn_jobs_take(&flight->jobs)) != NULL)
		if (job->until_us > now_us || job->leads)
			pn_jobs_add(&kept, job);
		else
			refuse_in_progress(flight, job, now_us, after);
	flight->jobs = kept;
	if (kept.first == NULL)
		pn_jobs_init(&flight->jobs);
}

void
pn_flight_abandon(
    struct pn_flight *flight, enum pn_problem problem, struct pn_after *after)
{
	struct pn_guard_job *job;

	while ((job = pn_jobs_take(&flight->jobs)) != NULL)
		refuse(job, problem, after);
}

/* Who leads gets what the upstream said, all others what is kept of it: if the
 * answer is, what anybody will get later. */
void
pn_flight_tell(struct pn_flight *f, struct pn_after *after)
{
	struct pn_result *result = f->result;
	bool kept = result != NULL && result->expires_at_us != 0;
	struct pn_guard_job *job;

	assert(f->problem != PN_PROBLEM_NONE || result != NULL);
	while ((job = pn_jobs_take(&f->jobs)) != NULL) {
		if (f->problem == PN_PROBLEM_NONE) {
			job->result = pn_result_ref(result);
			job->replayed = kept && !job->leads;
		}
		job->detail = f->reason[0] == '\0' ? NULL : f->reason;
		refuse(job, f->problem, after);
	}
}

void
pn_flight_end(struct pn_flight *flight, struct pn_after *after)
{
	assert(!flight->renewing);
	pn_flight_tell(flight, after);
	link_out(flight);
	flight->next = after->freed;
	after->freed = flight;
}

/* -- a new flight ---------------------------------------------------------------------------- */

static struct pn_str
add_text(struct pn_buf *texts, struct pn_str s)
{
	pn_buf_add_str(texts, s);
	return (struct pn_str){ NULL, s.len };
}

/* The clients' memory may go before the flight's end. */
static void
copy_scope(struct pn_flight *f, const struct pn_guard_job *job)
{
	struct pn_claim_scope *scope = &f->scope;

	f->texts = pn_buf_init(SCOPE_BYTES_MAX);
	scope->tenant = add_text(&f->texts, job->tenant);
	scope->key = add_text(&f->texts, job->key);
	scope->route = job->route->text;
	scope->tenant.data = f->texts.data;
	scope->key.data = f->texts.data + scope->tenant.len;
}

static void
make_token(unsigned char token[PN_LEASE_TOKEN_BYTES])
{
	pn_random_bytes(token, PN_LEASE_TOKEN_BYTES);
	/* RFC 9562: version 4, variant 10. */
	token[6] = (unsigned char)((token[6] & 0x0f) | 0x40);
	token[8] = (unsigned char)((token[8] & 0x3f) | 0x80);
}

static struct pn_flight *
flight_new(const struct pn_guard_job *job, const unsigned char *digest)
{
	struct pn_flight *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->guard = job->guard;
	f->route = job->route;
	f->url = pn_buf_init(PN_GUARD_URL_BYTES_MAX);
	f->headers = pn_buf_init(2 * PN_HEADER_BYTES_MAX);
	memcpy(f->digest, digest, sizeof(f->digest));
	memcpy(f->hash, job->hash, sizeof(f->hash));
	pn_jobs_init(&f->jobs);
	copy_scope(f, job);
	if (pn_buf_failed(&f->texts)) {
		pn_buf_done(&f->texts);
		free(f);
		return NULL;
	}
	f->claim = (struct pn_claim){
		.scope = f->scope,
		.terms = &f->route->terms,
		.done = pn_flight_claimed,
		.payload = f,
	};
	memcpy(f->claim.request_hash, job->hash, PN_SHA256_BYTES);
	make_token(f->claim.token);
	return f;
}

/* -- joining -------------------------------------------------------------------------------------- */

static bool
answer_remembered(struct pn_guard *guard, struct pn_guard_job *job,
    const unsigned char *digest, struct pn_after *after)
{
	struct pn_result *result;
	bool same = false;

	if (!pn_claims_are_heard(guard->claims))
		return false;
	result = pn_memory_find(
	    &guard->memory, digest, job->hash, pn_clock_realtime_us(), &same);
	if (result == NULL)
		return false;
	if (same) {
		job->result = pn_result_ref(result);
		job->replayed = true;
	}
	refuse(job, same ? PN_PROBLEM_NONE : PN_PROBLEM_MISMATCH, after);
	return true;
}

static void
join(struct pn_guard *guard, struct pn_guard_job *job,
    const unsigned char *digest, int64_t now_us, struct pn_after *after)
{
	struct pn_flight *f = find(guard, digest, job->hash);

	if (f != NULL && f->judged && job->until_us <= now_us) {
		refuse_in_progress(f, job, now_us, after);
		return;
	}
	if (f != NULL) {
		pn_job_waits(job, now_us);
		pn_jobs_add(&f->jobs, job);
		return;
	}
	f = flight_new(job, digest);
	if (f == NULL) {
		refuse(job, PN_PROBLEM_MEMORY, after);
		return;
	}
	pn_doubts_take(&guard->doubts, f, now_us);
	link_in(f);
	pn_jobs_add(&f->jobs, job);
	pn_flight_claim(f, now_us);
}

void
pn_flight_hide(struct pn_flight *f, int64_t now_us, struct pn_after *after)
{
	struct pn_jobs jobs = f->jobs;
	struct pn_guard_job *job;

	assert(f->lost && !f->is_hidden);
	f->is_hidden = true;
	leave_bucket(f);
	if (jobs.first == NULL)
		return;
	pn_jobs_init(&f->jobs);
	/* Taken one by one: the list's end may be its own beginning. */
	while ((job = jobs.first) != NULL) {
		jobs.first = job->next;
		job->next = NULL;
		if (job->leads)
			pn_jobs_add(&f->jobs, job);
		else if (f->guard->stopping)
			refuse(job, PN_PROBLEM_STOPPING, after);
		else
			join(f->guard, job, f->digest, now_us, after);
	}
}

void
pn_flight_join(struct pn_guard *guard, struct pn_guard_job *job)
{
	struct pn_claim_scope scope = { job->tenant, job->route->text,
		job->key };
	int64_t now_us = pn_clock_monotonic_us();
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	struct pn_after after;

	pn_after_init(&after);
	pn_claim_digest(&scope, digest);
	job->until_us = now_us + job->route->conf->wait_us;
	pn_guard_lock(guard);
	if (guard->stopping)
		refuse(job, PN_PROBLEM_STOPPING, &after);
	else if (!answer_remembered(guard, job, digest, &after))
		join(guard, job, digest, now_us, &after);
	pn_guard_unlock(guard);
	pn_after_do(&after);
}
