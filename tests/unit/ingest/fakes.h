/*
 * A provider and a store that do as they are told, for the tests of the
 * pipeline: the linker takes these for the real ones.
 */
#ifndef PN_FAKES_H
#define PN_FAKES_H

#include <stdbool.h>

#include "ingest_internal.h"

/* What the provider says next. */
extern struct told {
	struct pn_notification notification;
	int verify_result;
	int reply_failures; /* of the next replies */
} told;
extern int fake_open_accounts;
extern struct pn_event fake_event;

/* What the store was given, and whether it takes anything. */
extern struct pn_submission *submitted;
extern int store_full, refusals, refusal_status;
extern size_t refusal_body_len, refusal_headers_len;
extern uint64_t refusal_body_bytes;
extern char refusal_verdict[32], refusal_reason[128];

/* A caller with three accounts: shop1, shop2, a-b_9. */
struct world {
	struct pn_conf conf, next_conf;
	struct pn_conf_account accounts[3];
	struct pn_accounts *open;
	struct pn_ingest *ingest;
	struct pn_arena *arena;
	struct pn_header headers[3];
	struct pn_request request;
	struct pn_ingest_job job;
	int done, released;
	bool limited;
};
extern char fake_tenants[3][8];

int world_make(void **state);
int world_end(void **state);
unsigned fake_status_of(enum pn_outcome outcome);
/* The provider's next verdict. */
void tell(enum pn_verdict verdict, bool verified);
/* The store's answer to what it was given. */
void store_says(enum pn_store_verdict verdict);
/* Exactly one end, with this outcome; ready for the next. */
void expect(struct world *w, enum pn_outcome outcome);

#endif
