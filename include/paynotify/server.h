/*
 * The HTTP server: libmicrohttpd's epoll thread pool. It reads a request, gives
 * it to what it serves (a handler), suspends the connection, and answers when
 * the handler says so. It knows no notification and no key: those are what the
 * two handlers are about, pn_notifications here and the guard's in guard/.
 */
#ifndef PN_SERVER_H
#define PN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/request.h"
#include "paynotify/series.h"

/* -- what is served ------------------------------------------------------- */

/* What is answered. Content-Length, Transfer-Encoding, Date and Connection are
 * the server's: among the headers they are passed over, and so is what is no
 * header line. The others are sent in this order. */
struct pn_answer {
	unsigned status; /* 200 to 999; of 204, 304, HEAD no body is sent */
	const struct pn_header *headers;
	size_t header_count;
	struct pn_str body;
	uint64_t unsent_bytes; /* of HEAD or 304 without a body here: how long
				* it would be; 0: not known */
};

/* Why the server does not want a request, or not the rest of it. */
enum pn_refused {
	PN_REFUSED_NOT,
	PN_REFUSED_PATH,    /* nothing is served there */
	PN_REFUSED_ADDRESS, /* not to this peer */
	PN_REFUSED_METHOD,  /* not with this method */
	PN_REFUSED_BODY,    /* longer than body_bytes_max */
	PN_REFUSED_HEADERS, /* more than are read */
	PN_REFUSED_LENGTH,  /* Content-Length twice, no number, or with
			     * Transfer-Encoding */
	PN_REFUSED_STOPPING,
	PN_REFUSED_COUNT
};

/*
 * One request. It has two owners, the connection and the handler; what is in
 * its arena lives until both have let go.
 */
struct pn_call {
	/* The server's: set before begin(). */
	struct pn_request request; /* peer: who sent it, behind proxies */
	bool from_proxy;           /* a trusted proxy (or a unix socket) handed
				    * it on: its headers can be believed */
	struct pn_arena *arena;
	bool from_unix; /* it came over a unix socket, from this machine */
	void *job; /* job_bytes of the handler's, zeroed at the beginning */
	uint64_t body_bytes; /* in refuse(): what was announced or read, where
			      * request.body holds less; 0: request.body.len */

	/* The handler's: set before pn_call_done(), or in refuse(). All of it
	 * lives in the arena or until end(). */
	struct pn_answer answer;
	/* Set in begin(): where the time is counted from the request line to
	 * the answer. NULL: nowhere. */
	struct pn_series *seconds;
};

/* All may be called from any of the server's threads; none may block. */
struct pn_handler {
	size_t job_bytes;
	/* The head is there, the body is not. PN_REFUSED_NOT: it is read, and
	 * submitted. Any other: it is thrown away but for its first bytes, and
	 * refuse() is next. */
	enum pn_refused (*begin)(void *service, struct pn_call *call);
	/* The request is whole: pn_call_done() exactly once, from any thread,
	 * maybe before this returns; then pn_call_release() exactly once. */
	void (*submit)(void *service, struct pn_call *call);
	/* Sets the answer. why may also be one that begin() did not give; too
	 * many headers are told before there was a begin(). */
	void (*refuse)(
	    void *service, struct pn_call *call, enum pn_refused why);
	/* Both owners have let go: frees what the arena does not. Once for each
	 * call that begin() or refuse() has seen, and last of all. The service
	 * and the server may be gone by then. NULL: there is nothing to free. */
	void (*end)(struct pn_call *call);
	/* Once, before the first call. NULL: there is nothing to set up. */
	void (*open)(void *service);
};

/* The answer is set: from here on the connection may be answered at any moment.
 * Any thread; does not block. */
void pn_call_done(struct pn_call *call);
/* Nothing will touch the call again. After done(). */
void pn_call_release(struct pn_call *call);
/* Takes one of what the peer is allowed of unverified requests ([server]
 * rate_limit): true if there was none left. */
bool pn_call_rate_limited(struct pn_call *call);

/* Notifications: the service is a struct pn_ingest. */
extern const struct pn_handler pn_notifications;

/* -- the server ----------------------------------------------------------- */

struct pn_server;

struct pn_server_options {
	const struct pn_conf_server *conf;    /* borrowed: limits, threads */
	const struct pn_conf_strings *listen; /* borrowed; all or nothing */
	const char *socket_name; /* systemd's sockets of this name win over
				  * listen; static, see service.h.
				  * NULL: none of them */
	bool local;     /* only loopback and unix sockets are allowed */
	bool uncounted; /* its connections are not in the metrics */
	size_t body_bytes_max;
	/* What a connection has for the heads of a request and its answer, as
	 * long as it is open; at most PN_HEADER_BYTES_MAX for each. 0: what
	 * notifications need. */
	size_t head_bytes_max;
	const struct pn_handler *handler; /* static: outlives the server */
	void *service;
};

/* Binds and serves. */
int pn_server_open(const struct pn_server_options *options,
    struct pn_server **ret_server, struct pn_error *ret_error) PN_MUSTCHECK;
/* Stops accepting at once, lets every request that is being read or waits for
 * its handler end (at most grace_us), then submits no more, waits until all
 * that was submitted is done, and closes. NULL is fine. */
void pn_server_close(struct pn_server *server, int64_t grace_us);
/* Whether its threads have got on since the last call, which should be seconds
 * ago. Main thread. */
bool pn_server_is_alive(struct pn_server *server);
/* "127.0.0.1:8600, unix:/run/x": with the real port where 0 was asked for.
 * Borrowed from the server. */
const char *pn_server_listening(const struct pn_server *server);
/* The version of libmicrohttpd that is loaded. */
const char *pn_server_library_version(void);

/* -- listening sockets ---------------------------------------------------- */

enum { PN_LISTEN_TEXT_BYTES = 128 };

/* A listening socket. */
struct pn_listen {
	int fd;                               /* non-blocking; -1 when closed */
	char text[PN_LISTEN_TEXT_BYTES];      /* as it may be connected to */
	char unix_path[PN_LISTEN_TEXT_BYTES]; /* "" unless a unix socket that
					       * was made here */
	bool inherited; /* systemd's: it goes on listening when we end */
};

/* "host:port", "[::]:port" (both families) or "unix:/path" (mode 0660; a stale
 * socket is replaced, a live one is not). local: only loopback and unix sockets
 * are allowed. -EINVAL: not such an address, or not local; else the errno. The
 * text is complete: could not listen on "127.0.0.1:8600": address already in
 * use. */
int pn_listen_open(const char *address, bool local,
    struct pn_listen *ret_listen, struct pn_error *ret_error) PN_MUSTCHECK;
/* A socket that systemd passed. -EINVAL: it does not listen, or is not local. */
int pn_listen_adopt(int fd, bool local, struct pn_listen *ret_listen,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* All sockets that systemd passed under that name (NULL: none); if there is none,
 * all these addresses. All or nothing; ret_listens has room for PN_LISTEN_MAX. */
int pn_listen_open_all(const struct pn_conf_strings *addresses,
    const char *socket_name, bool local, struct pn_listen *ret_listens,
    size_t *ret_count, struct pn_error *ret_error) PN_MUSTCHECK;
/* Closes, and removes the unix socket, unless it is systemd's. */
void pn_listen_close(struct pn_listen *listen);
/* The form only, and whether it is local. Opens nothing, resolves no name. */
int pn_listen_check(
    const char *address, bool local, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
