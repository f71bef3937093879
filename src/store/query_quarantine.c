/*
 * The quarantine: quarantine_list.sql, page by page along the primary key, and
 * quarantine_entry.sql. An entry's id grows with the time it came at, so the
 * greatest is the newest.
 */
#include "paynotify/quarantine.h"

#include <assert.h>

#include "query.h"
#include "statements.h"

enum column {
	C_ID,
	C_RECEIVED_AT,
	C_PROVIDER,
	C_TENANT,
	C_ROUTE,
	C_SUBJECT,
	C_FINGERPRINT,
	C_REASON,
	C_STATE,
	C_OUT_TRADE_NO,
	C_RECEIPT_ID,
	C_RESOLVED_AT,
	C_RESOLVED_BY,
	C_RESOLUTION,
	C_EVENTS,
	C_COUNT
};

static int
call_row(const PGresult *result, int at, int64_t *ret_id,
    pn_quarantine_row_fn row, void *payload)
{
	struct pn_quarantine_row out = {
		.id = pn_query_int(result, at, C_ID, -1),
		.received_at_us =
		    pn_query_int(result, at, C_RECEIVED_AT, PN_MOMENT_NONE),
		.provider = pn_query_str(result, at, C_PROVIDER),
		.tenant = pn_query_str(result, at, C_TENANT),
		.route = pn_query_str(result, at, C_ROUTE),
		.subject = pn_query_str(result, at, C_SUBJECT),
		.fingerprint = pn_query_str(result, at, C_FINGERPRINT),
		.reason = pn_query_str(result, at, C_REASON),
		.state = pn_query_str(result, at, C_STATE),
		.out_trade_no = pn_query_str(result, at, C_OUT_TRADE_NO),
		.receipt_id = pn_query_str(result, at, C_RECEIPT_ID),
		.resolved_at_us =
		    pn_query_int(result, at, C_RESOLVED_AT, PN_MOMENT_NONE),
		.resolved_by = pn_query_str(result, at, C_RESOLVED_BY),
		.resolution = pn_query_str(result, at, C_RESOLUTION),
		.events = pn_query_str(result, at, C_EVENTS),
	};

	assert(PQnfields(result) == C_COUNT);
	*ret_id = out.id;
	return row(&out, payload);
}

int
pn_query_quarantine(struct pn_query *query,
    const struct pn_quarantine_filter *filter, pn_quarantine_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	int64_t left = filter->limit, count = PN_QUERY_ROWS;
	int64_t before = filter->before_id == 0 ? INT64_MAX : filter->before_id;
	struct pn_query_text text;
	PGresult *result;
	int r = 0;

	assert(filter->before_id >= 0);
	while (r == 0 && left > 0 && count == PN_QUERY_ROWS) {
		const char *values[] = {
			filter->tenant,
			filter->provider,
			filter->state,
			pn_query_moment(&text, filter->since_us),
			pn_query_number(&text, 0, before),
			pn_query_number(&text, 1,
			    left < PN_QUERY_ROWS ? left : PN_QUERY_ROWS),
		};

		result = NULL;
		r = pn_query_run(query, pn_sql_quarantine_list,
		    PN_COUNT(values), values, &result, ret_error);
		if (r < 0)
			return r;
		count = PQntuples(result);
		left -= count;
		assert(left >= 0);
		for (int i = 0; r == 0 && i < count; i++)
			r = call_row(result, i, &before, row, payload);
		PQclear(result);
	}
	return r;
}

int
pn_query_quarantine_entry(struct pn_query *query, int64_t id,
    pn_quarantine_row_fn row, void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_query_text text;
	const char *values[] = { pn_query_number(&text, 0, id) };
	int64_t found;
	int r;

	r = pn_query_run(
	    query, pn_sql_quarantine_entry, 1, values, &result, ret_error);
	if (r < 0)
		return r;
	if (PQntuples(result) == 0)
		return 1;
	return call_row(result, 0, &found, row, payload);
}
