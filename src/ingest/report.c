/*
 * What is told about a request: a line in the log, a receipt, the headers that
 * evidence keeps.
 *
 * Whoever can reach the port can cause refusals: their lines are alike for the
 * log if account and verdict are (their subject), and a flood of them collapses.
 * The digest in the line (to find the body in a capture of the proxy) is computed
 * only for one that will be written. What carries a right signature comes from
 * the provider, and its line is never held back.
 *
 * A request without a single header of the provider's was most often stripped by
 * a proxy or a WAF on the way; an operator who reads only "missing header" looks
 * in the wrong place, so the line says so.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "ingest_internal.h"

enum { HEX_BYTES = 2 * PN_SHA256_BYTES + 1 };

/* Whom a line is about. The texts live as long as the struct. */
struct subject {
	char request_id[PN_UUID_TEXT_BYTES];
	char peer[64];
	struct pn_log_about about;
};

static void
subject_of(const struct pn_ingest_job *job, struct subject *ret)
{
	pn_uuid_text(job->request_id, ret->request_id);
	(void)snprintf(ret->peer, sizeof(ret->peer), PN_STR_FMT,
	    PN_STR_ARG(job->request->peer));
	ret->about = (struct pn_log_about){
		.request_id = ret->request_id,
		.provider = job->route->provider->name,
		.tenant = job->route->conf->tenant,
		.peer = ret->peer[0] == '\0' ? NULL : ret->peer,
	};
	if (job->notification.event_count > 0)
		ret->about.key = job->notification.events[0].key;
}

/* A provider that signs in headers, and none of them is there. */
static const char *
hint_of(const struct pn_ingest_job *job)
{
	const char *const *name = job->route->provider->evidence_headers;
	struct pn_str value;
	bool signs_in_headers = false;

	if (job->notification.verdict != PN_VERDICT_MALFORMED)
		return "";
	for (; *name != NULL; name++) {
		/* Any HTTP client sends that one. */
		if (strcmp(*name, "Content-Type") == 0)
			continue;
		signs_in_headers = true;
		if (pn_request_header(job->request, *name, &value) > 0)
			return "";
	}
	return signs_in_headers ? "; none of the provider's headers arrived:"
				  " does a proxy strip them?"
				: "";
}

static void
report_unverified(struct pn_ingest_job *job, const struct subject *subject)
{
	static const char line[] =
	    "refused as %s: %s (body of %zu bytes, sha256 %s)%s";
	const struct pn_notification *n = &job->notification;
	unsigned char digest[PN_SHA256_BYTES];
	char hex[HEX_BYTES] = "";

	if (!pn_log_is_held(&subject->about, line)) {
		pn_sha256(job->request->body, digest);
		pn_hex_lower(digest, sizeof(digest), hex);
	}
	pn_log(PN_LOG_WARNING, &subject->about, line,
	    pn_verdict_name(n->verdict), n->reason, job->request->body.len, hex,
	    hint_of(job));
}

void
pn_report_refused(struct pn_ingest_job *job)
{
	const struct pn_notification *n = &job->notification;
	struct subject subject;

	assert(n->verdict != PN_VERDICT_ACCEPTED);
	subject_of(job, &subject);
	subject.about.subject = pn_verdict_name(n->verdict);
	if (!n->verified)
		report_unverified(job, &subject);
	else
		pn_log_always(PN_LOG_WARNING, &subject.about,
		    "signed, but not recordable, to quarantine as %s: %s",
		    pn_verdict_name(n->verdict), n->reason);
}

void
pn_report_rate_limited(struct pn_ingest_job *job)
{
	struct subject subject;

	subject_of(job, &subject);
	pn_log(PN_LOG_WARNING, &subject.about, "refused by the rate limit: %s",
	    job->notification.reason);
}

void
pn_report_alarm(struct pn_ingest_job *job)
{
	struct subject subject;

	subject_of(job, &subject);
	pn_log_always(PN_LOG_WARNING, &subject.about,
	    "accepted, but of a kind that is not known: look at it");
}

