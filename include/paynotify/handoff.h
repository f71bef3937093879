/*
 * The hand-off as the deliverer sees it: claim events of an endpoint under a
 * lease, say what came of each. The rules (order, leases, the low-water mark)
 * are SQL: sql/0004_claim.sql and 0005_handoff.sql, which applications call too.
 *
 * A hand-off is one connection and belongs to one thread.
 */
#ifndef PN_HANDOFF_H
#define PN_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/event.h"

enum { PN_TOKEN_BYTES = 16 }; /* a UUID: paynotify.ack(token) */

struct pn_handoff;

/* Connects, pins the session's settings, checks the schema, LISTENs to
 * paynotify_events. stop_fd readable: give up (-ECANCELED). 0; -errno with the
 * reason. dsn is not kept. */
int pn_handoff_open(const char *dsn, int stop_fd,
    struct pn_handoff **ret_handoff, struct pn_error *ret_error) PN_MUSTCHECK;
void pn_handoff_close(struct pn_handoff *handoff); /* NULL is fine */

/* All below: 0; -errno: the connection is of no use any more, close it (what
 * was being said may or may not be stored). */

/* Makes or changes the endpoint's row (paynotify.endpoints) and its consumer.
 * 1: a consumer of that name pulls by SQL: the text says so. */
int pn_handoff_put_endpoint(struct pn_handoff *handoff,
    const struct pn_conf_deliver *endpoint,
    struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_claimed {
	struct pn_event_row row; /* as commands print it */
	unsigned char token[PN_TOKEN_BYTES];
	int attempt; /* 1: the first */
	bool redelivery;
};
/* claimed is valid during the call only. A return < 0 ends the claim (what was
 * claimed comes back when the lease ends). */
typedef int (*pn_claimed_fn)(const struct pn_claimed *claimed, void *payload);

enum {
	PN_HANDOFF_HELD = 1, /* the endpoint is paused or disabled */
};
/* At most events_max events (PN_CLAIM_EVENTS_MAX), leased for lease_us. -ENOENT:
 * the endpoint's consumer was removed; the connection is as good as before. */
int pn_handoff_claim(struct pn_handoff *handoff, const char *endpoint,
    int events_max, int64_t lease_us, pn_claimed_fn each, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

enum pn_delivery_outcome {
	PN_DELIVERY_DONE,  /* never again */
	PN_DELIVERY_RETRY, /* after retry_after_us */
	PN_DELIVERY_DEAD,  /* listed for the operator */
	PN_DELIVERY_BACK,  /* not attempted: at once, and not counted */
};
struct pn_delivery_result {
	unsigned char token[PN_TOKEN_BYTES];
	enum pn_delivery_outcome outcome;
	int64_t retry_after_us;
	/* The attempt, for the record; not for BACK. */
	int attempt;
	bool redelivery;
	int64_t started_at_us; /* wall clock */
	int64_t latency_us;
	int status;           /* HTTP, 0: no answer */
	struct pn_str error;  /* why it failed; empty: it did not */
	struct pn_str answer; /* first bytes of the body, any bytes */
	/* Set by pn_handoff_settle(): the lease was lost before, so that the
	 * outcome counts for nothing; the attempt is recorded all the same. */
	bool lost;
};
/* All in one statement. *ret_lost: how many of the leases were lost. */
int pn_handoff_settle(struct pn_handoff *handoff,
    struct pn_delivery_result *results, size_t count, size_t *ret_lost,
    struct pn_error *ret_error) PN_MUSTCHECK;

enum {
	PN_HANDOFF_MOVED = 1, /* the endpoint has another URL by now */
};
/* The endpoint answered 410 at this URL: nothing is claimed for it until an
 * operator resumes it. PN_HANDOFF_MOVED: nothing is changed. */
int pn_handoff_disable(struct pn_handoff *handoff, const char *endpoint,
    const char *url, const char *reason,
    struct pn_error *ret_error) PN_MUSTCHECK;

enum {
	PN_HANDOFF_NOTIFIED = 1, /* there are new events */
	PN_HANDOFF_WOKEN = 2,    /* wake_fd is readable */
};
/* Waits for a notification, for wake_fd (-1: none) or until timeout_us has
 * passed (0: a look). 0: the time is over. */
int pn_handoff_wait(struct pn_handoff *handoff, int wake_fd, int64_t timeout_us,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
