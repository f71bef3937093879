/*
 * A small strict reader of HTTP/1.x replies: what `trigger` and `replay` get
 * back, where what matters is the exact bytes of the body.
 *
 * It works on what has arrived so far and says whether that is a whole reply;
 * the caller reads more and asks again. It so has no state to get wrong, and a
 * reply of a few hundred bytes is parsed once or twice.
 *
 * Strict: a status line, header lines with a colon and without folding, a length
 * that is one plain number, chunks in plain hex. A body ends by Content-Length,
 * by chunks, or, with neither, at the end of the connection. Anything that could
 * be read in two ways is an error, not a guess.
 */
#include "net_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/parse.h"

enum {
	CHUNK_LINE_BYTES_MAX = 1024,
	INTERIM_MAX = 8,
	HEADERS_MAX = 100,
	CHUNKS_MAX = 1 << 16
};

struct head {
	int status;
	bool http_1_0, close, chunked, has_length;
	uint64_t length;
};

static int
bad(struct pn_error *error, const char *what)
{
	return pn_error_set(
	    error, -EPROTO, "the reply is not HTTP/1.x: %s", what);
}

/* The next line without its CRLF or LF; 1 when it is not there yet. */
static int
take_line(struct pn_str *rest, struct pn_str *ret_line)
{
	const char *end =
	    rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
	size_t len;

	if (end == NULL)
		return 1;
	len = (size_t)(end - rest->data);
	*ret_line = (struct pn_str){ rest->data, len };
	if (len > 0 && end[-1] == '\r')
		ret_line->len--;
	rest->data += len + 1;
	rest->len -= len + 1;
	return 0;
}

static int
parse_status(struct pn_str line, struct head *head, struct pn_error *error)
{
	uint64_t status;

	if (!pn_str_starts(line, "HTTP/1.") || line.len < 12 ||
	    (line.data[7] != '0' && line.data[7] != '1') ||
	    line.data[8] != ' ' || (line.len > 12 && line.data[12] != ' ') ||
	    pn_parse_uint((struct pn_str){ line.data + 9, 3 }, 999, &status) !=
		0 ||
	    status < 100)
		return bad(error, "no status line");
	*head = (struct head){ .status = (int)status,
		.http_1_0 = line.data[7] == '0' };
	return 0;
}

static int
parse_header(struct pn_str line, struct head *head, struct pn_error *error)
{
	struct pn_str value = line, name = pn_str_split(&value, ':');

	if (value.data == NULL || name.len == 0 || name.data[0] == ' ' ||
	    name.data[0] == '\t')
		return bad(error, "a header line without a name");
	value = pn_str_trim(value);
	if (pn_str_equal_fold(name, PN_STR("Content-Length"))) {
		if (head->has_length ||
		    pn_parse_uint(value, INT64_MAX, &head->length) != 0)
			return bad(error, "Content-Length");
		head->has_length = true;
	} else if (pn_str_equal_fold(name, PN_STR("Transfer-Encoding"))) {
		if (head->chunked ||
		    !pn_str_equal_fold(value, PN_STR("chunked")))
			return bad(error, "Transfer-Encoding");
		head->chunked = true;
	} else if (pn_str_equal_fold(name, PN_STR("Connection"))) {
		head->close =
		    head->close || pn_str_equal_fold(value, PN_STR("close"));
	}
	return 0;
}

/* 0, PN_NET_MORE, < 0. */
static int
parse_head(struct pn_str *rest, struct head *ret_head, struct pn_error *error)
{
	struct pn_str line;
	int r;

	if (take_line(rest, &line) != 0)
		return PN_NET_MORE;
	r = parse_status(line, ret_head, error);
	for (int i = 0; r == 0 && i <= HEADERS_MAX; i++) {
		if (take_line(rest, &line) != 0)
			return PN_NET_MORE;
		if (line.len == 0)
			return ret_head->chunked && ret_head->has_length
				   ? bad(error, "two lengths")
				   : 0;
		r = parse_header(line, ret_head, error);
	}
	return r < 0 ? r : bad(error, "too many headers");
}

