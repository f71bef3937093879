/*
 * Rows of the store as JSON. One function an object; which members it has, and
 * in which order, is a contract with programs that read them, so members are
 * added at the end and none is ever taken away.
 */
#include "paynotify/render.h"

#include "paynotify/json.h"
#include "paynotify/moment.h"

/* As the commands, and the paths of the admin port, are called. */
static const char *const verbs[] = {
	[PN_ACTION_REDELIVER] = "redeliver",
	[PN_ACTION_SKIP] = "skip",
	[PN_ACTION_PAUSE] = "pause",
	[PN_ACTION_RESUME] = "resume",
	[PN_ACTION_REMOVE] = "remove",
};

void
pn_render_receipt(struct pn_buf *out, const struct pn_receipt_row *row)
{
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "id", row->id);
	pn_json_add_moment(out, "received_at", row->received_at_us);
	pn_json_add_text(out, "provider", row->provider);
	pn_json_add_text(out, "tenant", row->tenant);
	pn_json_add_text(out, "verdict", row->verdict);
	pn_json_add_text(out, "reason", row->reason);
	pn_json_add_text(out, "notify_id", row->notify_id);
	pn_json_add_text(out, "out_trade_no", row->out_trade_no);
	pn_json_add_text(out, "peer", row->peer);
	pn_json_add_number(out, "status", row->status);
	pn_json_add_number(out, "body_bytes", row->body_bytes);
	pn_buf_add_char(out, '}');
}

void
pn_render_consumer(struct pn_buf *out, const struct pn_consumer_row *row)
{
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "name", row->name);
	pn_json_add_text(
	    out, "kind", pn_str_from(row->pushed ? "push" : "pull"));
	pn_json_add_text(out, "state", row->state);
	pn_json_add_text(out, "reason", row->reason);
	pn_json_add_text(out, "url", row->url);
	pn_json_add_number(out, "behind", row->behind);
	pn_json_add_number(out, "leased", row->leased);
	pn_json_add_number(out, "waiting", row->waiting);
	pn_json_add_number(out, "retrying", row->retrying);
	pn_json_add_number(out, "dead", row->dead);
	pn_json_add_moment(out, "oldest_received_at", row->oldest_due_us);
	pn_buf_add_char(out, '}');
}

void
pn_render_act(struct pn_buf *out, const struct pn_action *action, int64_t count,
    const char *error)
{
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "action", pn_str_from(verbs[action->action]));
	pn_json_add_text(out, "consumer", pn_str_from(action->consumer));
	pn_json_add_text(out, "event", pn_str_from(action->event));
	pn_json_add_text(out, "state", pn_str_from(action->state));
	pn_json_add_number(out, "count", count);
	pn_json_add_text(out, "actor", pn_str_from(action->actor));
	pn_json_add_text(out, "reason", pn_str_from(action->reason));
	pn_json_add_text(out, "error", pn_str_from(error));
	pn_buf_add_char(out, '}');
}

/* -- keys of the guard ------------------------------------------------------- */

static void
add_key_members(struct pn_buf *out, const struct pn_guard_key_row *row)
{
	bool hot = row->state.len > 0;

	pn_json_add_text(out, "tenant", row->tenant);
	pn_json_add_text(out, "route", row->route);
	pn_json_add_text(out, "key", row->key);
	pn_json_add_text(out, "state", row->state);
	pn_json_add_text(out, "lease", row->lease);
	if (hot) {
		pn_json_add_number(out, "attempts", row->attempts);
		pn_json_add_number(out, "crashes", row->crashes);
	} else {
		pn_json_add_null(out, "attempts");
		pn_json_add_null(out, "crashes");
	}
	pn_json_add_moment(out, "created_at", row->created_at_us);
	pn_json_add_moment(out, "locked_at", row->locked_at_us);
	pn_json_add_moment(out, "lease_expires_at", row->lease_expires_at_us);
	pn_json_add_moment(out, "completed_at", row->completed_at_us);
	pn_json_add_moment(out, "expires_at", row->expires_at_us);
	if (row->status != 0)
		pn_json_add_number(out, "response_status", row->status);
	else
		pn_json_add_null(out, "response_status");
	pn_json_add_text(out, "reason", row->reason);
}

