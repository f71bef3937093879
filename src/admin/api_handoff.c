/*
 * The hand-off: consumers, deliveries, and where one event stands. The objects
 * are those of `paynotifyctl ... --json`.
 */
#include "api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "paynotify/parse.h"
#include "paynotify/render.h"

/* -- consumers --------------------------------------------------------------- */

static int
add_consumer(const struct pn_consumer_row *row, void *payload)
{
	struct pn_buf *out = admin_page_item(payload);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_render_consumer(out, row);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
admin_consumers_list(struct admin_job *job)
{
	struct admin_page page;

	/* There are tens of them. */
	admin_page_begin(&page, job, INT64_MAX);
	return admin_page_end(&page,
	    pn_query_consumers(job->query, add_consumer, &page, &job->error));
}

/* -- deliveries -------------------------------------------------------------- */

/* "next" is the seq and, since consumers share events, the consumer. */
static int
add_delivery(const struct pn_delivery_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_render_delivery(out, row);
	(void)snprintf(page->after, sizeof(page->after), "%" PRId64 "-%" PRId64,
	    row->seq, row->consumer_id);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

static int
read_after(struct admin_job *job, struct pn_delivery_filter *filter)
{
	struct pn_str text = pn_form_get(&job->form, "after"), rest = text;
	struct pn_str seq;
	uint64_t number, consumer;

	filter->after_seq = -1;
	if (text.data == NULL)
		return 0;
	seq = pn_str_split(&rest, '-');
	if (rest.data == NULL || pn_parse_uint(seq, INT64_MAX, &number) != 0 ||
	    pn_parse_uint(rest, INT32_MAX, &consumer) != 0 || consumer == 0)
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "after is \"" PN_STR_FMT "\", which is no \"next\" of "
		    "this list.",
		    PN_STR_ARG(text));
	filter->after_seq = (int64_t)number;
	filter->after_consumer = (int64_t)consumer;
	return 0;
}

int
admin_deliveries_list(struct admin_job *job)
{
	static const char *const states[] = { "leased", "waiting", "retry",
		"dead", NULL };
	struct pn_delivery_filter filter = {
		.consumer = admin_parameter(job, "consumer"),
		.tenant = admin_parameter(job, "tenant"),
	};
	struct admin_page page;

	if (admin_word(job, "state", states, &filter.state) != 0 ||
	    admin_limit(job, &filter.limit) != 0 ||
	    read_after(job, &filter) != 0)
		return 1;
	admin_page_begin(&page, job, filter.limit++);
	return admin_page_end(&page, pn_query_deliveries(job->query, &filter,
					 add_delivery, &page, &job->error));
}

static int
add_handoff(struct pn_str json, void *payload)
{
	struct pn_buf *out = admin_page_item(payload);

	if (out == NULL)
		return -ENOMEM;
	pn_buf_add_str(out, json);
	return pn_buf_failed(out) ? -ENOMEM : 0;
}

int
admin_deliveries_show(struct admin_job *job)
{
	struct admin_page page;
	int r;

	admin_page_begin(&page, job, ADMIN_LIMIT_MAX);
	r = pn_render_handoff(job->query, job->name,
	    admin_parameter(job, "tenant"), add_handoff, &page, &job->error);
	if (r == 1)
		return admin_problem(job, ADMIN_UNKNOWN,
		    "There is no event \"%s\"; /api/v1/events lists those "
		    "there are.",
		    job->name);
	return admin_page_end(&page, r);
}
