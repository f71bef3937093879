/*
 * The pipeline: one request in, one outcome out.
 *
 *   verify --accepted-----------> record the events ----+
 *     |                                                 +--> store --> done()
 *     +-----verified, refused --> quarantine -----------+
 *     |
 *     +-----unverified ---------> receipt (lossy; of a flood a brief one),
 *                                 done() at once
 *
 * Nothing unverified reaches the store's statement, and nothing verified is
 * answered before it is committed: a signed message that cannot be recorded is
 * quarantined first, and its refusal is told only then (503 when it could not
 * be committed), or the provider's evidence would exist nowhere.
 *
 * A reply is rendered from the outcome in the dialect of this request; that of a
 * success before the submission, because the store keeps it with the key (and
 * because after the commit nothing must be able to fail). When rendering
 * fails (memory) the reply is an empty 503: never a success by accident.
 *
 * Quarantine entries are told apart by subject (the notification's id, else a
 * digest of the body) and fingerprint: of the events if they were read, else of
 * the provider's witness of "the same message", else of the decrypted payload,
 * else of the body: ciphertexts, times and signatures are made anew at each retry.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "ingest_internal.h"

/* receipts.verdict of a 429 and of an address that is not allowed: the only ones
 * that are not a provider's. */
static const char rate_limited[] = "rate_limited";
static const char not_allowed[] = "not_allowed";

static const char *const store_verdicts[] = {
	[PN_STORE_RECORDED] = "recorded",
	[PN_STORE_DUPLICATE] = "duplicate",
	[PN_STORE_QUARANTINED] = "quarantined",
	[PN_STORE_CONFLICT] = "conflict",
	[PN_STORE_UNAVAILABLE] = "unavailable",
};

/* -- the end ------------------------------------------------------------------------- */

static int
render(struct pn_ingest_job *job, enum pn_outcome outcome)
{
	const struct pn_provider *provider = job->route->provider;

	assert((unsigned)outcome < PN_OUTCOME_COUNT);
	job->outcome = outcome;
	job->reply = (struct pn_reply){ .body = PN_STR("") };
	return provider->reply(job->notification.dialect, outcome,
	    pn_ingest_message(outcome), job->arena, &job->reply);
}

/* Sets outcome and reply; what cannot be rendered is unavailable. */
static void
decide(struct pn_ingest_job *job, enum pn_outcome outcome)
{
	if (render(job, outcome) != 0) {
		job->outcome = PN_OUTCOME_UNAVAILABLE;
		job->reply = (struct pn_reply){ .body = PN_STR(""),
			.content_type = "text/plain" };
	}
}

/* Once a notification, when it is decided. What could not be rendered was not
 * answered as it ended. */
static void
count(const struct pn_ingest_job *job, enum pn_request_end end)
{
	if (job->outcome == PN_OUTCOME_UNAVAILABLE)
		end = PN_REQUEST_UNAVAILABLE;
	pn_series_add(job->route->series.requests, end, 1);
}

static void
give_up(struct pn_ingest_job *job, const char *why)
{
	pn_report_unavailable(job, why);
	decide(job, PN_OUTCOME_UNAVAILABLE);
	count(job, PN_REQUEST_UNAVAILABLE);
	pn_report_answered(job, store_verdicts[PN_STORE_UNAVAILABLE]);
	job->done(job);
	job->release(job);
}

/* How this outcome is answered to this request. */
static unsigned
status_of(const struct pn_ingest_job *job, enum pn_outcome outcome)
{
	if (job->reply.status_is_200)
		return 200;
	return job->ingest->status_of == NULL ? 0
					      : job->ingest->status_of(outcome);
}

/* -- the store's answer ---------------------------------------------------------------- */

