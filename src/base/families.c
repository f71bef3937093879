/*
 * The families of metrics with labels: one row each.
 *
 * A name ends in _total (counters), _seconds (times; kept in microseconds and
 * printed in seconds) or in what is counted. Buckets of times resolve what a
 * notification takes, 100 us to 10 s; a bucket costs a line for each series, so
 * families that exist once an account have none.
 *
 * A new family is a row here, a line in series.h, and an entry in METRICS of
 * paynotifyd(8), which a test compares with this table.
 */
#include <assert.h>

#include "paynotify/compiler.h"

#include "series_internal.h"

static const struct pn_bound seconds[] = {
	{ 100, "0.0001" },
	{ 250, "0.00025" },
	{ 500, "0.0005" },
	{ 1000, "0.001" },
	{ 2500, "0.0025" },
	{ 5000, "0.005" },
	{ 10000, "0.01" },
	{ 25000, "0.025" },
	{ 50000, "0.05" },
	{ 100000, "0.1" },
	{ 250000, "0.25" },
	{ 500000, "0.5" },
	{ 1000000, "1" },
	{ 2500000, "2.5" },
	{ 5000000, "5" },
	{ 10000000, "10" },
};

/* Up to PN_BATCH_EVENTS_MAX. */
static const struct pn_bound sizes[] = {
	{ 1, "1" },
	{ 2, "2" },
	{ 4, "4" },
	{ 8, "8" },
	{ 16, "16" },
	{ 32, "32" },
	{ 64, "64" },
	{ 128, "128" },
};

static_assert(PN_COUNT(seconds) + 2 <= PN_FAMILY_VALUES_MAX,
    "buckets, the one without a bound, and the sum");
static_assert(PN_COUNT(sizes) + 2 <= PN_FAMILY_VALUES_MAX, "ditto");

static const char *const request_ends[] = {
	[PN_REQUEST_ACCEPTED] = "accepted",
	[PN_REQUEST_DUPLICATE] = "duplicate",
	[PN_REQUEST_CONFLICT] = "conflict",
	[PN_REQUEST_QUARANTINED] = "quarantined",
	[PN_REQUEST_MALFORMED] = "malformed",
	[PN_REQUEST_BAD_SIGNATURE] = "bad_signature",
	[PN_REQUEST_PROBE] = "probe",
	[PN_REQUEST_UNKNOWN_KEY] = "unknown_key",
	[PN_REQUEST_STALE] = "stale",
	[PN_REQUEST_UNDECRYPTABLE] = "undecryptable",
	[PN_REQUEST_WRONG_ACCOUNT] = "wrong_account",
	[PN_REQUEST_UNSUPPORTED] = "unsupported",
	[PN_REQUEST_RATE_LIMITED] = "rate_limited",
	[PN_REQUEST_NOT_ALLOWED] = "not_allowed",
	[PN_REQUEST_UNAVAILABLE] = "unavailable",
};

static const char *const delivery_ends[] = {
	[PN_DELIVERY_END_DONE] = "done",
	[PN_DELIVERY_END_RETRY] = "retry",
	[PN_DELIVERY_END_DEAD] = "dead",
	[PN_DELIVERY_END_LOST] = "lost",
};

static const char *const guard_ends[] = {
	[PN_GUARD_END_ANSWERED] = "answered",
	[PN_GUARD_END_REPLAYED] = "replayed",
	[PN_GUARD_END_MISMATCH] = "mismatch",
	[PN_GUARD_END_BUSY] = "in_progress",
	[PN_GUARD_END_SET_ASIDE] = "set_aside",
	[PN_GUARD_END_EXPIRED] = "expired",
	[PN_GUARD_END_REFUSED] = "refused",
	[PN_GUARD_END_UPSTREAM] = "upstream_failed",
	[PN_GUARD_END_UNAVAILABLE] = "unavailable",
	[PN_GUARD_END_UNKEPT] = "not_kept",
	[PN_GUARD_END_PASSED] = "passed",
};

static const char *const guard_works[] = {
	[PN_GUARD_WORK_DONE] = "done",
	[PN_GUARD_WORK_NOT] = "not_done",
	[PN_GUARD_WORK_UNKNOWN] = "unknown",
};

static_assert(PN_COUNT(request_ends) == PN_REQUEST_END_COUNT, "all named");
static_assert(PN_COUNT(delivery_ends) == PN_DELIVERY_END_COUNT, "all named");
static_assert(PN_COUNT(guard_ends) == PN_GUARD_END_COUNT, "all named");
static_assert(PN_COUNT(guard_works) == PN_GUARD_WORK_COUNT, "all named");
static_assert(PN_COUNT(request_ends) <= PN_FAMILY_VALUES_MAX, "they fit");

#define ENDS(table)   .ends = (table), .end_count = PN_COUNT(table)
#define BOUNDS(table) .bounds = (table), .bound_count = PN_COUNT(table)

