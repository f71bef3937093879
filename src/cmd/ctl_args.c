/*
 * From the command line to struct ctl_args, by the table of options.
 *
 * Design: getopt_long does the splitting (so options and operands may mix, and
 * `--` ends the options); the row of an option says of which kind its value is,
 * and one function checks each kind strictly. A command accepts the options
 * whose bits are in its row; every other is unknown to it.
 *
 * It deliberately does not look at combinations: those are the command's.
 */
#include "ctl.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"

#define AT(member) offsetof(struct ctl_args, member)

const struct ctl_option ctl_options[CTL_OPT_COUNT] = {
	[CTL_OPT_CONFIG] = { "config", 'c', "FILE", CTL_TEXT, AT(config), 0, 0,
	    "the configuration (default " CTL_CONFIG_PATH ")" },
	[CTL_OPT_JSON] = { "json", 0, NULL, CTL_FLAG, AT(json), 0, 0,
	    "for programs: JSON, in lists one object a line" },
	[CTL_OPT_HELP] = { "help", 'h', NULL, CTL_FLAG, AT(help), 0, 0,
	    "this text" },
	[CTL_OPT_ACCOUNT] = { "account", 'a', "PROVIDER/TENANT", CTL_TEXT,
	    AT(account), 0, 0, "whose account, such as alipay/shop1" },
	[CTL_OPT_AT] = { "at", 0, "UNIX", CTL_UNIX, AT(at_us), 0,
	    UINT64_C(253402300799),
	    "\"now\" for the time window, in seconds since 1970" },
	[CTL_OPT_TO] = { "to", 0, "URL", CTL_TEXT, AT(to), 0, 0,
	    "http://host:port[/path] or unix:/path (default: [server] "
	    "listen)" },
	[CTL_OPT_TO_HOST] = { "to", 0, "URL", CTL_TEXT, AT(to), 0, 0,
	    "http://host:port or unix:/path (default: [server] listen)" },
	[CTL_OPT_TIMEOUT] = { "timeout", 0, "DURATION", CTL_DURATION,
	    AT(timeout_us), 0, 0, "how long to wait for a reply (30s)" },
	[CTL_OPT_LIST] = { "list", 0, NULL, CTL_FLAG, AT(list), 0, 0,
	    "list the provider's events and oddities; send nothing" },
	[CTL_OPT_OUT_TRADE_NO] = { "out-trade-no", 0, "TEXT", CTL_TEXT,
	    AT(out_trade_no), 0, 0, "the merchant's order number" },
	[CTL_OPT_AMOUNT] = { "amount", 0, "MINOR", CTL_NUMBER, AT(amount), 1,
	    INT64_MAX, "the order's total in minor units (8888)" },
	[CTL_OPT_REFUND_AMOUNT] = { "refund-amount", 0, "MINOR", CTL_NUMBER,
	    AT(refund_amount), 1, INT64_MAX,
	    "of a refund, in minor units (the total)" },
	[CTL_OPT_COUNT_OF] = { "count", 'n', "N", CTL_NUMBER, AT(count), 1,
	    CTL_COUNT_MAX, "how many notifications, each with new ids (1)" },
	[CTL_OPT_DUPLICATES] = { "duplicates", 0, "N", CTL_NUMBER,
	    AT(duplicates), 0, CTL_REPEATS_MAX,
	    "send each N more times, the same bytes" },
	[CTL_OPT_RETRIES] = { "retries", 0, "N", CTL_NUMBER, AT(retries), 0,
	    CTL_REPEATS_MAX, "send each N more times, signed anew" },
	[CTL_OPT_CONNECTIONS] = { "connections", 0, "N", CTL_NUMBER,
	    AT(connections), 1, CTL_CONNECTIONS_MAX,
	    "send on N connections at once (1)" },
	[CTL_OPT_ODDITY] = { "oddity", 0, "NAME", CTL_TEXT, AT(oddity), 0, 0,
	    "make it odd or wrong in this way; see --list" },
	[CTL_OPT_SIGN_KEY] = { "sign-key", 0, "PEM", CTL_TEXT, AT(sign_key), 0,
	    0, "sign with the private key in this file instead" },
	[CTL_OPT_CHARSET] = { "charset", 0, "NAME", CTL_TEXT, AT(charset), 0, 0,
	    "alipay: GBK, GB2312, GB18030 or utf-8 (utf-8)" },
	[CTL_OPT_DIALECT] = { "dialect", 0, "NAME", CTL_TEXT, AT(dialect), 0, 0,
	    "wechat: v3, v2, v2-md5 or v2-hmac (v3 if it has keys for it)" },
	[CTL_OPT_SEED] = { "seed", 0, "N", CTL_NUMBER, AT(seed), 0, INT64_MAX,
	    "where ids come from; the same seed, the same ids (random)" },
	[CTL_OPT_OUT] = { "out", 'o', "FILE|DIR", CTL_TEXT, AT(out), 0, 0,
	    "write captures instead of sending; - is standard output" },
	[CTL_OPT_TENANT] = { "tenant", 0, "NAME", CTL_TEXT, AT(tenant), 0, 0,
	    "only this tenant's" },
	[CTL_OPT_PROVIDER] = { "provider", 0, "NAME", CTL_TEXT, AT(provider), 0,
	    0, "only this provider's" },
	[CTL_OPT_TYPE] = { "type", 0, "TYPE", CTL_TEXT, AT(type), 0, 0,
	    "only this type, such as payment.succeeded" },
	[CTL_OPT_KEY] = { "key", 0, "KEY", CTL_TEXT, AT(key), 0, 0,
	    "only this dedup key" },
	[CTL_OPT_ROUTE] = { "route", 0, "ROUTE", CTL_TEXT, AT(route), 0, 0,
	    "only this route's, such as \"POST /v1/charges\"" },
	[CTL_OPT_VERDICT] = { "verdict", 0, "NAME", CTL_TEXT, AT(verdict), 0, 0,
	    "only this verdict, such as bad_signature" },
	[CTL_OPT_SINCE] = { "since", 0, "WHEN", CTL_SINCE, AT(since_us), 0, 0,
	    "received since: RFC 3339, YYYY-MM-DD (UTC), or 24h back" },
	[CTL_OPT_LIMIT] = { "limit", 0, "N", CTL_NUMBER, AT(limit), 0,
	    CTL_LIMIT_MAX, "at most N rows, 0 for all (lists 1000, tail 10)" },
	[CTL_OPT_FOLLOW] = { "follow", 'f', NULL, CTL_FLAG, AT(follow), 0, 0,
	    "go on printing events as they are recorded" },
	[CTL_OPT_CONSUMER] = { "consumer", 0, "NAME", CTL_TEXT, AT(consumer), 0,
	    0, "which one (lists: all; else: the only one there is)" },
	[CTL_OPT_STATE] = { "state", 0, "STATE", CTL_TEXT, AT(state), 0, 0,
	    "only in this state: leased, waiting, retry or dead" },
	[CTL_OPT_STATE_ALL] = { "state", 0, "STATE", CTL_TEXT, AT(state), 0, 0,
	    "instead of EVENT: all that are dead, or in retry" },
	[CTL_OPT_STATE_KEY] = { "state", 0, "STATE", CTL_TEXT, AT(state), 0, 0,
	    "only PROCESSING, COMPLETED or FAILED (set aside) ones" },
	[CTL_OPT_REASON] = { "reason", 0, "TEXT", CTL_RECORD, AT(reason), 0,
	    CTL_REASON_BYTES_MAX, "why, for the record" },
	[CTL_OPT_OUTPUT] = { "output", 0, "FILE", CTL_TEXT, AT(out), 0, 0,
	    "the file to make (paynotify-support-TIME.tar.gz)" },
	[CTL_OPT_WATCH] = { "watch", 0, NULL, CTL_FLAG, AT(watch), 0, 0,
	    "again every SECONDS (2), until it is interrupted" },
	[CTL_OPT_ALL] = { "all", 0, NULL, CTL_FLAG, AT(all), 0, 0,
	    "all that is stored" },
	[CTL_OPT_STATE_QUARANTINE] = { "state", 0, "STATE", CTL_TEXT, AT(state),
	    0, 0, "only open, accepted, rejected or resolved ones" },
	[CTL_OPT_ACTOR] = { "actor", 0, "NAME", CTL_RECORD, AT(actor), 0,
	    CTL_REASON_BYTES_MAX, "who, for the record (who is logged in)" },
};

