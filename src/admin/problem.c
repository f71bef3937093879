/*
 * What is answered when something is wrong: problems as RFC 9457 has them. A
 * type is stable, and clients may switch on it; titles and details may change.
 * The detail says what was wrong and what to do.
 */
#include "admin_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "paynotify/json.h"
#include "paynotify/log.h"

enum {
	DETAIL_BYTES_MAX = 4096,
	BODY_BYTES_MAX =
	    8 * DETAIL_BYTES_MAX, /* each byte as \u0001, at most */
};

static const struct row {
	unsigned status;
	bool again; /* Retry-After */
	const char *name, *title;
} rows[ADMIN_PROBLEM_COUNT] = {
	[ADMIN_NO_ROUTE] = { 404, false, "not-found", "No such route" },
	[ADMIN_BAD_METHOD] = { 405, false, "method", "Method not allowed" },
	[ADMIN_NO_TOKEN] = { 401, false, "token", "No valid token" },
	[ADMIN_NO_ACTING] = { 403, false, "act", "Acting is not allowed here" },
	[ADMIN_FOREIGN_HOST] = { 421, false, "host", "Foreign host name" },
	[ADMIN_BAD_MEDIA] = { 415, false, "media-type", "Not JSON" },
	[ADMIN_LONG_BODY] = { 413, false, "body-too-large",
	    "Request body too large" },
	[ADMIN_LONG_HEAD] = { 431, false, "headers-too-many",
	    "Too many header lines" },
	[ADMIN_BAD_LENGTH] = { 400, false, "length-ambiguous",
	    "Length of the body is ambiguous" },
	[ADMIN_STOPPING] = { 503, true, "stopping", "The daemon is stopping" },
	[ADMIN_BAD_PARAMETER] = { 400, false, "parameter",
	    "A parameter is wrong" },
	[ADMIN_BAD_BODY] = { 400, false, "body", "The body is wrong" },
	[ADMIN_UNKNOWN] = { 404, false, "unknown", "There is no such thing" },
	[ADMIN_AMBIGUOUS] = { 409, false, "ambiguous", "There are several" },
	[ADMIN_REFUSED] = { 409, false, "refused", "It cannot be done now" },
	[ADMIN_BUSY] = { 503, true, "busy", "Too many requests wait" },
	[ADMIN_DATABASE_AWAY] = { 503, true, "database-away",
	    "The database does not answer" },
	[ADMIN_DATABASE_SLOW] = { 503, true, "database-slow",
	    "The database takes too long" },
	[ADMIN_DATABASE_SCHEMA] = { 503, false, "database-schema",
	    "The schema is missing or old" },
	[ADMIN_DATABASE_RIGHTS] = { 503, false, "database-rights",
	    "The role lacks a right" },
	[ADMIN_DATABASE_FAULT] = { 503, false, "database-fault",
	    "The database refused" },
	[ADMIN_NO_MEMORY] = { 500, false, "memory", "Out of memory" },
};

int
admin_problem(
    struct admin_job *job, enum admin_problem problem, const char *fmt, ...)
{
	const struct row *row = &rows[problem];
	PN_CLEANUP(pn_buf_done)
	struct pn_buf detail = pn_buf_init(DETAIL_BYTES_MAX), type = detail;
	va_list ap;

	assert((unsigned)problem < ADMIN_PROBLEM_COUNT && row->name != NULL);
	va_start(ap, fmt);
	pn_buf_vprintf(&detail, fmt, ap);
	va_end(ap);
	pn_buf_printf(&type, "urn:paynotify:problem:admin:%s", row->name);
	job->status = row->status;
	job->content_type = "application/problem+json";
	if (row->again)
		admin_header(job, PN_STR("Retry-After"), PN_STR("5"));
	pn_buf_done(&job->out);
	job->out = pn_buf_init(BODY_BYTES_MAX);
	pn_buf_add_char(&job->out, '{');
	pn_json_add_text(&job->out, "type", pn_buf_str(&type));
	pn_json_add_text(&job->out, "title", pn_str_from(row->title));
	pn_json_add_number(&job->out, "status", row->status);
	pn_json_add_text(&job->out, "detail",
	    pn_buf_failed(&detail) ? PN_STR("") : pn_buf_str(&detail));
	pn_buf_add_text(&job->out, "}\n");
	pn_buf_done(&type);
	return 1;
}

/* Whether it was done is not known when an answer to it is missing. */
static const char *
uncertain(const struct admin_job *job)
{
	return job->route->need == ADMIN_NEEDS_WRITING
		   ? " Whether it was done is not known: look before asking "
		     "again."
		   : "";
}

static int
problem_of_rights(struct admin_job *job, int r)
{
	return admin_problem(job, ADMIN_DATABASE_RIGHTS,
	    "%s: %s needs the owner of the tables%s; name one as [database] "
	    "admin_dsn in %s.",
	    job->error.text, r == -EPERM ? "to act" : "to read",
	    r == -EPERM ? " or a member of paynotify_owner"
			: " or a member of paynotify_reader",
	    job->admin->conf_path);
}

int
admin_problem_of_fault(struct admin_job *job, int r)
{
	const char *text = job->error.text;

	assert(r < 0);
	if (r != -ECANCELED)
		pn_log(PN_LOG_WARNING,
		    &(struct pn_log_about){ .subject = job->route->path },
		    "could not answer %s %s: %s", job->route->method,
		    job->route->path, r == -ENOMEM ? "out of memory" : text);
	switch (r) {
	case -ENOMEM:
		return admin_problem(job, ADMIN_NO_MEMORY,
		    "The answer is too long, or memory is out: ask for less.");
	case -ECANCELED:
		return admin_problem(job, ADMIN_STOPPING,
		    "Ask again in a moment.%s", uncertain(job));
	case -ENOENT:
		return admin_problem(job, ADMIN_DATABASE_SCHEMA, "%s.", text);
	case -EACCES:
	case -EPERM: return problem_of_rights(job, r);
	case -ETIME:
	case -ETIMEDOUT:
		return admin_problem(job, ADMIN_DATABASE_SLOW,
		    "%s. Ask for less, or again when it has less to do.%s",
		    text, r == -ETIMEDOUT ? uncertain(job) : "");
	case -EIO: return admin_problem(job, ADMIN_DATABASE_FAULT, "%s.", text);
	default:
		return admin_problem(job, ADMIN_DATABASE_AWAY,
		    "%s. Start PostgreSQL, or mend [database] dsn in %s.%s",
		    text, job->admin->conf_path,
		    r == -ECONNRESET ? uncertain(job) : "");
	}
}
