/*
 * paynotifyctl: the operator's hands.
 *
 * Design: one const row a command says its name, options, what it needs and its
 * help; main() finds the row, parses by it, opens by it, runs it and closes.
 * What a command may do without is therefore visible here: `verify` gets no
 * database because its row does not ask for one.
 *
 * Invariants: exit 0 done, 1 refused or found wrong, 2 usage, 78 bad
 * configuration, whatever the command; results on stdout, complaints on stderr,
 * and a complaint says what to do.
 *
 * It deliberately knows no SQL, no HTTP and no provider: those are layers.
 */
#include "ctl.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "paynotify/deliveries.h"
#include "paynotify/moment.h"
#include "paynotify/xml.h"

#include "load.h"

#define COMMON                                             \
	(CTL_BIT(CTL_OPT_CONFIG) | CTL_BIT(CTL_OPT_JSON) | \
	    CTL_BIT(CTL_OPT_HELP))
#define EVENT_FILTER                                               \
	(CTL_BIT(CTL_OPT_TENANT) | CTL_BIT(CTL_OPT_TYPE) |         \
	    CTL_BIT(CTL_OPT_KEY) | CTL_BIT(CTL_OPT_OUT_TRADE_NO) | \
	    CTL_BIT(CTL_OPT_SINCE) | CTL_BIT(CTL_OPT_LIMIT))
/* Who did it, and why. */
#define RECORD  (CTL_BIT(CTL_OPT_REASON) | CTL_BIT(CTL_OPT_ACTOR))
#define SENDING (CTL_BIT(CTL_OPT_TO) | CTL_BIT(CTL_OPT_TIMEOUT))

