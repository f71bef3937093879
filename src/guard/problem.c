/*
 * What the gateway itself answers: problems as RFC 9457 has them. One row of a
 * table each: type, status, title, and a text for who reads a log of it at
 * night: what was wrong, whether anything was done, and whether to ask again,
 * with which key.
 *
 * The bodies are made by the compiler, so an answer without anything of its own
 * costs no memory and cannot fail; one that has a detail but no memory for it
 * falls back to that. Texts are ASCII without quotes and backslashes: they stand
 * in JSON as they are (test_problem.c reads them all).
 *
 * A type is stable: clients may switch on it. Texts may change. What an upstream
 * answers never comes here: it goes on to the client as it is.
 */
#include "guard_internal.h"

#include <assert.h>
#include <inttypes.h>

#include "paynotify/json.h"
#include "paynotify/moment.h"

enum {
	DETAIL_BYTES_MAX = 4096,
	RETRY_AFTER_S_MAX = 24 * 60 * 60,
};

/* The header that comes besides Content-Type. */
enum extra {
	PLAIN, /* none */
	AGAIN, /* Retry-After: a second, unless more is known */
	WHO,   /* WWW-Authenticate */
};

struct row {
	const char *name, *text;
	struct pn_str head, body; /* head: of the body, up to its text */
	unsigned status;
	enum extra extra;
};

#define HEAD(name, status, title)                                         \
	"{\"type\":\"urn:paynotify:problem:" name "\",\"title\":\"" title \
	"\",\"status\":" #status ",\"detail\":\""
#define BODY(name, status, title, text) HEAD(name, status, title) text "\"}\n"
#define LITERAL(text)                    \
	{                                \
		(text), sizeof(text) - 1 \
	}
#define ROW(problem, name, status, extra, title, text) \
	[PN_PROBLEM_##problem] = { (name), (text),     \
		LITERAL(HEAD(name, status, title)),    \
		LITERAL(BODY(name, status, title, text)), (status), (extra) }

