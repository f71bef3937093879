/*
 * The deliverer: opens and closes, and the one place where its two threads
 * meet.
 *
 *   worker (worker.c)                          client (net)
 *   claims, settles: blocking SQL              HTTP, hundreds at once
 *      |  ---- pn_client_send(request) ---->      |
 *      |  <--- finished list + eventfd -----      |  done(request)
 *
 * An attempt belongs to the worker until it is sent, to the client until
 * done(), and to the worker again from then on; nothing of it is locked. The
 * mutex guards the list of finished ones and the order to stop, and is never
 * held during a system call. The worker takes the whole list at a time; so it
 * need be woken only when the list was empty.
 *
 * Closing: the worker claims no more, and goes on settling while what is in
 * flight ends. At the end of the grace it closes the client, which ends the
 * rest as STOPPED, and settles those too: they may have been taken, so they are
 * attempts that failed, not events handed back. A database that does not answer
 * gets SETTLE_US more; then abort_fd becomes readable and every wait for it
 * ends. What is not settled then comes back when its lease ends.
 */
#include "paynotify/deliver.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "deliver_internal.h"

static const int64_t SETTLE_US = PN_SECOND_US;

static void
wake(struct pn_deliver *deliver)
{
	uint64_t one = 1;
	ssize_t n = write(deliver->wake_fd, &one, sizeof(one));

	assert(n == sizeof(one)); /* the counter cannot be full */
}

void
pn_deliver_finished(struct pn_deliver *deliver, struct pn_attempt *attempt)
{
	bool was_empty;

	pthread_mutex_lock(&deliver->lock);
	was_empty = deliver->finished.first == NULL;
	pn_attempts_add(&deliver->finished, attempt);
	pthread_mutex_unlock(&deliver->lock);
	if (was_empty)
		wake(deliver);
}

bool
pn_deliver_is_closing(struct pn_deliver *deliver, int64_t *ret_until_us)
{
	bool closing;

	pthread_mutex_lock(&deliver->lock);
	closing = deliver->closing;
	*ret_until_us = deliver->closing_until_us;
	pthread_mutex_unlock(&deliver->lock);
	return closing;
}

static void
free_all(struct pn_deliver *deliver)
{
	pn_client_close(deliver->client);
	for (size_t i = 0; i < deliver->endpoint_count; i++)
		pn_endpoint_done(&deliver->endpoints[i]);
	free(deliver->endpoints);
	pn_conf_unref(deliver->conf);
	if (deliver->wake_fd >= 0)
		(void)close(deliver->wake_fd);
	if (deliver->abort_fd >= 0)
		(void)close(deliver->abort_fd);
	pthread_mutex_destroy(&deliver->lock);
	free(deliver);
}

int
pn_deliver_check(const struct pn_conf *conf, struct pn_error *ret_error)
{
	struct pn_endpoint endpoint;
	int r = 0;

	for (size_t i = 0; i < conf->deliver_count && r == 0; i++) {
		r = pn_endpoint_init(&endpoint, &conf->delivers[i], ret_error);
		pn_endpoint_done(&endpoint);
	}
	return r;
}

/* Each endpoint may use all its connections, whatever the others do and
 * wherever they point to. */
static int
open_client(struct pn_deliver *deliver, const struct pn_conf *conf,
    struct pn_error *error)
{
	unsigned connections = 0;

	for (size_t i = 0; i < conf->deliver_count; i++)
		connections += (unsigned)conf->delivers[i].max_in_flight;
	return pn_client_open(&(struct pn_client_options){ connections,
				  connections, PN_DELIVER_NICE },
	    &deliver->client, error);
}

static int
open_endpoints(struct pn_deliver *deliver, const struct pn_conf *conf,
    struct pn_error *error)
{
	int r = 0;

	deliver->endpoints =
	    calloc(conf->deliver_count, sizeof(*deliver->endpoints));
	if (deliver->endpoints == NULL)
		return pn_error_set(error, -ENOMEM, "out of memory");
	for (; deliver->endpoint_count < conf->deliver_count && r == 0;
	     deliver->endpoint_count++)
		r = pn_endpoint_init(
		    &deliver->endpoints[deliver->endpoint_count],
		    &conf->delivers[deliver->endpoint_count], error);
	return r;
}