const struct ctl_command ctl_commands[] = {
	{
	    .group = "config",
	    .name = "check",
	    .options = COMMON,
	    .need = CTL_NEEDS_PATH,
	    .run = ctl_config_check,
	    .summary = "load the configuration and every key it names",
	    .details =
		"Says what `paynotifyd --check` says: \"configuration OK\", or "
		"the first error\nwith file and line, and exit code 78.\n",
	},
	{
	    .group = "db",
	    .name = "migrate",
	    .options = COMMON,
	    .need = CTL_NEEDS_CONFIG,
	    .run = ctl_db_migrate,
	    .summary = "create or upgrade the schema, and make partitions",
	    .details =
		"Applies each missing migration once, in order, in a "
		"transaction of its own,\nas [database] admin_dsn (default: "
		"dsn). Running it again does no harm, and\nseveral at once "
		"wait for each other.\n",
	},
	{
	    .group = "db",
	    .name = "status",
	    .options = COMMON,
	    .need = CTL_NEEDS_CONFIG,
	    .run = ctl_db_status,
	    .summary = "which migrations are applied; exit 1 if any is not",
	    .details = "",
	},
	{
	    .name = "verify",
	    .operands = "CAPTURE",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | CTL_BIT(CTL_OPT_ACCOUNT) | CTL_BIT(CTL_OPT_AT),
	    .required = CTL_BIT(CTL_OPT_ACCOUNT),
	    .need = CTL_NEEDS_ACCOUNT,
	    .run = ctl_verify,
	    .summary = "judge a captured request as the daemon would, offline",
	    .details =
		"CAPTURE is a raw HTTP/1.1 request in a file (request line, "
		"headers, empty line,\nbody bytes), or - for standard input. "
		"Only the account's own section and keys\nare read; no "
		"database. Exit 0 only for verdict accepted. The verdicts:\n"
		"accepted malformed bad_signature unknown_key stale "
		"undecryptable wrong_account\nunsupported\n",
	},
	{
	    .name = "trigger",
	    .operands = "EVENT",
	    .operand_max = 1,
	    .options = COMMON | SENDING | CTL_BIT(CTL_OPT_ACCOUNT) |
		       CTL_BIT(CTL_OPT_LIST) | CTL_BIT(CTL_OPT_OUT_TRADE_NO) |
		       CTL_BIT(CTL_OPT_AMOUNT) |
		       CTL_BIT(CTL_OPT_REFUND_AMOUNT) |
		       CTL_BIT(CTL_OPT_COUNT_OF) | CTL_BIT(CTL_OPT_DUPLICATES) |
		       CTL_BIT(CTL_OPT_RETRIES) | CTL_BIT(CTL_OPT_CONNECTIONS) |
		       CTL_BIT(CTL_OPT_ODDITY) | CTL_BIT(CTL_OPT_SIGN_KEY) |
		       CTL_BIT(CTL_OPT_CHARSET) | CTL_BIT(CTL_OPT_DIALECT) |
		       CTL_BIT(CTL_OPT_SEED) | CTL_BIT(CTL_OPT_OUT),
	    .required = CTL_BIT(CTL_OPT_ACCOUNT),
	    .need = CTL_NEEDS_ACCOUNT,
	    .run = ctl_trigger,
	    .summary = "send signed sample notifications of a test account",
	    .details =
		"EVENT is an event type, such as payment.succeeded; --list "
		"shows those that the\nprovider has, and its oddities. Works "
		"for accounts with `test = yes` only. Each\nof --count has "
		"ids of its own; --duplicates sends the same bytes again, "
		"--retries\nsigns the same notification anew as a provider "
		"does. Exit 1 if any reply is not\nthe provider's success.\n",
	},
	{
	    .name = "replay",
	    .operands = "CAPTURE...",
	    .operand_min = 1,
	    .operand_max = CTL_COUNT_MAX,
	    .options = COMMON | SENDING,
	    .need = CTL_NEEDS_PATH,
	    .run = ctl_replay,
	    .summary = "send captured requests again, byte for byte",
	    .details =
		"Each goes out exactly as it is in the file, so its own "
		"request line decides the\npath and a path in --to is not "
		"used. Without --to the first [server] listen\naddress of the "
		"configuration is used. Exit 1 if any reply is not the "
		"provider's\nsuccess.\n",
	},
	{
	    .group = "events",
	    .name = "list",
	    .options = COMMON | EVENT_FILTER,
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_events_list,
	    .summary = "recorded events, newest first",
	    .details = "",
	},
	{
	    .group = "events",
	    .name = "show",
	    .operands = "ID|KEY|SEQ",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON,
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_events_show,
	    .summary = "one event with the provider's own fields",
	    .details =
		"By id (evt_...), key (webhook:...) or sequence number.\n",
	},
	{
	    .group = "events",
	    .name = "tail",
	    .options = COMMON | EVENT_FILTER | CTL_BIT(CTL_OPT_FOLLOW),
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_events_tail,
	    .summary = "the last events, newest last; --follow waits for more",
	    .details = "",
	},
	{
	    .group = "receipts",
	    .name = "list",
	    .options = COMMON | CTL_BIT(CTL_OPT_TENANT) |
		       CTL_BIT(CTL_OPT_PROVIDER) | CTL_BIT(CTL_OPT_VERDICT) |
		       CTL_BIT(CTL_OPT_OUT_TRADE_NO) | CTL_BIT(CTL_OPT_SINCE) |
		       CTL_BIT(CTL_OPT_LIMIT),
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_receipts_list,
	    .summary = "one row a request with its verdict, newest first",
	    .details = "",
	},
	{
	    .group = "consumers",
	    .name = "list",
	    .options = COMMON,
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_consumers_list,
	    .summary = "who gets events, and how far each has come",
	    .details =
		"An endpoint of [deliver NAME] is pushed to; an application "
		"that called\npaynotify.register_consumer() pulls. BEHIND "
		"counts events that it has not\nclaimed yet, those for "
		"others among them.\n",
	},
	{
	    .group = "consumers",
	    .name = "remove",
	    .operands = "CONSUMER",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | RECORD,
	    .required = CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .run = ctl_consumers_remove,
	    .summary = "forget a consumer that is no more",
	    .details =
		"What it has not been handed is dropped; its record stays. "
		"Stop it first, or it\ncomes back as a new one: end the "
		"application, or take the section [deliver NAME]\nout.\n",
	},
	{
	    .group = "deliveries",
	    .name = "list",
	    .options = COMMON | CTL_BIT(CTL_OPT_CONSUMER) |
		       CTL_BIT(CTL_OPT_STATE) | CTL_BIT(CTL_OPT_TENANT) |
		       CTL_BIT(CTL_OPT_LIMIT),
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_deliveries_list,
	    .summary = "the consumers, and what is not handed off, oldest "
		       "first",
	    .details =
		"leased: in flight. waiting: behind an earlier event of its "
		"order. retry: it\nfailed, or its lease ended, and it will "
		"be tried again. dead: given up, until\nit is redelivered or "
		"skipped. What nobody has claimed yet is counted as BEHIND.\n"
		"With --json the deliveries alone; `consumers list` has the "
		"rest.\n",
	},
	{
	    .group = "deliveries",
	    .name = "show",
	    .operands = "ID|KEY|SEQ",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON,
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_deliveries_show,
	    .summary = "where one event stands, and every attempt to push it",
	    .details = "",
	},
	{
	    .group = "deliveries",
	    .name = "redeliver",
	    .operands = "[EVENT...]",
	    .operand_max = CTL_COUNT_MAX,
	    .options = COMMON | RECORD | CTL_BIT(CTL_OPT_CONSUMER) |
		       CTL_BIT(CTL_OPT_STATE_ALL),
	    .required = CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .run = ctl_deliveries_redeliver,
	    .summary = "hand events over once more, done or dead",
	    .details =
		"EVENT is an id (evt_...), a key or a sequence number; or "
		"--state dead for all\nthat were given up. They go at once, "
		"beside their order, with the same\nwebhook-id and "
		"webhook-redelivery: true.\n",
	},
	{
	    .group = "deliveries",
	    .name = "skip",
	    .operands = "[EVENT...]",
	    .operand_max = CTL_COUNT_MAX,
	    .options = COMMON | RECORD | CTL_BIT(CTL_OPT_CONSUMER) |
		       CTL_BIT(CTL_OPT_STATE_ALL),
	    .required = CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .run = ctl_deliveries_skip,
	    .summary = "give events up: never handed over, their orders go on",
	    .details = "EVENT as for redeliver. One in flight loses its lease "
		       "by it.\n",
	},
	{
	    .group = "deliveries",
	    .name = "pause",
	    .operands = "CONSUMER",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | RECORD,
	    .required = CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .run = ctl_deliveries_pause,
	    .summary = "hand nothing to a consumer until it is resumed",
	    .details = "What is in flight ends as it would. Events are "
		       "recorded as ever, and wait.\n",
	},
	{
	    .group = "deliveries",
	    .name = "resume",
	    .operands = "CONSUMER",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | RECORD,
	    .need = CTL_NEEDS_WRITING,
	    .run = ctl_deliveries_resume,
	    .summary = "go on with a consumer that is paused or disabled",
	    .details = "An endpoint is disabled by answering 410.\n",
	},
	{
	    .group = "order",
	    .name = "show",
	    .operands = "OUT_TRADE_NO",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | CTL_BIT(CTL_OPT_TENANT),
	    .need = CTL_NEEDS_DATABASE,
	    .run = ctl_order_show,
	    .summary = "one order's timeline: receipts, events, deliveries",
	    .details = "",
	},
};

