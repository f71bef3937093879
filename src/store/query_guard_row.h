/*
 * What guard_keys.sql and guard_key.sql begin with: a key of the guard as a row
 * of a list.
 */
#ifndef PN_STORE_QUERY_GUARD_ROW_H
#define PN_STORE_QUERY_GUARD_ROW_H

#include "paynotify/guard_keys.h"

#include "query.h"

enum { PN_GUARD_KEY_COLUMNS = 14 }; /* behind them: the statement's own */

struct pn_guard_key_row pn_query_guard_key_row(const PGresult *result, int at);

#endif
