/*
 * `consumers list`: who gets events, and how far each has come. The same
 * overview stands above `deliveries list`, and the commands that act on one
 * consumer find out here which.
 *
 * A consumer is an endpoint of [deliver NAME], which the daemon pushes to, or an
 * application that pulls by SQL. There are a few of them, so all are read at
 * once; a name that does not exist is refused with those that do, since a
 * misspelt one would otherwise look like a consumer with nothing to do.
 */
#include "ctl.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/deliveries.h"
#include "paynotify/render.h"

static const char *const titles[] = { "CONSUMER", "KIND", "STATE", "BEHIND",
	"LEASED", "WAITING", "RETRY", "DEAD", "OLDEST", "NOTE" };

struct overview {
	const char *only; /* NULL: all */
	bool json;
	struct ctl_table *table; /* NULL: JSON, or names only */
	struct pn_buf *out;
	struct pn_buf names; /* "app, ledger" */
	size_t count;        /* of all */
	size_t shown;
};

static int
add_cells(struct ctl_table *table, const struct pn_consumer_row *row)
{
	const int64_t numbers[] = { row->behind, row->leased, row->waiting,
		row->retrying, row->dead };
	int r = ctl_table_cell(table, row->name);

	r = r < 0 ? r
		  : ctl_table_cell(
			table, pn_str_from(row->pushed ? "push" : "pull"));
	r = r < 0 ? r : ctl_table_cell(table, row->state);
	for (size_t i = 0; i < PN_COUNT(numbers); i++)
		r = r < 0 ? r : ctl_table_number(table, numbers[i]);
	r = r < 0 ? r : ctl_table_time(table, row->oldest_due_us);
	return r < 0 ? r
		     : ctl_table_cell(
			   table, row->reason.len > 0 ? row->reason : row->url);
}

static int
add_row(const struct pn_consumer_row *row, void *payload)
{
	struct overview *overview = payload;

	overview->count++;
	if (overview->names.len > 0)
		pn_buf_add_text(&overview->names, ", ");
	ctl_add_clean(&overview->names, row->name);
	if (overview->only != NULL && !pn_str_is(row->name, overview->only))
		return 0;
	overview->shown++;
	if (overview->table != NULL)
		return add_cells(overview->table, row);
	if (overview->json) {
		pn_render_consumer(overview->out, row);
		pn_buf_add_char(overview->out, '\n');
	}
	return 0;
}

/* Reads them; tells what is wrong. */
static int
read_all(struct ctl *ctl, struct overview *overview)
{
	struct pn_error error = { .text = "" };
	int r = pn_query_consumers(ctl->query, add_row, overview, &error);

	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (overview->only == NULL || overview->shown > 0)
		return CTL_DONE;
	ctl_complain("there is no consumer \"%s\"; there %s " PN_STR_FMT,
	    overview->only, overview->count == 1 ? "is" : "are",
	    PN_STR_ARG(overview->count == 0 ? PN_STR("none yet")
					    : pn_buf_str(&overview->names)));
	return CTL_REFUSED;
}

int
ctl_consumers_overview(struct ctl *ctl, const char *only, struct pn_buf *out)
{
	struct overview overview = { .only = only,
		.json = false,
		.out = out,
		.names = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r = CTL_REFUSED;

	overview.table = ctl_table_new(titles, PN_COUNT(titles));
	if (overview.table == NULL)
		ctl_complain("out of memory");
	else
		r = read_all(ctl, &overview);
	if (r == CTL_DONE)
		ctl_table_print(overview.table, false, out);
	ctl_table_free(overview.table);
	pn_buf_done(&overview.names);
	return r;
}

int
ctl_consumer_choose(struct ctl *ctl, struct pn_buf *ret_name)
{
	struct overview overview = { .only = ctl->args.consumer,
		.names = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r = read_all(ctl, &overview);

	if (r == CTL_DONE && overview.only != NULL) {
		pn_buf_add_text(ret_name, overview.only);
	} else if (r == CTL_DONE && overview.count == 1) {
		/* Names have no character that cleaning changes. */
		pn_buf_add_str(ret_name, pn_buf_str(&overview.names));
	} else if (r == CTL_DONE && overview.count == 0) {
		ctl_complain("there is no consumer yet: add a section "
			     "[deliver NAME] to %s, or register one by SQL: "
			     "SELECT paynotify.register_consumer('NAME')",
		    ctl->args.config);
		r = CTL_REFUSED;
	} else if (r == CTL_DONE) {
		r = ctl_usage(ctl->command,
		    "it needs --consumer NAME, one of " PN_STR_FMT,
		    PN_STR_ARG(pn_buf_str(&overview.names)));
	}
	pn_buf_done(&overview.names);
	if (r == CTL_DONE && pn_buf_failed(ret_name)) {
		ctl_complain("out of memory");
		r = CTL_REFUSED;
	}
	return r;
}

int
ctl_consumers_list(struct ctl *ctl)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct overview overview = { .json = true,
		.out = &out,
		.names = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r;

	if (ctl->args.json)
		r = read_all(ctl, &overview);
	else
		r = ctl_consumers_overview(ctl, NULL, &out);
	pn_buf_done(&overview.names);
	if (r != CTL_DONE)
		return r;
	if (!ctl->args.json && out.len == 0)
		(void)fprintf(stderr, "no consumers yet\n");
	return ctl_flush(&out);
}
