/*
 * One order as a timeline: the requests that told of it, the events that were
 * recorded, every attempt to push one, what was done by hand; and at the end
 * where each event stands with each consumer now.
 */
#ifndef PN_TIMELINE_H
#define PN_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/deliveries.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

enum { PN_TIMELINE_ROWS_MAX = 2000 }; /* receipts, and events, that are read */

/* One of the five is set. */
struct pn_timeline_row {
	int64_t at_us;    /* PN_MOMENT_NONE: where it stands now */
	const char *what; /* "receipt", "event", "attempt", "action",
			   * "delivery" */
	int64_t seq;      /* of the event that it is about; receipts: -1 */
	const struct pn_receipt_row *receipt;
	const struct pn_event_row *event;
	const struct pn_attempt_row *attempt;
	const struct pn_action_row *action;
	const struct pn_delivery_row *delivery;
};
/* Appends whatever text the caller wants to have of the row. */
typedef void (*pn_timeline_write_fn)(
    struct pn_buf *out, const struct pn_timeline_row *row);

struct pn_timeline_entry {
	int64_t at_us;
	const char *what;
	struct pn_str text; /* as written; borrowed */
};

struct pn_timeline;

/* tenant NULL: any. 0, sorted by time and maybe empty; -ENOMEM; < 0 as the
 * queries say. */
int pn_timeline_read(struct pn_query *query, const char *tenant,
    const char *out_trade_no, pn_timeline_write_fn write,
    struct pn_timeline **ret_timeline, struct pn_error *ret_error) PN_MUSTCHECK;
void pn_timeline_free(struct pn_timeline *timeline);
void pn_timeline_freep(struct pn_timeline **timeline);
size_t pn_timeline_count(const struct pn_timeline *timeline);
struct pn_timeline_entry
pn_timeline_at(const struct pn_timeline *timeline, size_t index);
/* There is more than is read. */
bool pn_timeline_is_cut(const struct pn_timeline *timeline);

/* A row as a JSON object: the writer of --json and of the admin port. */
void
pn_timeline_write_json(struct pn_buf *out, const struct pn_timeline_row *row);

#endif
