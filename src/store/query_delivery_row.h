/*
 * A row of deliveries.sql or delivery.sql.
 */
#ifndef PN_STORE_QUERY_DELIVERY_ROW_H
#define PN_STORE_QUERY_DELIVERY_ROW_H

#include "paynotify/deliveries.h"

#include "query.h"

/* Calls row. *ret_seq, *ret_consumer: its place in the list. What row
 * returned. */
int pn_query_delivery_row(const PGresult *result, int at, int64_t *ret_seq,
    int64_t *ret_consumer, pn_delivery_row_fn row, void *payload);
int64_t pn_query_delivery_seq(const PGresult *result, int at);

#endif
