/*
 * The evidence of notifications as it is stored: what was signed, byte for byte,
 * and the key that verified it. For reading; as query.h. Strings are valid
 * during a call only.
 */
#ifndef PN_EVIDENCE_H
#define PN_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

struct pn_evidence_row {
	struct pn_str receipt_id; /* UUID text; empty: none is kept */
	int64_t received_at_us;
	struct pn_str provider, tenant;
	/* "Name: value" lines as UTF-8: each byte is the character of its
	 * number (ISO 8859-1), or somebody has changed them. */
	struct pn_str headers;
	struct pn_str body;            /* bytes */
	struct pn_str key_fingerprint; /* bytes */
	bool key_known;                /* it is in verifying_keys */
	struct pn_str key_pem;         /* empty: symmetric */
	struct pn_str out_trade_no;    /* of its receipt; maybe empty */
	struct pn_str event_id;        /* evt_..., if asked for by an event */
	struct pn_str event_hash;      /* bytes: its fingerprint */
};
struct pn_evidence_filter {
	const char *tenant; /* NULL: any */
	int64_t since_us;   /* received; PN_MOMENT_NONE: any */
};
/* A return != 0 ends the list and is returned. */
typedef int (*pn_evidence_row_fn)(
    const struct pn_evidence_row *row, void *payload);
/* All of it, in order of arrival, some hundred rows in memory at a time. */
int pn_query_evidence(struct pn_query *query,
    const struct pn_evidence_filter *filter, pn_evidence_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;
/* Of the events that which (evt_..., key or seq) names, of one tenant (or NULL:
 * any): one row an event, without a receipt_id where retention has dropped it.
 * 1: there is no such event. */
int pn_query_evidence_of(struct pn_query *query, const char *which,
    const char *tenant, pn_evidence_row_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* How many rows there are, by the planner's statistics: not exact, 0 while
 * there are none. */
int pn_query_evidence_estimate(struct pn_query *query, int64_t *ret_rows,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
