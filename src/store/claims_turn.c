/*
 * A turn of the lane: settlements and claims as one statement, and what it
 * answers. Each kind knows its own parameters and columns (claims_settle.c,
 * claims_claim.c); here is how they are put together.
 *
 * They go together because a commit costs more than what is in it: the wait for
 * the disk, and for a standby. One that is refused takes the others with it, and
 * then each goes by itself (claims_attempt.c).
 *
 * The statement is a transaction of its own. Its rows may come before a commit
 * that fails; so nothing is told before pn_conn_run() has seen the end of it.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "claims_internal.h"

enum {
	PARAMETERS = PN_SETTLEMENT_PARAMETERS + PN_CLAIM_PARAMETERS,
	/* Columns of claims_turn.sql. */
	C_LOST = 0,
	C_CLAIM,
	COLUMNS = C_CLAIM + PN_CLAIM_COLUMNS
};

const char pn_lane_statement[] = "turn";

static int
send(struct pn_lane *lane, struct pn_array *arrays, PGresult **ret_result,
    struct pn_error *ret_error)
{
	const char *values[PARAMETERS];
	int lengths[PARAMETERS], formats[PARAMETERS];
	bool failed = false;
	struct pn_str s;

	for (size_t i = 0; i < PARAMETERS; i++) {
		s = pn_array_finish(&arrays[i]);
		failed |= s.data == NULL;
		values[i] = s.data;
		lengths[i] = (int)s.len;
		formats[i] = 1;
	}
	if (failed) {
		/* As if the server had no memory: nothing was sent. */
		(void)snprintf(
		    lane->conn.sqlstate, sizeof(lane->conn.sqlstate), "53200");
		return pn_error_set(
		    ret_error, PN_CONN_REFUSED, "out of memory");
	}
	return pn_conn_run(&lane->conn, pn_lane_statement,
	    &(struct pn_params){
		.count = PARAMETERS,
		.values = values,
		.lengths = lengths,
		.formats = formats,
	    },
	    ret_result, ret_error);
}

/* The place of a settlement whose lease was lost, from 1. */
static size_t
lost_place(const PGresult *result, int row)
{
	uint64_t place;

	assert(PQgetlength(result, row, C_LOST) == sizeof(place));
	memcpy(&place, PQgetvalue(result, row, C_LOST), sizeof(place));
	return (size_t)be64toh(place);
}

/* It is committed: everybody is told. Who settled goes first, as it did there. */
static void
end(struct pn_lane *lane, struct pn_claims_item *const *items, size_t settling,
    size_t count, const PGresult *result)
{
	bool lost[PN_BATCH_EVENTS_MAX] = { false };
	int row = 0, rows = PQntuples(result);
	size_t place;

	assert(PQnfields(result) == COLUMNS);
	for (; row < rows && PQgetisnull(result, row, C_LOST) == 0; row++) {
		place = lost_place(result, row);
		assert(place >= 1 && place <= settling);
		lost[place - 1] = true;
	}
	assert((size_t)(rows - row) == count - settling);
	pn_settlement_end(lane, items, settling, lost);
	for (; row < rows; row++) {
		place = pn_claim_place(result, row, C_CLAIM);
		assert(place >= 1 && place <= count - settling);
		pn_claim_end(items[settling + place - 1], result, row, C_CLAIM);
	}
}

int
pn_lane_turn(struct pn_lane *lane, struct pn_claims_item *const *items,
    size_t count, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_array arrays[PARAMETERS];
	struct pn_array *claims = arrays + PN_SETTLEMENT_PARAMETERS;
	size_t settling = 0;
	int r;

	for (size_t i = 0; i < PN_SETTLEMENT_PARAMETERS; i++)
		arrays[i] =
		    pn_array_init(pn_settlement_types[i], PN_LANE_BYTES_MAX);
	for (size_t i = 0; i < PN_CLAIM_PARAMETERS; i++)
		claims[i] = pn_array_init(pn_claim_types[i], PN_LANE_BYTES_MAX);
	while (
	    settling < count && items[settling]->kind == &pn_claims_settlement)
		pn_settlement_add(arrays, items[settling++]);
	for (size_t i = settling; i < count; i++) {
		assert(items[i]->kind == &pn_claims_claim);
		pn_claim_add(claims, items[i]);
	}
	r = send(lane, arrays, &result, ret_error);
	for (size_t i = 0; i < PARAMETERS; i++)
		pn_array_done(&arrays[i]);
	if (r == 0)
		end(lane, items, settling, count, result);
	return r;
}
