/*
 * Whether a connection string is one, told before anything connects.
 *
 * libpq parses it, but what libpq says quotes the piece that it does not
 * understand, and that may be one of the password: `password=a b` and an "@" or
 * "/" in the password of a URI are the usual slips. So its words are not used:
 * the text here quotes nothing of the string but names of options: libpq's own,
 * and one that is a slip of the finger away from one of these.
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

#include "paynotify/nearest.h"
#include "paynotify/parse.h"
#include "paynotify/store.h"

enum { PORT_MAX = 65535, SECONDS_MAX = 1 << 30, PARTS_MAX = 256 };
enum { NAME_BYTES_MAX = 40, NAMES_MAX = 128 }; /* libpq 15 has 42 */

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

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As libpq reads it: a name, "=", and a value that is quoted or ends at a blank.
 * false: there is no more, or it is something else. */
static bool
option_next(struct pn_str *rest, struct pn_str *ret_name)
{
	const char *at = rest->data, *end = rest->data + rest->len;
	bool quoted;

	while (at < end && is_blank(*at))
		at++;
	*ret_name = (struct pn_str){ at, 0 };
	while (at < end && *at != '=' && !is_blank(*at))
		at++;
	ret_name->len = (size_t)(at - ret_name->data);
	while (at < end && is_blank(*at))
		at++;
	if (at == end || *at++ != '=')
		return false;
	while (at < end && is_blank(*at))
		at++;
	quoted = at < end && *at == '\'';
	at += quoted;
	while (at < end && (quoted ? *at != '\'' : !is_blank(*at)))
		at += *at == '\\' && end - at > 1 ? 2 : 1;
	at += quoted && at < end;
	*rest = (struct pn_str){ at, (size_t)(end - at) };
	return true;
}

/* What other programs call an option of libpq's. */
static const char *
alias_of(const char *name)
{
	static const char *const aliases[][2] = { { "database", "dbname" },
		{ "db", "dbname" }, { "hostname", "host" },
		{ "server", "host" }, { "username", "user" },
		{ "pass", "password" }, { "pwd", "password" },
		{ "ssl", "sslmode" }, { "timeout", "connect_timeout" } };

	for (size_t i = 0; i < PN_COUNT(aliases); i++)
		if (strcmp(name, aliases[i][0]) == 0)
			return aliases[i][1];
	return NULL;
}

/* The first name that libpq does not know, and what was meant. 1: none, or none
 * that anything near is known of; such a one may be a piece of a secret. */
static int
slip_find(const char *dsn, const PQconninfoOption *known,
    char ret_name[NAME_BYTES_MAX], const char **ret_meant)
{
	const char *names[NAMES_MAX];
	struct pn_str rest = pn_str_from(dsn), name;
	size_t count = 0;
	bool is_known = true;

	for (; known[count].keyword != NULL && count < NAMES_MAX; count++)
		names[count] = known[count].keyword;
	for (size_t i = 0; is_known && i < PARTS_MAX; i++) {
		if (!option_next(&rest, &name))
			return 1;
		is_known = false;
		for (size_t k = 0; k < count && !is_known; k++)
			is_known = pn_str_is(name, names[k]);
	}
	if (is_known || name.len >= NAME_BYTES_MAX)
		return 1;
	memcpy(ret_name, name.data, name.len);
	ret_name[name.len] = '\0';
	*ret_meant = alias_of(ret_name);
	if (*ret_meant == NULL)
		*ret_meant = pn_nearest(ret_name, names, count);
	return *ret_meant == NULL;
}

static int
refuse(const char *dsn, struct pn_error *ret_error)
{
	static const char what[] = "not a connection string that libpq takes";
	PQconninfoOption *known = PQconninfoParse("", NULL);
	char name[NAME_BYTES_MAX];
	const char *meant;
	int r;

	if (known == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	if (slip_find(dsn, known, name, &meant) == 0)
		r = pn_error_set(ret_error, -EINVAL,
		    "%s: it has no option \"%s\"; did you mean \"%s\"?", what,
		    name, meant);
	else
		r = pn_error_set(ret_error, -EINVAL,
		    "%s: it has an option that is none of libpq's, or a value"
		    " with blanks that is not in single quotes",
		    what);
	PQconninfoFree(known); /* meant was borrowed of it */
	return r;
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
		if (r == -ENOMEM)
			return pn_error_set(ret_error, r, "out of memory");
		if (!is_uri(dsn))
			return refuse(dsn, ret_error);
		return pn_error_set(ret_error, r,
		    "not a connection URI that libpq takes: write what is"
		    " special in a user or password as %%40 and the like");
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
