/*
 * One event on its way to one endpoint: the request that is made of it, and
 * what is kept of the answer.
 *
 * The body is pn_event_add_json() of the row, byte for byte what `paynotifyctl
 * events show --json` prints, in memory of the attempt's own. It is freed when
 * the client is through: what waits to be settled, maybe for long because the
 * database is away, is small.
 *
 * done() runs on the client's thread and takes along what is valid only there;
 * everything else (judging, settling) is the worker's. The texts that go to the
 * database are made harmless here: a name that a peer chose for its certificate
 * must not make the statement fail that settles other events.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "deliver_internal.h"
#include "webhook.h"

enum {
	/* The largest payload, with the blanks that PostgreSQL puts into jsonb
	 * text, and the fields beside it. */
	BODY_BYTES_MAX = 2 * PN_PAYLOAD_GROWTH_MAX * PN_BODY_BYTES_MAX +
			 64 * PN_KEY_BYTES_MAX,
	HEADERS_BYTES_MAX = 16 << 10,
	SIGNATURE_BYTES_MAX = 64, /* " v1," and 44 bytes */
};
static_assert(
    (int)HEADERS_BYTES_MAX >= (PN_CONF_REPEAT_MAX + 1) * SIGNATURE_BYTES_MAX,
    "as many secrets as a section may have all sign");

void
pn_attempts_init(struct pn_attempts *list)
{
	list->first = NULL;
	list->end = &list->first;
	list->count = 0;
}

void
pn_attempts_add(struct pn_attempts *list, struct pn_attempt *attempt)
{
	assert(*list->end == NULL);
	attempt->next = NULL;
	*list->end = attempt;
	list->end = &attempt->next;
	list->count++;
}

struct pn_attempt *
pn_attempts_take(struct pn_attempts *list)
{
	struct pn_attempt *attempt = list->first;

	if (attempt == NULL)
		return NULL;
	assert(list->count > 0);
	list->count--;
	list->first = attempt->next;
	if (list->first == NULL)
		list->end = &list->first;
	attempt->next = NULL;
	return attempt;
}

/* On the client's thread. */
static void
attempt_done(struct pn_client_request *request)
{
	struct pn_attempt *attempt = request->payload;
	size_t len = request->answer.len;

	if (len > sizeof(attempt->answer))
		len = sizeof(attempt->answer);
	if (len > 0)
		memcpy(attempt->answer, request->answer.data, len);
	attempt->answer_len = len;
	attempt->retry_after_us = pn_schedule_retry_after_us(
	    pn_str_trim(pn_client_header(request, "Retry-After")),
	    pn_clock_realtime_us());
	pn_deliver_finished(attempt->deliver, attempt);
}

static int
fill(struct pn_attempt *attempt, const struct pn_claimed *claimed)
{
	const struct pn_event *event = claimed->row.event;
	const struct pn_endpoint *endpoint = attempt->endpoint;
	struct pn_webhook webhook = {
		.sent_at_s = attempt->started_at_us / PN_SECOND_US,
		.redelivery = claimed->redelivery,
		.secrets = endpoint->secrets,
		.secret_count = endpoint->secret_count,
	};
	struct pn_str body;
	size_t skip;

	pn_event_id_text(event->id, attempt->event_id);
	webhook.id = pn_str_from(attempt->event_id);
	skip = pn_webhook_begin(&attempt->text, &webhook);
	pn_event_add_json(&attempt->text, &claimed->row);
	if (pn_buf_failed(&attempt->text))
		return -1;
	pn_webhook_add_headers(
	    &attempt->headers, &webhook, pn_buf_str(&attempt->text));
	if (pn_buf_failed(&attempt->headers))
		return -1;
	body = pn_buf_str(&attempt->text);
	assert(body.len > skip);
	attempt->request = (struct pn_client_request){
		.method = "POST",
		.url = endpoint->conf->url,
		.ca_file = endpoint->conf->ca_file.count > 0
			       ? endpoint->conf->ca_file.files[0].path
			       : NULL,
		.headers = pn_buf_str(&attempt->headers),
		.body = { body.data + skip, body.len - skip },
		.timeout_us = endpoint->conf->timeout_us,
		.answer_bytes_max = PN_ANSWER_KEPT_BYTES_MAX,
		.done = attempt_done,
		.payload = attempt,
	};
	return 0;
}

