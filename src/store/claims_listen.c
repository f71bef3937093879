/*
 * The listener: hears on paynotify_guard which keys others settled, and tells
 * which ones we did. A thread and a connection of its own, because NOTIFY in the
 * statement that settles would make commits wait for each other.
 *
 *   AWAY --LISTEN--> heard --socket--> settled(digest) ...
 *    ^                 |  \--told-----> NOTIFY, then not for 10 ms
 *    +---- back-off ---+   (what was owed is sent again)
 *
 * A payload is a list of digests, as 32 hex digits each, commas between them.
 * What comes from our own session is left out: who settled knows. Anybody may
 * send on a channel, so what is no such list is skipped; a digest that is made
 * up costs its key a look into the database.
 *
 * heard is true from after settled(NULL), which says that some were missed, until
 * the connection is given up.
 *
 * What this does not do: promise to others. What is told is lost with the
 * process, or when more is told than PENDING_MAX during an outage; who waits for
 * a key must look by itself as well. Therefore nobody waits for its commits
 * (synchronous_commit = off), and an outage is reported by the lanes.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "paynotify/encode.h"
#include "paynotify/log.h"
#include "paynotify/moment.h"

#include "claims_internal.h"
#include "statements.h"
#include "store_internal.h"

enum {
	HEX_BYTES = 2 * PN_CLAIM_DIGEST_BYTES,
	PENDING_MAX = 4096,
	/* A payload holds less than 8,000 bytes. */
	DIGESTS_PER_PAYLOAD = 240,
	PAYLOADS_BYTES_MAX = PENDING_MAX * (HEX_BYTES + 1) +
			     PENDING_MAX / DIGESTS_PER_PAYLOAD * 8 + 64,
	/* Some seconds: an outage of all is told by the lanes meanwhile. */
	FAILURES_UNTOLD = 8,
};
static_assert(DIGESTS_PER_PAYLOAD * (HEX_BYTES + 1) < 8000,
    "PostgreSQL takes no longer payload");

static const int64_t COALESCE_US = 10 * PN_MILLISECOND_US;
static const int64_t LOG_INTERVAL_US = 600 * PN_SECOND_US;

struct pn_listener {
	struct pn_claims *claims;
	void (*settled)(const unsigned char *digest, void *payload);
	void *payload;
	pthread_t thread;
	_Atomic bool heard;
	int fd; /* eventfd: readable once something is pending */

	pthread_mutex_t lock;
	pthread_cond_t told;
	unsigned char pending[PENDING_MAX][PN_CLAIM_DIGEST_BYTES];
	size_t pending_count;
	size_t untold; /* pending or owed */

	/* The thread's own. */
	unsigned char owed[PENDING_MAX][PN_CLAIM_DIGEST_BYTES];
	size_t owed_count;
	int64_t next_send_us;
	struct pn_conn conn;
	struct pn_backoff backoff;
};

void
pn_listener_tell(struct pn_listener *listener,
    unsigned char (*digests)[PN_CLAIM_DIGEST_BYTES], size_t count)
{
	uint64_t one = 1;
	size_t room;
	ssize_t n;
	bool first;

	pthread_mutex_lock(&listener->lock);
	first = listener->pending_count == 0;
	room = PENDING_MAX - listener->pending_count;
	if (count > room)
		count = room; /* the connection is away: lost */
	memcpy(listener->pending[listener->pending_count], digests,
	    count * sizeof(digests[0]));
	listener->pending_count += count;
	listener->untold += count;
	pthread_mutex_unlock(&listener->lock);
	if (!first)
		return;
	n = write(listener->fd, &one, sizeof(one));
	assert(n == sizeof(one)); /* the counter cannot be full */
}

bool
pn_listener_is_heard(const struct pn_listener *listener)
{
	return atomic_load(&listener->heard);
}

/* -- hearing ---------------------------------------------------------------- */

/* Calls settled() for each digest of a payload. */
static void
hear(struct pn_listener *listener, struct pn_str payload)
{
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	struct pn_str item;

	while (payload.data != NULL) { /* shorter each time */
		item = pn_str_split(&payload, ',');
		if (item.len == HEX_BYTES &&
		    pn_hex_decode(item, digest, sizeof(digest)) == 0)
			listener->settled(digest, listener->payload);
	}
}

