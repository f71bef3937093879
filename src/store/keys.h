/*
 * The keys that verify notifications, as the store and its writers know them.
 */
#ifndef PN_STORE_KEYS_H
#define PN_STORE_KEYS_H

#include "store_internal.h"

void pn_store_free_keys(struct pn_store *store);
/* Whether keys were added since this writer wrote them. Under the lock. */
bool pn_store_has_new_keys(const struct pn_writer *writer);
/* Writes to verifying_keys those that this writer has not. Waits for whoever is
 * in the way, at most about commit_timeout. As pn_conn_run(); -ENOMEM besides.
 * Writer. */
int pn_store_put_keys(
    struct pn_writer *writer, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
