/*
 * What commands and the admin port read: one query a function, one object a
 * row. Each opens, or borrows, a connection of its own: never a writer's.
 */
#ifndef PN_QUERY_H
#define PN_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/event.h"

struct pn_query; /* a connection for reading */

int pn_query_open(const char *dsn, struct pn_query **ret_query,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_query_close(struct pn_query *query);

struct pn_event_filter {
	const char *tenant, *type, *key, *out_trade_no; /* NULL: any */
	int64_t since_us;  /* received; PN_MOMENT_NONE: any */
	int64_t after_seq; /* only greater ones; -1: from the start */
	int64_t limit;
	bool newest_first;
};
/* row is valid during the call only; a return != 0 ends the list and is
 * returned. */
typedef int (*pn_event_row_fn)(const struct pn_event_row *row, void *payload);
int pn_query_events(struct pn_query *query,
    const struct pn_event_filter *filter, pn_event_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* By id (evt_...), key or seq. 1: there is none. */
int pn_query_event(struct pn_query *query, const char *which,
    pn_event_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_receipt_row {
	struct pn_str id; /* UUID text */
	int64_t received_at_us;
	struct pn_str provider, tenant, verdict, reason, notify_id, peer;
	struct pn_str out_trade_no;
	int64_t status, body_bytes;
};
struct pn_receipt_filter {
	const char *tenant, *provider, *verdict, *out_trade_no;
	int64_t since_us;
	int64_t limit;
};
typedef int (*pn_receipt_row_fn)(
    const struct pn_receipt_row *row, void *payload);
int pn_query_receipts(struct pn_query *query,
    const struct pn_receipt_filter *filter, pn_receipt_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
