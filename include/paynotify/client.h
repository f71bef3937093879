/*
 * Outbound HTTP, many requests in flight: libcurl's multi interface on one
 * thread of the client's own. Connections are kept alive and used again.
 * Redirects are never followed, proxies of the environment never used, other
 * schemes than http and https refused, certificates and host names verified.
 *
 * A request leaves at most once. Where a kept connection turns out to be dead
 * after the request was handed to it, the end is LOST and the caller, who
 * knows whether it may be repeated, decides.
 */
#ifndef PN_CLIENT_H
#define PN_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

struct pn_client;

/* How an exchange ended. What matters to a caller is whether the peer may have
 * acted on the request. */
enum pn_client_end {
	PN_CLIENT_ANSWERED, /* status, headers and body are there, whole */
	PN_CLIENT_CUT,      /* answered; of the body only the first
			     * answer_bytes_max were read */
	PN_CLIENT_NOT_SENT, /* no byte of the request left: connection refused,
			     * name not resolved, TLS failed, bad URL */
	PN_CLIENT_LOST,     /* sent, maybe in part; the connection broke or the
			     * answer was no HTTP */
	PN_CLIENT_TIMEOUT,  /* timeout_us passed (connecting included) */
	PN_CLIENT_STOPPED,  /* the client was closed meanwhile */
	PN_CLIENT_END_COUNT
};

/*
 * One exchange. The caller fills the upper part and keeps it and all it points
 * to until done(), which is called exactly once, on the client's thread; it
 * must not block, and may free the request or send another.
 */
struct pn_client_request {
	const char *method;    /* "POST" */
	const char *url;       /* http://host:port/path */
	const char *ca_file;   /* PEM; NULL: the system's authorities */
	struct pn_str headers; /* "Name: value LF" lines; Host and User-Agent
				 * are made unless given, Content-Length always;
				 * Expect is never sent; Transfer-Encoding is
				 * refused */
	struct pn_str body;    /* may be empty */
	int64_t timeout_us;    /* of the whole exchange */
	size_t answer_bytes_max;
	void (*done)(struct pn_client_request *request);
	void *payload;

	/* Set before done(). Text is the client's, valid during done() only. */
	enum pn_client_end end;
	bool sent;                    /* some of it may have left: always when
				       * ANSWERED, CUT or LOST, never when
				       * NOT_SENT; tells for TIMEOUT, STOPPED */
	bool host_fault;              /* NOT_SENT for want of something of this
				       * host (descriptors, memory, threads, its
				       * file of authorities): it tells nothing of
				       * the peer */
	int status;                   /* HTTP, 0 unless answered */
	struct pn_str answer_headers; /* "Name: value LF" lines, the first ones:
				       * at most PN_HEADER_BYTES_MAX and
				       * PN_HEADER_COUNT_MAX */
	bool headers_cut;             /* there were more */
	struct pn_str answer;         /* body */
	int64_t elapsed_us;
	struct pn_error error; /* why not, for a person; names no secret */

	/* The client's own. */
	struct pn_client_request *next;
	int64_t began_us;
};

struct pn_client_options {
	unsigned connections_max;          /* in all; idle ones count */
	unsigned connections_per_host_max; /* more requests wait, and their
					    * timeout runs meanwhile */
	int nice; /* of its thread: 0, or up to 19 to stand back */
};

/* pn_net_init() was called. -ENOMEM, -EAGAIN (no thread). */
int pn_client_open(const struct pn_client_options *options,
    struct pn_client **ret_client, struct pn_error *ret_error) PN_MUSTCHECK;
/* What is in flight ends as STOPPED, each with its done(); then the thread
 * ends. No one may send any more, also not from done() of what was STOPPED.
 * Not from done(). NULL is fine. */
void pn_client_close(struct pn_client *client);
/* Any thread, also from done(). Never fails: a request that cannot be sent has
 * its done() called with NOT_SENT. */
void
pn_client_send(struct pn_client *client, struct pn_client_request *request);

/* The value of the first header of that name (case does not matter) in
 * answer_headers; data NULL when there is none. Pure. */
struct pn_str
pn_client_header(const struct pn_client_request *request, const char *name);

#endif
