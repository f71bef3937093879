/*
 * The guard's keys when commits are cut and databases go away: nothing may be
 * told by guessing, no key be run twice, nobody kept waiting.
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

static const char SYNC_WAITING[] =
    "SELECT count(*) " CLAIMS_SESSIONS " AND wait_event = 'SyncRep'";

static int
teardown(void **state)
{
	struct claims_fixture *f = *state;

	db_set_standbys(f->db, f->dsn, "");
	return claims_fixture_teardown(state);
}

/* Whoever waits for the standby is cut twice in its commit; the second time it
 * is what was sent again, which must wait as well. */
static void
cut(struct claims_fixture *f, const char *function)
{
	long pid;

	for (int i = 0; i < 2; i++) {
		db_wait(f->db, 1, SYNC_WAITING);
		pid = (long)db(f->db,
		    "SELECT pid " CLAIMS_SESSIONS " AND wait_event = "
		    "'SyncRep'");
		(void)db(f->db, "SELECT count(%s(%ld))", function, pid);
		/* Neither is believed: the session ends. */
		db_wait(f->db, 0,
		    "SELECT count(*) " CLAIMS_SESSIONS " AND pid = %ld", pid);
	}
	db_wait(f->db, 1, SYNC_WAITING);
}

static void
cut_claim(struct claims_fixture *f, const char *function)
{
	struct claim c, d;

	db_set_standbys(f->db, f->dsn, "nobody");
	claim_init(&c, "k", "r");
	pn_claims_submit(f->claims, &c.claim);
	cut(f, function);
	assert_false(claim_is_done(&c));
	db_set_standbys(f->db, f->dsn, "");
	assert_int_equal(claim_wait(&c), PN_CLAIM_RUN);
	assert_int_equal(c.claim.attempt, 1);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_BUSY);
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
}

/* If it failed: a claim whose commit was cut would find itself in its way, and
 * the key be busy for a lease though nobody runs. */
static void
test_claims__a_cut_claim_knows_its_own(void **state)
{
	cut_claim(*state, "pg_terminate_backend");
}

/* If it failed: a claim would be told before the standby has it, and after a
 * failover the key be run twice. */
static void
test_claims__a_claim_with_a_warning_is_not_believed(void **state)
{
	cut_claim(*state, "pg_cancel_backend");
}

static void
cut_settlement(struct claims_fixture *f, const char *function)
{
	enum { ACTS = PN_SETTLE_RENEW + 1 };
	static const enum pn_claim_found after[ACTS] = {
		[PN_SETTLE_COMPLETE] = PN_CLAIM_REPLAY,
		[PN_SETTLE_FREE] = PN_CLAIM_RUN,
		[PN_SETTLE_AGAIN] = PN_CLAIM_RUN,
		[PN_SETTLE_ASIDE] = PN_CLAIM_FAILED,
		[PN_SETTLE_DOUBT] = PN_CLAIM_BUSY,
		[PN_SETTLE_RENEW] = PN_CLAIM_BUSY,
	};
	struct settlement s[ACTS];
	struct claim c[ACTS], d;
	char key[8];

	for (int i = 0; i < ACTS; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(
		    claim_put(f->claims, &c[i], key, "r"), PN_CLAIM_RUN);
	}
	for (int i = 0; i < ACTS; i++) {
		db_set_standbys(f->db, f->dsn, "nobody");
		settlement_init(&s[i], &c[i], (enum pn_settle_act)i, "answer");
		pn_claims_settle(f->claims, &s[i].settlement);
		cut(f, function);
		assert_false(settlement_is_done(&s[i]));
		db_set_standbys(f->db, f->dsn, "");
		assert_int_equal(settlement_wait(&s[i]), PN_SETTLED);
		assert_int_equal(
		    claim_put(f->claims, &d, c[i].key, "r"), after[i]);
	}
}

/* If it failed: an answer that is stored would be told to be lost, and the
 * client get an error for what was done. */
static void
test_claims__a_cut_settlement_knows_its_own(void **state)
{
	cut_settlement(*state, "pg_terminate_backend");
}

/* If it failed: an answer would be given that a failover takes back. */
static void
test_claims__a_settlement_with_a_warning_is_not_believed(void **state)
{
	cut_settlement(*state, "pg_cancel_backend");
}

#define LOCK_WAITING \
	"SELECT count(*) " CLAIMS_SESSIONS " AND wait_event_type = 'Lock'"

/* If it failed: whoever is sent again would take any answer for its own, and the
 * client get one that is not stored. */
