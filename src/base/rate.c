/*
 * A token bucket in one number: the moment at which it will be full again.
 *
 * A bucket that holds a second's worth lacks what would flow in until then; so
 * taking one moves that moment on by the time that one takes, and there was none
 * when it would come to lie more than a second ahead. That is the whole state:
 * no tokens to count up and no time of the last use (the generic cell rate
 * algorithm, ITU-T I.371, is the same idea). Being one word it needs no lock.
 *
 * The time of one is rounded down to a nanosecond, so that a burst is never one
 * short; at a million a second there is nothing to round.
 */
#include "paynotify/rate.h"

#include <assert.h>
#include <stdatomic.h>

static const int64_t second_ns = 1000000000;

bool
pn_rate_exhausted(struct pn_rate *rate, int64_t per_second, int64_t now_us)
{
	int64_t now_ns = now_us * 1000, next_ns;
	/* Nothing else is published with it. */
	int64_t full_ns =
	    atomic_load_explicit(&rate->full_ns, memory_order_relaxed);

	assert(per_second >= 1 && per_second <= 1000000);
	assert(now_us > 0 && now_us < INT64_MAX / 2000);
	do {
		next_ns = full_ns > now_ns ? full_ns : now_ns;
		next_ns += second_ns / per_second;
		if (next_ns > now_ns + second_ns)
			return true;
	} while (!atomic_compare_exchange_weak_explicit(&rate->full_ns,
	    &full_ns, next_ns, memory_order_relaxed, memory_order_relaxed));
	return false;
}
