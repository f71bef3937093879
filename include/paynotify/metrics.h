/*
 * Counters and gauges, declared in one table (src/base/metrics.c) and printed
 * by a loop in Prometheus text format. Relaxed atomics; any thread. What has
 * labels from the configuration, and histograms, are in series.h.
 */
#ifndef PN_METRICS_H
#define PN_METRICS_H

#include <stdint.h>

#include "paynotify/buf.h"

enum pn_metric {
	PN_METRIC_RECORDED,        /* events: new */
	PN_METRIC_DUPLICATES,      /* events: known, same content */
	PN_METRIC_CONFLICTS,       /* events: known key, other content */
	PN_METRIC_QUARANTINED,     /* signed, not recordable */
	PN_METRIC_NOT_FOUND,       /* paths that are no account's */
	PN_METRIC_COMMIT_TIMEOUTS, /* not committed within commit_timeout */
	PN_METRIC_BATCHES,         /* ingest statements that committed */
	PN_METRIC_BATCH_FAILURES,  /* retried element by element */
	PN_METRIC_LOCK_TIMEOUTS,   /* notifications that met a held lock */
	PN_METRIC_AGAIN,           /* elements that lost a race */
	PN_METRIC_RECONNECTS,
	PN_METRIC_RECEIPTS_DROPPED, /* lossy queue of refusals was full */
	PN_METRIC_KEYS_ARCHIVED,
	PN_METRIC_LEASES_LOST,    /* settled after the lease had ended */
	PN_METRIC_NOTIFIES,       /* NOTIFY paynotify_events sent */
	PN_METRIC_GUARD_UNROUTED, /* requests of the gateway for no route */
	PN_METRIC_GUARD_WAITS,    /* joined one that was under way */
	PN_METRIC_GUARD_LEASES_LOST,
	PN_METRIC_GUARD_FLIGHTS,       /* gauge: keys under way */
	PN_METRIC_CONNECTIONS_REFUSED, /* over a connection limit */
	PN_METRIC_QUEUE_EVENTS,        /* gauge: waiting for a writer */
	PN_METRIC_CONNECTIONS,         /* gauge: open client connections */
	PN_METRIC_DATABASE_UP,         /* gauge: writers connected */
	PN_METRIC_SESSION_WRITER, /* gauges: database connections, by use */
	PN_METRIC_SESSION_REFUSALS,
	PN_METRIC_SESSION_NOTIFIER,
	PN_METRIC_SESSION_JANITOR,
	PN_METRIC_SESSION_GATEWAY,
	PN_METRIC_SESSION_HANDOFF,
	PN_METRIC_OLDEST_SNAPSHOT, /* gauge: its age in transactions */
	PN_METRIC_RELOADS_DONE,    /* of the configuration, by SIGHUP */
	PN_METRIC_RELOADS_REFUSED, /* the old one goes on */
	PN_METRIC_CONFIG_LOADED,   /* gauge: when, in seconds since 1970 */
	PN_METRIC_SERIES_REFUSED,  /* see series.h */
	PN_METRIC_COUNT
};

void pn_metric_add(enum pn_metric metric, int64_t n);
void pn_metric_set(enum pn_metric metric, int64_t value);
int64_t pn_metric_get(enum pn_metric metric);
/* Prometheus text format 0.0.4: HELP, TYPE, value for each row, then what
 * series.h has. */
void pn_metrics_print(struct pn_buf *out);

#endif