static void
take_notifications(struct pn_listener *listener)
{
	PGnotify *notification;

	while ((notification = PQnotifies(listener->conn.pg)) != NULL) {
		if (notification->be_pid != PQbackendPID(listener->conn.pg))
			hear(listener, pn_str_from(notification->extra));
		PQfreemem(notification);
	}
}

/* -- telling ---------------------------------------------------------------- */

/* Moves what is pending to what is owed. */
static void
take_pending(struct pn_listener *listener)
{
	uint64_t count;

	if (listener->owed_count > 0)
		return;
	/* EAGAIN: nothing was pending. */
	if (read(listener->fd, &count, sizeof(count)) < 0)
		assert(errno == EAGAIN || errno == EINTR);
	pthread_mutex_lock(&listener->lock);
	memcpy(listener->owed, listener->pending,
	    listener->pending_count * sizeof(listener->owed[0]));
	listener->owed_count = listener->pending_count;
	listener->pending_count = 0;
	pthread_mutex_unlock(&listener->lock);
}

static void
add_payloads(struct pn_listener *listener, struct pn_array *payloads)
{
	char text[DIGESTS_PER_PAYLOAD * (HEX_BYTES + 1) + 1]; /* and a NUL */
	size_t len = 0;

	for (size_t i = 0; i < listener->owed_count; i++) {
		if (len > 0)
			text[len++] = ',';
		pn_hex_lower(
		    listener->owed[i], PN_CLAIM_DIGEST_BYTES, text + len);
		len += HEX_BYTES;
		if ((i + 1) % DIGESTS_PER_PAYLOAD != 0 &&
		    i + 1 < listener->owed_count)
			continue;
		pn_array_add_bytes(payloads, text, len);
		len = 0;
	}
}

static int
send_owed(struct pn_listener *listener, struct pn_error *error)
{
	PN_CLEANUP(pn_array_done)
	struct pn_array payloads =
	    pn_array_init(PN_ARRAY_TEXT, PAYLOADS_BYTES_MAX);
	struct pn_str s;
	int r;

	add_payloads(listener, &payloads);
	s = pn_array_finish(&payloads);
	if (s.data == NULL)
		return pn_error_set(error, -ENOMEM, "out of memory");
	r = pn_conn_run(&listener->conn, "notify",
	    &(struct pn_params){
		.count = 1,
		.values = (const char *const[]){ s.data },
		.lengths = (const int[]){ (int)s.len },
		.formats = (const int[]){ 1 },
	    },
	    NULL, error);
	if (r != 0)
		return r < 0 ? r : -EIO;
	pthread_mutex_lock(&listener->lock);
	assert(listener->untold >= listener->owed_count);
	listener->untold -= listener->owed_count;
	if (listener->untold == 0)
		pthread_cond_broadcast(&listener->told);
	pthread_mutex_unlock(&listener->lock);
	listener->owed_count = 0;
	listener->backoff.failures = 0;
	listener->next_send_us = pn_clock_monotonic_us() + COALESCE_US;
	return 0;
}

/* -- the thread ------------------------------------------------------------- */

static int
connect_listener(struct pn_listener *listener, struct pn_error *error)
{
	struct pn_claims *claims = listener->claims;
	enum pn_store_health health;
	int r;

	if (listener->conn.pg != NULL)
		return 0;
	r = pn_session_connect(&listener->conn, claims->dsn, claims->stop.fd,
	    pn_sql_claims_session, &health, error);
	if (r == 0)
		r = pn_conn_prepare(
		    &listener->conn, "notify", pn_sql_claims_notify, error);
	if (r == 0)
		r = pn_conn_exec(
		    &listener->conn, pn_sql_claims_listen, NULL, error);
	if (r != 0)
		return r < 0 ? r : -EIO;
	listener->settled(NULL, listener->payload);
	atomic_store(&listener->heard, true);
	return 0;
}

