/*
 * What comes back: header lines into one buffer, the body into another, both
 * with a maximum.
 *
 * Headers are brought to one form, "Name: value LF": no CR, no folding, no
 * control characters, so that a reader needs no parser. Interim answers (1xx)
 * are passed over, trailers too. From the first line that does not fit on they
 * are left out, and the caller is told so: who looks for a header or two finds
 * them near the top, who passes them on must not do so in part. A server that
 * sends headers without end is cut off, which is an error.
 *
 * Where the body ends must not depend on who reads: a Content-Length that is no
 * number, or not the one of a line before, is an error (RFC 9112, 6.3). curl takes
 * the last one, or, of one that is too long, all that comes.
 *
 * A body that is longer than wanted ends the exchange there and then: the
 * rest may be endless. The connection cannot be used again, but such a server
 * is a rare one.
 */
#include "client_internal.h"

#include <assert.h>

#include "paynotify/parse.h"

enum { HEAD_BYTES_COME_MAX = 16 * PN_HEADER_BYTES_MAX };

static struct pn_str
without_crlf(struct pn_str line)
{
	if (line.len > 0 && line.data[line.len - 1] == '\n')
		line.len--;
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

static void
begin_head(struct pn_client_exchange *exchange, struct pn_str line)
{
	/* "HTTP/1.1 103 Early Hints"; 101 is no interim one: nothing follows */
	exchange->head_interim =
	    line.len >= 12 && line.data[9] == '1' &&
	    !(line.data[10] == '0' && line.data[11] == '1');
	exchange->head_full = false;
	exchange->head_lines = 0;
	exchange->head_length = -1;
	pn_buf_reset(&exchange->head);
}

/* A line that goes on from the one before. */
static void
unfold(struct pn_buf *head, struct pn_str line)
{
	if (head->len == 0)
		return;
	assert(head->data[head->len - 1] == '\n');
	head->data[head->len - 1] = ' ';
	pn_buf_add_str(head, pn_str_trim(line));
	pn_buf_add_char(head, '\n');
}

static void
keep_line(struct pn_client_exchange *exchange, struct pn_str line)
{
	struct pn_buf *head = &exchange->head;
	size_t begin = head->len;
	bool folded = line.data[0] == ' ' || line.data[0] == '\t';
	struct pn_str value = line, name = { NULL, 0 };

	if (!folded)
		name = pn_str_split(&value, ':');
	if (!folded && (value.data == NULL || name.len == 0))
		return;
	exchange->head_lines += !folded;
	if (exchange->head_full || line.len + 3 > head->max - head->len ||
	    exchange->head_lines > PN_HEADER_COUNT_MAX) {
		exchange->head_full = true;
		return;
	}
	if (folded) {
		unfold(head, line);
	} else {
		pn_buf_add_str(head, name);
		pn_buf_add_text(head, ": ");
		pn_buf_add_str(head, pn_str_trim(value));
		pn_buf_add_char(head, '\n');
	}
	for (size_t i = begin; i + 1 < head->len; i++)
		if ((unsigned char)head->data[i] < ' ')
			head->data[i] = ' ';
}

static bool
is_ambiguous(struct pn_client_exchange *exchange, struct pn_str line)
{
	struct pn_str value = line, name = pn_str_split(&value, ':');
	uint64_t length;

	if (value.data == NULL ||
	    !pn_str_equal_fold(name, PN_STR("Content-Length")))
		return false;
	if (pn_parse_uint(pn_str_trim(value), INT64_MAX, &length) != 0)
		return true;
	if (exchange->head_length >= 0 &&
	    exchange->head_length != (int64_t)length)
		return true;
	exchange->head_length = (int64_t)length;
	return false;
}

size_t
pn_client_answer_header(char *data, size_t one, size_t len, void *payload)
{
	struct pn_client_exchange *exchange = payload;
	struct pn_str line = without_crlf((struct pn_str){ data, len });

	assert(one == 1);
	exchange->head_bytes += len;
	if (exchange->head_bytes > HEAD_BYTES_COME_MAX)
		return CURL_WRITEFUNC_ERROR;
	if (exchange->head_done)
		return len; /* a trailer */
	exchange->head_ambiguous = is_ambiguous(exchange, line);
	if (exchange->head_ambiguous)
		return CURL_WRITEFUNC_ERROR;
	if (pn_str_starts(line, "HTTP/"))
		begin_head(exchange, line);
	else if (line.len == 0)
		exchange->head_done = !exchange->head_interim;
	else
		keep_line(exchange, line);
	return pn_buf_failed(&exchange->head) ? CURL_WRITEFUNC_ERROR : len;
}

size_t
pn_client_answer_body(char *data, size_t one, size_t len, void *payload)
{
	struct pn_client_exchange *exchange = payload;
	struct pn_buf *body = &exchange->body;
	size_t room = exchange->request->answer_bytes_max - body->len;
	bool fits = len <= room;

	assert(one == 1);
	assert(body->len <= exchange->request->answer_bytes_max);
	pn_buf_add(body, data, fits ? len : room);
	if (pn_buf_failed(body))
		return CURL_WRITEFUNC_ERROR;
	exchange->cut = !fits;
	return fits ? len : CURL_WRITEFUNC_ERROR;
}

struct pn_str
pn_client_header(const struct pn_client_request *request, const char *name)
{
	struct pn_str rest = request->answer_headers, value;

	/* Ends: the rest gets shorter. */
	while (rest.data != NULL && rest.len > 0) {
		value = pn_str_split(&rest, '\n');
		if (pn_str_equal_fold(
			pn_str_split(&value, ':'), pn_str_from(name)) &&
		    value.data != NULL)
			return pn_str_trim(value);
	}
	return (struct pn_str){ NULL, 0 };
}
