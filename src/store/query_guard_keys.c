/*
 * The guard's keys: which routes have some, and lists of them.
 *
 * They share a table with the keys of webhooks, of which there are millions, and
 * its primary key is the only index that finds them (another one would cost each
 * webhook). So a list goes route by route: guard_scopes.sql skips along the
 * primary key from one route to the next, guard_keys.sql reads one route's keys,
 * page by page. Two statements rather than one: joined they would have to be
 * sorted, and each page read every route anew.
 */
#include "query_guard_row.h"

#include <assert.h>
#include <string.h>

#include "statements.h"

enum scope_column { S_TENANT, S_ROUTE, S_COUNT };

enum key_column {
	C_TENANT,
	C_ROUTE,
	C_KEY,
	C_STATE,
	C_LEASE,
	C_ATTEMPTS,
	C_CRASHES,
	C_CREATED_AT,
	C_LOCKED_AT,
	C_LEASE_EXPIRES_AT,
	C_COMPLETED_AT,
	C_EXPIRES_AT,
	C_STATUS,
	C_REASON,
	C_COUNT
};
static_assert(
    (int)C_COUNT == (int)PN_GUARD_KEY_COLUMNS, "as query_guard_row.h says");

/* -- routes ------------------------------------------------------------------ */

static int
call_scope(const PGresult *result, int at, pn_guard_scope_fn row, void *payload)
{
	struct pn_guard_scope_row out = {
		.tenant = pn_query_str(result, at, S_TENANT),
		.route = pn_query_str(result, at, S_ROUTE),
	};

	assert(PQnfields(result) == S_COUNT);
	return row(&out, payload);
}

/* Which routes: NULL members do not count. */
struct search {
	const char *tenant, *route;
	const char *key; /* those that have it */
	const char *after_tenant, *after_route;
};

static int
query_scopes(struct pn_query *query, const struct search *search,
    pn_guard_scope_fn row, void *payload, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *last = NULL;
	const char *tenant = search->tenant;
	const char *after_tenant = search->after_tenant, *after_route = "";
	int r = 0, count = PN_QUERY_ROWS;

	if (after_tenant != NULL)
		after_route = search->after_route;
	else
		after_tenant = tenant == NULL ? "" : tenant;

	while (r == 0 && count == PN_QUERY_ROWS) {
		struct pn_query_text text;
		const char *values[] = { after_tenant, after_route, tenant,
			search->route, search->key,
			pn_query_number(&text, 0, PN_QUERY_ROWS) };
		PGresult *result = NULL;

		r = pn_query_run(query, pn_sql_guard_scopes, PN_COUNT(values),
		    values, &result, error);
		if (r < 0)
			return r;
		/* What the next page begins behind points into this one. */
		PQclear(last);
		last = result;
		count = PQntuples(result);
		assert(count <= PN_QUERY_ROWS);
		for (int i = 0; r == 0 && i < count; i++)
			r = call_scope(result, i, row, payload);
		if (count > 0) {
			after_tenant = PQgetvalue(result, count - 1, S_TENANT);
			after_route = PQgetvalue(result, count - 1, S_ROUTE);
		}
	}
	return r;
}

int
pn_query_guard_scopes(struct pn_query *query, const char *tenant,
    const char *route, const char *key, pn_guard_scope_fn row, void *payload,
    struct pn_error *ret_error)
{
	struct pn_guard_scope_row named = { pn_str_from(tenant),
		pn_str_from(route) };

	assert(key != NULL);
	/* Both are named: no need to look for them, and the permanent tier
	 * alone may have the key. */
	if (tenant != NULL && route != NULL)
		return row(&named, payload);
	return query_scopes(query,
	    &(struct search){ .tenant = tenant, .route = route, .key = key },
	    row, payload, ret_error);
}

/* -- keys -------------------------------------------------------------------- */

