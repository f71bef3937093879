/*
 * `stats`: the whole service on one screen, 24 lines of 80 columns.
 *
 * It answers what is asked first when something seems wrong: is anything coming,
 * what becomes of it, is it handed on, does anything wait for me, will the
 * database hold. Where there is more than a screen takes, the beginning is shown
 * and the rest counted; --json has all of it, as one object.
 *
 * With --watch it is drawn anew until it is interrupted, over a terminal's
 * screen, or below what came before it anywhere else. A database that goes away
 * meanwhile is told, and asked again: that is when one watches.
 */
#include "ctl.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "paynotify/deliveries.h"
#include "paynotify/migrate.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"
#include "paynotify/stats.h"

enum {
	TRAFFIC_SHOWN = 8,
	CONSUMERS_SHOWN = 4,
	WATCH_S = 2,
	WATCH_S_MAX = 3600,
};

static const char *const traffic_titles[] = { "ACCOUNT", "VERDICT", "MINUTE",
	"HOUR", "DAY" };
static const char *const consumer_titles[] = { "CONSUMER", "STATE", "BEHIND",
	"RETRY", "DEAD", "OLDEST" };

/* One look; every buffer ends up in out. */
struct look {
	bool json;
	struct pn_buf out;  /* head and tail, or the object */
	struct pn_buf tail; /* what stands below the tables */
	struct ctl_table *traffic, *consumers;
	size_t accounts_left, consumers_left; /* not shown */
	bool any;                             /* JSON: not the first */
};

/* -- rows -------------------------------------------------------------------- */

static int
number_cell(struct ctl_table *table, int64_t value, bool about)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf cell = pn_buf_init(64);

	if (about && value > 0)
		pn_buf_add_char(&cell, '~');
	ctl_add_grouped(&cell, value);
	return ctl_table_cell(table, pn_buf_str(&cell));
}

static int
on_traffic(const struct pn_traffic_row *row, void *payload)
{
	struct look *look = payload;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf account = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r;

	if (look->json) {
		pn_buf_add_text(&look->out, look->any ? ",{" : "{");
		look->any = true;
		ctl_add_member(&look->out, "provider", row->provider);
		ctl_add_member(&look->out, "tenant", row->tenant);
		ctl_add_member(&look->out, "verdict", row->verdict);
		ctl_add_number(&look->out, "minute", row->minute);
		ctl_add_number(&look->out, "hour", row->hour);
		ctl_add_number(&look->out, "day", row->day);
		ctl_add_bool(&look->out, "estimated", row->about);
		pn_buf_add_char(&look->out, '}');
		return 0;
	}
	if (ctl_table_rows(look->traffic) == TRAFFIC_SHOWN) {
		look->accounts_left++;
		return 0;
	}
	pn_buf_printf(&account, PN_STR_FMT "/" PN_STR_FMT,
	    PN_STR_ARG(row->provider), PN_STR_ARG(row->tenant));
	r = ctl_table_cell(look->traffic, pn_buf_str(&account));
	r = r < 0 ? r : ctl_table_cell(look->traffic, row->verdict);
	r = r < 0 ? r : number_cell(look->traffic, row->minute, row->about);
	r = r < 0 ? r : number_cell(look->traffic, row->hour, row->about);
	return r < 0 ? r : number_cell(look->traffic, row->day, row->about);
}

static int
on_consumer(const struct pn_consumer_row *row, void *payload)
{
	struct look *look = payload;
	struct ctl_table *table = look->consumers;
	int r;

	if (look->json) {
		pn_buf_add_text(&look->out, look->any ? ",{" : "{");
		look->any = true;
		ctl_add_member(&look->out, "name", row->name);
		ctl_add_member(&look->out, "state", row->state);
		ctl_add_number(&look->out, "behind", row->behind);
		ctl_add_number(&look->out, "leased", row->leased);
		ctl_add_number(&look->out, "waiting", row->waiting);
		ctl_add_number(&look->out, "retrying", row->retrying);
		ctl_add_number(&look->out, "dead", row->dead);
		ctl_add_time_member(
		    &look->out, "oldest_received_at", row->oldest_due_us);
		pn_buf_add_char(&look->out, '}');
		return 0;
	}
	if (ctl_table_rows(table) == CONSUMERS_SHOWN) {
		look->consumers_left++;
		return 0;
	}
	r = ctl_table_cell(table, row->name);
	r = r < 0 ? r : ctl_table_cell(table, row->state);
	r = r < 0 ? r : number_cell(table, row->behind, false);
	r = r < 0 ? r : number_cell(table, row->retrying, false);
	r = r < 0 ? r : number_cell(table, row->dead, false);
	return r < 0 ? r : ctl_table_time(table, row->oldest_due_us);
}

