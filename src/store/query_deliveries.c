/*
 * Lists of deliveries: deliveries.sql, page by page. A page begins behind the
 * last seq of the one before it and, since consumers share events, behind the
 * consumer's id.
 *
 * Here is also what a row of that statement and of delivery.sql means: the
 * three must change together.
 */
#include <assert.h>

#include "query_delivery_row.h"
#include "statements.h"

enum column {
	C_CONSUMER_ID,
	C_CONSUMER,
	C_EVENT_ID,
	C_TYPE,
	C_TENANT,
	C_OUT_TRADE_NO,
	C_SEQ,
	C_STATE,
	C_ATTEMPTS,
	C_DUE,
	C_REASON,
	C_REDELIVERY,
	C_RECEIVED_AT,
	C_COUNT
};

int64_t
pn_query_delivery_seq(const PGresult *result, int at)
{
	return pn_query_int(result, at, C_SEQ, -1);
}

int
pn_query_delivery_row(const PGresult *result, int at, int64_t *ret_seq,
    int64_t *ret_consumer, pn_delivery_row_fn row, void *payload)
{
	struct pn_delivery_row out = {
		.consumer = pn_query_str(result, at, C_CONSUMER),
		.event_id = pn_query_str(result, at, C_EVENT_ID),
		.type = pn_query_str(result, at, C_TYPE),
		.tenant = pn_query_str(result, at, C_TENANT),
		.out_trade_no = pn_query_str(result, at, C_OUT_TRADE_NO),
		.seq = pn_query_delivery_seq(result, at),
		.consumer_id = pn_query_int(result, at, C_CONSUMER_ID, -1),
		.state = pn_query_str(result, at, C_STATE),
		.attempts = pn_query_int(result, at, C_ATTEMPTS, 0),
		.due_us = pn_query_int(result, at, C_DUE, PN_MOMENT_NONE),
		.reason = pn_query_str(result, at, C_REASON),
		.redelivery = pn_query_bool(result, at, C_REDELIVERY),
		.received_at_us =
		    pn_query_int(result, at, C_RECEIVED_AT, PN_MOMENT_NONE),
	};

	assert(PQnfields(result) == C_COUNT);
	*ret_seq = out.seq;
	*ret_consumer = out.consumer_id;
	/* An event that no consumer takes. */
	return *ret_consumer < 0 ? 0 : row(&out, payload);
}

int
pn_query_deliveries(struct pn_query *query,
    const struct pn_delivery_filter *filter, pn_delivery_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	int64_t left = filter->limit, count = PN_QUERY_ROWS;
	int64_t seq = filter->after_seq;
	int64_t consumer =
	    filter->after_consumer > 0 ? filter->after_consumer : INT32_MAX;
	struct pn_query_text text;
	PGresult *result;
	int r = 0;

	while (r == 0 && left > 0 && count == PN_QUERY_ROWS) {
		const char *values[] = {
			filter->consumer,
			filter->state,
			filter->tenant,
			pn_query_number(&text, 0, seq),
			pn_query_number(&text, 1, consumer),
			pn_query_number(&text, 2,
			    left < PN_QUERY_ROWS ? left : PN_QUERY_ROWS),
		};

		result = NULL;
		r = pn_query_run(query, pn_sql_deliveries, PN_COUNT(values),
		    values, &result, ret_error);
		if (r < 0)
			return r;
		count = PQntuples(result);
		left -= count;
		assert(left >= 0);
		for (int i = 0; r == 0 && i < count; i++)
			r = pn_query_delivery_row(
			    result, i, &seq, &consumer, row, payload);
		PQclear(result);
	}
	return r;
}
