/*
 * The moving parts of the gateway: requests in flight, what they came to, what
 * is remembered. Private to src/guard.
 *
 * One mutex, guard->lock, guards all flights, rooms and the memory. It is never
 * held while a client is answered; it is held while an operation is given to
 * the claims or a request to the client (they have locks of their own, and call
 * back from threads of their own, without them).
 */
#ifndef PN_GUARD_FLIGHT_H
#define PN_GUARD_FLIGHT_H

#include <pthread.h>

#include "paynotify/client.h"
#include "paynotify/limits.h"
#include "paynotify/log.h"

#include "guard_internal.h"
#include "head.h"
#include "result.h"

/* -- flights ----------------------------------------------------------------------- */

/*
 * Equal requests under one key, while it is not settled what they come to.
 *
 *    +---<--- lease over ---<--+
 *    |                         |
 *   CLAIMING --run--> QUEUED --room--> RUNNING --answer--> SETTLING --> (gone)
 *     |  ^                                |                  ^
 *   busy look again                       +-- ANSWERED ------+
 *     v  |                              (a renewal is under way)
 *    WAITING
 *
 * Nothing is sent under a lease that may be over: whose turn it is then claims
 * again, with all who wait, and is told what became of the key meanwhile.
 *
 * A flight has one operation with the claims at a time, besides which only a
 * renewal may be under way; it is freed when its last operation is done and
 * nobody waits in it any more.
 */
enum pn_flight_state {
	PN_FLIGHT_CLAIMING,
	PN_FLIGHT_WAITING, /* somebody else has the key */
	PN_FLIGHT_QUEUED,  /* it is ours; max_in_flight others are at work */
	PN_FLIGHT_RUNNING, /* the upstream is asked */
	PN_FLIGHT_ANSWERED,
	PN_FLIGHT_SETTLING, /* for longer than a commit may take: is_kept */
};

struct pn_flight {
	struct pn_guard *guard;
	const struct pn_guard_route *route;
	struct pn_flight *next_in_bucket;
	struct pn_flight *next, *prev; /* of all */
	struct pn_flight *next_queued; /* of the room */
	enum pn_flight_state state;
	int64_t since_us; /* in this state; monotonic */
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	unsigned char hash[PN_SHA256_BYTES];
	struct pn_buf texts; /* what scope points into */
	struct pn_claim_scope scope;

	/* Who waits. Of what is QUEUED or later the first leads: its request is
	 * the one that is sent. It stays, unless all are abandoned; who joins
	 * after that leads no more. */
	struct pn_jobs jobs;

	struct pn_claim claim;
	bool in_doubt; /* one before it may have been committed; doubt.c */
	int64_t doubt_until_us; /* in_doubt: its token is of use until then */
	bool judged;            /* a claim has said what it found */
	bool noted; /* the key was settled while a claim was under way */
	int64_t look_at_us;    /* WAITING: when to claim again */
	int64_t busy_until_us; /* the lease of who has it, as far as is known */

	/* Of the upstream. */
	struct pn_client_request request;
	struct pn_buf url, headers;
	int attempt;
	int64_t expires_at_us;
	int64_t held_since_us;

	/* Its lease. It may be over from lease_until_us on: counted from when
	 * the claim or the renewal was submitted, which is before the database
	 * gave it, however long the commit took. */
	struct pn_settlement renewal;
	int64_t lease_until_us, renewal_since_us, renew_at_us;
	bool renewing, lost, is_hidden;

	/* What it came to, and what is told to the database. */
	struct pn_settlement settlement;
	bool is_kept;
	enum pn_work work;
	struct pn_result *result;
	enum pn_problem problem;
	char reason[PN_REASON_BYTES_MAX];
};

/* max_in_flight of a route. */
struct pn_room {
	int64_t running;                /* or is_kept */
	struct pn_flight *first, **end; /* QUEUED */
};

enum { PN_FLIGHT_BUCKETS = 4096, PN_PASSING_MAX = 256 };

