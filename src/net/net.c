/*
 * Outbound HTTP: one keep-alive connection, requests sent byte for byte.
 *
 * A captured request must go out exactly as it was (its oddities are the point),
 * so libcurl makes the connection (names, both families, deadlines, unix sockets)
 * and then gets out of the way: CURLOPT_CONNECT_ONLY, curl_easy_send() and
 * curl_easy_recv(). The reply is read by reply.c. Nothing is followed: no
 * redirect, no proxy from the environment.
 *
 * A connection is kept while the server allows it. It may have closed an idle
 * one meanwhile; when a kept connection ends before a byte of the reply came,
 * the request is sent once more on a new one. That can only repeat a
 * notification, which every receiver must bear.
 *
 * A server may answer and close before it has read everything (413); a failed
 * send is therefore no error as long as a reply can be read.
 *
 * One deadline covers connecting, sending and reading.
 */
#include "paynotify/net.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/limits.h"
#include "paynotify/moment.h"

#include "net_internal.h"

enum { READ_BYTES = 16 << 10 };

static const char unix_prefix[] = "unix:";

struct pn_net {
	CURL *curl; /* NULL: not connected */
	bool used;  /* a reply came over it already */
	char *url;
	struct pn_buf input, body;
};

/* One request under way. */
struct call {
	struct pn_net *net;
	const char *url;
	struct pn_str raw;
	int64_t until_us;
	struct pn_error *error;
};

int
pn_net_init(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

const char *
pn_net_library_version(void)
{
	return curl_version_info(CURLVERSION_NOW)->version;
}

int
pn_net_open(struct pn_net **ret_net)
{
	struct pn_net *net = calloc(1, sizeof(*net));

	if (net == NULL)
		return -ENOMEM;
	net->input = pn_buf_init(PN_NET_REPLY_BYTES_MAX + READ_BYTES);
	net->body = pn_buf_init(PN_NET_BODY_BYTES_MAX);
	*ret_net = net;
	return 0;
}

static void
disconnect(struct pn_net *net)
{
	curl_easy_cleanup(net->curl); /* NULL is fine */
	net->curl = NULL;
	net->used = false;
	free(net->url);
	net->url = NULL;
}

void
pn_net_close(struct pn_net *net)
{
	if (net == NULL)
		return;
	disconnect(net);
	pn_buf_done(&net->input);
	pn_buf_done(&net->body);
	free(net);
}

/* -- connecting ---------------------------------------------------------------- */

static int
late(const struct call *call)
{
	return pn_error_set(
	    call->error, -ETIMEDOUT, "no reply from \"%s\" in time", call->url);
}

static long
left_ms(const struct call *call)
{
	int64_t left = call->until_us - pn_clock_monotonic_us();

	return left <= 0 ? 0 : (long)((left + 999) / PN_MILLISECOND_US);
}

static CURLcode
set_options(CURL *curl, const struct call *call)
{
	bool is_unix =
	    strncmp(call->url, unix_prefix, sizeof(unix_prefix) - 1) == 0;
	const char *path = call->url + sizeof(unix_prefix) - 1;
	CURLcode code = CURLE_OK;

#define SET(option, value)    \
	if (code == CURLE_OK) \
	code = curl_easy_setopt(curl, option, value)
	SET(CURLOPT_URL, is_unix ? "http://localhost" : call->url);
	if (is_unix)
		SET(CURLOPT_UNIX_SOCKET_PATH, path);
	SET(CURLOPT_CONNECT_ONLY, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http");
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, left_ms(call));
#undef SET
	return code;
}

static int
connect_to(struct call *call)
{
	struct pn_net *net = call->net;
	CURLcode code = CURLE_OUT_OF_MEMORY;

	disconnect(net);
	if (left_ms(call) == 0)
		return late(call);
	net->url = strdup(call->url);
	net->curl = curl_easy_init();
	if (net->url != NULL && net->curl != NULL)
		code = set_options(net->curl, call);
	if (code == CURLE_OK)
		code = curl_easy_perform(net->curl);
	if (code == CURLE_OK)
		return 0;
	disconnect(net);
	return pn_error_set(call->error,
	    code == CURLE_OUT_OF_MEMORY        ? -ENOMEM
	    : code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT
					       : -ECONNREFUSED,
	    "could not connect to \"%s\": %s", call->url,
	    curl_easy_strerror(code));
}

/* -- sending and reading ----------------------------------------------------------- */

/* 0 when the socket is ready, or -ETIMEDOUT. */
static int
wait_for(struct call *call, short events)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	struct pollfd polled;
	long ms = left_ms(call);

	if (curl_easy_getinfo(call->net->curl, CURLINFO_ACTIVESOCKET, &fd) !=
		CURLE_OK ||
	    fd == CURL_SOCKET_BAD)
		return pn_error_set(call->error, -EIO, "no connection");
	polled = (struct pollfd){ .fd = fd, .events = events };
	if (ms == 0 ||
	    (poll(&polled, 1, ms > INT32_MAX ? INT32_MAX : (int)ms) == 0))
		return late(call);
	return 0; /* a signal only makes the caller try again */
}

