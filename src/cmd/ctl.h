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
	CTL_LIST_LIMIT = 1000, /* rows without --limit */
	CTL_TAIL_LIMIT = 10,
	CTL_REASON_BYTES_MAX = 1000, /* --reason, --actor: one line */
	CTL_SAME_KEY_MAX = 64,       /* events of one key: one a tenant */
};

enum ctl_option_id {
	CTL_OPT_CONFIG,
	CTL_OPT_JSON,
	CTL_OPT_HELP,
	CTL_OPT_ACCOUNT,
	CTL_OPT_AT,
	CTL_OPT_TO,
	CTL_OPT_TIMEOUT,
	CTL_OPT_LIST,
	CTL_OPT_OUT_TRADE_NO,
	CTL_OPT_AMOUNT,
	CTL_OPT_REFUND_AMOUNT,
	CTL_OPT_COUNT_OF, /* --count */
	CTL_OPT_DUPLICATES,
	CTL_OPT_RETRIES,
	CTL_OPT_CONNECTIONS,
	CTL_OPT_ODDITY,
	CTL_OPT_SIGN_KEY,
	CTL_OPT_CHARSET,
	CTL_OPT_DIALECT,
	CTL_OPT_SEED,
	CTL_OPT_OUT,
	CTL_OPT_TENANT,
	CTL_OPT_PROVIDER,
	CTL_OPT_TYPE,
	CTL_OPT_KEY,
	CTL_OPT_VERDICT,
	CTL_OPT_SINCE,
	CTL_OPT_LIMIT,
	CTL_OPT_FOLLOW,
	CTL_OPT_CONSUMER,
	CTL_OPT_STATE,
	CTL_OPT_REASON,
	CTL_OPT_ACTOR,
	CTL_OPT_COUNT
};
#define CTL_BIT(id) (UINT64_C(1) << (id))
static_assert(CTL_OPT_COUNT <= 64, "a command's options are one word of bits");

/* Where every option's value lands; zeroed, then defaults, then the line. */
struct ctl_args {
	bool json, help, list, follow, seed_given;
	const char *config;
	const char *account, *to, *out_trade_no, *oddity, *sign_key, *charset;
	const char *dialect, *out;
	const char *tenant, *provider, *type, *key, *verdict;
	const char *consumer, *state, *reason, *actor;
	int64_t at_us;    /* PN_MOMENT_NONE: now */
	int64_t since_us; /* PN_MOMENT_NONE: any */
	int64_t timeout_us;
	uint64_t amount, refund_amount, count, duplicates, retries;
	uint64_t connections, seed;
	uint64_t limit; /* UINT64_MAX: not given */
	char *const *operands;
	size_t operand_count;
};

enum ctl_kind {
	CTL_FLAG,
	CTL_TEXT,     /* const char * */
	CTL_RECORD,   /* const char *: UTF-8 for the record, max bytes */
	CTL_NUMBER,   /* uint64_t from min to max */
	CTL_DURATION, /* int64_t us: 500ms, 30s */
	CTL_UNIX,     /* int64_t us: seconds since 1970 */
	CTL_SINCE,    /* int64_t us: RFC 3339, date, or duration back */
};

struct ctl_option {
	const char *name;    /* without the dashes */
	char letter;         /* 0: none */
	const char *metavar; /* NULL for a flag */
	enum ctl_kind kind;
	size_t offset; /* into struct ctl_args */
	uint64_t min, max;
	const char *help;
};
extern const struct ctl_option ctl_options[CTL_OPT_COUNT];

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

/* ctl_args.c: 0, or CTL_USAGE after telling what was wrong. since: now_us is
 * what durations count back from. */
int ctl_args_parse(const struct ctl_command *command, int argc, char **argv,
    int64_t now_us, struct ctl_args *ret_args) PN_MUSTCHECK;
int
ctl_since_parse(const char *text, int64_t now_us, int64_t *ret_us) PN_MUSTCHECK;

/* ctl_help.c */
void ctl_help_all(FILE *out);
void ctl_help_group(FILE *out, const char *group);
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
int ctl_receipts_list(struct ctl *ctl);
int ctl_consumers_list(struct ctl *ctl);
int ctl_deliveries_list(struct ctl *ctl);
int ctl_deliveries_show(struct ctl *ctl);
int ctl_deliveries_redeliver(struct ctl *ctl);
int ctl_deliveries_skip(struct ctl *ctl);
int ctl_deliveries_pause(struct ctl *ctl);
int ctl_deliveries_resume(struct ctl *ctl);
int ctl_order_show(struct ctl *ctl);

#endif
