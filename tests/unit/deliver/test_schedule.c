/*
 * What follows from how an attempt ended: every row of the table, every form of
 * Retry-After.
 */
#include "schedule.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "paynotify/compiler.h"
#include "paynotify/moment.h"

#define MINUTES 60
#define HOURS   3600

static const int64_t SECONDS[] = { 5, 30, 2 * MINUTES, 10 * MINUTES,
	30 * MINUTES, 2 * HOURS, 5 * HOURS, 10 * HOURS, 10 * HOURS, 20 * HOURS,
	24 * HOURS };

/* If it failed: events would be tried at other times than documented, or all
 * that failed together would come back together. */
static void
test_schedule__waits_80_to_120_percent_of_each_row(void **state)
{
	(void)state;
	for (int i = 0; i < (int)PN_COUNT(SECONDS); i++) {
		int64_t row_us = SECONDS[i] * PN_SECOND_US, us;

		assert_int_equal(
		    pn_schedule_delay_us(i + 1, 0, 0), row_us / 5 * 4);
		us = pn_schedule_delay_us(i + 1, 0, UINT32_MAX);
		assert_true(us < row_us / 5 * 6);
		assert_true(us > row_us / 100 * 119);
		us = pn_schedule_delay_us(i + 1, 0, UINT32_C(1) << 31);
		assert_true(us > row_us / 1000 * 999);
		assert_true(us < row_us / 1000 * 1001);
	}
	/* An event that is redelivered has more attempts than rows. */
	assert_int_equal(
	    pn_schedule_delay_us(100, 0, 0), 24 * HOURS * PN_SECOND_US / 5 * 4);
}

/* If it failed: an endpoint that asks for time would not get it, or one that
 * asks for little would use up its events' attempts within minutes. */
static void
test_schedule__takes_retry_after_for_a_minimum(void **state)
{
	const int64_t hour_us = HOURS * PN_SECOND_US;

	(void)state;
	assert_int_equal(pn_schedule_delay_us(1, hour_us, 0), hour_us);
	assert_int_equal(
	    pn_schedule_delay_us(1, PN_SECOND_US, 0), 4 * PN_SECOND_US);
	assert_int_equal(pn_schedule_delay_us(8, hour_us, 0), 8 * hour_us);
}

/* If it failed: what the endpoint answered would be misread. */
static void
test_schedule__classifies_how_an_attempt_ended(void **state)
{
	static const struct {
		enum pn_client_end end;
		int status;
		enum pn_verdict verdict, last;
		bool alive;
	} rows[] = {
#define ANSWER(status, verdict, last, alive)                                   \
	{ PN_CLIENT_ANSWERED, status, PN_VERDICT_##verdict, PN_VERDICT_##last, \
		alive }
		ANSWER(200, DONE, DONE, true),
		ANSWER(204, DONE, DONE, true),
		ANSWER(299, DONE, DONE, true),
		ANSWER(199, RETRY, DEAD, false),
		ANSWER(300, RETRY, DEAD, false),
		ANSWER(301, RETRY, DEAD, false),
		ANSWER(307, RETRY, DEAD, false),
		ANSWER(400, RETRY, DEAD, true),
		ANSWER(401, RETRY, DEAD, false),
		ANSWER(404, RETRY, DEAD, false),
		ANSWER(408, RETRY, DEAD, false),
		ANSWER(410, DISABLE, DISABLE, false),
		ANSWER(422, RETRY, DEAD, true),
		ANSWER(429, RETRY, DEAD, false),
		ANSWER(500, RETRY, DEAD, false),
		ANSWER(503, RETRY, DEAD, false),
		{ PN_CLIENT_CUT, 200, PN_VERDICT_DONE, PN_VERDICT_DONE, true },
		{ PN_CLIENT_CUT, 410, PN_VERDICT_DISABLE, PN_VERDICT_DISABLE,
		    false },
		{ PN_CLIENT_CUT, 500, PN_VERDICT_RETRY, PN_VERDICT_DEAD,
		    false },
		/* A status without an answer is none. */
		{ PN_CLIENT_LOST, 200, PN_VERDICT_RETRY, PN_VERDICT_DEAD,
		    false },
		{ PN_CLIENT_TIMEOUT, 200, PN_VERDICT_RETRY, PN_VERDICT_DEAD,
		    false },
		{ PN_CLIENT_NOT_SENT, 0, PN_VERDICT_RETRY, PN_VERDICT_DEAD,
		    false },
		/* Our stop kills no event. */
		{ PN_CLIENT_STOPPED, 0, PN_VERDICT_RETRY, PN_VERDICT_RETRY,
		    false },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		enum pn_client_end end = rows[i].end;
		int status = rows[i].status;

		if (pn_schedule_classify(end, status, 1) != rows[i].verdict ||
		    pn_schedule_classify(end, status,
			PN_PUSH_ATTEMPTS_MAX - 1) != rows[i].verdict ||
		    pn_schedule_classify(end, status, PN_PUSH_ATTEMPTS_MAX) !=
			rows[i].last ||
		    pn_schedule_is_alive(end, status) != rows[i].alive)
			fail_msg("end %d, status %d", (int)end, status);
	}
}

