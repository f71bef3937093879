/*
 * One request on an easy handle of curl. What is the same for all is set once,
 * what differs for each; handles are used again.
 *
 * Sent at most once. curl sends a request again, on a new connection, when a
 * kept one ends before a byte of the answer came: the server may have closed
 * it while idle. But it may as well have read the request, done it and died,
 * and then it would be done twice; RFC 9110, 9.2.2 forbids it for a POST of
 * which nothing more is known. libcurl has no option against it, but it asks
 * before each sending (CURLOPT_PREREQFUNCTION, called when the connection is
 * there and its TLS handshake done, before the first byte of the request): the
 * second time the answer is no (curl has connected anew by then, in vain). The
 * same callback tells NOT_SENT from LOST: if it was never called, nothing has
 * left.
 *
 * So that it happens rarely a connection is not used again when it was idle
 * for two seconds: servers close theirs after 2 (gunicorn), 5 (Node, Apache,
 * uvicorn), 60 or more. What a server has closed before that curl sees when it
 * takes the connection, and makes a new one.
 *
 * A connection is not used for ever: after five minutes a new one follows the
 * host's name to where it points now.
 *
 * A name that is being looked up when the exchange ends is left to its thread
 * (CURLOPT_QUICK_EXIT): curl would wait for it, and all others with it.
 */
#include "client_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

enum {
	IDLE_SECONDS_MAX = 1, /* whole seconds: up to 1.999 */
	LIFE_SECONDS_MAX = 5 * 60,
	/* The authorities are read again after this: they may be renewed. */
	CA_SECONDS_MAX = 60,
	UPLOAD_BYTES = 16 << 10, /* the least that curl takes */
	KEPT_BYTES_MAX = 64 << 10,
};

#define SET(option, value)    \
	if (code == CURLE_OK) \
	code = curl_easy_setopt(easy, option, value)

static int
before_sending(
    void *payload, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
	struct pn_client_exchange *exchange = payload;

	(void)peer_ip;
	(void)own_ip;
	(void)peer_port;
	(void)own_port;
	assert(exchange->request != NULL);
	if (exchange->sent) {
		exchange->repeated = true;
		return CURL_PREREQFUNC_ABORT;
	}
	exchange->sent = true;
	return CURL_PREREQFUNC_OK;
}

/* curl does not tell why there is none. */
static curl_socket_t
open_socket(void *payload, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct pn_client_exchange *exchange = payload;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
	    address->protocol);

	(void)purpose;
	if (fd >= 0)
		return fd;
	exchange->socket_errno = errno;
	return CURL_SOCKET_BAD;
}

/* Trust one file, or the system's authorities. Only those: curl would look
 * into its default folder as well, and keep nothing of it in memory. */
static CURLcode
set_authorities(CURL *easy, const char *ca_file)
{
	CURLcode code = CURLE_OK;
	char *file = NULL;

	if (ca_file == NULL)
		code = curl_easy_getinfo(easy, CURLINFO_CAINFO, &file);
	else
		SET(CURLOPT_CAINFO, ca_file);
	if (ca_file != NULL || file != NULL) {
		SET(CURLOPT_CAPATH, NULL);
	}
	if (ca_file == NULL && file != NULL) {
		SET(CURLOPT_CAINFO, file);
	}
	return code;
}

/* What keeps a request from going anywhere else than it should. */
static CURLcode
set_fences(CURL *easy)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "*");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_CA_CACHE_TIMEOUT, (long)CA_SECONDS_MAX);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	return code;
}

