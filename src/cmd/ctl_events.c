/*
 * `events list|show|tail`: what was recorded.
 *
 * Rows come from the query layer one at a time. For people they go through a
 * table in blocks; with --json each is one line. `tail` asks for the newest and
 * prints them oldest first, then, with --follow, polls: no LISTEN, so that any
 * number of them costs the receiver nothing.
 *
 * Following by seq alone would miss rows: two writers take numbers in one order
 * and may commit in the other. So each poll looks back to where the numbers were
 * a while ago (SETTLE_US) and skips what it has shown. That look back also
 * bridges a database that went away: --follow waits for it, says so once, and
 * goes on where it was.
 */
#include "ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "paynotify/moment.h"

#include "ctl_list.h"

enum {
	BLOCK_ROWS = 500,      /* rows of a table that are aligned together */
	BLOCK_BYTES = 1 << 20, /* ... and of JSON that is held back */
	SHOWN_MAX = 4096,      /* events that --follow remembers having shown */
	SETTLE_US = 10 * 1000000, /* a commit is not later than this */
	POLL_MS = 500,
	RECONNECT_MS = 1000,
};

static const char *const titles[] = { "SEQ", "RECEIVED", "TYPE", "TENANT",
	"OUT_TRADE_NO", "AMOUNT", "KEY" };

struct listing {
	bool json, reversed;
	struct ctl_table *table; /* NULL for JSON */
	struct pn_buf out;
	size_t *line_ends; /* JSON and reversed: where each line ends */
	size_t lines, lines_room;
	uint64_t rows;
	int64_t last_seq; /* greatest so far, -1 */
	int64_t *shown;   /* NULL: not following; else seq by seq % SHOWN_MAX */
	int exit;
};

static int
listing_open(struct listing *listing, const struct ctl *ctl)
{
	*listing = (struct listing){
		.json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.last_seq = -1,
	};
	if (listing->json)
		return 0;
	listing->table = ctl_table_new(titles, PN_COUNT(titles));
	return listing->table == NULL ? -ENOMEM : 0;
}

static void
listing_close(struct listing *listing)
{
	ctl_table_free(listing->table);
	pn_buf_done(&listing->out);
	free(listing->line_ends);
	free(listing->shown);
}

static struct pn_str
cell_text(struct pn_buf *cell)
{
	return pn_buf_failed(cell) ? PN_STR("?") : pn_buf_str(cell);
}

static int
add_cells(struct ctl_table *table, const struct pn_event_row *row)
{
	const struct pn_event *e = row->event;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf cell = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r = 0;

	pn_buf_printf(&cell, "%" PRId64, row->seq);
	r = r < 0 ? r : ctl_table_cell(table, cell_text(&cell));
	pn_buf_reset(&cell);
	ctl_add_time(&cell, row->received_at_us);
	r = r < 0 ? r : ctl_table_cell(table, cell_text(&cell));
	r = r < 0 ? r : ctl_table_cell(table, e->type);
	r = r < 0 ? r : ctl_table_cell(table, e->tenant);
	r = r < 0 ? r : ctl_table_cell(table, e->out_trade_no);
	pn_buf_reset(&cell);
	ctl_add_amount(&cell, "", e);
	r = r < 0 ? r : ctl_table_cell(table, cell_text(&cell));
	return r < 0 ? r : ctl_table_cell(table, e->key);
}

static int
add_json_line(struct listing *listing, const struct pn_event_row *row)
{
	if (listing->reversed && listing->lines == listing->lines_room) {
		size_t room = listing->lines_room * 2 + 16;
		size_t *ends =
		    reallocarray(listing->line_ends, room, sizeof(*ends));

		if (ends == NULL)
			return -ENOMEM;
		listing->line_ends = ends;
		listing->lines_room = room;
	}
	pn_event_add_json(&listing->out, row);
	pn_buf_add_char(&listing->out, '\n');
	if (listing->reversed)
		listing->line_ends[listing->lines++] = listing->out.len;
	return pn_buf_failed(&listing->out) ? -ENOMEM : 0;
}

