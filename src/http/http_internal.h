/*
 * What the files of src/http share: addresses, limits a peer, the list of
 * connections with its watchdog, one request (exchange), replies.
 *
 * Which thread calls what: the MHD threads everything but pn_call_done() and
 * pn_call_release(), which come from whatever thread the handler uses; open and
 * close functions belong to the main thread.
 */
#ifndef PN_HTTP_INTERNAL_H
#define PN_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <microhttpd.h>

#include "paynotify/buf.h"
#include "paynotify/conf.h"
#include "paynotify/limits.h"
#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/server.h"

/* -- addresses (peer.c), pure ------------------------------------------- */

enum {
	PN_PEER_TEXT_BYTES = 46,    /* INET6_ADDRSTRLEN */
	PN_FORWARDED_HOPS_MAX = 64, /* entries of X-Forwarded-For looked at */
};

/* An address as bytes (IPv4 mapped) and text (IPv4 shown as IPv4). A unix
 * socket has neither: zeros and "". */
struct pn_peer {
	unsigned char address[16];
	char text[PN_PEER_TEXT_BYTES];
};

void pn_peer_of_sockaddr(const struct sockaddr *address, struct pn_peer *ret);
/* "1.2.3.4", "1.2.3.4:567", "2001:db8::1", "[2001:db8::1]", "[...]:567". 0, or
 * 1 when it is not an address. */
int pn_peer_parse(struct pn_str text, struct pn_peer *ret) PN_MUSTCHECK;
bool pn_peer_is_loopback(const struct pn_peer *peer);
/* What is counted as one peer: an IPv4 address, or an IPv6 /64 (one customer
 * has that many addresses for the asking). */
void pn_peer_key(const struct pn_peer *peer, unsigned char ret_key[16]);
/* Of a key, for tables with a seed of their own. */
uint64_t pn_peer_hash(const unsigned char key[16], uint64_t seed);
/* Who sent the request: direct, or, where direct is a trusted proxy, what the
 * X-Forwarded-For headers say, read from the right to the first address that
 * is no trusted proxy. */
void pn_peer_forwarded(const struct pn_conf_cidrs *trusted,
    const struct pn_peer *direct, const struct pn_header *headers,
    size_t header_count, struct pn_peer *ret);

/* -- unverified requests a second and peer (limiter.c) -------------------- */

struct pn_limiter;

struct pn_limiter *pn_limiter_new(int64_t per_second) PN_MUSTCHECK;
void pn_limiter_free(struct pn_limiter *limiter);
/* Takes a token of the peer's bucket: true when there was none. Any thread. */
bool pn_limiter_exhausted(
    struct pn_limiter *limiter, const struct pn_peer *peer, int64_t now_us);

/* -- open connections (watch.c) ------------------------------------------- */

#define PN_DEADLINE_NONE INT64_MAX

struct pn_conn {
	struct pn_conn *prev, *next; /* the list, under its mutex */
	int fd;
	bool counted; /* against the peer's maximum */
	bool trusted; /* a trusted proxy, or a unix socket */
	bool is_unix;
	struct pn_peer peer;
	_Atomic int64_t deadline_us; /* monotonic; the watchdog cuts it then */
};

struct pn_watch_options {
	int64_t idle_timeout_us, request_timeout_us;
	int64_t connections_max, connections_per_peer_max;
	const struct pn_conf_cidrs *trusted; /* exempt, borrowed */
	bool uncounted;                      /* not in the metrics */
};

struct pn_watch;

int pn_watch_open(const struct pn_watch_options *options,
    struct pn_watch **ret_watch, struct pn_error *ret_error) PN_MUSTCHECK;
void pn_watch_close(struct pn_watch *watch); /* the list must be empty */
/* Whether a connection from there may come in. */
bool pn_watch_admits(struct pn_watch *watch, const struct pn_peer *peer);
/* How many are open. */
int64_t pn_watch_count(struct pn_watch *watch);
struct pn_conn *pn_watch_add(
    struct pn_watch *watch, int fd, const struct pn_peer *peer) PN_MUSTCHECK;
