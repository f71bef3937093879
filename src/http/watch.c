/*
 * The list of open connections: how many there are in all and of each peer, and
 * a watchdog that ends those that take too long.
 *
 * libmicrohttpd's own timeout restarts with every byte, so a client that sends
 * one byte a second holds a connection for ever. Here each connection has a
 * deadline that bytes do not move:
 *
 *   opened, or a request completed   now + idle_timeout + request_timeout
 *   headers complete                 now + request_timeout (the body)
 *   waits for the pipeline           none: commit_timeout bounds that
 *   reply queued                     now + request_timeout + what a thin line
 *                                    needs for so many bytes (a slow reader)
 *
 * One thread looks through the list a few times a second and calls shutdown()
 * on what is late; libmicrohttpd then sees the end of the stream and cleans up
 * as usual. The descriptor cannot be another connection's by then: removing from
 * the list takes the same mutex and comes before the close.
 *
 * It also makes libmicrohttpd see ends that it misses. That reads until it gets
 * less than it asked for, takes that for "nothing more", and waits for epoll's
 * next edge; but if a client's last bytes and its FIN were there at the same
 * time, that edge is behind it already, and a client that went away in mid-body
 * is held until a deadline. So connections are in a second, level-triggered epoll
 * as well, which reports nothing but ends (EPOLLRDHUP) and costs nothing for who
 * is only slow. shutdown(SHUT_RD) on such a connection changes nothing, the peer
 * having said so itself, but wakes whoever polls it: a new edge. That one may be
 * lost in the same way, so it is done at each tick until the connection is gone.
 * Who has sent a whole request and then closed its half is still answered.
 *
 * libmicrohttpd's limit per address exempts nobody, and counts a proxy's clients
 * as the proxy: so peers are counted here, and loopback, unix sockets and trusted
 * proxies are not. Threads that accept at the same moment may let in one more
 * each; the limit is there to stop thousands.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"

#include "http_internal.h"

enum {
	BUCKETS = 1024,
	ENDS_MAX = 1024, /* of a tick; epoll begins with others the next time */
	/* Half a megabit: the longest answer, 8 MB, has two minutes. */
	READER_BYTES_PER_S_MIN = 64 << 10,
};

static const int64_t tick_us_min = 10 * PN_MILLISECOND_US;
static const int64_t tick_us_max = 500 * PN_MILLISECOND_US;

struct counted_peer {
	struct counted_peer *next;
	unsigned char key[16];
	int64_t count;
};

struct pn_watch {
	struct pn_watch_options options;
	atomic_bool ticked;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t stop_changed;
	pthread_t thread;
	int ends; /* epoll: connections whose client sends no more */
	bool stop;
	int64_t count;
	uint64_t seed;
	struct pn_conn *first;
	struct counted_peer *peers[BUCKETS];
};

/* -- peers ----------------------------------------------------------------- */

static struct counted_peer **
peer_slot(struct pn_watch *watch, const struct pn_peer *peer)
{
	unsigned char key[16];
	struct counted_peer **slot;

	pn_peer_key(peer, key);
	slot = &watch->peers[pn_peer_hash(key, watch->seed) % BUCKETS];
	while (*slot != NULL && memcmp((*slot)->key, key, 16) != 0)
		slot = &(*slot)->next;
	return slot;
}

static bool
is_trusted(const struct pn_watch *watch, const struct pn_peer *peer)
{
	return peer->text[0] == '\0' || /* a unix socket */
	       pn_conf_cidrs_match(
		   watch->options.trusted, pn_str_from(peer->text));
}

static bool
peer_add(struct pn_watch *watch, const struct pn_peer *peer)
{
	struct counted_peer **slot = peer_slot(watch, peer);

	if (*slot == NULL) {
		*slot = calloc(1, sizeof(**slot));
		if (*slot == NULL)
			return false; /* uncounted: better than refused */
		pn_peer_key(peer, (*slot)->key);
	}
	(*slot)->count++;
	return true;
}

static void
peer_drop(struct pn_watch *watch, const struct pn_peer *peer)
{
	struct counted_peer **slot = peer_slot(watch, peer), *gone = *slot;

	assert(gone != NULL && gone->count > 0);
	if (--gone->count == 0) {
		*slot = gone->next;
		free(gone);
	}
}