/* Waits for something to hear or to tell. 0, -ECANCELED, -ECONNRESET. */
static int
wait_listener(struct pn_listener *listener, struct pn_error *error)
{
	struct pollfd fds[] = {
		{ .fd = listener->claims->stop.fd, .events = POLLIN },
		{ .fd = PQsocket(listener->conn.pg), .events = POLLIN },
		{ .fd = listener->fd, .events = POLLIN },
	};
	int64_t left_us = listener->next_send_us - pn_clock_monotonic_us();
	bool rests = left_us > 0;
	int n;

	/* While it rests it does not look at what is pending. */
	n = poll(fds, rests ? 2 : 3, rests ? (int)(left_us / 1000) + 1 : -1);
	if (n < 0 && errno != EINTR)
		return pn_error_set(
		    error, -errno, "could not wait for notifications");
	if (n > 0 && fds[0].revents != 0)
		return -ECANCELED;
	if (!pn_conn_alive(&listener->conn))
		return pn_error_set(
		    error, -ECONNRESET, "connection ended while it listened");
	return 0;
}

static void
leave(struct pn_listener *listener, int r, const struct pn_error *error)
{
	atomic_store(&listener->heard, false);
	pn_conn_close(&listener->conn);
	if (r != -ECANCELED && listener->backoff.failures >= FAILURES_UNTOLD &&
	    !atomic_load(&listener->claims->outage_logged))
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING, NULL,
		    "could not listen to what other daemons settle, who waits "
		    "for them looks once a second: %s",
		    error->text);
}

static void *
listener_main(void *payload)
{
	struct pn_listener *listener = payload;
	struct pn_error error = { { 0 } };
	int64_t rest_us = 0;
	int r;

	while (!pn_stop_wait(&listener->claims->stop, rest_us)) {
		rest_us = 0;
		r = connect_listener(listener, &error);
		if (r == 0 && listener->owed_count == 0)
			r = wait_listener(listener, &error);
		if (r == 0 &&
		    pn_clock_monotonic_us() >= listener->next_send_us) {
			take_pending(listener);
			if (listener->owed_count > 0)
				r = send_owed(listener, &error);
		}
		if (r == 0) {
			take_notifications(listener);
			continue;
		}
		leave(listener, r, &error);
		rest_us = pn_backoff_next_us(&listener->backoff);
	}
	atomic_store(&listener->heard, false);
	pn_conn_close(&listener->conn);
	return NULL;
}

int
pn_listener_open(struct pn_claims *claims,
    const struct pn_claims_options *options, struct pn_listener **ret_listener)
{
	struct pn_listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (listener == NULL)
		return -ENOMEM;
	listener->claims = claims;
	listener->settled = options->settled;
	listener->payload = options->payload;
	listener->conn = pn_conn_for(PN_METRIC_SESSION_GATEWAY);
	listener->backoff.seed = (uint64_t)(uintptr_t)listener;
	(void)pthread_mutex_init(&listener->lock, NULL);
	r = pn_cond_init(&listener->told);
	if (r < 0) {
		free(listener);
		return r;
	}
	listener->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (listener->fd < 0)
		r = -errno;
	if (r == 0)
		r = -pthread_create(
		    &listener->thread, NULL, listener_main, listener);
	if (r < 0) {
		if (listener->fd >= 0)
			(void)close(listener->fd);
		(void)pthread_cond_destroy(&listener->told);
		(void)pthread_mutex_destroy(&listener->lock);
		free(listener);
		return r;
	}
	*ret_listener = listener;
	return 0;
}

void
pn_listener_drain(struct pn_listener *listener, int64_t until_us)
{
	pthread_mutex_lock(&listener->lock);
	while (listener->untold > 0 && pn_clock_monotonic_us() < until_us)
		pn_cond_wait_until(&listener->told, &listener->lock, until_us);
	pthread_mutex_unlock(&listener->lock);
}

void
pn_listener_close(struct pn_listener *listener)
{
	if (listener == NULL)
		return;
	(void)pthread_join(listener->thread, NULL);
	(void)close(listener->fd);
	(void)pthread_cond_destroy(&listener->told);
	(void)pthread_mutex_destroy(&listener->lock);
	free(listener);
}