size_t
ctl_command_count(void)
{
	return PN_COUNT(ctl_commands);
}

/* Everything here is UTF-8, and wcwidth needs to know: in a C or Latin-1
 * locale only the character type is changed. */
static void
set_locale(void)
{
	(void)setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
}

/*
 * Finds the row; *ret_used words of argv name it. When there is none, tells
 * what there is and returns NULL with the exit code.
 */
static const struct ctl_command *
find_command(int argc, char **argv, int *ret_used, int *ret_exit)
{
	const char *first = argv[1];
	const char *second = argc > 2 ? argv[2] : NULL;
	bool group = false;

	*ret_exit = CTL_USAGE;
	for (size_t i = 0; i < PN_COUNT(ctl_commands); i++) {
		const struct ctl_command *c = &ctl_commands[i];

		if (c->group == NULL && strcmp(c->name, first) == 0) {
			*ret_used = 2;
			return c;
		}
		if (c->group == NULL || strcmp(c->group, first) != 0)
			continue;
		group = true;
		if (second != NULL && strcmp(c->name, second) == 0) {
			*ret_used = 3;
			return c;
		}
	}
	if (group && second != NULL &&
	    (strcmp(second, "--help") == 0 || strcmp(second, "-h") == 0)) {
		ctl_help_group(stdout, first);
		*ret_exit = CTL_DONE;
	} else if (group) {
		if (second == NULL)
			ctl_complain("\"%s\" needs a word behind it:", first);
		else
			ctl_complain(
			    "there is no \"%s %s\", but:", first, second);
		ctl_help_group(stderr, first);
	} else if (first[0] == '-') {
		ctl_complain("unknown option \"%s\" here: the command comes "
			     "first, its options behind it; `" CTL_NAME
			     " --help` lists the commands",
		    first);
	} else {
		ctl_complain("unknown command \"%s\"; `" CTL_NAME
			     " --help` lists the commands",
		    first);
	}
	return NULL;
}

