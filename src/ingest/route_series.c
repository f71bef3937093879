/*
 * What is counted of an account: its series, opened with it, and what they say
 * that an operator should read.
 *
 * Each configured key has a series from the beginning, so that one which
 * verifies nothing shows 0: after a rotation that is how one sees when the old
 * key may go.
 *
 * The clock is compared with the time that the provider signed into a
 * notification when it sent it, of those only that are recorded as new: a
 * capture that is sent again is a duplicate. Each moves the offset an eighth of
 * the way, so that one that was held up on its way says nothing. What is off by
 * more than an hour is an old message and not a clock.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

#include "ingest_internal.h"

enum {
	KEY_SHOWN_BYTES = 8, /* of a fingerprint: 16 hex digits */
	SMOOTHING = 8,
};
static const int64_t OLD_US = 3600 * PN_SECOND_US;
static const int64_t OFFSET_TOLD_US = 60 * PN_SECOND_US;
static const int64_t LOG_INTERVAL_US = 600 * PN_SECOND_US;

/* -- opening and closing -------------------------------------------------------- */

/* Room for one more of size bytes. NULL: no memory. */
static void *
grow(void **list, size_t count, size_t size)
{
	void *grown = reallocarray(*list, count + 1, size);

	if (grown == NULL)
		return NULL;
	*list = grown;
	return (char *)grown + count * size;
}

static int
add_key(void *payload, const unsigned char *fingerprint, const char *pem)
{
	struct pn_route *route = payload;
	struct pn_route_series *series = &route->series;
	char text[2 * KEY_SHOWN_BYTES + 1];
	struct pn_key_series *key;

	(void)pem;
	key = grow(
	    (void **)&series->keys, series->key_count, sizeof(*series->keys));
	if (key == NULL)
		return -ENOMEM;
	memcpy(key->fingerprint, fingerprint, PN_SHA256_BYTES);
	pn_hex_lower(fingerprint, KEY_SHOWN_BYTES, text);
	key->verified = pn_series_open(
	    PN_FAMILY_VERIFIED, (const char *const[]){ route->provider->name,
				    route->conf->tenant, text });
	series->key_count++;
	return 0;
}

static int
add_certificate(void *payload, const char *serial, int64_t not_after_us)
{
	struct pn_route *route = payload;
	struct pn_route_series *series = &route->series;
	struct pn_certificate_series *certificate;

	certificate = grow((void **)&series->certificates,
	    series->certificate_count, sizeof(*series->certificates));
	if (certificate == NULL)
		return -ENOMEM;
	*certificate = (struct pn_certificate_series){
		.serial = serial,
		.not_after_us = not_after_us,
		.expires = pn_series_open(PN_FAMILY_CERTIFICATE,
		    (const char *const[]){
			route->provider->name, route->conf->tenant, serial }),
	};
	pn_series_set(certificate->expires, not_after_us);
	series->certificate_count++;
	return 0;
}

int
pn_route_series_open(struct pn_route *route)
{
	const struct pn_provider *provider = route->provider;
	const char *const account[] = { provider->name, route->conf->tenant };
	struct pn_route_series *series = &route->series;
	int r;

	assert(route->account != NULL && series->requests == NULL);
	series->requests = pn_series_open(PN_FAMILY_REQUESTS, account);
	series->request_seconds =
	    pn_series_open(PN_FAMILY_REQUEST_SECONDS, account);
	series->verify_seconds =
	    pn_series_open(PN_FAMILY_VERIFY_SECONDS, account);
	series->clock_offset = pn_series_open(PN_FAMILY_CLOCK_OFFSET, account);
	r = provider->account_keys(route->account, add_key, route);
	if (r == 0 && provider->account_certificates != NULL)
		r = provider->account_certificates(
		    route->account, add_certificate, route);
	return r;
}

void
pn_route_series_close(struct pn_route *route)
{
	struct pn_route_series *series = &route->series;

	pn_series_close(series->requests);
	pn_series_close(series->request_seconds);
	pn_series_close(series->verify_seconds);
	pn_series_close(series->clock_offset);
	for (size_t i = 0; i < series->key_count; i++)
		pn_series_close(series->keys[i].verified);
	for (size_t i = 0; i < series->certificate_count; i++)
		pn_series_close(series->certificates[i].expires);
	free(series->keys);
	free(series->certificates);
	*series = (struct pn_route_series){ .requests = NULL };
}

struct pn_series *
pn_ingest_request_seconds(const struct pn_route *route)
{
	return route->series.request_seconds;
}

/* -- counting ------------------------------------------------------------------- */

void
pn_route_count_verified(const struct pn_route *route,
    const unsigned char fingerprint[PN_SHA256_BYTES])
{
	const struct pn_route_series *series = &route->series;

	for (size_t i = 0; i < series->key_count; i++) {
		if (memcmp(series->keys[i].fingerprint, fingerprint,
			PN_SHA256_BYTES) != 0)
			continue;
		pn_series_add(series->keys[i].verified, 0, 1);
		return;
	}
}

void
pn_route_note_clock(
    const struct pn_route *route, int64_t signed_at_us, int64_t received_us)
{
	struct pn_series *gauge = route->series.clock_offset;
	int64_t offset_us, last_us = pn_series_get(gauge, 0);

	if (signed_at_us == PN_MOMENT_NONE)
		return;
	offset_us = signed_at_us - received_us;
	if (offset_us > OLD_US || offset_us < -OLD_US)
		return;
	/* Two threads may come here at once, and one of them be lost. */
	if (last_us != PN_SERIES_ABSENT)
		offset_us = last_us + (offset_us - last_us) / SMOOTHING;
	pn_series_set(gauge, offset_us);
	if (offset_us <= OFFSET_TOLD_US && offset_us >= -OFFSET_TOLD_US)
		return;
	pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING,
	    &(struct pn_log_about){
		.provider = route->provider->name,
		.tenant = route->conf->tenant,
	    },
	    "the clock here is %" PRId64 " s %s that of the provider's "
	    "notifications: is it synchronised?",
	    (offset_us < 0 ? -offset_us : offset_us) / PN_SECOND_US,
	    offset_us < 0 ? "ahead of" : "behind");
}

/* -- certificates ------------------------------------------------------------------ */

static void
warn_certificate(const struct pn_route *route,
    const struct pn_certificate_series *certificate, int64_t now_us)
{
	int64_t left_us = certificate->not_after_us - now_us;
	char until[PN_MOMENT_TEXT_BYTES];

	if (left_us >= PN_CERTIFICATE_WARNING_US)
		return;
	pn_moment_format_rfc3339(certificate->not_after_us, until);
	pn_log_always(PN_LOG_WARNING,
	    &(struct pn_log_about){
		.provider = route->provider->name,
		.tenant = route->conf->tenant,
	    },
	    "platform certificate \"%s\" %s at %s: configure its successor "
	    "beside it%s",
	    certificate->serial, left_us < 0 ? "ended" : "ends", until,
	    left_us < 0 ? "; what it signs is refused" : " before");
}

void
pn_route_warn_certificates(const struct pn_route *route, int64_t now_us)
{
	const struct pn_route_series *series = &route->series;

	for (size_t i = 0; i < series->certificate_count; i++)
		warn_certificate(route, &series->certificates[i], now_us);
}
