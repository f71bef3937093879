/*
 * A handler of the tests' own over a server of wire.h. A request to "/fake" is
 * answered with its body; the first byte says when: "n" now, before submit()
 * returns, anything else from another thread. Each call that it has seen must end
 * once, and last.
 */
#ifndef PN_TEST_FAKE_H
#define PN_TEST_FAKE_H

#include "wire.h"

enum { FAKE_CALLS_MAX = 16 };

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct pn_call *calls[FAKE_CALLS_MAX]; /* waiting for the thread */
	int call_count;
	bool stop, hold;
	struct pn_call *between; /* to be decided around a suspension */
	bool before;             /* rather before it than behind it */
	struct pn_call *kept;    /* decided, to be released by the test */
	_Atomic int opened, submitted, seen, ended;
};
extern struct fake fake;

/* The thread lets go of what waits, or does not. */
void fake_hold(bool hold);
/* Serves on the wire, again. */
void fake_serve(struct wire *wire);

/* Setup and teardown of a test: *state is a struct wire. */
int world_make(void **state);
int world_end(void **state);

#endif