/* Must come before the descriptor is closed. Frees conn. */
void pn_watch_remove(struct pn_watch *watch, struct pn_conn *conn);
/* Deadlines: of a connection that waits for a request, of a request, and of a
 * reply with so long a body. */
void pn_watch_idle(const struct pn_watch *watch, struct pn_conn *conn);
void pn_watch_request(const struct pn_watch *watch, struct pn_conn *conn);
void pn_watch_reply(
    const struct pn_watch *watch, struct pn_conn *conn, size_t bytes);
void pn_watch_pause(struct pn_conn *conn);

/* Whether its thread has looked since the last call. One caller at a time. */
bool pn_watch_has_ticked(struct pn_watch *watch);

/* -- is it alive (alive.c) --------------------------------------------------- */

enum { PN_ALIVE_SLOTS = 64 };

struct pn_alive {
	_Atomic uint64_t numbers;
	_Atomic uint64_t slots[PN_ALIVE_SLOTS]; /* 0: nobody is in there */
	uint64_t seen[PN_ALIVE_SLOTS];          /* whoever looks */
};

/* Any thread: around what must return. */
size_t pn_alive_enter(struct pn_alive *alive) PN_MUSTCHECK;
void pn_alive_leave(struct pn_alive *alive, size_t slot);
/* Whether nobody has been in there since the last look. One caller at a time. */
bool pn_alive_look(struct pn_alive *alive) PN_MUSTCHECK;

/* -- the server ------------------------------------------------------------ */

struct pn_listener {
	struct MHD_Daemon *daemon;
	struct pn_listen listen;
};

struct pn_server {
	struct pn_server_options options; /* what it points to: borrowed */
	struct pn_watch *watch;
	struct pn_limiter *limiter; /* NULL: off */
	struct pn_listener listeners[PN_LISTEN_MAX];
	size_t listener_count;
	struct pn_buf listening; /* their texts */
	struct pn_alive alive;   /* handling a piece of a request */
	/* Life: open -> stopping (replies close their connection, nothing new
	 * is accepted) -> refusing (nothing new is submitted) -> stopped. */
	atomic_bool stopping, refusing;
	_Atomic unsigned active;  /* requests begun and not completed */
	_Atomic unsigned pending; /* submitted; done() has not returned */
};

/* -- one request (exchange.c) ---------------------------------------------- */

struct pn_exchange;

/* MHD's callbacks; cls is the server. */
void *pn_exchange_begin(
    void *cls, const char *uri, struct MHD_Connection *connection);
enum MHD_Result pn_exchange_handle(void *cls, struct MHD_Connection *connection,
    const char *url, const char *method, const char *version,
    const char *upload, size_t *upload_len, void **exchange);
void pn_exchange_completed(void *cls, struct MHD_Connection *connection,
    void **exchange, enum MHD_RequestTerminationCode code);

/* -- reading the head (head.c) --------------------------------------------- */

enum pn_framing {
	PN_FRAMING_LENGTH, /* Content-Length, or no body at all */
	PN_FRAMING_CHUNKED,
	PN_FRAMING_AMBIGUOUS, /* what is the body depends on who reads it */
};

/* Copies the headers into the arena. 0, 1: too many; -ENOMEM. */
int pn_head_read(struct MHD_Connection *connection, struct pn_arena *arena,
    struct pn_header **ret_headers, size_t *ret_count) PN_MUSTCHECK;
/* ret_length: of PN_FRAMING_LENGTH. Pure. */
enum pn_framing
pn_head_framing(const struct pn_request *request, uint64_t *ret_length);

/* -- the end of accepting (quiesce.c) -------------------------------------- */

/* MHD_quiesce_daemon() without its race with the daemon's threads. Returns what
 * that does: the listening socket, which the caller owns from then on. */
int pn_quiesce(struct MHD_Daemon *daemon);

/* -- replies (reply.c) ----------------------------------------------------- */

/* The body stays until the request is completed. */
enum MHD_Result pn_reply_send(struct MHD_Connection *connection,
    const struct pn_answer *answer, bool head, bool close);

#endif