void
pn_render_guard_key(struct pn_buf *out, const struct pn_guard_key_row *row)
{
	pn_buf_add_char(out, '{');
	add_key_members(out, row);
	pn_buf_add_char(out, '}');
}

struct pn_str
pn_guard_key_body_head(const struct pn_guard_key *key)
{
	struct pn_str head = { (const char *)key->body_head,
		(size_t)key->body_head_bytes };
	size_t bad, whole = pn_str_utf8_prefix(head, &bad);

	if (key->body_head_bytes < key->body_bytes && whole + bad == head.len)
		head.len = whole;
	return head;
}

static void
add_headers(struct pn_buf *out, struct pn_str lines)
{
	const char *comma = "";

	pn_json_add_raw(out, "response_headers", PN_STR("["));
	while (lines.data != NULL) {
		struct pn_str line = pn_str_split(&lines, '\n');

		if (line.len == 0)
			continue;
		pn_buf_add_text(out, comma);
		pn_json_add_string(out, line);
		comma = ",";
	}
	pn_buf_add_char(out, ']');
}

void
pn_render_guard_key_begin(struct pn_buf *out, const struct pn_guard_key *key)
{
	const struct pn_guard_key_row *row = &key->row;

	pn_buf_add_char(out, '{');
	add_key_members(out, row);
	pn_json_add_bool(
	    out, "token", row->lease.len > 0 && !pn_str_is(row->lease, "free"));
	pn_json_add_text(out, "request_hash", key->request_hash);
	add_headers(out, key->response_headers);
	if (key->body_bytes >= 0)
		pn_json_add_number(out, "response_body_bytes", key->body_bytes);
	else
		pn_json_add_null(out, "response_body_bytes");
	pn_json_add_text(
	    out, "response_body_head", pn_guard_key_body_head(key));
	if (!key->archived) {
		pn_json_add_null(out, "archived");
		return;
	}
	pn_json_add_raw(out, "archived", PN_STR("{"));
	pn_json_add_text(out, "request_hash", key->archived_hash);
	pn_json_add_moment(
	    out, "first_seen_at", key->archived_first_seen_at_us);
	pn_json_add_number(out, "attempts", key->archived_attempts);
	pn_buf_add_char(out, '}');
}

void
pn_render_guard_action(
    struct pn_buf *actions, const struct pn_guard_action_row *row)
{
	pn_buf_add_text(actions, actions->len > 0 ? ",{" : "{");
	pn_json_add_moment(actions, "at", row->at_us);
	pn_json_add_text(actions, "action", row->action);
	pn_json_add_text(actions, "actor", row->actor);
	pn_json_add_text(actions, "reason", row->reason);
	pn_buf_add_char(actions, '}');
}

void
pn_render_guard_key_end(struct pn_buf *out, const struct pn_buf *actions)
{
	pn_json_add_array(out, "actions", pn_buf_str(actions));
	pn_buf_add_char(out, '}');
}

void
pn_render_guard_act(
    struct pn_buf *out, const struct pn_guard_action *action, const char *error)
{
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "action",
	    action->act == PN_GUARD_SET_FREE ? PN_STR("release")
					     : PN_STR("forget"));
	pn_json_add_text(out, "tenant", pn_str_from(action->tenant));
	pn_json_add_text(out, "route", pn_str_from(action->route));
	pn_json_add_text(out, "key", pn_str_from(action->key));
	pn_json_add_text(out, "actor", pn_str_from(action->actor));
	pn_json_add_text(out, "reason", pn_str_from(action->reason));
	pn_json_add_text(out, "error", pn_str_from(error));
	pn_buf_add_char(out, '}');
}
