/*
 * One request on a connection, from its first line to its reply.
 *
 *   begin      the request line is there: arena
 *   handle     1st call: headers complete -> the handler's begin(), framing,
 *              limits, body buffer
 *              further calls: pieces of the body
 *              last call: body complete -> the handler's submit(), or refuse()
 *   completed  the reply is sent, or the connection broke
 *
 * Phases of a request that is submitted, and who moves it:
 *
 *   READING --handle--> SUBMITTED --handle--> SUSPENDED --done--> DECIDED
 *                           |                                        ^
 *                           +---------------- done ------------------+
 *
 * pn_call_done() may come from any thread, at any moment from the submission on,
 * even before submit() has returned; and what a handler knows the answer of (a
 * notification that is refused unverified) is decided in the same thread, before
 * it returns. A suspension costs two epoll_ctl calls and a wake-up, so such a
 * request must not pay for it. Hence:
 *
 *   1. handle submits without having suspended.
 *   2. If the phase is DECIDED when the submission returns, it replies at once.
 *   3. Else it returns without either, and libmicrohttpd calls it again in its
 *      next turn, which does not wait. Only then it suspends the connection,
 *      and tries SUBMITTED -> SUSPENDED. If that fails, done() came in between
 *      and did not resume (it saw SUBMITTED): handle resumes what it has just
 *      suspended.
 *   4. done() sets DECIDED by an exchange; only if it finds SUSPENDED it
 *      resumes. The connection is suspended by then for certain, because handle
 *      publishes the phase after the suspension.
 *
 * The turn between submission and suspension is for clients that have closed
 * their half: a connection that is suspended while libmicrohttpd wants to read
 * is read when it is resumed, before it is handled, and an end that is found
 * there ends it without a reply. After a turn with the whole request it does not
 * want to. Should the connection break in that turn, done() finds SUBMITTED and
 * leaves it alone.
 *
 * So each suspension is resumed exactly once, by exactly one side. A reply is
 * always queued by the connection's own thread, in handle, never by done():
 * libmicrohttpd allows it for suspended connections, but it would run its state
 * machine in the handler's thread. The answer in the call is published by the
 * same exchange (release) and read after the load or compare-exchange that saw
 * it (acquire), or behind libmicrohttpd's own mutex.
 *
 * Everything lives in one arena, this struct too, with the handler's job behind
 * it, and has two owners: the connection (until completed) and the handler (from
 * submit() until pn_call_release()). The last one tells the handler's end() and
 * frees it; a statement that was overtaken by commit_timeout may be the last by
 * far, so this touches nothing but the arena and the (static) handler, not even
 * the server.
 *
 * A body over the limit, or that begin() does not want, is not buffered but for
 * its first bytes. A sender that asks first (Expect) is refused before it sends,
 * and so is what is announced to be beyond any bound. Else the body is thrown
 * away, up to that bound, and then answered: a reply in mid-upload, and a close
 * with bytes unread, reach the sender as a reset and not as a status; and the
 * connection stays usable.
 *
 * Which refusal is told, when there are several: too many headers, then what
 * begin() says, then an ambiguous length, then a long body.
 */
#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "http_internal.h"

enum {
	/* Of what is not wanted, this much is read before hanging up. */
	DISCARD_BYTES_MAX = 2 * PN_BODY_BYTES_MAX,
	CHUNKED_BYTES_FIRST = 4096,
	/* Of a body that begin() did not want: a refusal is told in the words
	 * of a dialect, and some are known by their first byte. */
	BEGINNING_BYTES = 16,
};

enum phase {
	PHASE_NEW,
	PHASE_READING,
	PHASE_SUBMITTED,
	PHASE_SUSPENDED,
	PHASE_DECIDED
};

struct pn_exchange {
	struct pn_call call; /* first: see exchange_of() */
	const struct pn_handler *handler;
	_Atomic int refs; /* the connection's and the handler's */
	_Atomic int phase;
	bool seen; /* by the handler: it hears of the end */
	struct pn_server *server;
	struct MHD_Connection *connection;
	struct pn_conn *conn;
	int64_t began_us;    /* monotonic: the request line was there */
	struct pn_peer peer; /* who sent it, behind proxies */
	enum pn_refused refusal;
	char *body;
	size_t body_len, body_size;
	bool beginning;     /* body has been discarded as well */
	uint64_t announced; /* Content-Length, or 0 */
	size_t discarded;
	alignas(max_align_t) char job[];
};
static_assert(
    offsetof(struct pn_exchange, call) == 0, "a call is its exchange");

