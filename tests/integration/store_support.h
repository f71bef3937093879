/*
 * What the store's tests share: made-up notifications with all the memory they
 * need, and a database connection to look behind the scenes.
 */
#ifndef PN_STORE_SUPPORT_H
#define PN_STORE_SUPPORT_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/store.h"

enum { NOTE_EVENTS_MAX = 8 };

/* A notification and what became of it. */
struct note {
	struct pn_submission submission;
	struct pn_event events[NOTE_EVENTS_MAX];
	char keys[NOTE_EVENTS_MAX][64];
	char out_trade_no[64];
	char body[256];
	char headers[128];
	char payload[256];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int done_count, release_count;
	enum pn_store_verdict verdict;
};

/* One event with this trade number; `amount` changes the fingerprint. */
void note_init(struct note *note, const char *trade, int64_t amount);
/* Another event in the same notification: refund `refund` of the trade. */
void note_add_refund(struct note *note, const char *trade, const char *refund);
/* To be quarantined for reason. */
void note_init_quarantine(
    struct note *note, const char *subject, const char *reason);
void note_done(struct note *note);
/* Waits for release; fails the test after 20 s. The verdict. */
enum pn_store_verdict note_wait(struct note *note);
bool note_is_done(struct note *note);

/* Submits and waits. */
enum pn_store_verdict
put(struct pn_store *store, const char *trade, int64_t amount);

const char *test_dsn(void); /* PN_DSN, or the test fails */
/* A store on dsn with these writers and timeout, connected. */
struct pn_store *
store_new(const char *dsn, unsigned writers, int64_t commit_timeout_us);

/* An empty database with the schema; its DSN, in a buffer of the caller. */
enum { DSN_BYTES = 512 };
void database_new(char ret_dsn[DSN_BYTES]);
/* Without it: a copy of this one (template1). */
void database_empty(char ret_dsn[DSN_BYTES], const char *template);

PGconn *db_open(const char *dsn);
/* Runs SQL that must work; the first value of the result, -1 when it is not a
 * number. */
int64_t db(PGconn *conn, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends without waiting. */
void db_send(PGconn *conn, const char *sql);
/* Ends what was sent: its SQLSTATE, "" when it worked. */
const char *db_end(PGconn *conn, char ret_state[6]);
/* Polls a query until its value is `wanted`; fails the test after 20 s. */
void db_wait(PGconn *conn, int64_t wanted, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Names synchronous standbys, and waits until commits wait for them ("": until
 * they do not). There are none, so they wait for ever. */
void db_set_standbys(PGconn *conn, const char *dsn, const char *names);

/* What most programs start each test with: a database of its own, two sessions
 * to look into it and to stand in the way, and a store of one writer whose
 * commit_timeout no test waits for. */
struct store_fixture {
	char dsn[DSN_BYTES];
	PGconn *db, *other;
	struct pn_store *store;
};
int store_fixture_setup(void **state);
int store_fixture_teardown(void **state);

/* Submits a note that the store must take. */
void note_submit(struct pn_store *store, struct note *note);

#endif
