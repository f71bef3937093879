/*
 * What the files of src/guard share. Everything down to the flights is pure:
 * configuration and a request in, bytes out; any thread.
 */
#ifndef PN_GUARD_INTERNAL_H
#define PN_GUARD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/buf.h"
#include "paynotify/claims.h"
#include "paynotify/conf.h"
#include "paynotify/guard.h"
#include "paynotify/request.h"
#include "paynotify/series.h"
#include "paynotify/server.h"

/* -- problems (problem.c) --------------------------------------------------- */

/* What the gateway itself answers, as application/problem+json (RFC 9457). A
 * row of problem.c each: type, title, status, what the client should do. */
enum pn_problem {
	PN_PROBLEM_NONE,
	PN_PROBLEM_NOT_FOUND,
	PN_PROBLEM_METHOD,
	PN_PROBLEM_BODY_TOO_LARGE,
	PN_PROBLEM_URI_TOO_LONG,
	PN_PROBLEM_HEADERS_TOO_MANY,
	PN_PROBLEM_LENGTH_AMBIGUOUS,
	PN_PROBLEM_BODY_UNEXPECTED,
	PN_PROBLEM_METHOD_OVERRIDE,
	PN_PROBLEM_STOPPING,
	PN_PROBLEM_KEY_MISSING,
	PN_PROBLEM_KEY_EMPTY,
	PN_PROBLEM_KEY_TOO_LONG,
	PN_PROBLEM_KEY_REPEATED,
	PN_PROBLEM_KEY_MALFORMED,
	PN_PROBLEM_TENANT_MISSING, /* the header is, twice there, or no name */
	PN_PROBLEM_TENANT_UNTRUSTED, /* not from a trusted proxy */
	PN_PROBLEM_API_KEY,          /* missing or unknown */
	PN_PROBLEM_MISMATCH,
	PN_PROBLEM_IN_PROGRESS,
	PN_PROBLEM_SET_ASIDE, /* FAILED */
	PN_PROBLEM_EXPIRED,
	PN_PROBLEM_DATABASE, /* nothing was sent upstream */
	PN_PROBLEM_NO_ROOM,  /* ditto; max_in_flight are under way */
	PN_PROBLEM_UPSTREAM_UNREACHABLE, /* ditto */
	PN_PROBLEM_UPSTREAM_TIMEOUT,
	PN_PROBLEM_UPSTREAM_LOST,
	PN_PROBLEM_RESPONSE_TOO_LARGE,
	PN_PROBLEM_LEASE_LOST,
	PN_PROBLEM_NOT_STORED,  /* the work was done; its answer is not kept */
	PN_PROBLEM_INTERRUPTED, /* stopped while the upstream was asked */
	PN_PROBLEM_MEMORY,
	PN_PROBLEM_COUNT
};

/* Sets the answer: in static memory or the arena. detail: what of this case is
 * worth telling besides the row's text; NULL or ASCII. retry_after_us: for
 * Retry-After where the row has one, rounded up to seconds, at least 1; 0: the
 * row's own. allow: for METHOD, "GET, POST". When memory is out, a static
 * answer of the same status without a detail. */
void pn_problem_answer(enum pn_problem problem, const char *detail,
    int64_t retry_after_us, const char *allow, struct pn_arena *arena,
    struct pn_answer *ret_answer);
unsigned pn_problem_status(enum pn_problem problem);
/* "key-missing": the end of its type, for logs and the README's test. */
const char *pn_problem_name(enum pn_problem problem);

/* -- paths (path.c) --------------------------------------------------------- */

/* The one form of all that are the same URI (RFC 3986, 6.2.2), in the arena; its
 * own form is itself. 0; 1: has a "%" without two hex digits, or "//"; -ENOMEM. */
int pn_guard_path(struct pn_str path, struct pn_arena *arena,
    struct pn_str *ret_path) PN_MUSTCHECK;
/* The same of a query; what is none of a URI is left as it is. 0, -ENOMEM. */
int pn_guard_query(struct pn_str query, struct pn_arena *arena,
    struct pn_str *ret_query) PN_MUSTCHECK;

/* -- routes (route.c, tenant.c) --------------------------------------------- */

/* What an upstream's status says of the work. */
enum pn_work {
	PN_WORK_DONE,    /* kept: it is the answer */
	PN_WORK_NOT,     /* nothing was done: the key is free */
	PN_WORK_UNKNOWN, /* maybe */
};

