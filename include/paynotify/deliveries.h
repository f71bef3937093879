/*
 * What an operator sees of the hand-off and does about it. Each action needs a
 * reason and records the actor (paynotify.delivery_actions).
 */
#ifndef PN_DELIVERIES_H
#define PN_DELIVERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

struct pn_consumer_row {
	struct pn_str name;
	bool pushed;          /* an endpoint; else it pulls by SQL */
	struct pn_str state;  /* "active", "paused", "disabled" */
	struct pn_str reason; /* of a state that is not active */
	struct pn_str url;    /* endpoints only */
	int64_t behind;       /* events recorded after its mark, at most:
				  * those its filter leaves out count too */
	int64_t leased, waiting, retrying, dead;
	int64_t oldest_due_us; /* received_at of the oldest not handed off,
				  * dead ones aside; PN_MOMENT_NONE: none */
};
typedef int (*pn_consumer_row_fn)(
    const struct pn_consumer_row *row, void *payload);
int pn_query_consumers(struct pn_query *query, pn_consumer_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_delivery_row {
	struct pn_str consumer, event_id, type, tenant, out_trade_no;
	int64_t seq, consumer_id;
	struct pn_str state; /* "new", "leased", "waiting", "retry", "dead",
			      * "done", "skipped" (show only) */
	int64_t attempts;
	int64_t due_us; /* next attempt or end of the lease; PN_MOMENT_NONE */
	struct pn_str reason; /* of the last failure, or of the skip */
	bool redelivery;
	int64_t received_at_us;
};
typedef int (*pn_delivery_row_fn)(
    const struct pn_delivery_row *row, void *payload);
struct pn_delivery_filter {
	const char *consumer, *state, *tenant; /* NULL: any */
	int64_t after_seq;                     /* -1: from the start */
	int64_t after_consumer; /* ... of that seq, an id; 0: behind them all */
	int64_t limit;
};
/* What is not done: leased, waiting, retrying, dead; in order of seq. */
int pn_query_deliveries(struct pn_query *query,
    const struct pn_delivery_filter *filter, pn_delivery_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_attempt_row {
	struct pn_str consumer; /* "(removed)": one that there was */
	int64_t attempt, started_at_us, latency_us, status;
	struct pn_str error, answer; /* answer: undecodable bytes as U+FFFD */
	struct pn_str outcome;       /* "done", "retry", "dead" */
	bool redelivery;
};
typedef int (*pn_attempt_row_fn)(
    const struct pn_attempt_row *row, void *payload);
/* One event by id (evt_...), key or seq: where it stands with every consumer
 * whose filter takes it, then every attempt, oldest first. 1: no such event. */
int pn_query_delivery(struct pn_query *query, const char *which,
    pn_delivery_row_fn delivery, pn_attempt_row_fn attempt, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* What was done by hand about one event, by its seq; oldest first. */
struct pn_action_row {
	int64_t at_us;
	struct pn_str consumer, action; /* "redeliver", "skip" */
	struct pn_str actor, reason;
};
typedef int (*pn_action_row_fn)(const struct pn_action_row *row, void *payload);
int pn_query_actions(struct pn_query *query, int64_t seq, pn_action_row_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

enum pn_delivery_action {
	PN_ACTION_REDELIVER, /* once more, out of order, same webhook-id */
	PN_ACTION_SKIP,      /* never (again); its order goes on */
	PN_ACTION_PAUSE,     /* the consumer: claims nothing */
	PN_ACTION_RESUME,
	PN_ACTION_REMOVE, /* the consumer: forgotten, with all that it has not
			   * been handed; what was tried stays on record */
};
struct pn_action {
	enum pn_delivery_action action;
	const char *consumer;
	const char *event; /* id, key or seq; NULL for PAUSE, RESUME, REMOVE */
	const char *state; /* REDELIVER or SKIP without event: all of the
			    * consumer's deliveries in this state ("dead") */
	const char *actor, *reason;
};
enum pn_acted {
	PN_ACT_REFUSED = 1, /* to redeliver, in flight at the moment or not yet
			     * handed off; to skip, done, or claimed in an open
			     * transaction; to remove, with leases */
	PN_ACT_UNKNOWN,     /* there is no such consumer or event */
};
/* *ret_count: how many it was done to. 0, or an enum pn_acted with a text that
 * says why and what to do. -EPERM: the role may not act. The connection must be
 * able to write. */
int pn_query_act(struct pn_query *query, const struct pn_action *action,
    int64_t *ret_count, struct pn_error *ret_error) PN_MUSTCHECK;
/* As pn_query_open, but able to write. */
int pn_query_open_writable(const char *dsn, struct pn_query **ret_query,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
