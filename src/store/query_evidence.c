/*
 * Evidence, to be verified again: all of it page by page, or that of an event.
 *
 * A page begins at the receipt that ended the last one and leaves out the rows
 * of it that were there: a receipt's id is a UUID of version 7, so its order is
 * that of arrival, but one receipt may have two rows (some of its events
 * recorded, another quarantined). Rows are never changed, so those stay the
 * first ones.
 *
 * A body may have a megabyte, and libpq holds a page as text, twice that: pages
 * are short, so the largest takes what a batch of the writer does.
 */
#include "paynotify/evidence.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "query.h"
#include "statements.h"

enum column {
	C_RECEIPT_ID,
	C_RECEIVED_AT,
	C_PROVIDER,
	C_TENANT,
	C_HEADERS,
	C_BODY,
	C_KEY_FINGERPRINT,
	C_KEY_KNOWN,
	C_KEY_PEM,
	C_OUT_TRADE_NO,
	C_EVENT_ID,
	C_EVENT_HASH,
	C_COUNT
};

enum { PAGE_ROWS = 100, UUID_TEXT_BYTES = 37 };

static void
bytes_freep(unsigned char **bytes)
{
	PQfreemem(*bytes);
}

static int
call_row(const PGresult *result, int at, pn_evidence_row_fn row, void *payload)
{
	PN_CLEANUP(bytes_freep) unsigned char *body = NULL;
	PN_CLEANUP(bytes_freep) unsigned char *fingerprint = NULL;
	PN_CLEANUP(bytes_freep) unsigned char *hash = NULL;
	size_t body_len, fingerprint_len, hash_len;

	assert(PQnfields(result) == C_COUNT);
	body = PQunescapeBytea(
	    (unsigned char *)PQgetvalue(result, at, C_BODY), &body_len);
	fingerprint = PQunescapeBytea(
	    (unsigned char *)PQgetvalue(result, at, C_KEY_FINGERPRINT),
	    &fingerprint_len);
	hash = PQunescapeBytea(
	    (unsigned char *)PQgetvalue(result, at, C_EVENT_HASH), &hash_len);
	if (body == NULL || fingerprint == NULL || hash == NULL)
		return -ENOMEM;

	struct pn_evidence_row out = {
		.receipt_id = pn_query_str(result, at, C_RECEIPT_ID),
		.received_at_us =
		    pn_query_int(result, at, C_RECEIVED_AT, PN_MOMENT_NONE),
		.provider = pn_query_str(result, at, C_PROVIDER),
		.tenant = pn_query_str(result, at, C_TENANT),
		.headers = pn_query_str(result, at, C_HEADERS),
		.body = { (char *)body, body_len },
		.key_fingerprint = { (char *)fingerprint, fingerprint_len },
		.key_known = pn_query_bool(result, at, C_KEY_KNOWN),
		.key_pem = pn_query_str(result, at, C_KEY_PEM),
		.out_trade_no = pn_query_str(result, at, C_OUT_TRADE_NO),
		.event_id = pn_query_str(result, at, C_EVENT_ID),
		.event_hash = { (char *)hash, hash_len },
	};

	return row(&out, payload);
}

int
pn_query_evidence(struct pn_query *query,
    const struct pn_evidence_filter *filter, pn_evidence_row_fn row,
    void *payload, struct pn_error *ret_error)
{
	int64_t count = PAGE_ROWS, seen = 0; /* rows of the receipt `from` */
	char from[UUID_TEXT_BYTES] = "";
	int r = 0;

	while (r == 0 && count == PAGE_ROWS) {
		PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
		struct pn_query_text text;
		const char *values[] = {
			filter->tenant,
			pn_query_moment(&text, filter->since_us),
			from[0] == '\0' ? NULL : from,
			pn_query_number(&text, 0, PAGE_ROWS),
			pn_query_number(&text, 1, seen),
		};

		r = pn_query_run(query, pn_sql_evidence, PN_COUNT(values),
		    values, &result, ret_error);
		if (r < 0)
			return r;
		count = PQntuples(result);
		for (int i = 0; r == 0 && i < count; i++) {
			const char *id = PQgetvalue(result, i, C_RECEIPT_ID);

			seen = strcmp(from, id) == 0 ? seen + 1 : 1;
			(void)snprintf(from, sizeof(from), "%s", id);
			r = call_row(result, i, row, payload);
		}
	}
	return r;
}

int
pn_query_evidence_of(struct pn_query *query, const char *which,
    const char *tenant, pn_evidence_row_fn row, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[PN_QUERY_WHICH_COUNT + 1];
	int r, count;

	pn_query_which(which, values);
	values[PN_QUERY_WHICH_COUNT] = tenant;
	r = pn_query_run(query, pn_sql_evidence_of, PN_COUNT(values), values,
	    &result, ret_error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	if (count == 0)
		return 1;
	for (int i = 0; r == 0 && i < count; i++)
		r = call_row(result, i, row, payload);
	return r;
}

int
pn_query_evidence_estimate(
    struct pn_query *query, int64_t *ret_rows, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r = pn_query_run(
	    query, pn_sql_evidence_estimate, 0, NULL, &result, ret_error);

	if (r < 0)
		return r;
	*ret_rows = pn_query_int(result, 0, 0, 0);
	return 0;
}