/* clang-format off */
static const struct row rows[PN_PROBLEM_COUNT] = {
	ROW(NOT_FOUND, "not-found", 404, PLAIN,
	    "No such route",
	    "The gateway serves no route at this path. Nothing was done. "
	    "Look at the path and at the [guard] sections of its "
	    "configuration."),
	ROW(METHOD, "method", 405, PLAIN,
	    "Method not allowed",
	    "There is a route at this path, but not for this method. "
	    "Nothing was done. The header Allow names the methods there "
	    "are."),
	ROW(BODY_TOO_LARGE, "body-too-large", 413, PLAIN,
	    "Request body too large",
	    "The body is longer than the gateway takes ([guard] max_body). "
	    "Nothing was done. The same request is always refused: send a "
	    "shorter one."),
	ROW(URI_TOO_LONG, "uri-too-long", 414, PLAIN,
	    "URI too long",
	    "With what has to be escaped in it the address for the upstream "
	    "is longer than 16 kB. Nothing was done. The same request is "
	    "always refused: send what is long in the body."),
	ROW(HEADERS_TOO_MANY, "headers-too-many", 431, PLAIN,
	    "Too many header lines",
	    "The request has more or longer header lines than the gateway "
	    "takes. Nothing was done. Send fewer."),
	ROW(LENGTH_AMBIGUOUS, "length-ambiguous", 400, PLAIN,
	    "Length of the body is ambiguous",
	    "Content-Length stands twice, is no number or comes together "
	    "with Transfer-Encoding; or a header is folded, or has no "
	    "proper name. Nothing was done. Look at the client's HTTP "
	    "library and the proxies on the way."),
	ROW(BODY_UNEXPECTED, "body-unexpected", 400, PLAIN,
	    "HEAD has no body",
	    "A HEAD request with a body is one that servers read "
	    "differently. Nothing was done. Send it without a body, or "
	    "with the method that is meant."),
	ROW(METHOD_OVERRIDE, "method-override", 400, PLAIN,
	    "A header names another method",
	    "X-HTTP-Method-Override, X-HTTP-Method or X-Method-Override "
	    "names another method than the request has: what the upstream "
	    "does then is not what the gateway guards. Nothing was done. "
	    "Send the request with the method that is meant, and without "
	    "the header."),
	ROW(STOPPING, "stopping", 503, AGAIN,
	    "The gateway is stopping",
	    "Nothing was done. Send the same request with the same key "
	    "again in a moment."),
	ROW(KEY_MISSING, "key-missing", 400, PLAIN,
	    "Idempotency-Key is missing",
	    "This route wants the header Idempotency-Key. Nothing was "
	    "done. Make a new random key (a UUID) for each operation, "
	    "store it before the request is sent, and send it again with "
	    "every repeat of that operation."),
	ROW(KEY_EMPTY, "key-empty", 400, PLAIN,
	    "Idempotency-Key is empty",
	    "The header Idempotency-Key has no value. Nothing was done. "
	    "Look at why the client's variable is empty; a key is 1 to 255 "
	    "printable ASCII characters."),
	ROW(KEY_TOO_LONG, "key-too-long", 400, PLAIN,
	    "Idempotency-Key is too long",
	    "A key has at most 255 characters. Nothing was done. Use a "
	    "UUID, or a digest of what the key is made of."),
	ROW(KEY_REPEATED, "key-repeated", 400, PLAIN,
	    "More than one Idempotency-Key",
	    "Idempotency-Key and X-Idempotency-Key are two names of one "
	    "header, and a request must have only one line of it. Nothing "
	    "was done. Look at who adds the other: the client's library, "
	    "or a proxy."),
	ROW(KEY_MALFORMED, "key-malformed", 400, PLAIN,
	    "Idempotency-Key is malformed",
	    "A key is printable ASCII. One that begins with a quote must "
	    "be a whole string of RFC 8941, with only quotes and "
	    "backslashes escaped, and no quote at its beginning nor a "
	    "blank at either end. Nothing was done. Mend the key and send "
	    "the request again."),
	ROW(TENANT_MISSING, "tenant-missing", 400, PLAIN,
	    "The tenant is missing",
	    "The header that names the tenant is missing, stands twice or "
	    "holds no name of 1 to 128 printable ASCII characters. Nothing "
	    "was done. The proxy in front of the gateway must set it: see "
	    "tenant_header of the route."),
	ROW(TENANT_UNTRUSTED, "tenant-untrusted", 403, PLAIN,
	    "The tenant is not believed",
	    "On this route only a trusted proxy says who the tenant is, "
	    "and the request did not come through one. Nothing was done. "
	    "Ask through the proxy, or have the operator list it in "
	    "[server] trusted_proxies."),
	ROW(API_KEY, "api-key", 401, WHO,
	    "No valid API key",
	    "This route wants exactly one API key, as Authorization: "
	    "Bearer KEY or as X-Api-Key: KEY, and one that it knows. "
	    "Nothing was done."),
	ROW(MISMATCH, "mismatch", 422, PLAIN,
	    "The key was used for another request",
	    "This Idempotency-Key came first with another body, query or "
	    "path. Nothing was done now. To repeat the first operation "
	    "send exactly the first request; for a new operation make a "
	    "new key."),
	ROW(IN_PROGRESS, "in-progress", 409, AGAIN,
	    "The first request is still being worked on",
	    "A request with this key came before and has no answer yet, or "
	    "its end is not known yet. Nothing was done for this one. Send "
	    "it again with the same key after the time in Retry-After; a "
	    "new key could do the work twice."),
	ROW(SET_ASIDE, "set-aside", 409, PLAIN,
	    "The key was set aside for an operator",
	    "Whether the work of this key was done is not known. It is not "
	    "tried again by itself, and a new key could do it twice. The "
	    "merchant's operator looks at it with paynotifyctl keys show "
	    "and decides; until then this answer stays."),
	ROW(EXPIRED, "expired", 422, PLAIN,
	    "The key has expired",
	    "This key was used before, and its answer is no longer kept. "
	    "Nothing was done now. First find out what became of that "
	    "operation; make a new key only for a new one."),
	ROW(DATABASE, "database", 503, AGAIN,
	    "The database did not answer",
	    "The key could not be looked up, so the upstream was not "
	    "asked. Send the same request with the same key again."),
	ROW(NO_ROOM, "no-room", 503, AGAIN,
	    "The route is busy",
	    "As many requests as the route allows (max_in_flight) are "
	    "being worked on. Nothing was done for this one, and its key "
	    "is free. Send it again with the same key in a moment."),
	ROW(UPSTREAM_UNREACHABLE, "upstream-unreachable", 502, AGAIN,
	    "The upstream cannot be reached",
	    "No byte of the request reached the upstream. Nothing was "
	    "done, and the key is free. Send the same request with the "
	    "same key again."),
	ROW(UPSTREAM_TIMEOUT, "upstream-timeout", 504, PLAIN,
	    "The upstream did not answer in time",
	    "The upstream was asked and may have done the work, or do it "
	    "yet. Send the same request with the same key again: it tells "
	    "what is known then. A new key could do the work twice."),
	ROW(UPSTREAM_LOST, "upstream-lost", 502, PLAIN,
	    "The upstream's answer was lost",
	    "The connection to the upstream broke, or what it answered was "
	    "no HTTP, after it was asked: it may have done the work. Send "
	    "the same request with the same key again: it tells what is "
	    "known then. A new key could do the work twice."),
	ROW(RESPONSE_TOO_LARGE, "response-too-large", 502, PLAIN,
	    "The upstream's answer is too large",
	    "The upstream answered with more than the route's "
	    "max_response, or with more than 100 header lines or 16 kB of "
	    "them, which cannot be kept: the work may have been done. A "
	    "new key could do it twice. The merchant's operator raises "
	    "max_response or has the upstream answer with less."),
	ROW(LEASE_LOST, "lease-lost", 409, AGAIN,
	    "The lease of the key was lost",
	    "The gateway held the key no longer when the upstream "
	    "answered, so that answer was not kept: another request may "
	    "have the key, or an operator. Send the same request with the "
	    "same key again: it tells what counts. A new key could do the "
	    "work twice."),
	ROW(NOT_STORED, "not-stored", 503, AGAIN,
	    "The answer could not be stored",
	    "The upstream answered, but the database did not confirm that "
	    "the answer is kept. The work may have been done. Send the "
	    "same request with the same key again; a new key could do the "
	    "work twice."),
	ROW(INTERRUPTED, "interrupted", 503, AGAIN,
	    "The gateway stopped meanwhile",
	    "The gateway was stopped while the upstream was asked: the "
	    "work may have been done. Send the same request with the same "
	    "key again; a new key could do the work twice."),
	ROW(MEMORY, "memory", 503, AGAIN,
	    "The gateway is out of memory",
	    "Send the same request with the same key again in a moment: "
	    "the key keeps the work from being done twice."),
};
/* clang-format on */

