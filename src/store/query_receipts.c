/*
 * Lists of receipts, the newest first: receipts.sql, page by page. A receipt's
 * id is a UUID of version 7, so its order is that of arrival.
 *
 * A request whose COMMIT was cut may have two receipts with one id
 * (settle_lost() in attempt.c says how): it is listed once.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "query.h"
#include "statements.h"

enum column {
	C_ID,
	C_RECEIVED_AT,
	C_PROVIDER,
	C_TENANT,
	C_VERDICT,
	C_REASON,
	C_NOTIFY_ID,
	C_PEER,
	C_OUT_TRADE_NO,
	C_STATUS,
	C_BODY_BYTES,
	C_COUNT
};

const char *const pn_receipt_verdicts[] = {
	"recorded",
	"duplicate",
	"conflict",
	"quarantined",
	"malformed",
	"bad_signature",
	"unknown_key",
	"stale",
	"undecryptable",
	"wrong_account",
	"unsupported",
	"rate_limited",
	"not_allowed",
	NULL,
};

enum { UUID_TEXT_BYTES = 37 };

static int
call_row(const PGresult *result, int at, pn_receipt_row_fn row, void *payload)
{
	struct pn_receipt_row out = {
		.id = pn_query_str(result, at, C_ID),
		.received_at_us =
		    pn_query_int(result, at, C_RECEIVED_AT, PN_MOMENT_NONE),
		.provider = pn_query_str(result, at, C_PROVIDER),
		.tenant = pn_query_str(result, at, C_TENANT),
		.verdict = pn_query_str(result, at, C_VERDICT),
		.reason = pn_query_str(result, at, C_REASON),
		.notify_id = pn_query_str(result, at, C_NOTIFY_ID),
		.peer = pn_query_str(result, at, C_PEER),
		.out_trade_no = pn_query_str(result, at, C_OUT_TRADE_NO),
		.status = pn_query_int(result, at, C_STATUS, 0),
		.body_bytes = pn_query_int(result, at, C_BODY_BYTES, 0),
	};

	assert(PQnfields(result) == C_COUNT);
	return row(&out, payload);
}

int
pn_query_receipts(struct pn_query *query,
    const struct pn_receipt_filter *filter, pn_receipt_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	int64_t left = filter->limit, asked = 0, count = 0;
	char before[UUID_TEXT_BYTES] = "";
	struct pn_query_text text;
	PGresult *result;
	int r = 0;

	if (filter->before_id != NULL)
		(void)snprintf(before, sizeof(before), "%s", filter->before_id);
	while (r == 0 && left > 0 && count == asked) {
		asked = left < PN_QUERY_ROWS ? left : PN_QUERY_ROWS;

		const char *values[] = {
			filter->tenant,
			filter->provider,
			filter->verdict,
			filter->out_trade_no,
			pn_query_moment(&text, filter->since_us),
			pn_query_number(&text, 0, asked),
			before[0] == '\0' ? NULL : before,
		};

		result = NULL;
		r = pn_query_run(query, pn_sql_receipts, PN_COUNT(values),
		    values, &result, ret_error);
		if (r < 0)
			return r;
		count = PQntuples(result);
		for (int i = 0; r == 0 && i < count; i++) {
			if (strcmp(before, PQgetvalue(result, i, C_ID)) == 0)
				continue;
			left--;
			(void)snprintf(before, sizeof(before), "%s",
			    PQgetvalue(result, i, C_ID));
			r = call_row(result, i, row, payload);
		}
		PQclear(result);
	}
	return r;
}
