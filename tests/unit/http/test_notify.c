/*
 * Notifications as the server serves them: the table of DESIGN.md section 6, and
 * what is told to whom. If this fails, a provider stops retrying what was not
 * recorded, or retries what was. The pipeline and the server's side of a call
 * are the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/ingest.h"
#include "paynotify/metrics.h"
#include "paynotify/server.h"

/* -- the pipeline and the server ---------------------------------------------- */

static struct {
	unsigned (*status_of)(enum pn_outcome outcome);
	enum pn_outcome outcome; /* what the pipeline says */
	struct pn_reply reply;
	bool asks_limit;
	int submitted, refused, done, released, limited, routes;
	enum pn_ingest_refusal why;
	uint64_t body_bytes;
} fake;

static struct pn_ingest *const fake_ingest = (struct pn_ingest *)(void *)&fake;

const struct pn_route *
pn_ingest_route(struct pn_ingest *ingest, struct pn_str path)
{
	assert_ptr_equal(ingest, fake_ingest);
	assert_true(path.len <= PN_PATH_BYTES_MAX);
	if (!pn_str_starts(path, "/account"))
		return NULL;
	fake.routes++;
	return (const void *)&fake;
}

void
pn_route_unref(const struct pn_route *route)
{
	if (route == NULL)
		return;
	assert_ptr_equal(route, &fake);
	fake.routes--;
}

bool
pn_ingest_admits(const struct pn_route *route, struct pn_str peer)
{
	assert_ptr_equal(route, &fake);
	return !pn_str_is(peer, "192.0.2.66");
}

void
pn_ingest_set_statuses(
    struct pn_ingest *ingest, unsigned (*status_of)(enum pn_outcome outcome))
{
	assert_ptr_equal(ingest, fake_ingest);
	fake.status_of = status_of;
}

static void
check(const struct pn_ingest *ingest, const struct pn_ingest_job *job)
{
	const struct pn_call *call = job->payload;

	assert_ptr_equal(ingest, fake_ingest);
	assert_ptr_equal(job->route, &fake);
	assert_ptr_equal(job->request, &call->request);
	assert_ptr_equal(job->arena, call->arena);
	assert_non_null(job->rate_limited);
}

void
pn_ingest_submit(struct pn_ingest *ingest, struct pn_ingest_job *job)
{
	check(ingest, job);
	fake.submitted++;
	job->outcome = fake.outcome;
	job->reply = fake.reply;
	if (fake.asks_limit)
		assert_true(job->rate_limited(job));
	job->done(job);
	assert_int_equal(fake.done, 1);
	assert_int_equal(fake.released, 0);
	job->release(job);
}

void
pn_ingest_refuse(struct pn_ingest *ingest, struct pn_ingest_job *job,
    enum pn_ingest_refusal why)
{
	check(ingest, job);
	fake.refused++;
	fake.why = why;
	fake.body_bytes = job->body_bytes;
	job->outcome = fake.outcome;
	job->reply = fake.reply;
}

void
pn_call_done(struct pn_call *call)
{
	assert_true(call->answer.status >= 200);
	fake.done++;
}

void
pn_call_release(struct pn_call *call)
{
	(void)call;
	fake.released++;
}

bool
pn_call_rate_limited(struct pn_call *call)
{
	(void)call;
	fake.limited++;
	return true;
}

/* -- calls ---------------------------------------------------------------------- */

static struct pn_call
call_of(const char *method, const char *path)
{
	struct pn_call call = {
		.request = { .method = pn_str_from(method),
		    .path = pn_str_from(path) },
		.arena = pn_arena_new(1 << 20),
	};

	assert_non_null(call.arena);
	call.job = pn_arena_alloc(call.arena, pn_notifications.job_bytes);
	assert_non_null(call.job);
	fake.submitted = fake.refused = fake.done = fake.released = 0;
	return call;
}

/* As the server does, when both owners have let go. */
static void
call_end(struct pn_call *call)
{
	pn_notifications.end(call);
	assert_int_equal(fake.routes, 0);
	pn_arena_free(call->arena);
}

static void
answer_is(const struct pn_call *call, unsigned status, const char *type,
    const char *body)
{
	const struct pn_answer *answer = &call->answer;

	assert_int_equal(answer->status, status);
	assert_true(pn_str_is(answer->body, body));
	assert_true(answer->header_count >= 1);
	assert_true(pn_str_is(answer->headers[0].name, "Content-Type"));
	assert_true(pn_str_is(answer->headers[0].value, type));
}