static void
test_claims__sent_again_is_no_excuse(void **state)
{
	struct claims_fixture *f = *state;
	struct settlement s;
	struct claim c, d;

	assert_int_equal(claim_put(f->claims, &c, "k", "r"), PN_CLAIM_RUN);
	/* Another one has the key now, which is not visible yet. */
	(void)db(f->other, "BEGIN");
	(void)db(f->other,
	    "UPDATE paynotify.idempotency_keys SET state = 'COMPLETED', "
	    "response_status = 200, response_body = 'other', completed_at = "
	    "now(), lease_token = NULL, lease_expires_at = NULL, settled_by = "
	    "gen_random_uuid()");
	settlement_init(&s, &c, PN_SETTLE_COMPLETE, "mine");
	pn_claims_settle(f->claims, &s.settlement);
	db_wait(f->db, 1, LOCK_WAITING);
	(void)db(f->db,
	    "SELECT count(pg_terminate_backend(pid)) " CLAIMS_SESSIONS
	    " AND state = 'active'");
	db_wait(f->db, 1, LOCK_WAITING);
	(void)db(f->other, "COMMIT");
	assert_int_equal(settlement_wait(&s), PN_SETTLED_LOST);
	assert_int_equal(claim_put(f->claims, &d, "k", "r"), PN_CLAIM_REPLAY);
	assert_string_equal(d.body, "other");
}

enum { KEYS = 300, PER_KILL = 10 };

struct work {
	struct claim claim;
	struct settlement settlement;
	struct pn_claims *claims;
};

/* Settles at once, on the thread of the claims. */
static void
on_claimed(struct pn_claim *claim)
{
	struct work *work = claim->payload;

	settlement_init(&work->settlement, &work->claim, PN_SETTLE_COMPLETE,
	    work->claim.key);
	pn_claims_settle(work->claims, &work->settlement.settlement);
}

/* If it failed: connections that break at any moment would leave a key without
 * its answer, or run it twice. */
static void
test_claims__killed_connections_lose_nothing(void **state)
{
	struct claims_fixture *f = *state;
	struct work *works = calloc(KEYS, sizeof(*works));
	int submitted = 0;
	char key[16];

	assert_non_null(works);
	while (submitted < KEYS) {
		for (int i = 0; i < PER_KILL; i++, submitted++) {
			struct work *w = &works[submitted];

			(void)snprintf(key, sizeof(key), "k%d", submitted);
			claim_init(&w->claim, key, key);
			w->claims = f->claims;
			w->claim.claim.done = on_claimed;
			w->claim.claim.payload = w;
			pn_claims_submit(f->claims, &w->claim.claim);
		}
		/* Sooner or later, by how fast the others are. */
		db_wait(f->db, 1,
		    "SELECT count(*) >= %d FROM paynotify.idempotency_keys",
		    submitted - (submitted / PER_KILL) % PER_KILL);
		(void)db(f->db,
		    "SELECT count(pg_terminate_backend(pid)) " CLAIMS_SESSIONS
		    " AND state = 'active'");
	}
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(
		    settlement_wait(&works[i].settlement), PN_SETTLED);
		assert_int_equal(works[i].claim.claim.found, PN_CLAIM_RUN);
		assert_int_equal(works[i].claim.claim.attempt, 1);
	}
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.idempotency_keys WHERE "
		      "state = 'COMPLETED' AND response_body = key::bytea"),
	    KEYS);
	free(works);
}

static void
allow_connections(struct claims_fixture *f, bool allow)
{
	PGconn *admin = db_open(test_dsn()); /* another database */

	(void)db(admin, "ALTER DATABASE %s ALLOW_CONNECTIONS %s", PQdb(f->db),
	    allow ? "true" : "false");
	PQfinish(admin);
}

/* If it failed: without the database clients would wait for an answer, or the
 * gateway would not come back; or an answer that could still be stored would be
 * thrown away. */
