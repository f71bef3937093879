/*
 * Words of HTTP that options are made of: a method with a path, the name of a
 * header field, a status. Each is judged as a whole: what is let through here
 * can be compared with a request, or written into one, as it stands.
 *
 * What is escaped in a path is not looked at, only that it is an escape: which
 * paths are one is the gateway's to know.
 */
#include "conf_internal.h"

enum { ROUTE_BYTES_MAX = 255 }; /* what guard_claim() takes; see 0007 */
static_assert(ROUTE_BYTES_MAX == 255, "the text below says so");

static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
	       (c >= 'A' && c <= 'F');
}

static const char *
path_fault(struct pn_str path)
{
	for (size_t i = 0; i < path.len; i++) {
		char c = path.data[i];

		if (c <= 0x20 || c >= 0x7f)
			return "has a character that must be written as %XX";
		if (c == '%' &&
		    (path.len - i < 3 || !is_hex(path.data[i + 1]) ||
			!is_hex(path.data[i + 2])))
			return "has a \"%\" without two hex digits behind it";
		if (c == '?' || c == '#')
			return "has a query or a fragment; a route is a path";
		if (c == '*' && (i + 1 < path.len || path.data[i - 1] != '/'))
			return "has a \"*\" that is not the end, behind a"
			       " \"/\"";
	}
	if (pn_str_starts(path, "/notify/"))
		return "begins with /notify/, where notifications are"
		       " received";
	return NULL;
}

const char *
conf_route_fault(struct pn_str text)
{
	struct pn_str path = text, method = pn_str_split(&path, ' ');
	bool known = false;

	if (text.len > ROUTE_BYTES_MAX)
		return "is longer than the 255 bytes that a route may have";
	for (size_t i = 0; i < PN_COUNT(methods); i++)
		known = known || pn_str_is(method, methods[i]);
	if (!known)
		return "does not begin with POST, PUT, PATCH or DELETE and a"
		       " blank";
	if (path.data == NULL || path.len == 0 || *path.data != '/')
		return "has no path that begins with \"/\" behind one blank,"
		       " such as POST /v1/charges";
	return path_fault(path);
}

bool
conf_header_is_valid(struct pn_str name)
{
	return name.len <= PN_ID_BYTES_MAX && pn_str_is_token(name);
}

/* 1xx is no answer: another one follows it. */
bool
conf_status_is_valid(struct pn_str text)
{
	if (text.len != strlen("5xx") || text.data[0] < '2' ||
	    text.data[0] > '5')
		return false;
	if (text.data[1] == 'x')
		return text.data[2] == 'x';
	return text.data[1] >= '0' && text.data[1] <= '9' &&
	       text.data[2] >= '0' && text.data[2] <= '9';
}
