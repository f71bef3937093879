/*
 * Captures and their HTTP headers. What is accepted is cut from the input
 * without a gap: the body is its end, byte for byte, and no header holds a
 * line end or NUL.
 */
#include "fuzz.h"

#include <assert.h>

#include "paynotify/capture.h"
#include "paynotify/limits.h"

static void
check_headers(const struct pn_request *request)
{
	struct pn_str value;

	assert(request->header_count <= PN_HEADER_COUNT_MAX);
	for (size_t i = 0; i < request->header_count; i++) {
		const struct pn_header *header = &request->headers[i];

		assert(header->name.len > 0);
		assert(header->value.len == 0 ||
		       memchr(header->value.data, '\n', header->value.len) ==
			   NULL);
		assert(pn_str_find(header->value, PN_STR("\0")) < 0);
		assert(pn_str_trim(header->value).len == header->value.len);
	}
	assert(pn_request_header(request, "content-length", &value) <= 1);
	assert(pn_request_header(request, "transfer-encoding", &value) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	const struct pn_str raw = { (const char *)data, size };
	struct pn_error error = { "" };
	struct pn_request request;
	int r;

	if (arena == NULL)
		return 0;
	r = pn_capture_parse(arena, raw, &request, &error);
	assert(r == 0 || error.text[0] != '\0');
	if (r == 0) {
		assert(
		    request.body.data + request.body.len == raw.data + raw.len);
		assert(request.body.len <= PN_BODY_BYTES_MAX);
		assert(request.path.len > 0 && request.path.data[0] == '/');
		check_headers(&request);
	}
	pn_arena_free(arena);
	return 0;
}
