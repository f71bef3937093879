/*
 * Pages of items. A page ends at its limit, or earlier when it has become long:
 * payloads may have a megabyte each. "next" is what the next page is asked for
 * with, null at the end of the list; it names the last row that is on this one
 * (a keyset), so rows that come meanwhile neither shift nor repeat any.
 */
#include "api.h"

#include <errno.h>

#include "paynotify/json.h"

enum {
	PAGE_BYTES = 4 << 20,      /* beyond it no further item is begun */
	PAGE_BYTES_MAX = 64 << 20, /* with the last one */
};

void
admin_page_begin(struct admin_page *page, struct admin_job *job, int64_t limit)
{
	*page = (struct admin_page){ .job = job, .limit = limit };
	job->out = pn_buf_init(PAGE_BYTES_MAX);
	pn_buf_add_text(&job->out, "{\"items\":[");
}

struct pn_buf *
admin_page_item(struct admin_page *page)
{
	struct pn_buf *out = &page->job->out;

	if (page->count == page->limit || out->len > PAGE_BYTES) {
		page->more = true;
		return NULL;
	}
	if (page->count++ > 0)
		pn_buf_add_text(out, ",\n");
	return out;
}

int
admin_page_end(struct admin_page *page, int r)
{
	struct admin_job *job = page->job;

	if (r < 0)
		return r;
	pn_buf_add_char(&job->out, ']');
	pn_json_add_text(&job->out, "next",
	    page->more ? pn_str_from(page->after) : PN_STR(""));
	pn_buf_add_text(&job->out, "}\n");
	if (pn_buf_failed(&job->out))
		return -ENOMEM;
	job->status = 200;
	job->content_type = "application/json";
	return 0;
}
