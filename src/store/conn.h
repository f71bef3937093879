/*
 * One connection to PostgreSQL, private to the store: connects and waits
 * without blocking in libpq, so that a thread that is told to stop does.
 * A connection belongs to one thread.
 */
#ifndef PN_STORE_CONN_H
#define PN_STORE_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/metrics.h"

enum {
	PN_SQLSTATE_BYTES = 6,
	PN_WARNING_BYTES = 256,
	PN_CONN_HOSTS_MAX = 16,   /* hosts of one DSN that are rotated */
	PN_CONN_OPTIONS_MAX = 64, /* libpq 15 has 42 */
};

struct pn_conn {
	PGconn *pg;            /* NULL: closed */
	int stop_fd;           /* readable: give up; -1: never */
	unsigned turn;         /* which host of the DSN comes first */
	int64_t answer_us_max; /* of a statement, else -ETIMEDOUT; 0: any */
	enum pn_metric gauge;  /* counts it while it is open; or _COUNT */
	bool counted;
	bool warned; /* a WARNING came since the last statement was sent, */
	char warning[PN_WARNING_BYTES];   /* the last one */
	char sqlstate[PN_SQLSTATE_BYTES]; /* of the last failed statement */
	char constraint[64];              /* ditto, or empty */
	char primary[PN_WARNING_BYTES];   /* its message alone */
	char hint[PN_WARNING_BYTES];      /* what to do, or empty */
};

/* What a statement came to, > 0. */
enum {
	PN_CONN_REFUSED = 1, /* an error: nothing of it is stored */
};

/* dsn: any libpq string. A host that does not answer in time makes the next
 * one the first (conn->turn). 0; -ECONNREFUSED, -ETIMEDOUT, -EINVAL (bad dsn),
 * -ECANCELED (told to stop), -ENOMEM. */
int pn_conn_open(struct pn_conn *conn, const char *dsn, int stop_fd,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_conn_close(struct pn_conn *conn);
/* A closed connection, for initialisation. */
struct pn_conn pn_conn_none(void);
/* The same; it counts in that gauge as long as it is open. */
struct pn_conn pn_conn_for(enum pn_metric gauge);

/*
 * Each sends one statement and waits for it to end. 0: done, and committed if
 * it was a transaction of its own; PN_CONN_REFUSED: see error, sqlstate;
 * -ECONNRESET: the connection is lost, or a WARNING came: whether it was
 * committed is unknown; -ECANCELED: told to stop, -ETIMEDOUT: no answer in
 * answer_us_max, unknown as well. After < 0
 * only pn_conn_close() is allowed. ret_result may be NULL.
 */
int pn_conn_exec(struct pn_conn *conn, const char *sql, PGresult **ret_result,
    struct pn_error *ret_error) PN_MUSTCHECK;
int pn_conn_prepare(struct pn_conn *conn, const char *name, const char *sql,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* Parameters of a statement. Text ones are NUL-terminated. */
struct pn_params {
	int count;
	const char *const *values;
	const int *lengths; /* NULL: text, all of them */
	const int *formats;
	bool text_results; /* of pn_conn_run(): else binary */
};
int pn_conn_run(struct pn_conn *conn, const char *name,
    const struct pn_params *params, PGresult **ret_result,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* Not prepared, for queries that run once. Text results. */
int pn_conn_query(struct pn_conn *conn, const char *sql,
    const struct pn_params *params, PGresult **ret_result,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* Whether the connection of an idle thread still stands, without waiting. */
bool pn_conn_alive(struct pn_conn *conn);

static inline void
pn_result_freep(PGresult **result)
{
	PQclear(*result); /* NULL is fine */
}

#endif
