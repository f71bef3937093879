/*
 * The idempotency guard's keys in the database: claims, and what became of
 * them, many at a time in one statement each. The rules are those of
 * sql/0007_guard.sql, which applications call too; here are only its callers.
 *
 * Two threads, each with a connection of its own: claims and settlements do not
 * wait for each other's commit. One transaction for both would save a commit,
 * but then keys that an application holds would hold up the answers of others. A
 * third connection listens to, and sends on, paynotify_guard: which keys were
 * settled, by any daemon.
 *
 * An answer to an operation always tells the truth of the database. So it may
 * be late: who cannot wait keeps a clock of its own, and the operation until
 * done().
 */
#ifndef PN_CLAIMS_H
#define PN_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/event.h"
#include "paynotify/str.h"

enum {
	PN_LEASE_TOKEN_BYTES = 16,  /* a UUID */
	PN_CLAIM_DIGEST_BYTES = 16, /* of a scope: see pn_claim_digest() */
};

/* A key and where it holds. Two tenants' equal keys are two. */
struct pn_claim_scope {
	struct pn_str tenant; /* 1 to 128 bytes, no control characters */
	struct pn_str route;  /* "POST /v1/charges" */
	struct pn_str key;    /* 1 to 255 printable ASCII characters */
};

/* What a notification on paynotify_guard calls a key by: the first half of
 * SHA-256(tenant LF route LF key). */
void pn_claim_digest(const struct pn_claim_scope *scope,
    unsigned char ret_digest[PN_CLAIM_DIGEST_BYTES]);

/* The keys' own part of an operation. */
struct pn_claims_item {
	struct pn_claims_item *next;
	const struct pn_claim_scope *scope;
	size_t bytes;
	int64_t deadline_us, retry_at_us; /* monotonic */
	bool sent_again;                  /* maybe committed already */
	bool alone;                       /* was refused in company */
	bool patient; /* its deadline is its own, not commit_timeout */
};

/* -- claims ---------------------------------------------------------------- */

/* Of a key whose lease ended, and of one whose life did. */
enum pn_claim_unknown { PN_CLAIM_RETRY, PN_CLAIM_HOLD };
enum pn_claim_after { PN_CLAIM_NEW, PN_CLAIM_REFUSE };

/* Of a route. */
struct pn_claim_terms {
	int64_t lease_us, ttl_us;
	enum pn_claim_unknown unknown;
	enum pn_claim_after after_expiry;
	int attempts_max;
};

enum pn_claim_found {
	PN_CLAIM_RUN,         /* it is ours, under the token, for lease_us */
	PN_CLAIM_REPLAY,      /* it has its answer */
	PN_CLAIM_MISMATCH,    /* it was used for another request */
	PN_CLAIM_BUSY,        /* somebody has it: see retry_after_us */
	PN_CLAIM_FAILED,      /* set aside, see reason */
	PN_CLAIM_EXPIRED,     /* it was used, and its time is over */
	PN_CLAIM_UNAVAILABLE, /* the database did not say within commit_timeout.
			     * Maybe the key is ours all the same: see
			     * may_be_ours. Nobody has it then until the
			     * lease ends, or it is claimed once more */
	PN_CLAIM_FOUND_COUNT
};

struct pn_claim {
	/* The caller's: kept, with all it points to, until done(). */
	struct pn_claim_scope scope;
	unsigned char request_hash[PN_SHA256_BYTES];
	/* Made by the caller, random: a claim that is sent again after a lost
	 * connection knows its own by it. */
	unsigned char token[PN_LEASE_TOKEN_BYTES];
	const struct pn_claim_terms *terms;
	/* Once, on a thread of the keys'; must not block. */
	void (*done)(struct pn_claim *claim);
	void *payload;

	/* Set before done(); the texts are valid during done() only. */
	enum pn_claim_found found;
	bool may_be_ours;      /* of UNAVAILABLE: claim under the same token */
	int attempt;           /* of RUN, REPLAY, BUSY, FAILED */
	int status;            /* of REPLAY: 200 to 599 */
	struct pn_str headers; /* of REPLAY: "Name: value LF" lines */
	struct pn_str body;    /* of REPLAY */
	int64_t expires_at_us; /* of RUN, REPLAY: end of the key's life */
	/* Of BUSY: how much longer its lease lasts, or 1 s where a transaction
	 * that is open has the key. Of RUN: ours, what is left of it. */
	int64_t retry_after_us;
	struct pn_str reason; /* of FAILED; of BUSY if nobody is at work any
			       * more, and the lease runs out */

	struct pn_claims_item item;
};

/* -- settlements ------------------------------------------------------------ */

enum pn_settle_act {
	PN_SETTLE_COMPLETE, /* this is the answer */
	PN_SETTLE_FREE,     /* nothing was done: as if it had never come */
	PN_SETTLE_AGAIN, /* not known what was done; the next one runs at once */
	PN_SETTLE_ASIDE, /* not known; an operator decides */
	PN_SETTLE_DOUBT, /* not known; the next one runs when the lease ends */
	PN_SETTLE_RENEW, /* the lease ends lease_us from now */
};

enum pn_settled {
	PN_SETTLED,
	PN_SETTLED_LOST,    /* the lease was: nothing was changed */
	PN_SETTLED_UNKNOWN, /* the database did not say in time */
};

struct pn_settlement {
	/* The caller's, as above. One of a token at a time. */
	struct pn_claim_scope scope;
	unsigned char token[PN_LEASE_TOKEN_BYTES];
	enum pn_settle_act act;
	int status;            /* of COMPLETE */
	struct pn_str headers; /* of COMPLETE; ASCII */
	struct pn_str body;    /* of COMPLETE */
	struct pn_str reason;  /* of AGAIN, ASIDE, DOUBT: ASCII, may be empty */
	int64_t lease_us;      /* of RENEW */
	/* Monotonic: it is tried until then, over as many connections as that
	 * takes, but for commit_timeout at least. */
	int64_t until_us;
	void (*done)(struct pn_settlement *settlement);
	void *payload;

	enum pn_settled settled; /* set before done() */

	struct pn_claims_item item;
};

/* -- the keys --------------------------------------------------------------- */

struct pn_claims;

struct pn_claims_options {
	const char *dsn; /* copied */
	int64_t commit_timeout_us;
	/* A key with this digest was settled, released or expired, by whatever
	 * daemon; NULL: some may have been (the connection that listens was
	 * lost meanwhile). On a thread of the keys'; must not block. */
	void (*settled)(const unsigned char *digest, void *payload);
	void *payload;
};

/* Never waits for the database: it connects in the background. -ENOMEM, -EAGAIN
 * (no thread). */
int pn_claims_open(const struct pn_claims_options *options,
    struct pn_claims **ret_claims, struct pn_error *ret_error) PN_MUSTCHECK;
/* What is queued gets at most grace_us to end, then UNAVAILABLE or
 * PN_SETTLED_UNKNOWN, each with its done(). NULL is fine. */
void pn_claims_close(struct pn_claims *claims, int64_t grace_us);

/* Any thread, also from a done(). Never fail: done() is called once, later, on a
 * thread of the keys'. */
void pn_claims_submit(struct pn_claims *claims, struct pn_claim *claim);
void
pn_claims_settle(struct pn_claims *claims, struct pn_settlement *settlement);
/* Whether notifications of what others settle come in: what is remembered of
 * settled keys may be relied on. Any thread. */
bool pn_claims_are_heard(const struct pn_claims *claims);

#endif