/* -- the rest ---------------------------------------------------------------- */

static int64_t
schema_wanted(void)
{
	size_t count = pn_migration_count();

	return count == 0 ? 0 : pn_migration_at(count - 1)->number;
}

static void
add_bytes(struct pn_buf *out, int64_t bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1000 && unit + 1 < PN_COUNT(units); unit++)
		value /= 1000;
	pn_buf_printf(
	    out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void
add_head(struct pn_buf *out, const struct pn_stats *s)
{
	ctl_add_time(out, s->at_us);
	pn_buf_add_text(out, "  ");
	ctl_add_grouped(out, s->events);
	pn_buf_add_text(out, " events, ");
	add_bytes(out, s->database_bytes);
	pn_buf_add_text(out, " in PostgreSQL ");
	/* "15.14 (Debian 15.14-0+deb12u1)" */
	ctl_add_clean(
	    out, pn_str_split(&(struct pn_str){ s->server_version.data,
				  s->server_version.len },
		     ' '));
	pn_buf_printf(out, ", schema %lld%s\n", (long long)s->schema_number,
	    s->schema_number < schema_wanted() ? " (old: db migrate)" : "");
}

static void
add_quarantine(struct pn_buf *out, const struct pn_stats *s)
{
	pn_buf_add_text(out, "quarantine    ");
	ctl_add_grouped(out, s->quarantine_open);
	pn_buf_printf(out, "%s open, ", s->quarantine_about ? " or more" : "");
	ctl_add_grouped(out, s->conflicts_open);
	pn_buf_add_text(out, " of them conflicts\n");
}

static void
add_keys(struct pn_buf *out, const struct pn_stats *s)
{
	const char *more = s->guard_about ? " or more" : "";

	pn_buf_add_text(out, "keys          ~");
	ctl_add_grouped(out, s->keys_hot);
	pn_buf_add_text(out, " hot, ~");
	ctl_add_grouped(out, s->keys_archived);
	pn_buf_add_text(out, " archived; guard: ");
	ctl_add_grouped(out, s->guard_processing);
	pn_buf_printf(out, "%s PROCESSING, ", more);
	ctl_add_grouped(out, s->guard_failed);
	pn_buf_printf(out, "%s FAILED\n", more);
}

static void
add_snapshot(struct pn_buf *out, const struct pn_stats *s)
{
	pn_buf_add_text(out, "old snapshot  ");
	if (s->snapshot_kind.len == 0) {
		pn_buf_add_text(out, "none\n");
		return;
	}
	ctl_add_grouped(out, s->snapshot_age);
	pn_buf_add_text(out, " transactions back: ");
	ctl_add_clean(out, s->snapshot_kind);
	pn_buf_add_char(out, ' ');
	ctl_add_clean(out, s->snapshot_name);
	if (s->snapshot_role.len > 0) {
		pn_buf_add_text(out, " of ");
		ctl_add_clean(out, s->snapshot_role);
	}
	pn_buf_add_char(out, '\n');
}

static void
add_replication(struct pn_buf *out, const struct pn_stats *s)
{
	pn_buf_add_text(out, "replication   ");
	if (s->is_standby)
		pn_buf_add_text(out, "this is a standby; ");
	pn_buf_printf(out, "%lld standbys, %lld of them synchronous",
	    (long long)s->standbys, (long long)s->synchronous_standbys);
	if (s->synchronous_names.len > 0) {
		pn_buf_add_text(out, " (");
		ctl_add_clean(out, s->synchronous_names);
		pn_buf_add_char(out, ')');
	}
	pn_buf_add_char(out, '\n');
}

static void
add_snapshot_json(struct pn_buf *out, const struct pn_stats *s)
{
	if (s->snapshot_kind.len == 0) {
		ctl_add_member(out, "oldest_snapshot", PN_STR(""));
		return;
	}
	pn_buf_add_text(out, ",\"oldest_snapshot\":{");
	ctl_add_number(out, "transactions", s->snapshot_age);
	ctl_add_member(out, "kind", s->snapshot_kind);
	ctl_add_member(out, "name", s->snapshot_name);
	ctl_add_member(out, "role", s->snapshot_role);
	pn_buf_add_char(out, '}');
}

static void
add_json(struct pn_buf *out, const struct pn_stats *s)
{
	ctl_add_time_member(out, "at", s->at_us);
	ctl_add_number(out, "events", s->events);
	pn_buf_add_text(out, ",\"quarantine\":{");
	ctl_add_number(out, "open", s->quarantine_open);
	ctl_add_number(out, "conflicts", s->conflicts_open);
	ctl_add_bool(out, "more", s->quarantine_about);
	pn_buf_add_text(out, "},\"keys\":{");
	ctl_add_number(out, "hot_estimate", s->keys_hot);
	ctl_add_number(out, "archived_estimate", s->keys_archived);
	pn_buf_add_text(out, "},\"guard\":{");
	ctl_add_number(out, "processing", s->guard_processing);
	ctl_add_number(out, "failed", s->guard_failed);
	ctl_add_bool(out, "more", s->guard_about);
	pn_buf_add_text(out, "},\"database\":{");
	ctl_add_number(out, "bytes", s->database_bytes);
	ctl_add_member(out, "server_version", s->server_version);
	ctl_add_number(out, "schema", s->schema_number);
	ctl_add_number(out, "schema_wanted", schema_wanted());
	ctl_add_bool(out, "standby", s->is_standby);
	pn_buf_add_text(out, "},\"replication\":{");
	ctl_add_number(out, "standbys", s->standbys);
	ctl_add_number(out, "synchronous", s->synchronous_standbys);
	ctl_add_member(out, "synchronous_names", s->synchronous_names);
	pn_buf_add_char(out, '}');
	add_snapshot_json(out, s);
}

static int
on_stats(const struct pn_stats *stats, void *payload)
{
	struct look *look = payload;

	if (look->json) {
		add_json(&look->out, stats);
		return 0;
	}
	add_head(&look->out, stats);
	add_quarantine(&look->tail, stats);
	add_keys(&look->tail, stats);
	add_snapshot(&look->tail, stats);
	add_replication(&look->tail, stats);
	return 0;
}

/* -- one look ---------------------------------------------------------------- */

static int
query_tables(struct ctl *ctl, struct look *look, struct pn_error *error)
{
	int r;

	if (look->json)
		pn_buf_add_text(&look->out, ",\"traffic\":[");
	r = pn_query_traffic(ctl->query, on_traffic, look, error);
	if (look->json)
		pn_buf_add_text(&look->out, "],\"consumers\":[");
	look->any = false;
	if (r == 0)
		r = pn_query_consumers(ctl->query, on_consumer, look, error);
	if (look->json)
		pn_buf_add_text(&look->out, "]}\n");
	return r;
}

static void
add_left(struct pn_buf *out, size_t left)
{
	if (left > 0)
		pn_buf_printf(out, "... and %zu more; --json has all\n", left);
}

static void
put_together(struct look *look)
{
	struct pn_buf *out = &look->out;

	pn_buf_add_char(out, '\n');
	if (ctl_table_rows(look->traffic) == 0)
		pn_buf_add_text(out, "no request in the last day\n");
	ctl_table_print(look->traffic, false, out);
	add_left(out, look->accounts_left);
	pn_buf_add_char(out, '\n');
	if (ctl_table_rows(look->consumers) == 0)
		pn_buf_add_text(out, "no consumers yet\n");
	ctl_table_print(look->consumers, false, out);
	add_left(out, look->consumers_left);
	pn_buf_add_char(out, '\n');
	pn_buf_add_str(out, pn_buf_str(&look->tail));
}

/* 0 and the text in *out, or what a query came to. */
static int
look_once(
    struct ctl *ctl, bool json, struct pn_buf *ret_out, struct pn_error *error)
{
	struct look look = {
		.json = json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.tail = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
	};
	int r = -ENOMEM;

	look.traffic = ctl_table_new(traffic_titles, PN_COUNT(traffic_titles));
	look.consumers =
	    ctl_table_new(consumer_titles, PN_COUNT(consumer_titles));
	if (look.json)
		pn_buf_add_char(&look.out, '{');
	if (look.traffic != NULL && look.consumers != NULL)
		r = pn_query_stats(ctl->query, on_stats, &look, error);
	if (r == 0)
		r = query_tables(ctl, &look, error);
	if (r == 0 && !look.json)
		put_together(&look);
	if (r == 0)
		pn_buf_add_str(ret_out, pn_buf_str(&look.out));
	ctl_table_free(look.traffic);
	ctl_table_free(look.consumers);
	pn_buf_done(&look.out);
	pn_buf_done(&look.tail);
	return r;
}

int
ctl_stats_add_json(
    struct ctl *ctl, struct pn_buf *out, struct pn_error *ret_error)
{
	return look_once(ctl, true, out, ret_error);
}

/* -- again and again --------------------------------------------------------- */

/* What is on the screen stays there; nothing is held that would not be let go of
 * by the end of the process. */
static void
end_watching(int signal_number)
{
	(void)signal_number;
	_exit(CTL_DONE);
}

static bool
is_away(int r)
{
	return r == -ECONNRESET || r == -ECONNREFUSED || r == -ETIMEDOUT;
}

/* Told on standard error, and asked again at the next look. */
static void
reconnect(struct ctl *ctl)
{
	struct pn_error error = { .text = "" };
	int r;

	pn_query_close(ctl->query);
	ctl->query = NULL;
	r = pn_query_open(ctl->dsn, &ctl->query, &error);
	if (r < 0)
		(void)ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
}

static int
watch(struct ctl *ctl, unsigned seconds)
{
	bool screen = !ctl->args.json && ctl_term_columns(STDOUT_FILENO) > 0;
	const struct sigaction action = { .sa_handler = end_watching };
	struct pn_error error = { .text = "" };

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	for (bool first = true;; first = false) {
		PN_CLEANUP(pn_buf_done)
		struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
		int r = 0;

		if (screen)
			pn_buf_add_text(&out, "\033[H\033[2J");
		else if (!first && !ctl->args.json)
			pn_buf_add_char(&out, '\n');
		if (ctl->query != NULL)
			r = look_once(ctl, ctl->args.json, &out, &error);
		if (r < 0 && (first || !is_away(r)))
			return ctl_database_complain(
			    ctl->conf, ctl->dsn, r, &error);
		if (ctl->query != NULL && r == 0 && ctl_flush(&out) != CTL_DONE)
			return CTL_REFUSED;
		if (ctl->query == NULL || r < 0)
			reconnect(ctl);
		(void)sleep(seconds);
	}
}

/* 0: it is no number of seconds. */
static unsigned
seconds_of(const struct ctl_args *args)
{
	uint64_t seconds = WATCH_S;

	if (args->operand_count > 0 &&
	    pn_parse_uint(
		pn_str_from(args->operands[0]), WATCH_S_MAX, &seconds) != 0)
		return 0;
	return (unsigned)seconds;
}

int
ctl_stats_check(const struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;

	if (args->operand_count > 0 && !args->watch)
		return ctl_usage(
		    ctl->command, "\"%s\" is for --watch", args->operands[0]);
	if (seconds_of(args) == 0)
		return ctl_usage(ctl->command,
		    "\"%s\" is not SECONDS, from 1 to %d", args->operands[0],
		    WATCH_S_MAX);
	return CTL_DONE;
}

int
ctl_stats(struct ctl *ctl)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	int r;

	if (ctl->args.watch)
		return watch(ctl, seconds_of(&ctl->args));
	r = look_once(ctl, ctl->args.json, &out, &error);
	return r < 0 ? ctl_database_complain(ctl->conf, ctl->dsn, r, &error)
		     : ctl_flush(&out);
}
