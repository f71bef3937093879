/*
 * The admin port: /healthz, /readyz, /metrics, and /api/v1, which reads what the
 * commands list and does what they do. Loopback or a unix socket; anywhere else
 * only with a token.
 */
#ifndef PN_ADMIN_H
#define PN_ADMIN_H

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/store.h"

struct pn_admin;

/* What [admin] must be beyond what each option says: where it may listen, what
 * may be a token. -EINVAL, with file:line. Opens nothing. */
int pn_admin_check(
    const struct pn_conf *conf, struct pn_error *ret_error) PN_MUSTCHECK;
/* Serves. conf is not needed afterwards; the store is borrowed. */
int pn_admin_open(const struct pn_conf *conf, struct pn_store *store,
    struct pn_admin **ret_admin, struct pn_error *ret_error) PN_MUSTCHECK;
/* Ends what is asked of the database at this moment, answers what waits. NULL
 * is fine. */
void pn_admin_close(struct pn_admin *admin);

#endif