/* If it failed: an endpoint that says when it wants to be asked again would be
 * asked at another time, at worst never. */
static void
test_schedule__reads_every_form_of_retry_after(void **state)
{
	/* Sun, 06 Nov 1994 08:49:37 GMT */
	const int64_t at_us = INT64_C(784111777) * PN_SECOND_US;
	static const struct {
		const char *value;
		int64_t seconds;
	} rows[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "120", 120 },
		{ "007", 7 },
		{ "86400", 86400 },
		{ "86401", 86400 },
		{ "99999999999999999999999999", 86400 },
		{ "", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "1.5", 0 },
		{ "1 s", 0 },
		{ "0x10", 0 },
		{ "soon", 0 },
		{ "Sun, 06 Nov 1994 08:50:37 GMT", 60 },
		{ "Sun, 06 Nov 1994 08:49:38 GMT", 1 },
		{ "Mon, 07 Nov 1994 08:49:37 GMT", 86400 },
		{ "Mon, 07 Nov 1994 08:49:38 GMT", 86400 },
		{ "Sat, 01 Jan 2000 00:00:00 GMT", 86400 },
		/* Now, and past. */
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0 },
		{ "Sat, 05 Nov 1994 08:50:37 GMT", 0 },
		/* No such day of the week, day, month, hour; other forms. */
		{ "Mon, 06 Nov 1994 08:50:37 GMT", 0 },
		{ "Thu, 31 Nov 1994 08:50:37 GMT", 0 },
		{ "Sun, 06 Nom 1994 08:50:37 GMT", 0 },
		{ "Sun, 06 nov 1994 08:50:37 GMT", 0 },
		{ "Sun, 06 Nov 1994 24:00:00 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:50:37 UTC", 0 },
		{ "Sun, 06 Nov 1994 08:50:37", 0 },
		{ "Sun, 06 Nov 1994 08:50:37 GMT ", 0 },
		{ "Sun, 6 Nov 1994 08:50:37 GMT", 0 },
		{ "Sunday, 06-Nov-94 08:50:37 GMT", 0 },
		{ "Sun Nov  6 08:50:37 1994", 0 },
		{ "Sun, 06 Nov 1994T08:50:37 GMT", 0 },
		{ "Sun, 06 Nov 19-4 08:50:37 GMT", 0 },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		int64_t us = pn_schedule_retry_after_us(
		    pn_str_from(rows[i].value), at_us);

		if (us != rows[i].seconds * PN_SECOND_US)
			fail_msg(
			    "\"%s\": %lld us", rows[i].value, (long long)us);
	}
	assert_int_equal(
	    pn_schedule_retry_after_us((struct pn_str){ NULL, 0 }, at_us), 0);
}

/* If it failed: a database that is back would be found late, or one that is
 * away would be asked all the time. */
static void
test_schedule__reconnects_within_about_a_second(void **state)
{
	int64_t last_us = 0;

	(void)state;
	assert_int_equal(
	    pn_schedule_reconnect_us(1, 0), 40 * PN_MILLISECOND_US);
	for (unsigned failures = 1; failures < 100; failures++) {
		int64_t us = pn_schedule_reconnect_us(failures, 0);

		assert_true(us >= last_us);
		last_us = us;
	}
	assert_int_equal(last_us, 800 * PN_MILLISECOND_US);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_schedule__waits_80_to_120_percent_of_each_row),
		cmocka_unit_test(
		    test_schedule__takes_retry_after_for_a_minimum),
		cmocka_unit_test(
		    test_schedule__classifies_how_an_attempt_ended),
		cmocka_unit_test(
		    test_schedule__reads_every_form_of_retry_after),
		cmocka_unit_test(
		    test_schedule__reconnects_within_about_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
