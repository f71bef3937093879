/*
 * The guard's keys through C: what a claim finds, what a settlement makes of it,
 * and many at once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "claims_support.h"

static void
end_leases(struct claims_fixture *f)
{
	(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
			"lease_expires_at = now() - interval '1 s'");
}

/* If it failed: a request would not run, or an answer be lost or altered on its
 * way. */
static void
test_claims__run_then_replay(void **state)
{
	struct claims_fixture *f = *state;
	int64_t now_us = pn_clock_realtime_us();
	struct claim c;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 1);
	assert_in_range(c.claim.expires_at_us - now_us,
	    TERMS.ttl_us - 5 * PN_SECOND_US, TERMS.ttl_us + 60 * PN_SECOND_US);
	assert_in_range(c.claim.retry_after_us,
	    TERMS.lease_us - 20 * PN_SECOND_US, TERMS.lease_us);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_COMPLETE, "charge 1"), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_REPLAY);
	assert_int_equal(c.claim.attempt, 1);
	assert_int_equal(c.claim.status, 201);
	assert_string_equal(c.headers, "Location: /v1/charges/1\n");
	assert_string_equal(c.body, "charge 1");
	assert_in_range(c.claim.expires_at_us - now_us,
	    TERMS.ttl_us - 5 * PN_SECOND_US, TERMS.ttl_us + 60 * PN_SECOND_US);
}

/* If it failed: an answer without a body would come back as none at all, or be
 * refused. */
static void
test_claims__an_empty_answer_is_one(void **state)
{
	struct claims_fixture *f = *state;
	struct settlement s;
	struct claim c;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	settlement_init(&s, &c, PN_SETTLE_COMPLETE, "");
	s.settlement.status = 204;
	s.settlement.headers = (struct pn_str){ NULL, 0 };
	s.settlement.body = (struct pn_str){ NULL, 0 };
	pn_claims_settle(f->claims, &s.settlement);
	assert_int_equal(settlement_wait(&s), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_REPLAY);
	assert_int_equal(c.claim.status, 204);
	assert_int_equal(c.claim.headers.len, 0);
	assert_int_equal(c.claim.body.len, 0);
}

/* If it failed: another request's answer would be given, or two would run. */
static void
test_claims__mismatch_and_busy(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_in_range(d.claim.retry_after_us,
	    TERMS.lease_us - 20 * PN_SECOND_US, TERMS.lease_us);
	assert_int_equal(claim_put(f->claims, &d, "k", "q"), PN_CLAIM_MISMATCH);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &d, "k", "q"), PN_CLAIM_MISMATCH);
	assert_string_equal(d.body, "");
}

/* If it failed: a tenant would see another one's answer, or be kept out. */
static void
test_claims__tenants_and_routes_are_apart(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c[3];

	for (int i = 0; i < 3; i++) {
		claim_init(&c[i], "k", "r");
		if (i == 1)
			c[i].claim.scope.tenant = PN_STR("shop2");
		if (i == 2)
			c[i].claim.scope.route = PN_STR("POST /v1/refunds");
		pn_claims_submit(f->claims, &c[i].claim);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(claim_wait(&c[i]), PN_CLAIM_RUN);
}

/* If it failed: what was not done would not run again, or what an operator has
 * to decide would. */
static void
test_claims__free_again_and_aside(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(settle(f->claims, &c, PN_SETTLE_FREE, ""), PN_SETTLED);
	/* As if it had never come: another request, the first attempt. */
	assert_int_equal(claim_put(f->claims, &c, "k", "q"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 1);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_AGAIN, ""), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_MISMATCH);
	assert_int_equal(claim_put(f->claims, &c, "k", "q"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 2);
	/* Of what may have had effects, the hash stays. */
	assert_int_equal(settle(f->claims, &c, PN_SETTLE_FREE, ""), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &c, "k", "q"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 3);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_ASIDE, ""), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &c, "k", "q"), PN_CLAIM_FAILED);
	assert_string_equal(c.reason, "why");
}