/* NULL when the value is fine, else what it should be. */
static const char *
parse_value(const struct ctl_option *option, const char *value, int64_t now_us,
    void *target)
{
	struct pn_str text = pn_str_from(value);
	uint64_t number;
	int64_t us;

	switch (option->kind) {
	case CTL_FLAG: *(bool *)target = true; return NULL;
	case CTL_TEXT:
		*(const char **)target = value;
		return value[0] == '\0' ? "it is empty" : NULL;
	case CTL_RECORD:
		*(const char **)target = value;
		return pn_str_trim(text).len == 0 ? "it is empty"
		       : text.len > option->max ? "it is longer than 1000 bytes"
		       : !pn_str_is_utf8(text)  ? "it is not UTF-8"
						: NULL;
	case CTL_NUMBER:
		if (pn_parse_uint(text, option->max, &number) != 0 ||
		    number < option->min)
			return "not a whole number";
		*(uint64_t *)target = number;
		return NULL;
	case CTL_UNIX:
		if (pn_parse_uint(text, option->max, &number) != 0)
			return "not seconds since 1970, such as 1772362806";
		*(int64_t *)target = (int64_t)number * PN_SECOND_US;
		return NULL;
	case CTL_DURATION:
		if (pn_parse_duration_us(text, &us) != 0 || us <= 0)
			return "not a duration, such as 500ms, 30s or 5m";
		*(int64_t *)target = us;
		return NULL;
	case CTL_SINCE:
		if (pn_moment_parse_since(text, now_us, &us) != 0)
			return "not 2026-03-01T10:00:00+08:00, 2026-03-01 or a "
			       "duration back, such as 24h";
		*(int64_t *)target = us;
		return NULL;
	}
	assert(!"a kind without a parser");
	return NULL;
}

