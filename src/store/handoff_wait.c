/*
 * Waiting for new events.
 *
 * Notifications arrive between the answers of other statements too, and libpq
 * keeps them: so it is asked before the socket is, which need not be readable
 * then. All that have come make one: they carry nothing.
 *
 * A readable socket without a notification is a notice, the answer of nothing,
 * or the end of the connection.
 */
#include "paynotify/handoff.h"

#include <errno.h>
#include <poll.h>

#include "paynotify/moment.h"

#include "handoff_internal.h"

/* Takes all that have come. */
static bool
take_notifications(PGconn *pg)
{
	PGnotify *notification;
	bool any = false;

	while ((notification = PQnotifies(pg)) != NULL) {
		PQfreemem(notification);
		any = true;
	}
	return any;
}

/* Rounded up, so that poll() never ends before the time. */
static int
milliseconds(int64_t us)
{
	static const int64_t AT_ONCE_MAX_MS = 3600 * 1000;
	int64_t ms = (us + 999) / 1000;

	if (ms < 0)
		return 0;
	return (int)(ms < AT_ONCE_MAX_MS ? ms : AT_ONCE_MAX_MS);
}

int
pn_handoff_wait(struct pn_handoff *handoff, int wake_fd, int64_t timeout_us,
    struct pn_error *ret_error)
{
	struct pn_conn *conn = &handoff->conn;
	int64_t until_us = pn_clock_monotonic_us() + timeout_us, left_us;
	struct pollfd fds[] = {
		{ .fd = conn->stop_fd, .events = POLLIN },
		{ .fd = wake_fd, .events = POLLIN },
		{ .fd = PQsocket(conn->pg), .events = POLLIN },
	};

	for (;;) { /* bounded by the time */
		if (!pn_conn_alive(conn))
			return pn_error_set(ret_error, -ECONNRESET,
			    "connection ended while it waited for events");
		if (take_notifications(conn->pg))
			return PN_HANDOFF_NOTIFIED;
		left_us = until_us - pn_clock_monotonic_us();
		if (poll(fds, PN_COUNT(fds), milliseconds(left_us)) < 0 &&
		    errno != EINTR)
			return pn_error_set(
			    ret_error, -errno, "could not wait for events");
		if (fds[0].revents != 0)
			return pn_error_set(
			    ret_error, -ECANCELED, "told to stop");
		if (fds[1].revents != 0)
			return PN_HANDOFF_WOKEN;
		if (fds[2].revents == 0 && left_us <= 0)
			return 0;
	}
}
