/*
 * Moves expired webhook keys into the permanent tier, some hundred at a time.
 *
 * The move takes a lock that keeps ingest statements out (sql/0002 says why),
 * so it must be short and must not insist: it waits 50 ms for the lock at most,
 * rests longer each time it did not get it, and rests after each move for three
 * times as long as the move took, so that ingest has most of the time even when
 * there is much to move.
 */
#include <assert.h>
#include <string.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "janitor_internal.h"
#include "statements.h"

static const int64_t BUSY_US = 500 * PN_MILLISECOND_US; /* lock not had, */
enum { BUSY_DOUBLINGS = 4 };                            /* then to 8 s */
static const int64_t REST_MIN_US = 20 * PN_MILLISECOND_US;

int
pn_duty_keys(struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_janitor *janitor = hand->janitor;
	struct pn_params none = { 0 };
	int64_t began_us = pn_clock_monotonic_us(), moved = 0;
	int r;

	r = pn_conn_query(&hand->conn, pn_sql_archive, &none, &result, error);
	if (r > 0 && strcmp(hand->conn.sqlstate, "55P03") == 0) {
		*ret_rest_us = BUSY_US << janitor->keys_busy;
		if (janitor->keys_busy < BUSY_DOUBLINGS)
			janitor->keys_busy++;
		return 0;
	}
	if (r != 0)
		return r;
	janitor->keys_busy = 0;
	for (const char *p = PQgetvalue(result, 0, 0); *p != '\0'; p++)
		moved = moved * 10 + (*p - '0');
	assert(moved >= 0 && moved <= PN_ARCHIVE_KEYS_MAX);
	pn_metric_add(PN_METRIC_KEYS_ARCHIVED, moved);
	if (moved == PN_ARCHIVE_KEYS_MAX) {
		*ret_rest_us = 3 * (pn_clock_monotonic_us() - began_us);
		if (*ret_rest_us < REST_MIN_US)
			*ret_rest_us = REST_MIN_US;
	}
	return 0;
}