static CURLcode
set_once(struct pn_client_exchange *exchange)
{
	CURL *easy = exchange->easy;
	CURLcode code = set_fences(easy);

	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS_MAX);
	SET(CURLOPT_MAXLIFETIME_CONN, (long)LIFE_SECONDS_MAX);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
	SET(CURLOPT_USERAGENT, "paynotifyd/" PN_VERSION);
	SET(CURLOPT_PRIVATE, exchange);
	SET(CURLOPT_ERRORBUFFER, exchange->text);
	SET(CURLOPT_PREREQFUNCTION, before_sending);
	SET(CURLOPT_PREREQDATA, exchange);
	SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
	SET(CURLOPT_OPENSOCKETDATA, exchange);
	SET(CURLOPT_HEADERFUNCTION, pn_client_answer_header);
	SET(CURLOPT_HEADERDATA, exchange);
	SET(CURLOPT_WRITEFUNCTION, pn_client_answer_body);
	SET(CURLOPT_WRITEDATA, exchange);
	return code;
}

struct pn_client_exchange *
pn_client_exchange_new(void)
{
	struct pn_client_exchange *exchange = calloc(1, sizeof(*exchange));

	if (exchange == NULL)
		return NULL;
	exchange->lines = pn_client_lines_init();
	exchange->head = pn_buf_init(PN_HEADER_BYTES_MAX);
	exchange->easy = curl_easy_init();
	if (exchange->easy != NULL && set_once(exchange) == CURLE_OK &&
	    set_authorities(exchange->easy, NULL) == CURLE_OK)
		return exchange;
	pn_client_exchange_free(exchange);
	return NULL;
}

void
pn_client_exchange_free(struct pn_client_exchange *exchange)
{
	if (exchange == NULL)
		return;
	assert(exchange->request == NULL);
	curl_easy_cleanup(exchange->easy); /* NULL is fine */
	pn_buf_done(&exchange->lines.text);
	pn_buf_done(&exchange->head);
	pn_buf_done(&exchange->body);
	free(exchange->ca_file);
	free(exchange);
}

/* -- starting ---------------------------------------------------------------- */

/* As for the one before, most often. */
static int
trust(struct pn_client_exchange *exchange, const char *ca_file)
{
	char *copy = NULL;

	if (ca_file == NULL ? exchange->ca_file == NULL
			    : exchange->ca_file != NULL &&
				  strcmp(ca_file, exchange->ca_file) == 0)
		return 0;
	if (ca_file == NULL) {
		/* What was set is gone: ask a new handle for the default. */
		curl_easy_cleanup(exchange->easy);
		exchange->easy = curl_easy_init();
		if (exchange->easy == NULL || set_once(exchange) != CURLE_OK)
			return -ENOMEM;
	} else {
		copy = strdup(ca_file);
		if (copy == NULL)
			return -ENOMEM;
	}
	free(exchange->ca_file);
	exchange->ca_file = copy;
	return set_authorities(exchange->easy, ca_file) == CURLE_OK ? 0
								    : -ENOMEM;
}

/* These have no body, and no Content-Length, unless they have one. */
static bool
has_no_body(const struct pn_client_request *request)
{
	static const char *const methods[] = { "GET", "HEAD", "DELETE",
		"OPTIONS", "TRACE" };

	for (size_t i = 0; i < PN_COUNT(methods); i++)
		if (request->body.len == 0 &&
		    strcmp(request->method, methods[i]) == 0)
			return true;
	return false;
}

static CURLcode
set_method(CURL *easy, const struct pn_client_request *request)
{
	CURLcode code = CURLE_OK;
	struct pn_str body = request->body;

	if (has_no_body(request)) {
		SET(CURLOPT_HTTPGET, 1L);
		if (strcmp(request->method, "HEAD") == 0)
			SET(CURLOPT_NOBODY, 1L);
	} else {
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDS, body.len == 0 ? "" : body.data);
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	}
	SET(CURLOPT_CUSTOMREQUEST, request->method);
	return code;
}

