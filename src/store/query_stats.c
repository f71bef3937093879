/*
 * The database at a glance: traffic.sql, stats.sql, and the oldest snapshot by
 * the statement of the janitor.
 *
 * Somebody looks at it again every few seconds while things go wrong, so each
 * statement has a bound that does not grow with what is stored.
 */
#include "paynotify/stats.h"

#include <assert.h>

#include "query.h"
#include "statements.h"

enum traffic_column {
	T_PROVIDER,
	T_TENANT,
	T_VERDICT,
	T_MINUTE,
	T_HOUR,
	T_DAY,
	T_ABOUT,
	T_COUNT
};

enum stats_column {
	C_AT,
	C_EVENTS,
	C_QUARANTINE_OPEN,
	C_CONFLICTS_OPEN,
	C_QUARANTINE_ABOUT,
	C_KEYS_HOT,
	C_KEYS_ARCHIVED,
	C_GUARD_PROCESSING,
	C_GUARD_FAILED,
	C_GUARD_ABOUT,
	C_DATABASE_BYTES,
	C_SCHEMA_NUMBER,
	C_IS_STANDBY,
	C_STANDBYS,
	C_SYNCHRONOUS_STANDBYS,
	C_SYNCHRONOUS_NAMES,
	C_SERVER_VERSION,
	C_COUNT
};

/* Of snapshot.sql. */
enum snapshot_column { S_XID, S_AGE, S_KIND, S_NAME, S_ROLE };

int
pn_query_traffic(struct pn_query *query, pn_traffic_row_fn row, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r =
	    pn_query_run(query, pn_sql_traffic, 0, NULL, &result, ret_error);

	if (r < 0)
		return r;
	assert(PQnfields(result) == T_COUNT);
	for (int i = 0; r == 0 && i < PQntuples(result); i++) {
		struct pn_traffic_row out = {
			.provider = pn_query_str(result, i, T_PROVIDER),
			.tenant = pn_query_str(result, i, T_TENANT),
			.verdict = pn_query_str(result, i, T_VERDICT),
			.minute = pn_query_int(result, i, T_MINUTE, 0),
			.hour = pn_query_int(result, i, T_HOUR, 0),
			.day = pn_query_int(result, i, T_DAY, 0),
			.about = pn_query_bool(result, i, T_ABOUT),
		};

		r = row(&out, payload);
	}
	return r;
}

static struct pn_stats
stats_at(const PGresult *result)
{
	assert(PQntuples(result) == 1 && PQnfields(result) == C_COUNT);
	return (struct pn_stats){
		.at_us = pn_query_int(result, 0, C_AT, PN_MOMENT_NONE),
		.events = pn_query_int(result, 0, C_EVENTS, 0),
		.quarantine_open =
		    pn_query_int(result, 0, C_QUARANTINE_OPEN, 0),
		.conflicts_open = pn_query_int(result, 0, C_CONFLICTS_OPEN, 0),
		.quarantine_about =
		    pn_query_bool(result, 0, C_QUARANTINE_ABOUT),
		.keys_hot = pn_query_int(result, 0, C_KEYS_HOT, 0),
		.keys_archived = pn_query_int(result, 0, C_KEYS_ARCHIVED, 0),
		.guard_processing =
		    pn_query_int(result, 0, C_GUARD_PROCESSING, 0),
		.guard_failed = pn_query_int(result, 0, C_GUARD_FAILED, 0),
		.guard_about = pn_query_bool(result, 0, C_GUARD_ABOUT),
		.database_bytes = pn_query_int(result, 0, C_DATABASE_BYTES, 0),
		.schema_number = pn_query_int(result, 0, C_SCHEMA_NUMBER, 0),
		.is_standby = pn_query_bool(result, 0, C_IS_STANDBY),
		.standbys = pn_query_int(result, 0, C_STANDBYS, 0),
		.synchronous_standbys =
		    pn_query_int(result, 0, C_SYNCHRONOUS_STANDBYS, 0),
		.synchronous_names =
		    pn_query_str(result, 0, C_SYNCHRONOUS_NAMES),
		.server_version = pn_query_str(result, 0, C_SERVER_VERSION),
	};
}

int
pn_query_stats(struct pn_query *query, pn_stats_fn stats, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	PN_CLEANUP(pn_result_freep) PGresult *snapshot = NULL;
	struct pn_stats out;
	int r = pn_query_run(query, pn_sql_stats, 0, NULL, &result, ret_error);

	if (r == 0)
		r = pn_query_run(
		    query, pn_sql_snapshot, 0, NULL, &snapshot, ret_error);
	if (r < 0)
		return r;
	out = stats_at(result);
	if (PQntuples(snapshot) > 0) {
		out.snapshot_age = pn_query_int(snapshot, 0, S_AGE, 0);
		out.snapshot_kind = pn_query_str(snapshot, 0, S_KIND);
		out.snapshot_name = pn_query_str(snapshot, 0, S_NAME);
		out.snapshot_role = pn_query_str(snapshot, 0, S_ROLE);
	}
	return stats(&out, payload);
}

int
pn_query_settings(struct pn_query *query, pn_setting_fn setting, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int r =
	    pn_query_run(query, pn_sql_settings, 0, NULL, &result, ret_error);

	for (int i = 0; r == 0 && i < PQntuples(result); i++)
		r = setting(pn_query_str(result, i, 0),
		    pn_query_str(result, i, 1), payload);
	return r;
}
