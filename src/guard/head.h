/*
 * Headers on their way through the gateway (head.c). Pure; any thread. Private to
 * src/guard.
 */
#ifndef PN_GUARD_HEAD_H
#define PN_GUARD_HEAD_H

#include "guard_internal.h"

/* Whether a header says that another method is meant than the request's own. An
 * upstream may heed it, which would be done without a key or under the key of
 * something else. */
bool pn_guard_overrides_method(const struct pn_request *request);

struct pn_guard_forward {
	const struct pn_guard_route *route;
	const struct pn_call *call;
	struct pn_str rest;
	struct pn_str tenant,
	    key; /* data NULL: it passes through without one */
	int attempt;
	const unsigned char *token;
};
/* "Name: value LF" lines for the upstream: end-to-end headers of the request (not
 * those of RFC 9110 7.6.1, what Connection names, Host, Content-Length, Expect,
 * Accept-Encoding), X-Forwarded-For and X-Forwarded-Host; and of a key
 * Idempotency-Key, Idempotency-Attempt, Idempotency-Token and Idempotency-Tenant,
 * of which nothing that a client says comes through. Nor does a tenant_header, or
 * what is read as one, unless it is the only one and a trusted proxy's. */
void pn_guard_forward_headers(
    const struct pn_guard_forward *forward, struct pn_buf *out);
/* path.c. The upstream's address with rest and query behind it. One that is longer than
 * this is refused before it is sent. */
enum { PN_GUARD_URL_BYTES_MAX = 16 << 10 };
void pn_guard_forward_url(
    const struct pn_guard_forward *forward, struct pn_buf *out);

/* An upstream's header lines (as struct pn_client_request has them) that go on
 * to the client, as lines: the end-to-end ones; without Content-Length, Date,
 * and what begins with Idempotency- or is a name of a replay. */
void pn_guard_answer_headers(struct pn_str lines, struct pn_buf *out);
/* Of those, what is stored for replays: [guard] keep_header, if it is ASCII. */
void pn_guard_kept_headers(const struct pn_guard_route *route,
    struct pn_str lines, struct pn_buf *out);
/* Lines as an answer has them, in the arena, with those of a replay (replayed)
 * and the end of the key's life (expires_at_us; 0: no key) behind them. 0, or
 * -ENOMEM. lines are borrowed. */
int pn_guard_header_list(struct pn_str lines, bool replayed,
    int64_t expires_at_us, struct pn_arena *arena,
    struct pn_answer *ret_answer) PN_MUSTCHECK;

#endif
