/*
 * What differs between two configurations: for a reload, which applies some of it
 * and says what of the rest waits for a restart.
 *
 * Values are compared as they are used, by the types of the option table: where a
 * value stands is no difference, and of a file it is its content as much as its
 * name, since keys are rotated in place too.
 */
#include "paynotify/conf_change.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf_internal.h"

/* -- values ----------------------------------------------------------------- */

static bool
text_differs(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a != b;
	return strcmp(a, b) != 0;
}

static bool
strings_differ(const struct pn_conf_strings *a, const struct pn_conf_strings *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++)
		if (text_differs(a->values[i], b->values[i]))
			return true;
	return false;
}

static bool
blocks_differ(const struct pn_conf_cidrs *a, const struct pn_conf_cidrs *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++)
		if (a->blocks[i].bits != b->blocks[i].bits ||
		    memcmp(a->blocks[i].address, b->blocks[i].address,
			sizeof(a->blocks[i].address)) != 0)
			return true;
	return false;
}

/* Both are ours: there is nobody to whom the time it takes would tell. */
static bool
contents_differ(const struct pn_secret *a, const struct pn_secret *b)
{
	return a->len != b->len ||
	       (a->len > 0 && memcmp(a->data, b->data, a->len) != 0);
}

static bool
files_differ(const struct pn_conf_files *a, const struct pn_conf_files *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++)
		if (text_differs(a->files[i].label, b->files[i].label) ||
		    text_differs(a->files[i].path, b->files[i].path) ||
		    contents_differ(&a->files[i].content, &b->files[i].content))
			return true;
	return false;
}

/* What stands at an option's offset is said beside its type, in options.h. */
static bool
value_differs(enum conf_type type, const void *a, const void *b)
{
	switch (type) {
	case CONF_NUMBER:
	case CONF_SIZE:
	case CONF_DURATION:
	case CONF_RATE:
	case CONF_MOMENT: return *(const int64_t *)a != *(const int64_t *)b;
	case CONF_BOOL: return *(const bool *)a != *(const bool *)b;
	case CONF_WORD:
	case CONF_WORDS: return *(const int *)a != *(const int *)b;
	case CONF_DSN:
	case CONF_URL:
	case CONF_ROUTE:
		return text_differs(*(char *const *)a, *(char *const *)b);
	case CONF_ID:
	case CONF_TENANT:
	case CONF_EVENT:
	case CONF_HEADER:
	case CONF_STATUS:
	case CONF_LISTEN: return strings_differ(a, b);
	case CONF_CIDR: return blocks_differ(a, b);
	case CONF_FILE:
	case CONF_LABELLED_FILE:
	case CONF_SECRET_FILE: return files_differ(a, b);
	case CONF_TYPE_COUNT: break;
	}
	assert(!"a type of the table");
	return true;
}

/* -- sections ---------------------------------------------------------------- */

struct telling {
	pn_conf_tell_fn tell; /* NULL: only whether */
	void *payload;
};

static bool
note(const struct telling *telling, const char *section, const char *name,
    const char *key)
{
	char title[PN_TENANT_BYTES_MAX + 16];

	if (telling->tell == NULL)
		return true;
	(void)snprintf(title, sizeof(title), "%s%s%s", section,
	    name == NULL ? "" : " ", name == NULL ? "" : name);
	telling->tell(title, key, telling->payload);
	return true;
}

/* kind: of the rows; a and b: what their offsets count from. */
static bool
section_differs(const struct conf_kind *kind, const char *name, const void *a,
    const void *b, const struct telling *telling)
{
	bool differs = false;

	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		const struct conf_option *option = conf_option_at(i);

		if (strcmp(option->section, kind->section) == 0 &&
		    value_differs(option->type,
			(const char *)a + option->offset,
			(const char *)b + option->offset))
			differs = note(telling, kind->name, name, option->key);
	}
	return differs;
}