/* The status an outcome gets; its headers are as they must be. */
static unsigned
status_of(enum pn_outcome outcome)
{
	struct pn_call call = call_of("POST", "/account");
	unsigned status;

	fake.outcome = outcome;
	fake.reply = (struct pn_reply){ .body = PN_STR("said") };
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_NOT);
	pn_notifications.submit(fake_ingest, &call);
	assert_int_equal(fake.submitted, 1);
	assert_int_equal(fake.released, 1);
	status = call.answer.status;
	answer_is(&call, status, "text/plain", "said");
	if (status == 429 || status == 503) {
		const struct pn_header *last = &call.answer.headers[1];

		assert_int_equal(call.answer.header_count, 2);
		assert_true(pn_str_is(last->name, "Retry-After"));
		assert_int_equal(last->value.len, 1);
		assert_in_range(last->value.data[0], '2', '5');
	} else {
		assert_int_equal(call.answer.header_count, 1);
	}
	call_end(&call);
	return status;
}

/* -- tests ------------------------------------------------------------------------ */

/* A status of the table was changed, or an outcome has none. */
static void
test_notify__every_outcome_has_its_status(void **state)
{
	static const unsigned statuses[] = {
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

	(void)state;
	assert_int_equal(PN_COUNT(statuses), PN_OUTCOME_COUNT);
	for (unsigned i = 0; i < PN_COUNT(statuses); i++)
		assert_int_equal(status_of((enum pn_outcome)i), statuses[i]);
}

/* Any status below 300 but for a success tells a provider "taken". */
static void
test_notify__only_success_is_2xx(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PN_OUTCOME_COUNT; i++)
		assert_int_equal(status_of((enum pn_outcome)i) < 300,
		    i == PN_OUTCOME_SUCCESS);
}

/* Receipts tell another status than the provider was told. */
static void
test_notify__receipts_know_the_table(void **state)
{
	(void)state;
	fake.status_of = NULL;
	pn_notifications.open(fake_ingest);
	assert_non_null(fake.status_of);
	for (unsigned i = 0; i < PN_OUTCOME_COUNT; i++)
		assert_int_equal(fake.status_of((enum pn_outcome)i),
		    status_of((enum pn_outcome)i));
}

/* WeChat Pay v2 is refused with a status that it takes for no answer. */
static void
test_notify__a_dialect_may_insist_on_200(void **state)
{
	struct pn_call call = call_of("POST", "/account");

	(void)state;
	fake.outcome = PN_OUTCOME_UNAVAILABLE;
	fake.reply = (struct pn_reply){ .body = PN_STR("<xml/>"),
		.content_type = "text/xml",
		.status_is_200 = true };
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_NOT);
	pn_notifications.submit(fake_ingest, &call);
	answer_is(&call, 200, "text/xml", "<xml/>");
	assert_int_equal(call.answer.header_count, 1);
	call_end(&call);
}

/* A flood is not limited, since nobody asks the server. */
static void
test_notify__the_pipeline_asks_for_the_limit(void **state)
{
	(void)state;
	fake.asks_limit = true;
	fake.limited = 0;
	assert_int_equal(status_of(PN_OUTCOME_RATE_LIMITED), 429);
	assert_int_equal(fake.limited, 1);
	fake.asks_limit = false;
}

/* Requests to nowhere, or with a GET, are read into memory and submitted. */
static void
test_notify__only_a_post_to_an_account_is_read(void **state)
{
	char path[PN_PATH_BYTES_MAX + 2] = "/account";
	struct pn_call call = call_of("POST", "/accounts");

	(void)state;
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_NOT);
	call_end(&call);
	call = call_of("GET", "/account");
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_METHOD);
	call_end(&call);
	call = call_of("GET", "/nowhere");
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_PATH);
	call_end(&call);
	/* Who may not come is told neither that it was a GET nor the limit. */
	call = call_of("GET", "/account");
	call.request.peer = PN_STR("192.0.2.66");
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_ADDRESS);
	call_end(&call);
	memset(path + 8, 'x', sizeof(path) - 9);
	call = call_of("POST", path);
	assert_int_equal(call.request.path.len, PN_PATH_BYTES_MAX + 1);
	assert_int_equal(
	    pn_notifications.begin(fake_ingest, &call), PN_REFUSED_PATH);
	call_end(&call);
}

/* A scanner fills the receipts, or is not counted. */
static void
test_notify__no_receipt_of_what_is_no_accounts(void **state)
{
	static const enum pn_refused whys[] = { PN_REFUSED_PATH,
		PN_REFUSED_HEADERS };

	(void)state;
	for (size_t i = 0; i < PN_COUNT(whys); i++) {
		struct pn_call call = call_of("POST", "/nowhere");
		int64_t before = pn_metric_get(PN_METRIC_NOT_FOUND);

		/* Too many headers are told before there was a begin(). */
		if (whys[i] != PN_REFUSED_HEADERS)
			assert_int_equal(
			    pn_notifications.begin(fake_ingest, &call),
			    whys[i]);
		pn_notifications.refuse(fake_ingest, &call, whys[i]);
		assert_int_equal(fake.refused, 0);
		assert_int_equal(
		    pn_metric_get(PN_METRIC_NOT_FOUND), before + 1);
		answer_is(&call, i == 0 ? 404 : 431, "text/plain",
		    i == 0 ? "not found" : "too many headers");
		assert_int_equal(call.answer.header_count, 1);
		call_end(&call);
	}
}