struct pn_guard_key_row
pn_query_guard_key_row(const PGresult *result, int at)
{
	assert(PQnfields(result) >= C_COUNT);
	return (struct pn_guard_key_row){
		.tenant = pn_query_str(result, at, C_TENANT),
		.route = pn_query_str(result, at, C_ROUTE),
		.key = pn_query_str(result, at, C_KEY),
		.state = pn_query_str(result, at, C_STATE),
		.lease = pn_query_str(result, at, C_LEASE),
		.attempts = pn_query_int(result, at, C_ATTEMPTS, 0),
		.crashes = pn_query_int(result, at, C_CRASHES, 0),
		.created_at_us =
		    pn_query_int(result, at, C_CREATED_AT, PN_MOMENT_NONE),
		.locked_at_us =
		    pn_query_int(result, at, C_LOCKED_AT, PN_MOMENT_NONE),
		.lease_expires_at_us = pn_query_int(
		    result, at, C_LEASE_EXPIRES_AT, PN_MOMENT_NONE),
		.completed_at_us =
		    pn_query_int(result, at, C_COMPLETED_AT, PN_MOMENT_NONE),
		.expires_at_us =
		    pn_query_int(result, at, C_EXPIRES_AT, PN_MOMENT_NONE),
		.status = pn_query_int(result, at, C_STATUS, 0),
		.reason = pn_query_str(result, at, C_REASON),
	};
}

struct listing {
	struct pn_query *query;
	const struct pn_guard_key_filter *filter;
	const char *after; /* of the first route that is read */
	int64_t left;
	int r; /* what ended it */
	pn_guard_key_fn row;
	void *payload;
	struct pn_error *error;
};

/* One route's keys; != 0 when the list is at its end. Values of a result have a
 * NUL behind them, and so have a filter's. */
static int
list_scope(const struct pn_guard_scope_row *scope, void *payload)
{
	struct listing *listing = payload;
	PN_CLEANUP(pn_result_freep) PGresult *last = NULL;
	const char *after = listing->after;
	int64_t count = PN_QUERY_ROWS;
	int r = 0;

	listing->after = "";
	while (r == 0 && listing->left > 0 && count == PN_QUERY_ROWS) {
		struct pn_query_text text;
		const char *values[] = { scope->tenant.data, scope->route.data,
			after, listing->filter->state,
			pn_query_number(&text, 0,
			    listing->left < PN_QUERY_ROWS ? listing->left
							  : PN_QUERY_ROWS) };
		PGresult *result = NULL;

		r = pn_query_run(listing->query, pn_sql_guard_keys,
		    PN_COUNT(values), values, &result, listing->error);
		if (r < 0)
			break;
		PQclear(last);
		last = result;
		count = PQntuples(result);
		listing->left -= count;
		assert(listing->left >= 0);
		for (int i = 0; r == 0 && i < count; i++) {
			struct pn_guard_key_row row =
			    pn_query_guard_key_row(result, i);

			after = row.key.data;
			r = listing->row(&row, listing->payload);
		}
	}
	listing->r = r;
	return r != 0 || listing->left == 0;
}

static bool
is_wanted(const char *filter, const char *value)
{
	return filter == NULL || strcmp(filter, value) == 0;
}

int
pn_query_guard_keys(struct pn_query *query,
    const struct pn_guard_key_filter *filter, pn_guard_key_fn row,
    void *payload, struct pn_error *ret_error)
{
	struct listing listing = {
		.query = query,
		.filter = filter,
		.after = filter->after_key == NULL ? "" : filter->after_key,
		.left = filter->limit,
		.row = row,
		.payload = payload,
		.error = ret_error,
	};
	struct search search = { .tenant = filter->tenant,
		.route = filter->route,
		.after_tenant = filter->after_tenant,
		.after_route = filter->after_route };
	struct pn_guard_scope_row named = { pn_str_from(filter->tenant),
		pn_str_from(filter->route) };
	bool whole = filter->tenant != NULL && filter->route != NULL;
	int r = 0;

	assert(filter->limit >= 0);
	assert((filter->after_key == NULL) == (filter->after_tenant == NULL) &&
	       (filter->after_key == NULL) == (filter->after_route == NULL));
	/* The rest of the route that the last page ended in. */
	if (!whole && filter->after_key != NULL) {
		named = (struct pn_guard_scope_row){ pn_str_from(
							 filter->after_tenant),
			pn_str_from(filter->after_route) };
		if (is_wanted(filter->tenant, filter->after_tenant) &&
		    is_wanted(filter->route, filter->after_route))
			r = list_scope(&named, &listing);
		listing.after = "";
	}
	if (whole)
		r = list_scope(&named, &listing);
	else if (r == 0)
		r = query_scopes(
		    query, &search, list_scope, &listing, ret_error);
	if (listing.r != 0)
		return listing.r;
	return r < 0 ? r : 0;
}
