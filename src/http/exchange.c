/*
 * One request on a connection, from its first line to its reply.
 *
 *   begin      the request line is there: arena, route
 *   handle     1st call: headers complete -> framing, limits, body buffer
 *              further calls: pieces of the body
 *              last call: body complete -> pipeline, or a page of our own
 *   completed  the reply is sent, or the connection broke
 *
 * Phases of a request that goes into the pipeline, and who moves it:
 *
 *   READING --handle--> SUBMITTED --handle--> SUSPENDED --done--> DECIDED
 *                           |                                        ^
 *                           +---------------- done ------------------+
 *
 * done() may come from a store thread, at any moment from the submission on, even
 * before pn_ingest_submit() has returned; and what is refused unverified is
 * decided in the same thread, before it returns. A suspension costs two
 * epoll_ctl calls and a wake-up, so such a request must not pay for it. Hence:
 *
 *   1. handle submits without having suspended.
 *   2. If the phase is DECIDED when the submission returns, it replies at once.
 *   3. Else it suspends the connection and then tries SUBMITTED -> SUSPENDED. If
 *      that fails, done() came in between and did not resume (it saw SUBMITTED):
 *      handle resumes what it has just suspended.
 *   4. done() sets DECIDED by an exchange; only if it finds SUSPENDED it
 *      resumes. The connection is suspended by then for certain, because handle
 *      publishes the phase after the suspension.
 *
 * So each suspension is resumed exactly once, by exactly one side. A reply is
 * always queued by the connection's own thread, in handle, never by done():
 * libmicrohttpd allows it for suspended connections, but it would run its state
 * machine in the store's thread. The outcome and the reply in the job are
 * published by the same exchange (release) and read after the load or
 * compare-exchange that saw it (acquire), or behind libmicrohttpd's own mutex.
 *
 * Everything lives in one arena, this struct too, with two owners: the connection
 * (until completed) and the pipeline (until release()). The last one frees it; a
 * statement that was overtaken by commit_timeout may be the last by far, so
 * release() touches nothing but the arena, not even the server.
 *
 * A body over the limit is not buffered. A sender that asks first (Expect) is
 * refused before it sends, and so is what is announced to be beyond any bound.
 * Else the body is thrown away, up to that bound, and then answered: a reply in
 * mid-upload, and a close with bytes unread, reach the sender as a reset and not
 * as a status. Bodies to unknown paths are thrown away too, so that the connection
 * stays usable.
 *
 * What is answered with a page has a receipt as well, except a 404: a path that is
 * no account's has nobody whose receipt it could be, and scanners ask for many.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"

#include "http_internal.h"

enum {
	/* Of what is not wanted, this much is read before hanging up. */
	DISCARD_BYTES_MAX = 2 * PN_BODY_BYTES_MAX,
	CHUNKED_BYTES_FIRST = 4096,
};

enum phase {
	PHASE_NEW,
	PHASE_READING,
	PHASE_SUBMITTED,
	PHASE_SUSPENDED,
	PHASE_DECIDED
};

struct pn_exchange {
	_Atomic int refs; /* the connection's and the pipeline's */
	_Atomic int phase;
	struct pn_server *server;
	struct MHD_Connection *connection;
	struct pn_conn *conn;
	struct pn_arena *arena; /* in which this struct lies */
	struct pn_peer peer;    /* who sent it, behind proxies */
	struct pn_request request;
	struct pn_ingest_job job;
	enum pn_page page; /* PN_PAGE_COUNT: the pipeline answers */
	char *body;
	size_t body_len, body_size;
	uint64_t announced; /* Content-Length, or 0 */
	size_t discarded;
};

/* -- life --------------------------------------------------------------------- */

