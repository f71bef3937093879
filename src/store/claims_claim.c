/*
 * Claims' part of a turn: guard_claim_many over arrays, a row for each.
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
};
static_assert(PN_CLAIM_PARAMETERS == P_ATTEMPTS + 1, "all have a place");

const enum pn_array_type pn_claim_types[PN_CLAIM_PARAMETERS] = {
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

/* Of claims_turn.sql, from its place on. */
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
static_assert(PN_CLAIM_COLUMNS == C_NOW + 1, "all have a place");

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

void
pn_claim_add(struct pn_array *a, struct pn_claims_item *item)
{
	const struct pn_claim *claim = claim_of(item);
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

static void
fill(struct pn_claim *claim, const PGresult *result, int row, int from)
{
	struct pn_str outcome = text_of(result, row, from + C_OUTCOME);
	int found = PN_CLAIM_RUN;

	while (
	    found < PN_CLAIM_UNAVAILABLE && !pn_str_is(outcome, FOUND[found]))
		found++;
	assert(found < PN_CLAIM_UNAVAILABLE);
	claim->found = (enum pn_claim_found)found;
	claim->may_be_ours = false;
	claim->attempt = (int)int_of(result, row, from + C_ATTEMPT);
	claim->status = (int)int_of(result, row, from + C_STATUS);
	claim->headers = text_of(result, row, from + C_HEADERS);
	claim->body = text_of(result, row, from + C_BODY);
	claim->expires_at_us =
	    int_of(result, row, from + C_EXPIRES_AT) + EPOCH_2000_US;
	claim->retry_after_us = 0;
	if (PQgetisnull(result, row, from + C_RETRY_AT) == 0)
		claim->retry_after_us = int_of(result, row, from + C_RETRY_AT) -
					int_of(result, row, from + C_NOW);
	if (claim->retry_after_us < 0)
		claim->retry_after_us = 0;
	claim->reason = text_of(result, row, from + C_REASON);
}

size_t
pn_claim_place(const PGresult *result, int row, int column)
{
	return (size_t)int_of(result, row, column + C_PLACE);
}

void
pn_claim_end(
    struct pn_claims_item *item, const PGresult *result, int row, int column)
{
	struct pn_claim *claim = claim_of(item);

	fill(claim, result, row, column);
	claim->done(claim);
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

const struct pn_claims_kind pn_claims_claim = {
	.place = 1,
	.give_up = give_up,
	.held = held,
};
