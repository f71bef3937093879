/*
 * Waiting that ends when the store is told to stop, and back-off with jitter.
 */
#ifndef PN_STORE_WAIT_H
#define PN_STORE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"

/* A flag that poll() can see. */
struct pn_stop {
	int fd; /* eventfd: readable once told */
};

int pn_stop_init(struct pn_stop *stop) PN_MUSTCHECK; /* -errno */
void pn_stop_done(struct pn_stop *stop);
void pn_stop_tell(struct pn_stop *stop);
/* Sleeps; true: told to stop. */
bool pn_stop_wait(const struct pn_stop *stop, int64_t us);

/* 50 ms, doubling to 1 s; each wait is 50 to 100 % of that, so that a hundred
 * daemons do not come back at the same moment. */
struct pn_backoff {
	unsigned failures;
	uint64_t seed;
};
int64_t pn_backoff_next_us(struct pn_backoff *backoff);

/* A condition variable on the monotonic clock. */
int pn_cond_init(pthread_cond_t *cond) PN_MUSTCHECK;
/* Waits until signalled or until the monotonic time. */
void pn_cond_wait_until(
    pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us);

#endif
