/*
 * The rate limit of unverified requests. If these fail, a flood fills receipts
 * and log, or one peer's flood takes another's allowance. Time is passed in.
 */
#include "http_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define START (1000 * PN_SECOND_US)

static struct pn_peer
peer_of(unsigned number)
{
	struct pn_peer peer;
	char text[32];

	(void)snprintf(text, sizeof(text), "10.%u.%u.%u", number >> 16 & 255,
	    number >> 8 & 255, number & 255);
	assert_int_equal(pn_peer_parse(pn_str_from(text), &peer), 0);
	return peer;
}

static int
passed(
    struct pn_limiter *limiter, unsigned peer_number, int tries, int64_t now_us)
{
	struct pn_peer peer = peer_of(peer_number);
	int count = 0;

	for (int i = 0; i < tries; i++)
		count += !pn_limiter_exhausted(limiter, &peer, now_us);
	return count;
}

/* No end to a burst. */
static void
test_limiter__burst_is_one_second(void **state)
{
	struct pn_limiter *limiter = pn_limiter_new(5);

	(void)state;
	assert_non_null(limiter);
	assert_int_equal(passed(limiter, 1, 100, START), 5);
	pn_limiter_free(limiter);
}

/* A bucket that never fills again, or fills at once. */
static void
test_limiter__fills_at_the_rate(void **state)
{
	struct pn_limiter *limiter = pn_limiter_new(5);

	(void)state;
	assert_non_null(limiter);
	assert_int_equal(passed(limiter, 1, 100, START), 5);
	assert_int_equal(passed(limiter, 1, 9, START + 199999), 0);
	assert_int_equal(passed(limiter, 1, 9, START + 200000), 1);
	assert_int_equal(passed(limiter, 1, 9, START + 600000), 2);
	assert_int_equal(
	    passed(limiter, 1, 99, START + 3600 * PN_SECOND_US), 5);
	pn_limiter_free(limiter);
}

/* One peer's flood refuses another. */
static void
test_limiter__peers_have_their_own(void **state)
{
	struct pn_limiter *limiter = pn_limiter_new(3);

	(void)state;
	assert_non_null(limiter);
	for (unsigned i = 1; i < 200; i++)
		assert_int_equal(passed(limiter, i, 10, START + i), 3);
	pn_limiter_free(limiter);
}

/* A clock read before the lock was taken gives tokens, or takes time back. */
static void
test_limiter__time_may_step_back(void **state)
{
	struct pn_limiter *limiter = pn_limiter_new(2);

	(void)state;
	assert_non_null(limiter);
	assert_int_equal(passed(limiter, 1, 9, START), 2);
	assert_int_equal(passed(limiter, 1, 9, START - 400000), 0);
	assert_int_equal(passed(limiter, 1, 9, START + 100000), 0);
	assert_int_equal(passed(limiter, 1, 9, START + 500000), 1);
	pn_limiter_free(limiter);
}

/* More peers than buckets: somebody is refused for want of a place. */
static void
test_limiter__more_peers_than_places_forgets_the_oldest(void **state)
{
	struct pn_limiter *limiter = pn_limiter_new(1);

	(void)state;
	assert_non_null(limiter);
	for (unsigned i = 1; i < 20000; i++)
		assert_int_equal(passed(limiter, i, 1, START + i), 1);
	/* The last of them is remembered. */
	assert_int_equal(passed(limiter, 19999, 5, START + 20000), 0);
	pn_limiter_free(limiter);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limiter__burst_is_one_second),
		cmocka_unit_test(test_limiter__fills_at_the_rate),
		cmocka_unit_test(test_limiter__peers_have_their_own),
		cmocka_unit_test(test_limiter__time_may_step_back),
		cmocka_unit_test(
		    test_limiter__more_peers_than_places_forgets_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
