/*
 * paynotifyd: main() is the table of contents; everything is done elsewhere.
 *
 *   arguments -> configuration -> checks -> open -> ready -> wait -> close
 *
 * What is open, and in which order, is program.c's.
 *
 * SIGTERM, SIGINT and SIGHUP are blocked before the first thread exists, so that
 * every thread inherits the mask and only the wait here ever sees them. SIGPIPE is
 * ignored: a client that hangs up is an errno. SIGHUP reloads (reload.c).
 *
 * Exit status: 0 stopped by a signal, or nothing found wrong; 1 could not start
 * (an address in use); 2 usage; 78 (EX_CONFIG) bad configuration, so that systemd
 * does not try again what cannot work.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "paynotify/conf.h"
#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
#include "paynotify/server.h"
#include "paynotify/service.h"

#include "load.h"
#include "program.h"

enum { EXIT_OK = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_BAD_CONFIG = 78 };

static const char default_config[] = "/etc/paynotifyd/paynotifyd.conf";

/* How often the log is asked for floods that are over. */
static const int64_t tell_held_us = 2 * PN_SECOND_US;

enum { MALLOC_ARENAS = 4 }; /* one per core and some; not eight per core */

static const struct role_name {
	const char *name;
	enum role role;
} role_names[] = {
	{ "all", ROLE_ALL },
	{ "receive", ROLE_RECEIVE },
	{ "deliver", ROLE_DELIVER },
};

struct arguments {
	const char *config;
	enum role role;
	bool check;
};

/* -- arguments ------------------------------------------------------------------- */

static const char usage[] =
    "usage: paynotifyd [-c FILE] [--role all|receive|deliver] "
    "[--check]\n"
    "       paynotifyd --version | --help\n"
    "  -c, --config FILE  the configuration (default "
    "/etc/paynotifyd/paynotifyd.conf)\n"
    "      --role ROLE    what this process does: all (default), receive\n"
    "                     or deliver\n"
    "      --check        check the configuration and every key, and exit\n"
    "      --version      print the version and those of the libraries\n"
    "      --help         print this\n";

/* "built with": what is loaded may be newer, within the same ABI. */
static void
print_version(void)
{
	(void)printf(
	    "paynotifyd %s\nlibmicrohttpd %s\nlibcurl %s\nbuilt with %s\n",
	    PN_VERSION, pn_server_library_version(), pn_net_library_version(),
	    PN_LIBRARIES);
}

static int
usage_error(const char *what, const char *value)
{
	(void)fprintf(stderr, "paynotifyd: %s \"%s\"\n%s", what, value, usage);
	return EXIT_USAGE;
}

static int
parse_role(const char *name, enum role *ret_role)
{
	for (size_t i = 0; i < PN_COUNT(role_names); i++)
		if (strcmp(name, role_names[i].name) == 0) {
			*ret_role = role_names[i].role;
			return -1;
		}
	return usage_error("unknown role", name);
}

