/*
 * `db migrate` and `db status`: the schema, by the migrations compiled in.
 * One row a migration, told as it happens.
 */
#include "ctl_list.h"

#include <string.h>

#include "paynotify/migrate.h"

struct report {
	bool json;
	size_t applied, already, pending, changed;
	int exit;
	struct ctl_progress progress;
};

static void
print_migration(const struct pn_migration *migration, const char *state,
    const char *applied_at, void *payload)
{
	struct report *report = payload;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_str at = pn_str_from(applied_at);

	report->applied += strcmp(state, "applied") == 0;
	report->already += strcmp(state, "already") == 0;
	report->pending += strcmp(state, "pending") == 0;
	report->changed += strcmp(state, "changed") == 0;
	if (report->json) {
		pn_buf_add_char(&out, '{');
		ctl_add_number(&out, "number", migration->number);
		ctl_add_member(&out, "name", pn_str_from(migration->name));
		ctl_add_member(&out, "state", pn_str_from(state));
		ctl_add_member(&out, "applied_at", at);
		pn_buf_add_text(&out, "}\n");
	} else {
		pn_buf_printf(&out, "%04d  %-24s  %s", migration->number,
		    migration->name, state);
		if (at.len > 0) {
			pn_buf_add_text(&out, "  ");
			ctl_add_clean(&out, at);
		}
		pn_buf_add_char(&out, '\n');
	}
	ctl_progress_hide(&report->progress);
	if (ctl_flush(&out) != CTL_DONE)
		report->exit = CTL_REFUSED;
	ctl_progress_set(&report->progress, report->progress.done + 1);
}

int
ctl_db_migrate(struct ctl *ctl)
{
	struct report report = { .json = ctl->args.json };
	struct pn_error error = { .text = "" };
	int r;

	ctl_progress_start(&report.progress, ctl, "migrations",
	    (int64_t)pn_migration_count(), false);
	r = pn_migrate(ctl->dsn, print_migration, &report, &error);
	ctl_progress_hide(&report.progress);
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (!ctl->args.json)
		printf("schema is up to date: %zu applied now, %zu before\n",
		    report.applied, report.already);
	return report.exit;
}

int
ctl_db_status(struct ctl *ctl)
{
	struct report report = { .json = ctl->args.json };
	struct pn_error error = { .text = "" };
	int r = pn_migrate_status(ctl->dsn, print_migration, &report, &error);

	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (report.changed > 0)
		ctl_complain("%zu applied migration%s not what this program "
			     "has: use the version that made the schema, or a "
			     "later one",
		    report.changed, report.changed == 1 ? " is" : "s are");
	else if (r > 0)
		ctl_complain("%zu migration%s missing: run `" CTL_NAME
			     " db migrate -c %s`",
		    report.pending, report.pending == 1 ? " is" : "s are",
		    ctl->args.config);
	return r > 0 ? CTL_REFUSED : report.exit;
}