static int
parse_hex(struct pn_str text, size_t *ret_value)
{
	size_t value = 0;

	if (text.len == 0 || text.len > 8)
		return 1;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c >= '0' && c <= '9')
			value = value * 16 + (size_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			value = value * 16 + (size_t)((c | 32) - 'a') + 10;
		else
			return 1;
	}
	*ret_value = value;
	return 0;
}

/* Trailers, up to the empty line. */
static int
skip_trailers(struct pn_str *rest, struct pn_error *error)
{
	struct pn_str line;

	for (int i = 0; i <= HEADERS_MAX; i++) {
		if (take_line(rest, &line) != 0)
			return PN_NET_MORE;
		if (line.len == 0)
			return 0;
	}
	return bad(error, "too many trailers");
}

static int
parse_chunks(struct pn_str *rest, struct pn_buf *body, struct pn_error *error)
{
	struct pn_str line;
	size_t len;

	for (int i = 0; i < CHUNKS_MAX; i++) {
		if (take_line(rest, &line) != 0)
			return rest->len > CHUNK_LINE_BYTES_MAX
				   ? bad(error, "a chunk without a length")
				   : PN_NET_MORE;
		if (parse_hex(pn_str_trim(pn_str_split(&line, ';')), &len) != 0)
			return bad(error, "a chunk without a length");
		if (len == 0)
			return skip_trailers(rest, error);
		if (len > PN_NET_BODY_BYTES_MAX - body->len)
			return pn_error_set(error, -EMSGSIZE,
			    "the reply is longer than %d bytes",
			    PN_NET_BODY_BYTES_MAX);
		if (rest->len < len)
			return PN_NET_MORE;
		pn_buf_add(body, rest->data, len);
		rest->data += len;
		rest->len -= len;
		if (take_line(rest, &line) != 0)
			return PN_NET_MORE;
		if (line.len != 0)
			return bad(error, "a chunk longer than it says");
	}
	return bad(error, "too many chunks");
}

static int
parse_plain(const struct head *head, bool at_end, struct pn_str *rest,
    struct pn_buf *body, struct pn_error *error)
{
	size_t len = head->has_length ? (size_t)head->length : rest->len;

	if (len > PN_NET_BODY_BYTES_MAX)
		return pn_error_set(error, -EMSGSIZE,
		    "the reply is longer than %d bytes", PN_NET_BODY_BYTES_MAX);
	if (rest->len < len || (!head->has_length && !at_end))
		return PN_NET_MORE;
	pn_buf_add(body, rest->data, len);
	rest->data += len;
	rest->len -= len;
	return 0;
}

static int
parse_one(struct pn_str *rest, bool at_end, bool bodyless, struct pn_buf *body,
    struct head *ret_head, struct pn_error *error)
{
	int r = parse_head(rest, ret_head, error);

	if (r != 0)
		return r;
	if (bodyless || ret_head->status < 200 || ret_head->status == 204 ||
	    ret_head->status == 304)
		return 0;
	return ret_head->chunked
		   ? parse_chunks(rest, body, error)
		   : parse_plain(ret_head, at_end, rest, body, error);
}

int
pn_net_reply_parse(struct pn_str input, bool at_end, bool bodyless,
    struct pn_buf *body, struct pn_net_parsed *ret_parsed,
    struct pn_error *ret_error)
{
	struct pn_str rest = input;
	struct head head = { .status = 0 };
	int r = 0, interim = 0;

	do {
		pn_buf_reset(body);
		r = parse_one(&rest, at_end, bodyless, body, &head, ret_error);
	} while (r == 0 && head.status < 200 && interim++ < INTERIM_MAX);
	if (r == 0 && head.status < 200)
		return bad(ret_error, "too many interim replies");
	if (r == PN_NET_MORE && at_end)
		return bad(ret_error, "it was cut");
	if (r != 0)
		return r;
	if (pn_buf_failed(body))
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	assert(rest.len <= input.len);
	*ret_parsed = (struct pn_net_parsed){
		.status = head.status,
		.keep = !head.close && !head.http_1_0 && rest.len == 0 &&
			(head.chunked || head.has_length || bodyless),
		.used = input.len - rest.len,
	};
	return 0;
}
