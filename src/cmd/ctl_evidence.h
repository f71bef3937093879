/*
 * The parts of `evidence verify`. Private to src/cmd; one thread.
 */
#ifndef PN_CTL_EVIDENCE_H
#define PN_CTL_EVIDENCE_H

#include "paynotify/evidence.h"

#include "ctl.h"

enum {
	CTL_EVENT_SAME,
	CTL_EVENT_DIFFERS,
	CTL_EVENT_UNREAD, /* by this account, as it is configured now */
};

/* ctl_evidence_event.c: reads the request of row again, as its account did, and
 * compares the event that it tells with the one that row was asked for by. One
 * of the above, with why (in the arena or static); < 0 when the database or
 * memory is away. */
int ctl_evidence_compare(struct pn_query *query,
    const struct pn_provider *provider, const void *account,
    const struct pn_evidence_row *row, const struct pn_request *request,
    struct pn_arena *arena, const char **ret_reason) PN_MUSTCHECK;

#endif
