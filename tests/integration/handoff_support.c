/*
 * The deliverer's side of the hand-off, without HTTP.
 */
#include "handoff_support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

/* The configuration's strings are not const. */
static char url[] = "https://app.example/hook";

struct pn_conf_deliver
endpoint_conf(char *name)
{
	return (struct pn_conf_deliver){
		.name = name, .url = url, .start_us = PN_MOMENT_NONE
	};
}

struct pn_handoff *
handoff_new(const char *dsn, const char *endpoint)
{
	struct pn_handoff *handoff = NULL;
	struct pn_error error = { { 0 } };
	struct pn_conf_deliver conf;
	char name[64];

	(void)snprintf(name, sizeof(name), "%s", endpoint);
	conf = endpoint_conf(name);
	if (pn_handoff_open(dsn, -1, &handoff, &error) < 0)
		fail_msg("%s", error.text);
	if (pn_handoff_put_endpoint(handoff, &conf, &error) != 0)
		fail_msg("%s", error.text);
	return handoff;
}

static int
on_claimed(const struct pn_claimed *claimed, void *payload)
{
	struct claims *claims = payload;
	struct pn_delivery_result *result = &claims->results[claims->count];
	struct pn_buf json = pn_buf_init(sizeof(claims->json));

	assert_true(claims->count < CLAIMS_MAX);
	claims->seqs[claims->count++] = claimed->row.seq;
	memcpy(result->token, claimed->token, sizeof(result->token));
	result->attempt = claimed->attempt;
	result->redelivery = claimed->redelivery;
	result->started_at_us = pn_clock_realtime_us();
	result->latency_us = 1500;
	result->status = 200;
	pn_event_add_json(&json, &claimed->row);
	(void)snprintf(claims->json, sizeof(claims->json), "%.*s",
	    (int)json.len, json.data);
	pn_buf_done(&json);
	return claims->stop_with;
}

int
handoff_take(struct pn_handoff *handoff, const char *endpoint, int max,
    struct claims *ret_claims)
{
	struct pn_error error = { { 0 } };
	int stop_with = ret_claims->stop_with, r;

	*ret_claims = (struct claims){ .stop_with = stop_with };
	r = pn_handoff_claim(handoff, endpoint, max, 60 * PN_SECOND_US,
	    on_claimed, ret_claims, &error);
	if (r < 0 && r != stop_with)
		print_message("%s\n", error.text);
	return r;
}

void
handoff_take_some(struct pn_handoff *handoff, const char *endpoint,
    size_t wanted, struct claims *ret_claims)
{
	*ret_claims = (struct claims){ 0 };
	assert_int_equal(
	    handoff_take(handoff, endpoint, CLAIMS_MAX, ret_claims), 0);
	assert_int_equal(ret_claims->count, wanted);
}

size_t
handoff_settle(struct pn_handoff *handoff, struct claims *claims,
    enum pn_delivery_outcome outcome)
{
	struct pn_error error = { { 0 } };
	size_t lost = 0;

	for (size_t i = 0; i < claims->count; i++)
		claims->results[i].outcome = outcome;
	if (pn_handoff_settle(
		handoff, claims->results, claims->count, &lost, &error) != 0)
		fail_msg("%s", error.text);
	return lost;
}

void
handoff_kill_one(struct pn_handoff *handoff, const char *endpoint)
{
	struct claims claims = { 0 };

	assert_int_equal(handoff_take(handoff, endpoint, 1, &claims), 0);
	assert_int_equal(claims.count, 1);
	claims.results[0].error = PN_STR("HTTP 404");
	claims.results[0].status = 404;
	claims.results[0].answer = PN_STR("no\0\xe4");
	assert_int_equal(handoff_settle(handoff, &claims, PN_DELIVERY_DEAD), 0);
}

void
record_order(struct pn_store *store, const char *trade)
{
	struct note note;

	note_init(&note, trade, 100);
	note_add_refund(&note, trade, "r1");
	note_submit(store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
}
