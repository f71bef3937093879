/*
 * The parts of a support bundle, one function each: what is asked first by who is
 * to help. What cannot be had (no database, no daemon, no rights, no systemd) is
 * said in the part's own place, since that is an answer too.
 *
 * Receipts come without what names a customer or an order: no number, no
 * address, no body; and a reason may quote a message, so nothing in quotes.
 */
#include "ctl_bundle.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paynotify/arena.h"
#include "paynotify/migrate.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
#include "paynotify/stats.h"

#include "ctl_send.h"
#include "load.h"

enum { PROGRAM_MS_MAX = 10000, REPLY_MS_MAX = 3000, PROGRAM_WORDS_MAX = 15 };

/* -- this program and its configuration -------------------------------------- */

/* The text, but for what it quotes: a configuration's or a message's own. */
static void
add_unquoted(struct pn_buf *out, struct pn_str text)
{
	for (bool quoted = false; text.data != NULL; quoted = !quoted) {
		struct pn_str part = pn_str_split(&text, '"');

		while (!quoted && part.data != NULL) {
			ctl_add_clean(out, pn_str_split(&part, '\n'));
			if (part.data != NULL)
				pn_buf_add_char(out, '\n');
		}
		if (quoted)
			pn_buf_add_text(out, "\"...\"");
	}
}

static void
add_versions(struct bundle *bundle, struct pn_buf *out)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf system = pn_buf_init(64 << 10);
	struct utsname name;

	(void)bundle;
	pn_buf_add_text(out, CTL_NAME " " PN_VERSION "\n");
	pn_buf_printf(out, "libcurl %s\n", pn_net_library_version());
	if (uname(&name) == 0)
		pn_buf_printf(out, "%s %s %s %s\n", name.sysname, name.release,
		    name.version, name.machine);
	if (ctl_file_read("/etc/os-release", 64 << 10, &system) == 0)
		pn_buf_add_str(out, pn_buf_str(&system));
}

static void
add_config(struct bundle *bundle, struct pn_buf *out)
{
	bundle_add_config(bundle, out);
}

static void
add_config_check(struct bundle *bundle, struct pn_buf *out)
{
	PN_CLEANUP(pn_conf_unrefp) struct pn_conf *conf = NULL;
	struct pn_error error = { .text = "" };
	struct pn_accounts *accounts = NULL;
	int r = cmd_load(bundle->ctl->args.config, &conf, &accounts, &error);

	if (r < 0) {
		add_unquoted(out, pn_str_from(error.text));
		pn_buf_add_char(out, '\n');
		return;
	}
	pn_accounts_unref(accounts);
	pn_buf_printf(
	    out, "configuration OK: %zu accounts\n", conf->account_count);
	if (conf->warnings != NULL)
		pn_buf_printf(out, "%s\n", conf->warnings);
}

/* -- the database ------------------------------------------------------------ */

static bool
has_database(const struct bundle *bundle, struct pn_buf *out)
{
	if (bundle->ctl->query != NULL)
		return true;
	pn_buf_add_text(out, "not available: ");
	add_unquoted(out, pn_str_from(bundle->conf_error.text[0] != '\0'
					  ? bundle->conf_error.text
					  : bundle->database_error.text));
	pn_buf_add_char(out, '\n');
	return false;
}

static void
add_fault(struct pn_buf *out, const struct pn_error *error)
{
	pn_buf_add_text(out, "not available: ");
	ctl_add_clean(out, pn_str_from(error->text));
	pn_buf_add_char(out, '\n');
}

static void
on_migration(const struct pn_migration *migration, const char *state,
    const char *applied_at, void *payload)
{
	pn_buf_printf(payload, "%04d  %-24s  %-8s  %s\n", migration->number,
	    migration->name, state, applied_at == NULL ? "" : applied_at);
}

static void
add_schema(struct bundle *bundle, struct pn_buf *out)
{
	struct pn_error error = { .text = "" };

	if (has_database(bundle, out) &&
	    pn_migrate_status(bundle->ctl->dsn, on_migration, out, &error) < 0)
		add_fault(out, &error);
}

