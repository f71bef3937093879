/*
 * The breaker: every transition that its essay draws, and that no result of
 * another state counts. `random` 0 makes pauses 80 % of their length.
 */
#include "breaker.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "paynotify/moment.h"

enum { STREAK = 10, ROOM = 64 };

static enum pn_breaker_change
result(struct pn_breaker *b, bool alive, int64_t now_us)
{
	return pn_breaker_result(b, pn_breaker_sent(b), alive, now_us, 0);
}

/* Opens it with a row of failures. */
static void
trip(struct pn_breaker *b, int64_t now_us)
{
	for (int i = 1; i < STREAK; i++)
		assert_int_equal(
		    result(b, false, now_us), PN_BREAKER_UNCHANGED);
	assert_int_equal(result(b, false, now_us), PN_BREAKER_OPENED);
	assert_int_equal(b->state, PN_BREAKER_OPEN);
}

/* If it failed: an endpoint that is down would use up the attempts of all its
 * events, or a single event that fails would stop all the others. */
static void
test_breaker__opens_after_failures_in_a_row(void **state)
{
	struct pn_breaker b = { 0 };

	(void)state;
	/* One success between them: not in a row. */
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < STREAK; i++)
			assert_int_equal(
			    result(&b, false, 0), PN_BREAKER_UNCHANGED);
		assert_int_equal(result(&b, true, 0), PN_BREAKER_UNCHANGED);
		assert_int_equal(pn_breaker_allows(&b, ROOM, 0), ROOM);
	}
	b = (struct pn_breaker){ 0 };
	trip(&b, 0);
	assert_int_equal(pn_breaker_allows(&b, ROOM, 0), 0);
}

/* If it failed: an endpoint that fails every other event would be driven at
 * full speed for as long as it likes. */
static void
test_breaker__opens_when_half_of_many_fail(void **state)
{
	struct pn_breaker b = { 0 };
	int i;

	(void)state;
	for (i = 1; i <= 31; i++)
		assert_int_equal(
		    result(&b, i % 2 == 0, 0), PN_BREAKER_UNCHANGED);
	/* The 32nd is a success, which opens nothing; the 33rd fails. */
	assert_int_equal(result(&b, true, 0), PN_BREAKER_UNCHANGED);
	assert_int_equal(result(&b, false, 0), PN_BREAKER_OPENED);
	/* A third is less than half, however long it lasts. */
	b = (struct pn_breaker){ 0 };
	for (i = 1; i <= 1000; i++)
		assert_int_equal(
		    result(&b, i % 3 != 0, 0), PN_BREAKER_UNCHANGED);
	/* What is longer ago than 64 does not count. */
	b = (struct pn_breaker){ 0 };
	for (i = 0; i < 1000; i++)
		(void)result(&b, true, 0);
	for (i = 1; i < 63; i++)
		assert_int_equal(
		    result(&b, i % 2 == 0, 0), PN_BREAKER_UNCHANGED);
	assert_int_equal(result(&b, false, 0), PN_BREAKER_OPENED);
}

/* If it failed: an endpoint that is back would never be found, or be hit by
 * everything at once while it is not. */
static void
test_breaker__probes_with_one_and_closes(void **state)
{
	const int64_t pause_us = 1600 * PN_MILLISECOND_US;
	struct pn_breaker b = { 0 };
	unsigned probe;

	(void)state;
	trip(&b, 0);
	assert_int_equal(b.until_us, pause_us);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us - 1), 0);
	assert_int_equal(b.state, PN_BREAKER_OPEN);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us), 1);
	assert_int_equal(b.state, PN_BREAKER_HALF_OPEN);
	/* No event was due: it may still be tried. */
	assert_int_equal(pn_breaker_allows(&b, 0, pause_us), 0);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us), 1);
	probe = pn_breaker_sent(&b);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us * 100), 0);
	/* It was never sent: another one may be. */
	pn_breaker_forget(&b, probe);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us), 1);
	probe = pn_breaker_sent(&b);
	assert_int_equal(
	    pn_breaker_result(&b, probe, true, pause_us, 0), PN_BREAKER_CLOSES);
	assert_int_equal(pn_breaker_allows(&b, ROOM, pause_us), ROOM);
	/* It begins anew. */
	trip(&b, 0);
	assert_int_equal(b.until_us, pause_us);
}

/* If it failed: an endpoint that stays away would be asked all day, or would be
 * found hours after it is back. */
static void
test_breaker__pauses_twice_as_long_after_each_probe(void **state)
{
	static const int64_t pauses_ms[] = { 1600, 3200, 6400, 12800, 24000,
		24000, 24000 };
	struct pn_breaker b = { 0 };
	int64_t now_us = 0;

	(void)state;
	trip(&b, now_us);
	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		now_us += pauses_ms[i] * PN_MILLISECOND_US;
		assert_int_equal(b.until_us, now_us);
		assert_int_equal(pn_breaker_allows(&b, ROOM, now_us), 1);
		/* No news. */
		assert_int_equal(
		    result(&b, false, now_us), PN_BREAKER_UNCHANGED);
		assert_int_equal(b.state, PN_BREAKER_OPEN);
	}
}

/* If it failed: results that were on their way while the state changed would
 * open a breaker that a probe has closed, or close it without one. */
static void
test_breaker__ignores_results_of_another_state(void **state)
{
	struct pn_breaker b = { 0 };
	unsigned old = pn_breaker_sent(&b), probe;

	(void)state;
	trip(&b, 0);
	assert_int_equal(
	    pn_breaker_result(&b, old, true, 0, 0), PN_BREAKER_UNCHANGED);
	assert_int_equal(b.state, PN_BREAKER_OPEN);
	assert_int_equal(pn_breaker_allows(&b, ROOM, b.until_us), 1);
	probe = pn_breaker_sent(&b);
	assert_int_equal(
	    pn_breaker_result(&b, old, true, 0, 0), PN_BREAKER_UNCHANGED);
	pn_breaker_forget(&b, old);
	assert_int_equal(pn_breaker_allows(&b, ROOM, b.until_us), 0);
	assert_int_equal(
	    pn_breaker_result(&b, probe, true, 0, 0), PN_BREAKER_CLOSES);
	for (int i = 0; i < 2 * STREAK; i++)
		assert_int_equal(pn_breaker_result(&b, old, false, 0, 0),
		    PN_BREAKER_UNCHANGED);
	assert_int_equal(b.state, PN_BREAKER_CLOSED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_breaker__opens_after_failures_in_a_row),
		cmocka_unit_test(test_breaker__opens_when_half_of_many_fail),
		cmocka_unit_test(test_breaker__probes_with_one_and_closes),
		cmocka_unit_test(
		    test_breaker__pauses_twice_as_long_after_each_probe),
		cmocka_unit_test(
		    test_breaker__ignores_results_of_another_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