enum { PN_STATUS_COUNT = 600 };

struct pn_api_keys; /* digests, sorted; tenant.c */

/* What is counted of a route (route_series.c). */
struct pn_guard_series {
	struct pn_series *requests, *upstream;
	struct pn_series *seconds, *wait, *held;
};

struct pn_guard_route {
	const struct pn_conf_guard_route *conf;
	const struct pn_conf *all; /* that conf is in */
	struct pn_guard_series series;
	struct pn_str text;   /* "POST /v1/charges": a scope's route */
	struct pn_str method; /* "POST" */
	struct pn_str path;   /* "/v1/charges"; of "/v1/x/" and "*": "/v1/x/";
			       * as pn_guard_path() has it, as in text */
	bool has_rest;        /* path is a prefix */
	struct pn_claim_terms terms;
	unsigned char work[PN_STATUS_COUNT]; /* enum pn_work by status */
	struct pn_api_keys *api_keys;        /* NULL: tenant by other means */
};

struct pn_guard_routes {
	struct pn_guard_route *routes; /* in the order of the configuration */
	size_t count;
	struct pn_arena *arena; /* their texts */
};

/* -EINVAL with file:line: two routes of one method and path, an upstream with a
 * query, a status in two lists, a bad line of an API key file, a tenant that is
 * given by no or several means. -ENOMEM. */
int pn_guard_routes_open(const struct pn_conf *conf,
    struct pn_guard_routes *ret_routes,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_guard_routes_close(struct pn_guard_routes *routes);

/* To be called, and undone, between those two. */
void pn_guard_series_open(struct pn_guard_routes *routes);
void pn_guard_series_close(struct pn_guard_routes *routes);

struct pn_guard_match {
	const struct pn_guard_route *route; /* NULL: see the others */
	bool is_safe;       /* GET, HEAD, OPTIONS to a path of a route: passes
			     * through to its upstream; route is set */
	bool path_known;    /* with another method: 405 */
	struct pn_str rest; /* of the path, behind a prefix; else empty */
};
/* path is of the form of pn_guard_path(), as the routes' are. An exact path before
 * a prefix, a longer prefix before a shorter one. */
struct pn_guard_match pn_guard_route_find(const struct pn_guard_routes *routes,
    struct pn_str method, struct pn_str path);
/* "GET, HEAD, OPTIONS, POST": what may be asked of that path. data NULL: no
 * memory. */
struct pn_str pn_guard_route_allow(const struct pn_guard_routes *routes,
    struct pn_str path, struct pn_arena *arena);
enum pn_work
pn_guard_route_work(const struct pn_guard_route *route, int status);

/* Whose request it is. The tenant is in the call's arena or the route's. An API
 * key comes as `Authorization: Bearer KEY` or `X-Api-Key: KEY`. */
enum pn_problem pn_guard_tenant(const struct pn_guard_route *route,
    const struct pn_call *call, struct pn_str *ret_tenant) PN_MUSTCHECK;

/* Reads lines of "SHA-256-in-hex tenant" (# begins a comment). */
int pn_api_keys_open(const struct pn_conf_file *file,
    struct pn_api_keys **ret_keys, struct pn_error *ret_error) PN_MUSTCHECK;
void pn_api_keys_close(struct pn_api_keys *keys);
/* data NULL: there is no such key. */
struct pn_str
pn_api_keys_find(const struct pn_api_keys *keys, struct pn_str api_key);

/* -- keys and requests (key.c) ---------------------------------------------- */

/* Idempotency-Key or X-Idempotency-Key: bare or a quoted string of RFC 8941,
 * which is the same key. In the arena. */
enum pn_problem pn_guard_key(const struct pn_request *request,
    struct pn_arena *arena, struct pn_str *ret_key) PN_MUSTCHECK;
/* SHA-256 of what makes a request another one: rest of the path, query, and the
 * body: of JSON (by its media type, "application/json" or "...+json") the
 * canonical form, of all else, and of what is not JSON by RFC 8259, the bytes. 0,
 * or -ENOMEM. */
int pn_guard_request_hash(const struct pn_request *request, struct pn_str rest,
    struct pn_arena *arena,
    unsigned char ret_hash[PN_SHA256_BYTES]) PN_MUSTCHECK;

#endif
