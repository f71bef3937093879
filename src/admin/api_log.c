/*
 * The switch of the log: how much is written, from this moment on and until the
 * daemon ends. The configuration stays as it is.
 *
 * "level" is what all layers write up to; "categories" are the layers that write
 * debug lines besides.
 */
#include "api.h"

#include <assert.h>

#include "paynotify/json.h"
#include "paynotify/log.h"

enum { NAMES_BYTES_MAX = 256 };

static int
answer(struct admin_job *job)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf names = pn_buf_init(NAMES_BYTES_MAX);
	unsigned debug = pn_log_debug_categories();
	struct admin_page page;
	struct pn_buf *out;

	for (unsigned i = 0; i < PN_LOG_CATEGORY_COUNT; i++) {
		if ((debug & 1U << i) == 0)
			continue;
		if (names.len > 0)
			pn_buf_add_char(&names, ',');
		pn_json_add_string(
		    &names, pn_str_from(pn_log_category_names[i]));
	}
	admin_page_begin(&page, job, 1);
	out = admin_page_item(&page);
	assert(out != NULL);
	pn_buf_add_char(out, '{');
	pn_json_add_text(
	    out, "level", pn_str_from(pn_log_level_names[pn_log_level()]));
	pn_json_add_array(out, "categories", pn_buf_str(&names));
	pn_buf_add_char(out, '}');
	return admin_page_end(&page, 0);
}

int
admin_log_show(struct admin_job *job)
{
	return answer(job);
}

/* "a, b, c" */
static void
list(const char *const *names, char *ret_text, size_t bytes)
{
	size_t len = 0;

	for (size_t i = 0; names[i] != NULL; i++)
		len += (size_t)snprintf(ret_text + len, bytes - len, "%s%s",
		    i > 0 ? ", " : "", names[i]);
	assert(len < bytes);
}

static int
read_level(struct admin_job *job, enum pn_log_level *ret_level)
{
	char all[NAMES_BYTES_MAX];
	const char *text;

	if (admin_member(job, "level", true, &text) != 0)
		return 1;
	if (pn_log_level_parse(pn_str_from(text), ret_level) == 0)
		return 0;
	list(pn_log_level_names, all, sizeof(all));
	return admin_problem(
	    job, ADMIN_BAD_BODY, "\"level\" is \"%s\", none of %s.", text, all);
}

static int
read_categories(struct admin_job *job, unsigned *ret_debug)
{
	json_t *names = json_object_get(job->body, "categories"), *name;
	enum pn_log_category category;
	char all[NAMES_BYTES_MAX];
	unsigned debug = 0;
	size_t i;

	if (names != NULL && !json_is_null(names) && !json_is_array(names))
		return admin_problem(
		    job, ADMIN_BAD_BODY, "\"categories\" is not an array.");
	json_array_foreach(names, i, name)
	{
		struct pn_str text = { json_string_value(name),
			json_string_length(name) };

		if (pn_log_category_parse(text, &category) != 0) {
			list(pn_log_category_names, all, sizeof(all));
			return admin_problem(job, ADMIN_BAD_BODY,
			    "\"categories\" has \"" PN_STR_FMT
			    "\", none of %s.",
			    PN_STR_ARG(text), all);
		}
		debug |= 1U << category;
	}
	*ret_debug = debug;
	return 0;
}

int
admin_log_set(struct admin_job *job)
{
	static const char *const members[] = { "level", "categories", "actor",
		"reason", NULL };
	struct pn_str peer = job->call->request.peer;
	const char *actor, *reason;
	enum pn_log_level level = PN_LOG_INFO;
	unsigned debug = 0;

	if (admin_members_check(job, members) != 0 ||
	    read_level(job, &level) != 0 || read_categories(job, &debug) != 0 ||
	    admin_member(job, "actor", true, &actor) != 0 ||
	    admin_member(job, "reason", false, &reason) != 0)
		return 1;
	pn_log_configure(level, debug);
	pn_log_always(PN_LOG_NOTICE,
	    &(struct pn_log_about){ .peer = peer.len > 0 ? peer.data : "unix" },
	    "the log is at level \"%s\" now, by \"%s\", because \"%s\"",
	    pn_log_level_names[level], actor,
	    reason == NULL ? "none given" : reason);
	return answer(job);
}
