/*
 * What the deliverer knows of an endpoint: its secrets, its breaker, how much
 * it may still be given, and when it is worth asking the database for it.
 *
 * Room: an endpoint is given at most max_in_flight events at a time, and an
 * event counts from its claim until its result is settled, not until it is
 * answered. So what is claimed can be sent at once, a lease never runs while
 * its event waits in a queue of ours, and a database that is away bounds by
 * itself what is kept in memory.
 *
 * When: at once if something may be there - a NOTIFY came, room became free,
 * the last claim gave all that was asked for - else a second later, for what is
 * due again by the clock. But not while this host lacks what a push needs.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "deliver_internal.h"
#include "webhook.h"

static int
parse_secrets(struct pn_endpoint *endpoint, struct pn_error *ret_error)
{
	const struct pn_conf_files *files = &endpoint->conf->secret_file;
	int r;

	endpoint->secrets = calloc(files->count, sizeof(*endpoint->secrets));
	if (endpoint->secrets == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	for (; endpoint->secret_count < files->count;
	     endpoint->secret_count++) {
		const struct pn_conf_file *file =
		    &files->files[endpoint->secret_count];

		r = pn_webhook_secret_parse(pn_conf_file_text(file),
		    &endpoint->secrets[endpoint->secret_count], ret_error);
		if (r != 0)
			return pn_error_prefix(ret_error, r < 0 ? r : -EINVAL,
			    "%s:%d: secret_file \"%s\": ", file->place.file,
			    file->place.line, file->path);
	}
	return 0;
}

int
pn_endpoint_init(struct pn_endpoint *endpoint,
    const struct pn_conf_deliver *conf, struct pn_error *ret_error)
{
	*endpoint = (struct pn_endpoint){ .conf = conf, .wanted = true };
	/* conf has seen to all this, and to what a URL is. */
	assert(conf->name != NULL && conf->url != NULL);
	assert(conf->secret_file.count > 0 && conf->timeout_us > 0);
	assert(
	    conf->max_in_flight > 0 && conf->max_in_flight <= PN_IN_FLIGHT_MAX);
	endpoint->deliveries = pn_series_open(
	    PN_FAMILY_DELIVERIES, (const char *const[]){ conf->name });
	endpoint->seconds = pn_series_open(
	    PN_FAMILY_DELIVERY_SECONDS, (const char *const[]){ conf->name });
	return parse_secrets(endpoint, ret_error);
}

void
pn_endpoint_done(struct pn_endpoint *endpoint)
{
	assert(endpoint->in_flight == 0);
	for (size_t i = 0; i < endpoint->secret_count; i++)
		pn_secret_done(&endpoint->secrets[i]);
	pn_series_close(endpoint->deliveries);
	pn_series_close(endpoint->seconds);
	endpoint->deliveries = endpoint->seconds = NULL;
	free(endpoint->secrets);
	endpoint->secrets = NULL;
	endpoint->secret_count = 0;
}

unsigned
pn_endpoint_room(struct pn_endpoint *endpoint, int64_t now_us)
{
	unsigned room = (unsigned)endpoint->conf->max_in_flight;

	assert(endpoint->in_flight <= room);
	if (now_us < endpoint->hold_us)
		return 0;
	room -= endpoint->in_flight;
	if (room > PN_CLAIM_AT_ONCE)
		room = PN_CLAIM_AT_ONCE;
	return pn_breaker_allows(&endpoint->breaker, room, now_us);
}

int64_t
pn_endpoint_due_us(const struct pn_endpoint *endpoint)
{
	const struct pn_breaker *breaker = &endpoint->breaker;
	int64_t due_us = endpoint->wanted ? 0 : endpoint->next_us;

	if (!endpoint->registered)
		return endpoint->next_us;
	if (endpoint->in_flight >= (unsigned)endpoint->conf->max_in_flight ||
	    breaker->probing)
		return INT64_MAX;
	if (breaker->state == PN_BREAKER_OPEN && due_us < breaker->until_us)
		due_us = breaker->until_us;
	return due_us < endpoint->hold_us ? endpoint->hold_us : due_us;
}

int64_t
pn_endpoint_lease_us(const struct pn_endpoint *endpoint)
{
	return endpoint->conf->timeout_us + PN_LEASE_MARGIN_US;
}