static int
open_fds(struct pn_deliver *deliver, struct pn_error *error)
{
	deliver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	deliver->abort_fd =
	    timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (deliver->wake_fd < 0 || deliver->abort_fd < 0)
		return pn_error_set(error, -EAGAIN,
		    "could not start the deliverer: %s",
		    strerrordesc_np(errno));
	return 0;
}

/* Says that it is over as the last thing of all. */
static void *
worker_main(void *payload)
{
	struct pn_deliver *deliver = payload;

	pn_worker_main(deliver);
	pthread_mutex_lock(&deliver->lock);
	deliver->over = true;
	pthread_mutex_unlock(&deliver->lock);
	return NULL;
}

int
pn_deliver_open(const char *dsn, struct pn_conf *conf,
    struct pn_deliver **ret_deliver, struct pn_error *ret_error)
{
	struct pn_deliver *deliver;
	int r;

	assert(conf->deliver_count <= PN_ENDPOINTS_MAX);
	if (conf->deliver_count == 0) {
		*ret_deliver = NULL;
		return 0;
	}
	deliver = calloc(1, sizeof(*deliver));
	if (deliver == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	deliver->dsn = dsn;
	deliver->conf = pn_conf_ref(conf);
	deliver->settle_max = PN_SETTLE_AT_ONCE;
	pn_attempts_init(&deliver->finished);
	pn_attempts_init(&deliver->pending);
	pthread_mutex_init(&deliver->lock, NULL);
	r = open_fds(deliver, ret_error);
	if (r == 0)
		r = open_endpoints(deliver, conf, ret_error);
	if (r == 0)
		r = open_client(deliver, conf, ret_error);
	if (r == 0 &&
	    pthread_create(&deliver->thread, NULL, worker_main, deliver) != 0)
		r = pn_error_set(ret_error, -EAGAIN,
		    "could not start the deliverer's thread");
	if (r != 0) {
		free_all(deliver);
		return r;
	}
	*ret_deliver = deliver;
	return 0;
}

void
pn_deliver_register_again(struct pn_deliver *deliver)
{
	if (deliver == NULL)
		return;
	pthread_mutex_lock(&deliver->lock);
	deliver->register_again = true;
	pthread_mutex_unlock(&deliver->lock);
	wake(deliver);
}

void
pn_deliver_stop(struct pn_deliver *deliver, int64_t grace_us)
{
	struct itimerspec at = { .it_value.tv_nsec = 0 };
	int64_t until_us = pn_clock_monotonic_us() + grace_us;
	int r;

	if (deliver == NULL)
		return;
	assert(grace_us >= 0);
	pthread_mutex_lock(&deliver->lock);
	assert(!deliver->closing);
	deliver->closing = true;
	deliver->closing_until_us = until_us;
	pthread_mutex_unlock(&deliver->lock);
	at.it_value.tv_sec = (until_us + SETTLE_US) / PN_SECOND_US;
	at.it_value.tv_nsec = (until_us + SETTLE_US) % PN_SECOND_US * 1000;
	r = timerfd_settime(deliver->abort_fd, TFD_TIMER_ABSTIME, &at, NULL);
	assert(r == 0);
	wake(deliver);
}

bool
pn_deliver_is_over(struct pn_deliver *deliver)
{
	bool over;

	pthread_mutex_lock(&deliver->lock);
	over = deliver->over;
	pthread_mutex_unlock(&deliver->lock);
	return over;
}

void
pn_deliver_close(struct pn_deliver *deliver, int64_t grace_us)
{
	int64_t until_us;

	if (deliver == NULL)
		return;
	if (!pn_deliver_is_closing(deliver, &until_us))
		pn_deliver_stop(deliver, grace_us);
	(void)pthread_join(deliver->thread, NULL);
	free_all(deliver);
}
