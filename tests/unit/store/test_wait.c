/*
 * Waits that end, and back-off that neither storms nor sleeps for ever.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "wait.h"

/* If it failed: a database that is down would be stormed, or come back long
 * before we do. */
static void
test_backoff__doubles_from_50_ms_to_1_s_with_jitter(void **state)
{
	struct pn_backoff backoff = { .seed = 1 };
	int64_t whole = 50 * PN_MILLISECOND_US, us;
	bool differs = false;

	(void)state;
	for (int i = 0; i < 100; i++) {
		us = pn_backoff_next_us(&backoff);
		assert_in_range(us, whole / 2, whole);
		differs |= us != whole / 2 && us != whole;
		whole = whole * 2 < PN_SECOND_US ? whole * 2 : PN_SECOND_US;
	}
	assert_true(differs);
	backoff.failures = 0; /* it worked */
	assert_in_range(
	    pn_backoff_next_us(&backoff), 1, 50 * PN_MILLISECOND_US);
}

/* If it failed: threads would not end when the daemon does. */
static void
test_stop__ends_every_wait_for_good(void **state)
{
	struct pn_stop stop;

	(void)state;
	assert_int_equal(pn_stop_init(&stop), 0);
	assert_false(pn_stop_wait(&stop, 1));
	pn_stop_tell(&stop);
	pn_stop_tell(&stop);
	/* An hour, if it waited. */
	assert_true(pn_stop_wait(&stop, 3600 * PN_SECOND_US));
	assert_true(pn_stop_wait(&stop, 3600 * PN_SECOND_US));
	pn_stop_done(&stop);
	pn_stop_done(&stop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_backoff__doubles_from_50_ms_to_1_s_with_jitter),
		cmocka_unit_test(test_stop__ends_every_wait_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
