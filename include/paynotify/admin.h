/*
 * The admin port: /healthz, /readyz, /metrics. Loopback or a unix socket only.
 */
#ifndef PN_ADMIN_H
#define PN_ADMIN_H

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/store.h"

struct pn_admin;

int pn_admin_open(const struct pn_conf *conf, struct pn_store *store,
    struct pn_admin **ret_admin, struct pn_error *ret_error) PN_MUSTCHECK;
void pn_admin_close(struct pn_admin *admin);

#endif