static enum pn_outcome
outcome_of_recorded(struct pn_ingest_job *job, enum pn_store_verdict verdict,
    enum pn_request_end *ret_end)
{
	switch (verdict) {
	case PN_STORE_RECORDED:
		*ret_end = PN_REQUEST_ACCEPTED;
		pn_route_note_clock(job->route, job->notification.signed_at_us,
		    job->received_us);
		return PN_OUTCOME_SUCCESS;
	case PN_STORE_DUPLICATE:
		*ret_end = PN_REQUEST_DUPLICATE;
		return PN_OUTCOME_SUCCESS;
	case PN_STORE_QUARANTINED:
	case PN_STORE_CONFLICT:
		*ret_end = verdict == PN_STORE_CONFLICT
			       ? PN_REQUEST_CONFLICT
			       : PN_REQUEST_QUARANTINED;
		pn_report_conflict(job);
		return PN_OUTCOME_CONFLICT;
	case PN_STORE_UNAVAILABLE: break;
	}
	pn_report_unavailable(job, "not committed in time");
	return PN_OUTCOME_UNAVAILABLE;
}

/* From a store thread. */
static void
store_done(struct pn_submission *submission, enum pn_store_verdict verdict,
    void *payload)
{
	struct pn_ingest_job *job = payload;
	enum pn_request_end end = PN_REQUEST_UNAVAILABLE;
	enum pn_outcome outcome;

	assert(submission == &job->submission);
	if (submission->quarantine_reason == NULL) {
		outcome = outcome_of_recorded(job, verdict, &end);
	} else if (verdict == PN_STORE_UNAVAILABLE) {
		pn_report_unavailable(job, "not committed in time");
		outcome = PN_OUTCOME_UNAVAILABLE;
	} else {
		outcome = pn_ingest_outcome(job->notification.verdict);
		end = pn_ingest_end(job->notification.verdict);
		assert(outcome != PN_OUTCOME_SUCCESS);
	}
	/* The success was rendered beforehand. */
	if (outcome != PN_OUTCOME_SUCCESS)
		decide(job, outcome);
	assert(
	    job->outcome == outcome || job->outcome == PN_OUTCOME_UNAVAILABLE);
	count(job, end);
	pn_report_answered(job, store_verdicts[verdict]);
	job->done(job);
}

static void
store_release(struct pn_submission *submission, void *payload)
{
	struct pn_ingest_job *job = payload;

	assert(submission == &job->submission);
	job->release(job);
}

/* -- to the store ------------------------------------------------------------------------ */

static int
fill_submission(struct pn_ingest_job *job)
{
	const struct pn_route *route = job->route;
	const struct pn_notification *n = &job->notification;
	struct pn_submission *s = &job->submission;

	*s = (struct pn_submission){
		.provider = pn_str_from(route->provider->name),
		.tenant = pn_str_from(route->conf->tenant),
		.route = route->name,
		.peer = job->request->peer,
		.notify_id = n->notify_id,
		.events = n->events,
		.event_count = n->event_count,
		.headers = pn_evidence_headers(
		    route->provider, job->request, job->arena),
		.body = job->request->body,
		.payload = n->payload,
		.done = store_done,
		.release = store_release,
		.payload_pointer = job,
	};
	if (s->headers.data == NULL || render(job, PN_OUTCOME_SUCCESS) != 0)
		return -ENOMEM;
	s->success_body = job->reply.body;
	s->refused_status = (int)status_of(job, PN_OUTCOME_CONFLICT);
	memcpy(s->request_id, job->request_id, PN_REQUEST_ID_BYTES);
	memcpy(s->key_fingerprint, n->key_fingerprint, PN_SHA256_BYTES);
	return 0;
}

static void
quarantine_fingerprint(
    const struct pn_ingest_job *job, unsigned char ret_digest[PN_SHA256_BYTES])
{
	const struct pn_notification *n = &job->notification;

	if (n->witness.len > 0)
		pn_sha256(n->witness, ret_digest);
	else if (n->payload.len > 0)
		pn_sha256(n->payload, ret_digest);
	else
		pn_sha256(job->request->body, ret_digest);
}

