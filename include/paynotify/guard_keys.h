/*
 * What an operator sees of the idempotency guard's keys and does about them.
 * Each action needs a reason and records the actor (paynotify.guard_actions).
 * The keys of webhooks, which are in the same table, are none of these.
 */
#ifndef PN_GUARD_KEYS_H
#define PN_GUARD_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/query.h"
#include "paynotify/str.h"

enum { PN_GUARD_BODY_HEAD_BYTES = 1024 }; /* of an answer that is shown */

/* A route of a tenant under which there are keys. */
struct pn_guard_scope_row {
	struct pn_str tenant, route; /* "POST /v1/charges" */
};
/* Rows are valid during the call only; a return != 0 ends the list and is
 * returned. */
typedef int (*pn_guard_scope_fn)(
    const struct pn_guard_scope_row *row, void *payload);
/* Where this key is known, in the permanent tier too: of one tenant, one route,
 * or all (NULL) that have a key that is not archived yet. */
int pn_query_guard_scopes(struct pn_query *query, const char *tenant,
    const char *route, const char *key, pn_guard_scope_fn row, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_guard_key_row {
	struct pn_str tenant, route, key;
	struct pn_str state; /* "PROCESSING", "COMPLETED", "FAILED"; empty: it
			      * is in the permanent tier only */
	struct pn_str lease; /* of PROCESSING: "held"; "ended", its holder did
			      * not come back; "free", the next one runs */
	int64_t attempts, crashes;
	int64_t created_at_us, locked_at_us; /* PN_MOMENT_NONE: never */
	int64_t lease_expires_at_us, completed_at_us, expires_at_us;
	int64_t status;       /* of the answer; 0: none */
	struct pn_str reason; /* why it was set aside or let go */
};
typedef int (*pn_guard_key_fn)(
    const struct pn_guard_key_row *row, void *payload);
struct pn_guard_key_filter {
	const char *tenant, *route, *state; /* NULL: any */
	/* Only what is behind this key; NULL, all three: from the start. */
	const char *after_tenant, *after_route, *after_key;
	int64_t limit;
};
/* In order of tenant, route, key. FAILED ones are the dead letters. */
int pn_query_guard_keys(struct pn_query *query,
    const struct pn_guard_key_filter *filter, pn_guard_key_fn row,
    void *payload, struct pn_error *ret_error) PN_MUSTCHECK;

/* All that is known of one key. */
struct pn_guard_key {
	struct pn_guard_key_row row;
	struct pn_str request_hash;     /* hex */
	struct pn_str response_headers; /* "Name: value LF" lines */
	int64_t body_bytes;             /* of the answer; -1: there is none */
	const unsigned char *body_head; /* at most PN_GUARD_BODY_HEAD_BYTES */
	int64_t body_head_bytes;
	/* The permanent tier: of a life before this one, or its last. */
	bool archived;
	struct pn_str archived_hash; /* hex */
	int64_t archived_first_seen_at_us, archived_attempts;
};
typedef int (*pn_guard_key_whole_fn)(
    const struct pn_guard_key *key, void *payload);
/* What was done by hand about a key. */
struct pn_guard_action_row {
	int64_t at_us;
	struct pn_str action; /* "release", "forget" */
	struct pn_str actor, reason;
};
typedef int (*pn_guard_action_fn)(
    const struct pn_guard_action_row *row, void *payload);
/* The key, then each action, oldest first; both with payload. 1: there is no such
 * key (what was done about it is called all the same). */
int pn_query_guard_key(struct pn_query *query, const char *tenant,
    const char *route, const char *key, pn_guard_key_whole_fn whole,
    pn_guard_action_fn action, void *payload,
    struct pn_error *ret_error) PN_MUSTCHECK;

enum pn_guard_act {
	PN_GUARD_SET_FREE, /* the next request runs; a holder loses its lease */
	PN_GUARD_FORGET,   /* as if it had never come */
};
enum pn_guard_acted {
	PN_GUARD_NO_KEY = 1, /* there is no such key */
	PN_GUARD_REFUSED,    /* set free: it has its answer; forget: somebody is
			      * at work under it */
	PN_GUARD_LOCKED,     /* in a transaction that is open at this moment */
	PN_GUARD_BAD_NAME,   /* tenant, route or key cannot be one of a key */
};
struct pn_guard_action {
	enum pn_guard_act act;
	const char *tenant, *route, *key;
	const char *actor, *reason;
};
/* 0, or an enum pn_guard_acted with a text that says why. Daemons are told: what
 * they remember of the key is forgotten. -EPERM: the role may not act. The
 * connection must be able to write (pn_query_open_writable). */
int pn_query_guard_act(struct pn_query *query,
    const struct pn_guard_action *action,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
