/*
 * What the files of a batch share: arrays become parameters and are sent.
 */
#ifndef PN_STORE_BATCH_INTERNAL_H
#define PN_STORE_BATCH_INTERNAL_H

#include "batch.h"

/* Empty arrays of these types. */
void pn_batch_start(
    struct pn_batch *batch, const enum pn_array_type *types, size_t count);
/* A parameter that is no array. -ENOMEM */
int pn_batch_set(struct pn_batch *batch, size_t at, const void *data,
    size_t len) PN_MUSTCHECK;
/* The arrays, and behind them require_sync. -ENOMEM */
int pn_batch_finish(struct pn_batch *batch, size_t array_count) PN_MUSTCHECK;
/* Runs the statement of this name, or its _resubmitted form when a member may
 * be stored already, with the parameters from first to before end. As
 * pn_conn_run(). */
int pn_batch_send(struct pn_batch *batch, struct pn_conn *conn,
    const char *name, size_t first, size_t end, PGresult **ret_result,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
