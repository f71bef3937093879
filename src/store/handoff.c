/*
 * The hand-off's session, and the statements that are rarely sent.
 *
 * The functions in the database keep the rules; here are only their callers.
 * A statement that the server refuses ends the session as one that is cut off
 * does: the deliverer connects anew, with back-off, and what it holds comes
 * back when its leases end. So there is one way to recover, and it is the one
 * that is needed anyway.
 *
 * What this does not do: retry, log, or know of HTTP. Other files: claims in
 * handoff_claim.c, results in handoff_settle.c, notifications in
 * handoff_wait.c.
 */
#include "paynotify/handoff.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/moment.h"

#include "array.h"
#include "handoff_internal.h"
#include "statements.h"
#include "store_internal.h"

enum { FILTER_BYTES_MAX = 64 << 10 };
static_assert(PN_CONF_REPEAT_MAX * (PN_TYPE_BYTES_MAX + 8) <= FILTER_BYTES_MAX,
    "every filter fits");

static const struct {
	const char *name, *sql;
} PREPARED[] = {
	{ PN_HANDOFF_TAKE, pn_sql_handoff_take },
	{ PN_HANDOFF_EVENTS, pn_sql_handoff_events },
	{ PN_HANDOFF_SETTLE, pn_sql_handoff_settle },
};

int
pn_handoff_fault(
    const struct pn_handoff *handoff, int r, struct pn_error *error)
{
	if (r <= 0)
		return r;
	if (strcmp(handoff->conn.sqlstate, "42501") == 0)
		return pn_error_prefix(error, -EACCES,
		    "the role of [database] dsn may not deliver: make it a "
		    "member of paynotify_deliverer: ");
	/* PN002: no such consumer. */
	return strcmp(handoff->conn.sqlstate, "PN002") == 0 ? -ENOENT : -EIO;
}

int
pn_handoff_open(const char *dsn, int stop_fd, struct pn_handoff **ret_handoff,
    struct pn_error *ret_error)
{
	struct pn_handoff *handoff = calloc(1, sizeof(*handoff));
	enum pn_store_health health;
	int r;

	if (handoff == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	handoff->conn = pn_conn_for(PN_METRIC_SESSION_HANDOFF);
	r = pn_session_connect(&handoff->conn, dsn, stop_fd,
	    pn_sql_handoff_session, &health, ret_error);
	for (size_t i = 0; r == 0 && i < PN_COUNT(PREPARED); i++)
		r = pn_conn_prepare(&handoff->conn, PREPARED[i].name,
		    PREPARED[i].sql, ret_error);
	if (r == 0)
		r = pn_conn_exec(
		    &handoff->conn, pn_sql_handoff_listen, NULL, ret_error);
	if (r != 0) {
		r = pn_handoff_fault(handoff, r, ret_error);
		pn_handoff_close(handoff);
		return r;
	}
	*ret_handoff = handoff;
	return 0;
}

void
pn_handoff_close(struct pn_handoff *handoff)
{
	if (handoff == NULL)
		return;
	pn_conn_close(&handoff->conn);
	free(handoff);
}

/* A list of the configuration as text[]; the empty one, which takes all, is
 * NULL. */
static struct pn_str
list(struct pn_array *array, const struct pn_conf_strings *strings)
{
	*array = pn_array_init(PN_ARRAY_TEXT, FILTER_BYTES_MAX);
	if (strings->count == 0)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < strings->count; i++)
		pn_array_add_str(array, pn_str_from(strings->values[i]));
	return pn_array_finish(array);
}

int
pn_handoff_put_endpoint(struct pn_handoff *handoff,
    const struct pn_conf_deliver *endpoint, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	PN_CLEANUP(pn_array_done) struct pn_array tenants, types;
	char start[PN_MOMENT_TEXT_BYTES] = "-infinity";
	struct pn_str a, b;
	int r;

	if (endpoint->start_us != PN_MOMENT_NONE)
		pn_moment_format_rfc3339(endpoint->start_us, start);
	a = list(&tenants, &endpoint->tenants);
	b = list(&types, &endpoint->types);
	if (pn_array_failed(&tenants) || pn_array_failed(&types))
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	r = pn_conn_query(&handoff->conn, pn_sql_handoff_endpoint,
	    &(struct pn_params){
		.count = 5,
		.values = (const char *const[]){ endpoint->name, a.data, b.data,
		    endpoint->url, start },
		.lengths = (const int[]){ 0, (int)a.len, (int)b.len, 0, 0 },
		.formats = (const int[]){ 0, 1, 1, 0, 0 },
	    },
	    &result, ret_error);
	if (r != 0)
		return pn_handoff_fault(handoff, r, ret_error);
	if (*PQgetvalue(result, 0, 0) == 't')
		return 0;
	return pn_error_set(ret_error, 1,
	    "a consumer named \"%s\" pulls events by SQL already: give the "
	    "endpoint another name",
	    endpoint->name);
}

int
pn_handoff_disable(struct pn_handoff *handoff, const char *endpoint,
    const char *url, const char *reason, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r;

	r = pn_conn_query(&handoff->conn, pn_sql_handoff_disable,
	    &(struct pn_params){
		.count = 3,
		.values = (const char *const[]){ endpoint, url, reason },
	    },
	    &result, ret_error);
	if (r != 0)
		return pn_handoff_fault(handoff, r, ret_error);
	return PQntuples(result) == 0 ? PN_HANDOFF_MOVED : 0;
}
