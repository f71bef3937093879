/*
 * Claims: guard_claim_many over arrays, a row for each.
 *
 * The answer says which by its place. Texts of it live in the result, which is
 * why done() is called before that is freed. Times are PostgreSQL's own binary
 * ones: what is left of a lease is counted by the database's clock, which gave
 * it.
 *
 * What this does not do: judge. Each rule is in the database.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "paynotify/moment.h"

#include "claims_internal.h"
#include "statements.h"

enum parameter {
	P_TENANT,
	P_ROUTE,
	P_KEY,
	P_HASH,
	P_TOKEN,
	P_LEASE,
	P_TTL,
	P_UNKNOWN,
	P_AFTER,
	P_ATTEMPTS,
	PARAMETERS
};
static const enum pn_array_type TYPES[PARAMETERS] = {
	[P_TENANT] = PN_ARRAY_TEXT,
	[P_ROUTE] = PN_ARRAY_TEXT,
	[P_KEY] = PN_ARRAY_TEXT,
	[P_HASH] = PN_ARRAY_BYTEA,
	[P_TOKEN] = PN_ARRAY_UUID,
	[P_LEASE] = PN_ARRAY_INTERVAL,
	[P_TTL] = PN_ARRAY_INTERVAL,
	[P_UNKNOWN] = PN_ARRAY_TEXT,
	[P_AFTER] = PN_ARRAY_TEXT,
	[P_ATTEMPTS] = PN_ARRAY_INT4,
};

/* Of claims_claim.sql. */
enum column {
	C_PLACE,
	C_OUTCOME,
	C_ATTEMPT,
	C_STATUS,
	C_HEADERS,
	C_BODY,
	C_EXPIRES_AT,
	C_RETRY_AT,
	C_REASON,
	C_NOW,
};

static const char *const FOUND[PN_CLAIM_FOUND_COUNT] = {
	[PN_CLAIM_RUN] = "run",
	[PN_CLAIM_REPLAY] = "replay",
	[PN_CLAIM_MISMATCH] = "mismatch",
	[PN_CLAIM_BUSY] = "busy",
	[PN_CLAIM_FAILED] = "failed",
	[PN_CLAIM_EXPIRED] = "expired",
};
static const char *const UNKNOWN[] = {
	[PN_CLAIM_RETRY] = "retry",
	[PN_CLAIM_HOLD] = "hold",
};
static const char *const AFTER[] = {
	[PN_CLAIM_NEW] = "new",
	[PN_CLAIM_REFUSE] = "refuse",
};

/* PostgreSQL counts from 2000-01-01. */
static const int64_t EPOCH_2000_US = INT64_C(946684800) * PN_SECOND_US;
/* Whoever has a key in an open transaction may have it for long. */
static const int64_t HELD_RETRY_US = PN_SECOND_US;

static struct pn_claim *
claim_of(struct pn_claims_item *item)
{
	return PN_CONTAINER(item, struct pn_claim, item);
}

static void
add(struct pn_array *a, const struct pn_claim *claim)
{
	const struct pn_claim_scope *scope = &claim->scope;
	const struct pn_claim_terms *terms = claim->terms;

	assert((size_t)terms->unknown < PN_COUNT(UNKNOWN));
	assert((size_t)terms->after_expiry < PN_COUNT(AFTER));
	pn_array_add_bytes(&a[P_TENANT], scope->tenant.data, scope->tenant.len);
	pn_array_add_bytes(&a[P_ROUTE], scope->route.data, scope->route.len);
	pn_array_add_bytes(&a[P_KEY], scope->key.data, scope->key.len);
	pn_array_add_bytes(
	    &a[P_HASH], claim->request_hash, sizeof(claim->request_hash));
	pn_array_add_bytes(&a[P_TOKEN], claim->token, sizeof(claim->token));
	pn_array_add_interval(&a[P_LEASE], terms->lease_us);
	pn_array_add_interval(&a[P_TTL], terms->ttl_us);
	pn_array_add_str(&a[P_UNKNOWN], pn_str_from(UNKNOWN[terms->unknown]));
	pn_array_add_str(&a[P_AFTER], pn_str_from(AFTER[terms->after_expiry]));
	pn_array_add_int4(&a[P_ATTEMPTS], terms->attempts_max);
}

/* Values of a binary result. */

static struct pn_str
text_of(const PGresult *result, int row, int column)
{
	return (struct pn_str){ PQgetvalue(result, row, column),
		(size_t)PQgetlength(result, row, column) };
}

