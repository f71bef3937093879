/*
 * Small tools for threads that wait: every wait of the store has an end, be it
 * a time or the order to stop.
 */
#include "wait.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/moment.h"

static const int64_t BACKOFF_FIRST_US = 50 * PN_MILLISECOND_US;
/* A server that is back is found within a second; one that stays away costs a
 * refused connect a second and writer. */
static const int64_t BACKOFF_LAST_US = PN_SECOND_US;
enum { BACKOFF_DOUBLINGS = 5 }; /* 50 ms * 2^5 > 1 s */

int
pn_stop_init(struct pn_stop *stop)
{
	stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return stop->fd < 0 ? -errno : 0;
}

void
pn_stop_done(struct pn_stop *stop)
{
	if (stop->fd >= 0)
		(void)close(stop->fd);
	stop->fd = -1;
}

void
pn_stop_tell(struct pn_stop *stop)
{
	uint64_t one = 1;
	ssize_t n = write(stop->fd, &one, sizeof(one));

	assert(n == sizeof(one)); /* the counter cannot be full */
}

bool
pn_stop_wait(const struct pn_stop *stop, int64_t us)
{
	struct pollfd fd = { .fd = stop->fd, .events = POLLIN };
	int64_t until_us = pn_clock_monotonic_us() + us, left_us = us;

	do {
		if (poll(&fd, 1, (int)((left_us + 999) / 1000)) > 0)
			return true;
		left_us = until_us - pn_clock_monotonic_us();
	} while (left_us > 0);
	return false;
}

int64_t
pn_backoff_next_us(struct pn_backoff *backoff)
{
	int64_t us = BACKOFF_LAST_US;

	if (backoff->failures < BACKOFF_DOUBLINGS)
		us = BACKOFF_FIRST_US << backoff->failures;
	backoff->failures++;
	/* An LCG is random enough to part the herd (Knuth's constants). */
	backoff->seed = backoff->seed * 6364136223846793005u +
			1442695040888963407u +
			(uint64_t)pn_clock_monotonic_us();
	return us / 2 +
	       (int64_t)((backoff->seed >> 33) % (uint64_t)(us / 2 + 1));
}

int
pn_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int r;

	r = pthread_condattr_init(&attr);
	if (r != 0)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return -r;
}

void
pn_cond_wait_until(
    pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
	struct timespec until = {
		.tv_sec = until_us / PN_SECOND_US,
		.tv_nsec = until_us % PN_SECOND_US * 1000,
	};

	(void)pthread_cond_timedwait(cond, mutex, &until);
}
