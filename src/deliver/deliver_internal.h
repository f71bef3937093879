/*
 * What the files of deliver share: endpoints, attempts, and the deliverer whose
 * two threads they pass between.
 */
#ifndef PN_DELIVER_INTERNAL_H
#define PN_DELIVER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/client.h"
#include "paynotify/conf.h"
#include "paynotify/deliver.h"
#include "paynotify/event.h"
#include "paynotify/handoff.h"
#include "paynotify/limits.h"
#include "paynotify/moment.h"
#include "paynotify/secret.h"
#include "paynotify/series.h"

#include "breaker.h"
#include "schedule.h"

enum {
	/* One claim or settlement: past this only others wait longer. */
	PN_CLAIM_AT_ONCE = 256,
	PN_SETTLE_AT_ONCE = 256,
	/* The threads stand back behind those that answer providers: a push may
	 * be late, an answer not. */
	PN_DELIVER_NICE = 5,
};
static_assert((int)PN_CLAIM_AT_ONCE <= (int)PN_CLAIM_EVENTS_MAX,
    "a claim asks for no more than it may");

/* What a lease is longer than the timeout of an attempt: for the claim to come
 * back, and for the answer to be settled. Not more, for it is also how late the
 * events are that a host had in flight when it died. */
#define PN_LEASE_MARGIN_US (15 * PN_SECOND_US)
static_assert(PN_LEASE_MARGIN_US > 0,
    "the lease outlives the attempt, or a slow answer would be sent twice at "
    "the same time");

/* -- endpoint.c: the worker's thread only ----------------------------------- */

struct pn_endpoint {
	const struct pn_conf_deliver *conf; /* borrowed */
	struct pn_secret *secrets;
	size_t secret_count;
	struct pn_breaker breaker;
	struct pn_series *deliveries, *seconds; /* what is counted of it */
	unsigned in_flight; /* leases held: sent, or waiting to be settled */
	bool registered;    /* on this connection */
	bool refused;       /* its name is a consumer's that pulls: was said */
	bool held;       /* paused or disabled: was said, on this connection */
	bool gone;       /* answered 410: to be disabled, before all else */
	bool wanted;     /* there may be something: claim at once */
	int64_t next_us; /* else then (claim, or registration); monotonic */
	int64_t hold_us; /* but not before: this host lacks something */
};

/* Parses what the configuration says. 0; -EINVAL with file:line; -ENOMEM.
 * pn_endpoint_done() in any case. */
int pn_endpoint_init(struct pn_endpoint *endpoint,
    const struct pn_conf_deliver *conf,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_endpoint_done(struct pn_endpoint *endpoint);
/* How many events may be claimed now. */
unsigned pn_endpoint_room(struct pn_endpoint *endpoint, int64_t now_us);
/* When to look at it again if nothing else happens; INT64_MAX: not before an
 * attempt has ended. Monotonic. */
int64_t pn_endpoint_due_us(const struct pn_endpoint *endpoint);
int64_t pn_endpoint_lease_us(const struct pn_endpoint *endpoint);

/* -- attempt.c -------------------------------------------------------------- */

struct pn_deliver;

/*
 * One event on its way to one endpoint. Who owns it:
 *
 *   claim --worker: send--> client --done()--> finished --worker--> pending
 *     |                     (client's thread)                         |
 *     +---- worker: not sent, BACK ---------------------------------->+
 *                                                  settled, or given up: freed
 */
struct pn_attempt {
	struct pn_client_request request;
	struct pn_deliver *deliver;
	struct pn_endpoint *endpoint;
	struct pn_attempt *next;
	unsigned char token[PN_TOKEN_BYTES];
	int attempt;
	bool redelivery;
	unsigned generation;   /* of the breaker, when it was sent */
	int64_t lease_end_us;  /* monotonic, no later than the database's */
	int64_t started_at_us; /* wall clock */
	struct pn_buf text, headers; /* what is sent; freed when it was */
	/* For the log. */
	char event_id[PN_EVENT_ID_TEXT_BYTES];
	char tenant[PN_TENANT_BYTES_MAX + 1];
	/* What came of it. */
	int64_t retry_after_us; /* what the endpoint asked for */
	char answer[PN_ANSWER_KEPT_BYTES_MAX];
	size_t answer_len;
	enum pn_delivery_outcome outcome;
	int64_t delay_us; /* before the next one */
	char error[PN_REASON_BYTES_MAX];
	unsigned settle_failures;
};

struct pn_attempts { /* a list, in order */
	struct pn_attempt *first, **end;
	size_t count;
};
void pn_attempts_init(struct pn_attempts *list);
void pn_attempts_add(struct pn_attempts *list, struct pn_attempt *attempt);
/* NULL: empty. */
struct pn_attempt *pn_attempts_take(struct pn_attempts *list);

/* Builds the request. NULL: memory is out. */
struct pn_attempt *pn_attempt_new(struct pn_deliver *deliver,
    struct pn_endpoint *endpoint, const struct pn_claimed *claimed,
    int64_t lease_end_us) PN_MUSTCHECK;
void pn_attempt_free(struct pn_attempt *attempt); /* NULL is fine */
/* Worker: decides outcome, delay and error. The verdict. */
enum pn_verdict pn_attempt_judge(struct pn_attempt *attempt, uint32_t random);
struct pn_delivery_result pn_attempt_result(const struct pn_attempt *attempt);

/* -- deliver.c, worker.c, settle.c ------------------------------------------ */

struct pn_deliver {
	const char *dsn;      /* borrowed */
	struct pn_conf *conf; /* a reference of its own */
	struct pn_endpoint *endpoints;
	size_t endpoint_count;
	struct pn_client *client;
	pthread_t thread;
	int wake_fd;  /* eventfd: finished is no longer empty, or closing */
	int abort_fd; /* timerfd: no waiting for the database any more */

	pthread_mutex_t lock; /* never held during a system call */
	struct pn_attempts finished;
	bool closing, over; /* over: the worker has ended */
	bool register_again;
	int64_t closing_until_us; /* monotonic */

	/* The worker's own. */
	struct pn_handoff *handoff; /* NULL: not connected */
	unsigned failures;          /* to connect, one after another */
	int64_t connect_at_us;
	char said[PN_ERROR_TEXT_BYTES_MAX]; /* about the database, last */
	size_t sent_count;                  /* with the client */
	struct pn_attempts pending;         /* to be settled */
	size_t settle_max; /* at once: 1 after a failure, then more */
	size_t turn;       /* which endpoint claims first */
};

/* The worker: until it is told to stop and all is settled. */
void pn_worker_main(struct pn_deliver *deliver);
/* Any thread: the client is through with it. */
void
pn_deliver_finished(struct pn_deliver *deliver, struct pn_attempt *attempt);
bool pn_deliver_is_closing(struct pn_deliver *deliver, int64_t *ret_until_us);
/* Settles all that is pending, disables endpoints that are gone. < 0: the
 * connection is of no use any more. */
int pn_deliver_settle(
    struct pn_deliver *deliver, struct pn_error *ret_error) PN_MUSTCHECK;
/* Lets go of an attempt that is settled or given up. */
void pn_deliver_settle_drop(struct pn_attempt *attempt);

#endif
