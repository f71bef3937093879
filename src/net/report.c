/*
 * How an exchange ended, as an enum for the caller and in words for whoever
 * reads the log. The words name the peer by scheme, host and port only: the
 * rest of a URL, and headers, may be secrets. What curl says is taken up,
 * stripped of what a terminal might obey (a certificate's names are the
 * peer's words).
 *
 * Where nothing was sent, it is told apart whether this host was the reason: a
 * caller must not hold that against the peer.
 */
#include "client_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/moment.h"

enum { PEER_BYTES = PN_CLIENT_ORIGIN_BYTES_MAX + 2 };

/* "https://host:port" in quotes, or what stands for it. */
static void
name_peer(const char *url, char ret_text[PEER_BYTES])
{
	char text[PN_CLIENT_ORIGIN_BYTES_MAX];
	struct pn_str origin = pn_client_origin(url, text);

	if (origin.data == NULL)
		(void)snprintf(ret_text, PEER_BYTES, "the peer");
	else
		(void)snprintf(ret_text, PEER_BYTES, "\"%s\"", text);
}

static const char *
printable(struct pn_client_exchange *exchange, CURLcode code)
{
	char *text = exchange->text;
	size_t len = strlen(text);

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		text[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = text[i] == '\n' ? ' ' : '?';
	return len > 0 ? text : curl_easy_strerror(code);
}

/* Whether this host lacks something. A look-up needs a thread and a pair of
 * sockets; that it got none is told by curl's text only. */
static bool
is_host_fault(CURLcode code, int os_error, const char *text)
{
	static const char no_thread[] = "getaddrinfo() thread failed";

	switch (code) {
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
	case CURLE_SSL_CACERT_BADFILE: return true;
	case CURLE_COULDNT_CONNECT:
		return os_error == EMFILE || os_error == ENFILE ||
		       os_error == ENOMEM || os_error == ENOBUFS;
	default: return strncmp(text, no_thread, sizeof(no_thread) - 1) == 0;
	}
}

static void
report_not_sent(
    struct pn_client_exchange *exchange, CURLcode code, int os_error)
{
	struct pn_client_request *request = exchange->request;
	const char *text = printable(exchange, code);
	char peer[PEER_BYTES];

	name_peer(request->url, peer);
	request->end = PN_CLIENT_NOT_SENT;
	request->host_fault = is_host_fault(code, os_error, text);
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		(void)pn_error_set(&request->error, 0,
		    "the URL of the request is not one of http or https: %s",
		    text);
	else if (code == CURLE_COULDNT_CONNECT && os_error != 0)
		(void)pn_error_set(&request->error, 0,
		    "could not connect to %s: %s", peer, strerror(os_error));
	else
		(void)pn_error_set(
		    &request->error, 0, "could not reach %s: %s", peer, text);
}

static void
report_lost(struct pn_client_exchange *exchange, CURLcode code)
{
	struct pn_client_request *request = exchange->request;
	const char *text = printable(exchange, code);
	char peer[PEER_BYTES];

	name_peer(request->url, peer);
	request->end = PN_CLIENT_LOST;
	if (exchange->repeated)
		(void)pn_error_set(&request->error, 0,
		    "%s closed a kept connection as the request was sent, and "
		    "may have read it",
		    peer);
	else if (pn_buf_failed(&exchange->head) ||
		 pn_buf_failed(&exchange->body))
		(void)pn_error_set(&request->error, 0,
		    "out of memory for the answer of %s", peer);
	else if (exchange->head_ambiguous)
		(void)pn_error_set(&request->error, 0,
		    "the answer of %s has an ambiguous Content-Length", peer);
	else if (code == CURLE_WRITE_ERROR)
		(void)pn_error_set(&request->error, 0,
		    "the answer of %s has headers without end", peer);
	else if (exchange->head_done)
		(void)pn_error_set(&request->error, 0,
		    "the answer of %s, status %d, broke off: %s", peer,
		    request->status, text);
	else if (exchange->head_bytes > 0 ||
		 code == CURLE_UNSUPPORTED_PROTOCOL ||
		 code == CURLE_WEIRD_SERVER_REPLY)
		(void)pn_error_set(&request->error, 0,
		    "the answer of %s is no whole HTTP: %s", peer, text);
	else
		(void)pn_error_set(&request->error, 0,
		    "the connection to %s broke after the request was sent: %s",
		    peer, text);
}

static void
report_timeout(struct pn_client_exchange *exchange)
{
	struct pn_client_request *request = exchange->request;
	int64_t ms = request->timeout_us / PN_MILLISECOND_US;
	char peer[PEER_BYTES];

	name_peer(request->url, peer);
	request->end = PN_CLIENT_TIMEOUT;
	(void)pn_error_set(&request->error, 0, "%s %s within %" PRId64 " ms",
	    exchange->head_done ? "the answer came only in part from"
	    : exchange->sent    ? "no answer from"
				: "could not connect to",
	    peer, ms);
}

void
pn_client_report(
    struct pn_client_exchange *exchange, CURLcode code, int os_error)
{
	struct pn_client_request *request = exchange->request;

	request->error.text[0] = '\0';
	request->host_fault = false;
	if (exchange->stopped) {
		request->end = PN_CLIENT_STOPPED;
		(void)pn_error_set(
		    &request->error, 0, "the client was stopped");
	} else if (exchange->cut) {
		request->end = PN_CLIENT_CUT;
	} else if (code == CURLE_OK && exchange->head_done) {
		/* curl is content with headers that break off. */
		request->end = PN_CLIENT_ANSWERED;
	} else if (code == CURLE_OPERATION_TIMEDOUT) {
		report_timeout(exchange);
	} else if (exchange->sent) {
		report_lost(exchange, code);
	} else {
		report_not_sent(exchange, code, os_error);
	}
}

void
pn_client_report_late(struct pn_client_request *request, unsigned running)
{
	char peer[PEER_BYTES];

	name_peer(request->url, peer);
	request->end = PN_CLIENT_TIMEOUT;
	(void)pn_error_set(&request->error, 0,
	    "no connection to %s became free within %" PRId64
	    " ms: %u requests are in flight",
	    peer, request->timeout_us / PN_MILLISECOND_US, running);
}
