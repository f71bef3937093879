/*
 * What the tests of the guard's keys share: operations with all the memory they
 * need, and what became of them.
 */
#ifndef PN_CLAIMS_SUPPORT_H
#define PN_CLAIMS_SUPPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/claims.h"

#include "store_support.h"

/* A minute, a day, retry, new, 10. */
extern const struct pn_claim_terms TERMS;

struct claim {
	struct pn_claim claim;
	char key[64];
	/* What was told, copied in done(). */
	char headers[256], body[256], reason[256];
	int done_count;
};

struct settlement {
	struct pn_settlement settlement;
	char key[64];
	int done_count;
	int turn; /* of all settlements of the program */
};

/* Of tenant shop1, "POST /v1/charges"; the hash is of request. */
void claim_init(struct claim *claim, const char *key, const char *request);
enum pn_claim_found claim_wait(struct claim *claim);
bool claim_is_done(struct claim *claim);
/* Submits and waits. */
enum pn_claim_found claim_put(struct pn_claims *claims, struct claim *claim,
    const char *key, const char *request);

/* Of what the claim got. body: of COMPLETE. */
void settlement_init(struct settlement *settlement, const struct claim *claim,
    enum pn_settle_act act, const char *body);
enum pn_settled settlement_wait(struct settlement *settlement);
bool settlement_is_done(struct settlement *settlement);
enum pn_settled settle(struct pn_claims *claims, const struct claim *claim,
    enum pn_settle_act act, const char *body);

/* What came of notifications. */
struct heard {
	pthread_mutex_t lock;
	int all; /* settled(NULL) */
	int count;
	unsigned char last[PN_CLAIM_DIGEST_BYTES];
};
struct pn_claims *
claims_new(const char *dsn, int64_t commit_timeout_us, struct heard *heard);
/* Waits until so many have come. */
void heard_wait(struct heard *heard, int count);
int heard_count(struct heard *heard);

/* A database, two sessions beside, and keys whose commit_timeout no test waits
 * for. */
struct claims_fixture {
	char dsn[DSN_BYTES];
	PGconn *db, *other;
	struct pn_claims *claims;
	struct heard heard;
};
int claims_fixture_setup(void **state);
int claims_fixture_teardown(void **state);

/* Those of the lanes and the listener; claims_lane_of() of one lane only. */
#define CLAIMS_SESSIONS                                                 \
	"FROM pg_stat_activity WHERE datname = current_database() AND " \
	"application_name = 'paynotifyd'"

#endif