struct getopt_input {
	struct option longs[CTL_OPT_COUNT + 1];
	char shorts[2 * CTL_OPT_COUNT + 2];
};

/* getopt's own tables: val is the id plus this, out of the letters' way. */
enum { LONG_BASE = 256 };

static void
fill_getopt(const struct ctl_command *command, struct getopt_input *ret_input)
{
	size_t longs = 0, shorts = 0;

	memset(ret_input, 0, sizeof(*ret_input));
	ret_input->shorts[shorts++] = ':';
	for (int id = 0; id < CTL_OPT_COUNT; id++) {
		const struct ctl_option *o = &ctl_options[id];

		if ((command->options & CTL_BIT(id)) == 0)
			continue;
		ret_input->longs[longs++] = (struct option){ o->name,
			o->metavar != NULL, NULL, LONG_BASE + id };
		if (o->letter == 0)
			continue;
		ret_input->shorts[shorts++] = o->letter;
		if (o->metavar != NULL)
			ret_input->shorts[shorts++] = ':';
	}
}

static int
option_of(const struct ctl_command *command, int val)
{
	if (val >= LONG_BASE)
		return val - LONG_BASE;
	for (int id = 0; id < CTL_OPT_COUNT; id++)
		if (ctl_options[id].letter != 0 &&
		    ctl_options[id].letter == val &&
		    (command->options & CTL_BIT(id)) != 0)
			return id;
	assert(!"getopt gave an option that is not in the table");
	return 0;
}