const struct pn_family_row pn_families[PN_FAMILY_COUNT] = {
	[PN_FAMILY_REQUESTS] = { .name = "paynotify_requests_total",
	    .type = PN_TYPE_COUNTER,
	    .help = "Notifications, by how each ended",
	    .labels = { "provider", "tenant", "verdict" },
	    ENDS(request_ends), },
	[PN_FAMILY_REQUEST_SECONDS] = { .name = "paynotify_request_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "From the request line of a notification to its reply",
	    .labels = { "provider" },
	    BOUNDS(seconds), },
	[PN_FAMILY_VERIFY_SECONDS] = { .name = "paynotify_verify_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "Verifying, decrypting and reading a notification",
	    .labels = { "provider" },
	    BOUNDS(seconds), },
	[PN_FAMILY_VERIFIED] = { .name = "paynotify_verified_total",
	    .type = PN_TYPE_COUNTER,
	    .help =
		"Notifications by the key that verified them (the beginning of "
		"its fingerprint)",
	    .labels = { "provider", "tenant", "key" }, },
	[PN_FAMILY_CLOCK_OFFSET] = { .name = "paynotify_clock_offset_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help = "Time in new notifications less the time here, smoothed",
	    .labels = { "provider", "tenant" }, },
	[PN_FAMILY_CERTIFICATE] = { .name =
					"paynotify_certificate_expires_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help = "Unix time at which a platform certificate ends",
	    .labels = { "provider", "tenant", "serial" }, },
	[PN_FAMILY_QUEUE_SECONDS] = { .name = "paynotify_queue_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help =
		"From the submission of a notification to a writer's taking it",
	    BOUNDS(seconds), },
	[PN_FAMILY_COMMIT_SECONDS] = { .name = "paynotify_commit_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "Ingest statements that committed",
	    BOUNDS(seconds), },
	[PN_FAMILY_BATCH_SIZE] = { .name = "paynotify_batch_notifications",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "Notifications in a statement that committed",
	    BOUNDS(sizes), },
	[PN_FAMILY_DELIVERIES] = { .name = "paynotify_deliveries_total",
	    .type = PN_TYPE_COUNTER,
	    .help = "Settled attempts to push an event to an endpoint",
	    .labels = { "endpoint", "result" },
	    ENDS(delivery_ends), },
	[PN_FAMILY_DELIVERY_SECONDS] = { .name = "paynotify_delivery_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "Attempts to push an event, each to its end",
	    .labels = { "endpoint" },
	    BOUNDS(seconds), },
	[PN_FAMILY_GUARD_REQUESTS] = { .name = "paynotify_guard_requests_total",
	    .type = PN_TYPE_COUNTER,
	    .help = "Requests of the idempotency gateway, by how they were "
		    "answered",
	    .labels = { "route", "result" },
	    ENDS(guard_ends), },
	[PN_FAMILY_GUARD_UPSTREAM] = { .name = "paynotify_guard_upstream_total",
	    .type = PN_TYPE_COUNTER,
	    .help = "Requests to upstreams, by what is known of the work",
	    .labels = { "route", "work" },
	    ENDS(guard_works), },
	[PN_FAMILY_GUARD_SECONDS] = { .name = "paynotify_guard_request_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help =
		"From the request line of the gateway's requests to the answer",
	    .labels = { "route" },
	    BOUNDS(seconds), },
	[PN_FAMILY_GUARD_WAIT] = { .name = "paynotify_guard_wait_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "How long requests waited for an equal one under way",
	    .labels = { "route" },
	    BOUNDS(seconds), },
	[PN_FAMILY_GUARD_HELD] = { .name = "paynotify_guard_held_seconds",
	    .type = PN_TYPE_HISTOGRAM,
	    .help = "How long keys were held until they were settled",
	    .labels = { "route" },
	    BOUNDS(seconds), },
	[PN_FAMILY_QUARANTINE_OPEN] = { .name = "paynotify_quarantine_open",
	    .type = PN_TYPE_GAUGE,
	    .help = "Open quarantine entries (10000: that or more)", },
	[PN_FAMILY_QUARANTINE_SINCE] = { .name = "paynotify_quarantine_oldest_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help = "Age of the oldest open quarantine entry", },
	[PN_FAMILY_UNDELIVERED_AGE] = { .name =
					    "paynotify_undelivered_age_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help = "Age of the oldest event that a consumer has not done",
	    .labels = { "consumer" }, },
	[PN_FAMILY_DEAD_LETTERS] = { .name = "paynotify_dead_letters",
	    .type = PN_TYPE_GAUGE,
	    .help = "Events that were given up (10000: that or more)",
	    .labels = { "consumer" }, },
	[PN_FAMILY_HOT_KEYS] = { .name = "paynotify_hot_keys",
	    .type = PN_TYPE_GAUGE,
	    .help = "Keys in the hot tier, as PostgreSQL estimates", },
	[PN_FAMILY_HOT_KEY_OVERDUE] = { .name =
					    "paynotify_hot_key_overdue_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help =
		"How long ago the oldest key should have left the hot tier", },
	[PN_FAMILY_PARTITIONS_AHEAD] = { .name = "paynotify_partitions_ahead_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help =
		"How far ahead the table with the fewest partitions has them", },
	[PN_FAMILY_FIGURES_TIME] = { .name =
					 "paynotify_figures_timestamp_seconds",
	    .type = PN_TYPE_GAUGE,
	    .help =
		"Unix time at which the database's figures were last asked", },
};
