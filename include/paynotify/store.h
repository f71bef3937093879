/*
 * Group commit into PostgreSQL: everything that waits goes into one autocommit
 * statement over arrays, with one verdict per element.
 *
 * The acknowledgement is made in done() and nowhere else, and done() says
 * RECORDED or DUPLICATE only after the commit.
 */
#ifndef PN_STORE_H
#define PN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/event.h"

enum { PN_REQUEST_ID_BYTES = 16 }; /* a UUID, version 7: receipts.id */

/* Of a notification, which may tell several events. */
enum pn_store_verdict {
	PN_STORE_RECORDED,    /* something in it was new */
	PN_STORE_DUPLICATE,   /* nothing was */
	PN_STORE_QUARANTINED, /* as asked */
	PN_STORE_CONFLICT,    /* known key, other content: quarantined */
	PN_STORE_UNAVAILABLE, /* not committed, or not known to be */
};

struct pn_submission;
typedef void (*pn_store_done_fn)(struct pn_submission *submission,
    enum pn_store_verdict verdict, void *payload);
typedef void (*pn_store_release_fn)(
    struct pn_submission *submission, void *payload);

/*
 * One notification. The caller fills it and keeps it and all it points to
 * until release(). Life (who moves it):
 *
 *   caller --submit--> QUEUED --writer--> SENT --writer--> done(verdict)
 *                         |                 |
 *                         +---- timer: commit_timeout ---> done(UNAVAILABLE)
 *
 * done() exactly once, from a writer or the timer thread; it must not block.
 * release() exactly once, after done(), when the store will not touch the
 * submission again (a timed-out statement is left to end first).
 */
struct pn_submission {
	unsigned char request_id[PN_REQUEST_ID_BYTES];
	struct pn_str provider, tenant, route; /* "notify/alipay" */
	struct pn_str peer;            /* client address, may be empty */
	struct pn_str notify_id;       /* may be empty */
	const struct pn_event *events; /* sealed */
	size_t event_count;            /* 0 when quarantine_reason is set */
	/* Signed but not recordable: goes to quarantine under subject. */
	const char *quarantine_reason;    /* NULL: record the events */
	struct pn_str quarantine_subject; /* notify id, else body digest */
	unsigned char quarantine_fingerprint[PN_SHA256_BYTES];
	struct pn_str quarantine_verdict; /* receipts.verdict: "undecryptable";
					   * empty: "quarantined" */
	/* What is answered, for the receipt and with the key. */
	struct pn_str success_body; /* body of a success; may be empty */
	int refused_status; /* HTTP status of a conflict or quarantine; 0: 422 */
	/* Evidence. */
	struct pn_str headers; /* "Name: value LF" of evidence_headers */
	struct pn_str body;
	struct pn_str payload; /* JSON or empty */
	unsigned char key_fingerprint[PN_SHA256_BYTES];

	pn_store_done_fn done;
	pn_store_release_fn release;
	void *payload_pointer; /* given to both */

	/* From the store, with CONFLICT: the first event that was one. */
	size_t conflicting_event;

	/* The store's own. */
	struct pn_submission *next;
	int64_t deadline_us; /* monotonic */
	_Atomic int state;
	int64_t retry_at_us;
	unsigned attempts;
	bool maybe_stored; /* a COMMIT of it was cut */
	bool alone;        /* failed in company: sent by itself */
	enum pn_store_verdict verdict;
};

/* A request that was refused unverified: copied, may be dropped. */
struct pn_refusal {
	unsigned char request_id[PN_REQUEST_ID_BYTES];
	struct pn_str provider, tenant, peer, notify_id;
	struct pn_str verdict; /* "bad_signature" */
	struct pn_str reason;
	int status;                  /* HTTP */
	struct pn_str headers, body; /* capped */
	/* receipts.body_bytes, where body is not all of it (a Content-Length
	 * that was refused unread, a body left out); 0: body.len. */
	uint64_t body_bytes;
};

struct pn_store_key {
	unsigned char fingerprint[PN_SHA256_BYTES];
	const char *pem; /* NULL: symmetric */
};

struct pn_store_options {
	const char *dsn;
	unsigned writers;
	int64_t commit_timeout_us;
	int64_t key_hot_us;
	bool require_sync;
	/* Keys to the permanent tier, partitions, leases of consumers. */
	bool janitor;
	/* Asks for the figures that only the database knows, for the metrics;
	 * as a receiver or a deliverer. */
	bool figures;
	/* The janitor drops partitions as the owner of the tables. */
	const char *admin_dsn;            /* NULL: dsn; copied */
	int64_t receipts_us, evidence_us; /* kept so long; 0: for ever */
	int64_t snapshot_limit_us; /* older ones are warned of; 0: 10 min */
	const struct pn_store_key *keys; /* copied */
	size_t key_count;
};

/* Whether libpq takes it as a connection string; connects to nothing. -EINVAL,
 * with a text that quotes nothing of it: it may hold a password. */
int
pn_store_dsn_check(const char *dsn, struct pn_error *ret_error) PN_MUSTCHECK;

struct pn_store;

/* Starts writers, timer, refusal writer, notifier, janitor. Never waits for the database:
 * it connects in the background and says what is wrong in the log. -ENOMEM,
 * -EAGAIN (no thread). */
int pn_store_open(const struct pn_store_options *options,
    struct pn_store **ret_store, struct pn_error *ret_error) PN_MUSTCHECK;
/* Waits until nothing is queued or sent (callers must have stopped
 * submitting), at most grace_us; what is left gets UNAVAILABLE. Then stops all
 * threads. */
void pn_store_close(struct pn_store *store, int64_t grace_us);

/* One thread at a time. What is submitted from now on may refer to these keys as
 * well: no evidence is written before they are, on any connection. Each once, in
 * any order; copies those that are new. Does not wait, neither for the database
 * nor for who submits. -ENOMEM: none was added. */
int pn_store_add_keys(struct pn_store *store, const struct pn_store_key *keys,
    size_t key_count) PN_MUSTCHECK;

/* Any thread. 0: done() will be called. 1: the queue is full, or the database
 * has been away for longer than commit_timeout: answer 503; neither done() nor
 * release() is called. */
int pn_store_submit(
    struct pn_store *store, struct pn_submission *submission) PN_MUSTCHECK;
/* Any thread, never blocks. */
void pn_store_refuse(struct pn_store *store, const struct pn_refusal *refusal);

enum pn_store_health {
	PN_STORE_READY,
	PN_STORE_CONNECTING,
	PN_STORE_NO_SCHEMA, /* run paynotifyctl db migrate */
	PN_STORE_OLD_SCHEMA,
	PN_STORE_FAILING, /* connected, but the last statements were refused
			   * for a reason of the server's (no space, read-only,
			   * a right that lacks); until one succeeds, or a
			   * minute passes in which none was sent: whoever
			   * asks here may be why none is */
};
/* text: one line for /readyz. */
enum pn_store_health
pn_store_health(struct pn_store *store, char *ret_text, size_t text_bytes);

/* Whether its timer, which answers what waits too long, has looked around since
 * the last call, which should be seconds ago. Main thread. */
bool pn_store_is_alive(struct pn_store *store);

/* Waits until the first connection is ready or has failed, at most timeout. */
void pn_store_wait_first(struct pn_store *store, int64_t timeout_us);

#endif
