/*
 * What the files of paynotifyctl share: the command and option tables, the
 * context of one run. Private to src/cmd.
 *
 * One process runs one command. The dispatcher (paynotifyctl.c) reads the row
 * of the command, parses its options, opens what the row says it needs, calls
 * run() and closes everything again: a command never opens a configuration or a
 * database by itself, so none can forget the error text or the exit code that
 * goes with it.
 */
#ifndef PN_CTL_H
#define PN_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/provider.h"
#include "paynotify/query.h"

#include "ctl_args.h"
#include "ctl_print.h"

#define CTL_NAME        "paynotifyctl"
#define CTL_CONFIG_PATH "/etc/paynotifyd/paynotifyd.conf"

enum ctl_exit {
	CTL_DONE = 0,
	CTL_REFUSED = 1, /* refused, or found wrong */
	CTL_USAGE = 2,
	CTL_BAD_CONFIG = 78, /* EX_CONFIG */
};

/* What only this program bounds. */
enum {
	CTL_COUNT_MAX = 1000000,
	CTL_REPEATS_MAX = 1000,    /* --duplicates, --retries */
	CTL_CONNECTIONS_MAX = 256, /* --connections: one thread each */
	CTL_LIMIT_MAX = 1000000000,
	CTL_LIST_LIMIT = 1000, /* rows of a table without --limit */
	CTL_TAIL_LIMIT = 10,
	CTL_REASON_BYTES_MAX = 1000, /* --reason, --actor: one line */
	CTL_SAME_KEY_MAX = 64,       /* events of one key: one a tenant */
};

/* What the dispatcher opens before run(). Each includes the one before. */
enum ctl_need {
	CTL_NEEDS_NOTHING,
	CTL_NEEDS_PATH,     /* run() loads it itself: it tells more */
	CTL_NEEDS_CONFIG,   /* ctl->conf, all of it */
	CTL_NEEDS_ACCOUNT,  /* ctl->conf with --account's section only */
	CTL_NEEDS_DATABASE, /* ctl->conf and ctl->query */
	CTL_NEEDS_WRITING,  /* the same, and ctl->query may write */
};

struct ctl;

struct ctl_command {
	const char *group; /* "events", or NULL */
	const char *name;
	const char *operands; /* as the usage line shows them */
	size_t operand_min, operand_max;
	uint64_t options;  /* bits of enum ctl_option_id */
	uint64_t required; /* of these, which must be given */
	enum ctl_need need;
	/* What the tables cannot say of the line: CTL_DONE, or told. Before
	 * anything is opened; NULL: they say all. */
	int (*check)(const struct ctl *ctl);
	int (*run)(struct ctl *ctl); /* -> enum ctl_exit */
	const char *summary;
	const char *details; /* for --help */
};
extern const struct ctl_command ctl_commands[];
size_t ctl_command_count(void);

/* One run. */
struct ctl {
	const struct ctl_command *command;
	const char *dsn; /* what the command's connection is by */
	struct ctl_args args;
	struct pn_conf *conf;
	const struct pn_provider *provider; /* of --account */
	const struct pn_conf_account *account;
	void *provider_account;
	struct pn_query *query;
};

/* ctl_help.c */
void ctl_help_all(FILE *out);
void ctl_help_group(FILE *out, const char *group);
/* "usage: ...", without a line feed. */
void ctl_help_usage(FILE *out, const struct ctl_command *command);
void ctl_help_command(FILE *out, const struct ctl_command *command);
/* "events list" */
void ctl_command_title(
    const struct ctl_command *command, char *ret_text, size_t bytes);

/* ctl_consumers.c: appends the overview, of one or (NULL) of all. When `only`
 * does not exist, tells which there are: CTL_REFUSED. */
int ctl_consumers_overview(
    struct ctl *ctl, const char *only, struct pn_buf *out) PN_MUSTCHECK;
/* The consumer that --consumer names, or the only one there is, as text with a
 * NUL behind it. CTL_DONE, or told. */
int ctl_consumer_choose(struct ctl *ctl, struct pn_buf *ret_name) PN_MUSTCHECK;

/* ctl_events.c: tells that there is no such event (of --tenant). */
void ctl_event_complain(const struct ctl *ctl, const char *which);

/* ctl_act.c: who acts, for the record: --actor, or whoever is logged in. With a
 * NUL behind it, unless it failed. */
void ctl_actor_find(const struct ctl_args *args, struct pn_buf *ret_actor);

/* ctl_stats.c: the object of `stats --json`. 0; or what a query came to. */
int ctl_stats_add_json(struct ctl *ctl, struct pn_buf *out,
    struct pn_error *ret_error) PN_MUSTCHECK;

/* The commands. */
int ctl_config_check(struct ctl *ctl);
int ctl_db_migrate(struct ctl *ctl);
int ctl_db_status(struct ctl *ctl);
int ctl_verify(struct ctl *ctl);
int ctl_trigger(struct ctl *ctl);
int ctl_replay(struct ctl *ctl);
int ctl_events_list(struct ctl *ctl);
int ctl_events_show(struct ctl *ctl);
int ctl_events_tail(struct ctl *ctl);
int ctl_receipts_check(const struct ctl *ctl);
int ctl_receipts_list(struct ctl *ctl);
int ctl_stats_check(const struct ctl *ctl);
int ctl_stats(struct ctl *ctl);
int ctl_support_bundle(struct ctl *ctl);
int ctl_tenants_list(struct ctl *ctl);
int ctl_evidence_check(const struct ctl *ctl);
int ctl_evidence_verify(struct ctl *ctl);
int ctl_quarantine_check(const struct ctl *ctl);
int ctl_quarantine_list(struct ctl *ctl);
int ctl_quarantine_show_check(const struct ctl *ctl);
int ctl_quarantine_show(struct ctl *ctl);
int ctl_consumers_list(struct ctl *ctl);
int ctl_consumers_remove(struct ctl *ctl);
int ctl_deliveries_list_check(const struct ctl *ctl);
int ctl_deliveries_list(struct ctl *ctl);
int ctl_deliveries_show(struct ctl *ctl);
int ctl_deliveries_act_check(const struct ctl *ctl);
int ctl_deliveries_redeliver(struct ctl *ctl);
int ctl_deliveries_skip(struct ctl *ctl);
int ctl_deliveries_pause(struct ctl *ctl);
int ctl_deliveries_resume(struct ctl *ctl);
int ctl_keys_check(const struct ctl *ctl);
int ctl_keys_list_check(const struct ctl *ctl);
int ctl_keys_list(struct ctl *ctl);
int ctl_keys_show(struct ctl *ctl);
int ctl_keys_release(struct ctl *ctl);
int ctl_keys_forget(struct ctl *ctl);
int ctl_order_show(struct ctl *ctl);

#endif
