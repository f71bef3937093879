/*
 * The end of accepting, without a race of libmicrohttpd's.
 *
 * MHD_quiesce_daemon() says to a worker that it is over and then takes the
 * listening socket out of the worker's epoll set; a worker that wakes up at that
 * moment takes it out as well. Who comes second gets ENOENT, and libmicrohttpd
 * (0.9.75 of Debian 12; MHD_epoll() and MHD_quiesce_daemon() of daemon.c) aborts
 * the process, with all requests that are in flight. Later versions say at one of
 * the three places that ENOENT "can happen due to race with MHD_epoll()", and go
 * on. That is right, and said here for all of them: the library calls epoll_ctl()
 * by its name, and a program's own comes before that of libc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "http_internal.h"

typedef int epoll_ctl_fn(int, int, int, struct epoll_event *);

/* Never taken back: whoever stops accepting is about to end. */
static _Atomic bool is_quiescing;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Not the system call itself: a sanitizer's epoll_ctl() may be the next one. */
static epoll_ctl_fn *next_epoll_ctl;

static void
find_next(void)
{
	*(void **)&next_epoll_ctl = dlsym(RTLD_NEXT, "epoll_ctl");
	if (next_epoll_ctl == NULL)
		abort(); /* a libc without it has no libmicrohttpd */
}

int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int r;

	(void)pthread_once(&once, find_next);
	r = next_epoll_ctl(epfd, op, fd, event);
	if (r < 0 && errno == ENOENT && op == EPOLL_CTL_DEL &&
	    atomic_load(&is_quiescing))
		return 0;
	return r;
}

int
pn_quiesce(struct MHD_Daemon *daemon)
{
	atomic_store(&is_quiescing, true);
	return MHD_quiesce_daemon(daemon);
}
