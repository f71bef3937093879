/*
 * A connection for reading, for commands and the admin port; for what operators
 * do (query_act.c) also one that writes. Sessions plan each statement with its
 * values, since filters that are not given must vanish from the plan.
 *
 * Lists are fetched some hundred rows at a time, so that a list of millions
 * costs no memory and holds no snapshot open while it is printed.
 */
#include "paynotify/query.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/deliveries.h"
#include "paynotify/parse.h"

#include "query.h"
#include "statements.h"

/* The server ends a statement that takes too long, and tells so; a server that
 * does not even do that is given up a while later. */
static const int64_t GRACE_US = 3 * PN_SECOND_US;

static int
set_timeout(struct pn_query *query, int64_t timeout_us, struct pn_error *error)
{
	char sql[64];

	if (timeout_us == 0)
		return 0;
	query->conn.answer_us_max = timeout_us + GRACE_US;
	(void)snprintf(sql, sizeof(sql), "SET statement_timeout = %" PRId64,
	    timeout_us / PN_MILLISECOND_US);
	return pn_conn_exec(&query->conn, sql, NULL, error);
}

int
pn_query_open_with(const char *dsn, const struct pn_query_options *options,
    struct pn_query **ret_query, struct pn_error *ret_error)
{
	struct pn_query *query = calloc(1, sizeof(*query));
	int r;

	if (query == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	query->conn = pn_conn_none();
	r = pn_conn_open(&query->conn, dsn, options->stop_fd, ret_error);
	if (r < 0)
		r = pn_error_prefix(
		    ret_error, r, "could not connect to the database: ");
	if (r == 0)
		r = pn_conn_exec(&query->conn,
		    options->writable ? pn_sql_operator : pn_sql_reader, NULL,
		    ret_error);
	if (r == 0)
		r = set_timeout(query, options->timeout_us, ret_error);
	if (r != 0) {
		pn_query_close(query);
		return r > 0 ? -EIO : r;
	}
	*ret_query = query;
	return 0;
}

int
pn_query_open(
    const char *dsn, struct pn_query **ret_query, struct pn_error *ret_error)
{
	const struct pn_query_options options = { .stop_fd = -1 };

	return pn_query_open_with(dsn, &options, ret_query, ret_error);
}

int
pn_query_open_writable(
    const char *dsn, struct pn_query **ret_query, struct pn_error *ret_error)
{
	const struct pn_query_options options = { .stop_fd = -1,
		.writable = true };

	return pn_query_open_with(dsn, &options, ret_query, ret_error);
}

void
pn_query_close(struct pn_query *query)
{
	if (query == NULL)
		return;
	pn_conn_close(&query->conn);
	free(query);
}

bool
pn_query_is_alive(struct pn_query *query)
{
	return pn_conn_alive(&query->conn);
}

const char *
pn_query_moment(struct pn_query_text *text, int64_t us)
{
	if (us == PN_MOMENT_NONE)
		return NULL;
	pn_moment_format_rfc3339(us, text->moment);
	return text->moment;
}

const char *
pn_query_number(struct pn_query_text *text, int which, int64_t value)
{
	assert(which >= 0 && (size_t)which < PN_COUNT(text->numbers));
	(void)snprintf(text->numbers[which], sizeof(text->numbers[which]),
	    "%" PRId64, value);
	return text->numbers[which];
}

int
pn_query_run(struct pn_query *query, const char *sql, int count,
    const char *const *values, PGresult **ret_result,
    struct pn_error *ret_error)
{
	struct pn_params params = { .count = count, .values = values };
	int r;

	r = pn_conn_query(&query->conn, sql, &params, ret_result, ret_error);
	if (r <= 0)
		return r;
	/* 42P01 undefined table, 42883 undefined function, 3F000 schema */
	if (strcmp(query->conn.sqlstate, "42P01") == 0 ||
	    strcmp(query->conn.sqlstate, "42883") == 0 ||
	    strcmp(query->conn.sqlstate, "3F000") == 0)
		return pn_error_prefix(ret_error, -ENOENT,
		    "the schema is missing or old, run `paynotifyctl db "
		    "migrate`: ");
	if (strcmp(query->conn.sqlstate, "57014") == 0) /* query_canceled */
		return -ETIME;
	return strcmp(query->conn.sqlstate, "42501") == 0 ? -EACCES : -EIO;
}

struct pn_str
pn_query_str(const PGresult *result, int row, int column)
{
	return (struct pn_str){ PQgetvalue(result, row, column),
		(size_t)PQgetlength(result, row, column) };
}

int64_t
pn_query_int(const PGresult *result, int row, int column, int64_t none)
{
	int64_t value;

	if (PQgetisnull(result, row, column) ||
	    pn_parse_int64(pn_query_str(result, row, column), &value) != 0)
		return none;
	return value;
}

bool
pn_query_bool(const PGresult *result, int row, int column)
{
	return *PQgetvalue(result, row, column) == 't';
}

void
pn_query_uuid(
    const PGresult *result, int row, int column, unsigned char ret_uuid[16])
{
	const char *text = PQgetvalue(result, row, column);
	size_t n = 0;

	memset(ret_uuid, 0, 16);
	for (; *text != '\0' && n < 32; text++) {
		if (*text == '-')
			continue;
		ret_uuid[n / 2] =
		    (unsigned char)(ret_uuid[n / 2] << 4 |
				    (*text <= '9' ? *text - '0'
						  : *text - 'a' + 10));
		n++;
	}
	assert(n == 32);
}
