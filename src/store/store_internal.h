/*
 * What the files of the store share: the store, its queue and its threads.
 * Nothing outside this folder includes it.
 *
 * One mutex guards the queue, the set of keys in flight, the health and the
 * batches of the writers as far as the timer reads them (count, members).
 * Nothing slow happens under it: no system call, no SQL, no callback.
 */
#ifndef PN_STORE_INTERNAL_H
#define PN_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/store.h"

#include "batch.h"
#include "conn.h"
#include "keyset.h"
#include "wait.h"

enum {
	PN_QUEUE_LOOK_MAX = 1024, /* how far a writer looks past blocked ones */
	PN_RACES_MAX = 24,        /* one submission loses, then UNAVAILABLE */
	PN_COPIES_MAX = 64,       /* that may wait for a key held elsewhere */
	PN_EXPIRED_AT_ONCE = 128, /* what the timer takes in one go */
};

/* pn_submission.state, a set of flags; changed under the lock up to EXPIRED,
 * then by atomic or: who sets the second of the last two calls release(). */
enum {
	PN_STATE_SENT = 1,          /* in a writer's batch, not in the queue */
	PN_STATE_EXPIRED = 2,       /* the timer calls done() */
	PN_STATE_DONE_RETURNED = 4, /* ... and it has returned */
	PN_STATE_FINISHED = 8,      /* the writer is through with it */
	PN_STATE_RESERVED = 16,     /* in the queue, and its keys in flight */
};
static_assert(PN_COPIES_MAX <= UINT8_MAX, "struct pn_keyset_slot counts them");

struct pn_queue {
	/* Waiting, in the order of their deadlines, which is that of arrival. */
	struct pn_submission *first, **last;
	size_t weight;      /* elements in it */
	size_t alone_count; /* submissions in it that go by themselves */
	bool alone_is_next; /* they have every other batch at most */
	/* Something may be taken now that could not before: whoever sets it
	 * under the lock wakes a writer before unlocking. */
	bool news;
	/* Too many of one key: for the timer to answer. */
	struct pn_submission *refused;
	/* Events that are with a writer, or reserved. */
	struct pn_keyset in_flight;
};

struct pn_writer {
	struct pn_store *store;
	unsigned number;
	pthread_t thread;
	bool started;

	/* Guarded by the store's lock where the timer looks. */
	struct pn_submission *sent[PN_BATCH_EVENTS_MAX];
	size_t sent_count;
	bool ready; /* connected and prepared */

	/* The thread's own. */
	struct pn_batch batch;
	struct pn_conn conn;
	struct pn_backoff backoff;
	struct pn_error fault; /* why the connection is given up */
	size_t keys_written;   /* of the store's, on this connection */
};

struct pn_refusals; /* refusal.c */
struct pn_janitor;  /* janitor.c */
struct pn_notifier; /* notifier.c */

struct pn_store {
	/* Constant after opening. */
	char *dsn;
	unsigned writer_count;
	int64_t commit_timeout_us, key_hot_us;
	bool require_sync;
	struct pn_series *queue_seconds, *commit_seconds, *batch_size;
	struct pn_stop stop; /* readable: all threads end */

	pthread_mutex_t lock;
	pthread_cond_t work;    /* a writer may find something */
	pthread_cond_t drained; /* outstanding is 0 */
	pthread_cond_t changed; /* health; for wait_first */
	struct pn_queue queue;
	/* Each once, as they were added; only the thread that adds changes it.
	 * Sorted by fingerprint they are that thread's own. */
	struct pn_store_key *keys, *keys_sorted;
	size_t key_count;
	/* Writers that wait for work are idle + woken: who signals moves one
	 * from the first to the second, so that nobody is signalled twice. */
	unsigned idle, woken;
	size_t outstanding; /* submitted and not yet finished */
	bool closing, stopping;
	unsigned ready_count;
	bool first_attempt_made, outage_logged;
	int64_t down_since_us;       /* when ready_count became 0; monotonic */
	enum pn_store_health health; /* why, while ready_count is 0 */
	struct pn_error health_text;
	/* Statements refused since one was committed; read without the lock. */
	_Atomic unsigned refusal_count;
	struct pn_error refusal_text; /* of the last */
	int64_t refused_us;           /* when; monotonic */

