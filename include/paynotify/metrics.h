/*
 * Counters and gauges, declared in one table (src/base/metrics.c) and printed
 * by a loop in Prometheus text format. Relaxed atomics; any thread.
 */
#ifndef PN_METRICS_H
#define PN_METRICS_H

#include <stdint.h>

#include "paynotify/buf.h"

enum pn_metric {
	PN_METRIC_REQUESTS,    /* notifications that reached a route */
	PN_METRIC_RECORDED,    /* events: new */
	PN_METRIC_DUPLICATES,  /* events: known, same content */
	PN_METRIC_CONFLICTS,   /* events: known key, other content */
	PN_METRIC_QUARANTINED, /* signed, not recordable */
	PN_METRIC_REFUSED_MALFORMED,
	PN_METRIC_REFUSED_SIGNATURE,
	PN_METRIC_REFUSED_UNKNOWN_KEY,
	PN_METRIC_REFUSED_STALE,
	PN_METRIC_REFUSED_UNDECRYPTABLE,
	PN_METRIC_REFUSED_ACCOUNT,
	PN_METRIC_REFUSED_UNSUPPORTED,
	PN_METRIC_REFUSED_RATE,
	PN_METRIC_REFUSED_ADDRESS,
	PN_METRIC_NOT_FOUND,        /* paths that are no account's */
	PN_METRIC_SIGNATURE_PROBES, /* WECHATPAY/SIGNTEST/ seen */
	PN_METRIC_UNAVAILABLE,      /* answered 503 */
	PN_METRIC_COMMIT_TIMEOUTS,  /* not committed within commit_timeout */
	PN_METRIC_BATCHES,          /* ingest statements that committed */
	PN_METRIC_BATCH_FAILURES,   /* retried element by element */
	PN_METRIC_AGAIN,            /* elements that lost a race */
	PN_METRIC_RECONNECTS,
	PN_METRIC_RECEIPTS_DROPPED, /* lossy queue of refusals was full */
	PN_METRIC_KEYS_ARCHIVED,
	PN_METRIC_DELIVERIES_DONE,  /* settled attempts of a push, by outcome */
	PN_METRIC_DELIVERIES_RETRY, /* will be attempted again */
	PN_METRIC_DELIVERIES_DEAD,  /* left to an operator */
	PN_METRIC_LEASES_LOST,      /* settled after the lease had ended */
	PN_METRIC_NOTIFIES,         /* NOTIFY paynotify_events sent */
	PN_METRIC_GUARD_ANSWERED,   /* requests of the gateway, by result: */
	PN_METRIC_GUARD_REPLAYED,   /* the kept answer */
	PN_METRIC_GUARD_MISMATCH,   /* the key was used for another request */
	PN_METRIC_GUARD_BUSY,       /* still in progress */
	PN_METRIC_GUARD_SET_ASIDE,  /* for an operator */
	PN_METRIC_GUARD_EXPIRED,
	PN_METRIC_GUARD_REFUSED,     /* the request was wrong */
	PN_METRIC_GUARD_UPSTREAM,    /* no answer of the upstream */
	PN_METRIC_GUARD_UNAVAILABLE, /* 503: database, room, stopping */
	PN_METRIC_GUARD_UNKEPT,      /* answered upstream, not kept: not told */
	PN_METRIC_GUARD_PASSED,      /* methods without effect */
	PN_METRIC_GUARD_WAITS,       /* joined one that was under way */
	PN_METRIC_GUARD_WORK_DONE,   /* answers of upstreams: kept */
	PN_METRIC_GUARD_WORK_NOT,    /* the key was freed */
	PN_METRIC_GUARD_WORK_UNKNOWN,
	PN_METRIC_GUARD_LEASES_LOST,
	PN_METRIC_GUARD_HELD,          /* keys that were held */
	PN_METRIC_GUARD_HELD_US,       /* for so long, in all */
	PN_METRIC_GUARD_FLIGHTS,       /* gauge: keys under way */
	PN_METRIC_CONNECTIONS_REFUSED, /* over a connection limit */
	PN_METRIC_QUEUE_EVENTS,        /* gauge: waiting for a writer */
	PN_METRIC_CONNECTIONS,         /* gauge: open client connections */
	PN_METRIC_DATABASE_UP,         /* gauge: writers connected */
	PN_METRIC_OLDEST_SNAPSHOT,     /* gauge: its age in transactions */
	PN_METRIC_RELOADS_DONE,        /* of the configuration, by SIGHUP */
	PN_METRIC_RELOADS_REFUSED,     /* the old one goes on */
	PN_METRIC_CONFIG_LOADED,       /* gauge: when, in seconds since 1970 */
	PN_METRIC_COUNT
};

void pn_metric_add(enum pn_metric metric, int64_t n);
void pn_metric_set(enum pn_metric metric, int64_t value);
int64_t pn_metric_get(enum pn_metric metric);
/* Prometheus text format 0.0.4: HELP, TYPE, value for each row. */
void pn_metrics_print(struct pn_buf *out);

#endif
