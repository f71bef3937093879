/*
 * Counters and gauges in one table, printed by a loop; with families that have
 * other labels, and histograms, behind them (series.c).
 *
 * A row has its family, its labels and its help; rows of one family stand next
 * to each other, so that HELP and TYPE are printed once a family, as the
 * format demands. The values are relaxed atomics: they are counted from every
 * thread and only read for a human, so no order between them is promised.
 *
 * Labels are constant: a label with a value from outside (a tenant, an order)
 * would let a stranger grow the table.
 */
#include "paynotify/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "paynotify/compiler.h"
#include "paynotify/series.h"

struct row {
	const char *family, *labels;
	bool gauge;
	const char *help;
};

#define EVENTS(verdict)                                               \
	"paynotify_events_total", "{verdict=\"" verdict "\"}", false, \
	    "Events of verified notifications, by what the store said"

#define SESSIONS(use)                                                \
	"paynotify_database_connections", "{use=\"" use "\"}", true, \
	    "Open database connections, by use"

#define RELOADS(result)                                              \
	"paynotify_reloads_total", "{result=\"" result "\"}", false, \
	    "Reloads of the configuration by SIGHUP"

static const struct row rows[] = {
	[PN_METRIC_RECORDED] = { EVENTS("new") },
	[PN_METRIC_DUPLICATES] = { EVENTS("duplicate") },
	[PN_METRIC_CONFLICTS] = { EVENTS("conflict") },
	[PN_METRIC_QUARANTINED] = { EVENTS("quarantined") },
	[PN_METRIC_NOT_FOUND] = { "paynotify_not_found_total", "", false,
	    "Requests for a path that is no account's" },
	[PN_METRIC_COMMIT_TIMEOUTS] = { "paynotify_commit_timeouts_total", "",
	    false, "Notifications not committed within commit_timeout" },
	[PN_METRIC_BATCHES] = { "paynotify_batches_total", "", false,
	    "Ingest statements that committed" },
	[PN_METRIC_BATCH_FAILURES] = { "paynotify_batch_failures_total", "",
	    false, "Ingest statements that failed and were split" },
	[PN_METRIC_LOCK_TIMEOUTS] = { "paynotify_lock_timeouts_total", "",
	    false, "Notifications that met a lock held elsewhere" },
	[PN_METRIC_AGAIN] = { "paynotify_events_again_total", "", false,
	    "Events that lost a race and joined the next batch" },
	[PN_METRIC_RECONNECTS] = { "paynotify_database_reconnects_total", "",
	    false, "Database connections opened again" },
	[PN_METRIC_RECEIPTS_DROPPED] = { "paynotify_receipts_dropped_total", "",
	    false, "Receipts of refusals that a full queue dropped" },
	[PN_METRIC_KEYS_ARCHIVED] = { "paynotify_keys_archived_total", "",
	    false, "Keys moved to the permanent tier" },
	[PN_METRIC_LEASES_LOST] = { "paynotify_leases_lost_total", "", false,
	    "Deliveries settled after their lease had ended" },
	[PN_METRIC_NOTIFIES] = { "paynotify_notifies_total", "", false,
	    "Notifications sent to who listens to paynotify_events" },
	[PN_METRIC_GUARD_UNROUTED] = { "paynotify_guard_unrouted_total", "",
	    false, "Requests of the gateway for which it has no route" },
	[PN_METRIC_GUARD_WAITS] = { "paynotify_guard_waits_total", "", false,
	    "Requests that waited for an equal one under way" },
	[PN_METRIC_GUARD_LEASES_LOST] = { "paynotify_guard_leases_lost_total",
	    "", false, "Keys whose lease was lost to another attempt" },
	[PN_METRIC_GUARD_FLIGHTS] = { "paynotify_guard_flights", "", true,
	    "Keys for which a request is under way" },
	[PN_METRIC_CONNECTIONS_REFUSED] = { "paynotify_connections_refused_"
					    "total",
	    "", false, "Connections over a limit" },
	[PN_METRIC_QUEUE_EVENTS] = { "paynotify_queue_events", "", true,
	    "Events that wait for a writer" },
	[PN_METRIC_CONNECTIONS] = { "paynotify_connections", "", true,
	    "Open client connections" },
	[PN_METRIC_DATABASE_UP] = { "paynotify_database_up", "", true,
	    "Writers connected to the database" },
	[PN_METRIC_SESSION_WRITER] = { SESSIONS("writer") },
	[PN_METRIC_SESSION_REFUSALS] = { SESSIONS("refusals") },
	[PN_METRIC_SESSION_NOTIFIER] = { SESSIONS("notifier") },
	[PN_METRIC_SESSION_JANITOR] = { SESSIONS("janitor") },
	[PN_METRIC_SESSION_GATEWAY] = { SESSIONS("gateway") },
	[PN_METRIC_SESSION_HANDOFF] = { SESSIONS("handoff") },
	[PN_METRIC_OLDEST_SNAPSHOT] = { "paynotify_oldest_snapshot_xids", "",
	    true,
	    "Age in transactions of the oldest snapshot, which keeps the "
	    "hand-off's tables from being cleaned" },
	[PN_METRIC_RELOADS_DONE] = { RELOADS("done") },
	[PN_METRIC_RELOADS_REFUSED] = { RELOADS("refused") },
	[PN_METRIC_CONFIG_LOADED] = { "paynotify_config_loaded_timestamp_"
				      "seconds",
	    "", true,
	    "When the configuration that runs was loaded, in seconds since "
	    "1970" },
	[PN_METRIC_SERIES_REFUSED] = { "paynotify_series_refused_total", "",
	    false, "Metrics with labels for which there was no room" },
};

static_assert(PN_COUNT(rows) == PN_METRIC_COUNT, "one row a metric");

static _Atomic int64_t values[PN_METRIC_COUNT];

void
pn_metric_add(enum pn_metric metric, int64_t n)
{
	assert((unsigned)metric < PN_METRIC_COUNT);
	atomic_fetch_add_explicit(&values[metric], n, memory_order_relaxed);
}

void
pn_metric_set(enum pn_metric metric, int64_t value)
{
	assert((unsigned)metric < PN_METRIC_COUNT);
	atomic_store_explicit(&values[metric], value, memory_order_relaxed);
}

int64_t
pn_metric_get(enum pn_metric metric)
{
	assert((unsigned)metric < PN_METRIC_COUNT);
	return atomic_load_explicit(&values[metric], memory_order_relaxed);
}

void
pn_metrics_print(struct pn_buf *out)
{
	const char *family = "";

	for (size_t i = 0; i < PN_METRIC_COUNT; i++) {
		const struct row *row = &rows[i];

		if (strcmp(row->family, family) != 0) {
			family = row->family;
			pn_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n",
			    family, row->help, family,
			    row->gauge ? "gauge" : "counter");
		}
		pn_buf_printf(out, "%s%s %" PRId64 "\n", family, row->labels,
		    pn_metric_get((enum pn_metric)i));
	}
	pn_series_print(out);
}
