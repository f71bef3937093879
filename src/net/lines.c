/*
 * What a request says of itself, checked before curl gets it: header lines,
 * the method, the origin of the URL. Pure.
 *
 * A caller's headers may hold what came from elsewhere (the gateway passes on
 * a client's), so a line that could end early, or start another one, is an
 * error here: no control character but a tab, a name that is a token. The
 * error says which line it is and not what stands there: it may be a secret.
 *
 * curl's own rules for header lines are in the way of plain ones: "Name:"
 * would take a header of curl's away, and an empty value is written "Name;".
 * Three of curl's own are taken away like this unless the caller has them:
 * Accept, Content-Type (a form, for curl) and, always, Expect: a server that
 * does not know it costs a second of waiting, and a refused body is cheap.
 *
 * Content-Length is always curl's, made of the body's length: two that differ
 * would be the request smuggling this file is against. Transfer-Encoding is
 * refused for the same reason.
 */
#include "client_internal.h"

#include <assert.h>
#include <errno.h>
#include <strings.h>

/* What each line gains: a NUL for its LF, or ";" for ":". */
enum { TEXT_BYTES_MAX = PN_HEADER_BYTES_MAX + PN_CLIENT_LINES_MAX * 32 };

struct found {
	bool accept, content_type;
};

static bool
is_value(struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

struct pn_client_lines
pn_client_lines_init(void)
{
	return (struct pn_client_lines){ .text = pn_buf_init(TEXT_BYTES_MAX) };
}

/* 0; 1: made by curl or never sent, so left out; -EINVAL. */
static int
check_line(struct pn_str name, struct pn_str value, struct found *found)
{
	if (!pn_str_is_token(name) || value.data == NULL || !is_value(value))
		return -EINVAL;
	if (pn_str_equal_fold(name, PN_STR("Transfer-Encoding")))
		return -EINVAL;
	if (pn_str_equal_fold(name, PN_STR("Expect")) ||
	    pn_str_equal_fold(name, PN_STR("Content-Length")))
		return 1;
	found->accept =
	    found->accept || pn_str_equal_fold(name, PN_STR("Accept"));
	found->content_type = found->content_type ||
			      pn_str_equal_fold(name, PN_STR("Content-Type"));
	return 0;
}

static void
add_line(struct pn_buf *text, struct pn_str name, struct pn_str value)
{
	pn_buf_add_str(text, name);
	pn_buf_add_text(text, value.len == 0 ? ";" : ": ");
	pn_buf_add_str(text, value);
	pn_buf_add_char(text, '\0');
}

/* Text is complete: it moves no more, and can be pointed into. */
static void
link_nodes(struct pn_client_lines *lines, size_t count)
{
	char *at = lines->text.data;

	assert(count > 0 && count <= PN_COUNT(lines->nodes));
	for (size_t i = 0; i < count; i++) {
		lines->nodes[i] = (struct curl_slist){ .data = at,
			.next = i + 1 < count ? &lines->nodes[i + 1] : NULL };
		at += strlen(at) + 1;
	}
	assert(at == lines->text.data + lines->text.len);
}

int
pn_client_lines_make(struct pn_client_lines *lines, struct pn_str headers,
    struct pn_error *ret_error)
{
	struct found found = { .accept = false };
	struct pn_str rest = headers, name, value;
	size_t count = 0;
	int r;

	if (headers.len > PN_HEADER_BYTES_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "the request's headers are longer than %d bytes",
		    PN_HEADER_BYTES_MAX);
	pn_buf_reset(&lines->text);
	for (int i = 1; rest.data != NULL && rest.len > 0; i++) {
		value = pn_str_split(&rest, '\n');
		name = pn_str_split(&value, ':');
		if (value.data != NULL)
			for (; value.len > 0 && value.data[0] == ' ';
			     value.len--)
				value.data++;
		r = check_line(name, value, &found);
		if (r < 0 || i > PN_HEADER_COUNT_MAX)
			return pn_error_set(ret_error, -EINVAL,
			    "header line %d of the request is malformed, not "
			    "allowed or one too many",
			    i);
		if (r > 0)
			continue;
		add_line(&lines->text, name, value);
		count++;
	}
	pn_buf_add(&lines->text, "Expect:", sizeof("Expect:"));
	count++;
	if (!found.accept) {
		pn_buf_add(&lines->text, "Accept:", sizeof("Accept:"));
		count++;
	}
	if (!found.content_type) {
		pn_buf_add(
		    &lines->text, "Content-Type:", sizeof("Content-Type:"));
		count++;
	}
	if (pn_buf_failed(&lines->text))
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	link_nodes(lines, count);
	return 0;
}

struct pn_str
pn_client_origin(const char *url, char ret_text[PN_CLIENT_ORIGIN_BYTES_MAX])
{
	const char *host, *at;
	size_t scheme_len, len;

	if (strncasecmp(url, "http://", 7) != 0 &&
	    strncasecmp(url, "https://", 8) != 0)
		return (struct pn_str){ NULL, 0 };
	host = strchr(url, '/') + 2;
	scheme_len = (size_t)(host - url);
	len = strcspn(host, "/?#");
	at = memrchr(host, '@', len);
	if (at != NULL) {
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	if (len == 0 || scheme_len + len >= PN_CLIENT_ORIGIN_BYTES_MAX)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < len; i++)
		if (host[i] <= ' ' || host[i] > '~')
			return (struct pn_str){ NULL, 0 };
	memcpy(ret_text, url, scheme_len);
	memcpy(ret_text + scheme_len, host, len);
	ret_text[scheme_len + len] = '\0';
	return (struct pn_str){ ret_text, scheme_len + len };
}
