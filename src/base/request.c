/*
 * Looking up the headers of a request.
 *
 * A linear walk over at most PN_HEADER_COUNT_MAX headers: a notification has
 * about ten, and six are asked for. The number of occurrences is told, because
 * a header that stands twice is an attack on whoever reads the other one; what
 * to do about it is the caller's decision.
 */
#include "paynotify/request.h"

#include <assert.h>

#include "paynotify/limits.h"

size_t
pn_request_header(const struct pn_request *request, const char *name,
    struct pn_str *ret_value)
{
	struct pn_str wanted = pn_str_from(name), value = { NULL, 0 };
	size_t count = 0;

	assert(request->header_count <= PN_HEADER_COUNT_MAX);
	for (size_t i = 0; i < request->header_count; i++) {
		if (!pn_str_equal_fold(request->headers[i].name, wanted))
			continue;
		if (count++ == 0)
			value = request->headers[i].value;
	}
	*ret_value = value;
	return count;
}
