/*
 * What the query_*.c files share: the connection for reading, and values of
 * text results.
 */
#ifndef PN_STORE_QUERY_H
#define PN_STORE_QUERY_H

#include "paynotify/moment.h"
#include "paynotify/query.h"

#include "conn.h"

enum {
	PN_QUERY_ROWS = 500, /* fetched at a time */
	PN_QUERY_NUMBER_BYTES = 24,
};

struct pn_query {
	struct pn_conn conn;
};

/* Text values of parameters that are not text. */
struct pn_query_text {
	char moment[PN_MOMENT_TEXT_BYTES];
	char numbers[3][PN_QUERY_NUMBER_BYTES];
};

/* NULL for PN_MOMENT_NONE. */
const char *pn_query_moment(struct pn_query_text *text, int64_t us);
const char *
pn_query_number(struct pn_query_text *text, int which, int64_t value);

/* An event named by id, seq or key, as $1 to $3 of event.sql and
 * delivery.sql: two of them are NULL. Borrows which. (query_event.c) */
enum { PN_QUERY_WHICH_COUNT = 3 };
void
pn_query_which(const char *which, const char *ret_values[PN_QUERY_WHICH_COUNT]);

/* Runs a statement with text parameters. 0, or < 0 with what to do; -EACCES: the
 * role lacks a right; -ENOENT: the schema lacks something; -ETIME: it took too
 * long, and was ended; -EIO: the server refused otherwise. After those the
 * connection is as good as before, after any other it must be closed. */
int pn_query_run(struct pn_query *query, const char *sql, int count,
    const char *const *values, PGresult **ret_result,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* Values of a row; NULL is the empty string, 0 (or none), false. */
struct pn_str pn_query_str(const PGresult *result, int row, int column);
int64_t pn_query_int(const PGresult *result, int row, int column, int64_t none);
bool pn_query_bool(const PGresult *result, int row, int column);
/* Never NULL. */
void pn_query_uuid(
    const PGresult *result, int row, int column, unsigned char ret_uuid[16]);

#endif
