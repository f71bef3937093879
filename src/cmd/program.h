/*
 * What a running paynotifyd has open. Private to src/cmd; main thread.
 */
#ifndef PN_CMD_PROGRAM_H
#define PN_CMD_PROGRAM_H

#include <stdbool.h>

#include "paynotify/admin.h"
#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/deliver.h"
#include "paynotify/error.h"
#include "paynotify/guard.h"
#include "paynotify/ingest.h"
#include "paynotify/server.h"
#include "paynotify/store.h"

/* What a process does: bits. */
enum role {
	ROLE_RECEIVE = 1,
	ROLE_DELIVER = 2,
	ROLE_ALL = ROLE_RECEIVE | ROLE_DELIVER,
};

enum {
	PROGRAM_ENDING_MAX = 8, /* deliverers of configurations that were */
	PROGRAM_OLD_ACCOUNTS_MAX = 8,
};

/* What is open, in order. */
struct program {
	enum role role;
	const char *path; /* of the configuration; borrowed */
	/* cmd_load() has made these two. The configuration stays to the end:
	 * server, store, gateway and admin port borrow what is in it. */
	struct pn_conf *conf;
	struct pn_accounts *accounts; /* until they are the pipeline's */
	struct pn_conf *current;      /* that of the last good load */
	struct pn_ingest *ingest;
	struct pn_store *store;
	struct pn_server *server;
	struct pn_guard *guard;
	struct pn_admin *admin;
	struct pn_deliver *deliver;
	struct pn_deliver *ending[PROGRAM_ENDING_MAX]; /* stopped */
	size_t ending_count;
	/* Requests under way may have them still. */
	struct pn_accounts *old_accounts[PROGRAM_OLD_ACCOUNTS_MAX];
	size_t old_accounts_count;
};

/* Opens what the role takes, in order. On failure close_program() closes what
 * there is. */
int
program_open(struct program *program, struct pn_error *ret_error) PN_MUSTCHECK;
/* Closes all that is open, in reverse; also what cmd_load() has made. */
void program_close(struct program *program);
/* Says in the log and to systemd that it is ready, and with what. Waits a second
 * at most for the database. */
void program_announce(const struct program *program);
/* Whether everything that must not hang has got on since the last call, which
 * should be seconds ago. Says what has not. */
bool program_is_alive(struct program *program);
/* What is allowed but hardly meant, one a line. */
void program_log_warnings(const struct pn_conf *conf);
/* Metrics: the configuration that runs was loaded now. */
void program_note_loaded(void);
/* How long pushes that are in flight get when they are to end. */
int64_t program_push_grace_us(const struct pn_conf *conf);

/* reload.c: all or nothing; says in the log what came of it. */
void program_reload(struct program *program);
/* Closes deliverers that have ended, and accounts that no request has any more. */
void program_reap(struct program *program);

#endif
