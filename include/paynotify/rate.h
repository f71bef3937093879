/*
 * So many a second: a token bucket that holds one second's worth.
 */
#ifndef PN_RATE_H
#define PN_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"

struct pn_rate {
	/* When the bucket will be full again, monotonic. 0: it is full. */
	_Atomic int64_t full_ns;
};

/* Takes one: true when there was none. per_second is 1 to 1,000,000 and the same
 * at every call; now_us is monotonic. Any thread; does not block. */
bool pn_rate_exhausted(
    struct pn_rate *rate, int64_t per_second, int64_t now_us) PN_MUSTCHECK;

#endif
