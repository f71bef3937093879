/*
 * What operators did about one event's deliveries: actions.sql. A hundred of
 * them would be odd, so no pages.
 */
#include <assert.h>

#include "paynotify/deliveries.h"

#include "query.h"
#include "statements.h"

enum column { C_AT, C_CONSUMER, C_ACTION, C_ACTOR, C_REASON, C_COUNT };

static int
call_row(const PGresult *result, int at, pn_action_row_fn row, void *payload)
{
	struct pn_action_row out = {
		.at_us = pn_query_int(result, at, C_AT, PN_MOMENT_NONE),
		.consumer = pn_query_str(result, at, C_CONSUMER),
		.action = pn_query_str(result, at, C_ACTION),
		.actor = pn_query_str(result, at, C_ACTOR),
		.reason = pn_query_str(result, at, C_REASON),
	};

	assert(PQnfields(result) == C_COUNT);
	return row(&out, payload);
}

int
pn_query_actions(struct pn_query *query, int64_t seq, pn_action_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_query_text text;
	const char *values[] = { pn_query_number(&text, 0, seq) };
	int r, count;

	r = pn_query_run(query, pn_sql_actions, 1, values, &result, ret_error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	for (int i = 0; r == 0 && i < count; i++)
		r = call_row(result, i, row, payload);
	return r;
}
