/*
 * `keys list`: the keys of the idempotency guard.
 *
 * Those that are set aside (FAILED) are its dead letters: nothing happens to them
 * until somebody decides. Webhook keys are in the same table, millions of them,
 * and are no business of these commands: a route of theirs is refused, since an
 * empty list would look as if there were none.
 */
#include "ctl_keys.h"

#include "paynotify/render.h"

#include "ctl_list.h"

static const char *const titles[] = { "TENANT", "ROUTE", "KEY", "STATE",
	"ATTEMPTS", "CRASHES", "CREATED", "UNTIL", "REASON" };
static const char *const states[] = { "PROCESSING", "COMPLETED", "FAILED" };

/* -- what the commands share ------------------------------------------------- */

int
ctl_keys_check(const struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	const char *const given[] = { args->tenant, args->route,
		args->operand_count > 0 ? args->operands[0] : NULL };

	for (size_t i = 0; i < PN_COUNT(given); i++)
		if (given[i] != NULL && !pn_str_is_utf8(pn_str_from(given[i])))
			return ctl_usage(ctl->command,
			    "\"%s\" is not UTF-8, as tenants, routes and keys "
			    "are",
			    given[i]);
	if (args->route != NULL &&
	    pn_str_starts(pn_str_from(args->route), "notify/"))
		return ctl_usage(ctl->command,
		    "--route \"%s\" is of webhooks, which are not the "
		    "guard's: `" CTL_NAME " events show KEY` finds theirs",
		    args->route);
	return CTL_DONE;
}

struct pn_str
ctl_keys_state_text(const struct pn_guard_key_row *row)
{
	if (pn_str_is(row->lease, "ended"))
		return PN_STR("lease ended");
	/* Why it came to no answer is written down when the work has ended. */
	if (pn_str_is(row->lease, "held") && row->reason.len > 0)
		return PN_STR("unknown");
	if (row->lease.len > 0)
		return row->lease;
	return row->state.len > 0 ? row->state : PN_STR("archived");
}

/* -- the list ---------------------------------------------------------------- */

/* What is waited for: the end of a lease, or of an answer's time. Others stay
 * as they are. */
static int64_t
until(const struct pn_guard_key_row *row)
{
	return pn_str_is(row->state, "COMPLETED") ? row->expires_at_us
						  : row->lease_expires_at_us;
}

static int
add_cells(struct ctl_table *table, const struct pn_guard_key_row *row)
{
	int r = ctl_table_cell(table, row->tenant);

	r = r < 0 ? r : ctl_table_cell(table, row->route);
	r = r < 0 ? r : ctl_table_cell(table, row->key);
	r = r < 0 ? r : ctl_table_cell(table, ctl_keys_state_text(row));
	r = r < 0 ? r : ctl_table_number(table, row->attempts);
	r = r < 0 ? r : ctl_table_number(table, row->crashes);
	r = r < 0 ? r : ctl_table_time(table, row->created_at_us);
	r = r < 0 ? r : ctl_table_time(table, until(row));
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
add_row(const struct pn_guard_key_row *row, void *payload)
{
	struct ctl_list *list = payload;
	int r = 0;

	if (list->table == NULL) {
		pn_render_guard_key(&list->out, row);
		pn_buf_add_char(&list->out, '\n');
	} else {
		r = add_cells(list->table, row);
	}
	return ctl_list_added(list, r);
}

/* The state as the database spells it; NULL: it is none, or not given. */
static const char *
state_of(const struct ctl *ctl)
{
	for (size_t i = 0; i < PN_COUNT(states); i++)
		if (ctl->args.state != NULL &&
		    pn_str_equal_fold(
			pn_str_from(ctl->args.state), pn_str_from(states[i])))
			return states[i];
	return NULL;
}

int
ctl_keys_list_check(const struct ctl *ctl)
{
	if (ctl->args.state != NULL && state_of(ctl) == NULL)
		return ctl_usage(ctl->command,
		    "--state \"%s\" is none of PROCESSING, COMPLETED, FAILED",
		    ctl->args.state);
	return ctl_keys_check(ctl);
}

int
ctl_keys_list(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	const struct pn_guard_key_filter filter = {
		.tenant = args->tenant,
		.route = args->route,
		.state = state_of(ctl),
		.limit = ctl_list_limit(ctl),
	};
	struct pn_error error = { .text = "" };
	struct ctl_list list;
	int r = ctl_list_open(&list, ctl, titles, PN_COUNT(titles));

	if (r == CTL_DONE) {
		r = pn_query_guard_keys(
		    ctl->query, &filter, add_row, &list, &error);
		r = ctl_list_end(&list, ctl, r, &error);
	}
	if (r == CTL_DONE)
		ctl_list_say_how_many(&list, ctl, "keys", "first",
		    args->tenant || args->route || args->state);
	ctl_list_done(&list);
	return r;
}
