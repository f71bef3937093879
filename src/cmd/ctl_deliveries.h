/*
 * What `deliveries list` and `deliveries show` print alike. Private to src/cmd.
 */
#ifndef PN_CTL_DELIVERIES_H
#define PN_CTL_DELIVERIES_H

#include "ctl.h"

#include "paynotify/deliveries.h"

/* "retry", or "retry again" of a redelivery */
int ctl_delivery_state_cell(
    struct ctl_table *table, const struct pn_delivery_row *row) PN_MUSTCHECK;

#endif
