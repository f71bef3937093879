/*
 * The columns of the statements that give whole events, in their order. The
 * four statements and this file must change together; handoff_events.sql has
 * more columns behind these.
 */
#include "query_row.h"

#include <assert.h>

enum column {
	C_SEQ,
	C_ID,
	C_LIVEMODE,
	C_TYPE,
	C_PROVIDER,
	C_TENANT,
	C_ROUTE,
	C_ACCOUNT,
	C_KEY,
	C_OUT_TRADE_NO,
	C_TRANSACTION_ID,
	C_AMOUNT,
	C_ORDER_AMOUNT,
	C_CURRENCY,
	C_HAS_REFUND,
	C_REFUND_ID,
	C_OUT_REFUND_NO,
	C_REFUNDED_TOTAL,
	C_ORDER_CHECK,
	C_FLAGS,
	C_OCCURRED_AT,
	C_RECEIVED_AT,
	C_PAYLOAD,
	C_COUNT
};
static_assert((int)C_COUNT == (int)PN_EVENT_COLUMNS, "as query_row.h says");

static struct pn_amount
amount_at(const PGresult *result, int at, int column)
{
	return (struct pn_amount){
		.minor = pn_query_int(result, at, column, 0),
		.present = !PQgetisnull(result, at, column),
	};
}

int
pn_query_event_row(const PGresult *result, int at, int64_t *ret_seq,
    pn_event_row_fn row, void *payload)
{
	struct pn_event event = {
		.livemode = pn_query_bool(result, at, C_LIVEMODE),
		.type = pn_query_str(result, at, C_TYPE),
		.provider = pn_query_str(result, at, C_PROVIDER),
		.tenant = pn_query_str(result, at, C_TENANT),
		.route = pn_query_str(result, at, C_ROUTE),
		.account = pn_query_str(result, at, C_ACCOUNT),
		.key = pn_query_str(result, at, C_KEY),
		.out_trade_no = pn_query_str(result, at, C_OUT_TRADE_NO),
		.transaction_id = pn_query_str(result, at, C_TRANSACTION_ID),
		.amount = amount_at(result, at, C_AMOUNT),
		.order_amount = amount_at(result, at, C_ORDER_AMOUNT),
		.currency = pn_query_str(result, at, C_CURRENCY),
		.refund = {
			.present = pn_query_bool(result, at, C_HAS_REFUND),
			.id = pn_query_str(result, at, C_REFUND_ID),
			.out_refund_no = pn_query_str(result, at,
			    C_OUT_REFUND_NO),
			.refunded_total = amount_at(result, at,
			    C_REFUNDED_TOTAL),
		},
		.occurred_at_us = pn_query_int(result, at, C_OCCURRED_AT,
		    PN_MOMENT_NONE),
	};
	struct pn_event_row out = {
		.event = &event,
		.seq = pn_query_int(result, at, C_SEQ, -1),
		.received_at_us =
		    pn_query_int(result, at, C_RECEIVED_AT, PN_MOMENT_NONE),
		.order_check = pn_query_str(result, at, C_ORDER_CHECK),
		.flags = pn_query_str(result, at, C_FLAGS),
		.payload = pn_query_str(result, at, C_PAYLOAD),
	};

	assert(PQnfields(result) >= C_COUNT);
	pn_query_uuid(result, at, C_ID, event.id);
	*ret_seq = out.seq;
	return row(&out, payload);
}
