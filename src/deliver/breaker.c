/*
 * The breaker of one endpoint.
 *
 *              STREAK failures in a row,
 *              or half of the last 64
 *     CLOSED ------------------------------> OPEN <------+
 *       ^                                     |          |
 *       | probe answered           pause over |          | probe failed:
 *       |  (result)                  (allows) |          | twice the pause
 *       |                                     v          | (result)
 *       +--------------------------------- HALF_OPEN ----+
 *
 * Why there is one: each attempt counts, and an event is dead after the last.
 * While an endpoint is down the events that wait for it should not all use up
 * theirs, nor should each hold a connection until its timeout. The price is
 * that after an outage the first success is late by at most the pause, which
 * is never much longer than the outage itself was.
 *
 * What went out before a transition and comes back after it belongs to another
 * generation and is ignored: a late failure of the outage must not open the
 * breaker again that a probe has just closed, nor may a straggler close it.
 *
 * It does not count what one event is refused for: pn_schedule_is_alive()
 * says what speaks against the endpoint.
 */
#include "breaker.h"

#include <assert.h>

#include "paynotify/moment.h"

#include "schedule.h"

enum {
	STREAK_MAX = 10,   /* a restart fails some in flight: not yet */
	HISTORY_BITS = 64, /* of history */
	HISTORY_MIN = 32,  /* fewer tell nothing */
	PAUSE_DOUBLINGS = 4,
};
/* Shorter than the first retry is away, so that a single hiccup costs nothing.
 * Past the last a probe costs nothing either. */
static const int64_t PAUSE_FIRST_US = 2 * PN_SECOND_US;
static const int64_t PAUSE_LAST_US = 30 * PN_SECOND_US;

static void
enter(struct pn_breaker *breaker, enum pn_breaker_state state)
{
	breaker->state = state;
	breaker->generation++;
	breaker->streak = 0;
	breaker->history = 0;
	breaker->seen = 0;
	breaker->probing = false;
}

static void
open_it(struct pn_breaker *breaker, int64_t now_us, uint32_t random)
{
	int64_t pause_us = PAUSE_LAST_US;

	assert(breaker->state != PN_BREAKER_OPEN);
	if (breaker->openings < PAUSE_DOUBLINGS)
		pause_us = PAUSE_FIRST_US << breaker->openings;
	enter(breaker, PN_BREAKER_OPEN);
	breaker->openings++;
	breaker->until_us = now_us + pn_schedule_jitter_us(pause_us, random);
}

unsigned
pn_breaker_allows(struct pn_breaker *breaker, unsigned room, int64_t now_us)
{
	if (breaker->state == PN_BREAKER_OPEN && now_us >= breaker->until_us)
		enter(breaker, PN_BREAKER_HALF_OPEN);
	switch (breaker->state) {
	case PN_BREAKER_CLOSED: return room;
	case PN_BREAKER_HALF_OPEN: return room > 0 && !breaker->probing;
	default: return 0;
	}
}

unsigned
pn_breaker_sent(struct pn_breaker *breaker)
{
	assert(breaker->state != PN_BREAKER_OPEN);
	assert(!breaker->probing);
	breaker->probing = breaker->state == PN_BREAKER_HALF_OPEN;
	return breaker->generation;
}

void
pn_breaker_forget(struct pn_breaker *breaker, unsigned generation)
{
	if (generation == breaker->generation)
		breaker->probing = false;
}

static bool
must_open(const struct pn_breaker *breaker)
{
	unsigned failures = (unsigned)__builtin_popcountll(breaker->history);

	return breaker->streak >= STREAK_MAX ||
	       (breaker->seen >= HISTORY_MIN && failures * 2 >= breaker->seen);
}

enum pn_breaker_change
pn_breaker_result(struct pn_breaker *breaker, unsigned generation, bool alive,
    int64_t now_us, uint32_t random)
{
	if (generation != breaker->generation)
		return PN_BREAKER_UNCHANGED;
	assert(breaker->state != PN_BREAKER_OPEN); /* nothing was sent in it */
	if (breaker->state == PN_BREAKER_HALF_OPEN) {
		assert(breaker->probing);
		if (alive) {
			enter(breaker, PN_BREAKER_CLOSED);
			breaker->openings = 0;
			return PN_BREAKER_CLOSES;
		}
		open_it(breaker, now_us, random);
		return PN_BREAKER_UNCHANGED;
	}
	breaker->streak = alive ? 0 : breaker->streak + 1;
	breaker->history = breaker->history << 1 | (alive ? 0 : 1);
	if (breaker->seen < HISTORY_BITS)
		breaker->seen++;
	/* A success cannot open it, whatever was before. */
	if (alive || !must_open(breaker))
		return PN_BREAKER_UNCHANGED;
	open_it(breaker, now_us, random);
	return PN_BREAKER_OPENED;
}
