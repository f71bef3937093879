/*
 * What a request brings: the segment of the path, the parameters behind "?", the
 * body. All of it is judged before the database is asked: names that the route
 * does not know are refused, since a misspelt filter that is passed over would
 * show everything.
 *
 * Text for the database is UTF-8 without NUL, and has a NUL behind it.
 */
#include "api.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/encode.h"
#include "paynotify/json.h"
#include "paynotify/moment.h"
#include "paynotify/parse.h"

enum { RECORD_BYTES_MAX = 1000 }; /* as --reason and --actor */

static const struct {
	enum admin_parameter bit;
	const char *name;
} parameters[] = {
	{ ADMIN_TENANT, "tenant" },
	{ ADMIN_PROVIDER, "provider" },
	{ ADMIN_TYPE, "type" },
	{ ADMIN_KEY, "key" },
	{ ADMIN_OUT_TRADE_NO, "out_trade_no" },
	{ ADMIN_VERDICT, "verdict" },
	{ ADMIN_CONSUMER, "consumer" },
	{ ADMIN_STATE, "state" },
	{ ADMIN_ROUTE, "route" },
	{ ADMIN_SINCE, "since" },
	{ ADMIN_LIMIT, "limit" },
	{ ADMIN_AFTER, "after" },
};

const char *
admin_parameter_name(unsigned bit)
{
	for (size_t i = 0; i < PN_COUNT(parameters); i++)
		if ((unsigned)parameters[i].bit == bit)
			return parameters[i].name;
	return NULL;
}

/* Whether the database takes it as text. */
static bool
is_text(struct pn_str s)
{
	return pn_str_is_utf8(s) &&
	       (s.len == 0 || memchr(s.data, '\0', s.len) == NULL);
}

/* -- the path ---------------------------------------------------------------- */

/* Percent-decodes; "+" stays. false: not such text, or no memory. */
static bool
decode(struct admin_job *job, struct pn_str in, struct pn_str *ret_out)
{
	struct pn_str copy = pn_arena_copy(job->call->arena, in);
	char *out = (char *)(uintptr_t)copy.data;
	unsigned char byte;
	size_t n = 0;

	if (out == NULL)
		return false;
	for (size_t i = 0; i < in.len; i++) {
		byte = (unsigned char)in.data[i];
		if (byte == '%') {
			struct pn_str digits = { in.data + i + 1, 2 };

			if (in.len - i < 3 ||
			    pn_hex_decode(digits, &byte, 1) != 0)
				return false;
			i += 2;
		}
		out[n++] = (char)byte;
	}
	out[n] = '\0';
	*ret_out = (struct pn_str){ out, n };
	return true;
}

static int
read_segment(struct admin_job *job)
{
	struct pn_str name;

	if (job->segment.data == NULL)
		return 0;
	if (!decode(job, job->segment, &name) || !is_text(name))
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "The path \"" PN_STR_FMT "\" is not percent-encoded UTF-8 "
		    "without NUL.",
		    PN_STR_ARG(job->segment));
	job->name = name.data;
	return 0;
}

/* -- the parameters ---------------------------------------------------------- */

static bool
is_taken(const struct admin_route *route, struct pn_str name)
{
	for (size_t i = 0; i < PN_COUNT(parameters); i++)
		if ((route->parameters & (unsigned)parameters[i].bit) != 0 &&
		    pn_str_is(name, parameters[i].name))
			return true;
	return false;
}

static int
refuse_name(struct admin_job *job, struct pn_str name)
{
	char names[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < PN_COUNT(parameters); i++)
		if ((job->route->parameters & (unsigned)parameters[i].bit) != 0)
			len += (size_t)snprintf(names + len,
			    sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
			    parameters[i].name);
	assert(len < sizeof(names));
	return admin_problem(job, ADMIN_BAD_PARAMETER,
	    "%s takes no parameter \"" PN_STR_FMT "\"%s%s.", job->route->path,
	    PN_STR_ARG(name), len > 0 ? ", only " : "", names);
}

static int
read_parameters(struct admin_job *job)
{
	struct pn_str query = job->call->request.query;
	struct pn_error error = { .text = "" };
	int r;

	if (query.len == 0)
		return 0;
	r = pn_form_parse(job->call->arena, query, &job->form, &error);
	if (r < 0)
		return admin_problem(job, ADMIN_NO_MEMORY, " ");
	if (r > 0)
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "What stands behind \"?\" is wrong: %s.", error.text);
	for (size_t i = 0; i < job->form.count; i++) {
		const struct pn_field *field = &job->form.fields[i];

		if (!is_taken(job->route, field->name))
			return refuse_name(job, field->name);
		if (field->value.len == 0 || !is_text(field->value))
			return admin_problem(job, ADMIN_BAD_PARAMETER,
			    PN_STR_FMT " is empty, or not UTF-8 without NUL.",
			    PN_STR_ARG(field->name));
	}
	return 0;
}

const char *
admin_parameter(struct admin_job *job, const char *name)
{
	struct pn_str value = pn_form_get(&job->form, name);

	if (value.data == NULL)
		return NULL;
	/* The form's values have no NUL behind them. Out of memory it would be
	 * a filter that is not there: an empty one finds nothing. */
	value = pn_arena_copy(job->call->arena, value);
	return value.data == NULL ? "" : value.data;
}

