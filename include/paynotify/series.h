/*
 * Metrics with labels, and histograms. A series is what is counted under one set
 * of label values, declared in a table of families (src/base/families.c) and
 * printed by pn_metrics_print(). Metrics without labels are in metrics.h.
 *
 * Label values come from the configuration (accounts, keys, endpoints, routes)
 * or from the database's own tables (consumers), never from a request: a
 * stranger cannot make the table grow. It is bounded by PN_SERIES_LINES_MAX all
 * the same.
 *
 * A series is opened when what it is about is opened, and from then on counted
 * by its pointer: no look-up, no lock. The same values are the same series, so a
 * reload goes on counting; a series is never freed.
 */
#ifndef PN_SERIES_H
#define PN_SERIES_H

#include <stdint.h>

#include "paynotify/buf.h"

enum pn_family {
	PN_FAMILY_REQUESTS,        /* provider, tenant; enum pn_request_end */
	PN_FAMILY_REQUEST_SECONDS, /* provider */
	PN_FAMILY_VERIFY_SECONDS,  /* provider */
	PN_FAMILY_VERIFIED,        /* provider, tenant, key */
	PN_FAMILY_CLOCK_OFFSET,    /* provider, tenant */
	PN_FAMILY_CERTIFICATE,     /* provider, tenant, serial */
	PN_FAMILY_QUEUE_SECONDS,
	PN_FAMILY_COMMIT_SECONDS,
	PN_FAMILY_BATCH_SIZE,
	PN_FAMILY_DELIVERIES,       /* endpoint; enum pn_delivery_end */
	PN_FAMILY_DELIVERY_SECONDS, /* endpoint */
	PN_FAMILY_GUARD_REQUESTS,   /* route; enum pn_guard_end */
	PN_FAMILY_GUARD_UPSTREAM,   /* route; enum pn_guard_work */
	PN_FAMILY_GUARD_SECONDS,    /* route */
	PN_FAMILY_GUARD_WAIT,       /* route */
	PN_FAMILY_GUARD_HELD,       /* route */
	PN_FAMILY_QUARANTINE_OPEN,
	PN_FAMILY_QUARANTINE_SINCE,
	PN_FAMILY_UNDELIVERED_AGE, /* consumer */
	PN_FAMILY_DEAD_LETTERS,    /* consumer */
	PN_FAMILY_HOT_KEYS,
	PN_FAMILY_HOT_KEY_OVERDUE,
	PN_FAMILY_PARTITIONS_AHEAD,
	PN_FAMILY_FIGURES_TIME,
	PN_FAMILY_COUNT
};

/* Which of a series' values, where the last label has fixed ones. */

/* How a notification ended; each is counted once. */
enum pn_request_end {
	PN_REQUEST_ACCEPTED, /* something of it was new */
	PN_REQUEST_DUPLICATE,
	PN_REQUEST_CONFLICT,
	PN_REQUEST_QUARANTINED, /* the database refused what it says */
	PN_REQUEST_MALFORMED,
	PN_REQUEST_BAD_SIGNATURE,
	PN_REQUEST_PROBE, /* a wrong signature of WeChat Pay's own making */
	PN_REQUEST_UNKNOWN_KEY,
	PN_REQUEST_STALE,
	PN_REQUEST_UNDECRYPTABLE,
	PN_REQUEST_WRONG_ACCOUNT,
	PN_REQUEST_UNSUPPORTED,
	PN_REQUEST_RATE_LIMITED,
	PN_REQUEST_NOT_ALLOWED, /* from elsewhere than the account allows */
	PN_REQUEST_UNAVAILABLE,
	PN_REQUEST_END_COUNT
};

/* What came of an attempt to push an event. */
enum pn_delivery_end {
	PN_DELIVERY_END_DONE,
	PN_DELIVERY_END_RETRY,
	PN_DELIVERY_END_DEAD,
	PN_DELIVERY_END_LOST, /* its lease had ended: another attempt decides */
	PN_DELIVERY_END_COUNT
};

/* How a request of the gateway was answered. */
enum pn_guard_end {
	PN_GUARD_END_ANSWERED,
	PN_GUARD_END_REPLAYED, /* the kept answer */
	PN_GUARD_END_MISMATCH, /* the key was used for another request */
	PN_GUARD_END_BUSY,     /* still in progress */
	PN_GUARD_END_SET_ASIDE,
	PN_GUARD_END_EXPIRED,
	PN_GUARD_END_REFUSED,  /* the request was wrong */
	PN_GUARD_END_UPSTREAM, /* no answer of the upstream */
	PN_GUARD_END_UNAVAILABLE,
	PN_GUARD_END_UNKEPT, /* answered upstream, not kept: not told */
	PN_GUARD_END_PASSED, /* methods without effect */
	PN_GUARD_END_COUNT
};

enum pn_guard_work {
	PN_GUARD_WORK_DONE,
	PN_GUARD_WORK_NOT,
	PN_GUARD_WORK_UNKNOWN,
	PN_GUARD_WORK_COUNT
};

struct pn_series;

/* The value of a gauge of which nothing is known: it is not printed. Gauges
 * begin with it. */
#define PN_SERIES_ABSENT INT64_MIN

/* values: of the labels that have no fixed ones, in their order; a value is cut
 * at PN_LABEL_BYTES_MAX. Any thread. NULL, and counted in
 * paynotify_series_refused_total, when memory or the room for lines is out:
 * whatever is counted there is lost. */
struct pn_series *
pn_series_open(enum pn_family family, const char *const *values);
/* Who opened it has no use for it any more: after the last one a gauge is
 * absent, while a counter keeps its value. NULL is fine. */
void pn_series_close(struct pn_series *series);

/* Any thread, at any time, with relaxed atomics. A series that is NULL takes
 * everything and keeps nothing. */

/* which: see above; 0 where no label has fixed values. */
void pn_series_add(struct pn_series *series, unsigned which, int64_t n);
/* In the family's unit: microseconds where its name ends in _seconds. */
void pn_series_set(struct pn_series *series, int64_t value);
/* PN_SERIES_ABSENT of NULL. */
int64_t pn_series_get(const struct pn_series *series, unsigned which);
/* Of a histogram; its unit as above. */
void pn_series_observe(struct pn_series *series, int64_t value);

/* Prometheus text format 0.0.4: every family, with what is known of it. */
void pn_series_print(struct pn_buf *out);

#endif
