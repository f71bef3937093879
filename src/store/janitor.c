/*
 * The janitor: moves expired webhook keys into the permanent tier, some
 * hundred at a time, and makes partitions once a day.
 *
 * The move takes a lock that keeps ingest statements out (sql/0002 says why),
 * so it must be short and must not insist: it waits 50 ms for the lock at most,
 * rests longer each time it did not get it, and rests after each move for three
 * times as long as the move took, so that ingest has most of the time even when
 * there is much to move. Any number of janitors on one database do no harm.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "statements.h"
#include "store_internal.h"

static const int64_t PERIOD_US = 2 * PN_SECOND_US;      /* nothing to move */
static const int64_t BUSY_US = 500 * PN_MILLISECOND_US; /* lock not had, */
enum { BUSY_DOUBLINGS = 4 };                            /* then to 8 s */
static const int64_t REST_MIN_US = 20 * PN_MILLISECOND_US;
static const int64_t PARTITIONS_US = 24 * 3600 * PN_SECOND_US;
static const int64_t LOG_INTERVAL_US = 600 * PN_SECOND_US;

static struct pn_log_gate failed_gate;

struct pn_janitor {
	struct pn_store *store;
	pthread_t thread;
	struct pn_conn conn;
	struct pn_backoff backoff;
	unsigned busy_count;      /* locks not had, one after another */
	int64_t partitions_at_us; /* when they are due; monotonic */
};

static int
move_keys(
    struct pn_janitor *janitor, int64_t *ret_rest_us, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_params none = { 0 };
	int64_t began_us = pn_clock_monotonic_us(), moved = 0;
	int r;

	r = pn_conn_query(
	    &janitor->conn, pn_sql_archive, &none, &result, error);
	if (r > 0 && strcmp(janitor->conn.sqlstate, "55P03") == 0) {
		*ret_rest_us = BUSY_US << janitor->busy_count;
		if (janitor->busy_count < BUSY_DOUBLINGS)
			janitor->busy_count++;
		return 0;
	}
	if (r != 0)
		return r;
	janitor->busy_count = 0;
	for (const char *p = PQgetvalue(result, 0, 0); *p != '\0'; p++)
		moved = moved * 10 + (*p - '0');
	assert(moved >= 0 && moved <= PN_ARCHIVE_KEYS_MAX);
	pn_metric_add(PN_METRIC_KEYS_ARCHIVED, moved);
	*ret_rest_us = PERIOD_US;
	if (moved == PN_ARCHIVE_KEYS_MAX) {
		*ret_rest_us = 3 * (pn_clock_monotonic_us() - began_us);
		if (*ret_rest_us < REST_MIN_US)
			*ret_rest_us = REST_MIN_US;
	}
	return 0;
}

static int
work(struct pn_janitor *janitor, int64_t *ret_rest_us, struct pn_error *error)
{
	enum pn_store_health health;
	struct pn_params none = { 0 };
	int r = 0;

	if (janitor->conn.pg == NULL)
		r = pn_session_open(
		    &janitor->conn, janitor->store, &health, error);
	if (r == 0 && pn_clock_monotonic_us() >= janitor->partitions_at_us) {
		r = pn_conn_query(
		    &janitor->conn, pn_sql_partitions, &none, NULL, error);
		if (r == 0)
			janitor->partitions_at_us =
			    pn_clock_monotonic_us() + PARTITIONS_US;
	}
	if (r == 0)
		r = move_keys(janitor, ret_rest_us, error);
	return r;
}

static void *
janitor_main(void *payload)
{
	struct pn_janitor *janitor = payload;
	struct pn_error error = { { 0 } };
	int64_t rest_us = 0;
	int r;

	while (!pn_stop_wait(&janitor->store->stop, rest_us)) {
		r = work(janitor, &rest_us, &error);
		if (r == 0) {
			janitor->backoff.failures = 0;
			continue;
		}
		pn_conn_close(&janitor->conn);
		rest_us = pn_backoff_next_us(&janitor->backoff);
		if (r != -ECANCELED)
			pn_log_gated(&failed_gate, LOG_INTERVAL_US,
			    PN_LOG_WARNING, NULL, "janitor could not work: %s",
			    error.text);
	}
	pn_conn_close(&janitor->conn);
	return NULL;
}

int
pn_janitor_open(struct pn_store *store, struct pn_janitor **ret)
{
	struct pn_janitor *janitor = calloc(1, sizeof(*janitor));
	int r;

	if (janitor == NULL)
		return -ENOMEM;
	janitor->store = store;
	janitor->conn = pn_conn_none();
	janitor->backoff.seed = (uint64_t)(uintptr_t)janitor;
	r = -pthread_create(&janitor->thread, NULL, janitor_main, janitor);
	if (r < 0) {
		free(janitor);
		return r;
	}
	*ret = janitor;
	return 0;
}

/* The store's stop has been told. */
void
pn_janitor_close(struct pn_janitor *janitor)
{
	if (janitor == NULL)
		return;
	(void)pthread_join(janitor->thread, NULL);
	free(janitor);
}