	struct pn_writer *writers;
	pthread_t timer;
	bool timer_started;
	atomic_bool timer_ticked; /* pn_store_is_alive() */
	struct pn_refusals *refusals;
	struct pn_janitor *janitor;
	struct pn_notifier *notifier;
};

/* queue.c; all under the lock. */
void pn_queue_init(struct pn_queue *queue);
void pn_queue_append(struct pn_queue *queue, struct pn_submission *s);
/* From a writer, back to its place by deadline. One that is alone keeps its
 * keys. */
void pn_queue_return(struct pn_queue *queue, struct pn_submission *s);
/* Moves what may go together into the empty batch, marks it SENT and its keys
 * in flight. *ret_retry_at_us: when something that waits for its time may be
 * taken, INT64_MAX if there is none. */
void pn_queue_take(struct pn_queue *queue, struct pn_batch *batch,
    int64_t now_us, int64_t *ret_retry_at_us);
/* From a writer, for good: its keys are free. */
void pn_queue_settle(struct pn_queue *queue, const struct pn_submission *s);
/* Unlinks one that was refused or whose deadline has passed; NULL: none. */
struct pn_submission *
pn_queue_take_expired(struct pn_queue *queue, int64_t now_us);

/* Under the lock: whether one is idle; `work` is signalled after unlocking. */
bool pn_store_call_writer(struct pn_store *store) PN_MUSTCHECK;
/* Under the lock: wakes an idle writer if the queue has news. */
void pn_store_wake_for_news(struct pn_store *store);

/* writer.c, timer.c: thread functions. */
void *pn_writer_main(void *payload); /* its struct pn_writer */
void *pn_timer_main(void *payload);  /* the store */

/* Calls back: done(UNAVAILABLE) and release(). Not under the lock. */
void pn_submission_give_up(struct pn_submission *submission);

/* settle.c */
enum pn_fate {
	PN_FATE_DONE,  /* answered with its verdict */
	PN_FATE_BACK,  /* into the queue again */
	PN_FATE_LATER, /* not now */
};
void pn_settle(struct pn_writer *writer, struct pn_submission *const *members,
    size_t count, const enum pn_fate *fates);
void pn_settle_one(struct pn_writer *writer, struct pn_submission *submission,
    enum pn_fate fate);

/* attempt.c: sends the writer's batch and settles every member of it. -errno:
 * the connection is to be closed. */
int pn_attempt(struct pn_writer *writer) PN_MUSTCHECK;

/* store.c; not under the lock. What pn_store_health() says of the server. */
void pn_store_note_refused(struct pn_store *store, const struct pn_error *why);
void pn_store_note_committed(struct pn_store *store);

/* refusal.c */
int
pn_refusals_open(struct pn_store *store, struct pn_refusals **ret) PN_MUSTCHECK;
void pn_refusals_close(struct pn_refusals *refusals);
void
pn_refusals_add(struct pn_refusals *refusals, const struct pn_refusal *refusal);

/* janitor.c */
/* *ret may be there to close after -errno, too. */
int pn_janitor_open(struct pn_store *store,
    const struct pn_store_options *options,
    struct pn_janitor **ret) PN_MUSTCHECK;
void pn_janitor_close(struct pn_janitor *janitor);

/* notifier.c */
int
pn_notifier_open(struct pn_store *store, struct pn_notifier **ret) PN_MUSTCHECK;
void pn_notifier_close(struct pn_notifier *notifier);
/* Something new was committed. Any thread; never blocks. */
void pn_notifier_kick(struct pn_notifier *notifier);

/* session.c: connects, pins the session's settings and finds out whether the
 * schema is there. 0, or < 0 with *ret_health and the text. */
int pn_session_open(struct pn_conn *conn, const struct pn_store *store,
    enum pn_store_health *ret_health, struct pn_error *ret_error) PN_MUSTCHECK;
/* The same without a store, with other settings. */
int pn_session_connect(struct pn_conn *conn, const char *dsn, int stop_fd,
    const char *settings, enum pn_store_health *ret_health,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
