/*
 * The HTTP server: one libmicrohttpd daemon an address, each with a pool of
 * epoll threads, over one list of connections and one handler.
 *
 * Life of a server, and what may be relied on:
 *
 *   open       requests are read, submitted, answered
 *   stopping   nothing is accepted any more; what is being read is read to its
 *              end and answered with Connection: close
 *   refusing   the grace is over: nothing is submitted any more (503), so that
 *              the number of suspended connections only falls
 *   stopped    no connection is suspended, no done() is under way: now, and only
 *              now, libmicrohttpd may be stopped (it aborts with a connection
 *              suspended, and done() would resume in freed memory)
 *
 * Two counters tell when: active (request line seen .. completed) and pending
 * (submitted .. done() has returned). Closing looks at them every millisecond
 * rather than being woken: a waker would touch the server after the decrement
 * that allows it to be freed, and a server is closed once in its life.
 *
 * Idle connections are in neither count. They have idle_grace_us: one that was
 * accepted just now is about to send its first request, and one that is kept
 * alive under load its next, which is answered with Connection: close. Whatever
 * is open still is closed by libmicrohttpd; its client sees that, and sends
 * nothing there.
 *
 * The listening socket must stay open until the threads are gone (they may be in
 * accept()), but clients must not queue on it if it ends with us: shutdown()
 * makes the kernel refuse them while the descriptor stays ours. A socket of
 * systemd's is not ours to shut down: nobody would ever listen on it again. It is
 * only left alone, and who connects waits in its backlog for the next process.
 */
#include "paynotify/server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"

#include "http_internal.h"

/* PN_HEAD_BYTES_MAX: the head, and a piece of the body, of one connection;
 * libmicrohttpd answers 431 when the head does not fit. It keeps (and clears
 * after each request) all of it as long as the connection is open, so this
 * decides what an idle one costs. Notifications have heads of 1 to 2 kB. */
static_assert(PN_HEAD_BYTES_MAX <= PN_HEADER_BYTES_MAX,
    "what libmicrohttpd lets through is within the limit");
/* How long a stop waits for connections that the kernel holds for accept(). */
static const int backlog_ms_max = 50;
static const int64_t idle_grace_us = 500 * PN_MILLISECOND_US;
/* After the grace: how long the last replies may take to be written. */
static const int64_t last_reply_us = 500 * PN_MILLISECOND_US;
static const int64_t pending_warn_us = 10 * PN_SECOND_US;

/* -- libmicrohttpd's callbacks ------------------------------------------------ */

static enum MHD_Result
accept_policy(void *cls, const struct sockaddr *address, socklen_t len)
{
	struct pn_server *server = cls;
	struct pn_peer peer;

	(void)len;
	pn_peer_of_sockaddr(address, &peer);
	if (pn_watch_admits(server->watch, &peer))
		return MHD_YES;
	pn_metric_add(PN_METRIC_CONNECTIONS_REFUSED, 1);
	pn_log(PN_LOG_WARNING, &(struct pn_log_about){ .peer = peer.text },
	    "refused a connection: too many are open");
	return MHD_NO;
}

/* Asked of the kernel, since handlers may allow more over such a socket. */
static bool
is_unix(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       domain == AF_UNIX;
}

static void
connection_opened(
    struct pn_server *server, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info;
	struct pn_conn *conn;
	struct pn_peer peer;
	int fd;

	info = MHD_get_connection_info(
	    connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info == NULL)
		return;
	fd = info->connect_fd;
	info = MHD_get_connection_info(
	    connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	pn_peer_of_sockaddr(info == NULL ? NULL : info->client_addr, &peer);
	conn = pn_watch_add(server->watch, fd, &peer);
	if (conn != NULL)
		conn->is_unix = is_unix(fd);
	*context = conn;
}

static void
connection_changed(void *cls, struct MHD_Connection *connection, void **context,
    enum MHD_ConnectionNotificationCode code)
{
	struct pn_server *server = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		connection_opened(server, connection, context);
	} else if (*context != NULL) {
		pn_watch_remove(server->watch, *context);
		*context = NULL;
	}
}

static void __attribute__((format(printf, 2, 0)))
library_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\r\n")] = '\0';
	pn_log_debug("libmicrohttpd: %s", text);
}

static void PN_NORETURN
library_panic(void *cls, const char *file, unsigned line, const char *reason)
{
	(void)cls;
	pn_log_err("libmicrohttpd gave up at %s:%u: %s",
	    file == NULL ? "?" : file, line, reason == NULL ? "" : reason);
	abort();
}