static void
add_stats(struct bundle *bundle, struct pn_buf *out)
{
	struct pn_error error = { .text = "" };

	if (has_database(bundle, out) &&
	    ctl_stats_add_json(bundle->ctl, out, &error) < 0)
		add_fault(out, &error);
}

static int
on_setting(struct pn_str name, struct pn_str value, void *payload)
{
	struct pn_buf *out = payload;

	ctl_add_clean(out, name);
	pn_buf_add_text(out, " = ");
	ctl_add_clean(out, value);
	pn_buf_add_char(out, '\n');
	return 0;
}

static void
add_settings(struct bundle *bundle, struct pn_buf *out)
{
	struct pn_error error = { .text = "" };

	if (has_database(bundle, out) &&
	    pn_query_settings(bundle->ctl->query, on_setting, out, &error) < 0)
		add_fault(out, &error);
}

static int
on_receipt(const struct pn_receipt_row *row, void *payload)
{
	struct pn_buf *out = payload;

	ctl_add_time(out, row->received_at_us);
	pn_buf_printf(out,
	    "  " PN_STR_FMT "/" PN_STR_FMT "  " PN_STR_FMT
	    "  %lld  %lld bytes  ",
	    PN_STR_ARG(row->provider), PN_STR_ARG(row->tenant),
	    PN_STR_ARG(row->verdict), (long long)row->status,
	    (long long)row->body_bytes);
	add_unquoted(out, row->reason);
	pn_buf_add_char(out, '\n');
	return 0;
}

static void
add_receipts(struct bundle *bundle, struct pn_buf *out)
{
	const struct pn_receipt_filter filter = {
		.since_us = PN_MOMENT_NONE,
		.limit = BUNDLE_RECEIPTS,
	};
	struct pn_error error = { .text = "" };

	if (has_database(bundle, out) &&
	    pn_query_receipts(
		bundle->ctl->query, &filter, on_receipt, out, &error) < 0)
		add_fault(out, &error);
}

/* -- the daemon -------------------------------------------------------------- */

static void
add_reply(struct bundle *bundle, const char *path, struct pn_buf *out)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	const struct pn_conf *conf = bundle->ctl->conf;
	struct pn_error error = { .text = "out of memory" };
	struct ctl_target target;
	struct pn_net *net = NULL;
	struct pn_net_reply reply;
	PN_CLEANUP(pn_buf_done) struct pn_buf request = pn_buf_init(64 << 10);

	if (conf == NULL || conf->admin.listen.count == 0) {
		pn_buf_add_text(
		    out, conf == NULL ? "not available: bad configuration\n"
				      : "not available: no [admin] listen\n");
		return;
	}
	pn_buf_printf(&request,
	    "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
	    path);
	if (conf->admin.token_file.count > 0) {
		pn_buf_add_text(&request, "Authorization: Bearer ");
		pn_buf_add_str(&request,
		    pn_conf_file_text(&conf->admin.token_file.files[0]));
		pn_buf_add_text(&request, "\r\n");
	}
	pn_buf_add_text(&request, "\r\n");
	if (arena == NULL || pn_buf_failed(&request) || pn_net_init() < 0 ||
	    pn_net_open(&net) < 0 ||
	    ctl_target_of_listen(
		conf->admin.listen.values[0], &target, &error) != 0 ||
	    pn_net_send_raw(net, target.url, pn_buf_str(&request),
		REPLY_MS_MAX * PN_MILLISECOND_US, arena, &reply, &error) != 0) {
		add_fault(out, &error);
	} else {
		pn_buf_printf(out, "status %d\n\n", reply.status);
		pn_buf_add_str(out, reply.body);
	}
	pn_net_close(net);
}

static void
add_metrics(struct bundle *bundle, struct pn_buf *out)
{
	add_reply(bundle, "/metrics", out);
}

static void
add_ready(struct bundle *bundle, struct pn_buf *out)
{
	add_reply(bundle, "/readyz", out);
}

/* -- the host ---------------------------------------------------------------- */

