/*
 * `deliveries list|show`: what has not been handed off yet, and all that
 * happened to one event.
 *
 * The list is what is not done; for people with the overview of the consumers
 * above it, since "nothing is listed" and "nobody claims" must not look alike.
 * With --json it is the deliveries alone, one object a line: `consumers list`
 * has the rest.
 *
 * `show` asks for the event first, by id, key or seq - a key may be an event of
 * several tenants - and then, for each, where it stands with every consumer and
 * every attempt of a push. With --json an event is one object with both lists in
 * it.
 */
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "paynotify/deliveries.h"
#include "paynotify/moment.h"

enum { BLOCK_ROWS = 500 };

static const char *const list_titles[] = { "SEQ", "CONSUMER", "STATE",
	"ATTEMPTS", "DUE", "TYPE", "TENANT", "OUT_TRADE_NO", "EVENT",
	"REASON" };
static const char *const state_titles[] = { "CONSUMER", "STATE", "ATTEMPTS",
	"DUE", "REASON" };
static const char *const attempt_titles[] = { "STARTED", "CONSUMER", "ATTEMPT",
	"OUTCOME", "STATUS", "LATENCY", "ERROR", "ANSWER" };

/* -- list -------------------------------------------------------------------- */

struct listing {
	bool json;
	struct ctl_table *table; /* NULL for JSON */
	struct pn_buf out;
	uint64_t rows;
	int exit;
};

static void
add_delivery_members(struct pn_buf *out, const struct pn_delivery_row *row)
{
	ctl_add_member(out, "consumer", row->consumer);
	ctl_add_member(out, "state", row->state);
	ctl_add_number(out, "attempts", row->attempts);
	ctl_add_time_member(out, "due_at", row->due_us);
	ctl_add_bool(out, "redelivery", row->redelivery);
	ctl_add_member(out, "reason", row->reason);
}

static void
add_list_json(struct pn_buf *out, const struct pn_delivery_row *row)
{
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "event_id", row->event_id);
	ctl_add_number(out, "seq", row->seq);
	add_delivery_members(out, row);
	ctl_add_member(out, "type", row->type);
	ctl_add_member(out, "tenant", row->tenant);
	ctl_add_member(out, "out_trade_no", row->out_trade_no);
	ctl_add_time_member(out, "received_at", row->received_at_us);
	pn_buf_add_text(out, "}\n");
}

/* "retry", or "retry again" of a redelivery */
static int
add_state_cell(struct ctl_table *table, const struct pn_delivery_row *row)
{
	char text[64];

	(void)snprintf(text, sizeof(text), PN_STR_FMT "%s",
	    PN_STR_ARG(row->state), row->redelivery ? " again" : "");
	return ctl_table_cell(table, pn_str_from(text));
}

static int
add_list_cells(struct ctl_table *table, const struct pn_delivery_row *row)
{
	int r = ctl_table_number(table, row->seq);

	r = r < 0 ? r : ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : add_state_cell(table, row);
	r = r < 0 ? r : ctl_table_number(table, row->attempts);
	r = r < 0 ? r : ctl_table_time(table, row->due_us);
	r = r < 0 ? r : ctl_table_cell(table, row->type);
	r = r < 0 ? r : ctl_table_cell(table, row->tenant);
	r = r < 0 ? r : ctl_table_cell(table, row->out_trade_no);
	r = r < 0 ? r : ctl_table_cell(table, row->event_id);
	return r < 0 ? r : ctl_table_cell(table, row->reason);
}

static int
listing_flush(struct listing *listing)
{
	if (listing->table != NULL)
		ctl_table_print(listing->table, false, &listing->out);
	return ctl_flush(&listing->out);
}

static int
add_list_row(const struct pn_delivery_row *row, void *payload)
{
	struct listing *listing = payload;
	int r = 0;

	if (listing->rows++ == 0 && !listing->json)
		pn_buf_add_char(&listing->out, '\n'); /* below the overview */
	if (listing->json)
		add_list_json(&listing->out, row);
	else
		r = add_list_cells(listing->table, row);
	if (r < 0) {
		ctl_complain("out of memory: ask for less with --limit");
		listing->exit = CTL_REFUSED;
	} else if (listing->rows % BLOCK_ROWS == 0) {
		listing->exit = listing_flush(listing);
	}
	return listing->exit == CTL_DONE ? 0 : -EIO;
}

static int
query_deliveries(struct ctl *ctl, struct listing *listing)
{
	uint64_t limit =
	    ctl->args.limit == UINT64_MAX ? CTL_LIST_LIMIT : ctl->args.limit;
	struct pn_delivery_filter filter = {
		.consumer = ctl->args.consumer,
		.state = ctl->args.state,
		.tenant = ctl->args.tenant,
		.after_seq = -1,
		.limit = limit == 0 ? INT64_MAX : (int64_t)limit,
	};
	struct pn_error error = { .text = "" };
	int r = pn_query_deliveries(
	    ctl->query, &filter, add_list_row, listing, &error);

	if (listing->exit != CTL_DONE)
		return listing->exit; /* told already */
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return listing_flush(listing);
}

