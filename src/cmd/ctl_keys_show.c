/*
 * `keys show`: all of one key of the idempotency guard.
 *
 * Several tenants, and several routes, may have the same key, and each is another
 * payment: then it is said which there are, and none is shown. Where tenant and
 * route are given nothing is looked for, so that a key of the permanent tier,
 * which has digests only, is found as well.
 *
 * An answer is the merchant's and its customer's: its headers and the beginning
 * of its body are shown, made harmless for a terminal. The token of a lease is
 * not: only whether there is one.
 */
#include "ctl_keys.h"

#include <errno.h>
#include <inttypes.h>

#include "paynotify/render.h"

static const char *const action_titles[] = { "DONE AT", "ACTION", "ACTOR",
	"REASON" };

struct scopes {
	size_t count;
	struct pn_buf tenant, route; /* of the first; a NUL behind each */
	struct pn_buf lines;         /* of all, as options; the first some */
};

struct showing {
	bool json;
	struct pn_buf out;
	struct pn_buf actions;   /* JSON */
	struct pn_buf last;      /* the last of them, in words */
	struct ctl_table *table; /* else */
};

/* -- which ------------------------------------------------------------------- */

static int
add_scope(const struct pn_guard_scope_row *row, void *payload)
{
	struct scopes *scopes = payload;

	if (scopes->count++ == 0) {
		pn_buf_add_str(&scopes->tenant, row->tenant);
		pn_buf_add_str(&scopes->route, row->route);
	}
	if (scopes->count <= CTL_SAME_KEY_MAX) {
		pn_buf_add_text(&scopes->lines, "  --tenant ");
		ctl_add_clean(&scopes->lines, row->tenant);
		pn_buf_add_text(&scopes->lines, " --route \"");
		ctl_add_clean(&scopes->lines, row->route);
		pn_buf_add_text(&scopes->lines, "\"\n");
	}
	return pn_buf_failed(&scopes->tenant) ||
		       pn_buf_failed(&scopes->route) ||
		       pn_buf_failed(&scopes->lines)
		   ? -ENOMEM
		   : 0;
}

/* The one that is meant; or tells why there is none. */
static int
find_scope(struct ctl *ctl, struct scopes *scopes)
{
	const struct ctl_args *args = &ctl->args;
	const char *key = args->operands[0];
	struct pn_error error = { .text = "" };
	int r = pn_query_guard_scopes(ctl->query, args->tenant, args->route,
	    key, add_scope, scopes, &error);

	if (r == -ENOMEM) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (scopes->count == 1)
		return CTL_DONE;
	if (scopes->count == 0) {
		ctl_complain("there is no key \"%s\" among those that there "
			     "are: `" CTL_NAME " keys list -c %s` shows them; "
			     "one that is archived is found by its --tenant "
			     "and --route",
		    key, args->config);
		return CTL_REFUSED;
	}
	ctl_complain(
	    "%zu keys are called \"%s\": give --tenant and --route, one of "
	    "these",
	    scopes->count, key);
	(void)fprintf(stderr, "%s%s", scopes->lines.data,
	    scopes->count > CTL_SAME_KEY_MAX ? "  ...\n" : "");
	return CTL_REFUSED;
}

/* -- the key as text --------------------------------------------------------- */

static void
add_number_line(struct pn_buf *out, const char *label, int64_t value)
{
	pn_buf_printf(out, "%-16s %" PRId64 "\n", label, value);
}

static void
add_state_line(struct pn_buf *out, const struct pn_guard_key_row *row)
{
	static const char *const means[][2] = {
		{ "held", "a holder is at work" },
		{ "unknown", "nobody is at work, and whether it was done is "
			     "not known: the next request runs when the lease "
			     "ends" },
		{ "lease ended", "its holder did not come back" },
		{ "free", "let go: the next request runs" },
		{ "FAILED", "set aside until it is released or forgotten" },
		{ "archived", "its time is over, and only its digest is kept" },
	};
	struct pn_str state = ctl_keys_state_text(row);

	ctl_add_label(out, "state");
	ctl_add_clean(out, state);
	for (size_t i = 0; i < PN_COUNT(means); i++)
		if (pn_str_is(state, means[i][0]))
			pn_buf_printf(out, "  (%s)", means[i][1]);
	pn_buf_add_char(out, '\n');
}

static void
add_answer_lines(struct pn_buf *out, const struct pn_guard_key *key)
{
	struct pn_str rest = key->response_headers,
		      head = pn_guard_key_body_head(key);

	if (key->row.status == 0)
		return;
	add_number_line(out, "status", key->row.status);
	while (rest.data != NULL)
		ctl_add_line(out, "header", pn_str_split(&rest, '\n'));
	if (key->body_bytes < 0)
		return;
	pn_buf_printf(out, "%-16s %" PRId64 " bytes", "body", key->body_bytes);
	if ((int64_t)head.len < key->body_bytes)
		pn_buf_printf(out, ", which begin with %zu:", head.len);
	pn_buf_add_char(out, '\n');
	if (head.len > 0) {
		ctl_add_clean(out, head);
		pn_buf_add_char(out, '\n');
	}
}

