/*
 * What a request of a client is in the gateway, what it came to, and what is
 * remembered of that. Private to src/guard.
 */
#ifndef PN_GUARD_RESULT_H
#define PN_GUARD_RESULT_H

#include <stdatomic.h>

#include "paynotify/limits.h"

#include "guard_internal.h"

struct pn_flight;

/* -- what a request came to (result.c) ---------------------------------------- */

/* Shared by all who are given it, freed by the last. Immutable. */
struct pn_result {
	_Atomic int refs;
	int status;
	int64_t expires_at_us; /* of its key; 0: it is not kept */
	struct pn_str headers; /* lines for whose request was sent */
	struct pn_str kept;    /* lines for all others */
	struct pn_str body;
};

/* Copies. NULL: no memory. One reference is the caller's. */
struct pn_result *pn_result_new(int status, struct pn_str headers,
    struct pn_str kept, struct pn_str body) PN_MUSTCHECK;
struct pn_result *pn_result_ref(struct pn_result *result);
void pn_result_unref(struct pn_result *result); /* NULL is fine */

/* -- a request of a client -------------------------------------------------------- */

/* The job of a call. */
struct pn_guard_job {
	struct pn_call *call;
	struct pn_guard *guard;
	const struct pn_guard_route *route;
	struct pn_str path, rest; /* of pn_guard_path() */
	struct pn_str tenant, key;
	unsigned char hash[PN_SHA256_BYTES];
	bool is_safe;

	/* In its flight, or among those that are to be answered. */
	struct pn_guard_job *next;
	bool leads;             /* its request is the one that is sent */
	int64_t until_us;       /* it waits for another's answer; monotonic */
	int64_t waits_since_us; /* for an equal one; 0: it is the first */

	/* How it is answered: a result, else a problem. */
	struct pn_result *result; /* a reference of its own */
	bool replayed;
	enum pn_problem problem;
	const char *detail; /* until it is answered */
	int64_t retry_after_us;
};

struct pn_jobs {
	struct pn_guard_job *first, **end;
};

void pn_jobs_init(struct pn_jobs *jobs);
void pn_jobs_add(struct pn_jobs *jobs, struct pn_guard_job *job);
struct pn_guard_job *pn_jobs_take(struct pn_jobs *jobs); /* NULL: empty */

/* It waits for another one's answer from now on, if it does not already. */
void pn_job_waits(struct pn_guard_job *job, int64_t now_us);
/* What is to be done when the lock is no longer held. flight.c */
struct pn_after {
	struct pn_jobs answers;
	struct pn_flight *freed; /* by next */
};
void pn_after_init(struct pn_after *after);
void pn_after_do(struct pn_after *after);

/* In the metrics (route_series.c): how it is answered. */
void pn_guard_count(const struct pn_guard_job *job, enum pn_problem problem);
/* Not under the lock. The job may be gone when they return. */
void pn_job_answer(struct pn_guard_job *job);
void pn_job_answer_problem(struct pn_guard_job *job, enum pn_problem problem);

/* -- what is remembered (memory.c) ---------------------------------------------- */

/* Answers of completed keys, the least used first to go. Under the lock. */
struct pn_memory {
	struct pn_memory_entry **buckets;
	struct pn_memory_entry *newest, *oldest;
	size_t bytes;
};

int pn_memory_open(struct pn_memory *memory) PN_MUSTCHECK;
void pn_memory_close(struct pn_memory *memory);
/* Borrowed; NULL: not remembered. *ret_same: for this request. */
struct pn_result *pn_memory_find(struct pn_memory *memory,
    const unsigned char digest[PN_CLAIM_DIGEST_BYTES],
    const unsigned char hash[PN_SHA256_BYTES], int64_t now_us, bool *ret_same);
/* Without memory, or too large, it is not remembered. */
void pn_memory_put(struct pn_memory *memory,
    const unsigned char digest[PN_CLAIM_DIGEST_BYTES],
    const unsigned char hash[PN_SHA256_BYTES], struct pn_result *result);
void pn_memory_forget(struct pn_memory *memory,
    const unsigned char digest[PN_CLAIM_DIGEST_BYTES]);
void pn_memory_forget_all(struct pn_memory *memory);

/* -- claims in doubt (doubt.c) ----------------------------------------------------- */

/* Tokens of claims that may have been committed unseen. Under the lock. */
struct pn_doubt {
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	unsigned char hash[PN_SHA256_BYTES];
	unsigned char token[PN_LEASE_TOKEN_BYTES];
	int64_t until_us; /* 0: taken, or none */
};
struct pn_doubts {
	struct pn_doubt ring[PN_BATCH_EVENTS_MAX];
	size_t next;
	int64_t until_us; /* the last one's */
};

/* Keeps the token of the flight's claim; gives it that of an equal one before
 * it, if there is one. */
void pn_doubts_put(struct pn_doubts *doubts, const struct pn_flight *flight);
void pn_doubts_take(
    struct pn_doubts *doubts, struct pn_flight *flight, int64_t now_us);

#endif