static int
open_account(struct ctl *ctl)
{
	struct pn_str rest = pn_str_from(ctl->args.account);
	struct pn_str provider = pn_str_split(&rest, '/');
	struct pn_error error = { .text = "" };

	if (rest.data == NULL || rest.len == 0 || provider.len == 0)
		return ctl_usage(ctl->command,
		    "--account \"%s\" is not "
		    "PROVIDER/TENANT, such as alipay/shop1",
		    ctl->args.account);
	ctl->provider = pn_provider_find(provider);
	if (ctl->provider == NULL)
		return ctl_usage(ctl->command,
		    "--account \"%s\": there is no "
		    "provider \"" PN_STR_FMT "\"",
		    ctl->args.account, PN_STR_ARG(provider));
	if (pn_conf_load(
		ctl->args.config, ctl->args.account, &ctl->conf, &error) < 0) {
		ctl_complain("%s", error.text);
		return CTL_BAD_CONFIG;
	}
	ctl->account = pn_conf_account_find(ctl->conf, provider, rest);
	if (ctl->account == NULL) {
		ctl_complain("%s has no section [" PN_STR_FMT " " PN_STR_FMT
			     "]: add it, or give another --account or -c",
		    ctl->args.config, PN_STR_ARG(provider), PN_STR_ARG(rest));
		return CTL_BAD_CONFIG;
	}
	if (ctl->provider->account_open(
		ctl->account, &ctl->provider_account, &error) < 0) {
		ctl_complain("%s", error.text);
		return CTL_BAD_CONFIG;
	}
	return CTL_DONE;
}

static int
open_needs(struct ctl *ctl)
{
	enum ctl_need need = ctl->command->need;
	struct pn_error error = { .text = "" };
	int r = 0;

	if (need == CTL_NEEDS_ACCOUNT)
		return open_account(ctl);
	if (need < CTL_NEEDS_CONFIG)
		return CTL_DONE;
	r = pn_conf_load(ctl->args.config, NULL, &ctl->conf, &error);
	if (r == 0)
		r = cmd_check_database(ctl->conf, &error);
	if (r < 0) {
		ctl_complain("%s", error.text);
		return CTL_BAD_CONFIG;
	}
	/* Reading is the owner's work too: the receiver's role may write what
	 * it records, and see hardly any of it. */
	ctl->dsn = ctl->conf->database.admin_dsn != NULL
		       ? ctl->conf->database.admin_dsn
		       : ctl->conf->database.dsn;
	if (need == CTL_NEEDS_DATABASE)
		r = pn_query_open(ctl->dsn, &ctl->query, &error);
	else if (need == CTL_NEEDS_WRITING)
		r = pn_query_open_writable(ctl->dsn, &ctl->query, &error);
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return CTL_DONE;
}

static void
close_needs(struct ctl *ctl)
{
	if (ctl->query != NULL)
		pn_query_close(ctl->query);
	if (ctl->provider_account != NULL)
		ctl->provider->account_close(ctl->provider_account);
	pn_conf_free(ctl->conf);
}

static int
run_command(const struct ctl_command *command, int argc, char **argv)
{
	struct ctl ctl = { .command = command };
	int r;

	r = ctl_args_parse(
	    command, argc, argv, pn_clock_realtime_us(), &ctl.args);
	if (r == CTL_DONE && ctl.args.help) {
		ctl_help_command(stdout, command);
		return CTL_DONE;
	}
	if (r == CTL_DONE)
		r = open_needs(&ctl);
	if (r == CTL_DONE)
		r = command->run(&ctl);
	close_needs(&ctl);
	return r;
}

int
main(int argc, char **argv)
{
	const struct ctl_command *command;
	int used = 0, r = CTL_DONE;

	set_locale();
	pn_xml_init();
	if (argc < 2) {
		ctl_help_all(stderr);
		return CTL_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf(CTL_NAME " " PN_VERSION "\n");
	} else if (strcmp(argv[1], "--help") == 0 ||
		   strcmp(argv[1], "-h") == 0 ||
		   (strcmp(argv[1], "help") == 0 && argc == 2)) {
		ctl_help_all(stdout);
	} else {
		command = find_command(argc, argv, &used, &r);
		if (command != NULL)
			r = run_command(
			    command, argc - used + 1, argv + used - 1);
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		ctl_complain("could not write to standard output: %m");
		return CTL_REFUSED;
	}
	return r;
}
