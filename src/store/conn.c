/*
 * Connecting and waiting for statements.
 *
 * libpq's blocking calls cannot be interrupted, and a daemon that is told to
 * end must not sit in connect() to a dead host. So everything here is
 * PQconnectStart/PQsendQuery and a poll() that also watches stop_fd.
 *
 * PQconnectPoll knows no time limit: a host that swallows packets would hold
 * it for minutes although the DSN names a second one. When an attempt takes
 * too long it is given up and the hosts are rotated by one for the next; what
 * target_session_attrs asks for is libpq's business as ever.
 *
 * When a statement is over: only the NULL after the last result means that the
 * server has committed (rows can arrive before a commit fails), and only if no
 * WARNING came meanwhile: "canceling wait for synchronous replication" is
 * reported as one, with the success behind it.
 *
 * What this does not do: cancel. PQcancel turns a wait for a standby into that
 * WARNING; an unwanted statement is left to end, at worst without us.
 */
#include "conn.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/str.h"

#include "statements.h"

/* One attempt over all hosts; libpq's own connect_timeout is for blocking
 * calls only. */
static const int64_t CONNECT_TIMEOUT_US = 4 * PN_SECOND_US;

struct pn_conn
pn_conn_none(void)
{
	return pn_conn_for(PN_METRIC_COUNT);
}

struct pn_conn
pn_conn_for(enum pn_metric gauge)
{
	return (struct pn_conn){ .stop_fd = -1, .gauge = gauge };
}

/* In its gauge, or not any more. */
static void
count(struct pn_conn *conn, bool open)
{
	if (conn->counted == open || conn->gauge == PN_METRIC_COUNT)
		return;
	conn->counted = open;
	pn_metric_add(conn->gauge, open ? 1 : -1);
}

void
pn_conn_close(struct pn_conn *conn)
{
	if (conn->pg == NULL)
		return;
	PQfinish(conn->pg);
	conn->pg = NULL;
	count(conn, false);
}

/* The text of the server or of libpq on one line; its own lines, which may begin
 * with a tab, are parted by semicolons. */
static int
fault(struct pn_error *error, int r, const char *text)
{
	char line[PN_ERROR_TEXT_BYTES_MAX];
	size_t len = 0;

	for (; *text != '\0' && len < sizeof(line) - 2; text++) {
		if (*text != '\n') {
			line[len++] = *text;
			continue;
		}
		text += strspn(text, " \t\r\n") - 1;
		if (text[1] == '\0')
			break;
		line[len++] = ';';
		line[len++] = ' ';
	}
	line[len] = '\0';
	return pn_error_set(error, r, "%s", line);
}

static void
on_notice(void *payload, const PGresult *result)
{
	struct pn_conn *conn = payload;
	const char *severity, *text;

	severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	if (text == NULL)
		text = "?";
	if (severity != NULL && strcmp(severity, "WARNING") == 0) {
		/* The statement's error tells it. */
		conn->warned = true;
		(void)snprintf(
		    conn->warning, sizeof(conn->warning), "%s", text);
		return;
	}
	pn_log_notice("database says: %s", text);
}

/* Waits for events on the socket, at most until deadline_us (-1: for ever).
 * 0, -ECANCELED, -ETIMEDOUT. */
static int
wait_socket(const struct pn_conn *conn, short events, int64_t deadline_us)
{
	struct pollfd fds[2] = {
		{ .fd = PQsocket(conn->pg), .events = events },
		{ .fd = conn->stop_fd, .events = POLLIN },
	};
	int64_t left_us;
	int n, timeout_ms = -1;

	for (;;) { /* bounded by the deadline or an event */
		if (deadline_us >= 0) {
			left_us = deadline_us - pn_clock_monotonic_us();
			if (left_us <= 0)
				return -ETIMEDOUT;
			timeout_ms = (int)(left_us / 1000) + 1;
		}
		n = poll(fds, 2, timeout_ms);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[1].revents != 0)
			return -ECANCELED;
		if (n > 0)
			return 0;
	}
}

/* "a,b,c" turned by n: "b,c,a". NULL when memory is out. */
static char *
rotate(const char *list, unsigned n)
{
	size_t i, count = 1, len = strlen(list);
	const char *cut = list;
	char *out;

	for (i = 0; i < len; i++)
		count += list[i] == ',';
	if (count > PN_CONN_HOSTS_MAX)
		count = 1;
	for (i = n % count; i > 0; i--)
		cut = strchr(cut, ',') + 1;
	out = malloc(len + 2);
	if (out == NULL)
		return NULL;
	if (cut == list)
		(void)snprintf(out, len + 2, "%s", list);
	else
		(void)snprintf(
		    out, len + 2, "%s,%.*s", cut, (int)(cut - list - 1), list);
	return out;
}

