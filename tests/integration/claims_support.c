/*
 * Claims and settlements out of nothing.
 */
#include "claims_support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/digest.h"
#include "paynotify/moment.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;

const struct pn_claim_terms TERMS = {
	.lease_us = 60 * PN_SECOND_US,
	.ttl_us = 86400 * PN_SECOND_US,
	.unknown = PN_CLAIM_RETRY,
	.after_expiry = PN_CLAIM_NEW,
	.attempts_max = 10,
};

/* One for all: few wait at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Settlements so far. */
static atomic_int turns;

/* Waits until *count is 1. */
static void
wait_done(const int *count, const char *key)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_US / PN_SECOND_US;
	pthread_mutex_lock(&lock);
	while (*count == 0)
		if (pthread_cond_timedwait(&changed, &lock, &until) != 0)
			fail_msg("no answer to %s", key);
	assert_int_equal(*count, 1);
	pthread_mutex_unlock(&lock);
}

static bool
is_done(const int *count)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = *count > 0;
	pthread_mutex_unlock(&lock);
	return done;
}

static void
set_done(int *count)
{
	pthread_mutex_lock(&lock);
	++*count;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void
copy(char ret_text[256], struct pn_str s)
{
	(void)snprintf(ret_text, 256, PN_STR_FMT, PN_STR_ARG(s));
}

static void
on_claimed(struct pn_claim *c)
{
	struct claim *claim = c->payload;

	copy(claim->headers, c->headers);
	copy(claim->body, c->body);
	copy(claim->reason, c->reason);
	set_done(&claim->done_count);
}

void
claim_init(struct claim *claim, const char *key, const char *request)
{
	struct pn_claim *c = &claim->claim;

	memset(claim, 0, sizeof(*claim));
	(void)snprintf(claim->key, sizeof(claim->key), "%s", key);
	c->scope = (struct pn_claim_scope){
		.tenant = PN_STR("shop1"),
		.route = PN_STR("POST /v1/charges"),
		.key = pn_str_from(claim->key),
	};
	pn_sha256(pn_str_from(request), c->request_hash);
	pn_random_bytes(c->token, sizeof(c->token));
	c->terms = &TERMS;
	c->done = on_claimed;
	c->payload = claim;
}

enum pn_claim_found
claim_wait(struct claim *claim)
{
	wait_done(&claim->done_count, claim->key);
	return claim->claim.found;
}

bool
claim_is_done(struct claim *claim)
{
	return is_done(&claim->done_count);
}

enum pn_claim_found
claim_put(struct pn_claims *claims, struct claim *claim, const char *key,
    const char *request)
{
	claim_init(claim, key, request);
	pn_claims_submit(claims, &claim->claim);
	return claim_wait(claim);
}

static void
on_settled(struct pn_settlement *s)
{
	struct settlement *settlement = s->payload;

	settlement->turn = ++turns;
	set_done(&settlement->done_count);
}

void
settlement_init(struct settlement *settlement, const struct claim *claim,
    enum pn_settle_act act, const char *body)
{
	struct pn_settlement *s = &settlement->settlement;

	memset(settlement, 0, sizeof(*settlement));
	(void)snprintf(
	    settlement->key, sizeof(settlement->key), "%s", claim->key);
	s->scope = claim->claim.scope;
	s->scope.key = pn_str_from(settlement->key);
	memcpy(s->token, claim->claim.token, sizeof(s->token));
	s->act = act;
	s->status = 201;
	s->headers = PN_STR("Location: /v1/charges/1\n");
	s->body = pn_str_from(body);
	s->reason = PN_STR("why");
	s->lease_us = TERMS.lease_us;
	s->done = on_settled;
	s->payload = settlement;
}

enum pn_settled
settlement_wait(struct settlement *settlement)
{
	wait_done(&settlement->done_count, settlement->key);
	return settlement->settlement.settled;
}

bool
settlement_is_done(struct settlement *settlement)
{
	return is_done(&settlement->done_count);
}

enum pn_settled
settle(struct pn_claims *claims, const struct claim *claim,
    enum pn_settle_act act, const char *body)
{
	struct settlement settlement;

	settlement_init(&settlement, claim, act, body);
	pn_claims_settle(claims, &settlement.settlement);
	return settlement_wait(&settlement);
}

/* -- the keys --------------------------------------------------------------- */

static void
on_heard(const unsigned char *digest, void *payload)
{
	struct heard *heard = payload;

	pthread_mutex_lock(&heard->lock);
	if (digest == NULL) {
		heard->all++;
	} else {
		memcpy(heard->last, digest, sizeof(heard->last));
		heard->count++;
	}
	pthread_mutex_unlock(&heard->lock);
}

/* Waits until it listens. */
struct pn_claims *
claims_new(const char *dsn, int64_t commit_timeout_us, struct heard *heard)
{
	struct pn_claims_options options = {
		.dsn = dsn,
		.commit_timeout_us = commit_timeout_us,
		.settled = on_heard,
		.payload = heard,
	};
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;
	struct pn_error error = { { 0 } };
	struct pn_claims *claims;

	memset(heard, 0, sizeof(*heard));
	(void)pthread_mutex_init(&heard->lock, NULL);
	if (pn_claims_open(&options, &claims, &error) < 0)
		fail_msg("%s", error.text);
	while (!pn_claims_are_heard(claims)) {
		assert_true(pn_clock_monotonic_us() < until_us);
		/* Not for luck: a poll of a condition, with a limit. */
		(void)usleep(500);
	}
	return claims;
}

int
heard_count(struct heard *heard)
{
	int count;

	pthread_mutex_lock(&heard->lock);
	count = heard->count;
	pthread_mutex_unlock(&heard->lock);
	return count;
}

void
heard_wait(struct heard *heard, int count)
{
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;

	while (heard_count(heard) < count) {
		if (pn_clock_monotonic_us() > until_us)
			fail_msg("heard of %d, not of %d", heard_count(heard),
			    count);
		/* Not for luck: a poll of a condition, with a limit. */
		(void)usleep(500);
	}
}

int
claims_fixture_setup(void **state)
{
	struct claims_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	database_new(f->dsn);
	f->db = db_open(f->dsn);
	f->other = db_open(f->dsn);
	f->claims = claims_new(f->dsn, 15 * PN_SECOND_US, &f->heard);
	*state = f;
	return 0;
}

int
claims_fixture_teardown(void **state)
{
	struct claims_fixture *f = *state;

	pn_claims_close(f->claims, PN_SECOND_US);
	PQfinish(f->db);
	PQfinish(f->other);
	(void)pthread_mutex_destroy(&f->heard.lock);
	free(f);
	return 0;
}