static void
test_claims__without_a_database_nobody_waits(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;
	struct settlement s, patient;
	struct claim b, c, d;
	enum pn_settled r;

	pn_claims_close(f->claims, PN_SECOND_US);
	f->claims = NULL;
	claims = claims_new(f->dsn, SHORT_US, &heard);
	while (claim_put(claims, &c, "a", "r") != PN_CLAIM_RUN)
		; /* connected by then; bounded by the test's time-out */
	while (claim_put(claims, &b, "patient", "r") != PN_CLAIM_RUN)
		; /* ditto */
	allow_connections(f, false);
	(void)db(
	    f->db, "SELECT count(pg_terminate_backend(pid)) " CLAIMS_SESSIONS);
	db_wait(f->db, 0, "SELECT count(*) " CLAIMS_SESSIONS);
	claim_init(&d, "b", "r");
	pn_claims_submit(claims, &d.claim);
	settlement_init(&s, &c, PN_SETTLE_COMPLETE, "x");
	pn_claims_settle(claims, &s.settlement);
	settlement_init(&patient, &b, PN_SETTLE_COMPLETE, "y");
	patient.settlement.until_us = pn_clock_monotonic_us() + TERMS.lease_us;
	pn_claims_settle(claims, &patient.settlement);
	assert_int_equal(claim_wait(&d), PN_CLAIM_UNAVAILABLE);
	assert_int_equal(settlement_wait(&s), PN_SETTLED_UNKNOWN);
	assert_false(settlement_is_done(&patient));
	allow_connections(f, true);
	assert_int_equal(settlement_wait(&patient), PN_SETTLED);
	while (claim_put(claims, &d, "b", "r") == PN_CLAIM_UNAVAILABLE)
		; /* bounded by the test's time-out */
	do        /* ditto */
		r = settle(claims, &c, PN_SETTLE_COMPLETE, "x");
	while (r == PN_SETTLED_UNKNOWN);
	assert_int_equal(r, PN_SETTLED);
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: a commit that hangs would keep everybody behind it waiting; or
 * be told to have failed though it may not have. */
static void
test_claims__behind_a_commit_that_hangs_nobody_waits(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;
	struct claim c, d;

	pn_claims_close(f->claims, PN_SECOND_US);
	f->claims = NULL;
	claims = claims_new(f->dsn, SHORT_US, &heard);
	while (claim_put(claims, &c, "a", "r") == PN_CLAIM_UNAVAILABLE)
		; /* connected by then; bounded by the test's time-out */
	db_set_standbys(f->db, f->dsn, "nobody");
	claim_init(&c, "b", "r");
	pn_claims_submit(claims, &c.claim);
	db_wait(f->db, 1, SYNC_WAITING);
	assert_int_equal(claim_put(claims, &d, "c", "r"), PN_CLAIM_UNAVAILABLE);
	/* Submitted before the other, and sent. */
	assert_false(claim_is_done(&c));
	db_set_standbys(f->db, f->dsn, "");
	assert_int_equal(claim_wait(&c), PN_CLAIM_RUN);
	pn_claims_close(claims, PN_SECOND_US);
}

enum { LEFT = 200 };

/* If it failed: ending the daemon would leave requests without an answer, or
 * take as long as the database hangs. */
static void
test_claims__closing_answers_everybody(void **state)
{
	struct claims_fixture *f = *state;
	struct claim first, *claims = calloc(LEFT, sizeof(*claims));
	struct settlement *settlements = calloc(LEFT, sizeof(*settlements));
	char key[16];

	assert_non_null(claims);
	assert_non_null(settlements);
	assert_int_equal(claim_put(f->claims, &first, "k", "r"), PN_CLAIM_RUN);
	/* What can be done within the grace is done, */
	for (int i = 0; i < LEFT; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		claim_init(&claims[i], key, "r");
		pn_claims_submit(f->claims, &claims[i].claim);
	}
	pn_claims_close(f->claims, 15 * PN_SECOND_US);
	for (int i = 0; i < LEFT; i++) {
		assert_int_equal(claims[i].done_count, 1);
		assert_int_equal(claims[i].claim.found, PN_CLAIM_RUN);
	}
	/* and what cannot is not known. */
	f->claims = claims_new(f->dsn, 15 * PN_SECOND_US, &f->heard);
	while (claim_put(f->claims, &first, "l", "r") != PN_CLAIM_RUN)
		; /* connected */
	assert_int_equal(
	    settle(f->claims, &first, PN_SETTLE_RENEW, ""), PN_SETTLED);
	db_set_standbys(f->db, f->dsn, "nobody");
	for (int i = 0; i < LEFT; i++) {
		settlement_init(
		    &settlements[i], &claims[i], PN_SETTLE_COMPLETE, "x");
		pn_claims_settle(f->claims, &settlements[i].settlement);
		(void)snprintf(key, sizeof(key), "l%d", i);
		claim_init(&claims[i], key, "r");
		pn_claims_submit(f->claims, &claims[i].claim);
	}
	db_wait(f->db, 2, SYNC_WAITING);
	pn_claims_close(f->claims, 0);
	f->claims = NULL;
	for (int i = 0; i < LEFT; i++) {
		assert_int_equal(claims[i].done_count, 1);
		assert_int_equal(claims[i].claim.found, PN_CLAIM_UNAVAILABLE);
		assert_int_equal(settlements[i].done_count, 1);
		assert_int_equal(
		    settlements[i].settlement.settled, PN_SETTLED_UNKNOWN);
	}
	free(claims);
	free(settlements);
}

static void
on_given_up(struct pn_claim *claim)
{
	assert_int_equal(claim->found, PN_CLAIM_UNAVAILABLE);
	on_claimed(claim);
}

/* If it failed: what is submitted while it closes would never be answered. */
static void
test_claims__a_done_may_submit_while_it_closes(void **state)
{
	struct claims_fixture *f = *state;
	struct work work = { .claims = f->claims };
	struct claim hanging;

	db_set_standbys(f->db, f->dsn, "nobody");
	claim_init(&hanging, "a", "r");
	pn_claims_submit(f->claims, &hanging.claim);
	db_wait(f->db, 1, SYNC_WAITING);
	claim_init(&work.claim, "k", "r");
	work.claim.claim.done = on_given_up;
	work.claim.claim.payload = &work;
	pn_claims_submit(f->claims, &work.claim.claim);
	pn_claims_close(f->claims, 0);
	f->claims = NULL;
	assert_int_equal(claim_wait(&hanging), PN_CLAIM_UNAVAILABLE);
	assert_int_equal(settlement_wait(&work.settlement), PN_SETTLED_UNKNOWN);
}

/* If it failed: an answer would be thrown away, and the work done again, because a
 * migration was under way when it came. */
static void
test_claims__a_settlement_outlasts_a_missing_schema(void **state)
{
	struct claims_fixture *f = *state;
	struct settlement patient;
	struct pn_claims *claims;
	struct heard heard;
	struct claim a, b;

	claims = claims_new(f->dsn, SHORT_US, &heard);
	while (claim_put(claims, &a, "a", "r") != PN_CLAIM_RUN)
		; /* connected by then; bounded by the test's time-out */
	while (claim_put(claims, &b, "b", "r") != PN_CLAIM_RUN)
		; /* ditto */
	while (settle(claims, &b, PN_SETTLE_RENEW, "") != PN_SETTLED)
		; /* ditto */
	(void)db(f->db, "ALTER SCHEMA paynotify RENAME TO elsewhere");
	settlement_init(&patient, &a, PN_SETTLE_COMPLETE, "x");
	patient.settlement.until_us = pn_clock_monotonic_us() + TERMS.lease_us;
	pn_claims_settle(claims, &patient.settlement);
	/* Behind it, so that it has been refused by then. */
	assert_int_equal(
	    settle(claims, &b, PN_SETTLE_COMPLETE, "y"), PN_SETTLED_UNKNOWN);
	assert_false(settlement_is_done(&patient));
	(void)db(f->db, "ALTER SCHEMA elsewhere RENAME TO paynotify");
	assert_int_equal(settlement_wait(&patient), PN_SETTLED);
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: a daemon that starts before its schema, or keeps running without
 * it, would need a restart after the migration. */
static void
test_claims__without_schema_it_recovers(void **state)
{
	struct claims_fixture *f = *state;
	struct claim c;

	assert_int_equal(claim_put(f->claims, &c, "a", "r"), PN_CLAIM_RUN);
	(void)db(f->db, "ALTER SCHEMA paynotify RENAME TO elsewhere");
	assert_int_equal(
	    claim_put(f->claims, &c, "b", "r"), PN_CLAIM_UNAVAILABLE);
	(void)db(f->db, "ALTER SCHEMA elsewhere RENAME TO paynotify");
	while (claim_put(f->claims, &c, "b", "r") == PN_CLAIM_UNAVAILABLE)
		; /* bounded by the test's time-out */
	assert_int_equal(
	    settle(f->claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED);
}

int
main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, claims_fixture_setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_claims__a_cut_claim_knows_its_own),
		TEST(test_claims__a_claim_with_a_warning_is_not_believed),
		TEST(test_claims__a_cut_settlement_knows_its_own),
		TEST(test_claims__a_settlement_with_a_warning_is_not_believed),
		TEST(test_claims__sent_again_is_no_excuse),
		TEST(test_claims__killed_connections_lose_nothing),
		TEST(test_claims__without_a_database_nobody_waits),
		TEST(test_claims__behind_a_commit_that_hangs_nobody_waits),
		TEST(test_claims__closing_answers_everybody),
		TEST(test_claims__a_done_may_submit_while_it_closes),
		TEST(test_claims__a_settlement_outlasts_a_missing_schema),
		TEST(test_claims__without_schema_it_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