static int
check(const struct pn_client_request *request, struct pn_error *error)
{
	struct pn_str method = pn_str_from(request->method);
	char text[PN_CLIENT_ORIGIN_BYTES_MAX];

	if (!pn_str_is_token(method) ||
	    method.len > PN_CLIENT_METHOD_BYTES_MAX ||
	    (request->body.len > 0 && pn_str_is(method, "HEAD")))
		return pn_error_set(error, -EINVAL,
		    "the request's method is malformed, or HEAD with a body");
	/* curl would guess: "http:///path" is the host "path" for it. */
	if (pn_client_origin(request->url, text).data == NULL)
		return pn_error_set(error, -EINVAL,
		    "the URL of the request is not one of http or https");
	return 0;
}

int
pn_client_exchange_start(struct pn_client_exchange *exchange,
    struct pn_client_request *request, int64_t now_us,
    struct pn_error *ret_error)
{
	int64_t left_us = request->began_us + request->timeout_us - now_us;
	int64_t left_ms = (left_us + 999) / PN_MILLISECOND_US;
	long limit_ms = left_ms > INT32_MAX ? INT32_MAX : (long)left_ms;
	CURL *easy;
	CURLcode code = CURLE_OK;
	int r;

	assert(exchange->request == NULL);
	if (left_us <= 0)
		return -ETIMEDOUT;
	r = check(request, ret_error);
	if (r == 0)
		r = pn_client_lines_make(
		    &exchange->lines, request->headers, ret_error);
	if (r < 0)
		return r;
	if (trust(exchange, request->ca_file) < 0)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	easy = exchange->easy;
	SET(CURLOPT_URL, request->url);
	SET(CURLOPT_HTTPHEADER, exchange->lines.nodes);
	SET(CURLOPT_TIMEOUT_MS, limit_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS, limit_ms);
	if (code == CURLE_OK)
		code = set_method(easy, request);
	if (code != CURLE_OK)
		return pn_error_set(ret_error, -EINVAL,
		    "the request does not suit curl: %s",
		    curl_easy_strerror(code));
	exchange->body.max = request->answer_bytes_max;
	exchange->request = request;
	exchange->head_bytes = exchange->head_lines = 0;
	exchange->head_interim = exchange->head_done = exchange->head_full =
	    exchange->head_ambiguous = false;
	exchange->sent = exchange->repeated = exchange->cut =
	    exchange->stopped = false;
	exchange->socket_errno = 0;
	exchange->text[0] = '\0';
	return 0;
}

/* -- ending ------------------------------------------------------------------ */

void
pn_client_exchange_end(struct pn_client_exchange *exchange, CURLcode code)
{
	struct pn_client_request *request = exchange->request;
	long status = 0, os_error = 0;

	(void)curl_easy_getinfo(
	    exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO, &os_error);
	request->elapsed_us = pn_clock_monotonic_us() - request->began_us;
	request->sent = exchange->sent;
	request->status = (int)status;
	if (exchange->socket_errno != 0)
		os_error = exchange->socket_errno;
	pn_client_report(exchange, code, (int)os_error);
	pn_log_debug("%s \"%s\": status %d after %" PRId64 " us%s%s",
	    request->method, request->url, request->status, request->elapsed_us,
	    request->error.text[0] == '\0' ? "" : ": ", request->error.text);
	if (request->end == PN_CLIENT_ANSWERED ||
	    request->end == PN_CLIENT_CUT) {
		assert(exchange->sent);
		request->answer_headers = pn_buf_str(&exchange->head);
		request->headers_cut = exchange->head_full;
		request->answer = pn_buf_str(&exchange->body);
	} else {
		request->status = 0;
		request->answer_headers = request->answer =
		    (struct pn_str){ NULL, 0 };
	}
}

void
pn_client_exchange_rest(struct pn_client_exchange *exchange)
{
	exchange->request = NULL;
	exchange->lane = NULL;
	pn_buf_reset(&exchange->head);
	if (exchange->body.size > KEPT_BYTES_MAX)
		pn_buf_done(&exchange->body);
	pn_buf_reset(&exchange->body);
}