/* The exit status, or -1 to go on. */
static int
parse_arguments(int argc, char **argv, struct arguments *ret)
{
	enum { OPT_CHECK = 256, OPT_ROLE, OPT_VERSION, OPT_HELP };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "role", required_argument, NULL, OPT_ROLE },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int option, r = -1;

	*ret = (struct arguments){ .config = default_config, .role = ROLE_ALL };
	while (r < 0 && (option = getopt_long(
			     argc, argv, "c:Vh", options, NULL)) != -1) {
		switch (option) {
		case 'c': ret->config = optarg; break;
		case OPT_CHECK: ret->check = true; break;
		case OPT_ROLE: r = parse_role(optarg, &ret->role); break;
		case 'V':
		case OPT_VERSION: print_version(); return EXIT_OK;
		case 'h':
		case OPT_HELP: (void)fputs(usage, stdout); return EXIT_OK;
		default: /* getopt has said what is wrong */
			(void)fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (r < 0 && optind < argc)
		return usage_error("unexpected argument", argv[optind]);
	return r;
}

/* -- the process --------------------------------------------------------------------- */

static void
block_signals(sigset_t *ret_signals)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigemptyset(ret_signals);
	(void)sigaddset(ret_signals, SIGTERM);
	(void)sigaddset(ret_signals, SIGINT);
	(void)sigaddset(ret_signals, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

/* A descriptor a connection. */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* -- run -------------------------------------------------------------------- */

static const int64_t day_us = 24 * 3600 * PN_SECOND_US;

/* How long nothing is to be done unless a signal comes. */
static int64_t
idle_us(const struct program *program, int64_t feed_at_us, int64_t remind_at_us)
{
	int64_t next_us = feed_at_us < remind_at_us ? feed_at_us : remind_at_us;
	int64_t us = next_us - pn_clock_monotonic_us();

	if (program->ending_count + program->old_accounts_count > 0 &&
	    us > PN_SECOND_US)
		return PN_SECOND_US; /* to look whether they have ended */
	if (us > tell_held_us)
		return tell_held_us;
	return us < 1 ? 1 : us;
}

/* The signal to stop on. Feeds systemd's watchdog meanwhile - by the clock, since
 * signals may come at any rate -, has the log tell of floods that are over, and
 * reminds of certificates once a day; of those there are at the start or a reload
 * the warnings of the configuration have told. */
static int
wait_for_stop(struct program *program, const sigset_t *signals)
{
	int64_t every_us = pn_service_watchdog_us(), feed_at_us = INT64_MAX;
	int64_t remind_at_us = pn_clock_monotonic_us() + day_us;
	int number;

	if (every_us > 0)
		feed_at_us = pn_clock_monotonic_us() + every_us;
	do {
		number = pn_service_signal(
		    signals, idle_us(program, feed_at_us, remind_at_us));
		if (number == SIGHUP)
			program_reload(program);
		program_reap(program);
		if (pn_clock_monotonic_us() >= remind_at_us) {
			pn_ingest_warn_certificates(
			    program->ingest, pn_clock_realtime_us());
			remind_at_us = pn_clock_monotonic_us() + day_us;
		}
		pn_log_tell_held(false);
		if (pn_clock_monotonic_us() < feed_at_us)
			continue;
		feed_at_us = pn_clock_monotonic_us() + every_us;
		if (program_is_alive(program))
			pn_service_alive();
	} while (number == 0 || number == SIGHUP);
	return number;
}

/* Opens everything, waits for a signal. */
static int
serve(struct program *program, const sigset_t *signals)
{
	struct pn_error error = { .text = "" };
	int number;

	cmd_apply_log(&program->conf->log);
	if (geteuid() == 0)
		pn_log_warning("running as root: give it a user of its own");
	program_log_warnings(program->conf);
	raise_descriptor_limit();
	if (program_open(program, &error) < 0) {
		pn_log_err("%s", error.text);
		return EXIT_REFUSED;
	}
	program_announce(program);
	number = wait_for_stop(program, signals);
	pn_log_info("stopping on %s", number == SIGINT ? "SIGINT" : "SIGTERM");
	pn_service_stopping();
	return EXIT_OK;
}

static int
run(const struct arguments *arguments)
{
	struct program program = { .role = arguments->role,
		.path = arguments->config };
	struct pn_error error = { .text = "" };
	sigset_t signals;
	int r, status = EXIT_OK;

	block_signals(&signals);
	r = cmd_load(
	    arguments->config, &program.conf, &program.accounts, &error);
	if (r < 0) {
		(void)fprintf(stderr, "%s\n", error.text);
		status = r == -ENOMEM ? EXIT_REFUSED : EXIT_BAD_CONFIG;
	} else if (arguments->check) {
		if (program.conf->warnings != NULL)
			(void)fprintf(stderr, "%s\n", program.conf->warnings);
		(void)puts("configuration OK");
	} else {
		status = serve(&program, &signals);
	}
	program_close(&program);
	pn_log_tell_held(true);
	return status;
}

int
main(int argc, char **argv)
{
	struct arguments arguments;
	int status = parse_arguments(argc, argv, &arguments);

	if (status >= 0)
		return status;
	(void)mallopt(M_ARENA_MAX, MALLOC_ARENAS);
	return run(&arguments);
}
