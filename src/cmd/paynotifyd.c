/*
 * paynotifyd: main() is the table of contents; everything is done elsewhere.
 *
 *   arguments -> configuration -> checks -> open -> ready -> wait -> close
 *
 * Opened in an order in which each part can rely on the ones before, closed in
 * reverse: the accounts, the store (which connects in the background and never
 * holds up the start), the server that submits to it, the gateway, the admin
 * port, the deliverer. The server is closed before the store, so that whatever
 * was submitted gets its answer. The deliverer is opened last, since it pushes at
 * once and what could still fail - an address in use - had better fail before;
 * and closed first, since what is in flight may take seconds, during which the
 * server goes on receiving: the port is closed for as short as can be.
 *
 * A role is a part of that. `deliver` starts no server, but opens the store all
 * the same: /readyz asks it whether the database is there and its schema right.
 * The janitor runs where events are received, and not in `deliver`: what it
 * keeps up (partitions made ahead, keys moved out of the hot tier) is what
 * receiving stands on, and its rights are the receiver's. A process that only
 * delivers needs none, because each claim tends its own consumer.
 *
 * SIGTERM, SIGINT and SIGHUP are blocked before the first thread exists, so that
 * every thread inherits the mask and only the wait here ever sees them. SIGPIPE is
 * ignored: a client that hangs up is an errno. SIGHUP does not reload, but it
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
#include "paynotify/deliver.h"
#include "paynotify/guard.h"
#include "paynotify/ingest.h"
#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
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
/* And before that for pushes and for upstreams of the gateway: as long as the
 * slowest may take, but never longer than this. What is cut off is pushed again,
 * or its outcome is unknown. With the rest it stays below the unit's
 * TimeoutStopSec. */
static const int64_t outbound_grace_us_max = 10 * PN_SECOND_US;

enum { MALLOC_ARENAS = 4 }; /* one per core and some; not eight per core */

/* What a process does: bits. */
enum role {
	ROLE_RECEIVE = 1,
	ROLE_DELIVER = 2,
	ROLE_ALL = ROLE_RECEIVE | ROLE_DELIVER,
};

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

/* What is open, in order. */
struct program {
	enum role role;
	struct pn_conf *conf;
	struct pn_ingest *ingest;
	struct pn_store *store;
	struct pn_server *server;
	struct pn_guard *guard;
	struct pn_admin *admin;
	struct pn_deliver *deliver;
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

/* -- open, run, close ------------------------------------------------------------------ */

static bool
is(const struct program *program, enum role role)
{
	return (program->role & role) != 0;
}

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

	if (is(program, ROLE_RECEIVE)) {
		options.keys =
		    pn_ingest_keys(program->ingest, &options.key_count);
	} else {
		/* Only asked whether the database is there: one connection,
		 * and nothing that a deliverer's role may not do. */
		options.writers = 1;
		options.require_sync = false;
		options.janitor = false;
	}
	r = pn_store_open(&options, &program->store, ret_error);
	if (r == 0)
		pn_ingest_set_store(program->ingest, program->store);
	return r;
}

static int
open_server(struct program *program, struct pn_error *ret_error)
{
	const struct pn_conf_server *conf = &program->conf->server;
	struct pn_server_options options = {
		.conf = conf,
		.listen = &conf->listen,
		.socket_name = PN_SOCKET_NOTIFY,
		.body_bytes_max = (size_t)conf->max_body_bytes,
		.handler = &pn_notifications,
		.service = program->ingest,
	};

	return pn_server_open(&options, &program->server, ret_error);
}

static int
open_admin(struct program *program, struct pn_error *ret_error)
{
	int r = pn_admin_open(
	    program->conf, program->store, &program->admin, ret_error);

	if (r == -EADDRINUSE && program->role != ROLE_ALL)
		return pn_error_prefix(ret_error, r,
		    "[admin] listen is in use, maybe by the other role's "
		    "process: each on a host needs an address of its own (see "
		    "ROLES in paynotifyd(8)): ");
	return r;
}

static int
open_program(struct program *program, struct pn_error *ret_error)
{
	bool pushes =
	    is(program, ROLE_DELIVER) && program->conf->deliver_count > 0;
	bool gates =
	    is(program, ROLE_RECEIVE) && program->conf->guard.listen.count > 0;
	int r;

	/* libcurl wants to be initialised before there are threads. */
	if ((pushes || gates) && pn_net_init() < 0)
		return pn_error_set(
		    ret_error, -EIO, "could not initialise libcurl");
	r = open_store(program, ret_error);
	if (r == 0 && is(program, ROLE_RECEIVE))
		r = open_server(program, ret_error);
	if (r == 0 && gates)
		r = pn_guard_open(program->conf, &program->guard, ret_error);
	if (r == 0)
		r = open_admin(program, ret_error);
	if (r == 0 && pushes)
		r = pn_deliver_open(
		    program->conf, &program->deliver, ret_error);
	return r;
}

static int64_t
capped_grace_us(int64_t us)
{
	return us < outbound_grace_us_max ? us : outbound_grace_us_max;
}

static int64_t
push_grace_us(const struct pn_conf *conf)
{
	int64_t grace_us = 0;

	for (size_t i = 0; i < conf->deliver_count; i++)
		if (conf->delivers[i].timeout_us > grace_us)
			grace_us = conf->delivers[i].timeout_us;
	return capped_grace_us(grace_us);
}

