/*
 * An answer's bytes on the wire.
 *
 * A reply is one libmicrohttpd response that points at the body in the request's
 * arena: nothing is copied, and the arena outlives the response, because the
 * exchange lets go of it in the completed callback only.
 *
 * libmicrohttpd wants header names and values to end in a NUL, and copies them;
 * so each is set down on the stack for it. Not in the arena: a handler that has
 * decided may still be using that. A header of a foreign server may be none that
 * it can send (a line break in it, beyond any bound); it is passed over, because an
 * answer without that header is better than none. So is what it says about its own
 * framing: the body that is sent is the server's to frame. An empty value, which
 * libmicrohttpd refuses, is sent as a blank: that is what a reader takes off.
 *
 * Where HTTP has no body (204, 304, an answer to HEAD) libmicrohttpd sends none
 * whatever is given to it, but it says how long it would be. Of a HEAD or a 304
 * without one whoever answers may know that from elsewhere (unsent_bytes). If not,
 * "Content-Length: 0" would be a lie that a cache believes; libmicrohttpd's only
 * way to say nothing is a body of unknown length in the manner of HTTP/1.0, which
 * costs the connection.
 */
#include <assert.h>
#include <string.h>

#include "http_internal.h"

enum { LINE_BYTES_MAX = PN_HEADER_BYTES_MAX };

/* What this server alone says. */
static const struct pn_str own_names[] = {
	{ "Content-Length", 14 },
	{ "Transfer-Encoding", 17 },
	{ "Connection", 10 },
	{ "Date", 4 },
};

static ssize_t
no_body(void *cls, uint64_t at, char *buffer, size_t size)
{
	(void)cls;
	(void)at;
	(void)buffer;
	(void)size;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Takes the body by reference. libmicrohttpd wants it writable and does not
 * write to it. */
static struct MHD_Response *
response_of(struct pn_str body)
{
	return MHD_create_response_from_buffer(
	    body.len, (void *)(uintptr_t)body.data, MHD_RESPMEM_PERSISTENT);
}

/* Of what has no body here, but elsewhere one; 0: of any length. */
static struct MHD_Response *
response_of_unsent(uint64_t bytes)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
	    bytes == 0 ? MHD_SIZE_UNKNOWN : bytes, 1, no_body, NULL, NULL);

	if (response != NULL && bytes == 0)
		(void)MHD_set_response_options(
		    response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	return response;
}

static bool
is_own(struct pn_str name)
{
	for (size_t i = 0; i < PN_COUNT(own_names); i++)
		if (pn_str_equal_fold(name, own_names[i]))
			return true;
	return false;
}

/* Bytes that would end the line, or the text before its end. */
static bool
is_clean(struct pn_str s)
{
	return memchr(s.data, '\0', s.len) == NULL &&
	       memchr(s.data, '\r', s.len) == NULL &&
	       memchr(s.data, '\n', s.len) == NULL;
}

/* False: memory is out. */
static bool
add(struct MHD_Response *response, const struct pn_header *header)
{
	char line[LINE_BYTES_MAX];
	struct pn_str name = header->name, value = header->value;
	char *text;

	if (value.len == 0)
		value = PN_STR(" ");
	if (name.len == 0 || name.len + value.len + 2 > sizeof(line) ||
	    !is_clean(name) || memchr(name.data, '\t', name.len) != NULL ||
	    !is_clean(value) || is_own(name))
		return true;
	memcpy(line, name.data, name.len);
	line[name.len] = '\0';
	text = line + name.len + 1;
	memcpy(text, value.data, value.len);
	text[value.len] = '\0';
	return MHD_add_response_header(response, line, text) == MHD_YES;
}

enum MHD_Result
pn_reply_send(struct MHD_Connection *connection, const struct pn_answer *answer,
    bool head, bool close)
{
	bool unsent = answer->body.len == 0 &&
		      (head || answer->status == MHD_HTTP_NOT_MODIFIED);
	struct MHD_Response *response =
	    unsent ? response_of_unsent(answer->unsent_bytes)
		   : response_of(answer->body);
	enum MHD_Result r = MHD_NO;
	bool ok = true;

	assert(answer->status >= MHD_HTTP_OK && answer->status <= 999);
	if (response == NULL)
		return MHD_NO;
	for (size_t i = 0; ok && i < answer->header_count; i++)
		ok = add(response, &answer->headers[i]);
	if (close)
		ok = ok && MHD_add_response_header(response,
			       MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
	/* MHD_NO makes libmicrohttpd close the connection: the sender then
	 * tries again, which is right when memory is out. */
	if (ok)
		r = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return r;
}
