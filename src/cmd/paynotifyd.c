/*
 * paynotifyd: main() is the table of contents; everything is done elsewhere.
 *
 *   arguments -> configuration -> checks -> open -> ready -> wait -> close
 *
 * Opened in an order in which each part can rely on the ones before, closed in
 * reverse: the accounts, the store (which connects in the background and never
 * holds up the start), the server that submits to it, the admin port. The server
 * is closed before the store, so that whatever was submitted gets its answer.
 *
 * SIGTERM, SIGINT and SIGHUP are blocked before the first thread exists, so that
 * every thread inherits the mask and only sigwait() here ever sees them. SIGPIPE
 * is ignored: a client that hangs up is an errno. SIGHUP does not reload, but it
 * must not kill either: log rotation and habit send it.
 *
 * Exit status: 0 stopped by a signal, or nothing found wrong; 1 could not start
 * (an address in use); 2 usage; 78 (EX_CONFIG) bad configuration, so that systemd
 * does not try again what cannot work.
 */
#include <assert.h>
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

#include "paynotify/admin.h"
#include "paynotify/conf.h"
#include "paynotify/ingest.h"
#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/server.h"
#include "paynotify/service.h"
#include "paynotify/store.h"

#include "load.h"

enum { EXIT_OK = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_BAD_CONFIG = 78 };

static const char default_config[] = "/etc/paynotifyd/paynotifyd.conf";

/* READY=1 waits this long for the first connection, so that "started" in the
 * journal most often means "able to record"; requests are answered meanwhile. */
static const int64_t first_connection_us = PN_SECOND_US;
/* A stop waits this long for requests that are still being read, beyond what
 * commit_timeout allows to those that wait for the database. */
static const int64_t read_grace_us = 5 * PN_SECOND_US;

enum { MALLOC_ARENAS = 4 }; /* one per core and some; not eight per core */

struct arguments {
	const char *config;
	bool check;
};

/* What is open, in order. */
struct program {
	struct pn_conf *conf;
	struct pn_ingest *ingest;
	struct pn_store *store;
	struct pn_server *server;
	struct pn_admin *admin;
};

/* -- arguments ------------------------------------------------------------------- */

static const char usage[] =
    "usage: paynotifyd [-c FILE] [--role all|receive] [--check]\n"
    "       paynotifyd --version | --help\n"
    "  -c, --config FILE  the configuration (default "
    "/etc/paynotifyd/paynotifyd.conf)\n"
    "      --role ROLE    what this process does: all (default) or receive\n"
    "      --check        check the configuration and every key, and exit\n"
    "      --version      print the version and those of the libraries\n"
    "      --help         print this\n";

/* "built with": what is loaded may be newer, within the same ABI. */
static void
print_version(void)
{
	(void)printf("paynotifyd %s\nlibmicrohttpd %s\nbuilt with %s\n",
	    PN_VERSION, pn_server_library_version(), PN_LIBRARIES);
}

static int
usage_error(const char *what, const char *value)
{
	(void)fprintf(stderr, "paynotifyd: %s \"%s\"\n%s", what, value, usage);
	return EXIT_USAGE;
}

static int
check_role(const char *role)
{
	if (strcmp(role, "all") == 0 || strcmp(role, "receive") == 0)
		return -1;
	if (strcmp(role, "deliver") != 0)
		return usage_error("unknown role", role);
	(void)fprintf(stderr,
	    "paynotifyd: this build does not deliver yet: events are in"
	    " paynotify.events; use --role receive\n");
	return EXIT_USAGE;
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

	*ret = (struct arguments){ .config = default_config };
	while (r < 0 && (option = getopt_long(
			     argc, argv, "c:Vh", options, NULL)) != -1) {
		switch (option) {
		case 'c': ret->config = optarg; break;
		case OPT_CHECK: ret->check = true; break;
		case OPT_ROLE: r = check_role(optarg); break;
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

/* -- open, run, close ------------------------------------------------------------------ */

static int
open_store(struct program *program, struct pn_error *ret_error)
{
	const struct pn_conf *conf = program->conf;
	struct pn_store_options options = {
		.dsn = conf->database.dsn,
		.writers = (unsigned)conf->database.writers,
		.commit_timeout_us = conf->server.commit_timeout_us,
		.key_hot_us = conf->retention.key_hot_us,
		.require_sync = conf->database.require_sync,
		.janitor = true,
		.admin_dsn = conf->database.admin_dsn,
		.receipts_us = conf->retention.receipts_us,
		.evidence_us = conf->retention.evidence_us,
	};
	int r;

	options.keys = pn_ingest_keys(program->ingest, &options.key_count);
	r = pn_store_open(&options, &program->store, ret_error);
	if (r == 0)
		pn_ingest_set_store(program->ingest, program->store);
	return r;
}

static int
open_program(struct program *program, struct pn_error *ret_error)
{
	int r = open_store(program, ret_error);

	if (r == 0)
		r = pn_server_open(program->conf, program->ingest,
		    &program->server, ret_error);
	if (r == 0)
		r = pn_admin_open(
		    program->conf, program->store, &program->admin, ret_error);
	return r;
}

static void
close_program(struct program *program)
{
	int64_t commit_us =
	    program->conf == NULL ? 0 : program->conf->server.commit_timeout_us;

	pn_admin_close(program->admin);
	pn_server_close(program->server, read_grace_us + commit_us);
	if (program->store != NULL)
		pn_store_close(program->store, commit_us);
	pn_ingest_close(program->ingest);
	pn_conf_free(program->conf);
}

static void
announce(const struct program *program)
{
	char health[256] = "";

	pn_store_wait_first(program->store, first_connection_us);
	(void)pn_store_health(program->store, health, sizeof(health));
	pn_log_info("listening on %s; %zu accounts; %s",
	    pn_server_listening(program->server), program->conf->account_count,
	    health);
	pn_service_ready(health);
}

/* The signal to stop on. */
static int
wait_for_stop(const sigset_t *signals)
{
	int number = 0;

	while (sigwait(signals, &number) == 0 && number == SIGHUP)
		pn_log_notice("reload is not supported: restart to apply a"
			      " changed configuration");
	return number;
}

/* Opens everything, waits for a signal. */
static int
serve(struct program *program, const sigset_t *signals)
{
	struct pn_error error = { .text = "" };
	int number;

	if (geteuid() == 0)
		pn_log_warning("running as root: give it a user of its own");
	raise_descriptor_limit();
	if (open_program(program, &error) < 0) {
		pn_log_err("%s", error.text);
		return EXIT_REFUSED;
	}
	announce(program);
	number = wait_for_stop(signals);
	pn_log_info("stopping on %s", number == SIGINT ? "SIGINT" : "SIGTERM");
	pn_service_stopping();
	return EXIT_OK;
}

static int
run(const struct arguments *arguments)
{
	struct program program = { .conf = NULL };
	struct pn_error error = { .text = "" };
	sigset_t signals;
	int r, status = EXIT_OK;

	block_signals(&signals);
	r = cmd_load(arguments->config, &program.conf, &program.ingest, &error);
	if (r < 0) {
		(void)fprintf(stderr, "%s\n", error.text);
		status = r == -ENOMEM ? EXIT_REFUSED : EXIT_BAD_CONFIG;
	} else if (arguments->check) {
		(void)puts("configuration OK");
	} else {
		status = serve(&program, &signals);
	}
	close_program(&program);
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
