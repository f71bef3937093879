/*
 * What the files of src/admin share: the table of routes, a request on its way
 * through it, problems, the workers that ask the database.
 *
 *   admin.c     open and close; the tokens; the handler that http/ calls
 *   route.c     the table, and finding a row of it
 *   access.c    who may
 *   input.c     parameters and bodies
 *   problem.c   what is answered when something is wrong
 *   work.c      the threads that have the database
 *   api.h       what the routes do (api_*.c), and their answers (page.c)
 */
#ifndef PN_ADMIN_INTERNAL_H
#define PN_ADMIN_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/admin.h"
#include "paynotify/buf.h"
#include "paynotify/error.h"
#include "paynotify/form.h"
#include "paynotify/limits.h"
#include "paynotify/query.h"
#include "paynotify/secret.h"
#include "paynotify/server.h"

struct admin_work;

struct pn_admin {
	char *conf_path;            /* for texts */
	struct pn_conf_server http; /* of its server */
	struct pn_store *store;     /* borrowed */
	struct pn_server *server;
	struct admin_work *work;
	struct pn_secret *tokens; /* any of them opens */
	size_t token_count;
};

/* -- routes (route.c) ------------------------------------------------------ */

enum admin_privilege {
	ADMIN_OPEN, /* anybody who can connect */
	ADMIN_READ, /* with a token where one is set */
	ADMIN_ACT,  /* the same; without one over a unix socket only */
};

enum admin_need {
	ADMIN_NEEDS_NOTHING, /* answered at once, by the server's thread */
	ADMIN_NEEDS_READING, /* by a worker, with a connection */
	ADMIN_NEEDS_WRITING, /* ... that may write */
};

/* Parameters behind "?", as bits; their names are in input.c. */
enum admin_parameter {
	ADMIN_TENANT = 1 << 0,
	ADMIN_PROVIDER = 1 << 1,
	ADMIN_TYPE = 1 << 2,
	ADMIN_KEY = 1 << 3,
	ADMIN_OUT_TRADE_NO = 1 << 4,
	ADMIN_VERDICT = 1 << 5,
	ADMIN_CONSUMER = 1 << 6,
	ADMIN_STATE = 1 << 7,
	ADMIN_ROUTE = 1 << 8,
	ADMIN_SINCE = 1 << 9,
	ADMIN_LIMIT = 1 << 10,
	ADMIN_AFTER = 1 << 11,
};

struct admin_job;

/* One row a method and path. */
struct admin_route {
	const char *method; /* GET: HEAD too */
	const char
	    *path; /* a "{word}" is one segment; the last, all the rest */
	enum admin_privilege privilege;
	enum admin_need need;
	unsigned parameters;
	/* 0: answered; 1: answered, with a problem; < 0: a fault of the
	 * database, told in job->error. */
	int (*run)(struct admin_job *job);
	const char *doc;
};

const struct admin_route *admin_route_at(size_t index); /* NULL at the end */
/* The row, with the segment that its "{word}" stands for, undecoded (data NULL:
 * it has none). NULL: none; *ret_known: there is one for another method. */
const struct admin_route *admin_route_find(struct pn_str method,
    struct pn_str path, struct pn_str *ret_segment, bool *ret_known);
/* "GET, HEAD, POST": what there is at a path. */
void admin_route_allow(struct pn_str path, struct pn_buf *out);

/* -- a request -------------------------------------------------------------- */

enum { ADMIN_HEADERS_MAX = 6 };

struct admin_job {
	struct pn_admin *admin;
	struct pn_call *call;
	const struct admin_route *route;
	struct pn_str segment; /* undecoded */
	const char *name;      /* what it says; NULL: the route has none */
	struct pn_form form;   /* the parameters */
	json_t *body;          /* an object; NULL: the method has none */

	/* A worker's: */
	struct pn_query *query;
	struct pn_error error;
	int64_t queued_us;
	struct admin_job *next;

	/* The answer: */
	unsigned status;
	const char *content_type;
	struct pn_header headers[ADMIN_HEADERS_MAX];
	size_t header_count;
	struct pn_buf out;
};

/* A header of the answer; text in the arena or static. */
void
admin_header(struct admin_job *job, struct pn_str name, struct pn_str value);
/* The answer is in the job: gives it to the server. The job is not touched any
 * more. */
void admin_answer(struct admin_job *job);

/* -- who may (access.c) ------------------------------------------------------- */

/* Whether it may read; answers nothing. */
bool admin_access_reads(const struct admin_job *job);
/* 0; 1: a problem is the answer. */
int admin_access_check(
    struct admin_job *job, enum admin_privilege privilege) PN_MUSTCHECK;

/* -- input (input.c) ---------------------------------------------------------- */

/* Reads segment, parameters and body, as the route's row says. 0, 1. */
int admin_input_read(struct admin_job *job) PN_MUSTCHECK;
/* Whether the media type of what has a body is JSON. 0, 1. */
int admin_input_media_check(struct admin_job *job) PN_MUSTCHECK;
/* "tenant" of ADMIN_TENANT; NULL: no such bit. */
const char *admin_parameter_name(unsigned bit);

/* -- problems (problem.c) ------------------------------------------------------- */

enum admin_problem {
	ADMIN_NO_ROUTE,
	ADMIN_BAD_METHOD,
	ADMIN_NO_TOKEN,
	ADMIN_NO_ACTING,
	ADMIN_FOREIGN_HOST,
	ADMIN_BAD_MEDIA,
	ADMIN_LONG_BODY,
	ADMIN_LONG_HEAD,
	ADMIN_BAD_LENGTH,
	ADMIN_STOPPING,
	ADMIN_BAD_PARAMETER,
	ADMIN_BAD_BODY,
	ADMIN_UNKNOWN,
	ADMIN_AMBIGUOUS,
	ADMIN_REFUSED,
	ADMIN_BUSY,
	ADMIN_DATABASE_AWAY,
	ADMIN_DATABASE_SLOW,
	ADMIN_DATABASE_SCHEMA,
	ADMIN_DATABASE_RIGHTS,
	ADMIN_DATABASE_FAULT,
	ADMIN_NO_MEMORY,
	ADMIN_PROBLEM_COUNT
};
/* Makes it the answer, whatever was the answer so far. Always 1. */
int admin_problem(struct admin_job *job, enum admin_problem problem,
    const char *fmt, ...) PN_PRINTF(3, 4);
/* The same for what a query of the route came to (< 0), and logs it. */
int admin_problem_of_fault(struct admin_job *job, int r);

/* -- workers (work.c) --------------------------------------------------------------- */

/* dsn: copied. Threads are started, connections are not opened. */
int admin_work_open(const char *dsn, struct admin_work **ret_work,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* Any thread. The job will be answered. */
void admin_work_put(struct admin_work *work, struct admin_job *job);
/* Ends what is asked of the database at this moment; all that is and will be
 * put is answered at once. */
void admin_work_stop(struct admin_work *work);
void admin_work_close(struct admin_work *work); /* stops; NULL is fine */

#endif