int
admin_limit(struct admin_job *job, int64_t *ret_limit)
{
	struct pn_str text = pn_form_get(&job->form, "limit");
	uint64_t limit = ADMIN_LIMIT_DEFAULT;

	if (text.data != NULL &&
	    (pn_parse_uint(text, ADMIN_LIMIT_MAX, &limit) != 0 || limit == 0))
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "limit is \"" PN_STR_FMT "\", not a number from 1 to %d.",
		    PN_STR_ARG(text), (int)ADMIN_LIMIT_MAX);
	*ret_limit = (int64_t)limit;
	return 0;
}

int
admin_since(struct admin_job *job, int64_t *ret_us)
{
	struct pn_str text = pn_form_get(&job->form, "since");

	*ret_us = PN_MOMENT_NONE;
	if (text.data != NULL &&
	    pn_moment_parse_since(text, pn_clock_realtime_us(), ret_us) != 0)
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "since is \"" PN_STR_FMT "\", not "
		    "2026-03-01T10:00:00+08:00 (its \"+\" is %%2B in a URL), "
		    "2026-03-01 or a duration back, such as 24h.",
		    PN_STR_ARG(text));
	return 0;
}

int
admin_word(struct admin_job *job, const char *name, const char *const *words,
    const char **ret_word)
{
	struct pn_str text = pn_form_get(&job->form, name);
	char all[256] = "";
	size_t len = 0;

	*ret_word = NULL;
	if (text.data == NULL)
		return 0;
	for (size_t i = 0; words[i] != NULL; i++) {
		if (pn_str_equal_fold(text, pn_str_from(words[i]))) {
			*ret_word = words[i];
			return 0;
		}
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s",
		    i > 0 ? ", " : "", words[i]);
	}
	assert(len < sizeof(all));
	return admin_problem(job, ADMIN_BAD_PARAMETER,
	    "%s is \"" PN_STR_FMT "\", none of %s.", name, PN_STR_ARG(text),
	    all);
}

int
admin_after_number(struct admin_job *job, int64_t *ret_number)
{
	struct pn_str text = pn_form_get(&job->form, "after");

	*ret_number = 0;
	if (text.data != NULL &&
	    (pn_parse_int64(text, ret_number) != 0 || *ret_number <= 0))
		return admin_problem(job, ADMIN_BAD_PARAMETER,
		    "after is \"" PN_STR_FMT "\", which is no \"next\" of "
		    "this list.",
		    PN_STR_ARG(text));
	return 0;
}

/* -- the body ---------------------------------------------------------------- */

int
admin_input_media_check(struct admin_job *job)
{
	struct pn_str value, type;
	size_t count =
	    pn_request_header(&job->call->request, "Content-Type", &value);

	type = value;
	if (count == 1)
		type = pn_str_trim(pn_str_split(&value, ';'));
	if (count == 1 && pn_str_equal_fold(type, PN_STR("application/json")))
		return 0;
	return admin_problem(job, ADMIN_BAD_MEDIA,
	    "Send a JSON object with Content-Type: application/json.");
}

static int
read_body(struct admin_job *job)
{
	struct pn_error error = { .text = "" };
	int r;

	if (strcmp(job->route->method, "GET") == 0)
		return 0;
	r = pn_json_parse(job->call->request.body, &job->body, &error);
	if (r < 0)
		return admin_problem(job, ADMIN_NO_MEMORY, " ");
	if (r > 0)
		return admin_problem(
		    job, ADMIN_BAD_BODY, "It is no JSON: %s.", error.text);
	if (!json_is_object(job->body))
		return admin_problem(
		    job, ADMIN_BAD_BODY, "It is JSON, but no object.");
	return 0;
}

int
admin_input_read(struct admin_job *job)
{
	int r = read_segment(job);

	if (r == 0)
		r = read_parameters(job);
	return r == 0 ? read_body(job) : r;
}

int
admin_member(struct admin_job *job, const char *name, bool required,
    const char **ret_text)
{
	json_t *value = json_object_get(job->body, name);
	struct pn_str text;

	*ret_text = NULL;
	if (value == NULL || json_is_null(value))
		return !required ? 0
				 : admin_problem(job, ADMIN_BAD_BODY,
				       "\"%s\" is missing.", name);
	if (!json_is_string(value))
		return admin_problem(
		    job, ADMIN_BAD_BODY, "\"%s\" is not a string.", name);
	text = (struct pn_str){ json_string_value(value),
		json_string_length(value) };
	if (pn_str_trim(text).len == 0 || text.len > RECORD_BYTES_MAX ||
	    !is_text(text))
		return admin_problem(job, ADMIN_BAD_BODY,
		    "\"%s\" is empty, longer than %d bytes or has a NUL in "
		    "it.",
		    name, (int)RECORD_BYTES_MAX);
	*ret_text = text.data;
	return 0;
}

int
admin_members_check(struct admin_job *job, const char *const *names)
{
	const char *name;
	json_t *value;

	json_object_foreach(job->body, name, value)
	{
		bool known = false;

		for (size_t i = 0; names[i] != NULL; i++)
			known = known || strcmp(name, names[i]) == 0;
		if (!known)
			return admin_problem(job, ADMIN_BAD_BODY,
			    "There is no member \"%s\" here.", name);
	}
	return 0;
}
