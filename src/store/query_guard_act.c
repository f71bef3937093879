/*
 * What operators do about the guard's keys. The rules are the functions' in
 * sql/0007_guard.sql; here each refusal gets a text that says which key it is
 * about and what to do, since the functions' own speak to applications.
 */
#include "paynotify/guard_keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "query.h"
#include "statements.h"

static const struct refusal {
	const char *sqlstate;
	enum pn_guard_acted acted;
} refusals[] = {
	{ "PN002", PN_GUARD_NO_KEY }, { "PN003", PN_GUARD_REFUSED },
	{ "55P03", PN_GUARD_LOCKED },   /* lock_timeout */
	{ "22023", PN_GUARD_BAD_NAME }, /* guard_check() */
};

static const char *
refused_because(const struct pn_guard_action *action, int acted)
{
	switch ((enum pn_guard_acted)acted) {
	case PN_GUARD_NO_KEY: return "there is no such key";
	case PN_GUARD_REFUSED:
		return action->act == PN_GUARD_SET_FREE
			   ? "it has its answer, which is repeated until its "
			     "time is over; to have the next request run, "
			     "forget it"
			   : "somebody is at work under it";
	case PN_GUARD_LOCKED:
		return "it is claimed or settled in a transaction that is open "
		       "at this moment: try again when that has ended";
	case PN_GUARD_BAD_NAME: break;
	}
	return NULL;
}

static int
tell_refusal(const struct pn_conn *conn, const struct pn_guard_action *action,
    int acted, struct pn_error *error)
{
	const char *because = refused_because(action, acted);
	bool hinted = acted == PN_GUARD_REFUSED && conn->hint[0] != '\0';

	if (because == NULL)
		return pn_error_set(error, acted, "%s", conn->primary);
	return pn_error_set(error, acted,
	    "key \"%s\" of \"%s\", tenant \"%s\": %s%s%s", action->key,
	    action->route, action->tenant, because, hinted ? ". " : "",
	    hinted ? conn->hint : "");
}

int
pn_query_guard_act(struct pn_query *query, const struct pn_guard_action *action,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[] = { action->tenant, action->route, action->key,
		action->reason, action->actor };
	int r;

	for (size_t i = 0; i < PN_COUNT(values); i++)
		assert(values[i] != NULL && values[i][0] != '\0');
	r = pn_query_run(query,
	    action->act == PN_GUARD_SET_FREE ? pn_sql_guard_set_free
					     : pn_sql_guard_forget,
	    PN_COUNT(values), values, &result, ret_error);
	if (r == -EACCES)
		return -EPERM; /* to act needs other rights than to read */
	/* Of a connection that is lost there is nothing to be read. */
	for (size_t i = 0; r == -EIO && i < PN_COUNT(refusals); i++)
		if (strcmp(query->conn.sqlstate, refusals[i].sqlstate) == 0)
			return tell_refusal(&query->conn, action,
			    (int)refusals[i].acted, ret_error);
	return r;
}