/* If it failed: a key in doubt would run at once, or whoever waits for it not
 * know that nobody is at work. */
static void
test_claims__doubt_leaves_the_lease(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_string_equal(d.reason, "");
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_DOUBT, ""), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_string_equal(d.reason, "why");
	assert_in_range(d.claim.retry_after_us,
	    TERMS.lease_us - 20 * PN_SECOND_US, TERMS.lease_us);
	end_leases(f);
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 2);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_string_equal(d.reason, "");
}

/* If it failed: a key would be taken for new after its time, or never again. */
static void
test_claims__expired_is_refused_or_new(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claim_terms refuse = TERMS;
	struct claim c;

	refuse.after_expiry = PN_CLAIM_REFUSE;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
		assert_int_equal(c.claim.attempt, 1 + i);
		assert_int_equal(
		    settle(f->claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
		(void)db(f->db, "UPDATE paynotify.idempotency_keys SET "
				"expires_at = now() - interval '1 s'");
		if (i == 1)
			(void)db(
			    f->db, "SELECT paynotify.archive_expired_keys(9)");
		claim_init(&c, "k", "r");
		c.claim.terms = &refuse;
		pn_claims_submit(f->claims, &c.claim);
		assert_int_equal(claim_wait(&c), PN_CLAIM_EXPIRED);
	}
	/* Also from the archive its number goes on. */
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 3);
}

/* If it failed: whoever is late would overwrite the answer of the next one. */
static void
test_claims__a_lost_lease_is_told(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	end_leases(f);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(d.claim.attempt, 2);
	for (int act = PN_SETTLE_COMPLETE; act <= PN_SETTLE_RENEW; act++)
		assert_int_equal(
		    settle(f->claims, &c, act, "late"), PN_SETTLED_LOST);
	assert_int_equal(
	    settle(f->claims, &d, PN_SETTLE_COMPLETE, "right"), PN_SETTLED);
	assert_int_equal(settle(f->claims, &d, PN_SETTLE_COMPLETE, "twice"),
	    PN_SETTLED_LOST);
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_REPLAY);
	assert_string_equal(c.body, "right");
}

/* If it failed: work that takes longer than its lease would run twice. */
static void
test_claims__renew_makes_a_lease_longer(void **state)
{
	struct claims_fixture *f = *state;
	struct settlement s;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	settlement_init(&s, &c, PN_SETTLE_RENEW, "");
	s.settlement.lease_us = 3600 * PN_SECOND_US;
	pn_claims_settle(f->claims, &s.settlement);
	assert_int_equal(settlement_wait(&s), PN_SETTLED);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_in_range(
	    d.claim.retry_after_us, 3580 * PN_SECOND_US, 3600 * PN_SECOND_US);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
}

/* If it failed: a holder that crashed too often would be run for ever. */
static void
test_claims__terms_go_with_each(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claim_terms hold = TERMS;
	struct claim c, d;

	hold.unknown = PN_CLAIM_HOLD;
	assert_int_equal(claim_put(f->claims, &c, "a", "r"), PN_CLAIM_RUN);
	assert_int_equal(claim_put(f->claims, &c, "b", "r"), PN_CLAIM_RUN);
	end_leases(f);
	claim_init(&c, "a", "r");
	c.claim.terms = &hold;
	claim_init(&d, "b", "r");
	pn_claims_submit(f->claims, &c.claim);
	pn_claims_submit(f->claims, &d.claim);
	assert_int_equal(claim_wait(&c), PN_CLAIM_FAILED);
	assert_non_null(strstr(c.reason, "did not come back"));
	assert_int_equal(claim_wait(&d), PN_CLAIM_RUN);
	assert_int_equal(d.claim.attempt, 2);
}

