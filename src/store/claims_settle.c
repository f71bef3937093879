/*
 * Settlements: guard_settle over arrays, which answers with the places of those
 * whose lease was lost. What was settled is told to who listens, before done():
 * in other daemons somebody waits for it.
 *
 * A settlement that was committed unseen, and is sent again, finds its lease
 * gone. The row says by whose token it was settled last (settled_by), so that it
 * is not told that it lost: sent_again asks for that look.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "claims_internal.h"
#include "statements.h"

enum parameter {
	P_TENANT,
	P_ROUTE,
	P_KEY,
	P_TOKEN,
	P_ACT,
	P_STATUS,
	P_HEADERS,
	P_BODY,
	P_REASON,
	P_LEASE,
	P_SENT_AGAIN,
	PARAMETERS
};
static const enum pn_array_type TYPES[PARAMETERS] = {
	[P_TENANT] = PN_ARRAY_TEXT,
	[P_ROUTE] = PN_ARRAY_TEXT,
	[P_KEY] = PN_ARRAY_TEXT,
	[P_TOKEN] = PN_ARRAY_UUID,
	[P_ACT] = PN_ARRAY_TEXT,
	[P_STATUS] = PN_ARRAY_INT4,
	[P_HEADERS] = PN_ARRAY_TEXT,
	[P_BODY] = PN_ARRAY_BYTEA,
	[P_REASON] = PN_ARRAY_TEXT,
	[P_LEASE] = PN_ARRAY_INTERVAL,
	[P_SENT_AGAIN] = PN_ARRAY_BOOL,
};

static const char *const ACTS[] = {
	[PN_SETTLE_COMPLETE] = "complete",
	[PN_SETTLE_FREE] = "free",
	[PN_SETTLE_AGAIN] = "again",
	[PN_SETTLE_ASIDE] = "aside",
	[PN_SETTLE_DOUBT] = "doubt",
	[PN_SETTLE_RENEW] = "renew",
};

static struct pn_settlement *
settlement_of(struct pn_claims_item *item)
{
	return PN_CONTAINER(item, struct pn_settlement, item);
}

/* NULLs where the act has no such thing. */
static void
add_answer(struct pn_array *a, const struct pn_settlement *s)
{
	if (s->act == PN_SETTLE_COMPLETE) {
		pn_array_add_int4(&a[P_STATUS], s->status);
		pn_array_add_bytes(
		    &a[P_HEADERS], s->headers.data, s->headers.len);
		pn_array_add_bytes(&a[P_BODY], s->body.data, s->body.len);
	} else {
		pn_array_add_null(&a[P_STATUS]);
		pn_array_add_null(&a[P_HEADERS]);
		pn_array_add_null(&a[P_BODY]);
	}
	if (s->act == PN_SETTLE_RENEW)
		pn_array_add_interval(&a[P_LEASE], s->lease_us);
	else
		pn_array_add_null(&a[P_LEASE]);
}

static void
add(struct pn_array *a, const struct pn_settlement *s)
{
	const struct pn_claim_scope *scope = &s->scope;

	assert((size_t)s->act < PN_COUNT(ACTS));
	pn_array_add_bytes(&a[P_TENANT], scope->tenant.data, scope->tenant.len);
	pn_array_add_bytes(&a[P_ROUTE], scope->route.data, scope->route.len);
	pn_array_add_bytes(&a[P_KEY], scope->key.data, scope->key.len);
	pn_array_add_bytes(&a[P_TOKEN], s->token, sizeof(s->token));
	pn_array_add_str(&a[P_ACT], pn_str_from(ACTS[s->act]));
	add_answer(a, s);
	pn_array_add_ascii(&a[P_REASON], s->reason);
	pn_array_add_bool(&a[P_SENT_AGAIN], s->item.sent_again);
}

static void
mark(struct pn_claims_item *const *items, size_t count, const PGresult *result)
{
	uint64_t place;

	for (size_t i = 0; i < count; i++)
		settlement_of(items[i])->settled = PN_SETTLED;
	assert((size_t)PQntuples(result) <= count);
	for (int row = 0; row < PQntuples(result); row++) {
		assert(PQgetlength(result, row, 0) == sizeof(place));
		memcpy(&place, PQgetvalue(result, row, 0), sizeof(place));
		place = be64toh(place);
		assert(place >= 1 && place <= count);
		settlement_of(items[place - 1])->settled = PN_SETTLED_LOST;
	}
}

/* Of those that anybody may wait for. */
static void
tell(struct pn_lane *lane, struct pn_claims_item *const *items, size_t count)
{
	unsigned char digests[PN_BATCH_EVENTS_MAX][PN_CLAIM_DIGEST_BYTES];
	const struct pn_settlement *s;
	size_t n = 0;

	assert(count <= PN_COUNT(digests));
	for (size_t i = 0; i < count; i++) {
		s = settlement_of(items[i]);
		if (s->settled == PN_SETTLED && s->act != PN_SETTLE_RENEW)
			pn_claim_digest(&s->scope, digests[n++]);
	}
	if (n > 0)
		pn_listener_tell(lane->claims->listener, digests, n);
}

static int
run(struct pn_lane *lane, struct pn_claims_item *const *items, size_t count,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_array arrays[PARAMETERS];
	struct pn_settlement *s;
	int r;

	for (size_t i = 0; i < PARAMETERS; i++)
		arrays[i] = pn_array_init(TYPES[i], PN_LANE_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		add(arrays, settlement_of(items[i]));
	r = pn_lane_send(lane, arrays, PARAMETERS, &result, ret_error);
	if (r != 0)
		return r;
	mark(items, count, result);
	tell(lane, items, count);
	for (size_t i = 0; i < count; i++) {
		s = settlement_of(items[i]);
		s->done(s);
	}
	return 0;
}

static void
give_up(struct pn_claims_item *item)
{
	struct pn_settlement *s = settlement_of(item);

	s->settled = PN_SETTLED_UNKNOWN;
	s->done(s);
}

const struct pn_lane_kind pn_settle_lane = {
	.name = "settlements",
	.sql = pn_sql_claims_settle,
	.run = run,
	.give_up = give_up,
};
