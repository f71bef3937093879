/*
 * What the claims*.c files share: lanes, and who listens.
 *
 * A lane is a queue, a thread and a connection. Its mutex guards its queue and
 * its counts; nothing slow happens under it. Operations belong to the queue, or
 * to the thread that took them, or are answered.
 */
#ifndef PN_STORE_CLAIMS_INTERNAL_H
#define PN_STORE_CLAIMS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/claims.h"
#include "paynotify/limits.h"

#include "array.h"
#include "conn.h"
#include "wait.h"

#define PN_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

enum {
	PN_LANE_LOOK_MAX =
	    1024, /* how far past those whose time has not come */
	PN_LANE_PARAMETERS_MAX = 16,
	PN_LANE_HELD_MAX = 16,         /* keys that are remembered as held */
	PN_LANE_BYTES_MAX = 256 << 20, /* of an array: one answer, at worst */
};

struct pn_lane;
struct pn_listener;

/* What makes the lane of claims and that of settlements differ. */
struct pn_lane_kind {
	const char *name; /* also of the prepared statement */
	const char *sql;
	/* Sends them as one statement. 0: committed, and done() was called for
	 * each, but for lane->returned of several, which are to be sent again;
	 * else as pn_conn_run(), and nothing was done. */
	int (*run)(struct pn_lane *lane, struct pn_claims_item *const *items,
	    size_t count, struct pn_error *ret_error);
	/* The database does not say. Calls done(). */
	void (*give_up)(struct pn_claims_item *item);
	/* An open transaction has the key. Calls done(). NULL: it is tried
	 * again. */
	void (*held)(struct pn_claims_item *item);
};

/* A key that an application's transaction had a moment ago. */
struct pn_lane_held {
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	int64_t until_us;
};

struct pn_lane {
	const struct pn_lane_kind *kind;
	struct pn_claims *claims;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t work, drained;
	struct pn_claims_item *first, **last;
	size_t outstanding; /* submitted, and done() has not returned */
	bool stopping;

	/* The thread's own. */
	struct pn_claims_item *batch[PN_BATCH_EVENTS_MAX];
	size_t count;
	size_t returned;    /* of what run() had: in the queue again */
	bool alone_is_next; /* they have every other batch at most */
	struct pn_lane_held held[PN_LANE_HELD_MAX];
	size_t held_next;
	struct pn_conn conn;
	struct pn_backoff backoff;
	struct pn_error fault; /* why the connection is given up */
};

struct pn_claims {
	char *dsn;
	int64_t commit_timeout_us;
	struct pn_stop stop; /* readable: all threads end */
	_Atomic bool outage_logged;
	struct pn_lane claim_lane, settle_lane;
	pthread_t timer;
	bool timer_started;
	struct pn_listener *listener;
};

/* claims_lane.c */
int pn_lane_open(struct pn_lane *lane, const struct pn_lane_kind *kind,
    struct pn_claims *claims) PN_MUSTCHECK;
void pn_lane_submit(struct pn_lane *lane, struct pn_claims_item *item);
/* Gives up what has waited until its deadline. */
void pn_lane_expire(struct pn_lane *lane, int64_t now_us);
/* Waits until nothing is outstanding; false: not by then. */
bool pn_lane_drain(struct pn_lane *lane, int64_t until_us);
/* Ends the thread (the claims' stop is told) and gives up what is queued. */
void pn_lane_stop(struct pn_lane *lane);
/* Gives up what a done() has submitted meanwhile; false: nothing. */
bool pn_lane_clear(struct pn_lane *lane);
void pn_lane_done(struct pn_lane *lane);

/* claims_attempt.c: sends the lane's batch; what is not answered is back in the
 * queue. -errno: the connection is to be closed. */
int pn_lane_attempt(struct pn_lane *lane) PN_MUSTCHECK;
/* Whether a transaction had the key a moment ago: it would hold up others. */
bool pn_lane_is_held(const struct pn_lane *lane,
    const struct pn_claims_item *item, int64_t now_us);
/* claims_lane.c, for the former: from the batch back into the queue; answered
 * for good. */
void pn_lane_return(
    struct pn_lane *lane, struct pn_claims_item *const *items, size_t count);
void pn_lane_answered(struct pn_lane *lane, size_t count);

/* claims_claim.c, claims_settle.c */
extern const struct pn_lane_kind pn_claim_lane, pn_settle_lane;
/* Sends arrays as the parameters of the lane's statement; empties them. */
int pn_lane_send(struct pn_lane *lane, struct pn_array *arrays, size_t count,
    PGresult **ret_result, struct pn_error *ret_error) PN_MUSTCHECK;

/* claims_listen.c */
int pn_listener_open(struct pn_claims *claims,
    const struct pn_claims_options *options,
    struct pn_listener **ret_listener) PN_MUSTCHECK;
/* Waits until all is told, or the time. */
void pn_listener_drain(struct pn_listener *listener, int64_t until_us);
/* The claims' stop is told, and the lanes have ended. */
void pn_listener_close(struct pn_listener *listener);
/* These were settled. Any thread; never blocks. */
void pn_listener_tell(struct pn_listener *listener,
    unsigned char (*digests)[PN_CLAIM_DIGEST_BYTES], size_t count);
bool pn_listener_is_heard(const struct pn_listener *listener);

#endif
