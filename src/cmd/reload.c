/*
 * SIGHUP: other keys, accounts and endpoints, without dropping a request.
 *
 *   load and check all --> keys to the store --> open the new deliverer
 *        |                                            |
 *        +---- any error: nothing has changed         v
 *                      exchange the accounts, stop the old deliverer
 *
 * All that can fail comes first, on the new configuration and beside the old one;
 * what comes then cannot. A request under way ends with the accounts it was routed
 * by (ingest/ingest.c), which are closed here when the last has: it takes too long
 * for a thread that answers. The store knows the new keys before anything can be
 * verified with them (store/keys.c). If nothing of the endpoints differs their
 * deliverer stays: its breakers and connections know more than a new one's.
 *
 * An old deliverer claims nothing more and ends by itself, as at a stop: what is
 * in flight gets its grace, signed with the secrets it was sent with. Meanwhile
 * there are two, which is as safe as two hosts. It is closed here when it is over,
 * and the new one then says its URLs and filters once more: a statement of the old
 * one that was under way may have come last.
 * Each has a connection and threads; so only a few may be ending, and who reloads
 * other endpoints still faster is refused.
 *
 * Nothing here waits: not for the database, not for an endpoint. The time it takes
 * is that of reading the files.
 *
 * What listens, the database and the gateway are as they were at the start, and
 * their options with them: they point into that configuration, which stays. What
 * is changed of these is named in the log each time.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "paynotify/conf_change.h"
#include "paynotify/log.h"
#include "paynotify/metrics.h"
#include "paynotify/moment.h"
#include "paynotify/service.h"

#include "load.h"
#include "program.h"

/* What is to be put in the place of what runs. */
struct next {
	struct pn_conf *conf;
	struct pn_accounts *accounts;
	bool other_endpoints;
	struct pn_deliver *deliver; /* if they are; NULL: none */
};

static int
add_keys(struct program *program, const struct next *next,
    struct pn_error *ret_error)
{
	size_t count;
	const struct pn_store_key *keys =
	    pn_accounts_keys(next->accounts, &count);

	if ((program->role & ROLE_RECEIVE) == 0)
		return 0;
	if (pn_store_add_keys(program->store, keys, count) < 0)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	return 0;
}

/* The last thing that can fail, since it pushes from then on. */
static int
open_deliver(
    struct program *program, struct next *next, struct pn_error *ret_error)
{
	if ((program->role & ROLE_DELIVER) == 0)
		return 0;
	next->other_endpoints =
	    pn_conf_endpoints_differ(program->current, next->conf);
	if (!next->other_endpoints)
		return 0;
	if (program->ending_count == PROGRAM_ENDING_MAX)
		return pn_error_set(ret_error, -EBUSY,
		    "pushes to the endpoints of the last %d reloads are still "
		    "under way: reload again in a few seconds",
		    (int)PROGRAM_ENDING_MAX);
	return pn_deliver_open(
	    program->conf->database.dsn, next->conf, &next->deliver, ret_error);
}

/* Of more than a few sets at once the oldest is left to its last request: that
 * one is late, but no request can keep any number of sets. */
static void
keep_old(struct program *program, struct pn_accounts *accounts)
{
	struct pn_accounts **old = program->old_accounts;

	if (program->old_accounts_count == PROGRAM_OLD_ACCOUNTS_MAX) {
		pn_accounts_unref(old[0]);
		program->old_accounts_count--;
		memmove(
		    old, old + 1, program->old_accounts_count * sizeof(*old));
	}
	old[program->old_accounts_count++] = accounts;
}

/* Cannot fail. */
static void
apply(struct program *program, struct next *next)
{
	if (program->ingest != NULL)
		keep_old(program,
		    pn_ingest_exchange(program->ingest, next->accounts));
	if (next->other_endpoints) {
		pn_deliver_stop(
		    program->deliver, program_push_grace_us(program->current));
		if (program->deliver != NULL)
			program->ending[program->ending_count++] =
			    program->deliver;
		assert(program->ending_count <= PROGRAM_ENDING_MAX);
		program->deliver = next->deliver;
	}
	cmd_apply_log(&next->conf->log);
	pn_conf_unref(program->current);
	program->current = pn_conf_ref(next->conf);
}

static void
tell_restart(const char *section, const char *key, void *payload)
{
	(void)payload;
	if (key == NULL)
		pn_log_always(PN_LOG_NOTICE, NULL,
		    "[%s] is new or was taken out: takes effect at the next "
		    "restart",
		    section);
	else
		pn_log_always(PN_LOG_NOTICE, NULL,
		    "[%s] %s is changed: takes effect at the next restart",
		    section, key);
}

static void
say_done(const struct program *program)
{
	const struct pn_conf *conf = program->current;
	char health[256] = "";

	program_note_loaded();
	pn_log_info("reloaded: %zu account%s, %zu endpoint%s",
	    conf->account_count, conf->account_count == 1 ? "" : "s",
	    conf->deliver_count, conf->deliver_count == 1 ? "" : "s");
	program_log_warnings(conf);
	pn_conf_tell_restart(program->conf, conf, tell_restart, NULL);
	/* Last: who sees it counted finds all that was said of it. */
	pn_metric_add(PN_METRIC_RELOADS_DONE, 1);
	(void)pn_store_health(program->store, health, sizeof(health));
	pn_service_ready(health);
}

/* One line each, as they are found. */
static void
say_refused(const struct pn_error *error)
{
	struct pn_str rest = pn_str_from(error->text), line;
	char status[PN_ERROR_TEXT_BYTES_MAX + 32];

	while (rest.data != NULL && rest.len > 0) {
		line = pn_str_split(&rest, '\n');
		pn_log_always(PN_LOG_ERR, NULL,
		    "reload refused, the running configuration goes "
		    "on: " PN_STR_FMT,
		    PN_STR_ARG(line));
	}
	pn_metric_add(PN_METRIC_RELOADS_REFUSED, 1);
	(void)snprintf(
	    status, sizeof(status), "reload refused: %s", error->text);
	pn_service_ready(status);
}

void
program_reload(struct program *program)
{
	struct pn_error error = { .text = "" };
	struct next next = { .conf = NULL };
	int r;

	pn_service_reloading();
	program_reap(program);
	r = cmd_load(program->path, &next.conf, &next.accounts, &error);
	if (r == 0)
		r = add_keys(program, &next, &error);
	if (r == 0)
		r = open_deliver(program, &next, &error);
	if (r == 0) {
		apply(program, &next);
		say_done(program);
	} else {
		say_refused(&error);
	}
	pn_accounts_unref(next.accounts);
	pn_conf_unref(next.conf);
}

static void
reap_accounts(struct program *program)
{
	size_t kept = 0;

	for (size_t i = 0; i < program->old_accounts_count; i++)
		if (pn_accounts_is_last(program->old_accounts[i]))
			pn_accounts_unref(program->old_accounts[i]);
		else
			program->old_accounts[kept++] =
			    program->old_accounts[i];
	program->old_accounts_count = kept;
}

void
program_reap(struct program *program)
{
	size_t kept = 0;

	for (size_t i = 0; i < program->ending_count; i++)
		if (pn_deliver_is_over(program->ending[i]))
			pn_deliver_close(program->ending[i], 0);
		else
			program->ending[kept++] = program->ending[i];
	if (kept < program->ending_count)
		pn_deliver_register_again(program->deliver);
	program->ending_count = kept;
	reap_accounts(program);
}
