/*
 * Whether a connection string is one, told before anything connects.
 *
 * libpq parses it, but what libpq says quotes the piece that it does not
 * understand, and that may be one of the password: `password=a b` and an "@" or
 * "/" in the password of a URI are the usual slips. So its words are not used:
 * the text here quotes nothing of the string but option names of libpq's own.
 *
 * A URI that was cut at the wrong place still parses; host, port or dbname then
 * hold a piece of the password and would be quoted when they do not work ("could
 * not translate host name"). What shows it is refused too.
 *
 * It deliberately resolves, opens and reads nothing, but for what the string
 * names by itself (service=).
 */
#include <errno.h>
#include <string.h>
#include <libpq-fe.h>

#include "paynotify/parse.h"
#include "paynotify/store.h"

enum { PORT_MAX = 65535, SECONDS_MAX = 1 << 30, PARTS_MAX = 256 };

/* What libpq takes as a number and quotes if it is none; commas only in port. */
static bool
is_number(const char *keyword)
{
	static const char *const names[] = { "connect_timeout", "keepalives",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
		"tcp_user_timeout" };

	for (size_t i = 0; i < PN_COUNT(names); i++)
		if (strcmp(keyword, names[i]) == 0)
			return true;
	return false;
}

static bool
are_ports(const char *text)
{
	struct pn_str rest = pn_str_from(text), part;
	uint64_t port;

	for (size_t i = 0; i < PARTS_MAX && rest.data != NULL; i++) {
		part = pn_str_split(&rest, ',');
		if (part.len == 0)
			continue; /* the default one */
		if (pn_parse_uint(part, PORT_MAX, &port) != 0 || port == 0)
			return false;
	}
	return rest.data == NULL;
}

/* What is wrong with one option, or NULL. */
static const char *
fault_of(const PQconninfoOption *option)
{
	const char *name = option->keyword;
	struct pn_str value = pn_str_from(option->val);
	uint64_t number;

	if (strcmp(name, "port") == 0 && !are_ports(option->val))
		return "is no port number";
	if (is_number(name) && value.len > 0 && value.data[0] != '-' &&
	    pn_parse_uint(pn_str_trim(value), SECONDS_MAX, &number) != 0)
		return "is no number";
	/* An abstract unix socket begins with it. */
	if ((strcmp(name, "host") == 0 || strcmp(name, "hostaddr") == 0) &&
	    pn_str_find(value, PN_STR("@")) > 0)
		return "holds an \"@\"";
	return NULL;
}

static bool
is_uri(const char *dsn)
{
	struct pn_str text = pn_str_from(dsn);

	return pn_str_starts(text, "postgresql://") ||
	       pn_str_starts(text, "postgres://");
}

int
pn_store_dsn_check(const char *dsn, struct pn_error *ret_error)
{
	PQconninfoOption *options, *o;
	const char *fault = NULL;
	char *text = NULL;
	int r = 0;

	options = PQconninfoParse(dsn, &text);
	if (options == NULL) {
		r = text == NULL ? -ENOMEM : -EINVAL;
		PQfreemem(text);
		return pn_error_set(ret_error, r,
		    r == -ENOMEM ? "out of memory"
		    : is_uri(dsn)
			? "not a connection URI that libpq takes: write what is"
			  " special in a user or password as %%40 and the like"
			: "not a connection string that libpq takes: put values"
			  " with blanks into single quotes");
	}
	for (o = options; fault == NULL && o->keyword != NULL; o++) {
		if (o->val != NULL)
			fault = fault_of(o);
		if (fault == NULL && is_uri(dsn) && o->val != NULL &&
		    strcmp(o->keyword, "dbname") == 0 &&
		    strchr(o->val, '@') != NULL)
			fault = "holds an \"@\"";
		if (fault != NULL)
			r = pn_error_set(ret_error, -EINVAL, "its %s %s%s",
			    o->keyword, fault,
			    is_uri(dsn) ? ": write what is special in a user or"
					  " password as %40 and the like"
					: "");
	}
	PQconninfoFree(options);
	return r;
}