static bool
is_listed_state(const char *state)
{
	static const char *const states[] = { "leased", "waiting", "retry",
		"dead" };

	for (size_t i = 0; i < PN_COUNT(states); i++)
		if (strcmp(state, states[i]) == 0)
			return true;
	return false;
}

/* The overview; or, for programs, only whether the consumer exists. */
static int
list_consumers(struct ctl *ctl, struct listing *listing)
{
	int r = ctl_consumers_overview(ctl, ctl->args.consumer, &listing->out);

	if (r != CTL_DONE)
		return r;
	if (listing->json)
		pn_buf_reset(&listing->out);
	else if (listing->out.len == 0)
		(void)fprintf(stderr, "no consumers yet\n");
	return ctl_flush(&listing->out);
}

static void
say_how_many(const struct ctl *ctl, const struct listing *listing)
{
	if (!listing->json && listing->rows == 0)
		(void)fprintf(stderr, "no unfinished deliveries%s\n",
		    ctl->args.consumer || ctl->args.state || ctl->args.tenant
			? " match"
			: "");
	if (ctl->args.limit == UINT64_MAX && listing->rows == CTL_LIST_LIMIT)
		(void)fprintf(stderr,
		    "these are the oldest %d; --limit N "
		    "shows more, --limit 0 all\n",
		    CTL_LIST_LIMIT);
}

int
ctl_deliveries_list(struct ctl *ctl)
{
	struct listing listing = { .json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	int r;

	if (ctl->args.state != NULL && !is_listed_state(ctl->args.state))
		return ctl_usage(ctl->command,
		    "--state \"%s\" is none of leased, waiting, retry, dead",
		    ctl->args.state);
	if (!listing.json)
		listing.table =
		    ctl_table_new(list_titles, PN_COUNT(list_titles));
	if (!listing.json && listing.table == NULL) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	r = list_consumers(ctl, &listing);
	if (r == CTL_DONE)
		r = query_deliveries(ctl, &listing);
	if (r == CTL_DONE)
		say_how_many(ctl, &listing);
	ctl_table_free(listing.table);
	pn_buf_done(&listing.out);
	return r;
}

/* -- show -------------------------------------------------------------------- */

/* One event at a time; what is printed of it is made in four pieces, because
 * they come in this order but for the head, which comes first for all. */
struct showing {
	bool json;
	size_t count; /* events found, at most CTL_SAME_KEY_MAX */
	int64_t seqs[CTL_SAME_KEY_MAX];
	size_t head_ends[CTL_SAME_KEY_MAX]; /* in heads */
	struct pn_buf heads;
	struct pn_buf states, attempts; /* JSON */
	struct ctl_table *state_table, *attempt_table;
};

static int
add_head(const struct pn_event_row *row, void *payload)
{
	struct showing *show = payload;
	struct pn_buf *out = &show->heads;
	const struct pn_event *e = row->event;
	char id[PN_EVENT_ID_TEXT_BYTES];

	if (show->count == CTL_SAME_KEY_MAX)
		return 0;
	if (show->json) {
		pn_event_id_text(e->id, id);
		pn_buf_add_char(out, '{');
		ctl_add_member(out, "event_id", pn_str_from(id));
		ctl_add_number(out, "seq", row->seq);
		ctl_add_member(out, "type", e->type);
		ctl_add_member(out, "provider", e->provider);
		ctl_add_member(out, "tenant", e->tenant);
		ctl_add_member(out, "key", e->key);
		ctl_add_member(out, "out_trade_no", e->out_trade_no);
		ctl_add_time_member(out, "received_at", row->received_at_us);
	} else {
		ctl_event_add_text(out, row);
	}
	show->seqs[show->count] = row->seq;
	show->head_ends[show->count++] = out->len;
	return 0;
}

static int
add_state(const struct pn_delivery_row *row, void *payload)
{
	struct showing *show = payload;
	int r;

	if (show->json) {
		if (show->states.len > 0)
			pn_buf_add_char(&show->states, ',');
		pn_buf_add_char(&show->states, '{');
		add_delivery_members(&show->states, row);
		pn_buf_add_char(&show->states, '}');
		return 0;
	}
	r = ctl_table_cell(show->state_table, row->consumer);
	r = r < 0 ? r : add_state_cell(show->state_table, row);
	r = r < 0 ? r : ctl_table_number(show->state_table, row->attempts);
	r = r < 0 ? r : ctl_table_time(show->state_table, row->due_us);
	return r < 0 ? r : ctl_table_cell(show->state_table, row->reason);
}

static void
add_attempt_json(struct pn_buf *out, const struct pn_attempt_row *row)
{
	if (out->len > 0)
		pn_buf_add_char(out, ',');
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "consumer", row->consumer);
	ctl_add_number(out, "attempt", row->attempt);
	ctl_add_time_member(out, "started_at", row->started_at_us);
	ctl_add_number(out, "latency_us", row->latency_us);
	ctl_add_number(out, "status", row->status);
	ctl_add_member(out, "outcome", row->outcome);
	ctl_add_member(out, "error", row->error);
	ctl_add_member(out, "answer", row->answer);
	ctl_add_bool(out, "redelivery", row->redelivery);
	pn_buf_add_char(out, '}');
}

