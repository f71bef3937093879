/*
 * What systemd is told: readiness, stopping, one line of status.
 *
 * sd_notify() does nothing outside a service and its failure changes nothing
 * for the merchant, so results are dropped. A status text may hold words from
 * outside (a database error); its line feeds are taken out, because a line of
 * its own would be a command to systemd.
 */
#include "paynotify/service.h"

#include <stdio.h>
#include <string.h>

#include <systemd/sd-daemon.h>

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
pn_service_stopping(void)
{
	notify("STOPPING=1", "stopping");
}

void
pn_service_status(const char *status)
{
	notify("", status);
}
