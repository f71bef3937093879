/*
 * The notifier: tells who listens to paynotify_events that there are new
 * events. A thread and a connection of its own, because NOTIFY in the ingest
 * statement would make commits wait for each other.
 *
 * Writers kick it after a commit. The first kick is passed on at once, those of
 * the next 10 ms together: however much is recorded, the database sees at most
 * a hundred notifications a second. They carry nothing, and a consumer looks
 * for itself what there is.
 *
 * `kicked` says whether the thread has been woken already: a kick that finds it
 * set costs one atomic read. The thread clears it before it notifies, so that
 * a commit after that kicks anew, and one before it is covered by what is sent
 * now.
 *
 *   AWAY --connected--> IDLE --kick--> NOTIFY --10 ms--> IDLE
 *    ^                    |               |
 *    +---- back-off ------+--- lost ------+   (what was owed is sent again)
 *
 * What this does not do: promise. A notification that is lost, with the process
 * or with the database, costs its consumers the time until they look by
 * themselves; they must poll as well. Therefore the session's commits are not
 * waited for (synchronous_commit = off), and an outage is reported only if the
 * writers, who report theirs, have none.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "statements.h"
#include "store_internal.h"

static const int64_t COALESCE_US = 10 * PN_MILLISECOND_US;
static const int64_t LOG_INTERVAL_US = 600 * PN_SECOND_US;

/* Some seconds: an outage of all is noticed by the writers meanwhile. */
enum { FAILURES_UNTOLD = 8 };

struct pn_notifier {
	struct pn_store *store;
	pthread_t thread;
	_Atomic bool kicked;
	int fd; /* eventfd: readable once kicked */
	/* The thread's own. */
	struct pn_conn conn;
	struct pn_backoff backoff;
	bool owed; /* something was recorded and not yet told */
};

void
pn_notifier_kick(struct pn_notifier *notifier)
{
	uint64_t one = 1;
	ssize_t n;

	/* The read first: under load it is set, and stays in every cache. */
	if (atomic_load(&notifier->kicked) ||
	    atomic_exchange(&notifier->kicked, true))
		return;
	n = write(notifier->fd, &one, sizeof(one));
	assert(n == sizeof(one)); /* written once for each read */
}

/* Waits for a kick or until the connection has something to say, which nobody
 * asked: most often its end. 0; -ECANCELED: told to stop; -ECONNRESET. */
static int
wait_kick(struct pn_notifier *notifier, struct pn_error *error)
{
	struct pollfd fds[] = {
		{ .fd = notifier->store->stop.fd, .events = POLLIN },
		{ .fd = notifier->fd, .events = POLLIN },
		{ .fd = PQsocket(notifier->conn.pg), .events = POLLIN },
	};
	uint64_t count;
	ssize_t n;

	if (poll(fds, PN_COUNT(fds), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents != 0)
		return -ECANCELED;
	if (fds[2].revents != 0 && !pn_conn_alive(&notifier->conn))
		return pn_error_set(
		    error, -ECONNRESET, "connection ended while idle");
	if (fds[1].revents == 0)
		return 0;
	n = read(notifier->fd, &count, sizeof(count));
	assert(n == sizeof(count));
	atomic_store(&notifier->kicked, false);
	notifier->owed = true;
	return 0;
}

static int
connect_notifier(struct pn_notifier *notifier, struct pn_error *error)
{
	enum pn_store_health health;
	int r;

	if (notifier->conn.pg != NULL)
		return 0;
	r = pn_session_open(&notifier->conn, notifier->store, &health, error);
	if (r == 0)
		r = pn_conn_exec(&notifier->conn, pn_sql_notifier, NULL, error);
	return r;
}

static int
notify(struct pn_notifier *notifier, struct pn_error *error)
{
	int r;

	r = pn_conn_exec(&notifier->conn, pn_sql_notify, NULL, error);
	if (r != 0)
		return r;
	notifier->owed = false;
	notifier->backoff.failures = 0;
	pn_metric_add(PN_METRIC_NOTIFIES, 1);
	return 0;
}

/* The writers are connected, so nobody else says what is wrong. */
static void
report(struct pn_notifier *notifier, const struct pn_error *error)
{
	struct pn_store *store = notifier->store;
	bool quiet;

	pthread_mutex_lock(&store->lock);
	quiet = store->ready_count < store->writer_count ||
		notifier->backoff.failures < FAILURES_UNTOLD;
	pthread_mutex_unlock(&store->lock);
	if (!quiet)
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
		    "could not notify consumers, they see new events when they "
		    "poll: %s",
		    error->text);
}

static void *
notifier_main(void *payload)
{
	struct pn_notifier *notifier = payload;
	struct pn_error error = { { 0 } };
	int64_t rest_us = 0;
	int r;

	while (!pn_stop_wait(&notifier->store->stop, rest_us)) {
		rest_us = 0;
		r = connect_notifier(notifier, &error);
		if (r == 0 && !notifier->owed)
			r = wait_kick(notifier, &error);
		if (r == 0 && notifier->owed) {
			r = notify(notifier, &error);
			rest_us = COALESCE_US;
		}
		if (r == 0)
			continue;
		pn_conn_close(&notifier->conn);
		rest_us = pn_backoff_next_us(&notifier->backoff);
		if (r != -ECANCELED)
			report(notifier, &error);
	}
	pn_conn_close(&notifier->conn);
	return NULL;
}

int
pn_notifier_open(struct pn_store *store, struct pn_notifier **ret)
{
	struct pn_notifier *notifier = calloc(1, sizeof(*notifier));
	int r = 0;

	if (notifier == NULL)
		return -ENOMEM;
	notifier->store = store;
	notifier->conn = pn_conn_for(PN_METRIC_SESSION_NOTIFIER);
	notifier->backoff.seed = (uint64_t)(uintptr_t)notifier;
	notifier->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notifier->fd < 0)
		r = -errno;
	if (r == 0)
		r = -pthread_create(
		    &notifier->thread, NULL, notifier_main, notifier);
	if (r < 0) {
		if (notifier->fd >= 0)
			(void)close(notifier->fd);
		free(notifier);
		return r;
	}
	*ret = notifier;
	return 0;
}

/* The store's stop has been told, and the writers have ended. */
void
pn_notifier_close(struct pn_notifier *notifier)
{
	if (notifier == NULL)
		return;
	(void)pthread_join(notifier->thread, NULL);
	(void)close(notifier->fd);
	free(notifier);
}
