/*
 * See fakes.h. State is reset by world_make(), so that no test sees another's.
 */
#include "fakes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* -- a provider ---------------------------------------------------------------- */

struct told told;

int fake_open_accounts;

static const char *const fake_headers[] = { "X-Sign", "X-Time", NULL };

static int
fake_open(const struct pn_conf_account *conf, void **ret_account,
    struct pn_error *ret_error)
{
	if (conf->test)
		return pn_error_set(ret_error, -EINVAL, "%s:%d: bad key",
		    conf->place.file, conf->place.line);
	*ret_account = (void *)(uintptr_t)conf;
	fake_open_accounts++;
	return 0;
}

static void
fake_close(void *account)
{
	assert_non_null(account);
	fake_open_accounts--;
}

static int
fake_keys(const void *account,
    int (*visit)(
	void *payload, const unsigned char *fingerprint, const char *pem),
    void *payload)
{
	const struct pn_conf_account *conf = account;
	unsigned char fingerprint[PN_SHA256_BYTES] = { 0 };

	/* Every account has a key of its own and one in common. */
	if (visit(payload, fingerprint, "shared") < 0)
		return -ENOMEM;
	fingerprint[0] = (unsigned char)conf->place.line;
	return visit(payload, fingerprint, NULL);
}

static int
fake_verify(const void *account, const struct pn_request *request,
    int64_t now_us, struct pn_arena *arena,
    struct pn_notification *ret_notification)
{
	assert_non_null(account);
	assert_non_null(request);
	assert_non_null(arena);
	assert_true(now_us > 0);
	*ret_notification = told.notification;
	return told.verify_result;
}

static int
fake_dialect(const struct pn_request *request)
{
	return request->body.len > 0 && request->body.data[0] == '<';
}

static int
fake_reply(int dialect, enum pn_outcome outcome, const char *message,
    struct pn_arena *arena, struct pn_reply *ret_reply)
{
	assert_true(strlen(message) <= PN_REPLY_MESSAGE_BYTES_MAX);
	if (told.reply_failures > 0) {
		told.reply_failures--;
		return -ENOMEM;
	}
	*ret_reply = (struct pn_reply){
		.body = pn_arena_printf(arena, "%d/%d", dialect, (int)outcome),
		.content_type = "text/fake",
		.status_is_200 = dialect == 1,
	};
	return 0;
}

static const struct pn_provider fake_provider = {
	.name = "fake",
	.evidence_headers = fake_headers,
	.account_open = fake_open,
	.account_close = fake_close,
	.account_keys = fake_keys,
	.verify = fake_verify,
	.dialect_of = fake_dialect,
	.reply = fake_reply,
};

const struct pn_provider *
pn_provider_find(struct pn_str name)
{
	return pn_str_is(name, "fake") ? &fake_provider : NULL;
}

const char *
pn_verdict_name(enum pn_verdict verdict)
{
	return verdict == PN_VERDICT_UNDECRYPTABLE ? "undecryptable" : "other";
}

/* -- a store ------------------------------------------------------------------- */

struct pn_submission *submitted;
int store_full, refusals, refusal_status;
size_t refusal_body_len, refusal_headers_len;
uint64_t refusal_body_bytes;
char refusal_verdict[32], refusal_reason[128];

int
pn_store_submit(struct pn_store *store, struct pn_submission *submission)
{
	assert_non_null(store);
	assert_null(submitted);
	if (store_full)
		return 1;
	submitted = submission;
	return 0;
}

void
pn_store_refuse(struct pn_store *store, const struct pn_refusal *refusal)
{
	assert_non_null(store);
	refusals++;
	refusal_status = refusal->status;
	refusal_body_len = refusal->body.len;
	refusal_headers_len = refusal->headers.len;
	refusal_body_bytes = refusal->body_bytes;
	(void)snprintf(refusal_verdict, sizeof(refusal_verdict), PN_STR_FMT,
	    PN_STR_ARG(refusal->verdict));
	(void)snprintf(refusal_reason, sizeof(refusal_reason), PN_STR_FMT,
	    PN_STR_ARG(refusal->reason));
}