/* Everything that handlers do is done in here. */
static enum MHD_Result
handle(void *cls, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload,
    size_t *upload_len, void **exchange)
{
	struct pn_server *server = cls;
	size_t slot = pn_alive_enter(&server->alive);
	enum MHD_Result result = pn_exchange_handle(server, connection, url,
	    method, version, upload, upload_len, exchange);

	pn_alive_leave(&server->alive, slot);
	return result;
}

/* -- open ------------------------------------------------------------------------ */

static unsigned
thread_count(const struct pn_conf_server *conf)
{
	long cores;

	if (conf->threads > 0)
		return (unsigned)conf->threads;
	cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores < 1 ? 1 : (unsigned)cores;
}

static unsigned
seconds_up(int64_t us)
{
	return (unsigned)((us + PN_SECOND_US - 1) / PN_SECOND_US);
}

static size_t
head_bytes(const struct pn_server_options *options)
{
	return options->head_bytes_max == 0 ? PN_HEAD_BYTES_MAX
					    : options->head_bytes_max;
}

static struct MHD_Daemon *
start_daemon(struct pn_server *server, int fd)
{
	const struct pn_conf_server *conf = server->options.conf;
	unsigned threads = thread_count(conf);
	/* max_connections is kept by accept_policy(): over it a connection is
	 * closed at once, and counted. libmicrohttpd would leave it waiting
	 * unseen, and shares its limit out among threads that the kernel does
	 * not fill evenly; so its limit lets each of them have all. */
	unsigned limit = threads * ((unsigned)conf->max_connections + 1);

	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD |
				    MHD_ALLOW_SUSPEND_RESUME |
				    MHD_USE_ERROR_LOG,
	    0, accept_policy, server, handle, server,
	    MHD_OPTION_EXTERNAL_LOGGER, library_log, NULL,
	    MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, limit,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, head_bytes(&server->options),
	    MHD_OPTION_CONNECTION_TIMEOUT, seconds_up(conf->idle_timeout_us),
	    /* A pool of one is refused with a warning; none is the same. */
	    MHD_OPTION_THREAD_POOL_SIZE, threads == 1 ? 0U : threads,
	    MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
	    MHD_OPTION_URI_LOG_CALLBACK, pn_exchange_begin, server,
	    MHD_OPTION_NOTIFY_COMPLETED, pn_exchange_completed, server,
	    MHD_OPTION_END);
}

static int
start_listener(struct pn_server *server, const struct pn_listen *listen,
    struct pn_error *ret_error)
{
	struct pn_listener *listener =
	    &server->listeners[server->listener_count];
	int r;

	listener->listen = *listen;
	listener->daemon = start_daemon(server, listen->fd);
	if (listener->daemon == NULL) {
		r = errno == 0 ? -EAGAIN : -errno;
		return pn_error_set(ret_error, r,
		    "could not start the server on \"%s\": %s", listen->text,
		    strerrordesc_np(-r));
	}
	server->listener_count++;
	pn_buf_printf(&server->listening, "%s%s",
	    server->listener_count > 1 ? ", " : "", listener->listen.text);
	return 0;
}

static int
open_listeners(struct pn_server *server, struct pn_error *ret_error)
{
	struct pn_listen listens[PN_LISTEN_MAX];
	size_t count = 0;
	int r = pn_listen_open_all(server->options.listen,
	    server->options.socket_name, server->options.local, listens, &count,
	    ret_error);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = start_listener(server, &listens[i], ret_error);
	if (r < 0) /* those before are the server's */
		for (size_t i = server->listener_count; i < count; i++)
			pn_listen_close(&listens[i]);
	return r;
}

static int
open_parts(struct pn_server *server, struct pn_error *ret_error)
{
	const struct pn_conf_server *conf = server->options.conf;
	struct pn_watch_options options = {
		.idle_timeout_us = conf->idle_timeout_us,
		.request_timeout_us = conf->request_timeout_us,
		.connections_max = conf->max_connections,
		.connections_per_peer_max = conf->max_connections_per_peer,
		.trusted = &conf->trusted_proxies,
		.uncounted = server->options.uncounted,
	};
	int r = pn_watch_open(&options, &server->watch, ret_error);

	if (r < 0)
		return r;
	if (conf->rate_limit_per_second > 0) {
		server->limiter = pn_limiter_new(conf->rate_limit_per_second);
		if (server->limiter == NULL)
			return pn_error_set(
			    ret_error, -ENOMEM, "out of memory");
	}
	return open_listeners(server, ret_error);
}