/* Prints what was gathered. */
static int
listing_flush(struct listing *listing)
{
	if (listing->json && listing->reversed && listing->lines > 0) {
		PN_CLEANUP(pn_buf_done)
		struct pn_buf ordered = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

		for (size_t i = listing->lines; i-- > 0;) {
			size_t from = i == 0 ? 0 : listing->line_ends[i - 1];

			pn_buf_add(&ordered, listing->out.data + from,
			    listing->line_ends[i] - from);
		}
		listing->lines = 0;
		pn_buf_reset(&listing->out);
		return ctl_flush(&ordered);
	}
	if (listing->table != NULL)
		ctl_table_print(
		    listing->table, listing->reversed, &listing->out);
	return ctl_flush(&listing->out);
}

/* True when --follow has shown it before; remembers it. */
static bool
was_shown(struct listing *listing, int64_t seq)
{
	int64_t *slot;

	if (listing->shown == NULL || seq < 0)
		return false;
	slot = &listing->shown[seq % SHOWN_MAX];
	if (*slot == seq)
		return true;
	*slot = seq;
	return false;
}

static int
add_row(const struct pn_event_row *row, void *payload)
{
	struct listing *listing = payload;
	int r;

	if (was_shown(listing, row->seq))
		return 0;
	listing->rows++;
	if (row->seq > listing->last_seq)
		listing->last_seq = row->seq;
	r = listing->json ? add_json_line(listing, row)
			  : add_cells(listing->table, row);
	if (r < 0) {
		ctl_complain("out of memory: ask for less with --limit");
		listing->exit = CTL_REFUSED;
		return r;
	}
	if (!listing->reversed &&
	    (listing->rows % BLOCK_ROWS == 0 ||
		listing->out.len > BLOCK_BYTES) &&
	    listing_flush(listing) != CTL_DONE) {
		listing->exit = CTL_REFUSED;
		return -EIO;
	}
	return 0;
}

static struct pn_event_filter
filter_of(const struct ctl *ctl, int64_t limit)
{
	return (struct pn_event_filter){
		.tenant = ctl->args.tenant,
		.type = ctl->args.type,
		.key = ctl->args.key,
		.out_trade_no = ctl->args.out_trade_no,
		.since_us = ctl->args.since_us,
		.after_seq = -1,
		.limit = limit,
		.newest_first = true,
	};
}

/* Tells and returns an exit code; but where ret_fault is given (*ret_fault 0
 * before), a fault of the database is left there for the caller. */
static int
query_events(struct ctl *ctl, const struct pn_event_filter *filter,
    struct listing *listing, int *ret_fault, struct pn_error *ret_error)
{
	int r =
	    pn_query_events(ctl->query, filter, add_row, listing, ret_error);

	if (listing->exit != CTL_DONE)
		return listing->exit; /* told already */
	if (r < 0 && ret_fault != NULL)
		*ret_fault = r;
	else if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, ret_error);
	return listing_flush(listing); /* what came before the fault too */
}

int
ctl_events_list(struct ctl *ctl)
{
	struct pn_event_filter filter = filter_of(ctl, ctl_list_limit(ctl));
	struct pn_error error = { .text = "" };
	struct listing listing;
	int r = CTL_REFUSED;

	if (listing_open(&listing, ctl) == 0)
		r = query_events(ctl, &filter, &listing, NULL, &error);
	if (r == CTL_DONE && !ctl->args.json && listing.rows == 0)
		(void)fprintf(stderr, "no events%s\n",
		    ctl->args.tenant || ctl->args.type || ctl->args.key ||
			    ctl->args.out_trade_no ||
			    ctl->args.since_us != PN_MOMENT_NONE
			? " match"
			: " yet");
	if (r == CTL_DONE && !ctl->args.json && ctl->args.limit == UINT64_MAX &&
	    listing.rows == CTL_LIST_LIMIT)
		(void)fprintf(stderr,
		    "these are the newest %d; --limit N "
		    "shows more, --limit 0 all\n",
		    CTL_LIST_LIMIT);
	listing_close(&listing);
	return r;
}

static void
pause_ms(long ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&pause, NULL);
}

/* Waits until the database takes a connection again, for ever. */
static void
reconnect(struct ctl *ctl, const struct pn_error *why)
{
	struct pn_error error;
	int r;

	ctl_complain("database: %s; trying again until it answers", why->text);
	do {
		pn_query_close(ctl->query);
		ctl->query = NULL;
		pause_ms(RECONNECT_MS);
		error.text[0] = '\0';
		r = pn_query_open(ctl->dsn, &ctl->query, &error);
	} while (r < 0);
	ctl_complain("the database answers again");
}