/* -- a caller ------------------------------------------------------------------- */

unsigned
fake_status_of(enum pn_outcome outcome)
{
	return 100 + (unsigned)outcome;
}

static void
on_done(struct pn_ingest_job *job)
{
	struct world *w = job->payload;

	assert_int_equal(w->done++, 0);
	assert_int_equal(w->released, 0);
	assert_non_null(job->reply.body.data);
	assert_non_null(job->reply.content_type);
}

static void
on_release(struct pn_ingest_job *job)
{
	struct world *w = job->payload;

	assert_int_equal(w->done, 1);
	assert_int_equal(w->released++, 0);
}

static bool
on_limited(struct pn_ingest_job *job)
{
	return ((struct world *)job->payload)->limited;
}

static char fake_name[] = "fake";
char fake_tenants[3][8] = { "shop2", "shop1", "a-b_9" };
struct pn_event fake_event = { .key = { "webhook:fake:1", 14 } };

int
world_make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	for (int i = 0; i < 3; i++)
		w->accounts[i] = (struct pn_conf_account){
			.provider = fake_name,
			.tenant = fake_tenants[i],
			.place = { "x.conf", i + 1 },
		};
	w->conf.accounts = w->accounts;
	w->conf.account_count = 3;
	told = (struct told){ .notification = { .reason = "" } };
	submitted = NULL;
	store_full = refusals = refusal_status = 0;
	assert_int_equal(pn_accounts_open(&w->conf, &w->open, NULL), 0);
	assert_int_equal(pn_ingest_open(w->open, &w->ingest, NULL), 0);
	pn_ingest_set_store(w->ingest, (struct pn_store *)w);
	pn_ingest_set_statuses(w->ingest, fake_status_of);
	w->arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	assert_non_null(w->arena);
	w->headers[0] = (struct pn_header){ PN_STR("Host"), PN_STR("h") };
	w->headers[1] = (struct pn_header){ PN_STR("x-sign"), PN_STR("s") };
	w->headers[2] = (struct pn_header){ PN_STR("X-TIME"), PN_STR("t") };
	w->request = (struct pn_request){ .method = PN_STR("POST"),
		.headers = w->headers,
		.header_count = 3,
		.body = PN_STR("body"),
		.peer = PN_STR("192.0.2.1") };
	w->job = (struct pn_ingest_job){
		.route =
		    pn_ingest_route(w->ingest, PN_STR("/notify/fake/shop1")),
		.request = &w->request,
		.arena = w->arena,
		.done = on_done,
		.release = on_release,
		.rate_limited = on_limited,
		.payload = w,
	};
	assert_non_null(w->job.route);
	*state = w;
	return 0;
}

int
world_end(void **state)
{
	struct world *w = *state;

	pn_ingest_close(w->ingest);
	pn_accounts_unref(w->open);
	pn_route_unref(w->job.route);
	assert_int_equal(fake_open_accounts, 0);
	pn_arena_free(w->arena);
	free(w);
	return 0;
}

void
tell(enum pn_verdict verdict, bool verified)
{
	told.notification = (struct pn_notification){ .verdict = verdict,
		.verified = verified,
		.reason = "because",
		.notify_id = PN_STR("n1"),
		.key_fingerprint = { 7 } };
	if (verdict == PN_VERDICT_ACCEPTED) {
		told.notification.reason = "";
		told.notification.events = &fake_event;
		told.notification.event_count = 1;
	}
}

void
store_says(enum pn_store_verdict verdict)
{
	struct pn_submission *s = submitted;

	assert_non_null(s);
	submitted = NULL;
	s->done(s, verdict, s->payload_pointer);
	s->release(s, s->payload_pointer);
}

void
expect(struct world *w, enum pn_outcome outcome)
{
	assert_int_equal(w->done, 1);
	assert_int_equal(w->released, 1);
	assert_int_equal(w->job.outcome, outcome);
	w->done = w->released = 0;
}

enum pn_store_health
pn_store_health(struct pn_store *store, char *ret_text, size_t text_bytes)
{
	assert_non_null(store);
	(void)snprintf(ret_text, text_bytes, "ready");
	return PN_STORE_READY;
}