static const struct pn_header plain_headers[] = {
	{ LITERAL("Content-Type"), LITERAL("application/problem+json") },
};
static const struct pn_header again_headers[] = {
	{ LITERAL("Content-Type"), LITERAL("application/problem+json") },
	{ LITERAL("Retry-After"), LITERAL("1") },
};
static const struct pn_header who_headers[] = {
	{ LITERAL("Content-Type"), LITERAL("application/problem+json") },
	{ LITERAL("WWW-Authenticate"), LITERAL("Bearer") },
};

static const struct row *
row_of(enum pn_problem problem)
{
	assert(problem > PN_PROBLEM_NONE && problem < PN_PROBLEM_COUNT);
	assert(rows[problem].status >= 400);
	return &rows[problem];
}

unsigned
pn_problem_status(enum pn_problem problem)
{
	return row_of(problem)->status;
}

const char *
pn_problem_name(enum pn_problem problem)
{
	return row_of(problem)->name;
}

/* Of static memory only. */
static struct pn_answer
plain_answer(const struct row *row)
{
	struct pn_answer answer = { .status = row->status,
		.headers = plain_headers,
		.header_count = PN_COUNT(plain_headers),
		.body = row->body };

	if (row->extra == AGAIN) {
		answer.headers = again_headers;
		answer.header_count = PN_COUNT(again_headers);
	} else if (row->extra == WHO) {
		answer.headers = who_headers;
		answer.header_count = PN_COUNT(who_headers);
	}
	return answer;
}

/* data NULL: no memory. */
static struct pn_str
detailed_body(const struct row *row, const char *detail, struct pn_arena *arena)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(DETAIL_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf body = pn_buf_init(DETAIL_BYTES_MAX * 8);

	/* The detail is a reason as the log has it: no sentence of its own. */
	pn_buf_printf(&text, "%s Reason: %s%s", row->text, detail,
	    detail[strlen(detail) - 1] == '.' ? "" : ".");
	/* The head ends with the quote that the string begins with. */
	pn_buf_add(&body, row->head.data, row->head.len - 1);
	pn_json_add_string(&body, pn_buf_str(&text));
	pn_buf_add_text(&body, "}\n");
	if (pn_buf_failed(&text) || pn_buf_failed(&body))
		return (struct pn_str){ NULL, 0 };
	return pn_arena_copy(arena, pn_buf_str(&body));
}

static int64_t
seconds_up(int64_t us)
{
	int64_t seconds = us / PN_SECOND_US + (us % PN_SECOND_US != 0);

	if (seconds < 1)
		return 1;
	return seconds > RETRY_AFTER_S_MAX ? RETRY_AFTER_S_MAX : seconds;
}

/* The second header, in place of a static one or behind it. False: no memory. */
static bool
set_header(struct pn_answer *answer, struct pn_str name, struct pn_str value,
    struct pn_arena *arena)
{
	struct pn_header *headers = pn_arena_alloc(arena, 2 * sizeof(*headers));

	if (headers == NULL || value.data == NULL)
		return false;
	headers[0] = answer->headers[0];
	headers[1] = (struct pn_header){ .name = name, .value = value };
	answer->headers = headers;
	answer->header_count = 2;
	return true;
}

void
pn_problem_answer(enum pn_problem problem, const char *detail,
    int64_t retry_after_us, const char *allow, struct pn_arena *arena,
    struct pn_answer *ret_answer)
{
	const struct row *row = row_of(problem);
	struct pn_answer answer = plain_answer(row);
	bool ok = true;

	*ret_answer = answer;
	if (detail != NULL && detail[0] != '\0') {
		answer.body = detailed_body(row, detail, arena);
		ok = answer.body.data != NULL;
	}
	if (ok && row->extra == AGAIN && retry_after_us != 0)
		ok = set_header(&answer, PN_STR("Retry-After"),
		    pn_arena_printf(
			arena, "%" PRId64, seconds_up(retry_after_us)),
		    arena);
	if (ok && problem == PN_PROBLEM_METHOD && allow != NULL)
		ok = set_header(&answer, PN_STR("Allow"),
		    pn_arena_copy(arena, pn_str_from(allow)), arena);
	if (ok)
		*ret_answer = answer;
}
