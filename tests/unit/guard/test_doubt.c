/*
 * Tokens of claims that may have been committed unseen. If these fail, one is
 * used when its lease is nearly over, and another daemon charges too.
 */
#include "flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

enum { LEASE_S = 60 };

static struct pn_doubts doubts;
static const struct pn_claim_terms terms = {
	.lease_us = LEASE_S * PN_SECOND_US,
};

static struct pn_flight
flight_at(int64_t since_us, unsigned char token)
{
	struct pn_flight flight = { .since_us = since_us };

	flight.claim.terms = &terms;
	flight.digest[0] = 1;
	flight.hash[0] = 2;
	flight.claim.token[0] = token;
	return flight;
}

/* A retry finds its own key busy, or takes the token of another request. */
static void
test_doubt__the_retry_takes_the_token_once(void **state)
{
	struct pn_flight lost = flight_at(PN_SECOND_US, 'a');
	struct pn_flight other = flight_at(2 * PN_SECOND_US, 'b');
	struct pn_flight retry = flight_at(2 * PN_SECOND_US, 'c');
	struct pn_flight third = flight_at(2 * PN_SECOND_US, 'd');

	(void)state;
	memset(&doubts, 0, sizeof(doubts));
	pn_doubts_put(&doubts, &lost);
	other.hash[0] = 3;
	pn_doubts_take(&doubts, &other, other.since_us);
	assert_false(other.in_doubt);
	pn_doubts_take(&doubts, &retry, retry.since_us);
	assert_true(retry.in_doubt);
	assert_int_equal(retry.claim.token[0], 'a');
	pn_doubts_take(&doubts, &third, third.since_us);
	assert_false(third.in_doubt);
}

/* Each retry that finds out nothing prolongs the token, and the lease that it
 * may have ends all the same: it is used beside who has claimed the key since. */
static void
test_doubt__retries_do_not_prolong_a_token(void **state)
{
	int64_t start_us = 100 * PN_SECOND_US;
	int64_t end_us = start_us + LEASE_S * PN_SECOND_US / 2;
	struct pn_flight flight = flight_at(start_us, 'a');

	(void)state;
	memset(&doubts, 0, sizeof(doubts));
	pn_doubts_put(&doubts, &flight);
	for (int64_t us = start_us; us < end_us; us += 10 * PN_SECOND_US) {
		flight = flight_at(us, 'b');
		pn_doubts_take(&doubts, &flight, us);
		assert_true(flight.in_doubt);
		assert_int_equal(flight.claim.token[0], 'a');
		/* Claimed again later, as after it was busy. */
		flight.since_us += PN_SECOND_US;
		pn_doubts_put(&doubts, &flight);
	}
	flight = flight_at(end_us, 'b');
	pn_doubts_take(&doubts, &flight, end_us);
	assert_false(flight.in_doubt);
	assert_int_equal(flight.claim.token[0], 'b');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doubt__the_retry_takes_the_token_once),
		cmocka_unit_test(test_doubt__retries_do_not_prolong_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
