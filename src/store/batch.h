/*
 * A batch: up to PN_BATCH_EVENTS_MAX elements of some notifications, all of
 * them with events (ingest.sql) or all to be quarantined (quarantine.sql), as
 * the parameters of one statement, and its verdicts. Knows no thread and no
 * connection; belongs to one writer.
 */
#ifndef PN_STORE_BATCH_H
#define PN_STORE_BATCH_H

#include "paynotify/store.h"

#include "array.h"
#include "conn.h"

enum { PN_BATCH_PARAMS_MAX = 36 };

/* Of one element, as ingest.sql numbers them. */
enum pn_element_verdict {
	PN_ELEMENT_NEW,
	PN_ELEMENT_DUPLICATE,
	PN_ELEMENT_CONFLICT,
	PN_ELEMENT_AGAIN,
	PN_ELEMENT_UNKNOWN, /* none came: synchronous standbys are required and
			     * none is named */
};

struct pn_batch {
	struct pn_submission *members[PN_BATCH_EVENTS_MAX];
	size_t count;
	size_t weight; /* elements; 1 for one without events */
	size_t bytes;
	bool quarantine;  /* which statement */
	bool resubmitted; /* a member may be stored already */

	/* Settings of every statement. */
	bool require_sync;
	int64_t key_hot_us;

	/* The statement. */
	struct pn_array arrays[PN_BATCH_PARAMS_MAX];
	const char *values[PN_BATCH_PARAMS_MAX];
	int lengths[PN_BATCH_PARAMS_MAX];
	int formats[PN_BATCH_PARAMS_MAX];
	unsigned char require_sync_param;
	unsigned char key_hot_param[16];

	/* Which notification and event an element is. */
	struct {
		uint16_t member;
		uint16_t event;
	} elements[PN_BATCH_EVENTS_MAX];
	size_t element_count;
	enum pn_element_verdict verdicts[PN_BATCH_EVENTS_MAX];
};

void
pn_batch_init(struct pn_batch *batch, bool require_sync, int64_t key_hot_us);
void pn_batch_done(struct pn_batch *batch);
void pn_batch_reset(struct pn_batch *batch);

/* How much of a batch a submission takes. */
size_t pn_submission_weight(const struct pn_submission *submission);
size_t pn_submission_bytes(const struct pn_submission *submission);
/* Whether it fits; an empty batch takes any. */
bool pn_batch_fits(
    const struct pn_batch *batch, const struct pn_submission *submission);
void pn_batch_add(struct pn_batch *batch, struct pn_submission *submission);

/* Prepares both statements, in both forms. */
int
pn_batch_prepare(struct pn_conn *conn, struct pn_error *ret_error) PN_MUSTCHECK;
/* Each sends one statement. As pn_conn_run(); -ENOMEM besides.
 *
 * A batch with events: fills verdicts. */
int pn_batch_run_ingest(struct pn_batch *batch, struct pn_conn *conn,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* After that: quarantines the conflicts of the members that are chosen.
 * *ret_taken: false where a standby is required and none is named. */
int pn_batch_run_conflicts(struct pn_batch *batch, struct pn_conn *conn,
    const bool *chosen, bool *ret_taken,
    struct pn_error *ret_error) PN_MUSTCHECK;
/* A batch to be quarantined. */
int pn_batch_run_quarantine(struct pn_batch *batch, struct pn_conn *conn,
    bool *ret_taken, struct pn_error *ret_error) PN_MUSTCHECK;
/* The one member, which the database has refused, is quarantined for reason. */
int pn_batch_run_refused(struct pn_batch *batch, struct pn_conn *conn,
    const char *reason, bool *ret_taken,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
