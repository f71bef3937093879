/*
 * Deliveries as JSON: rows of the list, and all that is known of the hand-off of
 * one event.
 *
 * The event is asked for first, by id, key or seq - a key may be an event of
 * several tenants - and then, for each, its lists.
 */
#include "paynotify/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "paynotify/json.h"
#include "paynotify/limits.h"
#include "paynotify/moment.h"

enum {
	SAME_KEY_MAX = 64, /* events of one key: one a tenant */
	OBJECT_BYTES_MAX = 16 << 20,
	SEQ_TEXT_BYTES = 24,
};

enum part { PART_DELIVERIES, PART_ATTEMPTS, PART_ACTIONS, PART_COUNT };
static const char *const names[PART_COUNT] = {
	[PART_DELIVERIES] = "deliveries",
	[PART_ATTEMPTS] = "attempts",
	[PART_ACTIONS] = "actions",
};

struct showing {
	size_t count; /* events found */
	int64_t seqs[SAME_KEY_MAX];
	size_t head_ends[SAME_KEY_MAX]; /* in heads */
	struct pn_buf heads;
	struct pn_buf lists[PART_COUNT]; /* of one event at a time */
};

static void
add_standing(struct pn_buf *out, const struct pn_delivery_row *row)
{
	pn_json_add_text(out, "consumer", row->consumer);
	pn_json_add_text(out, "state", row->state);
	pn_json_add_number(out, "attempts", row->attempts);
	pn_json_add_moment(out, "due_at", row->due_us);
	pn_json_add_bool(out, "redelivery", row->redelivery);
	pn_json_add_text(out, "reason", row->reason);
}

void
pn_render_delivery(struct pn_buf *out, const struct pn_delivery_row *row)
{
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "event_id", row->event_id);
	pn_json_add_number(out, "seq", row->seq);
	add_standing(out, row);
	pn_json_add_text(out, "type", row->type);
	pn_json_add_text(out, "tenant", row->tenant);
	pn_json_add_text(out, "out_trade_no", row->out_trade_no);
	pn_json_add_moment(out, "received_at", row->received_at_us);
	pn_buf_add_char(out, '}');
}

/* -- one event --------------------------------------------------------------- */

static int
add_head(const struct pn_event_row *row, void *payload)
{
	struct showing *show = payload;
	struct pn_buf *out = &show->heads;
	const struct pn_event *e = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	if (show->count == SAME_KEY_MAX)
		return 0;
	pn_event_id_text(e->id, id);
	pn_buf_add_char(out, '{');
	pn_json_add_text(out, "event_id", pn_str_from(id));
	pn_json_add_number(out, "seq", row->seq);
	pn_json_add_text(out, "type", e->type);
	pn_json_add_text(out, "provider", e->provider);
	pn_json_add_text(out, "tenant", e->tenant);
	pn_json_add_text(out, "key", e->key);
	pn_json_add_text(out, "out_trade_no", e->out_trade_no);
	pn_json_add_moment(out, "received_at", row->received_at_us);
	show->seqs[show->count] = row->seq;
	show->head_ends[show->count++] = out->len;
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

/* The list with the next object begun. */
static struct pn_buf *
begin_object(struct showing *show, enum part part)
{
	struct pn_buf *list = &show->lists[part];

	pn_buf_add_text(list, list->len > 0 ? ",{" : "{");
	return list;
}

static int
end_object(struct pn_buf *list)
{
	pn_buf_add_char(list, '}');
	return pn_buf_failed(list) ? -ENOMEM : 0;
}

static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct pn_buf *list = begin_object(payload, PART_DELIVERIES);

	add_standing(list, row);
	return end_object(list);
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct pn_buf *list = begin_object(payload, PART_ATTEMPTS);

	pn_json_add_text(list, "consumer", row->consumer);
	pn_json_add_number(list, "attempt", row->attempt);
	pn_json_add_moment(list, "started_at", row->started_at_us);
	pn_json_add_number(list, "latency_us", row->latency_us);
	pn_json_add_number(list, "status", row->status);
	pn_json_add_text(list, "outcome", row->outcome);
	pn_json_add_text(list, "error", row->error);
	pn_json_add_text(list, "answer", row->answer);
	pn_json_add_bool(list, "redelivery", row->redelivery);
	return end_object(list);
}

static int
add_action(const struct pn_action_row *row, void *payload)
{
	struct pn_buf *list = begin_object(payload, PART_ACTIONS);

	pn_json_add_moment(list, "at", row->at_us);
	pn_json_add_text(list, "consumer", row->consumer);
	pn_json_add_text(list, "action", row->action);
	pn_json_add_text(list, "actor", row->actor);
	pn_json_add_text(list, "reason", row->reason);
	return end_object(list);
}

/* Puts the pieces of one event together, behind what is in out. */
static int
add_event(struct pn_query *query, struct showing *show, size_t index,
    struct pn_buf *out, struct pn_error *error)
{
	size_t from = index == 0 ? 0 : show->head_ends[index - 1];
	char seq[SEQ_TEXT_BYTES];
	int r;

	for (int p = 0; p < PART_COUNT; p++)
		pn_buf_reset(&show->lists[p]);
	(void)snprintf(seq, sizeof(seq), "%" PRId64, show->seqs[index]);
	r = pn_query_delivery(
	    query, seq, add_delivery, add_attempt, show, error);
	if (r == 0)
		r = pn_query_actions(
		    query, show->seqs[index], add_action, show, error);
	if (r < 0)
		return r;
	pn_buf_add(out, show->heads.data + from, show->head_ends[index] - from);
	for (int p = 0; p < PART_COUNT; p++)
		pn_json_add_array(out, names[p], pn_buf_str(&show->lists[p]));
	pn_buf_add_char(out, '}');
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
pn_render_handoff(struct pn_query *query, const char *which, const char *tenant,
    pn_render_fn object, void *payload, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(OBJECT_BYTES_MAX);
	struct showing show = { .heads = pn_buf_init(OBJECT_BYTES_MAX) };
	int r;

	for (int p = 0; p < PART_COUNT; p++)
		show.lists[p] = pn_buf_init(OBJECT_BYTES_MAX);
	r = pn_query_event(query, which, tenant, add_head, &show, ret_error);
	for (size_t i = 0; r == 0 && i < show.count; i++) {
		pn_buf_reset(&out);
		r = add_event(query, &show, i, &out, ret_error);
		if (r == 0)
			r = object(pn_buf_str(&out), payload);
	}
	pn_buf_done(&show.heads);
	for (int p = 0; p < PART_COUNT; p++)
		pn_buf_done(&show.lists[p]);
	return r;
}