static struct pn_exchange *
exchange_of(struct pn_call *call)
{
	return (struct pn_exchange *)call;
}

/* -- life --------------------------------------------------------------------- */

static void
exchange_unref(struct pn_exchange *x)
{
	int before =
	    atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel);

	assert(before > 0);
	if (before == 1) {
		struct pn_arena *arena = x->call.arena;

		if (x->seen && x->handler->end != NULL)
			x->handler->end(&x->call);
		pn_arena_free(arena); /* and x with it */
	}
}

/* The path of a request target: origin-form, or absolute-form as to a proxy. */
static void
split_target(struct pn_str target, struct pn_request *request)
{
	struct pn_str rest = target;

	if (pn_str_starts(target, "http://") ||
	    pn_str_starts(target, "https://")) {
		ptrdiff_t at = pn_str_find(target, PN_STR("://")) + 3;
		const char *slash =
		    memchr(target.data + at, '/', target.len - (size_t)at);

		if (slash != NULL)
			rest = (struct pn_str){ slash,
				target.len - (size_t)(slash - target.data) };
	}
	request->path = pn_str_split(&rest, '?');
	request->query = rest;
}

void *
pn_exchange_begin(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct pn_server *server = cls;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
	    connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct pn_arena *arena;
	struct pn_exchange *x;
	struct pn_str target;

	if (info == NULL || info->socket_context == NULL)
		return NULL; /* memory was out: handle closes it */
	arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	if (arena == NULL)
		return NULL;
	x = pn_arena_alloc(
	    arena, sizeof(*x) + server->options.handler->job_bytes);
	target = pn_arena_copy(arena, pn_str_from(uri));
	if (x == NULL || target.data == NULL) {
		pn_arena_free(arena);
		return NULL;
	}
	atomic_init(&x->refs, 1);
	atomic_init(&x->phase, PHASE_NEW);
	x->server = server;
	x->connection = connection;
	x->began_us = pn_clock_monotonic_us();
	x->conn = info->socket_context;
	x->handler = server->options.handler;
	x->call.arena = arena;
	x->call.job = x->job;
	split_target(target, &x->call.request);
	(void)atomic_fetch_add(&server->active, 1);
	return x;
}

void
pn_exchange_completed(void *cls, struct MHD_Connection *connection,
    void **exchange, enum MHD_RequestTerminationCode code)
{
	struct pn_server *server = cls;
	struct pn_exchange *x = *exchange;
	unsigned before;

	(void)connection;
	(void)code;
	if (x == NULL)
		return;
	assert(x->connection == connection);
	*exchange = NULL;
	pn_watch_idle(server->watch, x->conn);
	exchange_unref(x);
	before = atomic_fetch_sub(&server->active, 1);
	assert(before > 0);
}

/* -- the handler's side ----------------------------------------------------- */

void
pn_call_done(struct pn_call *call)
{
	struct pn_exchange *x = exchange_of(call);
	struct pn_server *server = x->server;
	struct MHD_Connection *connection = x->connection;
	int before = atomic_exchange_explicit(
	    &x->phase, PHASE_DECIDED, memory_order_acq_rel);
	unsigned pending;

	assert(before == PHASE_SUBMITTED || before == PHASE_SUSPENDED);
	if (before == PHASE_SUSPENDED)
		MHD_resume_connection(connection);
	/* Last: the server may be stopped as soon as this is 0. */
	pending = atomic_fetch_sub(&server->pending, 1);
	assert(pending > 0);
}

void
pn_call_release(struct pn_call *call)
{
	exchange_unref(exchange_of(call));
}

bool
pn_call_rate_limited(struct pn_call *call)
{
	struct pn_exchange *x = exchange_of(call);

	return x->server->limiter != NULL &&
	       pn_limiter_exhausted(
		   x->server->limiter, &x->peer, pn_clock_monotonic_us());
}

