/*
 * What the files of src/ingest share: accounts as routes, request ids, and what
 * is said about a request (log, metrics, receipts). Any thread, except opening
 * and closing.
 */
#ifndef PN_INGEST_INTERNAL_H
#define PN_INGEST_INTERNAL_H

#include <pthread.h>

#include "paynotify/ingest.h"
#include "paynotify/log.h"
#include "paynotify/rate.h"
#include "paynotify/series.h"

/* What is counted of an account (route_series.c). */
struct pn_route_series {
	struct pn_series *requests;
	struct pn_series *request_seconds, *verify_seconds; /* the provider's */
	struct pn_series *clock_offset;
	struct pn_key_series {
		unsigned char fingerprint[PN_SHA256_BYTES];
		struct pn_series *verified;
	} * keys;
	size_t key_count;
	struct pn_certificate_series {
		const char *serial; /* the account's */
		int64_t not_after_us;
		struct pn_series *expires;
	} * certificates;
	size_t certificate_count;
};

struct pn_route {
	struct pn_accounts *accounts; /* who holds the route holds them */
	const struct pn_provider *provider;
	const struct pn_conf_account *conf;
	void *account;        /* the provider's */
	struct pn_str path;   /* "/notify/alipay/shop1" */
	struct pn_str name;   /* "notify/alipay": the store's request_path */
	struct pn_rate *rate; /* of unverified requests; changes */
	struct pn_route_series series;
};

struct pn_ingest {
	pthread_mutex_t lock;
	struct pn_accounts *accounts; /* under the lock: those of now */
	struct pn_store *store;
	unsigned (*status_of)(enum pn_outcome outcome);
};

/* -- sets of accounts (accounts.c) ---------------------------------------- */

/* As pn_ingest_warn_certificates(). */
void pn_accounts_warn_certificates(
    const struct pn_accounts *accounts, int64_t now_us);
/* As pn_ingest_route(), without a reference. */
const struct pn_route *
pn_accounts_route(const struct pn_accounts *accounts, struct pn_str path);

/* -- what is counted (route_series.c) --------------------------------------- */

/* Of an account that is open. -ENOMEM. pn_route_series_close() in any case,
 * before the account is closed. */
int pn_route_series_open(struct pn_route *route) PN_MUSTCHECK;
void pn_route_series_close(struct pn_route *route);
void pn_route_warn_certificates(const struct pn_route *route, int64_t now_us);
void pn_route_count_verified(const struct pn_route *route,
    const unsigned char fingerprint[PN_SHA256_BYTES]);
/* Of a notification that was recorded as new. signed_at_us may be
 * PN_MOMENT_NONE. */
void pn_route_note_clock(
    const struct pn_route *route, int64_t signed_at_us, int64_t received_us);

/* -- request ids (request_id.c) ------------------------------------------- */

/* A UUID of version 7 (RFC 9562): ordered by time, so that receipts grow at
 * one end of their index. */
void
pn_request_id_make(int64_t now_us, unsigned char ret_id[PN_REQUEST_ID_BYTES]);

/* -- what a verdict means (outcome.c), pure --------------------------------- */

enum pn_outcome pn_ingest_outcome(enum pn_verdict verdict);
enum pn_request_end pn_ingest_end(enum pn_verdict verdict);
/* Short text for a reply; the same for all causes of an outcome. */
const char *pn_ingest_message(enum pn_outcome outcome);

/* -- what is told (report.c) ------------------------------------------------ */

/* One line about a request that was not accepted; unverified ones are gated. */
void pn_report_refused(struct pn_ingest_job *job);
void pn_report_rate_limited(struct pn_ingest_job *job);
void pn_report_alarm(struct pn_ingest_job *job);
void pn_report_conflict(struct pn_ingest_job *job);
/* why NULL: the store did not take it. What it says of itself is told as well. */
void pn_report_unavailable(struct pn_ingest_job *job, const char *why);
void pn_report_cut(struct pn_ingest_job *job, const char *why);
void pn_report_not_allowed(struct pn_ingest_job *job, const char *why);
/* At debug only: just before done(). */
void pn_report_answered(struct pn_ingest_job *job, const char *verdict);
/* A lossy receipt of a request that was refused unverified. brief: without body
 * and headers, since whoever floods would fill the database with them. */
void pn_report_receipt(struct pn_ingest_job *job, const char *verdict,
    unsigned status, bool brief);

/* "Name: value LF" of the provider's evidence headers. data NULL: no memory. */
struct pn_str pn_evidence_headers(const struct pn_provider *provider,
    const struct pn_request *request, struct pn_arena *arena);

#endif
