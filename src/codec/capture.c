/*
 * A capture: one raw HTTP/1.1 request in a file.
 *
 * Captures come from tcpdump, from a proxy's debug log, from an editor. The
 * body decides over the signature, so it is taken byte for byte, and whatever
 * leaves a doubt which bytes were the body is refused with its position: two
 * Content-Lengths, Transfer-Encoding, bytes behind the announced end (the line
 * feed an editor adds is the usual one). A body that is shorter than announced
 * is kept: the connection was cut, and the verdict on what arrived is the
 * answer that is asked for.
 *
 * Lines may end with LF alone, since many tools write so; a folded header, a
 * space before the colon and control bytes are refused as in the server.
 * It does not decode anything: no chunks, no gzip, no percent-escapes.
 */
#include "paynotify/capture.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/limits.h"
#include "paynotify/parse.h"

/* No control bytes; a tab may stand in the value of a header. */
static bool
is_printable(struct pn_str s, bool tab)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if ((c < 0x20 && !(tab && c == '\t')) || c == 0x7f)
			return false;
	}
	return true;
}

/* Cuts a line with its LF or CRLF from *rest; false when no LF is left. */
static bool
take_line(struct pn_str *rest, struct pn_str *ret_line)
{
	struct pn_str line;

	if (rest->len == 0 || memchr(rest->data, '\n', rest->len) == NULL)
		return false;
	line = pn_str_split(rest, '\n');
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	*ret_line = line;
	return true;
}

static int
parse_request_line(
    struct pn_str line, struct pn_request *request, struct pn_error *ret_error)
{
	struct pn_str rest = line, target;

	request->method = pn_str_split(&rest, ' ');
	target = pn_str_split(&rest, ' ');
	if (!pn_str_is_token(request->method) || target.len == 0 ||
	    target.data[0] != '/' || !is_printable(line, false) ||
	    (!pn_str_is(rest, "HTTP/1.1") && !pn_str_is(rest, "HTTP/1.0")))
		return pn_error_set(ret_error, 1,
		    "line 1 is not a request line (POST /path HTTP/1.1)");
	request->path = pn_str_split(&target, '?');
	request->query = target;
	return 0;
}

static int
parse_header(struct pn_str line, size_t number, struct pn_header *ret_header,
    struct pn_error *ret_error)
{
	struct pn_str rest = line, name = pn_str_split(&rest, ':');

	if (rest.data == NULL || !pn_str_is_token(name))
		return pn_error_set(ret_error, 1,
		    "line %zu is not a header (name: value)", number);
	if (!is_printable(rest, true))
		return pn_error_set(ret_error, 1,
		    "line %zu has a control byte in its value", number);
	ret_header->name = name;
	ret_header->value = pn_str_trim(rest);
	return 0;
}

/* The header lines up to the empty one; *rest is left at the body. */
static int
parse_headers(struct pn_arena *arena, struct pn_str *rest,
    struct pn_request *request, struct pn_error *ret_error)
{
	struct pn_header *headers =
	    pn_arena_alloc(arena, PN_HEADER_COUNT_MAX * sizeof(*headers));
	struct pn_str line;
	size_t count = 0;
	int r;

	if (headers == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	for (;;) {
		if (!take_line(rest, &line))
			return pn_error_set(
			    ret_error, 1, "no empty line behind the headers");
		if (line.len == 0)
			break;
		if (count == PN_HEADER_COUNT_MAX)
			return pn_error_set(ret_error, 1,
			    "more than %d headers", PN_HEADER_COUNT_MAX);
		r = parse_header(line, count + 2, &headers[count], ret_error);
		if (r != 0)
			return r;
		count++;
	}
	request->headers = headers;
	request->header_count = count;
	return 0;
}

/* Whether the body is what the headers announce. */
static int
check_length(const struct pn_request *request, struct pn_error *ret_error)
{
	struct pn_str value;
	uint64_t length;
	size_t count;

	if (pn_request_header(request, "Transfer-Encoding", &value) != 0)
		return pn_error_set(ret_error, 1,
		    "Transfer-Encoding is not supported in a capture: write "
		    "the body without chunks, with its Content-Length");
	count = pn_request_header(request, "Content-Length", &value);
	if (count == 0)
		return 0;
	if (count > 1)
		return pn_error_set(
		    ret_error, 1, "Content-Length occurs %zu times", count);
	if (pn_parse_uint(value, UINT64_MAX, &length) != 0)
		return pn_error_set(
		    ret_error, 1, "Content-Length is not a number");
	if (length < request->body.len)
		return pn_error_set(ret_error, 1,
		    "%zu bytes of body, Content-Length says less: cut what "
		    "was added behind the body",
		    request->body.len);
	return 0;
}

int
pn_capture_parse(struct pn_arena *arena, struct pn_str raw,
    struct pn_request *ret_request, struct pn_error *ret_error)
{
	struct pn_request request = { 0 };
	struct pn_str rest = raw, line;
	int r;

	if (raw.len > PN_CAPTURE_BYTES_MAX)
		return pn_error_set(ret_error, 1,
		    "capture is larger than %d bytes", PN_CAPTURE_BYTES_MAX);
	if (!take_line(&rest, &line))
		return pn_error_set(ret_error, 1, "no request line");
	r = parse_request_line(line, &request, ret_error);
	if (r != 0)
		return r;
	r = parse_headers(arena, &rest, &request, ret_error);
	if (r != 0)
		return r;
	if (rest.data == NULL)
		rest.data = raw.data + raw.len;
	request.body = rest;
	assert(rest.data + rest.len == raw.data + raw.len);
	if (raw.len - rest.len > PN_HEAD_BYTES_MAX)
		return pn_error_set(ret_error, 1,
		    "request line and headers are larger than %d bytes",
		    PN_HEAD_BYTES_MAX);
	if (rest.len > PN_BODY_BYTES_MAX)
		return pn_error_set(ret_error, 1,
		    "body is larger than %d bytes", PN_BODY_BYTES_MAX);
	r = check_length(&request, ret_error);
	if (r != 0)
		return r;
	*ret_request = request;
	return 0;
}
