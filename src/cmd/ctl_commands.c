/*
 * The commands of paynotifyctl, one row each: its name, its options, what it
 * needs and its help.
 *
 * What a command may do without is therefore visible here: `verify` gets no
 * database because its row does not ask for one, and what its row does not say
 * may write cannot. main() looks rows up (paynotifyctl.c); help and the parser
 * print and check what they say.
 *
 * It deliberately is no part of the library pn_ctl: the tests of the parser have
 * a table of their own.
 */
#include "ctl.h"

#define COMMON                                             \
	(CTL_BIT(CTL_OPT_CONFIG) | CTL_BIT(CTL_OPT_JSON) | \
	    CTL_BIT(CTL_OPT_HELP))
#define EVENT_FILTER                                               \
	(CTL_BIT(CTL_OPT_TENANT) | CTL_BIT(CTL_OPT_TYPE) |         \
	    CTL_BIT(CTL_OPT_KEY) | CTL_BIT(CTL_OPT_OUT_TRADE_NO) | \
	    CTL_BIT(CTL_OPT_SINCE) | CTL_BIT(CTL_OPT_LIMIT))
/* Who did it, and why. */
#define RECORD (CTL_BIT(CTL_OPT_REASON) | CTL_BIT(CTL_OPT_ACTOR))
/* Whose key, and of which route. */
#define KEY_SCOPE (CTL_BIT(CTL_OPT_TENANT) | CTL_BIT(CTL_OPT_ROUTE))

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
		"each error\nwith file and line, and then exits 78.\n",
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
	    .name = "stats",
	    .operands = "[--watch [SECONDS]]",
	    .operand_max = 1,
	    .options = COMMON | CTL_BIT(CTL_OPT_WATCH),
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_stats_check,
	    .run = ctl_stats,
	    .summary = "the service on one screen; --watch draws it anew",
	    .details =
		"Requests of the last minute, hour and day by account and "
		"verdict, consumers,\nquarantine, keys, the database. What a "
		"~ stands before is estimated, so that it\ncosts the same "
		"however much is stored.\n",
	},
	{
	    .name = "support-bundle",
	    .options = COMMON | CTL_BIT(CTL_OPT_OUTPUT),
	    .need = CTL_NEEDS_PATH,
	    .run = ctl_support_bundle,
	    .summary = "one file for who is to help, without secrets",
	    .details = "Versions, the configuration without secrets, what "
		       "`config check`, `db status`\n"
		       "and `stats` say, the last receipts without bodies and "
		       "numbers, settings of\n"
		       "PostgreSQL, readiness and metrics, the journal and the "
		       "units. What cannot be had\n"
		       "says so inside: a bad configuration or a database "
		       "that is away is no hindrance.\n",
	},
	{
	    .group = "tenants",
	    .name = "list",
	    .options = COMMON,
	    .need = CTL_NEEDS_CONFIG,
	    .run = ctl_tenants_list,
	    .summary = "the accounts of the configuration, and their keys",
	    .details =
		"From the configuration alone; no database. KEY is the serial "
		"or public key id\nwhere there is one, else the beginning of "
		"the fingerprint; ENDS is when a\ncertificate does.\n",
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
	    .options = COMMON | CTL_BIT(CTL_OPT_TO) | CTL_BIT(CTL_OPT_TIMEOUT) |
		       CTL_BIT(CTL_OPT_ACCOUNT) | CTL_BIT(CTL_OPT_LIST) |
		       CTL_BIT(CTL_OPT_OUT_TRADE_NO) | CTL_BIT(CTL_OPT_AMOUNT) |
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
		"ids of its own; --duplicates sends the same bytes again,\n"
		"--retries signs the same notification anew as a provider "
		"does. Exit 1 if any\nreply is not the provider's success.\n",
	},
	{
	    .name = "replay",
	    .operands = "CAPTURE...",
	    .operand_min = 1,
	    .operand_max = CTL_COUNT_MAX,
	    .options =
		COMMON | CTL_BIT(CTL_OPT_TO_HOST) | CTL_BIT(CTL_OPT_TIMEOUT),
	    .need = CTL_NEEDS_PATH,
	    .run = ctl_replay,
	    .summary = "send captured requests again, byte for byte",
	    .details =
		"Each goes out exactly as it is in the file: its own request "
		"line decides the\npath, so --to takes none. Without --to the "
		"first [server] listen address of the\nconfiguration is used. "
		"Exit 1 if any reply is not the provider's success, or if\na "
		"file is no HTTP request.\n",
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
	    .options = COMMON | CTL_BIT(CTL_OPT_TENANT),
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
	    .check = ctl_receipts_check,
	    .run = ctl_receipts_list,
	    .summary = "one row a request with its verdict, newest first",
	    .details =
		"VERDICT is recorded, duplicate, conflict, quarantined, "
		"malformed, bad_signature,\nunknown_key, stale, "
		"undecryptable, wrong_account, unsupported, rate_limited "
		"or\nnot_allowed.\n",
	},
	{
	    .group = "evidence",
	    .name = "verify",
	    .operands = "[ID|KEY|SEQ...]",
	    .operand_max = CTL_COUNT_MAX,
	    .options = COMMON | CTL_BIT(CTL_OPT_ALL) | CTL_BIT(CTL_OPT_TENANT) |
		       CTL_BIT(CTL_OPT_SINCE),
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_evidence_check,
	    .run = ctl_evidence_verify,
	    .summary = "check stored signatures again, by the keys on record",
	    .details =
		"Of the events that are named, or with --all (or --since) of "
		"everything that is\nkept, quarantine too: over the exact "
		"bytes that came, by the public key that\nverified them then, "
		"whatever the configuration says by now. WeChat's APIv2 signs\n"
		"with a secret, of which only a fingerprint is kept: without "
		"that secret in the\nconfiguration it is not verifiable. An "
		"event that is named is also compared with\nwhat was signed, "
		"read again by its account; --all looks at signatures only, "
		"not\nat events. Exit 1 if anything is not right: wrong, not "
		"verifiable, not\ncomparable, or not kept any more.\n",
	},
	{
	    .group = "quarantine",
	    .name = "list",
	    .options = COMMON | CTL_BIT(CTL_OPT_TENANT) |
		       CTL_BIT(CTL_OPT_PROVIDER) |
		       CTL_BIT(CTL_OPT_STATE_QUARANTINE) |
		       CTL_BIT(CTL_OPT_SINCE) | CTL_BIT(CTL_OPT_LIMIT),
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_quarantine_check,
	    .run = ctl_quarantine_list,
	    .summary = "signed, but not recordable; newest first",
	    .details = "",
	},
	{
	    .group = "quarantine",
	    .name = "show",
	    .operands = "ID",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON,
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_quarantine_show_check,
	    .run = ctl_quarantine_show,
	    .summary = "one entry: why, what it conflicts with, what to do",
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
	    .check = ctl_deliveries_list_check,
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
	    .options = COMMON | CTL_BIT(CTL_OPT_TENANT),
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
	    .check = ctl_deliveries_act_check,
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
	    .check = ctl_deliveries_act_check,
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
		       "recorded as ever,\nand wait.\n",
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
	    .group = "keys",
	    .name = "list",
	    .options = COMMON | KEY_SCOPE | CTL_BIT(CTL_OPT_STATE_KEY) |
		       CTL_BIT(CTL_OPT_LIMIT),
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_keys_list_check,
	    .run = ctl_keys_list,
	    .summary = "the guard's keys; --state FAILED: those set aside",
	    .details =
		"PROCESSING keys are held (a holder is at work), lease ended "
		"(it did not come\nback) or free (let go: the next request "
		"runs). UNTIL is when the lease ends, or\nfor how long the "
		"answer is kept. By tenant, route and key.\n",
	},
	{
	    .group = "keys",
	    .name = "show",
	    .operands = "KEY",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | KEY_SCOPE,
	    .need = CTL_NEEDS_DATABASE,
	    .check = ctl_keys_check,
	    .run = ctl_keys_show,
	    .summary = "one key, its answer, and what was done by hand",
	    .details =
		"A key whose time is over is archived, and only its digest is "
		"left: that is found\nby --tenant and --route.\n",
	},
	{
	    .group = "keys",
	    .name = "release",
	    .operands = "KEY",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | KEY_SCOPE | RECORD,
	    .required = KEY_SCOPE | CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .check = ctl_keys_check,
	    .run = ctl_keys_release,
	    .summary = "have a key's next request run, whatever came before",
	    .details =
		"For a key that is set aside, or whose lease is not worth "
		"waiting for. Whoever\nholds it loses its lease: what it does "
		"can no longer be completed. Find out\nbefore whether the "
		"work was done: it will be done again.\n",
	},
	{
	    .group = "keys",
	    .name = "forget",
	    .operands = "KEY",
	    .operand_min = 1,
	    .operand_max = 1,
	    .options = COMMON | KEY_SCOPE | RECORD,
	    .required = KEY_SCOPE | CTL_BIT(CTL_OPT_REASON),
	    .need = CTL_NEEDS_WRITING,
	    .check = ctl_keys_check,
	    .run = ctl_keys_forget,
	    .summary = "forget a key and its answer, as if it had never come",
	    .details =
		"In the permanent tier too. Its next request runs as the "
		"first, also one that is\nnot the same as before.\n",
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
