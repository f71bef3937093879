/*
 * The database at a glance. For reading; as query.h. Each query is cheap however
 * much is stored: what is not counted is estimated, and says so.
 */
#ifndef PN_STATS_H
#define PN_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

/* Receipts of one account with one verdict: in the last minute, in the last
 * hour (that minute too), in the last day. */
struct pn_traffic_row {
	struct pn_str provider, tenant, verdict;
	int64_t minute, hour, day;
	bool about; /* some of it is an estimate */
};
/* Rows are valid during the call only; a return != 0 ends the list and is
 * returned. The most frequent first. */
typedef int (*pn_traffic_row_fn)(
    const struct pn_traffic_row *row, void *payload);
int pn_query_traffic(struct pn_query *query, pn_traffic_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_stats {
	int64_t at_us;  /* the database's clock */
	int64_t events; /* the greatest seq: at least as many as there are */
	int64_t quarantine_open, conflicts_open;
	bool quarantine_about; /* there are more: only the newest counted */
	int64_t keys_hot, keys_archived; /* estimates */
	int64_t guard_processing, guard_failed;
	bool guard_about; /* there are more */
	int64_t database_bytes;
	int64_t schema_number;
	bool is_standby;
	int64_t standbys, synchronous_standbys; /* streaming now */
	struct pn_str synchronous_names;        /* empty: none is waited for */
	struct pn_str server_version;
	/* The oldest snapshot that somebody may still look back to: how many
	 * transactions ago, and who. kind "": there is none. */
	int64_t snapshot_age;
	struct pn_str snapshot_kind, snapshot_name, snapshot_role;
};
typedef int (*pn_stats_fn)(const struct pn_stats *stats, void *payload);
int pn_query_stats(struct pn_query *query, pn_stats_fn stats, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* Settings of the server that matter to it, by name. */
typedef int (*pn_setting_fn)(
    struct pn_str name, struct pn_str value, void *payload);
int pn_query_settings(struct pn_query *query, pn_setting_fn setting,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
