/*
 * What follows from how an attempt ended.
 *
 *   2xx                  done
 *   410                  the endpoint is disabled; the event waits for that
 *   stopped by us        retry, however often it was tried: not its fault
 *   anything else        retry, and after the last attempt dead: 4xx (they are
 *                        mended by a deployment more often than not), 5xx, 3xx
 *                        (redirects are not followed), no answer at all
 *
 * Eleven retries over about three days: the first soon, for a restart of the
 * application; the last ones far apart, for a week-end. Jitter of 20 % either
 * way parts what failed together.
 *
 * Retry-After asks for a minimum, and is taken for one: the next attempt is at
 * the later of what it asks for and what the table says. Never earlier, for
 * every attempt counts: an endpoint that answers "Retry-After: 1" all day long
 * would use up its events' attempts in a dozen seconds. At most 24 h, so that
 * a wrong number does not lose an event to the next year. And of 429 and 503
 * only: who is overloaded knows until when, a 500 or a redirect does not.
 */
#include "schedule.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"

#define MINUTE_US (60 * PN_SECOND_US)
#define HOUR_US   (60 * MINUTE_US)

/* After the first attempt, after the second, ... */
static const int64_t DELAYS_US[] = {
	5 * PN_SECOND_US,
	30 * PN_SECOND_US,
	2 * MINUTE_US,
	10 * MINUTE_US,
	30 * MINUTE_US,
	2 * HOUR_US,
	5 * HOUR_US,
	10 * HOUR_US,
	10 * HOUR_US,
	20 * HOUR_US,
	24 * HOUR_US,
};
static_assert(PN_COUNT(DELAYS_US) + 1 == PN_PUSH_ATTEMPTS_MAX,
    "a delay behind each attempt but the last");

static const int64_t RETRY_AFTER_MAX_US = 24 * HOUR_US;
/* A server that is back is found within a second. */
static const int64_t RECONNECT_FIRST_US = 50 * PN_MILLISECOND_US;
static const int64_t RECONNECT_LAST_US = PN_SECOND_US;
enum {
	RECONNECT_DOUBLINGS = 5, /* 50 ms * 2^5 > 1 s */
	JITTER_PERCENT = 20,
};

static bool
is_answered(enum pn_client_end end)
{
	return end == PN_CLIENT_ANSWERED || end == PN_CLIENT_CUT;
}

enum pn_verdict
pn_schedule_classify(enum pn_client_end end, int status, int attempt)
{
	assert(attempt >= 1);
	assert((unsigned)end < PN_CLIENT_END_COUNT);
	if (is_answered(end) && status >= 200 && status <= 299)
		return PN_VERDICT_DONE;
	if (is_answered(end) && status == 410)
		return PN_VERDICT_DISABLE;
	if (end == PN_CLIENT_STOPPED)
		return PN_VERDICT_RETRY;
	return attempt < PN_PUSH_ATTEMPTS_MAX ? PN_VERDICT_RETRY
					      : PN_VERDICT_DEAD;
}

bool
pn_schedule_is_alive(enum pn_client_end end, int status)
{
	if (!is_answered(end))
		return false;
	switch (status) {
	case 401: /* whoever is asked, it is not the application, */
	case 403:
	case 404:
	case 405:
	case 407:
	case 408: /* or it is overloaded */
	case 410:
	case 425:
	case 429: return false;
	default:
		return (status >= 200 && status <= 299) ||
		       (status >= 400 && status <= 499);
	}
}

int64_t
pn_schedule_jitter_us(int64_t us, uint32_t random)
{
	int64_t percent_us = us / 100;

	/* random / 2^32 of 40 % on top of 80 %: never 120 % or more. */
	return us - percent_us * JITTER_PERCENT +
	       (int64_t)(((uint64_t)percent_us * 2 * JITTER_PERCENT *
			     (random >> 8)) >>
			 24);
}

int64_t
pn_schedule_delay_us(int attempt, int64_t retry_after_us, uint32_t random)
{
	size_t row = (size_t)attempt - 1;
	int64_t us;

	assert(attempt >= 1);
	assert(retry_after_us >= 0 && retry_after_us <= RETRY_AFTER_MAX_US);
	if (row >= PN_COUNT(DELAYS_US))
		row = PN_COUNT(DELAYS_US) - 1;
	us = pn_schedule_jitter_us(DELAYS_US[row], random);
	return us < retry_after_us ? retry_after_us : us;
}

/* -- Retry-After ------------------------------------------------------------ */

/* Which of the count names of three letters stands at text; count: none. */
static unsigned
name_at(const char *text, const char *names, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (memcmp(text, names + (size_t)3 * i, 3) == 0)
			break;
	return i;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", and nothing else: the two obsolete forms of
 * RFC 9110 are not sent by anything alive. The day of the week must be right. */
static int
parse_fixdate(struct pn_str text, int64_t *ret_us)
{
	static const char days[] = "ThuFriSatSunMonTueWed"; /* from 1970 on */
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const int64_t day_us = 24 * HOUR_US;
	char rfc3339[PN_MOMENT_TEXT_BYTES];
	const char *t = text.data;
	unsigned day, month;
	int64_t us;

	if (text.len != sizeof("Sun, 06 Nov 1994 08:49:37 GMT") - 1 ||
	    memcmp(t + 3, ", ", 2) != 0 || t[7] != ' ' || t[11] != ' ' ||
	    t[16] != ' ' || memcmp(t + 25, " GMT", 4) != 0)
		return 1;
	day = name_at(t, days, 7);
	month = name_at(t + 8, months, 12);
	if (day == 7 || month == 12)
		return 1;
	(void)snprintf(rfc3339, sizeof(rfc3339), "%.4s-%02u-%.2sT%.8sZ", t + 12,
	    month + 1, t + 5, t + 17);
	if (pn_moment_parse_rfc3339(pn_str_from(rfc3339), &us) != 0 ||
	    us / day_us % 7 != (int64_t)day)
		return 1;
	*ret_us = us;
	return 0;
}

static bool
is_digits(struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return text.len > 0;
}

int64_t
pn_schedule_retry_after_us(struct pn_str value, int64_t now_us)
{
	const uint64_t seconds_max =
	    (uint64_t)(RETRY_AFTER_MAX_US / PN_SECOND_US);
	uint64_t seconds;
	int64_t at_us;

	if (is_digits(value)) {
		/* Too large a number is the cap, not nonsense. */
		if (pn_parse_uint(value, seconds_max, &seconds) != 0)
			return RETRY_AFTER_MAX_US;
		return (int64_t)seconds * PN_SECOND_US;
	}
	if (parse_fixdate(value, &at_us) != 0 || at_us <= now_us)
		return 0;
	return at_us - now_us < RETRY_AFTER_MAX_US ? at_us - now_us
						   : RETRY_AFTER_MAX_US;
}

int64_t
pn_schedule_reconnect_us(unsigned failures, uint32_t random)
{
	int64_t us = RECONNECT_LAST_US;

	assert(failures > 0);
	if (failures <= RECONNECT_DOUBLINGS)
		us = RECONNECT_FIRST_US << (failures - 1);
	return pn_schedule_jitter_us(us, random);
}
