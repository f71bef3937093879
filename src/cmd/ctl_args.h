/*
 * The command line as a struct: options by one table, each of one kind, and
 * where its value lands. Private to src/cmd.
 */
#ifndef PN_CTL_ARGS_H
#define PN_CTL_ARGS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

struct ctl_command;

enum ctl_option_id {
	CTL_OPT_CONFIG,
	CTL_OPT_JSON,
	CTL_OPT_HELP,
	CTL_OPT_ACCOUNT,
	CTL_OPT_AT,
	CTL_OPT_TO,
	CTL_OPT_TO_HOST, /* --to too, without a path */
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
	CTL_OPT_ROUTE,
	CTL_OPT_VERDICT,
	CTL_OPT_SINCE,
	CTL_OPT_LIMIT,
	CTL_OPT_FOLLOW,
	CTL_OPT_CONSUMER,
	CTL_OPT_STATE,
	CTL_OPT_STATE_ALL, /* --state too, of what acts */
	CTL_OPT_STATE_KEY, /* --state too, of the guard's keys */
	CTL_OPT_REASON,
	CTL_OPT_ACTOR,
	CTL_OPT_ALL,
	CTL_OPT_WATCH,
	CTL_OPT_OUTPUT,
	CTL_OPT_STATE_QUARANTINE, /* --state too, of the quarantine */
	CTL_OPT_COUNT
};
#define CTL_BIT(id) (UINT64_C(1) << (id))
static_assert(CTL_OPT_COUNT <= 64, "a command's options are one word of bits");

/* Where every option's value lands; zeroed, then defaults, then the line. */
struct ctl_args {
	bool json, help, list, follow, all, watch, seed_given;
	const char *config;
	const char *account, *to, *out_trade_no, *oddity, *sign_key, *charset;
	const char *dialect, *out;
	const char *tenant, *provider, *type, *key, *route, *verdict;
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

/* ctl_args.c: 0, or CTL_USAGE after telling what was wrong. since: now_us is
 * what durations count back from. */
int ctl_args_parse(const struct ctl_command *command, int argc, char **argv,
    int64_t now_us, struct ctl_args *ret_args) PN_MUSTCHECK;
/* Tells that the value of an option names no provider, and which there are:
 * CTL_USAGE. */
int ctl_usage_provider(const struct ctl_command *command, const char *option,
    const char *value, struct pn_str name);

#endif