int
pn_server_open(const struct pn_server_options *options,
    struct pn_server **ret_server, struct pn_error *ret_error)
{
	const struct pn_handler *handler = options->handler;
	struct pn_server *server = calloc(1, sizeof(*server));
	int r;

	assert(handler->begin != NULL && handler->submit != NULL);
	assert(handler->refuse != NULL);
	assert(options->listen->count <= PN_LISTEN_MAX);
	assert(options->body_bytes_max <= PN_BODY_BYTES_MAX);
	assert(options->head_bytes_max <= 2 * PN_HEADER_BYTES_MAX);
	if (server == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	MHD_set_panic_func(library_panic, NULL);
	server->options = *options;
	server->listening =
	    pn_buf_init(sizeof(struct pn_listen) * PN_LISTEN_MAX);
	if (handler->open != NULL)
		handler->open(options->service);
	r = open_parts(server, ret_error);
	if (r < 0) {
		pn_server_close(server, 0);
		return r;
	}
	*ret_server = server;
	return 0;
}

const char *
pn_server_listening(const struct pn_server *server)
{
	return server->listening.data == NULL ? "" : server->listening.data;
}

const char *
pn_server_library_version(void)
{
	return MHD_get_version();
}

/* -- close ----------------------------------------------------------------------- */

static void
wait_a_little(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	(void)nanosleep(&ms, NULL);
}

/* A connection that the kernel has taken counts as accepted: its client may
 * have sent its request already. */
static void
drain_backlog(const struct pn_server *server)
{
	struct pollfd polled[PN_LISTEN_MAX];
	nfds_t count = 0;

	for (size_t i = 0; i < server->listener_count; i++)
		if (!server->listeners[i].listen.inherited)
			polled[count++] = (struct pollfd){
				.fd = server->listeners[i].listen.fd,
				.events = POLLIN,
			};
	for (int i = 0; i < backlog_ms_max; i++) {
		if (poll(polled, count, 0) <= 0)
			return;
		wait_a_little();
	}
}

static void
stop_accepting(struct pn_server *server)
{
	drain_backlog(server);
	for (size_t i = 0; i < server->listener_count; i++) {
		struct pn_listener *listener = &server->listeners[i];
		int fd = pn_quiesce(listener->daemon);

		assert(fd == listener->listen.fd);
		if (!listener->listen.inherited)
			(void)shutdown(fd, SHUT_RDWR);
	}
}

static void
wait_idle(struct pn_server *server, int64_t us)
{
	int64_t until_us = pn_clock_monotonic_us() + us;

	while (pn_watch_count(server->watch) > 0 &&
	       pn_clock_monotonic_us() < until_us)
		wait_a_little();
}

static void
wait_zero(_Atomic unsigned *counter, int64_t us)
{
	int64_t until_us = pn_clock_monotonic_us() + us;

	while (atomic_load(counter) > 0 && pn_clock_monotonic_us() < until_us)
		wait_a_little();
}

static void
finish_requests(struct pn_server *server, int64_t grace_us)
{
	atomic_store(&server->stopping, true);
	stop_accepting(server);
	pn_log_info("accepting nothing more on %s; %u requests are under way",
	    pn_server_listening(server), atomic_load(&server->active));
	wait_idle(server, grace_us < idle_grace_us ? grace_us : idle_grace_us);
	wait_zero(&server->active, grace_us);
	atomic_store(&server->refusing, true);
	/* The handler answers each in a bounded time: this ends. */
	wait_zero(&server->pending, pending_warn_us);
	while (atomic_load(&server->pending) > 0) {
		pn_log_err("waiting for %u requests in the pipeline",
		    atomic_load(&server->pending));
		wait_zero(&server->pending, pending_warn_us);
	}
	wait_zero(&server->active, last_reply_us);
	if (atomic_load(&server->active) > 0)
		pn_log_notice("closing %u requests that did not end in time",
		    atomic_load(&server->active));
}

void
pn_server_close(struct pn_server *server, int64_t grace_us)
{
	if (server == NULL)
		return;
	if (server->listener_count > 0)
		finish_requests(server, grace_us);
	for (size_t i = 0; i < server->listener_count; i++) {
		MHD_stop_daemon(server->listeners[i].daemon);
		pn_listen_close(&server->listeners[i].listen);
	}
	assert(atomic_load(&server->active) == 0);
	assert(atomic_load(&server->pending) == 0);
	pn_watch_close(server->watch);
	pn_limiter_free(server->limiter);
	pn_buf_done(&server->listening);
	free(server);
}