bool
pn_watch_admits(struct pn_watch *watch, const struct pn_peer *peer)
{
	bool admitted;

	(void)pthread_mutex_lock(&watch->lock);
	admitted = watch->count < watch->options.connections_max;
	if (admitted) { /* who is exempt is never in the table */
		struct counted_peer *counted = *peer_slot(watch, peer);

		admitted =
		    counted == NULL ||
		    counted->count < watch->options.connections_per_peer_max;
	}
	(void)pthread_mutex_unlock(&watch->lock);
	return admitted;
}

int64_t
pn_watch_count(struct pn_watch *watch)
{
	int64_t count;

	(void)pthread_mutex_lock(&watch->lock);
	count = watch->count;
	(void)pthread_mutex_unlock(&watch->lock);
	return count;
}

/* -- the list --------------------------------------------------------------- */

struct pn_conn *
pn_watch_add(struct pn_watch *watch, int fd, const struct pn_peer *peer)
{
	struct pn_conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event event = { .events = EPOLLRDHUP };

	assert(fd >= 0);
	if (conn == NULL)
		return NULL;
	conn->fd = fd;
	conn->peer = *peer;
	conn->trusted = is_trusted(watch, peer);
	pn_watch_idle(watch, conn);
	(void)pthread_mutex_lock(&watch->lock);
	if (!conn->trusted && !pn_peer_is_loopback(peer))
		conn->counted = peer_add(watch, peer);
	conn->next = watch->first;
	if (watch->first != NULL)
		watch->first->prev = conn;
	watch->first = conn;
	watch->count++;
	event.data.ptr = conn;
	/* Without it there is still the deadline. */
	(void)epoll_ctl(watch->ends, EPOLL_CTL_ADD, fd, &event);
	(void)pthread_mutex_unlock(&watch->lock);
	if (!watch->options.uncounted)
		pn_metric_add(PN_METRIC_CONNECTIONS, 1);
	return conn;
}

void
pn_watch_remove(struct pn_watch *watch, struct pn_conn *conn)
{
	(void)pthread_mutex_lock(&watch->lock);
	assert(watch->count > 0);
	(void)epoll_ctl(watch->ends, EPOLL_CTL_DEL, conn->fd, NULL);
	if (conn->counted)
		peer_drop(watch, &conn->peer);
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		watch->first = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	watch->count--;
	(void)pthread_mutex_unlock(&watch->lock);
	if (!watch->options.uncounted)
		pn_metric_add(PN_METRIC_CONNECTIONS, -1);
	free(conn);
}

/* -- deadlines --------------------------------------------------------------- */

static void
set_deadline(struct pn_conn *conn, int64_t deadline_us)
{
	/* Nothing else is published with it. */
	atomic_store_explicit(
	    &conn->deadline_us, deadline_us, memory_order_relaxed);
}

void
pn_watch_idle(const struct pn_watch *watch, struct pn_conn *conn)
{
	set_deadline(conn, pn_clock_monotonic_us() +
			       watch->options.idle_timeout_us +
			       watch->options.request_timeout_us);
}

void
pn_watch_request(const struct pn_watch *watch, struct pn_conn *conn)
{
	set_deadline(
	    conn, pn_clock_monotonic_us() + watch->options.request_timeout_us);
}

void
pn_watch_reply(const struct pn_watch *watch, struct pn_conn *conn, size_t bytes)
{
	int64_t seconds = (int64_t)(bytes / READER_BYTES_PER_S_MIN);

	set_deadline(conn, pn_clock_monotonic_us() +
			       watch->options.request_timeout_us +
			       seconds * PN_SECOND_US);
}

void
pn_watch_pause(struct pn_conn *conn)
{
	set_deadline(conn, PN_DEADLINE_NONE);
}

/* -- the watchdog ------------------------------------------------------------ */

