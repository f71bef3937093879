/*
 * The idempotency guard as a gateway: HTTP in front of an API of the merchant,
 * a key claimed before its upstream is asked and settled before the client is
 * answered (DESIGN.md section 10).
 */
#ifndef PN_GUARD_H
#define PN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"

struct pn_guard;

/* What the options mean together: API keys, addresses. Opens nothing. Errors
 * carry file:line. */
int pn_guard_check(
    const struct pn_conf *conf, struct pn_error *ret_error) PN_MUSTCHECK;
/* Serves conf->guard.listen. *ret_guard is NULL when there is no [guard].
 * pn_net_init() was called; conf is borrowed. */
int pn_guard_open(const struct pn_conf *conf, struct pn_guard **ret_guard,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* As pn_server_listening(). */
const char *pn_guard_listening(const struct pn_guard *guard);
/* As pn_server_is_alive(). */
bool pn_guard_is_alive(struct pn_guard *guard);
/* Accepts no more; what its upstream is asked for gets grace_us to be answered,
 * then its outcome is unknown. NULL is fine. */
void pn_guard_close(struct pn_guard *guard, int64_t grace_us);

#endif
