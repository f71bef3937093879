/*
 * The guard's keys beside others: transactions that have a key, elements that
 * the database refuses, roles.
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

static const int64_t SHORT_US = 300 * PN_MILLISECOND_US;

#define LOCK_WAITING \
	"SELECT count(*) " CLAIMS_SESSIONS " AND wait_event_type = 'Lock'"

#define SYNC_WAITING \
	"SELECT count(*) " CLAIMS_SESSIONS " AND wait_event = 'SyncRep'"

/* An application claims the key in a transaction that stays open. */
static void
hold(struct claims_fixture *f, const char *key)
{
	(void)db(f->other,
	    "SELECT * FROM paynotify.guard_claim('shop1', "
	    "'POST /v1/charges', '%s', sha256('r'))",
	    key);
}

/* Submits what makes the lane wait for a lock, so that what is submitted after
 * it makes one batch. */
static void
occupy(struct claims_fixture *f, struct claim *claim)
{
	claim_init(claim, "occupied", "r");
	pn_claims_submit(f->claims, &claim->claim);
	db_wait(f->db, 1, LOCK_WAITING);
}

/* If it failed: one transaction that is open would hold up, or take with it, all
 * other keys. */
static void
test_claims__a_held_key_harms_no_other(void **state)
{
	struct claims_fixture *f = *state;
	struct claim first, c[4];
	char key[8];

	(void)db(f->other, "BEGIN");
	hold(f, "occupied");
	hold(f, "k2");
	occupy(f, &first);
	for (int i = 0; i < 4; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		claim_init(&c[i], key, "r");
		pn_claims_submit(f->claims, &c[i].claim);
	}
	assert_int_equal(claim_wait(&first), PN_CLAIM_BUSY);
	assert_int_equal(first.claim.retry_after_us, PN_SECOND_US);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
		    claim_wait(&c[i]), i == 2 ? PN_CLAIM_BUSY : PN_CLAIM_RUN);
	(void)db(f->other, "ROLLBACK");
	assert_int_equal(claim_put(f->claims, &c[2], "k2", "r"), PN_CLAIM_RUN);
	assert_int_equal(c[2].claim.attempt, 1);
}

/* If it failed: each claim of a key that is held would cost all others a
 * lock_timeout. */
static void
test_claims__a_key_known_as_held_goes_alone(void **state)
{
	struct claims_fixture *f = *state;
	struct claim first, c, d;

	(void)db(f->other, "BEGIN");
	hold(f, "k");
	hold(f, "occupied");
	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_BUSY);
	/* The next batch would have both. */
	occupy(f, &first);
	claim_init(&c, "k", "r");
	pn_claims_submit(f->claims, &c.claim);
	claim_init(&d, "d", "r");
	pn_claims_submit(f->claims, &d.claim);
	assert_int_equal(claim_wait(&c), PN_CLAIM_BUSY);
	assert_int_equal(claim_wait(&d), PN_CLAIM_RUN);
	assert_true(c.claim.item.alone);
	assert_false(d.claim.item.alone);
	assert_int_equal(claim_wait(&first), PN_CLAIM_BUSY);
	(void)db(f->other, "ROLLBACK");
}

/* If it failed: an answer would be given up because somebody looks at its row,
 * and its work be done again. */
static void
test_claims__a_settlement_outlasts_a_lock(void **state)
{
	struct claims_fixture *f = *state;
	struct settlement s, t;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "a", "r"), PN_CLAIM_RUN);
	assert_int_equal(claim_put(f->claims, &d, "b", "r"), PN_CLAIM_RUN);
	(void)db(f->other, "BEGIN; SELECT FROM paynotify.idempotency_keys "
			   "WHERE key = 'a' FOR UPDATE");
	settlement_init(&s, &c, PN_SETTLE_COMPLETE, "x");
	settlement_init(&t, &d, PN_SETTLE_COMPLETE, "y");
	pn_claims_settle(f->claims, &s.settlement);
	pn_claims_settle(f->claims, &t.settlement);
	assert_int_equal(settlement_wait(&t), PN_SETTLED);
	/* It has been refused once, by itself, by then. */
	assert_int_equal(claim_put(f->claims, &d, "c", "r"), PN_CLAIM_RUN);
	assert_int_equal(
	    settle(f->claims, &d, PN_SETTLE_COMPLETE, "z"), PN_SETTLED);
	assert_false(settlement_is_done(&s));
	(void)db(f->other, "ROLLBACK");
	assert_int_equal(settlement_wait(&s), PN_SETTLED);
}

/* If it failed: behind a few long answers leases would end before they are renewed,
 * and the work of others be done again. */
