/*
 * The token bucket. If these fail, a limit lets through what it should not, or
 * never lets anything through again. Time is passed in.
 */
#include "paynotify/rate.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "paynotify/compiler.h"

#define SECOND INT64_C(1000000)
#define START  (1000 * SECOND)

static int
passed(struct pn_rate *rate, int64_t per_second, int tries, int64_t now_us)
{
	int count = 0;

	for (int i = 0; i < tries; i++)
		count += !pn_rate_exhausted(rate, per_second, now_us);
	return count;
}

/* A burst is longer or shorter than a second's worth, for a rate that does not
 * divide a second too. */
static void
test_rate__burst_is_one_second(void **state)
{
	static const int rates[] = { 1, 2, 3, 7, 999, 1000, 1000000 };

	(void)state;
	for (size_t i = 0; i < PN_COUNT(rates); i++) {
		struct pn_rate rate = { 0 };

		assert_int_equal(
		    passed(&rate, rates[i], rates[i] + 9, START), rates[i]);
		assert_int_equal(passed(&rate, rates[i], rates[i] + 9,
				     START + 3600 * SECOND),
		    rates[i]);
	}
}

/* It never fills again, or at once. */
static void
test_rate__fills_at_the_rate(void **state)
{
	struct pn_rate rate = { 0 };

	(void)state;
	assert_int_equal(passed(&rate, 5, 9, START), 5);
	assert_int_equal(passed(&rate, 5, 9, START + 199999), 0);
	assert_int_equal(passed(&rate, 5, 9, START + 200000), 1);
	assert_int_equal(passed(&rate, 5, 9, START + 600000), 2);
}

/* Asking makes the wait longer: who keeps asking is never served again. */
static void
test_rate__what_is_refused_takes_nothing(void **state)
{
	struct pn_rate rate = { 0 };

	(void)state;
	assert_int_equal(passed(&rate, 1, 1, START), 1);
	assert_int_equal(passed(&rate, 1, 1000, START + SECOND - 1), 0);
	assert_int_equal(passed(&rate, 1, 1, START + SECOND), 1);
}

/* A clock read by another thread a little earlier gives more, or takes time
 * back. */
static void
test_rate__time_may_step_back(void **state)
{
	struct pn_rate rate = { 0 };

	(void)state;
	assert_int_equal(passed(&rate, 2, 9, START), 2);
	assert_int_equal(passed(&rate, 2, 9, START - 400000), 0);
	assert_int_equal(passed(&rate, 2, 9, START + 100000), 0);
	assert_int_equal(passed(&rate, 2, 9, START + 500000), 1);
}

enum { THREADS = 4, TRIES = 10000, RATE = 9999 };

struct taker {
	pthread_t thread;
	struct pn_rate *rate;
	int passed;
};

static void *
take(void *payload)
{
	struct taker *taker = payload;

	taker->passed = passed(taker->rate, RATE, TRIES, START);
	return NULL;
}

/* Two threads take the same one. */
static void
test_rate__threads_share_it(void **state)
{
	struct pn_rate rate = { 0 };
	struct taker takers[THREADS];
	int count = 0;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		takers[i] = (struct taker){ .rate = &rate };
		assert_int_equal(
		    pthread_create(&takers[i].thread, NULL, take, &takers[i]),
		    0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
		count += takers[i].passed;
	}
	assert_int_equal(count, RATE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate__burst_is_one_second),
		cmocka_unit_test(test_rate__fills_at_the_rate),
		cmocka_unit_test(test_rate__what_is_refused_takes_nothing),
		cmocka_unit_test(test_rate__time_may_step_back),
		cmocka_unit_test(test_rate__threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