/* An integer of any width; NULL is 0. */
static int64_t
int_of(const PGresult *result, int row, int column)
{
	const char *at = PQgetvalue(result, row, column);
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (PQgetlength(result, row, column)) {
	case 2: memcpy(&two, at, sizeof(two)); return (int16_t)be16toh(two);
	case 4: memcpy(&four, at, sizeof(four)); return (int32_t)be32toh(four);
	case 8:
		memcpy(&eight, at, sizeof(eight));
		return (int64_t)be64toh(eight);
	default: return 0;
	}
}

/* As since 1970; NULL is 0. What no clock will show ("infinity") is far away, and
 * can be added to. */
static int64_t
moment_of(const PGresult *result, int row, int column)
{
	int64_t us = int_of(result, row, column);

	if (PQgetisnull(result, row, column))
		return 0;
	if (us < -EPOCH_2000_US)
		return 0;
	return us < INT64_MAX / 2 ? us + EPOCH_2000_US : INT64_MAX / 2;
}

static void
fill(struct pn_claim *claim, const PGresult *result, int row)
{
	struct pn_str outcome = text_of(result, row, C_OUTCOME);
	int found = PN_CLAIM_RUN;

	while (
	    found < PN_CLAIM_UNAVAILABLE && !pn_str_is(outcome, FOUND[found]))
		found++;
	assert(found < PN_CLAIM_UNAVAILABLE);
	claim->found = (enum pn_claim_found)found;
	claim->may_be_ours = false;
	claim->attempt = (int)int_of(result, row, C_ATTEMPT);
	claim->status = (int)int_of(result, row, C_STATUS);
	claim->headers = text_of(result, row, C_HEADERS);
	claim->body = text_of(result, row, C_BODY);
	claim->expires_at_us = moment_of(result, row, C_EXPIRES_AT);
	claim->retry_after_us = 0;
	if (PQgetisnull(result, row, C_RETRY_AT) == 0)
		claim->retry_after_us = moment_of(result, row, C_RETRY_AT) -
					moment_of(result, row, C_NOW);
	if (claim->retry_after_us < 0)
		claim->retry_after_us = 0;
	claim->reason = text_of(result, row, C_REASON);
	/* See guard_is_answer(): no server could send it. */
	if (claim->found == PN_CLAIM_REPLAY &&
	    (claim->status < 200 || claim->status > 599)) {
		claim->found = PN_CLAIM_FAILED;
		claim->reason = PN_STR("its answer has no HTTP status");
	}
}

static int
run(struct pn_lane *lane, struct pn_claims_item *const *items, size_t count,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_array arrays[PARAMETERS];
	struct pn_claims_item *later[PN_BATCH_EVENTS_MAX];
	struct pn_claim *claim;
	size_t place, later_count = 0;
	int r;

	for (size_t i = 0; i < PARAMETERS; i++)
		arrays[i] = pn_array_init(TYPES[i], PN_LANE_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		add(arrays, claim_of(items[i]));
	r = pn_lane_send(lane, arrays, PARAMETERS, &result, ret_error);
	if (r != 0)
		return r;
	assert((size_t)PQntuples(result) == count);
	for (int row = 0; row < (int)count; row++) {
		place = (size_t)int_of(result, row, C_PLACE);
		assert(place >= 1 && place <= count);
		claim = claim_of(items[place - 1]);
		if (pn_str_is(text_of(result, row, C_OUTCOME), "later")) {
			later[later_count++] = items[place - 1];
			continue;
		}
		fill(claim, result, row);
		claim->done(claim);
	}
	/* The first is never one, so each time there are fewer. */
	assert(later_count < count);
	lane->returned = later_count;
	if (later_count > 0)
		pn_lane_return(lane, later, later_count);
	return 0;
}

static void
give_up(struct pn_claims_item *item)
{
	struct pn_claim *claim = claim_of(item);

	claim->found = PN_CLAIM_UNAVAILABLE;
	claim->may_be_ours = item->sent_again;
	claim->done(claim);
}

static void
held(struct pn_claims_item *item)
{
	struct pn_claim *claim = claim_of(item);

	claim->found = PN_CLAIM_BUSY;
	claim->may_be_ours = false;
	claim->attempt = 0; /* not known */
	claim->retry_after_us = HELD_RETRY_US;
	claim->done(claim);
}

const struct pn_lane_kind pn_claim_lane = {
	.name = "claims",
	.sql = pn_sql_claims_claim,
	.run = run,
	.give_up = give_up,
	.held = held,
};
