/*
 * What was received and recorded: events, receipts, the quarantine, orders. The
 * objects are those of `paynotifyctl ... --json`.
 *
 * A list's "next" is the seq, or the id, of its last row: what comes meanwhile
 * is newer than the whole list and does not move its pages.
 */
#include "api.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "paynotify/parse.h"
#include "paynotify/quarantine.h"
#include "paynotify/render.h"
#include "paynotify/timeline.h"

enum { UUID_TEXT_BYTES = 36 };

/* -- events ------------------------------------------------------------------ */

static int
add_event(const struct pn_event_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_event_add_json(out, row);
	(void)snprintf(page->after, sizeof(page->after), "%" PRId64, row->seq);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
admin_events_list(struct admin_job *job)
{
	struct pn_event_filter filter = {
		.tenant = admin_parameter(job, "tenant"),
		.type = admin_parameter(job, "type"),
		.key = admin_parameter(job, "key"),
		.out_trade_no = admin_parameter(job, "out_trade_no"),
		.after_seq = -1,
		.newest_first = true,
	};
	struct admin_page page;

	if (admin_limit(job, &filter.limit) != 0 ||
	    admin_since(job, &filter.since_us) != 0 ||
	    admin_after_number(job, &filter.before_seq) != 0)
		return 1;
	admin_page_begin(&page, job, filter.limit++);
	return admin_page_end(&page, pn_query_events(job->query, &filter,
					 add_event, &page, &job->error));
}

int
admin_events_show(struct admin_job *job)
{
	struct admin_page page;
	int r;

	admin_page_begin(&page, job, ADMIN_LIMIT_MAX);
	r = pn_query_event(job->query, job->name,
	    admin_parameter(job, "tenant"), add_event, &page, &job->error);
	if (r == 1)
		return admin_problem(job, ADMIN_UNKNOWN,
		    "There is no event \"%s\"; /api/v1/events lists those "
		    "there are.",
		    job->name);
	page.more = false; /* there are no pages of one event */
	return admin_page_end(&page, r);
}

/* -- receipts ---------------------------------------------------------------- */

static int
add_receipt(const struct pn_receipt_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_render_receipt(out, row);
	(void)snprintf(
	    page->after, sizeof(page->after), PN_STR_FMT, PN_STR_ARG(row->id));
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

/* As PostgreSQL writes one, which is how "next" says it. */
static bool
is_uuid(const char *text)
{
	if (strlen(text) != UUID_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < UUID_TEXT_BYTES; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-'
			 : strchr("0123456789abcdef", text[i]) == NULL)
			return false;
	}
	return true;
}

int
admin_receipts_list(struct admin_job *job)
{
	struct pn_receipt_filter filter = {
		.tenant = admin_parameter(job, "tenant"),
		.provider = admin_parameter(job, "provider"),
		.out_trade_no = admin_parameter(job, "out_trade_no"),
		.before_id = admin_parameter(job, "after"),
	};
	struct admin_page page;

	if (admin_word(job, "verdict", pn_receipt_verdicts, &filter.verdict) !=
		0 ||
	    admin_limit(job, &filter.limit) != 0 ||
	    admin_since(job, &filter.since_us) != 0)
		return 1;
	if (filter.before_id != NULL && !is_uuid(filter.before_id))
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "after is \"%s\", which is no \"next\" of this list.",
		    filter.before_id);
	admin_page_begin(&page, job, filter.limit++);
	return admin_page_end(&page, pn_query_receipts(job->query, &filter,
					 add_receipt, &page, &job->error));
}

/* -- quarantine -------------------------------------------------------------- */

static int
add_quarantine(const struct pn_quarantine_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_render_quarantine(out, row);
	(void)snprintf(page->after, sizeof(page->after), "%" PRId64, row->id);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
admin_quarantine_list(struct admin_job *job)
{
	static const char *const states[] = { "open", "accepted", "rejected",
		"resolved", NULL };
	struct pn_quarantine_filter filter = {
		.tenant = admin_parameter(job, "tenant"),
		.provider = admin_parameter(job, "provider"),
	};
	struct admin_page page;

	if (admin_word(job, "state", states, &filter.state) != 0 ||
	    admin_limit(job, &filter.limit) != 0 ||
	    admin_since(job, &filter.since_us) != 0 ||
	    admin_after_number(job, &filter.before_id) != 0)
		return 1;
	admin_page_begin(&page, job, filter.limit++);
	return admin_page_end(&page, pn_query_quarantine(job->query, &filter,
					 add_quarantine, &page, &job->error));
}

static int
add_entry(const struct pn_quarantine_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);
	struct pn_quarantine_recorded recorded;
	int r = pn_quarantine_recorded(
	    page->job->query, row, &recorded, &page->job->error);

	assert(out != NULL);
	if (r < 0)
		return r;
	pn_render_quarantine_entry(out, row, &recorded);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
admin_quarantine_show(struct admin_job *job)
{
	struct admin_page page;
	int64_t id;
	int r = 1;

	admin_page_begin(&page, job, 1);
	if (pn_parse_int64(pn_str_from(job->name), &id) == 0)
		r = pn_query_quarantine_entry(
		    job->query, id, add_entry, &page, &job->error);
	if (r == 1)
		return admin_problem(job, ADMIN_UNKNOWN,
		    "There is no quarantine entry \"%s\"; "
		    "/api/v1/quarantine lists those there are.",
		    job->name);
	return admin_page_end(&page, r);
}

/* -- orders ------------------------------------------------------------------ */

static int
too_long(struct admin_job *job)
{
	return admin_problem(job, ADMIN_UNKNOWN,
	    "All that is known of the order \"%s\" is too long for an "
	    "answer: `paynotifyctl order show` prints it.",
	    job->name);
}

int
admin_orders_show(struct admin_job *job)
{
	PN_CLEANUP(pn_timeline_freep) struct pn_timeline *timeline = NULL;
	struct admin_page page;
	size_t count;
	int r = pn_timeline_read(job->query, admin_parameter(job, "tenant"),
	    job->name, pn_timeline_write_json, &timeline, &job->error);

	if (r < 0)
		return r;
	if (pn_timeline_is_cut(timeline))
		return too_long(job);
	count = pn_timeline_count(timeline);
	if (count == 0)
		return admin_problem(job, ADMIN_UNKNOWN,
		    "Nothing is known of an order \"%s\".", job->name);
	admin_page_begin(&page, job, (int64_t)count);
	for (size_t i = 0; i < count; i++) {
		struct pn_buf *out = admin_page_item(&page);

		if (out == NULL)
			return too_long(job);
		pn_buf_add_str(out, pn_timeline_at(timeline, i).text);
	}
	return admin_page_end(&page, 0);
}