/* What was logged while paths were asked for; NUL-terminated. */
static void
ask_for(const char *const *paths, char *ret_log, size_t bytes)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	for (; *paths != NULL; paths++) {
		struct pn_call call = call_of("POST", *paths);

		assert_int_equal(pn_notifications.begin(fake_ingest, &call),
		    PN_REFUSED_PATH);
		pn_notifications.refuse(fake_ingest, &call, PN_REFUSED_PATH);
		call_end(&call);
	}
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	rewind(file);
	n = fread(ret_log, 1, bytes - 1, file);
	ret_log[n] = '\0';
	(void)fclose(file);
}

/* A mistyped notify_url shows nowhere, or scanners fill the log, or forge lines
 * in it. */
static void
test_notify__a_path_that_looks_like_an_accounts_is_told(void **state)
{
	static const char *const scanned[] = { "/", "/notify", "/wp-login.php",
		"/notifyx/alipay/shop1", NULL };
	char mistyped[PN_PATH_BYTES_MAX] = "/notify/alipay/a\n\x1b[2J";
	const char *const asked[] = { mistyped, "/notify/alipay/b",
		"/notify/wechat/c", NULL };
	char log[8192];

	(void)state;
	ask_for(scanned, log, sizeof(log));
	assert_string_equal(log, "");
	memset(mistyped + strlen(mistyped), 'x', 400);
	ask_for(asked, log, sizeof(log));
	assert_non_null(strstr(log, "level=warning"));
	assert_non_null(strstr(log, "\\\"/notify/alipay/a\\n\\u001b[2Jxxxx"));
	assert_true(strlen(log) < 512);
	assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);
}

/* What was refused before it was read leaves no trace, or another's; a genuine
 * notification is told in words that its provider does not know. */
static void
test_notify__refusals_of_an_account_have_a_receipt(void **state)
{
	static const struct {
		enum pn_refused why;
		enum pn_ingest_refusal receipt;
		enum pn_outcome outcome;
		unsigned status;
		const char *body;
	} rows[] = {
		{ PN_REFUSED_METHOD, PN_REFUSE_METHOD, PN_OUTCOME_MALFORMED,
		    405, "method not allowed" },
		{ PN_REFUSED_BODY, PN_REFUSE_BODY_OVER_LIMIT,
		    PN_OUTCOME_MALFORMED, 413, "body too large" },
		{ PN_REFUSED_HEADERS, PN_REFUSE_HEADERS, PN_OUTCOME_MALFORMED,
		    431, "too many headers" },
		{ PN_REFUSED_ADDRESS, PN_REFUSE_ADDRESS, PN_OUTCOME_NOT_ALLOWED,
		    403, "said" },
		{ PN_REFUSED_LENGTH, PN_REFUSE_LENGTH_AMBIGUOUS,
		    PN_OUTCOME_MALFORMED, 400, "said" },
		{ PN_REFUSED_STOPPING, PN_REFUSE_QUEUE_FULL,
		    PN_OUTCOME_UNAVAILABLE, 503, "said" },
	};

	(void)state;
	fake.reply = (struct pn_reply){ .body = PN_STR("said") };
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_call call = call_of("POST", "/account");
		const struct pn_answer *answer = &call.answer;

		fake.outcome = rows[i].outcome;
		if (rows[i].why != PN_REFUSED_HEADERS)
			(void)pn_notifications.begin(fake_ingest, &call);
		call.body_bytes = 4711;
		pn_notifications.refuse(fake_ingest, &call, rows[i].why);
		assert_int_equal(fake.refused, 1);
		assert_int_equal(fake.why, rows[i].receipt);
		assert_int_equal(fake.body_bytes, 4711);
		assert_int_equal(fake.done + fake.released, 0);
		answer_is(&call, rows[i].status, "text/plain", rows[i].body);
		if (rows[i].status == 405) {
			assert_int_equal(answer->header_count, 2);
			assert_true(
			    pn_str_is(answer->headers[1].name, "Allow"));
			assert_true(
			    pn_str_is(answer->headers[1].value, "POST"));
		}
		call_end(&call);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notify__every_outcome_has_its_status),
		cmocka_unit_test(test_notify__only_success_is_2xx),
		cmocka_unit_test(test_notify__receipts_know_the_table),
		cmocka_unit_test(test_notify__a_dialect_may_insist_on_200),
		cmocka_unit_test(test_notify__the_pipeline_asks_for_the_limit),
		cmocka_unit_test(
		    test_notify__only_a_post_to_an_account_is_read),
		cmocka_unit_test(
		    test_notify__no_receipt_of_what_is_no_accounts),
		cmocka_unit_test(
		    test_notify__a_path_that_looks_like_an_accounts_is_told),
		cmocka_unit_test(
		    test_notify__refusals_of_an_account_have_a_receipt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