/* What we would like unless the DSN says otherwise: a dead peer is noticed. */
static const char *const DEFAULTS[][2] = {
	{ "keepalives_idle", "10" },
	{ "keepalives_interval", "5" },
	{ "keepalives_count", "3" },
	{ "tcp_user_timeout", "15000" },
	{ "fallback_application_name", "paynotifyd" },
};

/* Starts connecting with the options of the DSN, hosts turned. */
static int
start(struct pn_conn *conn, const char *dsn, struct pn_error *error)
{
	const char *names[PN_CONN_OPTIONS_MAX + 1] = { NULL };
	const char *values[PN_CONN_OPTIONS_MAX + 1] = { NULL };
	PQconninfoOption *options, *o;
	char *text = NULL, *turned;
	size_t i, n = 0;
	int r = 0;

	options = PQconninfoParse(dsn, &text);
	if (options == NULL) {
		r = fault(
		    error, -EINVAL, text == NULL ? "out of memory" : text);
		PQfreemem(text);
		return r;
	}
	for (o = options; o->keyword != NULL; o++) {
		for (i = 0; o->val == NULL && i < PN_COUNT(DEFAULTS); i++)
			if (strcmp(o->keyword, DEFAULTS[i][0]) == 0)
				o->val = strdup(DEFAULTS[i][1]);
		if (o->val == NULL || n == PN_CONN_OPTIONS_MAX - 1)
			continue;
		if (strcmp(o->keyword, "host") == 0 ||
		    strcmp(o->keyword, "hostaddr") == 0 ||
		    strcmp(o->keyword, "port") == 0) {
			turned = rotate(o->val, conn->turn);
			if (turned != NULL) {
				free(o->val);
				o->val = turned; /* options own it now */
			}
		}
		names[n] = o->keyword;
		values[n++] = o->val;
	}
	names[n] = "client_encoding";
	values[n] = "UTF8";
	conn->pg = PQconnectStartParams(names, values, 0);
	PQconninfoFree(options);
	if (conn->pg == NULL)
		return pn_error_set(error, -ENOMEM, "out of memory");
	return 0;
}

int
pn_conn_open(struct pn_conn *conn, const char *dsn, int stop_fd,
    struct pn_error *ret_error)
{
	int64_t deadline_us = pn_clock_monotonic_us() + CONNECT_TIMEOUT_US;
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	int r;

	assert(conn->pg == NULL);
	conn->stop_fd = stop_fd;
	r = start(conn, dsn, ret_error);
	if (r < 0)
		return r;
	if (PQstatus(conn->pg) == CONNECTION_BAD)
		status = PGRES_POLLING_FAILED;
	while (status != PGRES_POLLING_OK) {
		if (status == PGRES_POLLING_FAILED) {
			r = fault(
			    ret_error, -ECONNREFUSED, PQerrorMessage(conn->pg));
			break;
		}
		r = wait_socket(conn,
		    status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
		    deadline_us);
		if (r == -ETIMEDOUT) {
			conn->turn++;
			(void)pn_error_set(ret_error, r,
			    "host \"%s\" did not answer in time",
			    PQhost(conn->pg) == NULL ? "" : PQhost(conn->pg));
		}
		if (r < 0)
			break;
		status = PQconnectPoll(conn->pg);
	}
	if (r < 0) {
		pn_conn_close(conn);
		return r;
	}
	(void)PQsetnonblocking(conn->pg, 1);
	(void)PQsetErrorVerbosity(conn->pg, PQERRORS_TERSE); /* one line */
	(void)PQsetNoticeReceiver(conn->pg, on_notice, conn);
	count(conn, true);
	return 0;
}

/* Sends what is still buffered, reading meanwhile: a server whose output is
 * not read would stop reading ours. */
static int
flush(struct pn_conn *conn, int64_t deadline_us)
{
	int r, n;

	while ((n = PQflush(conn->pg)) > 0) {
		r = wait_socket(conn, POLLIN | POLLOUT, deadline_us);
		if (r < 0)
			return r;
		if (PQconsumeInput(conn->pg) == 0)
			return -ECONNRESET;
	}
	return n < 0 ? -ECONNRESET : 0;
}