static int64_t
guard_grace_us(const struct pn_conf *conf)
{
	int64_t grace_us = 0;

	for (size_t i = 0; i < conf->guard_route_count; i++)
		if (conf->guard_routes[i].timeout_us > grace_us)
			grace_us = conf->guard_routes[i].timeout_us;
	return capped_grace_us(grace_us);
}

static void
close_program(struct program *program)
{
	int64_t commit_us;

	if (program->conf == NULL)
		return; /* comes first: then nothing else was opened */
	commit_us = program->conf->server.commit_timeout_us;
	pn_deliver_close(program->deliver, push_grace_us(program->conf));
	pn_guard_close(program->guard, guard_grace_us(program->conf));
	pn_admin_close(program->admin);
	pn_server_close(program->server, read_grace_us + commit_us);
	if (program->store != NULL)
		pn_store_close(program->store, commit_us);
	pn_ingest_close(program->ingest);
	pn_conf_free(program->conf);
}

/* "listening on 127.0.0.1:8600; 2 accounts; 1 endpoint; database is ready" */
static void
announce(const struct program *program)
{
	size_t accounts = program->conf->account_count;
	size_t endpoints = program->conf->deliver_count;
	char health[256] = "", receives[512] = "", delivers[64] = "";
	char guards[512] = "";

	pn_store_wait_first(program->store, first_connection_us);
	(void)pn_store_health(program->store, health, sizeof(health));
	if (is(program, ROLE_RECEIVE))
		(void)snprintf(receives, sizeof(receives),
		    "listening on %s; %zu account%s; ",
		    pn_server_listening(program->server), accounts,
		    accounts == 1 ? "" : "s");
	if (is(program, ROLE_DELIVER))
		(void)snprintf(delivers, sizeof(delivers), "%s%zu endpoint%s; ",
		    is(program, ROLE_RECEIVE) ? "" : "delivering to ",
		    endpoints, endpoints == 1 ? "" : "s");
	if (program->guard != NULL)
		(void)snprintf(guards, sizeof(guards),
		    "guarding %zu route%s on %s; ",
		    program->conf->guard_route_count,
		    program->conf->guard_route_count == 1 ? "" : "s",
		    pn_guard_listening(program->guard));
	pn_log_info("%s%s%s%s", receives, guards, delivers, health);
	if (program->role == ROLE_DELIVER && endpoints == 0)
		pn_log_warning("nothing to do: the configuration has no "
			       "[deliver NAME] section");
	else if (program->role == ROLE_RECEIVE && endpoints > 0)
		pn_log_notice("events for %zu endpoint%s wait for a process "
			      "with --role deliver",
		    endpoints, endpoints == 1 ? "" : "s");
	pn_service_ready(health);
}

/* Whether everything that must not hang has got on since the last look. */
static bool
is_alive(struct program *program)
{
	bool server =
	    program->server == NULL || pn_server_is_alive(program->server);
	bool guard =
	    program->guard == NULL || pn_guard_is_alive(program->guard);
	bool store = pn_store_is_alive(program->store);

	if (!server || !guard || !store)
		pn_log_err("the watchdog is not fed, this hangs:%s%s%s",
		    server ? "" : " server", guard ? "" : " gateway",
		    store ? "" : " store");
	return server && guard && store;
}

/* The signal to stop on. Feeds systemd's watchdog meanwhile. */
static int
wait_for_stop(struct program *program, const sigset_t *signals)
{
	int64_t look_us = pn_service_watchdog_us();
	int number;

	while ((number = pn_service_signal(signals, look_us)) == 0 ||
	       number == SIGHUP) {
		if (number == SIGHUP)
			pn_log_notice("reload is not supported: restart to "
				      "apply a changed configuration");
		else if (look_us > 0 && is_alive(program))
			pn_service_alive();
	}
	return number;
}

/* What is allowed but hardly meant, one a line. */
static void
log_warnings(const struct pn_conf *conf)
{
	struct pn_str rest = pn_str_from(conf->warnings), line;

	while (rest.data != NULL && rest.len > 0) {
		line = pn_str_split(&rest, '\n');
		pn_log_warning(PN_STR_FMT, PN_STR_ARG(line));
	}
}

/* Opens everything, waits for a signal. */
static int
serve(struct program *program, const sigset_t *signals)
{
	struct pn_error error = { .text = "" };
	int number;

	if (geteuid() == 0)
		pn_log_warning("running as root: give it a user of its own");
	log_warnings(program->conf);
	raise_descriptor_limit();
	if (open_program(program, &error) < 0) {
		pn_log_err("%s", error.text);
		return EXIT_REFUSED;
	}
	announce(program);
	number = wait_for_stop(program, signals);
	pn_log_info("stopping on %s", number == SIGINT ? "SIGINT" : "SIGTERM");
	pn_service_stopping();
	return EXIT_OK;
}

static int
run(const struct arguments *arguments)
{
	struct program program = { .role = arguments->role };
	struct pn_error error = { .text = "" };
	sigset_t signals;
	int r, status = EXIT_OK;

	block_signals(&signals);
	r = cmd_load(arguments->config, &program.conf, &program.ingest, &error);
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