static int
fill_quarantine(struct pn_ingest_job *job)
{
	const struct pn_notification *n = &job->notification;
	struct pn_submission *s = &job->submission;
	unsigned char digest[PN_SHA256_BYTES];
	char hex[2 * PN_SHA256_BYTES + 1];

	s->events = NULL;
	s->event_count = 0;
	s->success_body = (struct pn_str){ NULL, 0 };
	s->refused_status = (int)status_of(job, pn_ingest_outcome(n->verdict));
	s->quarantine_verdict = pn_str_from(pn_verdict_name(n->verdict));
	s->quarantine_reason =
	    n->reason[0] == '\0' ? pn_verdict_name(n->verdict) : n->reason;
	quarantine_fingerprint(job, s->quarantine_fingerprint);
	s->quarantine_subject = n->notify_id;
	if (n->notify_id.len > 0)
		return 0;
	pn_sha256(job->request->body, digest);
	pn_hex_lower(digest, sizeof(digest), hex);
	s->quarantine_subject =
	    pn_arena_copy(job->arena, (struct pn_str){ hex, sizeof(hex) - 1 });
	return s->quarantine_subject.data == NULL ? -ENOMEM : 0;
}

static void
submit_verified(struct pn_ingest_job *job)
{
	const struct pn_notification *n = &job->notification;
	int r = fill_submission(job);

	assert(n->verified);
	if (r == 0 && n->verdict == PN_VERDICT_ACCEPTED) {
		assert(n->event_count > 0);
		assert(n->event_count <= PN_EVENTS_PER_NOTIFICATION_MAX);
		if (n->alarm)
			pn_report_alarm(job);
	} else if (r == 0) {
		pn_report_refused(job);
		r = fill_quarantine(job);
	}
	if (r < 0) {
		give_up(job, "out of memory");
		return;
	}
	if (job->ingest->store == NULL ||
	    pn_store_submit(job->ingest->store, &job->submission) != 0)
		give_up(job, NULL);
}

/* -- the beginning ------------------------------------------------------------------------ */

static bool
is_account_limited(const struct pn_route *route)
{
	int64_t per_second = route->conf->rate_limit_per_second;

	return per_second > 0 && pn_rate_exhausted(route->rate, per_second,
				     pn_clock_monotonic_us());
}

/* Whether the peer has used up its allowance of unverified requests, or all
 * together the account's. In this order: what is the peer's fault is not charged
 * to the account. */
static bool
is_limited(struct pn_ingest_job *job)
{
	return (job->rate_limited != NULL && job->rate_limited(job)) ||
	       is_account_limited(job->route);
}

static void
refuse_unverified(struct pn_ingest_job *job)
{
	const struct pn_notification *n = &job->notification;
	bool limited = is_limited(job);
	const char *verdict =
	    limited ? rate_limited : pn_verdict_name(n->verdict);

	if (limited) {
		pn_report_rate_limited(job);
		decide(job, PN_OUTCOME_RATE_LIMITED);
		count(job, PN_REQUEST_RATE_LIMITED);
	} else {
		pn_report_refused(job);
		decide(job, pn_ingest_outcome(n->verdict));
		count(job,
		    n->probe ? PN_REQUEST_PROBE : pn_ingest_end(n->verdict));
	}
	pn_report_receipt(job, verdict, status_of(job, job->outcome), limited);
	pn_report_answered(job, verdict);
	job->done(job);
	job->release(job);
}

/* Verifies, and tells how long it took. */
static int
verify(struct pn_ingest_job *job)
{
	const struct pn_route *route = job->route;
	int64_t began_us = pn_clock_monotonic_us();
	int r = route->provider->verify(route->account, job->request,
	    job->received_us, job->arena, &job->notification);

	pn_series_observe(
	    route->series.verify_seconds, pn_clock_monotonic_us() - began_us);
	return r;
}

/* Signed right, and then memory was out: the request's own, most likely, so that
 * a retry would fare no better. It must not be dropped: to quarantine, by its
 * body, with nothing that may be half made. */
static void
strip(struct pn_notification *n)
{
	n->verdict = PN_VERDICT_UNSUPPORTED;
	n->reason = "needs more memory than one request may take";
	n->notify_id = n->payload = n->witness = (struct pn_str){ NULL, 0 };
	n->events = NULL;
	n->event_count = 0;
	n->alarm = false;
}

