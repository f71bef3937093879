/*
 * What a running paynotifyd has open: opening it, closing it, saying so.
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
 */
#include "program.h"

#include <errno.h>
#include <stdio.h>

#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
#include "paynotify/service.h"

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
		.figures = true,
		.admin_dsn = conf->database.admin_dsn,
		.receipts_us = conf->retention.receipts_us,
		.evidence_us = conf->retention.evidence_us,
	};

	if (is(program, ROLE_RECEIVE)) {
		options.keys =
		    pn_accounts_keys(program->accounts, &options.key_count);
	} else {
		/* Only asked whether the database is there, and for its
		 * figures: nothing that a deliverer's role may not do. */
		options.writers = 1;
		options.require_sync = false;
		options.janitor = false;
	}
	return pn_store_open(&options, &program->store, ret_error);
}

static int
open_ingest(struct program *program, struct pn_error *ret_error)
{
	int r = pn_ingest_open(program->accounts, &program->ingest, ret_error);

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

int
program_open(struct program *program, struct pn_error *ret_error)
{
	bool gates =
	    is(program, ROLE_RECEIVE) && program->conf->guard.listen.count > 0;
	int r;

	/* libcurl wants to be initialised before there are threads; endpoints
	 * may come with a reload. */
	if ((is(program, ROLE_DELIVER) || gates) && pn_net_init() < 0)
		return pn_error_set(
		    ret_error, -EIO, "could not initialise libcurl");
	r = open_store(program, ret_error);
	if (r == 0 && is(program, ROLE_RECEIVE))
		r = open_ingest(program, ret_error);
	if (r == 0 && is(program, ROLE_RECEIVE))
		r = open_server(program, ret_error);
	if (r == 0 && gates)
		r = pn_guard_open(program->conf, &program->guard, ret_error);
	if (r == 0)
		r = open_admin(program, ret_error);
	if (r == 0 && is(program, ROLE_DELIVER))
		r = pn_deliver_open(program->conf->database.dsn, program->conf,
		    &program->deliver, ret_error);
	if (r == 0) {
		program->current = pn_conf_ref(program->conf);
		program_note_loaded();
	}
	/* From here on they are the pipeline's, if there is one. */
	pn_accounts_unref(program->accounts);
	program->accounts = NULL;
	return r;
}

static int64_t
capped_grace_us(int64_t us)
{
	return us < outbound_grace_us_max ? us : outbound_grace_us_max;
}

int64_t
program_push_grace_us(const struct pn_conf *conf)
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

/* All have their grace at the same time. Without a current configuration opening
 * has failed, before there was one. */
static void
close_delivers(struct program *program)
{
	pn_deliver_stop(
	    program->deliver, program_push_grace_us(program->current));
	pn_deliver_close(program->deliver, 0);
	for (size_t i = 0; i < program->ending_count; i++)
		pn_deliver_close(program->ending[i], 0);
}

void
program_close(struct program *program)
{
	int64_t commit_us;

	if (program->conf == NULL)
		return; /* comes first: then nothing else was opened */
	commit_us = program->conf->server.commit_timeout_us;
	if (program->current != NULL)
		close_delivers(program);
	pn_guard_close(program->guard, guard_grace_us(program->conf));
	pn_admin_close(program->admin);
	pn_server_close(program->server, read_grace_us + commit_us);
	if (program->store != NULL)
		pn_store_close(program->store, commit_us);
	pn_ingest_close(program->ingest);
	for (size_t i = 0; i < program->old_accounts_count; i++)
		pn_accounts_unref(program->old_accounts[i]);
	pn_accounts_unref(program->accounts);
	pn_conf_unref(program->current);
	pn_conf_unref(program->conf);
}

/* "listening on 127.0.0.1:8600; 2 accounts; 1 endpoint; database is ready" */
void
program_announce(const struct program *program)
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
bool
program_is_alive(struct program *program)
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

void
program_log_warnings(const struct pn_conf *conf)
{
	struct pn_str rest = pn_str_from(conf->warnings), line;

	while (rest.data != NULL && rest.len > 0) {
		line = pn_str_split(&rest, '\n');
		pn_log_always(
		    PN_LOG_WARNING, NULL, PN_STR_FMT, PN_STR_ARG(line));
	}
}

void
program_note_loaded(void)
{
	pn_metric_set(
	    PN_METRIC_CONFIG_LOADED, pn_clock_realtime_us() / PN_SECOND_US);
}
