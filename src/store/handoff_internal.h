/*
 * What the handoff*.c files share.
 */
#ifndef PN_STORE_HANDOFF_INTERNAL_H
#define PN_STORE_HANDOFF_INTERNAL_H

#include "paynotify/handoff.h"

#include "conn.h"

struct pn_handoff {
	struct pn_conn conn;
};

/* Names of prepared statements. */
#define PN_HANDOFF_TAKE   "take"
#define PN_HANDOFF_EVENTS "events"
#define PN_HANDOFF_SETTLE "settle"

/* What a statement came to, as the contract has it: 0, or < 0; says more about
 * some. */
int pn_handoff_fault(const struct pn_handoff *handoff, int r,
    struct pn_error *error) PN_MUSTCHECK;

#endif
