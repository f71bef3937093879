/*
 * What systemd is told: readiness, stopping, one line of status; and the sockets
 * that it hands over.
 *
 * sd_notify() does nothing outside a service and its failure changes nothing
 * for the merchant, so results are dropped. A status text may hold words from
 * outside (a database error); its line feeds are taken out, because a line of
 * its own would be a command to systemd.
 *
 * Sockets are the service's if LISTEN_PID names this process. The variables stay
 * set, so that each listener may ask for its own; a child would not believe them.
 */
#include "paynotify/service.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#include "paynotify/moment.h"

enum { STATUS_BYTES_MAX = 512 };

static void
notify(const char *state, const char *status)
{
	char text[STATUS_BYTES_MAX];
	size_t head;

	head = (size_t)snprintf(text, sizeof(text), "%s\nSTATUS=", state);
	(void)snprintf(text + head, sizeof(text) - head, "%s", status);
	for (char *at = text + head; *at != '\0'; at++) {
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	}
	(void)sd_notify(0, text);
}

void
pn_service_ready(const char *status)
{
	notify("READY=1", status);
}

void
pn_service_reloading(void)
{
	(void)sd_notifyf(0,
	    "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=reloading",
	    pn_clock_monotonic_us());
}

void
pn_service_stopping(void)
{
	notify("STOPPING=1", "stopping");
}

void
pn_service_status(const char *status)
{
	notify("", status);
}

/* -- the watchdog -------------------------------------------------------------- */

int64_t
pn_service_watchdog_us(void)
{
	uint64_t us = 0;

	if (sd_watchdog_enabled(0, &us) <= 0 || us > INT64_MAX)
		return 0;
	return (int64_t)(us / 2);
}

void
pn_service_alive(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}

int
pn_service_signal(const sigset_t *signals, int64_t us)
{
	struct timespec time = {
		.tv_sec = (time_t)(us / PN_SECOND_US),
		.tv_nsec = (long)(us % PN_SECOND_US) * 1000,
	};
	const struct timespec now = { .tv_sec = 0 };
	int number = us == 0 ? sigwaitinfo(signals, NULL)
			     : sigtimedwait(signals, NULL, &time);
	sigset_t others = *signals;
	int other;

	if (number != SIGHUP)
		return number < 0 ? 0 : number;
	/* Of several the kernel gives the one with the lowest number, and that
	 * is SIGHUP: who sends it without end could hold up a stop for ever. */
	(void)sigdelset(&others, SIGHUP);
	other = sigtimedwait(&others, NULL, &now);
	return other < 0 ? number : other;
}

/* -- sockets ----------------------------------------------------------------- */

static bool
is_named(const char *given, const char *name)
{
	if (strcmp(given, PN_SOCKET_GUARD) != 0 &&
	    strcmp(given, PN_SOCKET_ADMIN) != 0)
		given = PN_SOCKET_NOTIFY;
	return strcmp(given, name) == 0;
}

size_t
pn_service_sockets(const char *name, int *ret_fds, size_t max)
{
	char **names = NULL;
	int all = sd_listen_fds_with_names(0, &names);
	size_t count = 0;

	for (int i = 0; i < all; i++) {
		if (is_named(names[i], name)) {
			if (count < max)
				ret_fds[count] = SD_LISTEN_FDS_START + i;
			count++;
		}
		free(names[i]);
	}
	free(names);
	return count;
}