/* 0: all is sent, or the other side closed or answers already. */
static int
send_all(struct call *call)
{
	struct pn_str rest = call->raw;
	CURLcode code;
	size_t sent;
	int r;

	while (rest.len > 0) {
		code =
		    curl_easy_send(call->net->curl, rest.data, rest.len, &sent);
		if (code == CURLE_AGAIN) {
			r = wait_for(call, POLLOUT);
			if (r < 0)
				return r;
			continue;
		}
		if (code != CURLE_OK)
			return 0; /* reading tells more */
		rest.data += sent;
		rest.len -= sent;
	}
	return 0;
}

/* Appends what is there. 0; 1 at the end; < 0. */
static int
read_some(struct call *call)
{
	struct pn_net *net = call->net;
	char piece[READ_BYTES];
	size_t len = 0;
	CURLcode code;
	int r;

	while ((code = curl_easy_recv(net->curl, piece, sizeof(piece), &len)) ==
	       CURLE_AGAIN) {
		r = wait_for(call, POLLIN);
		if (r < 0)
			return r;
	}
	if (code != CURLE_OK || len == 0)
		return 1; /* closed or reset: nothing more comes */
	pn_buf_add(&net->input, piece, len);
	if (net->input.len > PN_NET_REPLY_BYTES_MAX)
		return pn_error_set(call->error, -EMSGSIZE,
		    "the reply is longer than %d bytes", PN_NET_BODY_BYTES_MAX);
	return pn_buf_failed(&net->input)
		   ? pn_error_set(call->error, -ENOMEM, "out of memory")
		   : 0;
}

static int
read_reply(struct call *call, struct pn_net_parsed *ret_parsed)
{
	struct pn_net *net = call->net;
	bool bodyless = pn_str_starts(call->raw, "HEAD ");
	int end, r;

	pn_buf_reset(&net->input);
	for (;;) {
		end = read_some(call);
		if (end < 0)
			return end;
		if (end == 1 && net->input.len == 0)
			return pn_error_set(call->error, -ECONNRESET,
			    "\"%s\" closed the connection without a reply",
			    call->url);
		r = pn_net_reply_parse(pn_buf_str(&net->input), end == 1,
		    bodyless, &net->body, ret_parsed, call->error);
		if (r != PN_NET_MORE)
			return r;
	}
}

static int
exchange(struct call *call, struct pn_net_parsed *ret_parsed)
{
	int r = send_all(call);

	return r < 0 ? r : read_reply(call, ret_parsed);
}

int
pn_net_send_raw(struct pn_net *net, const char *url, struct pn_str raw,
    int64_t timeout_us, struct pn_arena *arena, struct pn_net_reply *ret_reply,
    struct pn_error *ret_error)
{
	int64_t began_us = pn_clock_monotonic_us();
	struct call call = { .net = net,
		.url = url,
		.raw = raw,
		.until_us = began_us + timeout_us,
		.error = ret_error };
	struct pn_net_parsed parsed = { .status = 0 };
	struct pn_str body;
	bool again = net->curl != NULL && strcmp(net->url, url) == 0;
	int r = again ? 0 : connect_to(&call);

	assert(timeout_us > 0);
	if (r == 0)
		r = exchange(&call, &parsed);
	if (r == -ECONNRESET && again && net->used) {
		r = connect_to(&call);
		if (r == 0)
			r = exchange(&call, &parsed);
	}
	net->used = r == 0;
	if (r < 0 || !parsed.keep)
		disconnect(net);
	if (r < 0)
		return r;
	body = pn_arena_copy(arena, pn_buf_str(&net->body));
	if (body.data == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	*ret_reply = (struct pn_net_reply){
		.status = parsed.status,
		.body = body,
		.elapsed_us = pn_clock_monotonic_us() - began_us,
	};
	return 0;
}
