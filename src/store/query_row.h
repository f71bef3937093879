/*
 * A row of event.sql, events_oldest.sql, events_newest.sql or
 * handoff_events.sql as an event.
 */
#ifndef PN_STORE_QUERY_ROW_H
#define PN_STORE_QUERY_ROW_H

#include "query.h"

enum { PN_EVENT_COLUMNS = 23 }; /* behind them: the statement's own */

/* Calls row; *ret_seq: its seq. What row returned. */
int pn_query_event_row(const PGresult *result, int at, int64_t *ret_seq,
    pn_event_row_fn row, void *payload);

#endif