struct pn_guard {
	const struct pn_conf *conf;
	struct pn_guard_routes routes;
	struct pn_room *rooms; /* by the index of the route */
	struct pn_server *server;
	struct pn_client *client;
	struct pn_claims *claims;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is a first flight, or it ends */
	struct pn_flight *buckets[PN_FLIGHT_BUCKETS];
	struct pn_flight *first; /* of all */
	size_t flight_count;
	struct pn_memory memory;
	struct pn_doubts doubts;
	unsigned passing; /* requests without a key; pass.c */
	bool stopping;    /* nothing is claimed or sent any more */
	int64_t stop_at_us;
	bool ending; /* the tick thread ends */

	pthread_t tick;
	bool tick_started;
};

void pn_guard_lock(struct pn_guard *guard);
void pn_guard_unlock(struct pn_guard *guard);

/* flight.c. Takes the job: it will be answered. */
void pn_flight_join(struct pn_guard *guard, struct pn_guard_job *job);
/* claim.c. struct pn_claim.done */
void pn_flight_claimed(struct pn_claim *claim);
/* struct pn_claims_options.settled */
void pn_flight_noted(const unsigned char *digest, void *payload);

/* The rest is under the lock. */

/* Those whose digests are like this one's, by next_in_bucket. */
struct pn_flight **
pn_flight_bucket(struct pn_guard *guard, const unsigned char *digest);
/* claim.c. Claims, again. */
void pn_flight_claim(struct pn_flight *flight, int64_t now_us);
/* Its result, for replays; unless it may just have been forgotten. */
void pn_flight_remember(struct pn_flight *flight);
/* lease.c. Tells the database act, then ends the flight. */
void pn_flight_settle(
    struct pn_flight *flight, enum pn_settle_act act, int64_t now_us);
/* SETTLING: who waits need wait no longer for the database. */
void pn_flight_keep(struct pn_flight *flight, struct pn_after *after);
void pn_flight_renew(struct pn_flight *flight, int64_t now_us);
/* Its lease is lost: who asks for its key from now on finds it no more, and who
 * waits in it for the one that leads joins anew. */
void pn_flight_hide(
    struct pn_flight *flight, int64_t now_us, struct pn_after *after);
/* flight.c. Answers all who wait as the flight says: result, else problem. */
void pn_flight_tell(struct pn_flight *flight, struct pn_after *after);
/* That, and it is gone. */
void pn_flight_end(struct pn_flight *flight, struct pn_after *after);
/* Answers those who have waited long enough, but not who leads. */
void pn_flight_expire_jobs(
    struct pn_flight *flight, int64_t now_us, struct pn_after *after);
/* Answers all who wait; the flight goes on without them. */
void pn_flight_abandon(
    struct pn_flight *flight, enum pn_problem problem, struct pn_after *after);
/* Where max_in_flight counts. */
struct pn_room *pn_flight_room(const struct pn_flight *flight);
void pn_flight_log(
    const struct pn_flight *flight, enum pn_log_level level, const char *what);

/* upstream.c. The key is ours: sends the request, or queues it. */
void pn_flight_run(struct pn_flight *flight, int64_t now_us);
/* Whether the key is certainly ours still. */
bool pn_flight_is_held(const struct pn_flight *flight, int64_t now_us);
/* QUEUED, and no renewal is under way: goes on as its lease says. */
void pn_flight_look_at_queue(struct pn_flight *flight, int64_t now_us);
/* The upstream has answered and no renewal is under way: settles. */
void pn_flight_conclude(
    struct pn_flight *flight, int64_t now_us, struct pn_after *after);
/* Out of its room's queue, unsent. */
void pn_flight_unqueue(struct pn_flight *flight);
/* Its place is free: for the next, if it can be sent. */
void pn_flight_leave_room(struct pn_flight *flight, int64_t now_us);
/* A job's, to its upstream, without done; url and headers are borrowed. */
struct pn_client_request pn_job_request(const struct pn_guard_job *job,
    const struct pn_buf *url, const struct pn_buf *headers);
/* How it ended: not answered, with an odd status; cut, with half the headers. */
enum pn_client_end pn_guard_end(const struct pn_client_request *request);
/* pass.c: a method without effect. Not under the lock. */
void pn_guard_pass(struct pn_guard *guard, struct pn_guard_job *job);

void *pn_tick_main(void *payload); /* tick.c; the guard */

#endif