static void
test_claims__long_answers_hold_up_no_short_one(void **state)
{
	static const char *const keys[] = { "first", "b", "c", "d", "renewed" };
	enum { COUNT = 5, LONG_BYTES = 8 << 20 };
	struct claims_fixture *f = *state;
	struct settlement s[COUNT];
	struct claim claims[COUNT];
	char *body = malloc(LONG_BYTES);

	assert_non_null(body);
	memset(body, 'x', LONG_BYTES);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(claim_put(f->claims, &claims[i], keys[i], "r"),
		    PN_CLAIM_RUN);
		settlement_init(&s[i], &claims[i], PN_SETTLE_COMPLETE, "x");
		if (i > 0)
			s[i].settlement.body =
			    (struct pn_str){ body, LONG_BYTES };
	}
	settlement_init(&s[4], &claims[4], PN_SETTLE_RENEW, "");
	/* The others queue up behind its commit. */
	db_set_standbys(f->db, f->dsn, "nobody");
	pn_claims_settle(f->claims, &s[0].settlement);
	db_wait(f->db, 1, SYNC_WAITING);
	for (int i = 1; i < COUNT; i++)
		pn_claims_settle(f->claims, &s[i].settlement);
	db_set_standbys(f->db, f->dsn, "");
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(settlement_wait(&s[i]), PN_SETTLED);
	assert_true(s[4].turn < s[2].turn);
	assert_true(s[1].turn < s[2].turn && s[2].turn < s[3].turn);
	free(body);
}

/* If it failed: a lock that does not end would keep a client waiting for ever. */
static void
test_claims__a_lock_that_does_not_end_is_unknown(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;
	struct claim c;

	claims = claims_new(f->dsn, SHORT_US, &heard);
	while (claim_put(claims, &c, "a", "r") == PN_CLAIM_UNAVAILABLE)
		; /* connected by then; bounded by the test's time-out */
	(void)db(f->other, "BEGIN; SELECT FROM paynotify.idempotency_keys "
			   "FOR UPDATE");
	assert_int_equal(
	    settle(claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED_UNKNOWN);
	(void)db(f->other, "ROLLBACK");
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: one request with a key that no database takes would have the
 * others refused with it. */
static void
test_claims__a_bad_one_harms_no_other(void **state)
{
	struct claims_fixture *f = *state;
	static const char *const keys[] = { "a", "\xff", "c", "" };
	struct claim first, c[PN_COUNT(keys)];
	struct settlement s[2];

	(void)db(f->other, "BEGIN");
	hold(f, "occupied");
	occupy(f, &first);
	for (size_t i = 0; i < PN_COUNT(keys); i++) {
		claim_init(&c[i], keys[i], "r");
		pn_claims_submit(f->claims, &c[i].claim);
	}
	for (size_t i = 0; i < PN_COUNT(keys); i++)
		assert_int_equal(claim_wait(&c[i]),
		    i % 2 == 1 ? PN_CLAIM_UNAVAILABLE : PN_CLAIM_RUN);
	(void)db(f->other, "ROLLBACK");
	/* A status that is none. */
	for (int i = 0; i < 2; i++) {
		settlement_init(&s[i], &c[2 * i], PN_SETTLE_COMPLETE, "x");
		if (i == 0)
			s[i].settlement.status = 42;
		pn_claims_settle(f->claims, &s[i].settlement);
	}
	assert_int_equal(settlement_wait(&s[0]), PN_SETTLED_UNKNOWN);
	assert_int_equal(settlement_wait(&s[1]), PN_SETTLED);
}

/* A DSN of this login role. */
static void
role_dsn(struct claims_fixture *f, const char *role, char ret_dsn[DSN_BYTES])
{
	(void)db(f->db,
	    "DO $$ BEGIN CREATE ROLE %s LOGIN; EXCEPTION WHEN "
	    "duplicate_object THEN NULL; END $$",
	    role);
	assert_true(snprintf(ret_dsn, DSN_BYTES, "%s user=%s", f->dsn, role) <
		    DSN_BYTES);
}

/* If it failed: the rights that are documented would not be enough. */
static void
test_claims__the_receivers_role_is_enough(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;
	char dsn[DSN_BYTES];
	struct claim c;

	role_dsn(f, "gateway", dsn);
	(void)db(f->db, "GRANT paynotify_receiver TO gateway");
	claims = claims_new(dsn, 15 * PN_SECOND_US, &heard);
	assert_int_equal(claim_put(claims, &c, "k", "r"), PN_CLAIM_RUN);
	assert_int_equal(
	    settle(claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
	assert_int_equal(claim_put(claims, &c, "k", "r"), PN_CLAIM_REPLAY);
	heard_wait(&f->heard, 1);
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: a role without rights would have clients wait. */
static void
test_claims__without_rights_nothing_is_claimed(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;
	char dsn[DSN_BYTES];
	struct claim c;

	role_dsn(f, "deliverer", dsn);
	(void)db(f->db, "GRANT paynotify_deliverer TO deliverer");
	claims = claims_new(dsn, 15 * PN_SECOND_US, &heard);
	assert_int_equal(claim_put(claims, &c, "k", "r"), PN_CLAIM_UNAVAILABLE);
	assert_int_equal(
	    settle(claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED_UNKNOWN);
	pn_claims_close(claims, PN_SECOND_US);
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, claims_fixture_setup, claims_fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_claims__a_held_key_harms_no_other),
		TEST(test_claims__a_key_known_as_held_goes_alone),
		TEST(test_claims__a_settlement_outlasts_a_lock),
		TEST(test_claims__long_answers_hold_up_no_short_one),
		TEST(test_claims__a_lock_that_does_not_end_is_unknown),
		TEST(test_claims__a_bad_one_harms_no_other),
		TEST(test_claims__the_receivers_role_is_enough),
		TEST(test_claims__without_rights_nothing_is_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
