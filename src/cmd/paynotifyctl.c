/*
 * paynotifyctl: the operator's hands.
 *
 * Design: one const row a command says its name, options, what it needs and its
 * help (ctl_commands.c); main() finds the row, parses by it, opens by it, runs
 * it and closes.
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
	for (size_t i = 0; i < ctl_command_count(); i++) {
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
		return ctl_usage_provider(
		    ctl->command, "account", ctl->args.account, provider);
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
	pn_conf_unref(ctl->conf);
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
	if (r == CTL_DONE && command->check != NULL)
		r = command->check(&ctl);
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
