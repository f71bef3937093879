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

/* For a thread of a daemon, which must not hang. */
struct pn_query_options {
	bool writable; /* else it reads only */
	int stop_fd;   /* readable: every wait ends, -ECANCELED; -1: none */
	int64_t timeout_us; /* of a statement: then -ETIME; 0: none */
};
/* All queries return -ECONNRESET (lost), -ETIMEDOUT (the server does not even
 * say that it took too long) or -ECANCELED (told to stop), after which the
 * connection must be closed; -EACCES or -EPERM (the role lacks a right), -ENOENT
 * (the schema lacks something), -ETIME or -EIO (the server refused), after which
 * it can go on. */
int pn_query_open_with(const char *dsn, const struct pn_query_options *options,
    struct pn_query **ret_query, struct pn_error *ret_error) PN_MUSTCHECK;
/* Whether the connection, idle until now, still stands; does not wait. */
bool pn_query_is_alive(struct pn_query *query);

struct pn_event_filter {
	/* NULL: any. A type that ends in "*" is the beginning of several. */
	const char *tenant, *type, *key, *out_trade_no;
	int64_t since_us;   /* received; PN_MOMENT_NONE: any */
	int64_t after_seq;  /* only greater ones; -1: from the start */
	int64_t before_seq; /* newest_first: only lesser ones; 0: all */
	int64_t limit;
	bool newest_first;
};
/* row is valid during the call only; a return != 0 ends the list and is
 * returned. */
typedef int (*pn_event_row_fn)(const struct pn_event_row *row, void *payload);
int pn_query_events(struct pn_query *query,
    const struct pn_event_filter *filter, pn_event_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* By id (evt_...), key or seq; a key may be one of several tenants: of this
 * (NULL: of all). 1: there is none. */
int pn_query_event(struct pn_query *query, const char *which,
    const char *tenant, pn_event_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_receipt_row {
	struct pn_str id; /* UUID text */
	int64_t received_at_us;
	struct pn_str provider, tenant, verdict, reason, notify_id, peer;
	struct pn_str out_trade_no;
	int64_t status, body_bytes;
};
/* All that a receipt's verdict may be, NULL-terminated: the store's, the
 * providers' (pn_verdict_name) and the receiver's own. */
extern const char *const pn_receipt_verdicts[];
struct pn_receipt_filter {
	const char *tenant, *provider, *verdict, *out_trade_no;
	int64_t since_us;
	const char *before_id; /* only those before it; NULL: all */
	int64_t limit;
};
typedef int (*pn_receipt_row_fn)(
    const struct pn_receipt_row *row, void *payload);
int pn_query_receipts(struct pn_query *query,
    const struct pn_receipt_filter *filter, pn_receipt_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