static bool
is_gone(int r)
{
	return r == -ECONNRESET || r == -ECONNREFUSED || r == -ETIMEDOUT;
}

/* One look. A refusal that comes right after connecting is not one that
 * connecting again would mend. */
static int
poll_once(struct ctl *ctl, const struct pn_event_filter *filter,
    struct listing *listing, bool *is_fresh)
{
	struct pn_error error = { .text = "" };
	int fault = 0;
	int r = query_events(ctl, filter, listing, &fault, &error);

	if (r == CTL_DONE && fault < 0 && *is_fresh && !is_gone(fault))
		return ctl_database_complain(
		    ctl->conf, ctl->dsn, fault, &error);
	*is_fresh = fault < 0;
	if (r == CTL_DONE && fault < 0)
		reconnect(ctl, &error);
	return r;
}

/* Polls for ever; ends by a signal or a fault that waiting does not mend. */
static int
follow(struct ctl *ctl, struct listing *listing, int64_t from_seq)
{
	struct pn_event_filter filter = filter_of(ctl, SHOWN_MAX);
	int64_t settled = from_seq, mark = from_seq;
	int64_t marked_us = pn_clock_monotonic_us();
	bool is_fresh = false;
	int r;

	filter.newest_first = false;
	listing->reversed = false;
	for (;;) {
		int64_t now_us = pn_clock_monotonic_us();

		if (now_us - marked_us >= SETTLE_US) {
			settled = mark;
			mark = listing->last_seq;
			marked_us = now_us;
		}
		filter.after_seq = settled;
		/* Not more than is remembered: under such a flood a late one
		 * may be missed, but none is shown twice. */
		if (listing->last_seq - settled > SHOWN_MAX / 2)
			filter.after_seq = listing->last_seq - SHOWN_MAX / 2;
		r = poll_once(ctl, &filter, listing, &is_fresh);
		if (r != CTL_DONE)
			return r;
		pause_ms(POLL_MS);
	}
}

int
ctl_events_tail(struct ctl *ctl)
{
	struct pn_event_filter filter =
	    filter_of(ctl, ctl->args.limit == UINT64_MAX ? CTL_TAIL_LIMIT
							 : ctl_list_limit(ctl));
	struct pn_error error = { .text = "" };
	struct listing listing;
	int r = CTL_REFUSED;

	if (listing_open(&listing, ctl) == 0) {
		listing.reversed = true;
		if (ctl->args.follow) {
			listing.shown =
			    malloc(SHOWN_MAX * sizeof(*listing.shown));
			for (size_t i = 0;
			     listing.shown != NULL && i < SHOWN_MAX; i++)
				listing.shown[i] = -1;
		}
		if (!ctl->args.follow || listing.shown != NULL)
			r = query_events(ctl, &filter, &listing, NULL, &error);
	}
	if (r == CTL_DONE && ctl->args.follow)
		r = follow(ctl, &listing, listing.last_seq);
	listing_close(&listing);
	return r;
}

static int
show_row(const struct pn_event_row *row, void *payload)
{
	struct listing *listing = payload;

	if (listing->json) {
		pn_event_add_json(&listing->out, row);
		pn_buf_add_char(&listing->out, '\n');
	} else {
		if (listing->rows > 0)
			pn_buf_add_char(&listing->out, '\n');
		ctl_event_add_text(&listing->out, row);
		ctl_payload_add_text(&listing->out, row->payload);
	}
	listing->rows++;
	return 0;
}

void
ctl_event_complain(const struct ctl *ctl, const char *which)
{
	const char *tenant = ctl->args.tenant;

	ctl_complain("there is no event \"%s\"%s%s; `" CTL_NAME " events list "
		     "-c %s` shows those there are",
	    which, tenant != NULL ? " of tenant " : "",
	    tenant != NULL ? tenant : "", ctl->args.config);
}

int
ctl_events_show(struct ctl *ctl)
{
	const char *which = ctl->args.operands[0];
	struct listing listing = { .json = ctl->args.json,
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	struct pn_error error = { .text = "" };
	int r = pn_query_event(
	    ctl->query, which, ctl->args.tenant, show_row, &listing, &error);

	if (r < 0) {
		r = ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	} else if (r > 0 || listing.rows == 0) {
		ctl_event_complain(ctl, which);
		r = CTL_REFUSED;
	} else {
		r = ctl_flush(&listing.out);
	}
	listing_close(&listing);
	return r;
}
