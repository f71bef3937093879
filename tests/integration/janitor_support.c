/*
 * Stores with a janitor, partitions of the past, and the log.
 */
#include "janitor_support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/moment.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;

struct pn_store *
janitor_new(struct pn_store_options options)
{
	struct pn_store *store = NULL;
	struct pn_error error = { { 0 } };

	options.janitor = true;
	options.writers = 1;
	options.commit_timeout_us = 15 * PN_SECOND_US;
	options.key_hot_us = 72 * 3600 * PN_SECOND_US;
	if (pn_store_open(&options, &store, &error) < 0)
		fail_msg("%s", error.text);
	pn_store_wait_first(store, PATIENCE_US);
	return store;
}

/* -- months ----------------------------------------------------------------- */

void
months_prepare(PGconn *conn)
{
	(void)db(conn,
	    "SET timezone = 'UTC';"
	    "CREATE FUNCTION public.month(ago int) RETURNS timestamptz "
	    "LANGUAGE sql SET timezone = 'UTC' AS $$ "
	    "SELECT date_trunc('month', now()) - ago * interval '1 month' $$;"
	    "CREATE FUNCTION public.month_name(parent text, ago int) "
	    "RETURNS text LANGUAGE sql SET timezone = 'UTC' AS $$ "
	    "SELECT parent || to_char(public.month(ago), '_YYYY_MM') $$;"
	    "CREATE FUNCTION public.attach(parent text, child text, "
	    "low timestamptz, high timestamptz) RETURNS void "
	    "LANGUAGE plpgsql SET timezone = 'UTC' AS $$ BEGIN "
	    "EXECUTE format('CREATE TABLE paynotify.%%I (LIKE paynotify.%%I "
	    "INCLUDING ALL EXCLUDING IDENTITY)', child, parent);"
	    "EXECUTE format('ALTER TABLE paynotify.%%I ATTACH PARTITION "
	    "paynotify.%%I FOR VALUES FROM (%%L) TO (%%L)', parent, child, "
	    "low, high); END $$");
}

void
month_make(PGconn *conn, const char *parent, int ago)
{
	(void)db(conn,
	    "SELECT public.attach('%s', public.month_name('%s', %d), "
	    "public.month(%d), public.month(%d))",
	    parent, parent, ago, ago, ago - 1);
}

bool
month_exists(PGconn *conn, const char *parent, int ago)
{
	return db(conn,
		   "SELECT to_regclass('paynotify.' || "
		   "public.month_name('%s', %d)) IS NOT NULL",
		   parent, ago) == 1;
}

void
month_wait_gone(PGconn *conn, const char *parent, int ago)
{
	db_wait(conn, 1,
	    "SELECT to_regclass('paynotify.' || "
	    "public.month_name('%s', %d)) IS NULL",
	    parent, ago);
}

int64_t
month_age_us(PGconn *conn, int ago)
{
	return db(conn,
	    "SELECT (extract(epoch FROM now() - public.month(%d)) * "
	    "1000000)::bigint",
	    ago - 1);
}

/* -- the log ---------------------------------------------------------------- */

void
capture_begin(struct capture *capture)
{
	capture->file = tmpfile();
	assert_non_null(capture->file);
	capture->saved = dup(STDERR_FILENO);
	assert_true(dup2(fileno(capture->file), STDERR_FILENO) >= 0);
}

void
capture_end(struct capture *capture)
{
	assert_true(dup2(capture->saved, STDERR_FILENO) >= 0);
	(void)close(capture->saved);
	(void)fclose(capture->file);
}

bool
capture_has(struct capture *capture, const char *text)
{
	ssize_t n;

	n = pread(
	    fileno(capture->file), capture->text, sizeof(capture->text) - 1, 0);
	assert_true(n >= 0);
	capture->text[n] = '\0';
	return strstr(capture->text, text) != NULL;
}

void
capture_wait(struct capture *capture, const char *text)
{
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;

	while (!capture_has(capture, text)) {
		if (pn_clock_monotonic_us() > until_us) {
			capture_end(capture);
			fail_msg(
			    "not logged: %s; but: %s", text, capture->text);
		}
		/* A poll of a condition, with a limit. */
		(void)usleep(2000);
	}
}
