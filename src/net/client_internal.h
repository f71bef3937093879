/*
 * What the files of the client share. Everything here but the queue of struct
 * pn_client belongs to the client's thread.
 *
 * The life of a request, and who makes each step:
 *
 *   pn_client_send -> queued -> in a lane -> running -> done()
 *                       take()    pump()     collect()
 *
 *   queued    any thread put it there; under the lock
 *   in a lane waits for a connection to its host; its time runs
 *   running   has an exchange, that is in the multi handle
 *
 * From each of them it may also end as STOPPED, from the lane as TIMEOUT, and
 * on the way to running as NOT_SENT.
 */
#ifndef PN_CLIENT_INTERNAL_H
#define PN_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "paynotify/buf.h"
#include "paynotify/client.h"
#include "paynotify/limits.h"

enum {
	/* "Accept:", "Content-Type:" and "Expect:" keep curl from making its
	 * own. */
	PN_CLIENT_LINES_MAX = PN_HEADER_COUNT_MAX + 3,
	PN_CLIENT_ORIGIN_BYTES_MAX = 300, /* a host name has up to 255 */
	PN_CLIENT_METHOD_BYTES_MAX = 32,
	PN_CLIENT_LANE_BUCKETS = 64, /* as many as there are endpoints */
};

/* -- lines.c: what is sent, checked ----------------------------------------- */

/* The header lines of a request as curl wants them. The nodes point into text
 * and to each other. */
struct pn_client_lines {
	struct pn_buf text;
	struct curl_slist nodes[PN_CLIENT_LINES_MAX];
};

struct pn_client_lines pn_client_lines_init(void);
/* 0, -EINVAL (which line, never what it says), -ENOMEM. */
int pn_client_lines_make(struct pn_client_lines *lines, struct pn_str headers,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* scheme://host:port of the URL, without user and password; data NULL when it
 * is none of http or https, or has an odd host. *ret_text holds it. */
struct pn_str
pn_client_origin(const char *url, char ret_text[PN_CLIENT_ORIGIN_BYTES_MAX]);

/* -- lanes.c: who may go next ------------------------------------------------ */

/* One host: those that wait for it, how many run. */
struct pn_client_lane {
	struct pn_client_lane *next;  /* in its bucket */
	struct pn_client_lane *after; /* among the ready ones */
	struct pn_client_request *first, *last;
	unsigned running;
	bool ready; /* is among the ready: some wait, and may run */
	size_t origin_len;
	char origin[];
};

struct pn_client_lanes {
	unsigned running_max, lane_running_max;
	unsigned running, waiting;
	int64_t until_us; /* none of those that wait is late before */
	struct pn_client_lane *ready_first, *ready_last;
	struct pn_client_lane *buckets[PN_CLIENT_LANE_BUCKETS];
};

void pn_client_lanes_init(struct pn_client_lanes *lanes,
    unsigned connections_max, unsigned connections_per_host_max);
/* Frees what is left; no one waits or runs any more. */
void pn_client_lanes_done(struct pn_client_lanes *lanes);
int pn_client_lanes_add(struct pn_client_lanes *lanes,
    struct pn_client_request *request) PN_MUSTCHECK; /* -ENOMEM */
/* The next request that may run, or NULL; from then on its lane is counted as
 * running one more, until it is left. */
struct pn_client_request *pn_client_lanes_next(
    struct pn_client_lanes *lanes, struct pn_client_lane **ret_lane);
void pn_client_lanes_leave(
    struct pn_client_lanes *lanes, struct pn_client_lane *lane);
/* Takes out all that wait and whose time is up; a list by next. */
struct pn_client_request *
pn_client_lanes_late(struct pn_client_lanes *lanes, int64_t now_us);

/* -- loop.c: the multi handle and its sockets ---------------------------------- */

struct pn_client_loop {
	CURLM *multi;
	int epoll_fd, wake_fd;
	int64_t timer_us; /* when curl wants to run; INT64_MAX: not */
};

int pn_client_loop_open(struct pn_client_loop *loop, unsigned connections_max,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_client_loop_close(struct pn_client_loop *loop);
void pn_client_loop_wake(struct pn_client_loop *loop); /* any thread */
/* Waits until something happens, is woken or it is until_us; runs curl. */
void pn_client_loop_turn(struct pn_client_loop *loop, int64_t until_us);

/* -- exchange.c: one request on an easy handle --------------------------------- */

struct pn_client_exchange {
	struct pn_client_exchange *next, *previous;
	struct pn_client_request *request; /* NULL: in the pool */
	struct pn_client_lane *lane;
	CURL *easy;
	char *ca_file; /* that is set in easy; NULL: the system's */
	struct pn_client_lines lines;
	struct pn_buf head, body;
	size_t head_bytes;   /* all that came, kept or not */
	size_t head_lines;   /* of this head, ditto */
	int64_t head_length; /* its Content-Length; -1: none so far */
	bool head_interim, head_done, head_full, head_ambiguous;
	bool sent;     /* curl was let send: from here on bytes may leave */
	bool repeated; /* curl wanted to send a second time */
	bool cut, stopped;
	int socket_errno; /* why the last one could not be made, or 0 */
	char text[CURL_ERROR_SIZE];
};

struct pn_client_exchange *pn_client_exchange_new(void);
void pn_client_exchange_free(struct pn_client_exchange *exchange);
/* Ready to be added to a multi handle. 0, -EINVAL, -ENOMEM, -ETIMEDOUT. */
int pn_client_exchange_start(struct pn_client_exchange *exchange,
    struct pn_client_request *request, int64_t now_us,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* Is in no multi handle any more; fills what done() sees. */
void pn_client_exchange_end(struct pn_client_exchange *exchange, CURLcode code);
/* The answer is of no use any more. */
void pn_client_exchange_rest(struct pn_client_exchange *exchange);

/* -- answer.c: what comes back --------------------------------------------------- */

/* Callbacks of curl; payload is the exchange. */
size_t
pn_client_answer_header(char *data, size_t one, size_t len, void *payload);
size_t pn_client_answer_body(char *data, size_t one, size_t len, void *payload);

/* -- report.c: how it ended, in words --------------------------------------------- */

void pn_client_report(
    struct pn_client_exchange *exchange, CURLcode code, int os_error);
/* For one that never ran. */
void pn_client_report_late(struct pn_client_request *request, unsigned running);

#endif