void
pn_ingest_submit(struct pn_ingest *ingest, struct pn_ingest_job *job)
{
	struct pn_notification *n = &job->notification;
	int r;

	assert(job->route != NULL && job->done != NULL);
	job->ingest = ingest;
	job->received_us = pn_clock_realtime_us();
	*n = (struct pn_notification){ .reason = "" };
	pn_request_id_make(job->received_us, job->request_id);
	r = verify(job);
	if (r < 0) {
		n->dialect = job->route->provider->dialect_of(job->request);
		if (!n->verified) {
			give_up(job, "out of memory");
			return;
		}
		strip(n);
	}
	assert(n->reason != NULL);
	assert(n->verdict != PN_VERDICT_ACCEPTED || n->verified);
	if (!n->verified) {
		refuse_unverified(job);
		return;
	}
	pn_route_count_verified(job->route, n->key_fingerprint);
	submit_verified(job);
}

/* -- refused before there was a whole request ------------------------------------------------ */

static const struct refusal_row {
	enum pn_outcome outcome;
	const char *reason;
	unsigned status;   /* 0: of the outcome */
	bool notification; /* counted as one; a browser's GET is none */
} refusal_rows[] = {
	[PN_REFUSE_BODY_OVER_LIMIT] = { PN_OUTCOME_MALFORMED,
	    "body over the limit", 413, true },
	[PN_REFUSE_LENGTH_AMBIGUOUS] = { PN_OUTCOME_MALFORMED,
	    "ambiguous length: Content-Length twice, not a number, or with"
	    " Transfer-Encoding; or a folded or nameless header",
	    0, true },
	[PN_REFUSE_METHOD] = { PN_OUTCOME_MALFORMED,
	    "not a POST: a notification comes in a body", 405, false },
	[PN_REFUSE_ADDRESS] = { PN_OUTCOME_NOT_ALLOWED,
	    "the address is not in the account's allow", 0, true },
	[PN_REFUSE_HEADERS] = { PN_OUTCOME_MALFORMED, "too many headers", 431,
	    true },
	[PN_REFUSE_QUEUE_FULL] = { PN_OUTCOME_UNAVAILABLE, "shutting down", 0,
	    true },
};

/* Costs no allowance, and leaves no body: it is not looked at. */
static void
refuse_address(struct pn_ingest_job *job)
{
	struct pn_str forwarded;

	if (pn_request_header(job->request, "X-Forwarded-For", &forwarded) == 0)
		job->notification.reason =
		    job->request->peer.len == 0
			? "the address is not known: no X-Forwarded-For came"
			  " through the unix socket"
			: "the address is not in the account's allow; no"
			  " X-Forwarded-For came, so it may be a proxy's";
	count(job, PN_REQUEST_NOT_ALLOWED);
	pn_report_not_allowed(job, job->notification.reason);
	pn_report_receipt(job, not_allowed, status_of(job, job->outcome), true);
}

void
pn_ingest_refuse(struct pn_ingest *ingest, struct pn_ingest_job *job,
    enum pn_ingest_refusal why)
{
	const struct refusal_row *row = &refusal_rows[why];
	bool limited;

	assert((unsigned)why < PN_COUNT(refusal_rows));
	job->ingest = ingest;
	job->notification = (struct pn_notification){
		.verdict = PN_VERDICT_MALFORMED,
		.reason = row->reason,
		.dialect = job->route->provider->dialect_of(job->request),
	};
	pn_request_id_make(pn_clock_realtime_us(), job->request_id);
	decide(job, row->outcome);
	if (row->outcome == PN_OUTCOME_UNAVAILABLE) {
		count(job, PN_REQUEST_UNAVAILABLE);
		return; /* the sender comes again; nothing to tell */
	}
	if (why == PN_REFUSE_ADDRESS) {
		refuse_address(job);
		return;
	}
	limited = is_limited(job); /* the same answer all the same */
	if (row->notification)
		count(job,
		    limited ? PN_REQUEST_RATE_LIMITED : PN_REQUEST_MALFORMED);
	if (!limited)
		pn_report_cut(job, row->reason);
	pn_report_receipt(job, pn_verdict_name(PN_VERDICT_MALFORMED),
	    row->status != 0 ? row->status : status_of(job, row->outcome),
	    limited);
}