/* If it failed: of many clicks at once, on two hosts, several would run. */
static void
test_claims__one_of_many_runs(void **state)
{
	struct claims_fixture *f = *state;
	enum { COUNT = 500 };
	struct claim *claims = calloc(COUNT, sizeof(*claims));
	struct pn_claims *both[2] = { f->claims };
	int found[PN_CLAIM_FOUND_COUNT] = { 0 };
	struct heard heard;

	assert_non_null(claims);
	both[1] = claims_new(f->dsn, 15 * PN_SECOND_US, &heard);
	for (int i = 0; i < COUNT; i++) {
		claim_init(&claims[i], "k", "r");
		pn_claims_submit(both[i % 2], &claims[i].claim);
	}
	for (int i = 0; i < COUNT; i++)
		found[claim_wait(&claims[i])]++;
	assert_int_equal(found[PN_CLAIM_RUN], 1);
	assert_int_equal(found[PN_CLAIM_BUSY], COUNT - 1);
	pn_claims_close(both[1], PN_SECOND_US);
	free(claims);
}

/* If it failed: of a batch one would get another one's answer, or several large
 * answers not fit. */
static void
test_claims__many_keys_at_once_keep_apart(void **state)
{
	struct claims_fixture *f = *state;
	enum { COUNT = 400, BODY_BYTES = 200 << 10 };
	struct claim *claims = calloc(COUNT, sizeof(*claims));
	struct settlement *done = calloc(COUNT, sizeof(*done));
	char key[16], *body = malloc(BODY_BYTES);

	assert_non_null(claims);
	assert_non_null(done);
	assert_non_null(body);
	memset(body, 'x', BODY_BYTES);
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(key, sizeof(key), "k%d", (i * 7919) % COUNT);
		claim_init(&claims[i], key, key);
		pn_claims_submit(f->claims, &claims[i].claim);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(claim_wait(&claims[i]), PN_CLAIM_RUN);
		settlement_init(
		    &done[i], &claims[i], PN_SETTLE_COMPLETE, claims[i].key);
		if (i % 4 == 0) /* more than a batch's bytes */
			done[i].settlement.body =
			    (struct pn_str){ body, BODY_BYTES };
		pn_claims_settle(f->claims, &done[i].settlement);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(settlement_wait(&done[i]), PN_SETTLED);
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(key, sizeof(key), "k%d", (i * 31) % COUNT);
		claim_init(&claims[i], key, key);
		pn_claims_submit(f->claims, &claims[i].claim);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(claim_wait(&claims[i]), PN_CLAIM_REPLAY);
		if (claims[i].body[0] != 'x')
			assert_string_equal(claims[i].body, claims[i].key);
	}
	assert_int_equal(db(f->db,
			     "SELECT count(*) FROM paynotify.idempotency_keys "
			     "WHERE length(response_body) = %d",
			     BODY_BYTES),
	    COUNT / 4);
	free(claims);
	free(done);
	free(body);
}

/* If it failed: gateways would not know which key a notification means. */
static void
test_claims__digest_is_that_of_the_database(void **state)
{
	struct claims_fixture *f = *state;
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	struct claim c;

	assert_int_equal(
	    claim_put(f->claims, &c, "k\xc3\xa9", "r"), PN_CLAIM_RUN);
	(void)db(f->db, "SELECT paynotify.guard_set_free('shop1', "
			"'POST /v1/charges', 'k\xc3\xa9', 'why', 'me')");
	heard_wait(&f->heard, 1);
	pn_claim_digest(&c.claim.scope, digest);
	assert_memory_equal(digest, f->heard.last, sizeof(digest));
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, claims_fixture_setup, claims_fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_claims__run_then_replay),
		TEST(test_claims__an_empty_answer_is_one),
		TEST(test_claims__mismatch_and_busy),
		TEST(test_claims__tenants_and_routes_are_apart),
		TEST(test_claims__free_again_and_aside),
		TEST(test_claims__doubt_leaves_the_lease),
		TEST(test_claims__expired_is_refused_or_new),
		TEST(test_claims__a_lost_lease_is_told),
		TEST(test_claims__renew_makes_a_lease_longer),
		TEST(test_claims__terms_go_with_each),
		TEST(test_claims__one_of_many_runs),
		TEST(test_claims__many_keys_at_once_keep_apart),
		TEST(test_claims__digest_is_that_of_the_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
