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
	[PN_FAMILY_REQUESTS] = { "paynotify_requests_total", PN_TYPE_COUNTER,
	    "Notifications, by how each ended",
	    { "provider", "tenant", "verdict" }, ENDS(request_ends) },
	[PN_FAMILY_REQUEST_SECONDS] = { "paynotify_request_seconds",
	    PN_TYPE_HISTOGRAM,
	    "From the request line of a notification to its reply",
	    { "provider" }, BOUNDS(seconds) },
	[PN_FAMILY_VERIFY_SECONDS] = { "paynotify_verify_seconds",
	    PN_TYPE_HISTOGRAM,
	    "Verifying, decrypting and reading a notification", { "provider" },
	    BOUNDS(seconds) },
	[PN_FAMILY_VERIFIED] = { "paynotify_verified_total", PN_TYPE_COUNTER,
	    "Notifications by the key that verified them (the beginning of "
	    "its fingerprint)",
	    { "provider", "tenant", "key" } },
	[PN_FAMILY_CLOCK_OFFSET] = { "paynotify_clock_offset_seconds",
	    PN_TYPE_GAUGE,
	    "Time in new notifications less the time here, smoothed",
	    { "provider", "tenant" } },
	[PN_FAMILY_CERTIFICATE] = { "paynotify_certificate_expires_seconds",
	    PN_TYPE_GAUGE, "Unix time at which a platform certificate ends",
	    { "provider", "tenant", "serial" } },
	[PN_FAMILY_QUEUE_SECONDS] = { "paynotify_queue_seconds",
	    PN_TYPE_HISTOGRAM,
	    "From the submission of a notification to a writer's taking it",
	    BOUNDS(seconds) },
	[PN_FAMILY_COMMIT_SECONDS] = { "paynotify_commit_seconds",
	    PN_TYPE_HISTOGRAM, "Ingest statements that committed",
	    BOUNDS(seconds) },
	[PN_FAMILY_BATCH_SIZE] = { "paynotify_batch_notifications",
	    PN_TYPE_HISTOGRAM, "Notifications in a statement that committed",
	    BOUNDS(sizes) },
	[PN_FAMILY_DELIVERIES] = { "paynotify_deliveries_total",
	    PN_TYPE_COUNTER, "Settled attempts to push an event to an endpoint",
	    { "endpoint", "result" }, ENDS(delivery_ends) },
	[PN_FAMILY_DELIVERY_SECONDS] = { "paynotify_delivery_seconds",
	    PN_TYPE_HISTOGRAM, "Attempts to push an event, each to its end",
	    { "endpoint" }, BOUNDS(seconds) },
	[PN_FAMILY_GUARD_REQUESTS] = { "paynotify_guard_requests_total",
	    PN_TYPE_COUNTER,
	    "Requests of the idempotency gateway, by how they were answered",
	    { "route", "result" }, ENDS(guard_ends) },
	[PN_FAMILY_GUARD_UPSTREAM] = { "paynotify_guard_upstream_total",
	    PN_TYPE_COUNTER,
	    "Requests to upstreams, by what is known of the work",
	    { "route", "work" }, ENDS(guard_works) },
	[PN_FAMILY_GUARD_SECONDS] = { "paynotify_guard_request_seconds",
	    PN_TYPE_HISTOGRAM,
	    "From the request line of the gateway's requests to the answer",
	    { "route" }, BOUNDS(seconds) },
	[PN_FAMILY_GUARD_WAIT] = { "paynotify_guard_wait_seconds",
	    PN_TYPE_HISTOGRAM,
	    "How long requests waited for an equal one under way", { "route" },
	    BOUNDS(seconds) },
	[PN_FAMILY_GUARD_HELD] = { "paynotify_guard_held_seconds",
	    PN_TYPE_HISTOGRAM,
	    "How long keys were held until they were settled", { "route" },
	    BOUNDS(seconds) },
	[PN_FAMILY_QUARANTINE_OPEN] = { "paynotify_quarantine_open",
	    PN_TYPE_GAUGE, "Open quarantine entries (10000: that or more)" },
	[PN_FAMILY_QUARANTINE_SINCE] = { "paynotify_quarantine_oldest_seconds",
	    PN_TYPE_GAUGE, "Age of the oldest open quarantine entry" },
	[PN_FAMILY_UNDELIVERED_AGE] = { "paynotify_undelivered_age_seconds",
	    PN_TYPE_GAUGE,
	    "Age of the oldest event that a consumer has not done",
	    { "consumer" } },
	[PN_FAMILY_DEAD_LETTERS] = { "paynotify_dead_letters", PN_TYPE_GAUGE,
	    "Events that were given up (10000: that or more)", { "consumer" } },
	[PN_FAMILY_HOT_KEYS] = { "paynotify_hot_keys", PN_TYPE_GAUGE,
	    "Keys in the hot tier, as PostgreSQL estimates" },
	[PN_FAMILY_HOT_KEY_OVERDUE] = { "paynotify_hot_key_overdue_seconds",
	    PN_TYPE_GAUGE,
	    "How long ago the oldest key should have left the hot tier" },
	[PN_FAMILY_PARTITIONS_AHEAD] = { "paynotify_partitions_ahead_seconds",
	    PN_TYPE_GAUGE,
	    "How far ahead the table with the fewest partitions has them" },
	[PN_FAMILY_FIGURES_TIME] = { "paynotify_figures_timestamp_seconds",
	    PN_TYPE_GAUGE,
	    "Unix time at which the database's figures were last asked" },
};