static int
add_attempt(const struct pn_attempt_row *row, void *payload)
{
	struct showing *show = payload;
	struct ctl_table *table = show->attempt_table;
	char number[48], latency[48];
	int r;

	if (show->json) {
		add_attempt_json(&show->attempts, row);
		return 0;
	}
	(void)snprintf(number, sizeof(number), "%" PRId64 "%s", row->attempt,
	    row->redelivery ? " again" : "");
	(void)snprintf(latency, sizeof(latency), "%" PRId64 ".%" PRId64 " ms",
	    row->latency_us / 1000, row->latency_us % 1000 / 100);
	r = ctl_table_time(table, row->started_at_us);
	r = r < 0 ? r : ctl_table_cell(table, row->consumer);
	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(number));
	r = r < 0 ? r : ctl_table_cell(table, row->outcome);
	r = r < 0              ? r
	    : row->status == 0 ? ctl_table_cell(table, PN_STR(""))
			       : ctl_table_number(table, row->status);
	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(latency));
	r = r < 0 ? r : ctl_table_cell(table, row->error);
	return r < 0 ? r : ctl_table_cell(table, row->answer);
}

/* Puts the pieces of one event together. */
static void
add_event(struct showing *show, size_t index, struct pn_buf *out)
{
	size_t from = index == 0 ? 0 : show->head_ends[index - 1];
	struct pn_str head = { show->heads.data + from,
		show->head_ends[index] - from };

	if (!show->json && index > 0)
		pn_buf_add_char(out, '\n');
	pn_buf_add_str(out, head);
	if (show->json) {
		pn_buf_add_text(out, ",\"deliveries\":[");
		pn_buf_add_str(out, pn_buf_str(&show->states));
		pn_buf_add_text(out, "],\"attempts\":[");
		pn_buf_add_str(out, pn_buf_str(&show->attempts));
		pn_buf_add_text(out, "]}\n");
		return;
	}
	pn_buf_add_char(out, '\n');
	if (ctl_table_rows(show->state_table) == 0)
		pn_buf_add_text(out, "no consumer takes it\n");
	ctl_table_print(show->state_table, false, out);
	if (ctl_table_rows(show->attempt_table) > 0)
		pn_buf_add_char(out, '\n');
	ctl_table_print(show->attempt_table, false, out);
}

static int
show_event(struct ctl *ctl, struct showing *show, size_t index)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	char seq[24];
	int r;

	(void)snprintf(seq, sizeof(seq), "%" PRId64, show->seqs[index]);
	pn_buf_reset(&show->states);
	pn_buf_reset(&show->attempts);
	show->state_table = ctl_table_new(state_titles, PN_COUNT(state_titles));
	show->attempt_table =
	    ctl_table_new(attempt_titles, PN_COUNT(attempt_titles));
	if (show->state_table == NULL || show->attempt_table == NULL)
		r = pn_error_set(&error, -ENOMEM, "out of memory");
	else
		r = pn_query_delivery(
		    ctl->query, seq, add_state, add_attempt, show, &error);
	if (r == 0)
		add_event(show, index, &out);
	ctl_table_free(show->state_table);
	ctl_table_free(show->attempt_table);
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	return ctl_flush(&out);
}

int
ctl_deliveries_show(struct ctl *ctl)
{
	const char *which = ctl->args.operands[0];
	struct showing show = { .json = ctl->args.json,
		.heads = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.states = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.attempts = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	struct pn_error error = { .text = "" };
	int r = pn_query_event(ctl->query, which, add_head, &show, &error);

	if (r < 0) {
		r = ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	} else if (show.count == 0) {
		ctl_complain("there is no event \"%s\"; `" CTL_NAME " events "
			     "list -c %s` shows those there are",
		    which, ctl->args.config);
		r = CTL_REFUSED;
	} else if (pn_buf_failed(&show.heads)) {
		ctl_complain("out of memory");
		r = CTL_REFUSED;
	} else {
		r = CTL_DONE;
	}
	for (size_t i = 0; r == CTL_DONE && i < show.count; i++)
		r = show_event(ctl, &show, i);
	pn_buf_done(&show.heads);
	pn_buf_done(&show.states);
	pn_buf_done(&show.attempts);
	return r;
}
