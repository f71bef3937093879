/*
 * Where a request goes: a path in one form, so that one URI is one path (RFC
 * 3986, 6.2.2), and its upstream's address.
 *
 * An unreserved character is the same URI written as itself or as %XX, and so are
 * %c3 and %C3; who serves "/v1/%63harges" serves "/v1/charges". So a path is
 * brought to the form with the fewest escapes before anything looks at it, that of
 * a route in the configuration too; what is compared, what is hashed and what is
 * sent to the upstream are the same bytes. An escape of any other character stays:
 * "%2F" is no "/". Bytes that may not stand in a URI at all are escaped.
 *
 * A "%" that begins no escape is refused: written anew behind others it could
 * begin one ("%%36%33" would become "%63"), and what the upstream makes of it
 * nobody knows. So the form of a form is itself.
 *
 * An empty segment is refused too. "/v1//charges" is another URI than
 * "/v1/charges" (6.2.2 merges no slashes), but many an upstream merges them: it
 * would do the work of the one under the scope of a wildcard that has the other.
 *
 * A query is compared in the same form, and sent as it came: it is the
 * upstream's to read. One that is no URI's is only itself.
 */
#include "head.h"

#include <errno.h>
#include <string.h>

#include "paynotify/encode.h"

enum { ESCAPE_LEN = 3 };

static bool
is_unreserved(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
	       c == '~';
}

static bool
is_visible(unsigned char c)
{
	return c > 0x20 && c < 0x7f;
}

/* 0, -ENOMEM, or 1: a "%" begins no escape. */
static int
normalise(struct pn_str from, struct pn_arena *arena, struct pn_str *ret_form)
{
	char *text = pn_arena_alloc(arena, ESCAPE_LEN * from.len + 1);
	size_t len = 0;

	if (text == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from.len; i++) {
		unsigned char c = (unsigned char)from.data[i];
		bool escaped = c == '%';

		if (escaped) {
			struct pn_str hex = { from.data + i + 1, 2 };

			if (from.len - i < ESCAPE_LEN ||
			    pn_hex_decode(hex, &c, 1) != 0)
				return 1;
			i += hex.len;
		}
		if (escaped ? is_unreserved(c) : is_visible(c) && c != '#') {
			text[len++] = (char)c;
		} else {
			text[len++] = '%';
			pn_hex_upper(&c, 1, text + len);
			len += 2;
		}
	}
	text[len] = '\0';
	*ret_form = (struct pn_str){ text, len };
	return 0;
}

int
pn_guard_path(
    struct pn_str path, struct pn_arena *arena, struct pn_str *ret_path)
{
	if (pn_str_find(path, PN_STR("//")) >= 0)
		return 1;
	return normalise(path, arena, ret_path);
}

int
pn_guard_query(
    struct pn_str query, struct pn_arena *arena, struct pn_str *ret_query)
{
	int r = 0;

	*ret_query = query;
	if (query.len > 0)
		r = normalise(query, arena, ret_query);
	return r < 0 ? r : 0;
}

/* A query is as it came, but for bytes that would end the URL, or that curl refuses. */
static void
add_url_bytes(struct pn_buf *out, struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c <= 0x20 || c >= 0x7f || c == '#')
			pn_buf_printf(out, "%%%02X", c);
		else
			pn_buf_add_char(out, (char)c);
	}
}

void
pn_guard_forward_url(const struct pn_guard_forward *forward, struct pn_buf *out)
{
	const char *upstream = forward->route->conf->upstream;
	const struct pn_request *request = &forward->call->request;
	const char *path = strchr(strstr(upstream, "://") + 3, '/');

	pn_buf_add_text(out, upstream);
	if (path == NULL ||
	    (forward->route->has_rest && upstream[strlen(upstream) - 1] != '/'))
		pn_buf_add_char(out, '/');
	add_url_bytes(out, forward->rest);
	if (request->query.data == NULL)
		return;
	pn_buf_add_char(out, '?');
	add_url_bytes(out, request->query);
}
