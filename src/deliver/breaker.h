/*
 * The breaker of one endpoint: whether anything may be sent to it. Pure: the
 * time and random bits are passed in. Belongs to the worker's thread.
 */
#ifndef PN_DELIVER_BREAKER_H
#define PN_DELIVER_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum pn_breaker_state {
	PN_BREAKER_CLOSED,    /* all may be sent */
	PN_BREAKER_OPEN,      /* nothing, until until_us */
	PN_BREAKER_HALF_OPEN, /* one: the probe */
};

struct pn_breaker {
	enum pn_breaker_state state;
	unsigned generation; /* of the state: counts the transitions */
	/* CLOSED: */
	unsigned streak;  /* failures, one after another */
	uint64_t history; /* the last results, newest lowest; 1: a failure */
	unsigned seen;    /* how many of them there are */
	/* OPEN: */
	int64_t until_us; /* monotonic */
	/* HALF_OPEN: */
	bool probing;
	/* OPEN and HALF_OPEN: */
	unsigned openings; /* since it was closed */
};

/* Begins closed: { 0 } */

/* How many of room may be sent now. Moves OPEN to HALF_OPEN when its time is
 * over. */
unsigned
pn_breaker_allows(struct pn_breaker *breaker, unsigned room, int64_t now_us);
/* One is sent; allowed it was. The generation to give back with its result. */
unsigned pn_breaker_sent(struct pn_breaker *breaker);
/* It was not sent after all, or what came of it tells nothing. */
void pn_breaker_forget(struct pn_breaker *breaker, unsigned generation);

enum pn_breaker_change {
	PN_BREAKER_UNCHANGED,
	PN_BREAKER_OPENED, /* from CLOSED; a probe that fails is no news */
	PN_BREAKER_CLOSES, /* a probe worked */
};
enum pn_breaker_change pn_breaker_result(struct pn_breaker *breaker,
    unsigned generation, bool alive, int64_t now_us, uint32_t random);

#endif
