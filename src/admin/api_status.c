/*
 * What needs no database: is the daemon alive, can it record, how much has it
 * done, which routes are there.
 */
#include "api.h"

#include "paynotify/json.h"
#include "paynotify/metrics.h"

enum {
	HEALTH_BYTES_MAX = 256,
};

static void
set_text(struct admin_job *job, unsigned status, const char *content_type)
{
	job->status = status;
	job->content_type = content_type;
}

int
admin_health(struct admin_job *job)
{
	pn_buf_add_text(&job->out, "ok");
	set_text(job, 200, "text/plain");
	return 0;
}

/* For who may not read: the database's own words name hosts and users. */
static const char *const words[] = {
	[PN_STORE_READY] = "ready",
	[PN_STORE_CONNECTING] = "the database is away",
	[PN_STORE_NO_SCHEMA] =
	    "the schema is missing: run `paynotifyctl db migrate`",
	[PN_STORE_OLD_SCHEMA] =
	    "the schema is old: run `paynotifyctl db migrate`",
	[PN_STORE_FAILING] = "the database refuses",
};

int
admin_ready(struct admin_job *job)
{
	char text[HEALTH_BYTES_MAX] = "";
	enum pn_store_health health =
	    pn_store_health(job->admin->store, text, sizeof(text));

	pn_buf_add_text(
	    &job->out, admin_access_reads(job) ? text : words[health]);
	set_text(job, health == PN_STORE_READY ? 200 : 503,
	    "text/plain; charset=utf-8");
	return 0;
}

int
admin_metrics(struct admin_job *job)
{
	job->out = pn_buf_init(PN_METRICS_PAGE_BYTES_MAX);
	pn_metrics_print(&job->out);
	set_text(job, 200, "text/plain; version=0.0.4");
	return 0;
}

/* -- the table --------------------------------------------------------------- */

static const char *const privileges[] = {
	[ADMIN_OPEN] = "open",
	[ADMIN_READ] = "read",
	[ADMIN_ACT] = "act",
};

static void
add_parameters(struct pn_buf *out, unsigned parameters)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf names = pn_buf_init(HEALTH_BYTES_MAX);
	const char *name;

	for (unsigned bit = 1; (name = admin_parameter_name(bit)) != NULL;
	     bit <<= 1) {
		if ((parameters & bit) == 0)
			continue;
		if (names.len > 0)
			pn_buf_add_char(&names, ',');
		pn_json_add_string(&names, pn_str_from(name));
	}
	pn_json_add_array(out, "parameters", pn_buf_str(&names));
}

int
admin_index(struct admin_job *job)
{
	const struct admin_route *route;
	struct admin_page page;

	admin_page_begin(&page, job, ADMIN_LIMIT_MAX);
	for (size_t i = 0; (route = admin_route_at(i)) != NULL; i++) {
		struct pn_buf *out = admin_page_item(&page);

		if (out == NULL)
			break;
		pn_buf_add_char(out, '{');
		pn_json_add_text(out, "method", pn_str_from(route->method));
		pn_json_add_text(out, "path", pn_str_from(route->path));
		pn_json_add_text(out, "privilege",
		    pn_str_from(privileges[route->privilege]));
		add_parameters(out, route->parameters);
		pn_json_add_text(out, "doc", pn_str_from(route->doc));
		pn_buf_add_char(out, '}');
	}
	return admin_page_end(&page, 0);
}