static int
complain_option(const struct ctl_command *command, int val, char **argv)
{
	const char *word = argv[optind - 1];

	if (val == ':')
		return ctl_usage(command, "option \"%s\" needs a value", word);
	if (optopt > 0 && optopt < LONG_BASE)
		return ctl_usage(command, "unknown option \"-%c\"", optopt);
	if (optopt >= LONG_BASE)
		return ctl_usage(command, "option \"--%s\" takes no value",
		    ctl_options[optopt - LONG_BASE].name);
	return ctl_usage(command, "unknown option \"%s\"", word);
}

int
ctl_usage_provider(const struct ctl_command *command, const char *option,
    const char *value, struct pn_str name)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf all = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

	for (size_t i = 0; pn_provider_at(i) != NULL; i++)
		pn_buf_printf(
		    &all, "%s%s", i > 0 ? ", " : "", pn_provider_at(i)->name);
	return ctl_usage(command,
	    "--%s \"%s\": there is no provider \"" PN_STR_FMT
	    "\"; there are " PN_STR_FMT,
	    option, value, PN_STR_ARG(name), PN_STR_ARG(pn_buf_str(&all)));
}

static int
check_given(const struct ctl_command *command, uint64_t given,
    const struct ctl_args *args)
{
	for (int id = 0; id < CTL_OPT_COUNT; id++)
		if ((command->required & ~given & CTL_BIT(id)) != 0)
			return ctl_usage(command, "it needs --%s %s",
			    ctl_options[id].name, ctl_options[id].metavar);
	if (args->operand_count < command->operand_min)
		return ctl_usage(command, "it needs %s", command->operands);
	if (args->operand_count > command->operand_max)
		return ctl_usage(command, "\"%s\" is one word too many",
		    args->operands[command->operand_max]);
	if (args->provider != NULL &&
	    pn_provider_find(pn_str_from(args->provider)) == NULL)
		return ctl_usage_provider(command, "provider", args->provider,
		    pn_str_from(args->provider));
	for (size_t i = 0; i < args->operand_count; i++)
		if (args->operands[i][0] == '\0')
			return ctl_usage(
			    command, "%s is empty", command->operands);
	return CTL_DONE;
}

int
ctl_args_parse(const struct ctl_command *command, int argc, char **argv,
    int64_t now_us, struct ctl_args *ret_args)
{
	struct ctl_args args = {
		.config = CTL_CONFIG_PATH,
		.at_us = PN_MOMENT_NONE,
		.since_us = PN_MOMENT_NONE,
		.timeout_us = 30 * PN_SECOND_US,
		.count = 1,
		.connections = 1,
		.limit = UINT64_MAX,
	};
	struct getopt_input input;
	uint64_t given = 0;
	int val;

	assert(argc >= 1);
	fill_getopt(command, &input);
	optind = 0; /* GNU: start anew, whoever used it before */
	opterr = 0;
	while ((val = getopt_long(
		    argc, argv, input.shorts, input.longs, NULL)) != -1) {
		const struct ctl_option *option;
		const char *wrong;
		int id;

		if (val == '?' || val == ':')
			return complain_option(command, val, argv);
		id = option_of(command, val);
		option = &ctl_options[id];
		wrong = parse_value(
		    option, optarg, now_us, (char *)&args + option->offset);
		if (wrong != NULL && option->kind == CTL_NUMBER)
			return ctl_usage(command,
			    "--%s \"%s\": %s from %" PRIu64 " to %" PRIu64,
			    option->name, optarg, wrong, option->min,
			    option->max);
		if (wrong != NULL)
			return ctl_usage(command, "--%s \"%s\": %s",
			    option->name, optarg, wrong);
		given |= CTL_BIT(id);
	}
	args.seed_given = (given & CTL_BIT(CTL_OPT_SEED)) != 0;
	args.operands = argv + optind;
	args.operand_count = (size_t)(argc - optind);
	if (!args.help) {
		int r = check_given(command, given, &args);

		if (r != CTL_DONE)
			return r;
	}
	*ret_args = args;
	return CTL_DONE;
}