static void
read_for_a_while(int fd, struct pn_buf *out)
{
	int64_t until_us =
	    pn_clock_monotonic_us() + PROGRAM_MS_MAX * PN_MILLISECOND_US;
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char block[16 << 10];

	while (!pn_buf_failed(out)) {
		int64_t left_us = until_us - pn_clock_monotonic_us();
		ssize_t n;

		if (left_us <= 0) {
			pn_buf_add_text(out, "(it takes too long)\n");
			return;
		}
		if (poll(&poll_fd, 1, (int)(left_us / PN_MILLISECOND_US)) <= 0)
			continue;
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		pn_buf_add(out, block, (size_t)n);
	}
}

/* What a program says, on both outputs. No shell is in between. */
static void
add_output(struct pn_buf *out, const char *const *words, size_t count)
{
	char *argv[PROGRAM_WORDS_MAX + 1] = { NULL };
	posix_spawn_file_actions_t actions;
	int pipe_fds[2], r;
	pid_t pid;

	assert(count > 0 && count <= PROGRAM_WORDS_MAX);
	/* posix_spawn changes none of them, but for history's sake. */
	memcpy(argv, words, count * sizeof(argv[0]));
	if (pipe2(pipe_fds, O_CLOEXEC) != 0 ||
	    posix_spawn_file_actions_init(&actions) != 0) {
		pn_buf_printf(out, "not available: %s\n", strerror(errno));
		return;
	}
	(void)posix_spawn_file_actions_addopen(
	    &actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(
	    &actions, pipe_fds[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(
	    &actions, pipe_fds[1], STDERR_FILENO);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipe_fds[1]);
	if (r != 0) {
		pn_buf_printf(
		    out, "not available: %s: %s\n", argv[0], strerror(r));
	} else {
		read_for_a_while(pipe_fds[0], out);
		(void)kill(pid, SIGTERM); /* it has ended, or shall */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(pipe_fds[0]);
}

static void
add_journal(struct bundle *bundle, struct pn_buf *out)
{
	const char *const words[] = { "journalctl", "--unit=paynotifyd*",
		"--lines=500", "--no-pager", "--output=short-iso" };

	(void)bundle;
	add_output(out, words, PN_COUNT(words));
}

static const char unit_properties[] =
    "--property=Id,LoadState,ActiveState,SubState,Result,NRestarts,"
    "ExecMainStatus,ActiveEnterTimestamp,MemoryCurrent,TasksCurrent";

static void
add_units(struct bundle *bundle, struct pn_buf *out)
{
	const char *const words[] = { "systemctl", "show", "paynotifyd*",
		"--all", "--no-pager", unit_properties };

	(void)bundle;
	add_output(out, words, PN_COUNT(words));
}

/* -- all of them ------------------------------------------------------------- */

static void
add_readme(struct bundle *bundle, struct pn_buf *out)
{
	(void)bundle;
	pn_buf_add_text(out, "Look through these files before you send them. "
			     "Secrets are taken out, as far\nas they are "
			     "known.\n\n");
	for (size_t i = 0; i < bundle_part_count(); i++)
		pn_buf_printf(out, "%-18s %s\n", bundle_parts[i].name,
		    bundle_parts[i].what);
}

const struct bundle_part bundle_parts[] = {
	{ "README.txt", "this list", add_readme },
	{ "versions.txt", "this program, its libraries, the system",
	    add_versions },
	{ "config.txt", "the configuration, without secrets and comments",
	    add_config },
	{ "config-check.txt", "what `config check` says", add_config_check },
	{ "schema.txt", "which migrations are applied", add_schema },
	{ "stats.json", "what `stats --json` says", add_stats },
	{ "receipts.txt",
	    "the last 200 verdicts, without bodies, orders and addresses",
	    add_receipts },
	{ "postgresql.txt", "settings of the database that matter here",
	    add_settings },
	{ "readyz.txt", "what the daemon says of itself", add_ready },
	{ "metrics.txt", "its metrics", add_metrics },
	{ "journal.txt", "the last 500 lines of its units' journal",
	    add_journal },
	{ "units.txt", "the state of its systemd units", add_units },
};

size_t
bundle_part_count(void)
{
	return PN_COUNT(bundle_parts);
}
