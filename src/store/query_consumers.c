/*
 * All consumers: consumers.sql. There are tens of them, so no pages.
 */
#include <assert.h>

#include "paynotify/deliveries.h"

#include "query.h"
#include "statements.h"

enum column {
	C_NAME,
	C_PUSHED,
	C_STATE,
	C_REASON,
	C_URL,
	C_BEHIND,
	C_LEASED,
	C_WAITING,
	C_RETRYING,
	C_DEAD,
	C_OLDEST_DUE,
	C_COUNT
};

static int
call_row(const PGresult *result, int at, pn_consumer_row_fn row, void *payload)
{
	struct pn_consumer_row out = {
		.name = pn_query_str(result, at, C_NAME),
		.pushed = pn_query_bool(result, at, C_PUSHED),
		.state = pn_query_str(result, at, C_STATE),
		.reason = pn_query_str(result, at, C_REASON),
		.url = pn_query_str(result, at, C_URL),
		.behind = pn_query_int(result, at, C_BEHIND, 0),
		.leased = pn_query_int(result, at, C_LEASED, 0),
		.waiting = pn_query_int(result, at, C_WAITING, 0),
		.retrying = pn_query_int(result, at, C_RETRYING, 0),
		.dead = pn_query_int(result, at, C_DEAD, 0),
		.oldest_due_us =
		    pn_query_int(result, at, C_OLDEST_DUE, PN_MOMENT_NONE),
	};

	assert(PQnfields(result) == C_COUNT);
	return row(&out, payload);
}

int
pn_query_consumers(struct pn_query *query, pn_consumer_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r, count;

	r = pn_query_run(query, pn_sql_consumers, 0, NULL, &result, ret_error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	for (int i = 0; r == 0 && i < count; i++)
		r = call_row(result, i, row, payload);
	return r;
}
