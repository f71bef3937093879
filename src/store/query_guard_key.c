/*
 * All of one key of the guard: guard_key.sql looks into both tiers, so that one
 * snapshot says what there is; guard_key_actions.sql has what was done by hand,
 * which stays when the key is forgotten.
 *
 * Of an answer's body only the beginning is read: it may have a megabyte. The
 * lease's token is not read at all: who has it can settle the key.
 */
#include "query_guard_row.h"

#include <assert.h>

#include "paynotify/encode.h"

#include "statements.h"

enum column {
	C_REQUEST_HASH = PN_GUARD_KEY_COLUMNS,
	C_RESPONSE_HEADERS,
	C_BODY_BYTES,
	C_BODY_HEAD,
	C_ARCHIVED_HASH,
	C_ARCHIVED_FIRST_SEEN_AT,
	C_ARCHIVED_ATTEMPTS,
	C_COUNT
};
enum action_column { A_AT, A_ACTION, A_ACTOR, A_REASON, A_COUNT };

static int
call_key(const PGresult *result, pn_guard_key_whole_fn whole, void *payload)
{
	unsigned char head[PN_GUARD_BODY_HEAD_BYTES];
	struct pn_str hex = pn_query_str(result, 0, C_BODY_HEAD);
	struct pn_guard_key key = {
		.row = pn_query_guard_key_row(result, 0),
		.request_hash = pn_query_str(result, 0, C_REQUEST_HASH),
		.response_headers = pn_query_str(result, 0, C_RESPONSE_HEADERS),
		.body_bytes = pn_query_int(result, 0, C_BODY_BYTES, -1),
		.body_head = head,
		.body_head_bytes = (int64_t)hex.len / 2,
		.archived = !PQgetisnull(result, 0, C_ARCHIVED_HASH),
		.archived_hash = pn_query_str(result, 0, C_ARCHIVED_HASH),
		.archived_first_seen_at_us = pn_query_int(
		    result, 0, C_ARCHIVED_FIRST_SEEN_AT, PN_MOMENT_NONE),
		.archived_attempts =
		    pn_query_int(result, 0, C_ARCHIVED_ATTEMPTS, 0),
	};

	assert(PQnfields(result) == C_COUNT);
	assert(hex.len / 2 <= sizeof(head));
	if (pn_hex_decode(hex, head, hex.len / 2) != 0)
		key.body_head_bytes = 0;
	return whole(&key, payload);
}

static int
query_actions(struct pn_query *query, const char *const *values,
    pn_guard_action_fn action, void *payload, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r, count;

	r = pn_query_run(
	    query, pn_sql_guard_key_actions, 3, values, &result, error);
	if (r < 0)
		return r;
	assert(PQnfields(result) == A_COUNT);
	count = PQntuples(result);
	for (int i = 0; r == 0 && i < count; i++) {
		struct pn_guard_action_row row = {
			.at_us = pn_query_int(result, i, A_AT, PN_MOMENT_NONE),
			.action = pn_query_str(result, i, A_ACTION),
			.actor = pn_query_str(result, i, A_ACTOR),
			.reason = pn_query_str(result, i, A_REASON),
		};

		r = action(&row, payload);
	}
	return r;
}

int
pn_query_guard_key(struct pn_query *query, const char *tenant,
    const char *route, const char *key, pn_guard_key_whole_fn whole,
    pn_guard_action_fn action, void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_query_text text;
	const char *values[] = { tenant, route, key,
		pn_query_number(&text, 0, PN_GUARD_BODY_HEAD_BYTES) };
	bool found;
	int r;

	assert(tenant != NULL && route != NULL && key != NULL);
	r = pn_query_run(query, pn_sql_guard_key, PN_COUNT(values), values,
	    &result, ret_error);
	if (r < 0)
		return r;
	found = PQntuples(result) > 0;
	if (found)
		r = call_key(result, whole, payload);
	if (r == 0)
		r = query_actions(query, values, action, payload, ret_error);
	return r != 0 ? r : !found;
}
