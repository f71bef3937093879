/*
 * Keys of the gateway. The objects are those of `paynotifyctl keys --json`.
 *
 * Several tenants, and several routes, may have the same key, and each is another
 * payment: then it is said that there are several, and none is shown. The keys of
 * webhooks are none of these.
 */
#include "api.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "paynotify/encode.h"
#include "paynotify/render.h"

enum { AFTER_PARTS_BYTES_MAX = ADMIN_AFTER_BYTES_MAX / 4 * 3 };

/* -- the list ---------------------------------------------------------------- */

/* "next" is tenant, route and key, a line each, as hex: none of them may hold a
 * line end, and all of them anything else. */
static int
set_after(struct admin_page *page, const struct pn_guard_key_row *row)
{
	char text[(ADMIN_AFTER_BYTES_MAX - 1) / 2];
	int n = snprintf(text, sizeof(text),
	    PN_STR_FMT "\n" PN_STR_FMT "\n" PN_STR_FMT, PN_STR_ARG(row->tenant),
	    PN_STR_ARG(row->route), PN_STR_ARG(row->key));

	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENOMEM;
	pn_hex_lower(text, (size_t)n, page->after);
	return 0;
}

static int
read_after(struct admin_job *job, struct pn_guard_key_filter *filter)
{
	struct pn_str text = pn_form_get(&job->form, "after"), rest;
	struct pn_arena *arena = job->call->arena;
	char *plain;

	if (text.data == NULL)
		return 0;
	plain = pn_arena_alloc(arena, text.len / 2 + 1);
	if (plain == NULL)
		return -ENOMEM;
	rest = (struct pn_str){ plain, text.len / 2 };
	if (text.len % 2 == 0 &&
	    pn_hex_decode(text, (unsigned char *)plain, text.len / 2) == 0 &&
	    pn_str_is_utf8(rest) && memchr(plain, '\0', rest.len) == NULL) {
		filter->after_tenant =
		    pn_arena_copy(arena, pn_str_split(&rest, '\n')).data;
		if (rest.data != NULL)
			filter->after_route =
			    pn_arena_copy(arena, pn_str_split(&rest, '\n'))
				.data;
		if (rest.data != NULL)
			filter->after_key = pn_arena_copy(arena, rest).data;
	}
	if (filter->after_key != NULL && filter->after_route != NULL &&
	    filter->after_tenant != NULL)
		return 0;
	return admin_problem(job, ADMIN_BAD_PARAMETER,
	    "after is \"" PN_STR_FMT "\", which is no \"next\" of this list.",
	    PN_STR_ARG(text));
}

static int
add_key(const struct pn_guard_key_row *row, void *payload)
{
	struct admin_page *page = payload;
	struct pn_buf *out = admin_page_item(page);

	if (out == NULL)
		return ADMIN_PAGE_FULL;
	pn_render_guard_key(out, row);
	return pn_buf_failed(out) ? -ENOMEM : set_after(page, row);
}

static int
refuse_webhooks(struct admin_job *job, const char *route)
{
	if (route == NULL || !pn_str_starts(pn_str_from(route), "notify/"))
		return 0;
	return admin_problem(job, ADMIN_BAD_PARAMETER,
	    "route is \"%s\", of webhooks, which are not the gateway's: "
	    "/api/v1/events finds theirs.",
	    route);
}

int
admin_keys_list(struct admin_job *job)
{
	static const char *const states[] = { "PROCESSING", "COMPLETED",
		"FAILED", NULL };
	struct pn_guard_key_filter filter = {
		.tenant = admin_parameter(job, "tenant"),
		.route = admin_parameter(job, "route"),
	};
	struct admin_page page;
	int r;

	if (admin_word(job, "state", states, &filter.state) != 0 ||
	    admin_limit(job, &filter.limit) != 0 ||
	    refuse_webhooks(job, filter.route) != 0)
		return 1;
	r = read_after(job, &filter);
	if (r != 0)
		return r;
	admin_page_begin(&page, job, filter.limit++);
	return admin_page_end(&page, pn_query_guard_keys(job->query, &filter,
					 add_key, &page, &job->error));
}

/* -- one key ----------------------------------------------------------------- */

struct scopes {
	struct pn_arena *arena;
	size_t count;
	const char *tenant, *route; /* of the first */
};

static int
add_scope(const struct pn_guard_scope_row *row, void *payload)
{
	struct scopes *scopes = payload;

	if (scopes->count++ > 0)
		return 0;
	scopes->tenant = pn_arena_copy(scopes->arena, row->tenant).data;
	scopes->route = pn_arena_copy(scopes->arena, row->route).data;
	return scopes->tenant == NULL || scopes->route == NULL ? -ENOMEM : 0;
}

struct showing {
	struct pn_buf *out;
	struct pn_buf actions;
};

static int
show_key(const struct pn_guard_key *key, void *payload)
{
	struct showing *show = payload;

	pn_render_guard_key_begin(show->out, key);
	return pn_buf_failed(show->out) ? -ENOMEM : 0;
}

static int
show_action(const struct pn_guard_action_row *row, void *payload)
{
	struct showing *show = payload;

	pn_render_guard_action(&show->actions, row);
	return pn_buf_failed(&show->actions) ? -ENOMEM : 0;
}

static int
refuse_unknown(struct admin_job *job)
{
	return admin_problem(job, ADMIN_UNKNOWN,
	    "There is no key \"%s\" there; /api/v1/keys lists those there "
	    "are, and one that is archived is found by tenant and route.",
	    job->name);
}

static int
show(struct admin_job *job, const struct scopes *scopes)
{
	struct admin_page page;
	struct showing showing;
	int r;

	admin_page_begin(&page, job, 1);
	showing.out = admin_page_item(&page);
	assert(showing.out != NULL);
	showing.actions = pn_buf_init(showing.out->max);
	r = pn_query_guard_key(job->query, scopes->tenant, scopes->route,
	    job->name, show_key, show_action, &showing, &job->error);
	if (r == 0)
		pn_render_guard_key_end(showing.out, &showing.actions);
	pn_buf_done(&showing.actions);
	return r == 1 ? refuse_unknown(job) : admin_page_end(&page, r);
}

int
admin_keys_show(struct admin_job *job)
{
	const char *tenant = admin_parameter(job, "tenant");
	const char *route = admin_parameter(job, "route");
	struct scopes scopes = { .arena = job->call->arena };
	int r = refuse_webhooks(job, route);

	if (r == 0)
		r = pn_query_guard_scopes(job->query, tenant, route, job->name,
		    add_scope, &scopes, &job->error);
	if (r != 0)
		return r;
	if (scopes.count == 0)
		return refuse_unknown(job);
	if (scopes.count > 1)
		return admin_problem(job, ADMIN_AMBIGUOUS,
		    "%zu keys are called \"%s\": say whose by the parameters "
		    "tenant and route.",
		    scopes.count, job->name);
	return show(job, &scopes);
}
