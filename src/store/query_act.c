/*
 * What operators do about deliveries. The rules, and the texts of refusals, are
 * the functions' in sql/0006_operate.sql; here they are called with one event,
 * or with all that are in a state, some hundred in a transaction.
 *
 * Which those are is found out before the first is touched: to skip one wakes
 * the next of its order into "retry", and that one has not failed. What has
 * left the state by the time its turn comes is left alone.
 *
 * Of many the count tells how far it got: what was done before a refusal stays
 * done, and asking again goes on.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/deliveries.h"

#include "query.h"
#include "statements.h"

enum {
	EVENTS_AT_ONCE = 500,
	EVENTS_MAX = 1000000, /* in one go: 10 MB of numbers */
};
static_assert(EVENTS_MAX % EVENTS_AT_ONCE == 0, "whole pages");

static const char *const STATES[] = { "leased", "waiting", "retry", "dead" };

/* After pn_query_run(): a refusal is PN002 (there is none) or PN003. -EPERM: what acts needs
 * other rights than what reads. */
static int
refused(struct pn_query *query, int r, struct pn_error *error)
{
	const struct pn_conn *conn = &query->conn;
	int acted = PN_ACT_REFUSED;

	if (r == -EACCES)
		return -EPERM;
	/* Of a connection that is lost there is nothing to be read. */
	if (r != -EIO)
		return r;
	if (strcmp(conn->sqlstate, "PN002") == 0)
		acted = PN_ACT_UNKNOWN;
	else if (strcmp(conn->sqlstate, "PN003") != 0)
		return r;
	if (conn->hint[0] == '\0')
		return pn_error_set(error, acted, "%s", conn->primary);
	return pn_error_set(error, acted, "%s: %s", conn->primary, conn->hint);
}

/* seqs: an array's text. */
static int
do_to(struct pn_query *query, const struct pn_action *action, const char *seqs,
    int64_t *count, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *sql =
	    action->action == PN_ACTION_SKIP ? pn_sql_skip : pn_sql_redeliver;
	const char *values[] = { action->consumer, seqs, action->reason,
		action->actor, action->state };
	int r;

	r = pn_query_run(query, sql, PN_COUNT(values), values, &result, error);
	if (r < 0)
		return refused(query, r, error);
	*count += pn_query_int(result, 0, 0, 0);
	return 0;
}

static int
do_to_event(struct pn_query *query, const struct pn_action *action,
    int64_t *count, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[PN_QUERY_WHICH_COUNT + 1];
	char seqs[PN_QUERY_NUMBER_BYTES + 2];
	int r;

	pn_query_which(action->event, values);
	values[PN_QUERY_WHICH_COUNT] = NULL; /* of any tenant */
	r = pn_query_run(
	    query, pn_sql_event, PN_COUNT(values), values, &result, error);
	if (r < 0)
		return refused(query, r, error);
	if (PQntuples(result) == 0)
		return pn_error_set(error, PN_ACT_UNKNOWN,
		    "there is no event \"%s\"", action->event);
	if (PQntuples(result) > 1)
		return pn_error_set(error, PN_ACT_REFUSED,
		    "%d tenants have an event with the key \"%s\": name it by "
		    "its id",
		    PQntuples(result), action->event);
	(void)snprintf(seqs, sizeof(seqs), "{%s}", PQgetvalue(result, 0, 0));
	return do_to(query, action, seqs, count, error);
}

static bool
is_state(const char *text)
{
	for (size_t i = 0; i < PN_COUNT(STATES); i++)
		if (strcmp(text, STATES[i]) == 0)
			return true;
	return false;
}

static int
do_to_state(struct pn_query *query, const struct pn_action *action,
    int64_t *count, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *pages = NULL;
	struct pn_query_text text;
	const char *values[] = { action->consumer, action->state,
		pn_query_number(&text, 0, EVENTS_AT_ONCE),
		pn_query_number(&text, 1, EVENTS_MAX) };
	int r, page_count;

	if (!is_state(action->state))
		return pn_error_set(error, PN_ACT_REFUSED,
		    "no delivery is \"%s\": the states are leased, waiting, "
		    "retry and dead",
		    action->state);
	r = pn_query_run(query, pn_sql_delivery_seqs, PN_COUNT(values), values,
	    &pages, error);
	if (r < 0)
		return refused(query, r, error);
	page_count = PQntuples(pages);
	assert(page_count <= EVENTS_MAX / EVENTS_AT_ONCE);
	for (int i = 0; r == 0 && i < page_count; i++)
		r = do_to(query, action, PQgetvalue(pages, i, 0), count, error);
	if (r == 0 && page_count == EVENTS_MAX / EVENTS_AT_ONCE)
		return pn_error_set(error, PN_ACT_REFUSED,
		    "that is as many as are done at once: ask again for the "
		    "others");
	return r;
}

static int
set_state(struct pn_query *query, const struct pn_action *action,
    int64_t *count, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[] = { action->consumer,
		action->action == PN_ACTION_PAUSE ? "paused" : "active",
		action->reason, action->actor };
	int r;

	r = pn_query_run(query, pn_sql_consumer_state, PN_COUNT(values), values,
	    &result, error);
	if (r == 0)
		*count = 1;
	return refused(query, r, error);
}

static int
remove_consumer(struct pn_query *query, const struct pn_action *action,
    int64_t *count, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[] = { action->consumer, action->reason,
		action->actor };
	int r;

	r = pn_query_run(query, pn_sql_consumer_remove, PN_COUNT(values),
	    values, &result, error);
	if (r == 0)
		*count = 1;
	return refused(query, r, error);
}

static bool
is_empty(const char *text)
{
	return text == NULL || text[0] == '\0';
}

int
pn_query_act(struct pn_query *query, const struct pn_action *action,
    int64_t *ret_count, struct pn_error *ret_error)
{
	bool whole = action->action == PN_ACTION_PAUSE ||
		     action->action == PN_ACTION_RESUME ||
		     action->action == PN_ACTION_REMOVE;

	assert(action->consumer != NULL);
	assert(whole || (action->event == NULL) != (action->state == NULL));
	*ret_count = 0;
	if (is_empty(action->reason) || is_empty(action->actor))
		return pn_error_set(ret_error, PN_ACT_REFUSED,
		    "a reason is needed, and who acts: both are recorded");
	if (action->action == PN_ACTION_REMOVE)
		return remove_consumer(query, action, ret_count, ret_error);
	if (whole)
		return set_state(query, action, ret_count, ret_error);
	if (action->event != NULL)
		return do_to_event(query, action, ret_count, ret_error);
	return do_to_state(query, action, ret_count, ret_error);
}