/* -- replies ------------------------------------------------------------------ */

static enum MHD_Result
reply(struct pn_exchange *x, bool close)
{
	pn_watch_reply(x->server->watch, x->conn, x->call.answer.body.len);
	pn_series_observe(
	    x->call.seconds, pn_clock_monotonic_us() - x->began_us);
	return pn_reply_send(x->connection, &x->call.answer,
	    pn_str_is(x->call.request.method, "HEAD"),
	    close || atomic_load(&x->server->stopping));
}

static enum MHD_Result
reply_refused(struct pn_exchange *x, bool close)
{
	uint64_t read = x->discarded + (x->beginning ? 0 : x->body_len);

	assert(x->refusal != PN_REFUSED_NOT);
	if (x->body != NULL)
		x->call.request.body = (struct pn_str){ x->body, x->body_len };
	x->call.body_bytes = read > x->announced ? read : x->announced;
	x->seen = true;
	x->handler->refuse(x->server->options.service, &x->call, x->refusal);
	return reply(x, close);
}

/* -- headers complete --------------------------------------------------------- */

/* 0, 1: too many headers; -ENOMEM. */
static int
prepare(struct pn_exchange *x, const char *method)
{
	struct pn_request *request = &x->call.request;
	struct pn_header *headers = NULL;
	size_t count = 0;
	int r = pn_head_read(x->connection, x->call.arena, &headers, &count);

	if (r < 0)
		return r;
	request->method = pn_arena_copy(x->call.arena, pn_str_from(method));
	if (request->method.data == NULL)
		return -ENOMEM;
	request->headers = headers;
	request->header_count = count;
	request->body = PN_STR("");
	pn_peer_forwarded(&x->server->options.conf->trusted_proxies,
	    &x->conn->peer, headers, count, &x->peer);
	request->peer = pn_str_from(x->peer.text);
	x->call.from_proxy = x->conn->trusted;
	x->call.from_unix = x->conn->is_unix;
	return r;
}

static bool
reserve(struct pn_exchange *x, size_t size)
{
	char *body = pn_arena_alloc(x->call.arena, size);

	if (body == NULL)
		return false;
	assert(x->body != NULL || x->body_len == 0);
	if (x->body != NULL)
		memcpy(body, x->body, x->body_len);
	x->body = body;
	x->body_size = size;
	return true;
}

/* A body that is not wanted: answered at once, or read to its end first. */
static enum MHD_Result
not_wanted(struct pn_exchange *x, uint64_t length)
{
	struct pn_str expect;

	if (length > DISCARD_BYTES_MAX ||
	    pn_request_header(&x->call.request, "Expect", &expect) > 0)
		return reply_refused(x, true);
	pn_watch_request(x->server->watch, x->conn);
	return MHD_YES;
}

static enum MHD_Result
headers_complete(struct pn_exchange *x, const char *method)
{
	const struct pn_server_options *options = &x->server->options;
	uint64_t length = 0;
	enum pn_framing framing;
	int r = prepare(x, method);

	if (r < 0)
		return MHD_NO;
	if (r > 0) {
		x->refusal = PN_REFUSED_HEADERS;
		return reply_refused(x, true);
	}
	x->seen = true;
	x->refusal = x->handler->begin(options->service, &x->call);
	assert((unsigned)x->refusal < PN_REFUSED_COUNT);
	framing = pn_head_framing(&x->call.request, &length);
	if (framing == PN_FRAMING_AMBIGUOUS) {
		if (x->refusal == PN_REFUSED_NOT)
			x->refusal = PN_REFUSED_LENGTH;
		return reply_refused(x, true);
	}
	x->announced = length;
	if (x->refusal == PN_REFUSED_NOT && length > options->body_bytes_max)
		x->refusal = PN_REFUSED_BODY;
	if (x->refusal != PN_REFUSED_NOT)
		return not_wanted(x, length);
	if (length > 0 && !reserve(x, (size_t)length))
		return MHD_NO;
	pn_watch_request(x->server->watch, x->conn);
	return MHD_YES;
}

/* -- the body --------------------------------------------------------------- */

