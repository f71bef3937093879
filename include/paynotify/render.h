/*
 * What the store knows, as JSON: `paynotifyctl ... --json` prints the objects
 * that the admin port answers with, and both are made here. Events have their
 * own in event.h, since applications get those too.
 *
 * Each appends one object, on one line and without a line end. Every member is
 * always there, null where there is nothing to tell. Pure; any thread.
 */
#ifndef PN_RENDER_H
#define PN_RENDER_H

#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/deliveries.h"
#include "paynotify/error.h"
#include "paynotify/guard_keys.h"
#include "paynotify/quarantine.h"
#include "paynotify/query.h"

/* Of lists. */
void pn_render_receipt(struct pn_buf *out, const struct pn_receipt_row *row);
void pn_render_consumer(struct pn_buf *out, const struct pn_consumer_row *row);
void pn_render_delivery(struct pn_buf *out, const struct pn_delivery_row *row);
void
pn_render_quarantine(struct pn_buf *out, const struct pn_quarantine_row *row);
void
pn_render_guard_key(struct pn_buf *out, const struct pn_guard_key_row *row);

/* A quarantine entry with its events, and what it came to mean. */
struct pn_quarantine_recorded { /* the event that has its key */
	int64_t seq;            /* -1: there is none */
	int64_t received_at_us;
	char id[PN_EVENT_ID_TEXT_BYTES];
};
int pn_quarantine_recorded(struct pn_query *query,
    const struct pn_quarantine_row *row,
    struct pn_quarantine_recorded *ret_recorded,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_render_quarantine_entry(struct pn_buf *out,
    const struct pn_quarantine_row *row,
    const struct pn_quarantine_recorded *recorded);
/* What to do about what was refused for this reason. */
const char *pn_quarantine_hint(struct pn_str reason);

/* One key with what was done about it: an object with its end to come; the
 * actions, each with a comma before it unless it is the first; the end. */
void
pn_render_guard_key_begin(struct pn_buf *out, const struct pn_guard_key *key);
void pn_render_guard_action(
    struct pn_buf *actions, const struct pn_guard_action_row *row);
void pn_render_guard_key_end(struct pn_buf *out, const struct pn_buf *actions);
/* The beginning of an answer's body, not cut in the middle of a character. */
struct pn_str pn_guard_key_body_head(const struct pn_guard_key *key);

/* Where the events that are called which (id, key or seq; a key may be one of
 * several tenants: of this, or NULL) stand: each as an object of the event's names
 * with the lists "deliveries", "attempts" and "actions". A return != 0 of object
 * ends it and is returned. 1: there is no such event. < 0: as the queries say. */
typedef int (*pn_render_fn)(struct pn_str json, void *payload);
int pn_render_handoff(struct pn_query *query, const char *which,
    const char *tenant, pn_render_fn object, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* What was done, or (error not NULL or empty) refused. */
void pn_render_act(struct pn_buf *out, const struct pn_action *action,
    int64_t count, const char *error);
void pn_render_guard_act(struct pn_buf *out,
    const struct pn_guard_action *action, const char *error);

#endif