static void
exchange_unref(struct pn_exchange *x)
{
	int before =
	    atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel);

	assert(before > 0);
	if (before == 1) {
		struct pn_arena *arena = x->arena;

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
	x = pn_arena_alloc(arena, sizeof(*x));
	target = pn_arena_copy(arena, pn_str_from(uri));
	if (x == NULL || target.data == NULL) {
		pn_arena_free(arena);
		return NULL;
	}
	atomic_init(&x->refs, 1);
	atomic_init(&x->phase, PHASE_NEW);
	x->server = server;
	x->connection = connection;
	x->conn = info->socket_context;
	x->arena = arena;
	x->page = PN_PAGE_COUNT;
	split_target(target, &x->request);
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

/* -- the pipeline's side ---------------------------------------------------- */

static void
job_done(struct pn_ingest_job *job)
{
	struct pn_exchange *x = job->payload;
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

static void
job_release(struct pn_ingest_job *job)
{
	exchange_unref(job->payload);
}

static bool
job_rate_limited(struct pn_ingest_job *job)
{
	struct pn_exchange *x = job->payload;

	return x->server->limiter != NULL &&
	       pn_limiter_exhausted(
		   x->server->limiter, &x->peer, pn_clock_monotonic_us());
}

/* -- replies ------------------------------------------------------------------ */

/* A refusal that does not go through the pipeline: only a receipt. */
static void
refuse(struct pn_exchange *x, enum pn_ingest_refusal why)
{
	uint64_t read = (uint64_t)x->body_len + x->discarded;

	if (x->body != NULL)
		x->request.body = (struct pn_str){ x->body, x->body_len };
	x->job.body_bytes = read > x->announced ? read : x->announced;
	pn_ingest_refuse(x->server->ingest, &x->job, why);
}

static enum MHD_Result
reply_page(struct pn_exchange *x, bool close)
{
	static const enum pn_ingest_refusal refusals[PN_PAGE_COUNT] = {
		[PN_PAGE_METHOD] = PN_REFUSE_METHOD,
		[PN_PAGE_TOO_LARGE] = PN_REFUSE_BODY_OVER_LIMIT,
		[PN_PAGE_HEADERS] = PN_REFUSE_HEADERS,
	};

	assert(x->page < PN_PAGE_COUNT);
	if (x->job.route == NULL)
		pn_metric_add(PN_METRIC_NOT_FOUND, 1); /* no receipt: above */
	else
		refuse(x, refusals[x->page]);
	pn_watch_request(x->server->watch, x->conn);
	return pn_reply_page(
	    x->connection, x->page, close || atomic_load(&x->server->stopping));
}

static enum MHD_Result
reply_job(struct pn_exchange *x, bool close)
{
	pn_watch_request(x->server->watch, x->conn);
	return pn_reply_send(x->connection, x->job.outcome, &x->job.reply,
	    close || atomic_load(&x->server->stopping));
}

/* -- headers complete --------------------------------------------------------- */

/* 0, 1: too many headers; -ENOMEM. Route and job are there in both good cases:
 * the refusal needs them. */
static int
prepare(struct pn_exchange *x, const char *method)
{
	struct pn_header *headers = NULL;
	size_t count = 0;
	int r = pn_head_read(x->connection, x->arena, &headers, &count);

	if (r < 0)
		return r;
	x->request.method = pn_arena_copy(x->arena, pn_str_from(method));
	if (x->request.method.data == NULL)
		return -ENOMEM;
	x->request.headers = headers;
	x->request.header_count = count;
	x->request.body = PN_STR("");
	pn_peer_forwarded(&x->server->conf->trusted_proxies, &x->conn->peer,
	    headers, count, &x->peer);
	x->request.peer = pn_str_from(x->peer.text);
	x->job = (struct pn_ingest_job){
		.route =
		    x->request.path.len > PN_PATH_BYTES_MAX
			? NULL
			: pn_ingest_route(x->server->ingest, x->request.path),
		.request = &x->request,
		.arena = x->arena,
		.done = job_done,
		.release = job_release,
		.rate_limited = job_rate_limited,
		.payload = x,
	};
	if (r > 0)
		x->page = PN_PAGE_HEADERS;
	else if (x->job.route == NULL)
		x->page = PN_PAGE_NOT_FOUND;
	else if (!pn_str_is(x->request.method, "POST"))
		x->page = PN_PAGE_METHOD;
	return r;
}

static bool
reserve(struct pn_exchange *x, size_t size)
{
	char *body = pn_arena_alloc(x->arena, size);

	if (body == NULL)
		return false;
	if (x->body_len > 0)
		memcpy(body, x->body, x->body_len);
	x->body = body;
	x->body_size = size;
	return true;
}

/* A body that is not wanted: answered at once, or read to its end first. */
static enum MHD_Result
over_limit(struct pn_exchange *x, uint64_t length)
{
	struct pn_str expect;

	if (x->page == PN_PAGE_COUNT)
		x->page = PN_PAGE_TOO_LARGE;
	if (length > DISCARD_BYTES_MAX ||
	    pn_request_header(&x->request, "Expect", &expect) > 0)
		return reply_page(x, true);
	pn_watch_request(x->server->watch, x->conn);
	return MHD_YES;
}

static enum MHD_Result
headers_complete(struct pn_exchange *x, const char *method)
{
	uint64_t limit = (uint64_t)x->server->conf->max_body_bytes, length = 0;
	enum pn_framing framing;
	int r = prepare(x, method);

	if (r < 0)
		return MHD_NO;
	if (r > 0)
		return reply_page(x, true);
	framing = pn_head_framing(&x->request, &length);
	if (framing == PN_FRAMING_AMBIGUOUS) {
		if (x->page != PN_PAGE_COUNT)
			return reply_page(x, true);
		refuse(x, PN_REFUSE_LENGTH_AMBIGUOUS);
		return reply_job(x, true);
	}
	x->announced = length;
	if (length > limit)
		return over_limit(x, length);
	if (x->page == PN_PAGE_COUNT && length > 0 &&
	    !reserve(x, (size_t)length))
		return MHD_NO;
	pn_watch_request(x->server->watch, x->conn);
	return MHD_YES;
}

/* -- the body --------------------------------------------------------------- */

static bool
make_room(struct pn_exchange *x, size_t needed)
{
	size_t size = x->body_size == 0 ? CHUNKED_BYTES_FIRST : x->body_size;
	size_t limit = (size_t)x->server->conf->max_body_bytes;

	assert(needed <= limit);
	while (size < needed)
		size *= 2;
	return reserve(x, size < limit ? size : limit);
}

static enum MHD_Result
take_body(struct pn_exchange *x, const char *data, size_t len)
{
	if (x->page == PN_PAGE_COUNT &&
	    len > (size_t)x->server->conf->max_body_bytes - x->body_len)
		x->page = PN_PAGE_TOO_LARGE;
	if (x->page != PN_PAGE_COUNT) {
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
	int expected = PHASE_SUBMITTED;

	x->request.body =
	    (struct pn_str){ x->body == NULL ? "" : x->body, x->body_len };
	pn_watch_pause(x->conn);
	/* Sequentially consistent, as the other side's "set refusing, then read
	 * pending": one of the two sees the other. */
	(void)atomic_fetch_add(&server->pending, 1);
	if (atomic_load(&server->refusing)) {
		(void)atomic_fetch_sub(&server->pending, 1);
		refuse(x, PN_REFUSE_QUEUE_FULL);
		return reply_job(x, true);
	}
	(void)atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&x->phase, PHASE_SUBMITTED, memory_order_relaxed);
	pn_ingest_submit(server->ingest, &x->job);
	if (atomic_load_explicit(&x->phase, memory_order_acquire) ==
	    PHASE_DECIDED)
		return reply_job(x, false);
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
	if (x->page == PN_PAGE_COUNT)
		return submit(x);
	return reply_page(x, x->page == PN_PAGE_TOO_LARGE);
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
	case PHASE_DECIDED: return reply_job(x, false);
	default:
		/* A suspended connection is not handled. */
		assert(!"handled while in the pipeline");
		return MHD_NO;
	}
}
