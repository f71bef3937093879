/*
 * Database faults, told so that somebody can mend them: which database (without
 * the password), what it said, what to do.
 *
 * A connection string is shown by a list of what may be shown, not by a list of
 * what may not: a parameter that libpq learns tomorrow is left out until it is
 * known to be harmless. libpq itself is the store's; this reads the two forms
 * (keywords, URI) just well enough for that, and never fails.
 */
#include "ctl.h"

#include <errno.h>
#include <string.h>

static bool
may_be_shown(struct pn_str name)
{
	static const char *const shown[] = { "host", "hostaddr", "port",
		"dbname", "user", "service", "target_session_attrs" };

	for (size_t i = 0; i < PN_COUNT(shown); i++)
		if (pn_str_is(name, shown[i]))
			return true;
	return false;
}

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One value: bare up to a blank, or in single quotes; a backslash takes the
 * next character as it is. Returns the position behind it. */
static size_t
skip_value(struct pn_str dsn, size_t at)
{
	bool quoted = at < dsn.len && dsn.data[at] == '\'';

	for (at += quoted; at < dsn.len; at++) {
		if (dsn.data[at] == '\\')
			at++;
		else if (quoted ? dsn.data[at] == '\'' : is_blank(dsn.data[at]))
			return at + quoted;
	}
	return dsn.len;
}

static void
redact_keywords(struct pn_str dsn, struct pn_buf *out)
{
	size_t at = 0;

	while (at < dsn.len) {
		size_t name_from, name_to, value_from;
		struct pn_str name;

		while (at < dsn.len && is_blank(dsn.data[at]))
			at++;
		name_from = at;
		while (at < dsn.len && dsn.data[at] != '=' &&
		       !is_blank(dsn.data[at]))
			at++;
		name_to = at;
		while (at < dsn.len && is_blank(dsn.data[at]))
			at++;
		if (at == dsn.len || dsn.data[at] != '=')
			return; /* not such a string: show no more of it */
		at++;
		while (at < dsn.len && is_blank(dsn.data[at]))
			at++;
		value_from = at;
		at = skip_value(dsn, at);
		name = (struct pn_str){ dsn.data + name_from,
			name_to - name_from };
		if (!may_be_shown(name))
			continue;
		if (out->len > 0)
			pn_buf_add_char(out, ' ');
		ctl_add_clean(out, name);
		pn_buf_add_char(out, '=');
		ctl_add_clean(out,
		    (struct pn_str){ dsn.data + value_from, at - value_from });
	}
}

static void
redact_uri(struct pn_str dsn, struct pn_buf *out)
{
	size_t start = (size_t)pn_str_find(dsn, PN_STR("://")) + 3;
	struct pn_str query = { dsn.data + start, dsn.len - start };
	struct pn_str where = pn_str_split(&query, '?');
	struct pn_str path = where, authority = pn_str_split(&path, '/');
	ptrdiff_t at = -1, colon;
	char separator = '?';

	ctl_add_clean(out, (struct pn_str){ dsn.data, start });
	if (memchr(where.data, '@', where.len) == NULL &&
	    memchr(dsn.data, '@', dsn.len) != NULL) {
		/* A "?" that should have been escaped may be part of the
		 * password: nothing of it is safe to show. */
		pn_buf_add_text(out, "...");
		return;
	}
	for (size_t i = 0; i < where.len; i++)
		if (where.data[i] == '@')
			at = (ptrdiff_t)i; /* the last: a password may hold "/"
					    * or "@" where it should not */
	if (at >= 0) {
		struct pn_str user = { where.data, (size_t)at };

		colon = pn_str_find(user, PN_STR(":"));
		if (colon >= 0)
			user.len = (size_t)colon;
		ctl_add_clean(out, user);
		ctl_add_clean(out,
		    (struct pn_str){ where.data + at, where.len - (size_t)at });
	} else {
		ctl_add_clean(out, authority);
		if (path.data != NULL) {
			pn_buf_add_char(out, '/');
			ctl_add_clean(out, path);
		}
	}
	while (query.data != NULL) {
		struct pn_str value = pn_str_split(&query, '&');
		struct pn_str pair = value, name = pn_str_split(&value, '=');

		if (!may_be_shown(name))
			continue;
		pn_buf_add_char(out, separator);
		ctl_add_clean(out, pair);
		separator = '&';
	}
}

void
ctl_dsn_redact(const char *dsn, struct pn_buf *out)
{
	struct pn_str text = pn_str_trim(pn_str_from(dsn));

	if (pn_str_starts(text, "postgresql://") ||
	    pn_str_starts(text, "postgres://"))
		redact_uri(text, out);
	else
		redact_keywords(text, out);
}

/* SQLSTATE 42501, of which only the text comes this far. */
static bool
is_denied(const char *text)
{
	return strstr(text, "permission denied") != NULL;
}

/* PostgreSQL takes the name of the user on this host where the dsn names none. */
static bool
is_another_user(const char *text)
{
	const char *role = strstr(text, "role \"");

	return strstr(text, "Peer authentication failed") != NULL ||
	       (role != NULL && strstr(role, "\" does not exist") != NULL);
}

/* What to do about it; NULL when the text says so itself. */
static const char *
advice(int r, const char *text, const char **ret_text)
{
	bool connecting = pn_str_starts(pn_str_from(text), "could not connect");

	if (connecting && r == -EINVAL) {
		/* libpq quotes the piece that it does not understand, which
		 * may be one of the password. */
		*ret_text = "it is no connection string that libpq takes";
		return "quote values with blanks, and mend";
	}
	if (connecting && is_another_user(text))
		return "run it as the daemon's user, `runuser -u paynotify "
		       "-- " CTL_NAME " ...`, or mend the user of";
	if (connecting || r == -ECONNRESET || r == -ECONNREFUSED ||
	    r == -ETIMEDOUT)
		return "start PostgreSQL or mend";
	if (r == -EACCES)
		return "to read needs the owner of the tables or a member of "
		       "paynotify_reader: name one as";
	/* To act, to migrate. */
	if (r == -EPERM || is_denied(text))
		return "that needs the owner of the tables: name it as";
	return NULL;
}

int
ctl_database_complain(const struct pn_conf *conf, const char *dsn, int r,
    const struct pn_error *error)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf shown = pn_buf_init(PN_CONF_LINE_BYTES_MAX * 4);
	const char *option =
	    dsn == conf->database.dsn && !is_denied(error->text) ? "dsn"
								 : "admin_dsn";
	const char *text = error->text, *what = advice(r, text, &text);

	ctl_dsn_redact(dsn, &shown);
	pn_buf_add_char(&shown, '\0');
	if (what == NULL)
		ctl_complain("database %s: %s",
		    pn_buf_failed(&shown) ? "" : shown.data, text);
	else
		ctl_complain("database %s: %s; %s [database] %s in %s",
		    pn_buf_failed(&shown) ? "" : shown.data, text, what, option,
		    conf->path);
	return CTL_REFUSED;
}
