/*
 * What the tests of the hand-off share.
 */
#ifndef PN_HANDOFF_SUPPORT_H
#define PN_HANDOFF_SUPPORT_H

#include "paynotify/handoff.h"

#include "store_support.h"

enum { CLAIMS_MAX = 64 };

/* What one claim gave: results are filled in but for what came of them. */
struct claims {
	size_t count;
	struct pn_delivery_result results[CLAIMS_MAX];
	int64_t seqs[CLAIMS_MAX];
	char json[2048]; /* of the last event */
	int stop_with;   /* returned from the callback, if not 0 */
};

/* As the configuration would have it, without filters. */
struct pn_conf_deliver endpoint_conf(char *name);
/* Connected; an endpoint of that name is made. */
struct pn_handoff *handoff_new(const char *dsn, const char *endpoint);
/* A claim with a lease of a minute; what pn_handoff_claim() returned. */
int handoff_take(struct pn_handoff *handoff, const char *endpoint, int max,
    struct claims *ret_claims);
/* The same, which must give this many. */
void handoff_take_some(struct pn_handoff *handoff, const char *endpoint,
    size_t wanted, struct claims *ret_claims);
/* All have the same outcome; how many leases were lost. */
size_t handoff_settle(struct pn_handoff *handoff, struct claims *claims,
    enum pn_delivery_outcome outcome);
/* Claims one and makes it dead: HTTP 404, with an answer that is no text. */
void handoff_kill_one(struct pn_handoff *handoff, const char *endpoint);
/* A payment and its refund: one order. */
void record_order(struct pn_store *store, const char *trade);

#endif
