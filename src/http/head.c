/*
 * The head of a request: its headers, copied, and how long its body is.
 *
 * Copied, because what libmicrohttpd hands out lives as long as the request on
 * the connection, and a request in the pipeline may live longer (a statement
 * that commit_timeout has overtaken is left to end).
 *
 * Where the body ends must not depend on who reads the head: a Content-Length
 * that is repeated (even with the same value), that is not a plain number, or
 * that comes with a Transfer-Encoding, and any Transfer-Encoding but "chunked"
 * alone, are ambiguous and refused. So is a header without a proper name, such as
 * one with a space before the colon, and a line that is folded: of either
 * libmicrohttpd makes a header of another name, and a length in it is lost. It lets
 * all of that pass and prefers one reading; a proxy in front may prefer the other,
 * and then what it takes for the next request is part of this body.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "paynotify/parse.h"

#include "http_internal.h"

struct reading {
	struct pn_arena *arena;
	struct pn_header *headers;
	size_t count;
	bool failed; /* memory was out */
};

/*
 * libmicrohttpd reads a head where it lies, so a value stands behind its name. The
 * continuation of a folded line it appends to the name: then the value does not, or
 * the name has moved to newer memory, which is at a higher address.
 */
static bool
is_folded(const char *key, size_t key_len, const char *value)
{
	return value != NULL && (uintptr_t)value <= (uintptr_t)key + key_len;
}

static enum MHD_Result
copy_header(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_len,
    const char *value, size_t value_len)
{
	struct reading *reading = cls;
	struct pn_header *header = &reading->headers[reading->count];

	(void)kind;
	if (is_folded(key, key_len, value))
		key_len = 0; /* no name, which pn_head_framing() refuses */
	header->name =
	    pn_arena_copy(reading->arena, (struct pn_str){ key, key_len });
	header->value = pn_arena_copy(reading->arena,
	    pn_str_trim(
		(struct pn_str){ value, value == NULL ? 0 : value_len }));
	if (header->name.data == NULL || header->value.data == NULL) {
		reading->failed = true;
		return MHD_NO;
	}
	reading->count++;
	return MHD_YES;
}

int
pn_head_read(struct MHD_Connection *connection, struct pn_arena *arena,
    struct pn_header **ret_headers, size_t *ret_count)
{
	int count = MHD_get_connection_values_n(
	    connection, MHD_HEADER_KIND, NULL, NULL);
	struct reading reading = { .arena = arena };

	if (count < 0)
		return -ENOMEM;
	if (count > PN_HEADER_COUNT_MAX)
		return 1;
	reading.headers = pn_arena_alloc(
	    arena, ((size_t)count + 1) * sizeof(*reading.headers));
	if (reading.headers == NULL)
		return -ENOMEM;
	(void)MHD_get_connection_values_n(
	    connection, MHD_HEADER_KIND, copy_header, &reading);
	if (reading.failed)
		return -ENOMEM;
	assert(reading.count == (size_t)count);
	*ret_headers = reading.headers;
	*ret_count = reading.count;
	return 0;
}

enum pn_framing
pn_head_framing(const struct pn_request *request, uint64_t *ret_length)
{
	struct pn_str length, encoding;
	size_t lengths, encodings;

	for (size_t i = 0; i < request->header_count; i++)
		if (!pn_str_is_token(request->headers[i].name))
			return PN_FRAMING_AMBIGUOUS;
	lengths = pn_request_header(request, "Content-Length", &length);
	encodings = pn_request_header(request, "Transfer-Encoding", &encoding);
	if (lengths + encodings > 1)
		return PN_FRAMING_AMBIGUOUS;
	*ret_length = 0;
	if (lengths == 1)
		return pn_parse_uint(length, INT64_MAX, ret_length) == 0
			   ? PN_FRAMING_LENGTH
			   : PN_FRAMING_AMBIGUOUS;
	if (encodings == 1)
		return pn_str_equal_fold(encoding, PN_STR("chunked"))
			   ? PN_FRAMING_CHUNKED
			   : PN_FRAMING_AMBIGUOUS;
	return PN_FRAMING_LENGTH;
}