static void
cut_late(struct pn_watch *watch)
{
	int64_t now_us = pn_clock_monotonic_us();

	for (struct pn_conn *c = watch->first; c != NULL; c = c->next) {
		if (atomic_load_explicit(
			&c->deadline_us, memory_order_relaxed) > now_us)
			continue;
		set_deadline(c, PN_DEADLINE_NONE);
		pn_log(PN_LOG_DEBUG,
		    &(struct pn_log_about){ .peer = c->peer.text },
		    "closing a connection that took too long");
		(void)shutdown(c->fd, SHUT_RDWR);
	}
}

/* Of who is in the pipeline nothing is read anyway. */
static void
tell_ends(struct pn_watch *watch)
{
	struct epoll_event events[ENDS_MAX];
	/* Under the lock: what it reports is still in the list. */
	int count = epoll_wait(watch->ends, events, ENDS_MAX, 0);

	for (int i = 0; i < count; i++) {
		struct pn_conn *conn = events[i].data.ptr;

		if (atomic_load_explicit(&conn->deadline_us,
			memory_order_relaxed) != PN_DEADLINE_NONE)
			(void)shutdown(conn->fd, SHUT_RD);
	}
}

static int64_t
tick_us(const struct pn_watch_options *options)
{
	int64_t tick = options->request_timeout_us / 8;

	if (tick > tick_us_max)
		tick = tick_us_max;
	return tick < tick_us_min ? tick_us_min : tick;
}

static void *
watch_run(void *payload)
{
	struct pn_watch *watch = payload;
	int64_t tick = tick_us(&watch->options);

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->stop) {
		int64_t next_us = pn_clock_monotonic_us() + tick;
		struct timespec at = {
			.tv_sec = (time_t)(next_us / PN_SECOND_US),
			.tv_nsec = (long)(next_us % PN_SECOND_US) * 1000,
		};

		(void)pthread_cond_timedwait(
		    &watch->stop_changed, &watch->lock, &at);
		atomic_store(&watch->ticked, true);
		if (watch->stop)
			break;
		cut_late(watch);
		tell_ends(watch);
	}
	(void)pthread_mutex_unlock(&watch->lock);
	return NULL;
}

bool
pn_watch_has_ticked(struct pn_watch *watch)
{
	return atomic_exchange(&watch->ticked, false);
}

static int
watch_start(struct pn_watch *watch)
{
	pthread_condattr_t attributes;
	int r = pthread_condattr_init(&attributes);

	if (r != 0)
		return -r;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	r = pthread_cond_init(&watch->stop_changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (r != 0)
		return -r;
	r = pthread_mutex_init(&watch->lock, NULL);
	if (r == 0) {
		r = pthread_create(&watch->thread, NULL, watch_run, watch);
		if (r == 0)
			return 0;
		(void)pthread_mutex_destroy(&watch->lock);
	}
	(void)pthread_cond_destroy(&watch->stop_changed);
	return -r;
}

int
pn_watch_open(const struct pn_watch_options *options,
    struct pn_watch **ret_watch, struct pn_error *ret_error)
{
	struct pn_watch *watch = calloc(1, sizeof(*watch));
	int r;

	assert(options->connections_max > 0);
	if (watch == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	watch->options = *options;
	watch->seed =
	    (uint64_t)(uintptr_t)watch ^ (uint64_t)pn_clock_realtime_us();
	watch->ends = epoll_create1(EPOLL_CLOEXEC);
	r = watch->ends < 0 ? -errno : watch_start(watch);
	if (r < 0) {
		if (watch->ends >= 0)
			(void)close(watch->ends);
		free(watch);
		return pn_error_set(ret_error, r,
		    "could not start the connection watchdog: %s",
		    strerrordesc_np(-r));
	}
	*ret_watch = watch;
	return 0;
}

void
pn_watch_close(struct pn_watch *watch)
{
	if (watch == NULL)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->stop = true;
	(void)pthread_cond_signal(&watch->stop_changed);
	(void)pthread_mutex_unlock(&watch->lock);
	(void)pthread_join(watch->thread, NULL);
	assert(watch->first == NULL && watch->count == 0);
	(void)pthread_cond_destroy(&watch->stop_changed);
	(void)pthread_mutex_destroy(&watch->lock);
	(void)close(watch->ends);
	free(watch);
}
