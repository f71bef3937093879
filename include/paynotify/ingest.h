/*
 * The pipeline: route -> provider.verify -> events -> store -> reply. The http
 * layer gives it requests and gets outcomes; it knows no socket and no SQL.
 */
#ifndef PN_INGEST_H
#define PN_INGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/provider.h"
#include "paynotify/request.h"
#include "paynotify/series.h"
#include "paynotify/store.h"

/* -- accounts -------------------------------------------------------------- */

/* All accounts of one configuration, their keys parsed once. Immutable and
 * counted; any thread. */
struct pn_accounts;

/* Keeps a reference to conf, as the caller keeps its own. Errors carry
 * file:line; -ENOMEM. One reference is the caller's. */
int pn_accounts_open(struct pn_conf *conf, struct pn_accounts **ret_accounts,
    struct pn_error *ret_error) PN_MUSTCHECK;
struct pn_accounts *pn_accounts_ref(struct pn_accounts *accounts);
/* The last one closes them. NULL is fine. */
void pn_accounts_unref(struct pn_accounts *accounts);
/* Whether the caller's reference is the only one: it stays so for accounts that
 * no pipeline serves. */
bool pn_accounts_is_last(const struct pn_accounts *accounts);
/* The keys of them all, for the store; in the accounts' memory. */
const struct pn_store_key *
pn_accounts_keys(const struct pn_accounts *accounts, size_t *ret_count);

/* -- the pipeline ---------------------------------------------------------- */

struct pn_ingest;

/* Serves these accounts: keeps a reference of its own. -ENOMEM. */
int pn_ingest_open(struct pn_accounts *accounts, struct pn_ingest **ret_ingest,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* Routes that are held outlive it. NULL is fine. */
void pn_ingest_close(struct pn_ingest *ingest);
/* Serves other accounts from now on (with a reference of its own); requests that
 * have a route end with those they have. Returns the old ones with the reference
 * to them, which the caller had better keep until it is the last: else a thread
 * that answers requests closes them. Any thread. */
struct pn_accounts *pn_ingest_exchange(
    struct pn_ingest *ingest, struct pn_accounts *accounts) PN_MUSTCHECK;
void pn_ingest_set_store(struct pn_ingest *ingest, struct pn_store *store);
/* A line in the log for each certificate of the accounts that are served which
 * ends within 30 days of now: to be called once a day. Any thread. NULL is
 * fine. */
void pn_ingest_warn_certificates(struct pn_ingest *ingest, int64_t now_us);
/* How an outcome is answered, for the receipts of what is refused: the table is
 * the http layer's. Before the first request. */
void pn_ingest_set_statuses(
    struct pn_ingest *ingest, unsigned (*status_of)(enum pn_outcome outcome));

struct pn_route; /* an account, and a reference to those it belongs to */

/* "/notify/alipay/shop1" -> its route, for pn_route_unref(); NULL: 404. Query
 * strings are ignored. */
const struct pn_route *
pn_ingest_route(struct pn_ingest *ingest, struct pn_str path) PN_MUSTCHECK;
void pn_route_unref(const struct pn_route *route); /* NULL is fine */

/* Whether the account takes notifications from there ([alipay] allow). An empty
 * peer is one whose address is not known. Pure. */
bool pn_ingest_admits(const struct pn_route *route, struct pn_str peer);
/* Where the whole time of its requests is counted. */
struct pn_series *pn_ingest_request_seconds(const struct pn_route *route);

/* Refuses before there is a whole request. A lossy receipt is written, but for
 * PN_REFUSE_QUEUE_FULL. */
enum pn_ingest_refusal {
	PN_REFUSE_BODY_OVER_LIMIT,
	PN_REFUSE_LENGTH_AMBIGUOUS, /* Content-Length twice, or with
				     * Transfer-Encoding; a folded header */
	PN_REFUSE_METHOD,           /* another than POST */
	PN_REFUSE_ADDRESS,          /* pn_ingest_admits() says no */
	PN_REFUSE_HEADERS,          /* more than are read */
	PN_REFUSE_QUEUE_FULL,
};

/*
 * One request in the pipeline. The caller fills the upper part; arena, request,
 * route and job must live until release(). done() is called exactly once, maybe
 * before pn_ingest_submit returns, maybe from a store thread; it gets the
 * outcome and the rendered reply (in the arena). release() comes after done(),
 * exactly once, when nothing will touch the job again.
 */
struct pn_ingest_job {
	const struct pn_route *route;
	const struct pn_request *request;
	struct pn_arena *arena;
	void (*done)(struct pn_ingest_job *job);
	void (*release)(struct pn_ingest_job *job);
	void *payload;
	bool (*rate_limited)(struct pn_ingest_job *job); /* asked once for an
		* unverified request; true: 429 and a receipt without the
		* body, but no line in the log; may be NULL */
	uint64_t body_bytes; /* of pn_ingest_refuse: the length that was
			      * announced or read, where request.body holds
			      * less; 0: request.body.len */

	/* Set before done(). */
	enum pn_outcome outcome;
	struct pn_reply reply;
	unsigned char request_id[PN_REQUEST_ID_BYTES];

	/* The pipeline's own. */
	struct pn_ingest *ingest;
	int64_t received_us; /* realtime */
	struct pn_notification notification;
	struct pn_submission submission;
};
void pn_ingest_submit(struct pn_ingest *ingest, struct pn_ingest_job *job);
/* Refuses without verifying: job needs route, request (body may be cut) and
 * arena; sets outcome and reply; no callbacks. */
void pn_ingest_refuse(struct pn_ingest *ingest, struct pn_ingest_job *job,
    enum pn_ingest_refusal why);

#endif