/* Sections that have names, in the order of these, which come first. */
struct sections {
	const void *first;
	size_t count, bytes;
};

static const void *
section_at(const struct sections *sections, size_t index)
{
	return (const char *)sections->first + index * sections->bytes;
}

static const char *
name_at(const struct sections *sections, size_t index)
{
	return *(char *const *)section_at(sections, index);
}
static_assert(offsetof(struct pn_conf_deliver, name) == 0 &&
		  offsetof(struct pn_conf_guard_route, name) == 0,
    "a section begins with its name");

static bool
sections_differ(const struct conf_kind *kind, const struct sections *a,
    const struct sections *b, const struct telling *telling)
{
	size_t i = 0, k = 0;
	bool differs = false;

	while (i < a->count || k < b->count) {
		int order = i == a->count ? 1
			    : k == b->count
				? -1
				: strcmp(name_at(a, i), name_at(b, k));

		if (order != 0)
			differs = note(telling, kind->name,
			    order < 0 ? name_at(a, i) : name_at(b, k), NULL);
		else if (section_differs(kind, name_at(a, i), section_at(a, i),
			     section_at(b, k), telling))
			differs = true;
		i += order <= 0;
		k += order >= 0;
	}
	return differs;
}

static struct sections
endpoints_of(const struct pn_conf *conf)
{
	return (struct sections){ conf->delivers, conf->deliver_count,
		sizeof(conf->delivers[0]) };
}

static struct sections
routes_of(const struct pn_conf *conf)
{
	return (struct sections){ conf->guard_routes, conf->guard_route_count,
		sizeof(conf->guard_routes[0]) };
}

/* -- what is asked ------------------------------------------------------------ */

bool
pn_conf_endpoints_differ(const struct pn_conf *a, const struct pn_conf *b)
{
	struct sections of_a = endpoints_of(a), of_b = endpoints_of(b);
	const struct telling none = { NULL, NULL };
	const struct conf_kind *kind;

	for (size_t i = 0; (kind = conf_kind_at(i)) != NULL; i++)
		if (kind->family == CONF_ENDPOINT)
			return sections_differ(kind, &of_a, &of_b, &none);
	assert(!"there is a kind of endpoints");
	return true;
}

/* Of a section that may be left out and has listeners if it is not. */
static bool
is_left_out(const struct conf_kind *kind, const struct pn_conf *conf)
{
	size_t listen = conf_option_find(kind, "listen");
	const char *base = (const char *)conf;

	assert(listen < pn_conf_option_count());
	return ((const struct pn_conf_strings *)(base + conf_option_at(listen)
							    ->offset))
		   ->count == 0;
}

/* One that is new or was taken out is told as a whole: what it then has or had
 * by default is nothing that anyone has changed. */
static void
single_tell(const struct conf_kind *kind, const struct pn_conf *running,
    const struct pn_conf *loaded, const struct telling *telling)
{
	if (kind->optional &&
	    is_left_out(kind, running) != is_left_out(kind, loaded))
		(void)note(telling, kind->name, NULL, NULL);
	else
		(void)section_differs(kind, NULL, running, loaded, telling);
}

void
pn_conf_tell_restart(const struct pn_conf *running,
    const struct pn_conf *loaded, pn_conf_tell_fn tell, void *payload)
{
	const struct telling telling = { tell, payload };
	struct sections now = routes_of(running), then = routes_of(loaded);
	const struct conf_kind *kind;

	assert(tell != NULL);
	for (size_t i = 0; (kind = conf_kind_at(i)) != NULL; i++) {
		if (kind->reloadable)
			continue;
		if (kind->family == CONF_SINGLE)
			single_tell(kind, running, loaded, &telling);
		else if (kind->family == CONF_GUARDED)
			(void)sections_differ(kind, &now, &then, &telling);
		else
			assert(!"accounts and endpoints are reloaded");
	}
}
