/*
 * Claims. Two statements: handoff_take.sql leases events and commits, then
 * handoff_events.sql reads them.
 *
 * They cannot be one. paynotify.take() looks with snapshots of its own, so it
 * finds events that were committed after the statement that calls it began, and
 * a join in that statement would not see those: they would be leased and never
 * delivered until the lease ends.
 *
 * What is taken comes as one row of arrays, which go into the second statement
 * as they came, in PostgreSQL's own binary form: nothing here looks into them.
 */
#include "paynotify/handoff.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "handoff_internal.h"
#include "query_row.h"

/* Of handoff_take.sql. */
enum taken {
	T_SEQS,
	T_RECEIVED_ATS,
	T_TOKENS,
	T_ATTEMPTS,
	T_REDELIVERIES,
	T_ARRAYS, /* so many arrays */
	T_STATE = T_ARRAYS,
};

/* Of handoff_events.sql, behind the event. */
enum column {
	C_TOKEN = PN_EVENT_COLUMNS,
	C_ATTEMPT,
	C_REDELIVERY,
};

struct call {
	struct pn_claimed claimed;
	pn_claimed_fn each;
	void *payload;
};

static int
on_event(const struct pn_event_row *row, void *payload)
{
	struct call *call = payload;

	call->claimed.row = *row;
	return call->each(&call->claimed, call->payload);
}

static int
call_each(const PGresult *result, struct call *call)
{
	int r = 0, count = PQntuples(result);
	int64_t seq;

	for (int i = 0; r >= 0 && i < count; i++) {
		pn_query_uuid(result, i, C_TOKEN, call->claimed.token);
		call->claimed.attempt =
		    (int)pn_query_int(result, i, C_ATTEMPT, 0);
		call->claimed.redelivery =
		    pn_query_bool(result, i, C_REDELIVERY);
		assert(call->claimed.attempt >= 1);
		r = pn_query_event_row(result, i, &seq, on_event, call);
	}
	return r < 0 ? r : 0;
}

static int
take(struct pn_handoff *handoff, const char *endpoint, int events_max,
    int64_t lease_us, PGresult **ret_taken, struct pn_error *error)
{
	char limit[PN_QUERY_NUMBER_BYTES], lease[PN_QUERY_NUMBER_BYTES];
	int r;

	(void)snprintf(limit, sizeof(limit), "%d", events_max);
	(void)snprintf(lease, sizeof(lease), "%" PRId64, lease_us);
	r = pn_conn_run(&handoff->conn, PN_HANDOFF_TAKE,
	    &(struct pn_params){
		.count = 3,
		.values = (const char *const[]){ endpoint, limit, lease },
	    },
	    ret_taken, error);
	return pn_handoff_fault(handoff, r, error);
}

static int
read_events(struct pn_handoff *handoff, const PGresult *taken,
    PGresult **ret_events, struct pn_error *error)
{
	const char *values[T_ARRAYS];
	int lengths[T_ARRAYS], formats[T_ARRAYS], r;

	for (int i = 0; i < T_ARRAYS; i++) {
		values[i] = PQgetvalue(taken, 0, i);
		lengths[i] = PQgetlength(taken, 0, i);
		formats[i] = 1;
	}
	r = pn_conn_run(&handoff->conn, PN_HANDOFF_EVENTS,
	    &(struct pn_params){
		.count = T_ARRAYS,
		.values = values,
		.lengths = lengths,
		.formats = formats,
		.text_results = true,
	    },
	    ret_events, error);
	return pn_handoff_fault(handoff, r, error);
}

int
pn_handoff_claim(struct pn_handoff *handoff, const char *endpoint,
    int events_max, int64_t lease_us, pn_claimed_fn each, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *taken = NULL, *events = NULL;
	struct call call = { .each = each, .payload = payload };
	int r;

	assert(events_max >= 1 && events_max <= PN_CLAIM_EVENTS_MAX);
	assert(lease_us > 0);
	r = take(handoff, endpoint, events_max, lease_us, &taken, ret_error);
	if (r < 0)
		return r;
	assert(PQntuples(taken) == 1);
	if (PQgetisnull(taken, 0, T_SEQS))
		return pn_query_bool(taken, 0, T_STATE) ? 0 : PN_HANDOFF_HELD;
	r = read_events(handoff, taken, &events, ret_error);
	if (r < 0)
		return r;
	return call_each(events, &call);
}
