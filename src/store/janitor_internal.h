/*
 * What the janitor's files share: its hands, and what each duty remembers
 * between two times. Only the janitor*.c include it.
 */
#ifndef PN_STORE_JANITOR_INTERNAL_H
#define PN_STORE_JANITOR_INTERNAL_H

#include "paynotify/limits.h"

#include "store_internal.h"

enum pn_duty {
	PN_DUTY_TEND,
	PN_DUTY_KEYS,
	PN_DUTY_PARTITIONS,
	PN_DUTY_SNAPSHOT,
	PN_DUTY_FIGURES,
	PN_DUTY_RETENTION,
	PN_DUTY_COUNT
};

/* A thread, its connection and the duties that are its. */
enum pn_hand_kind {
	PN_HAND_RECEIVER, /* on dsn; keeps its connection */
	PN_HAND_FIGURES,  /* the same, for what may take its time */
	PN_HAND_OWNER,    /* on admin_dsn; may wait long, connects for work */
	PN_HAND_COUNT
};

enum {
	PN_SNAPSHOT_XID_BYTES = 16,
	/* Two of each consumer, those of none, and when they were asked. */
	PN_FIGURES_MAX = 2 * PN_CONSUMERS_TOLD_MAX + 16,
};

struct pn_janitor;

struct pn_hand {
	struct pn_janitor *janitor;
	enum pn_hand_kind kind;
	pthread_t thread;
	bool started;
	/* The thread's own. */
	struct pn_conn conn;
	struct pn_backoff backoff;
	int64_t due_at_us[PN_DUTY_COUNT]; /* monotonic */
};

struct pn_janitor {
	/* Constant after opening. */
	struct pn_store *store;
	char *admin_dsn;
	int64_t receipts_us, evidence_us, snapshot_limit_us;
	struct pn_hand hands[PN_HAND_COUNT];
	/* Each of one duty. */
	unsigned keys_busy; /* locks not had, one after another */
	unsigned retention_blocked;
	struct {
		char xid[PN_SNAPSHOT_XID_BYTES]; /* empty: none */
		int64_t since_us, told_us;       /* monotonic; 0: not told */
	} snapshot;
	struct pn_series *figures[PN_FIGURES_MAX]; /* open */
	size_t figure_count;
};

/*
 * A duty. As pn_conn_run(): > 0 is a statement that was refused, which is told
 * and ends this duty's turn; < 0 ends the connection. *ret_rest_us: until its
 * next turn; its period where it does not say.
 */
typedef int (*pn_duty_fn)(
    struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error);

int pn_duty_keys(struct pn_hand *hand, int64_t *ret_rest_us,
    struct pn_error *error) PN_MUSTCHECK;
int pn_duty_retention(struct pn_hand *hand, int64_t *ret_rest_us,
    struct pn_error *error) PN_MUSTCHECK;
int pn_duty_figures(struct pn_hand *hand, int64_t *ret_rest_us,
    struct pn_error *error) PN_MUSTCHECK;
/* Nobody is asked any more: they are absent. */
void pn_figures_forget(struct pn_janitor *janitor);
int pn_duty_snapshot(struct pn_hand *hand, int64_t *ret_rest_us,
    struct pn_error *error) PN_MUSTCHECK;

#endif