static bool
make_room(struct pn_exchange *x, size_t needed)
{
	size_t size = x->body_size == 0 ? CHUNKED_BYTES_FIRST : x->body_size;
	size_t limit = x->server->options.body_bytes_max;

	assert(needed <= limit);
	while (size < needed)
		size *= 2;
	return reserve(x, size < limit ? size : limit);
}

static bool
keep_beginning(struct pn_exchange *x, const char *data, size_t len)
{
	x->beginning = true;
	if (!reserve(x, BEGINNING_BYTES))
		return false;
	x->body_len = len < BEGINNING_BYTES ? len : BEGINNING_BYTES;
	memcpy(x->body, data, x->body_len);
	return true;
}

static enum MHD_Result
take_body(struct pn_exchange *x, const char *data, size_t len)
{
	if (x->refusal == PN_REFUSED_NOT &&
	    len > x->server->options.body_bytes_max - x->body_len)
		x->refusal = PN_REFUSED_BODY;
	if (x->refusal != PN_REFUSED_NOT) {
		if (x->body == NULL && !keep_beginning(x, data, len))
			return MHD_NO;
		x->discarded += len;
		return x->discarded > DISCARD_BYTES_MAX ? MHD_NO : MHD_YES;
	}
	if (len > x->body_size - x->body_len &&
	    !make_room(x, x->body_len + len))
		return MHD_NO;
	memcpy(x->body + x->body_len, data, len);
	x->body_len += len;
	return MHD_YES;
}

/* -- body complete ------------------------------------------------------------ */

static enum MHD_Result
submit(struct pn_exchange *x)
{
	struct pn_server *server = x->server;

	x->call.request.body =
	    (struct pn_str){ x->body == NULL ? "" : x->body, x->body_len };
	pn_watch_pause(x->conn);
	/* Sequentially consistent, as the other side's "set refusing, then read
	 * pending": one of the two sees the other. */
	(void)atomic_fetch_add(&server->pending, 1);
	if (atomic_load(&server->refusing)) {
		(void)atomic_fetch_sub(&server->pending, 1);
		x->refusal = PN_REFUSED_STOPPING;
		return reply_refused(x, true);
	}
	(void)atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&x->phase, PHASE_SUBMITTED, memory_order_relaxed);
	x->handler->submit(server->options.service, &x->call);
	if (atomic_load_explicit(&x->phase, memory_order_acquire) ==
	    PHASE_DECIDED)
		return reply(x, false);
	return MHD_YES;
}

/* Until done(). */
static enum MHD_Result
suspend(struct pn_exchange *x)
{
	int expected = PHASE_SUBMITTED;

	MHD_suspend_connection(x->connection);
	if (!atomic_compare_exchange_strong_explicit(&x->phase, &expected,
		PHASE_SUSPENDED, memory_order_acq_rel, memory_order_acquire)) {
		assert(expected == PHASE_DECIDED);
		MHD_resume_connection(x->connection);
	}
	return MHD_YES;
}

static enum MHD_Result
body_complete(struct pn_exchange *x)
{
	if (x->refusal == PN_REFUSED_NOT)
		return submit(x);
	return reply_refused(x, x->refusal == PN_REFUSED_BODY);
}

enum MHD_Result
pn_exchange_handle(void *cls, struct MHD_Connection *connection,
    const char *url, const char *method, const char *version,
    const char *upload, size_t *upload_len, void **exchange)
{
	struct pn_exchange *x = *exchange;
	enum MHD_Result r;

	(void)cls;
	(void)url; /* decoded; the exchange has it as it came */
	(void)version;
	if (x == NULL)
		return MHD_NO;
	assert(x->connection == connection);
	switch (atomic_load_explicit(&x->phase, memory_order_acquire)) {
	case PHASE_NEW:
		atomic_store_explicit(
		    &x->phase, PHASE_READING, memory_order_relaxed);
		return headers_complete(x, method);
	case PHASE_READING:
		if (*upload_len == 0)
			return body_complete(x);
		r = take_body(x, upload, *upload_len);
		*upload_len = 0;
		return r;
	case PHASE_SUBMITTED: return suspend(x);
	case PHASE_DECIDED: return reply(x, false);
	default:
		/* A suspended connection is not handled. */
		assert(!"handled while suspended");
		return MHD_NO;
	}
}