void
pn_report_conflict(struct pn_ingest_job *job)
{
	struct subject subject;

	subject_of(job, &subject);
	/* Of several events the others may be as they should be. */
	if (job->notification.event_count > 0)
		subject.about.key =
		    job->notification.events[job->submission.conflicting_event]
			.key;
	pn_log_always(PN_LOG_WARNING, &subject.about,
	    "known key with other content: quarantined");
}

void
pn_report_unavailable(struct pn_ingest_job *job, const char *why)
{
	struct pn_store *store = job->ingest->store;
	struct subject subject;
	char health[256] = "";

	/* What is to be mended, if the store knows: no schema, no right. */
	if (store != NULL &&
	    pn_store_health(store, health, sizeof(health)) == PN_STORE_READY)
		health[0] = '\0';
	subject_of(job, &subject);
	if (why == NULL)
		why = health[0] == '\0' ? "the queue is full" : "not taken";
	pn_log(PN_LOG_ERR, &subject.about,
	    "could not record notification: %s%s%s", why,
	    health[0] == '\0' ? "" : ": ", health);
}

void
pn_report_cut(struct pn_ingest_job *job, const char *why)
{
	struct subject subject;

	subject_of(job, &subject);
	pn_log(PN_LOG_WARNING, &subject.about, "refused: %s", why);
}

void
pn_report_answered(struct pn_ingest_job *job, const char *verdict)
{
	struct subject subject;

	if (!pn_log_is_on(PN_LOG_DEBUG, PN_LOG_CATEGORY))
		return;
	subject_of(job, &subject);
	subject.about.subject = verdict;
	pn_log(PN_LOG_DEBUG, &subject.about,
	    "answered after %" PRId64 " us as %s: %zu events, body of %zu "
	    "bytes",
	    pn_clock_realtime_us() - job->received_us, verdict,
	    job->notification.event_count, job->request->body.len);
}

void
pn_report_not_allowed(struct pn_ingest_job *job, const char *why)
{
	struct subject subject;

	subject_of(job, &subject);
	pn_log(
	    PN_LOG_WARNING, &subject.about, "refused as not_allowed: %s", why);
}

void
pn_report_receipt(
    struct pn_ingest_job *job, const char *verdict, unsigned status, bool brief)
{
	const struct pn_route *route = job->route;
	const struct pn_request *request = job->request;
	struct pn_refusal refusal = {
		.provider = pn_str_from(route->provider->name),
		.tenant = pn_str_from(route->conf->tenant),
		.peer = request->peer,
		.notify_id = job->notification.notify_id,
		.verdict = pn_str_from(verdict),
		.reason = pn_str_from(job->notification.reason),
		.status = (int)status,
		.body_bytes =
		    job->body_bytes != 0 ? job->body_bytes : request->body.len,
	};

	if (job->ingest->store == NULL)
		return;
	memcpy(refusal.request_id, job->request_id, PN_REQUEST_ID_BYTES);
	if (!brief) {
		refusal.headers =
		    pn_evidence_headers(route->provider, request, job->arena);
		refusal.body = request->body; /* the store caps its copy */
	}
	pn_store_refuse(job->ingest->store, &refusal);
}

static bool
is_evidence(const struct pn_provider *provider, struct pn_str name)
{
	for (const char *const *n = provider->evidence_headers; *n != NULL; n++)
		if (pn_str_equal_fold(name, pn_str_from(*n)))
			return true;
	return false;
}

static char *
append(char *at, struct pn_str s)
{
	if (s.len > 0)
		memcpy(at, s.data, s.len);
	return at + s.len;
}

struct pn_str
pn_evidence_headers(const struct pn_provider *provider,
    const struct pn_request *request, struct pn_arena *arena)
{
	const struct pn_header *headers = request->headers;
	size_t len = 0;
	char *text, *at;

	for (size_t i = 0; i < request->header_count; i++)
		if (is_evidence(provider, headers[i].name))
			len += headers[i].name.len + headers[i].value.len + 3;
	text = at = pn_arena_alloc(arena, len + 1);
	if (text == NULL)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < request->header_count; i++) {
		if (!is_evidence(provider, headers[i].name))
			continue;
		at = append(at, headers[i].name);
		at = append(at, PN_STR(": "));
		at = append(at, headers[i].value);
		at = append(at, PN_STR("\n"));
	}
	assert((size_t)(at - text) == len);
	return (struct pn_str){ text, len };
}
