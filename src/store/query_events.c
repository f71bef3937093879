/*
 * Lists of events: events_oldest.sql and events_newest.sql, page by page. A
 * page begins behind the last seq of the one before it.
 */
#include <assert.h>

#include "query_row.h"
#include "statements.h"

int
pn_query_events(struct pn_query *query, const struct pn_event_filter *filter,
    pn_event_row_fn row, void *payload, struct pn_error *ret_error)
{
	int64_t left = filter->limit, count = PN_QUERY_ROWS, mark;
	struct pn_query_text text;
	PGresult *result;
	int r = 0;

	mark = !filter->newest_first    ? filter->after_seq
	       : filter->before_seq > 0 ? filter->before_seq
					: INT64_MAX;
	while (r == 0 && left > 0 && count == PN_QUERY_ROWS) {
		const char *values[] = {
			filter->tenant,
			filter->type,
			filter->key,
			filter->out_trade_no,
			pn_query_moment(&text, filter->since_us),
			pn_query_number(&text, 0, mark),
			pn_query_number(&text, 1,
			    left < PN_QUERY_ROWS ? left : PN_QUERY_ROWS),
			pn_query_number(&text, 2, filter->after_seq),
		};

		result = NULL;
		r = pn_query_run(query,
		    filter->newest_first ? pn_sql_events_newest
					 : pn_sql_events_oldest,
		    filter->newest_first ? 8 : 7, values, &result, ret_error);
		if (r < 0)
			return r;
		count = PQntuples(result);
		left -= count;
		assert(left >= 0);
		for (int i = 0; r == 0 && i < count; i++)
			r = pn_query_event_row(result, i, &mark, row, payload);
		PQclear(result);
	}
	return r;
}