static void
remember(struct pn_conn *conn, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *name = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

	(void)snprintf(conn->sqlstate, sizeof(conn->sqlstate), "%s",
	    state == NULL ? "" : state);
	(void)snprintf(conn->constraint, sizeof(conn->constraint), "%s",
	    name == NULL ? "" : name);
	(void)snprintf(conn->primary, sizeof(conn->primary), "%s",
	    text == NULL ? "" : text);
	(void)snprintf(
	    conn->hint, sizeof(conn->hint), "%s", hint == NULL ? "" : hint);
}

/* Takes results until the NULL. *ret_result: the last good one. */
static int
take_results(struct pn_conn *conn, int64_t deadline_us, PGresult **ret_result,
    struct pn_error *error)
{
	PGresult *result;
	ExecStatusType status;
	int r = 0;

	for (;;) { /* bounded by the statements that were sent */
		while (PQisBusy(conn->pg)) {
			/* not into r: an error may have come already, and its
			 * end is still on the way */
			int waited = wait_socket(conn, POLLIN, deadline_us);

			if (waited < 0)
				return waited;
			if (PQconsumeInput(conn->pg) == 0)
				return -ECONNRESET;
		}
		result = PQgetResult(conn->pg);
		if (result == NULL)
			return r;
		status = PQresultStatus(result);
		if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
			PQclear(*ret_result);
			*ret_result = result; /* handed over */
			continue;
		}
		remember(conn, result);
		r = fault(error, PN_CONN_REFUSED, PQresultErrorMessage(result));
		PQclear(result);
		if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT)
			return -ECONNRESET; /* never sent by us */
	}
}

static int
finish(struct pn_conn *conn, int sent, PGresult **ret_result,
    struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	int64_t deadline_us = -1;
	int r;

	if (conn->answer_us_max > 0)
		deadline_us = pn_clock_monotonic_us() + conn->answer_us_max;
	r = sent == 1 ? flush(conn, deadline_us) : -ECONNRESET;
	if (r == 0)
		r = take_results(conn, deadline_us, &result, error);
	/* An error with which the server went away may have come before or
	 * after the commit: unknown. */
	if (r >= 0 && PQstatus(conn->pg) == CONNECTION_BAD)
		r = -ECONNRESET;
	else if (r == 0 && conn->warned)
		return pn_error_set(error, -ECONNRESET,
		    "the server warned at commit: %s", conn->warning);
	if (r < 0) {
		if (r == -ECONNRESET)
			(void)fault(error, r, PQerrorMessage(conn->pg));
		else if (r == -ETIMEDOUT)
			(void)pn_error_set(
			    error, r, "the server did not answer in time");
		return r;
	}
	if (r == 0 && ret_result != NULL) {
		*ret_result = result;
		result = NULL; /* handed over */
	}
	return r;
}

int
pn_conn_exec(struct pn_conn *conn, const char *sql, PGresult **ret_result,
    struct pn_error *ret_error)
{
	assert(conn->pg != NULL);
	conn->warned = false;
	return finish(conn, PQsendQuery(conn->pg, sql), ret_result, ret_error);
}

int
pn_conn_prepare(struct pn_conn *conn, const char *name, const char *sql,
    struct pn_error *ret_error)
{
	assert(conn->pg != NULL);
	conn->warned = false;
	return finish(
	    conn, PQsendPrepare(conn->pg, name, sql, 0, NULL), NULL, ret_error);
}

int
pn_conn_run(struct pn_conn *conn, const char *name,
    const struct pn_params *params, PGresult **ret_result,
    struct pn_error *ret_error)
{
	assert(conn->pg != NULL);
	conn->warned = false;
	return finish(conn,
	    PQsendQueryPrepared(conn->pg, name, params->count, params->values,
		params->lengths, params->formats, params->text_results ? 0 : 1),
	    ret_result, ret_error);
}

int
pn_conn_query(struct pn_conn *conn, const char *sql,
    const struct pn_params *params, PGresult **ret_result,
    struct pn_error *ret_error)
{
	assert(conn->pg != NULL);
	conn->warned = false;
	return finish(conn,
	    PQsendQueryParams(conn->pg, sql, params->count, NULL,
		params->values, params->lengths, params->formats, 0),
	    ret_result, ret_error);
}

bool
pn_conn_alive(struct pn_conn *conn)
{
	bool alive = true;

	assert(conn->pg != NULL);
	/* Nothing is expected: readable means a notice or the end, or why it
	 * ends and, read the second time, the end. */
	for (int i = 0; i < 2 && alive; i++)
		alive = PQconsumeInput(conn->pg) == 1;
	return alive && PQstatus(conn->pg) == CONNECTION_OK;
}
