/*
 * One event: event.sql. What it is asked for by shows from its form: evt_ and
 * 32 hex digits are an id, digits are a seq, all else is a key (keys begin with
 * "webhook:"), of several tenants maybe.
 */
#include <stdio.h>

#include "paynotify/parse.h"

#include "query_row.h"
#include "statements.h"

enum { ID_DIGITS = 32 };

static bool
is_id(struct pn_str which)
{
	if (!pn_str_starts(which, "evt_") || which.len != 4 + ID_DIGITS)
		return false;
	for (size_t i = 4; i < which.len; i++)
		if (!((which.data[i] >= '0' && which.data[i] <= '9') ||
			(which.data[i] >= 'a' && which.data[i] <= 'f')))
			return false;
	return true;
}

void
pn_query_which(const char *which, const char *ret_values[PN_QUERY_WHICH_COUNT])
{
	int64_t seq;

	ret_values[0] = ret_values[1] = ret_values[2] = NULL;
	if (is_id(pn_str_from(which)))
		ret_values[0] = which + 4;
	else if (pn_parse_int64(pn_str_from(which), &seq) == 0)
		ret_values[1] = which;
	else
		ret_values[2] = which;
}

int
pn_query_event(struct pn_query *query, const char *which, const char *tenant,
    pn_event_row_fn row, void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[PN_QUERY_WHICH_COUNT + 1];
	int64_t seq;
	int r, count;

	pn_query_which(which, values);
	values[PN_QUERY_WHICH_COUNT] = tenant;
	r = pn_query_run(
	    query, pn_sql_event, PN_COUNT(values), values, &result, ret_error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	if (count == 0)
		return 1;
	for (int i = 0; r == 0 && i < count; i++)
		r = pn_query_event_row(result, i, &seq, row, payload);
	return r;
}
