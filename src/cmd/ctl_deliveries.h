/*
 * What `deliveries list` and `deliveries show` print alike. Private to src/cmd.
 */
#ifndef PN_CTL_DELIVERIES_H
#define PN_CTL_DELIVERIES_H

#include "ctl.h"

#include "paynotify/deliveries.h"

/* consumer, state, attempts, due_at, redelivery, reason */
void
ctl_delivery_add_members(struct pn_buf *out, const struct pn_delivery_row *row);
/* "retry", or "retry again" of a redelivery */
int ctl_delivery_state_cell(
    struct ctl_table *table, const struct pn_delivery_row *row) PN_MUSTCHECK;

#endif
