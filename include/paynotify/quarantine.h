/*
 * What an operator sees of the quarantine: notifications whose signature was
 * right and that could not be recorded.
 */
#ifndef PN_QUARANTINE_H
#define PN_QUARANTINE_H

#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

struct pn_quarantine_row {
	int64_t id, received_at_us;
	struct pn_str provider, tenant, route; /* "notify/alipay" */
	struct pn_str subject; /* the key; else the notification's id, or the
				* digest of its body */
	struct pn_str fingerprint; /* hex */
	struct pn_str reason;
	struct pn_str state;        /* "open", "accepted", "rejected",
				     * "resolved" */
	struct pn_str out_trade_no; /* of its event, if one could be made */
	struct pn_str receipt_id;   /* UUID text */
	int64_t resolved_at_us;     /* PN_MOMENT_NONE: it is open */
	struct pn_str resolved_by, resolution;
	struct pn_str events; /* JSON, an array of what would have been
			       * recorded; of one entry only, else empty */
};
/* Rows are valid during the call only; a return != 0 ends the list and is
 * returned. */
typedef int (*pn_quarantine_row_fn)(
    const struct pn_quarantine_row *row, void *payload);

struct pn_quarantine_filter {
	const char *tenant, *provider, *state; /* NULL: any */
	int64_t since_us;                      /* PN_MOMENT_NONE: any */
	int64_t before_id;                     /* only lesser ones; 0: all */
	int64_t limit;
};
/* The newest first. */
int pn_query_quarantine(struct pn_query *query,
    const struct pn_quarantine_filter *filter, pn_quarantine_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;
/* One entry, with its events. 1: there is none. */
int pn_query_quarantine_entry(struct pn_query *query, int64_t id,
    pn_quarantine_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
