/*
 * What daemons hear of each other's keys.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "claims_support.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;

#define LISTENERS CLAIMS_SESSIONS " AND query ~ '(LISTEN|NOTIFY|pg_notify)'"

/* Two daemons: the fixture's, and this one. */
static struct pn_claims *
second(struct claims_fixture *f, struct heard *heard)
{
	return claims_new(f->dsn, 15 * PN_SECOND_US, heard);
}

static int
all_count(struct heard *heard)
{
	int all;

	pthread_mutex_lock(&heard->lock);
	all = heard->all;
	pthread_mutex_unlock(&heard->lock);
	return all;
}

/* Claims a key and settles it so. */
static void
run(struct pn_claims *claims, const char *key, enum pn_settle_act act)
{
	struct claim c;

	assert_int_equal(claim_put(claims, &c, key, "r"), PN_CLAIM_RUN);
	assert_int_equal(settle(claims, &c, act, "x"), PN_SETTLED);
}

/* If it failed: whoever waits for another daemon's request would look only once
 * a second; or look for each lease that is renewed. */
static void
test_claims__others_hear_what_was_settled(void **state)
{
	struct claims_fixture *f = *state;
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	struct heard heard;
	struct pn_claims *claims = second(f, &heard);
	struct claim c;

	run(claims, "a", PN_SETTLE_COMPLETE);
	heard_wait(&f->heard, 1);
	run(claims, "b", PN_SETTLE_FREE);
	heard_wait(&f->heard, 2);
	run(claims, "c", PN_SETTLE_AGAIN);
	heard_wait(&f->heard, 3);
	run(claims, "d", PN_SETTLE_ASIDE);
	heard_wait(&f->heard, 4);
	run(claims, "e", PN_SETTLE_RENEW);
	/* What was lost is not told either. */
	claim_init(&c, "e", "r");
	assert_int_equal(
	    settle(claims, &c, PN_SETTLE_COMPLETE, "x"), PN_SETTLED_LOST);
	run(claims, "f", PN_SETTLE_COMPLETE);
	heard_wait(&f->heard, 5);
	claim_init(&c, "f", "r");
	pn_claim_digest(&c.claim.scope, digest);
	assert_memory_equal(f->heard.last, digest, sizeof(digest));
	assert_int_equal(heard_count(&f->heard), 5);
	/* Its own settlements it knows. */
	assert_int_equal(heard_count(&heard), 0);
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: under load commits would wait for each other's notifications, or
 * some be cut off or dropped. */
static void
test_claims__many_are_told_together(void **state)
{
	struct claims_fixture *f = *state;
	enum { COUNT = 1000 };
	struct claim *claims = calloc(COUNT, sizeof(*claims));
	struct settlement *done = calloc(COUNT, sizeof(*done));
	struct heard heard;
	struct pn_claims *other = second(f, &heard);
	PGnotify *notification;
	size_t payloads = 0, len;
	char key[16];

	assert_non_null(claims);
	assert_non_null(done);
	(void)db(f->other, "LISTEN paynotify_guard");
	for (int i = 0; i < COUNT; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		claim_init(&claims[i], key, "r");
		pn_claims_submit(other, &claims[i].claim);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(claim_wait(&claims[i]), PN_CLAIM_RUN);
		settlement_init(&done[i], &claims[i], PN_SETTLE_COMPLETE, "x");
	}
	for (int i = 0; i < COUNT; i++)
		pn_claims_settle(other, &done[i].settlement);
	heard_wait(&f->heard, COUNT);
	assert_int_equal(PQconsumeInput(f->other), 1);
	while ((notification = PQnotifies(f->other)) != NULL) {
		len = strlen(notification->extra);
		assert_true(len < 8000);
		assert_int_equal(
		    (len + 1) % (2 * PN_CLAIM_DIGEST_BYTES + 1), 0);
		payloads++;
		PQfreemem(notification);
	}
	/* Of each batch, at most one. */
	assert_in_range(payloads, 1, COUNT / 4);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(settlement_wait(&done[i]), PN_SETTLED);
	pn_claims_close(other, PN_SECOND_US);
	free(claims);
	free(done);
}

static void
allow_connections(struct claims_fixture *f, bool allow)
{
	PGconn *admin = db_open(test_dsn()); /* another database */

	(void)db(admin, "ALTER DATABASE %s ALLOW_CONNECTIONS %s", PQdb(f->db),
	    allow ? "true" : "false");
	PQfinish(admin);
}

static void
wait_heard(struct pn_claims *claims, bool wanted)
{
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;

	while (pn_claims_are_heard(claims) != wanted) {
		assert_true(pn_clock_monotonic_us() < until_us);
		/* Not for luck: a poll of a condition, with a limit. */
		(void)usleep(500);
	}
}

/* If it failed: what is remembered of keys would be believed though an operator
 * has freed one unheard. */
static void
test_claims__whoever_was_deaf_is_told(void **state)
{
	struct claims_fixture *f = *state;

	assert_int_equal(all_count(&f->heard), 1);
	allow_connections(f, false);
	(void)db(f->db, "SELECT count(pg_terminate_backend(pid)) " LISTENERS);
	wait_heard(f->claims, false);
	/* The lanes are there all the while. */
	run(f->claims, "k", PN_SETTLE_COMPLETE);
	assert_int_equal(all_count(&f->heard), 1);
	allow_connections(f, true);
	wait_heard(f->claims, true);
	assert_int_equal(all_count(&f->heard), 2);
}

/* If it failed: others would never hear what was settled while the connection
 * that tells it was away. */
static void
test_claims__what_could_not_be_told_is_told_later(void **state)
{
	struct claims_fixture *f = *state;
	struct pn_claims *claims;
	struct heard heard;

	run(f->claims, "j", PN_SETTLE_COMPLETE); /* connected */
	allow_connections(f, false);
	(void)db(f->db, "SELECT count(pg_terminate_backend(pid)) " LISTENERS);
	wait_heard(f->claims, false);
	run(f->claims, "k", PN_SETTLE_COMPLETE);
	run(f->claims, "l", PN_SETTLE_FREE);
	assert_false(pn_claims_are_heard(f->claims));
	/* Who listens is there before it is told. */
	(void)db(f->other, "LISTEN paynotify_guard");
	allow_connections(f, true);
	claims = second(f, &heard);
	wait_heard(f->claims, true);
	run(f->claims, "m", PN_SETTLE_COMPLETE);
	heard_wait(&heard, 1);
	db_wait(f->other, 1, "SELECT 1");
	for (int payloads = 0; payloads == 0;) {
		PGnotify *notification;

		assert_int_equal(PQconsumeInput(f->other), 1);
		notification = PQnotifies(f->other);
		if (notification == NULL)
			continue; /* bounded by the test's time-out */
		/* Both in the first one. */
		assert_int_equal(strlen(notification->extra),
		    2 * 2 * PN_CLAIM_DIGEST_BYTES + 1);
		PQfreemem(notification);
		payloads++;
	}
	pn_claims_close(claims, PN_SECOND_US);
}

/* If it failed: anybody on the database could bring the gateway down. */
static void
test_claims__nonsense_is_skipped(void **state)
{
	struct claims_fixture *f = *state;

	(void)db(f->db, "SELECT pg_notify('paynotify_guard', p) FROM unnest("
			"ARRAY['', ',', 'x', repeat('z', 32), repeat('a', 31), "
			"repeat('a', 33), repeat('a,', 3000)]) p");
	(void)db(f->db, "SELECT pg_notify('paynotify_guard', 'x,' || "
			"repeat('0f', 16) || ',' || repeat('F', 32) || ',')");
	heard_wait(&f->heard, 2);
	assert_int_equal(heard_count(&f->heard), 2);
	assert_int_equal(f->heard.last[0], 0xff);
	assert_true(pn_claims_are_heard(f->claims));
}

/* If it failed: a daemon that ends would have others wait for what it settled
 * last. */
static void
test_claims__the_last_is_told_before_the_end(void **state)
{
	struct claims_fixture *f = *state;
	enum { ROUNDS = 10 };
	struct pn_claims *claims;
	struct heard heard;
	char key[8];

	for (int i = 0; i < ROUNDS; i++) {
		claims = second(f, &heard);
		(void)snprintf(key, sizeof(key), "a%d", i);
		run(claims, key, PN_SETTLE_COMPLETE);
		(void)snprintf(key, sizeof(key), "b%d", i);
		run(claims, key, PN_SETTLE_COMPLETE); /* within 10 ms */
		pn_claims_close(claims, 15 * PN_SECOND_US);
		heard_wait(&f->heard, 2 * (i + 1));
	}
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, claims_fixture_setup, claims_fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_claims__others_hear_what_was_settled),
		TEST(test_claims__many_are_told_together),
		TEST(test_claims__whoever_was_deaf_is_told),
		TEST(test_claims__what_could_not_be_told_is_told_later),
		TEST(test_claims__nonsense_is_skipped),
		TEST(test_claims__the_last_is_told_before_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
