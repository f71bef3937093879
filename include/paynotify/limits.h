/*
 * Every maximum of the program, in one place. A loop over input has its bound
 * here; a buffer is born with one. Relations between them are asserted below.
 */
#ifndef PN_LIMITS_H
#define PN_LIMITS_H

#include <assert.h>

enum {
	/* A request. Real notifications are 1 to 12 kB; see max_body. */
	PN_BODY_BYTES_MAX = 1 << 20,    /* upper end of [server] max_body */
	PN_HEADER_COUNT_MAX = 100,      /* header lines of one request */
	PN_HEADER_BYTES_MAX = 16 << 10, /* all header lines together */
	/* Request line and headers of a notification, and what libmicrohttpd
	 * notes of them: some 70 bytes a header. */
	PN_HEAD_BYTES_MAX = 10 << 10,
	/* All memory of one request, in bodies of the longest: 2 as it is read
	 * in chunks, 1 decoded, 4 signed texts (one a rule), 3 as UTF-8 (each
	 * byte that is none is three), 6 as payload and 6 as witness (each
	 * control byte is \u0001), 2 for headers, events and reply. */
	PN_PAYLOAD_GROWTH_MAX = 6,
	PN_ARENA_BODIES = 2 + 1 + 4 + 3 + 2 * PN_PAYLOAD_GROWTH_MAX + 2,
	PN_ARENA_BYTES_MAX = 24 << 20,

	/* Parsers. */
	PN_FORM_FIELDS_MAX = 512,
	PN_FORM_NAME_BYTES_MAX = 256,
	PN_JSON_DEPTH_MAX = 32,
	PN_JSON_NUMBER_BYTES_MAX = 64,   /* int64 takes 20, a double 25 */
	PN_JSON_EXPONENT_DIGITS_MAX = 3, /* PostgreSQL refuses 1e-20000 */
	PN_XML_DEPTH_MAX = 2,            /* root and its children */
	PN_XML_FIELDS_MAX = 512,
	PN_XML_TAG_BYTES_MAX = 4096, /* attributes cost their square */
	PN_XML_BYTES_MAX = 64 << 10,
	PN_CAPTURE_BYTES_MAX = PN_BODY_BYTES_MAX + PN_HEADER_BYTES_MAX,

	/* Words of the design. */
	PN_TENANT_BYTES_MAX = 32,            /* [a-z0-9_-]{1,32} */
	PN_ID_BYTES_MAX = 128,               /* one provider id inside a key */
	PN_KEY_BYTES_MAX = 1024,             /* a dedup key, escaped */
	PN_TYPE_BYTES_MAX = 128,             /* an event type */
	PN_EVENTS_PER_NOTIFICATION_MAX = 64, /* WeChat combines up to 50 */
	PN_REASON_BYTES_MAX = 256,
	PN_REPLY_MESSAGE_BYTES_MAX = 64, /* WeChat v3 "message" */

	/* Configuration. */
	PN_CONF_FILE_BYTES_MAX = 1 << 20,
	PN_CONF_LINE_BYTES_MAX = 4096,
	PN_CONF_FILES_MAX = 256, /* include folder */
	PN_CONF_ACCOUNTS_MAX = 4096,
	PN_CONF_OPTIONS_MAX = 1 << 17,       /* option lines in all files */
	PN_CONF_ARENA_BYTES_MAX = 128 << 20, /* all that is kept of them */
	PN_CONF_REPEAT_MAX = 64, /* repeats of one key in one section */
	PN_KEY_FILE_BYTES_MAX = 64 << 10,
	PN_CA_FILE_BYTES_MAX = 1 << 20, /* a bundle of a system: 200 kB */
	PN_ACCOUNT_KEYS_MAX = 64,

	/* The store. */
	PN_BATCH_EVENTS_MAX = 128, /* past this only latency grows */
	PN_BATCH_BYTES_MAX = 8 << 20,
	PN_QUEUE_EVENTS_MAX = 16384, /* waiting for a writer; then 503 */
	PN_WRITERS_MAX = 16,
	PN_REFUSAL_QUEUE_MAX = 1024, /* lossy queue of unverified refusals */
	PN_REFUSAL_BODY_BYTES_MAX = 2048,
	PN_ARCHIVE_KEYS_MAX = 500, /* keys the janitor moves at a time */

	/* The hand-off. */
	PN_ENDPOINTS_MAX = 64,          /* [deliver] sections */
	PN_CLAIM_EVENTS_MAX = 1000,     /* of one claim; see 0004 */
	PN_ANSWER_KEPT_BYTES_MAX = 512, /* of an endpoint's answer */
	PN_IN_FLIGHT_MAX = 1024,        /* attempts of one endpoint */
	PN_URL_BYTES_MAX = 2048,        /* of an endpoint */

	PN_GUARD_ROUTES_MAX = 64, /* [guard NAME] sections */

	/* The server. */
	PN_CONNECTIONS_MAX = 65536,
	PN_LISTEN_MAX = 8,
	PN_PATH_BYTES_MAX = 512,

	/* Metrics: lines of the page, and how long one may be. */
	PN_SERIES_LINES_MAX = 1 << 17,
	PN_SERIES_LINE_BYTES_MAX = 544,
	PN_LABEL_BYTES_MAX = 64,             /* of a label's value */
	PN_METRIC_LINES_OF_ACCOUNT_MAX = 24, /* with a handful of keys */
	PN_METRICS_PAGE_BYTES_MAX = 80 << 20,
	PN_CONSUMERS_TOLD_MAX = 256, /* in the metrics */

	PN_ERROR_TEXT_BYTES_MAX = 1024,
	PN_LOG_LINE_BYTES_MAX = 4096,
};

static_assert(PN_EVENTS_PER_NOTIFICATION_MAX <= PN_BATCH_EVENTS_MAX,
    "a notification must fit one batch, or it could never be committed");
static_assert(PN_BODY_BYTES_MAX * PN_ARENA_BODIES <= PN_ARENA_BYTES_MAX,
    "what is signed right must not be refused for want of memory");
static_assert(PN_SERIES_LINES_MAX * PN_SERIES_LINE_BYTES_MAX + (1 << 20) <=
		  PN_METRICS_PAGE_BYTES_MAX,
    "a page holds all lines, with their families, and the other metrics");
static_assert(PN_CONF_ACCOUNTS_MAX * PN_METRIC_LINES_OF_ACCOUNT_MAX <=
		  PN_SERIES_LINES_MAX,
    "there are lines for as many accounts as there may be");
static_assert(
    PN_TENANT_BYTES_MAX <= PN_LABEL_BYTES_MAX, "a tenant is told whole");
static_assert(PN_BATCH_EVENTS_MAX <= PN_QUEUE_EVENTS_MAX,
    "the queue holds at least one batch");
static_assert(
    PN_BATCH_BYTES_MAX >= PN_BODY_BYTES_MAX * (1 + PN_PAYLOAD_GROWTH_MAX),
    "the largest notification fits a batch of its own");

#endif