struct pn_attempt *
pn_attempt_new(struct pn_deliver *deliver, struct pn_endpoint *endpoint,
    const struct pn_claimed *claimed, int64_t lease_end_us)
{
	struct pn_attempt *attempt = calloc(1, sizeof(*attempt));

	assert(claimed->attempt >= 1);
	if (attempt == NULL)
		return NULL;
	attempt->deliver = deliver;
	attempt->endpoint = endpoint;
	memcpy(attempt->token, claimed->token, PN_TOKEN_BYTES);
	attempt->attempt = claimed->attempt;
	attempt->redelivery = claimed->redelivery;
	attempt->lease_end_us = lease_end_us;
	attempt->started_at_us = pn_clock_realtime_us();
	attempt->text = pn_buf_init(BODY_BYTES_MAX);
	attempt->headers = pn_buf_init(HEADERS_BYTES_MAX);
	(void)snprintf(attempt->tenant, sizeof(attempt->tenant), PN_STR_FMT,
	    PN_STR_ARG(claimed->row.event->tenant));
	if (fill(attempt, claimed) == 0)
		return attempt;
	pn_attempt_free(attempt);
	return NULL;
}

void
pn_attempt_free(struct pn_attempt *attempt)
{
	if (attempt == NULL)
		return;
	pn_buf_done(&attempt->text);
	pn_buf_done(&attempt->headers);
	free(attempt);
}

/* Printable ASCII, whatever a peer or a library put into it. */
static void
set_error(struct pn_attempt *attempt, const char *text)
{
	size_t i;

	for (i = 0; text[i] != '\0' && i + 1 < sizeof(attempt->error); i++)
		attempt->error[i] =
		    text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	attempt->error[i] = '\0';
}

enum pn_verdict
pn_attempt_judge(struct pn_attempt *attempt, uint32_t random)
{
	static const enum pn_delivery_outcome outcomes[] = {
		[PN_VERDICT_DONE] = PN_DELIVERY_DONE,
		[PN_VERDICT_RETRY] = PN_DELIVERY_RETRY,
		[PN_VERDICT_DEAD] = PN_DELIVERY_DEAD,
		[PN_VERDICT_DISABLE] = PN_DELIVERY_RETRY,
	};
	const struct pn_client_request *request = &attempt->request;
	enum pn_verdict verdict = pn_schedule_classify(
	    request->end, request->status, attempt->attempt);
	char text[64];

	pn_buf_done(&attempt->text);
	pn_buf_done(&attempt->headers);
	attempt->outcome = outcomes[verdict];
	if (verdict == PN_VERDICT_DONE)
		return verdict;
	if (request->end == PN_CLIENT_STOPPED && !request->sent) {
		attempt->outcome = PN_DELIVERY_BACK; /* nobody has seen it */
		return verdict;
	}
	if (request->end == PN_CLIENT_NOT_SENT && request->host_fault) {
		attempt->outcome = PN_DELIVERY_BACK; /* not the endpoint's */
		set_error(attempt, request->error.text);
		return PN_VERDICT_RETRY;
	}
	/* Once an operator resumes the endpoint, the event need not wait. */
	if (verdict != PN_VERDICT_DISABLE)
		attempt->delay_us = pn_schedule_delay_us(
		    attempt->attempt, attempt->retry_after_us, random);
	if (request->end == PN_CLIENT_ANSWERED || request->end == PN_CLIENT_CUT)
		(void)snprintf(
		    text, sizeof(text), "answered %d", request->status);
	else if (request->end == PN_CLIENT_STOPPED)
		(void)snprintf(text, sizeof(text),
		    "no answer before the deliverer stopped");
	else
		text[0] = '\0';
	set_error(attempt, text[0] != '\0' ? text
			   : request->error.text[0] != '\0'
			       ? request->error.text
			       : "no answer");
	return verdict;
}

struct pn_delivery_result
pn_attempt_result(const struct pn_attempt *attempt)
{
	const struct pn_client_request *request = &attempt->request;
	struct pn_delivery_result result = {
		.outcome = attempt->outcome,
		.retry_after_us = attempt->delay_us,
		.attempt = attempt->attempt,
		.redelivery = attempt->redelivery,
		.started_at_us = attempt->started_at_us,
		.latency_us = request->elapsed_us,
		.status = request->status,
		.error = pn_str_from(attempt->error),
		.answer = { attempt->answer, attempt->answer_len },
	};

	memcpy(result.token, attempt->token, PN_TOKEN_BYTES);
	return result;
}