static void
add_key_text(struct pn_buf *out, const struct pn_guard_key *key)
{
	const struct pn_guard_key_row *row = &key->row;

	ctl_add_line(out, "tenant", row->tenant);
	ctl_add_line(out, "route", row->route);
	ctl_add_line(out, "key", row->key);
	add_state_line(out, row);
	ctl_add_line(out, "reason", row->reason);
	if (row->state.len > 0) {
		add_number_line(out, "attempts", row->attempts);
		add_number_line(out, "crashes", row->crashes);
	}
	ctl_add_time_line(out, "created", row->created_at_us);
	ctl_add_time_line(out, "claimed", row->locked_at_us);
	ctl_add_time_line(out, "lease ends", row->lease_expires_at_us);
	if (pn_str_is(row->state, "PROCESSING"))
		ctl_add_line(out, "token",
		    pn_str_is(row->lease, "free") ? PN_STR("none")
						  : PN_STR("with its holder"));
	ctl_add_time_line(out, "completed", row->completed_at_us);
	ctl_add_time_line(out, "expires", row->expires_at_us);
	ctl_add_line(out, "request hash", key->request_hash);
	add_answer_lines(out, key);
	if (!key->archived)
		return;
	pn_buf_printf(out, "%-16s first seen ", "permanent tier");
	ctl_add_time(out, key->archived_first_seen_at_us);
	pn_buf_printf(out, ", attempts %" PRId64 ", request hash ",
	    key->archived_attempts);
	ctl_add_clean(out, key->archived_hash);
	pn_buf_add_char(out, '\n');
}

/* -- showing ----------------------------------------------------------------- */

static int
add_key(const struct pn_guard_key *key, void *payload)
{
	struct showing *show = payload;

	if (show->json)
		pn_render_guard_key_begin(&show->out, key);
	else
		add_key_text(&show->out, key);
	return pn_buf_failed(&show->out) ? -ENOMEM : 0;
}

static int
add_action(const struct pn_guard_action_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->table;
	int r;

	pn_buf_reset(&show->last);
	ctl_add_clean(&show->last, row->action);
	pn_buf_add_text(&show->last, " by ");
	ctl_add_clean(&show->last, row->actor);
	pn_buf_add_text(&show->last, " at ");
	ctl_add_time(&show->last, row->at_us);
	pn_buf_add_text(&show->last, ": ");
	ctl_add_clean(&show->last, row->reason);
	if (show->json) {
		pn_render_guard_action(&show->actions, row);
		return pn_buf_failed(&show->actions) ? -ENOMEM : 0;
	}
	r = ctl_table_time(table, row->at_us);
	r = r < 0 ? r : ctl_table_cell(table, row->action);
	r = r < 0 ? r : ctl_table_cell(table, row->actor);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
print_key(struct showing *show)
{
	if (show->json) {
		pn_render_guard_key_end(&show->out, &show->actions);
		pn_buf_add_char(&show->out, '\n');
	} else if (ctl_table_rows(show->table) > 0) {
		pn_buf_add_char(&show->out, '\n');
		ctl_table_print(show->table, false, &show->out);
	}
	return ctl_flush(&show->out);
}

static int
show_key(struct ctl *ctl, const struct scopes *scopes, struct showing *show)
{
	const char *key = ctl->args.operands[0];
	struct pn_error error = { .text = "" };
	int r = show->table == NULL
		    ? -ENOMEM
		    : pn_query_guard_key(ctl->query, scopes->tenant.data,
			  scopes->route.data, key, add_key, add_action, show,
			  &error);

	if (r == 0)
		return print_key(show);
	if (r == -ENOMEM)
		ctl_complain("out of memory");
	else if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	else if (show->last.len > 0)
		ctl_complain("there is no key \"%s\" of \"%s\", tenant \"%s\"; "
			     "what was done by hand about one, last: %s",
		    key, scopes->route.data, scopes->tenant.data,
		    show->last.data);
	else
		ctl_complain("there is no key \"%s\" of \"%s\", tenant \"%s\"; "
			     "`" CTL_NAME " keys list -c %s` shows those there "
			     "are",
		    key, scopes->route.data, scopes->tenant.data,
		    ctl->args.config);
	return CTL_REFUSED;
}

int
ctl_keys_show(struct ctl *ctl)
{
	struct scopes scopes = { .tenant = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.route = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.lines = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	struct showing show = { .json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.actions = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.last = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.table =
		    ctl_table_new(action_titles, PN_COUNT(action_titles)) };
	int r = find_scope(ctl, &scopes);

	if (r == CTL_DONE)
		r = show_key(ctl, &scopes, &show);
	pn_buf_done(&scopes.tenant);
	pn_buf_done(&scopes.route);
	pn_buf_done(&scopes.lines);
	pn_buf_done(&show.out);
	pn_buf_done(&show.actions);
	pn_buf_done(&show.last);
	ctl_table_free(show.table);
	return r;
}
