/*
 * Outcome to status, and the bytes on the wire. This is the one place where an
 * outcome becomes a status code (DESIGN.md section 6); what the body says is the
 * provider's affair.
 *
 * A reply is one libmicrohttpd response that points at the body in the request's
 * arena: nothing is copied, and the arena outlives the response, because the
 * exchange lets go of it in the completed callback only.
 *
 * Retry-After goes with 429 and 503: 2 to 5 seconds, spread, so that the senders
 * that a short outage refused do not all come back in the same second.
 */
#include <assert.h>

#include "paynotify/log.h"

#include "http_internal.h"

static const unsigned status_of_outcome[PN_OUTCOME_COUNT] = {
	[PN_OUTCOME_SUCCESS] = 200,
	[PN_OUTCOME_MALFORMED] = 400,
	[PN_OUTCOME_UNAUTHENTIC] = 401,
	[PN_OUTCOME_WRONG_ACCOUNT] = 403,
	[PN_OUTCOME_CONFLICT] = 422,
	[PN_OUTCOME_RATE_LIMITED] = 429,
	[PN_OUTCOME_UNDECRYPTABLE] = 500,
	[PN_OUTCOME_UNAVAILABLE] = 503,
};

static const struct page {
	unsigned status;
	struct pn_str body;
	const char *allow;
} pages[PN_PAGE_COUNT] = {
	[PN_PAGE_NOT_FOUND] = { 404, { "not found", 9 }, NULL },
	[PN_PAGE_METHOD] = { 405, { "method not allowed", 18 }, "POST" },
	[PN_PAGE_TOO_LARGE] = { 413, { "body too large", 14 }, NULL },
	[PN_PAGE_HEADERS] = { 431, { "too many headers", 16 }, NULL },
};

static const char *const retry_after[] = { "2", "3", "4", "5" };

unsigned
pn_server_status(enum pn_outcome outcome)
{
	assert((unsigned)outcome < PN_OUTCOME_COUNT);
	return status_of_outcome[outcome];
}

/* Takes the body by reference. libmicrohttpd wants it writable and does not
 * write to it. */
static struct MHD_Response *
response_of(struct pn_str body)
{
	return MHD_create_response_from_buffer(
	    body.len, (void *)(uintptr_t)body.data, MHD_RESPMEM_PERSISTENT);
}

static bool
add(struct MHD_Response *response, const char *name, const char *value)
{
	return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Queues and lets go. MHD_NO makes libmicrohttpd close the connection: the
 * sender then tries again, which is right when memory is out. */
static enum MHD_Result
queue(struct MHD_Connection *connection, unsigned status,
    struct MHD_Response *response, bool complete)
{
	enum MHD_Result r = MHD_NO;

	if (complete)
		r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

enum MHD_Result
pn_reply_page(struct MHD_Connection *connection, enum pn_page page, bool close)
{
	const struct page *p = &pages[page];
	struct MHD_Response *response = response_of(p->body);
	bool ok;

	assert((unsigned)page < PN_PAGE_COUNT);
	if (response == NULL)
		return MHD_NO;
	ok = add(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	if (p->allow != NULL)
		ok = ok && add(response, MHD_HTTP_HEADER_ALLOW, p->allow);
	if (close)
		ok = ok && add(response, MHD_HTTP_HEADER_CONNECTION, "close");
	return queue(connection, p->status, response, ok);
}

enum MHD_Result
pn_reply_send(struct MHD_Connection *connection, enum pn_outcome outcome,
    const struct pn_reply *reply, bool close)
{
	unsigned status =
	    reply->status_is_200 ? MHD_HTTP_OK : pn_server_status(outcome);
	struct MHD_Response *response = response_of(reply->body);
	bool ok;

	if (response == NULL)
		return MHD_NO;
	ok = add(response, MHD_HTTP_HEADER_CONTENT_TYPE,
	    reply->content_type == NULL ? "text/plain" : reply->content_type);
	if (status == MHD_HTTP_TOO_MANY_REQUESTS ||
	    status == MHD_HTTP_SERVICE_UNAVAILABLE) {
		uint64_t spread = (uint64_t)pn_clock_monotonic_us();

		ok = ok && add(response, MHD_HTTP_HEADER_RETRY_AFTER,
			       retry_after[spread % PN_COUNT(retry_after)]);
	}
	if (close)
		ok = ok && add(response, MHD_HTTP_HEADER_CONNECTION, "close");
	return queue(connection, status, response, ok);
}
