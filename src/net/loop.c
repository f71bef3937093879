/*
 * The client's waiting: curl's multi handle, driven by its sockets
 * (curl_multi_socket_action) from one epoll set.
 *
 * curl_multi_poll() and curl_multi_perform() are shorter to write, but look at
 * every transfer at every wake: with 1,000 slow ones in flight each answer of
 * a fast one costs a thousand steps. Here the cost is that of what happened.
 *
 * curl says which sockets it wants watched (on_socket) and when it wants to
 * run without any (on_timer); both are called from within curl's functions, on
 * this thread. The end of a transfer takes its connection out of the set, the
 * next one puts it back.
 *
 * An event that was fetched together with one that closed its socket may meet
 * a new socket of the same number. curl's sockets are non-blocking, so all it
 * finds is that there is nothing to read yet.
 */
#include "client_internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "paynotify/moment.h"

enum {
	EVENTS_PER_TURN_MAX = 64,
	WAIT_MS_MAX = 60 * 1000, /* an idle client wakes once a minute */
};

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *payload, void *known)
{
	struct pn_client_loop *loop = payload;
	struct epoll_event event = { .data.fd = fd };
	int r;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		/* May be closed already: then it is out of the set. */
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, &event);
		return 0;
	}
	event.events = ((what & CURL_POLL_IN) != 0 ? (unsigned)EPOLLIN : 0) |
		       ((what & CURL_POLL_OUT) != 0 ? (unsigned)EPOLLOUT : 0);
	r = epoll_ctl(loop->epoll_fd,
	    known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
	if (r != 0 && errno == (known == NULL ? EEXIST : ENOENT))
		r = epoll_ctl(loop->epoll_fd,
		    known == NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
	if (r != 0)
		return -1; /* no memory in the kernel: curl fails the transfer */
	if (known == NULL)
		(void)curl_multi_assign(loop->multi, fd, loop);
	return 0;
}

static int
on_timer(CURLM *multi, long timeout_ms, void *payload)
{
	struct pn_client_loop *loop = payload;

	(void)multi;
	loop->timer_us = timeout_ms < 0 ? INT64_MAX
					: pn_clock_monotonic_us() +
					      timeout_ms * PN_MILLISECOND_US;
	return 0;
}

static CURLMcode
set_options(struct pn_client_loop *loop, unsigned connections_max)
{
	CURLMcode code = CURLM_OK;

#define SET(option, value)    \
	if (code == CURLM_OK) \
	code = curl_multi_setopt(loop->multi, option, value)
	SET(CURLMOPT_SOCKETFUNCTION, on_socket);
	SET(CURLMOPT_SOCKETDATA, loop);
	SET(CURLMOPT_TIMERFUNCTION, on_timer);
	SET(CURLMOPT_TIMERDATA, loop);
	SET(CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	/* Idle ones give way to new ones, oldest first. */
	SET(CURLMOPT_MAXCONNECTS, (long)connections_max);
	SET(CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections_max);
#undef SET
	return code;
}

int
pn_client_loop_open(struct pn_client_loop *loop, unsigned connections_max,
    struct pn_error *ret_error)
{
	struct epoll_event event = { .events = EPOLLIN };
	int r;

	*loop = (struct pn_client_loop){
		.multi = curl_multi_init(),
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.timer_us = INT64_MAX,
	};
	event.data.fd = loop->wake_fd;
	if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) !=
		0)
		r = pn_error_set(ret_error, -errno,
		    "could not make an epoll set: %s", strerror(errno));
	else if (loop->multi == NULL ||
		 set_options(loop, connections_max) != CURLM_OK)
		r = pn_error_set(ret_error, -ENOMEM, "out of memory");
	else
		return 0;
	pn_client_loop_close(loop);
	return r;
}

void
pn_client_loop_close(struct pn_client_loop *loop)
{
	/* Closes the connections that are kept: the set is needed until then. */
	if (loop->multi != NULL)
		(void)curl_multi_cleanup(loop->multi);
	if (loop->epoll_fd >= 0)
		(void)close(loop->epoll_fd);
	if (loop->wake_fd >= 0)
		(void)close(loop->wake_fd);
	*loop = (struct pn_client_loop){ .epoll_fd = -1, .wake_fd = -1 };
}

void
pn_client_loop_wake(struct pn_client_loop *loop)
{
	uint64_t one = 1;
	ssize_t n = write(loop->wake_fd, &one, sizeof(one));

	assert(n == sizeof(one)); /* the counter cannot be full */
}

static void
act(struct pn_client_loop *loop, curl_socket_t fd, int events)
{
	int running;
	CURLMcode code =
	    curl_multi_socket_action(loop->multi, fd, events, &running);

	/* Anything else is a wrong use of curl. */
	assert(code == CURLM_OK || code == CURLM_BAD_SOCKET ||
	       code == CURLM_OUT_OF_MEMORY ||
	       code == CURLM_ABORTED_BY_CALLBACK);
}

static void
handle(struct pn_client_loop *loop, const struct epoll_event *event)
{
	uint64_t count;

	if (event->data.fd == loop->wake_fd) {
		(void)!read(loop->wake_fd, &count, sizeof(count));
		return;
	}
	act(loop, event->data.fd,
	    ((event->events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN
							 : 0) |
		((event->events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
		((event->events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0));
}

static int
wait_ms(int64_t until_us)
{
	int64_t left_us;

	if (until_us == INT64_MAX)
		return WAIT_MS_MAX;
	left_us = until_us - pn_clock_monotonic_us();
	if (left_us <= 0)
		return 0;
	if (left_us > WAIT_MS_MAX * PN_MILLISECOND_US)
		return WAIT_MS_MAX;
	return (int)((left_us + PN_MILLISECOND_US - 1) / PN_MILLISECOND_US);
}

void
pn_client_loop_turn(struct pn_client_loop *loop, int64_t until_us)
{
	struct epoll_event events[EVENTS_PER_TURN_MAX];
	int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN_MAX,
	    wait_ms(until_us < loop->timer_us ? until_us : loop->timer_us));

	assert(count >= 0 || errno == EINTR);
	for (int i = 0; i < count; i++)
		handle(loop, &events[i]);
	if (loop->timer_us == INT64_MAX ||
	    loop->timer_us > pn_clock_monotonic_us())
		return;
	loop->timer_us = INT64_MAX; /* curl sets the next one */
	act(loop, CURL_SOCKET_TIMEOUT, 0);
}
