/*
 * Sections: "[server]", of which there is one, or "[alipay shop1]" and
 * "[deliver app]", of which there are many, told apart by name. "[guard]" and
 * "[guard charges]" are two kinds that share the first word. A section is
 * noted even if no option follows, since the INI library tells only of
 * options, and an empty account must be an error and not nothing.
 *
 * When all files are read the sections are sorted: those that stand twice are
 * next to each other then, and the arrays they become are sorted too.
 */
#include "conf_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { KINDS_MAX = 16 };

static void *
single_place(struct conf_load *load, const struct conf_section *section)
{
	(void)section;
	return load->conf;
}

static void *
account_place(struct conf_load *load, const struct conf_section *section)
{
	struct pn_conf *conf = load->conf;
	struct pn_conf_account *account;

	assert(conf->account_count < load->family_counts[CONF_ACCOUNT]);
	account = &conf->accounts[conf->account_count++];
	account->provider = conf_copy(load, pn_str_from(section->kind->name));
	account->tenant = conf_copy(load, pn_str_from(section->name));
	account->place = section->place;
	return account;
}

static void *
endpoint_place(struct conf_load *load, const struct conf_section *section)
{
	struct pn_conf *conf = load->conf;
	struct pn_conf_deliver *endpoint;

	assert(conf->deliver_count < load->family_counts[CONF_ENDPOINT]);
	endpoint = &conf->delivers[conf->deliver_count++];
	endpoint->name = conf_copy(load, pn_str_from(section->name));
	endpoint->place = section->place;
	return endpoint;
}

static void *
guard_route_place(struct conf_load *load, const struct conf_section *section)
{
	struct pn_conf *conf = load->conf;
	struct pn_conf_guard_route *route;

	assert(conf->guard_route_count < load->family_counts[CONF_GUARDED]);
	route = &conf->guard_routes[conf->guard_route_count++];
	route->name = conf_copy(load, pn_str_from(section->name));
	route->place = section->place;
	return route;
}

/* One row a family. */
static const struct {
	const char *what;    /* the second word is; NULL: there is none */
	const char *example; /* of it */
	size_t max;          /* sections; of the single ones, repeats */
	/* The struct that the options' offsets count from. */
	void *(*place)(
	    struct conf_load *load, const struct conf_section *section);
} families[CONF_FAMILY_COUNT] = {
	[CONF_SINGLE] = { NULL, NULL, PN_CONF_REPEAT_MAX, single_place },
	[CONF_ACCOUNT] = { "tenant", "shop1", PN_CONF_ACCOUNTS_MAX,
	    account_place },
	[CONF_ENDPOINT] = { "endpoint", "app", PN_ENDPOINTS_MAX,
	    endpoint_place },
	[CONF_GUARDED] = { "route", "charges", PN_GUARD_ROUTES_MAX,
	    guard_route_place },
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool
conf_name_is_valid(struct pn_str name)
{
	if (name.len < 1 || name.len > PN_TENANT_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* Of two kinds with one first word the one that a second word, or none, is
 * right for. NULL after telling why. */
static const struct conf_kind *
kind_find(struct conf_load *load, struct pn_conf_place place,
    struct pn_str name, bool has_second)
{
	const char *names[KINDS_MAX];
	const struct conf_kind *kind, *found = NULL;
	const char *near, *text;
	size_t count = 0;

	for (; (kind = conf_kind_at(count)) != NULL; count++) {
		bool takes_second = families[kind->family].what != NULL;

		assert(count < KINDS_MAX);
		if (pn_str_is(name, kind->name) &&
		    (found == NULL || takes_second == has_second))
			found = kind;
		names[count] = kind->name;
	}
	if (found != NULL)
		return found;
	text = conf_copy(load, name);
	if (text == NULL)
		return NULL;
	near = pn_nearest(text, names, count);
	for (size_t i = 0; near == NULL && i < count; i++)
		if (pn_str_equal_fold(name, pn_str_from(names[i])))
			near = names[i];
	if (near != NULL)
		conf_fail(load, place,
		    "unknown section \"%s\"; did you mean \"%s\"?", text, near);
	else
		conf_fail(load, place, "unknown section \"%s\"", text);
	return NULL;
}

static bool
name_check(struct conf_load *load, struct pn_conf_place place,
    const struct conf_kind *kind, struct pn_str name)
{
	const char *what = families[kind->family].what;

	if (what == NULL) {
		if (name.len == 0)
			return true;
		conf_fail(load, place,
		    "section [%s] takes no second word: \"" PN_STR_FMT "\"",
		    kind->name, PN_STR_ARG(name));
		return false;
	}
	if (name.len == 0) {
		conf_fail(load, place,
		    "section [%s] needs the %s's name: [%s %s]", kind->name,
		    what, kind->name, families[kind->family].example);
		return false;
	}
	if (conf_name_is_valid(name))
		return true;
	conf_fail(load, place,
	    "%s \"" PN_STR_FMT "\" must be 1 to %d of a-z 0-9 _ -", what,
	    PN_STR_ARG(name), (int)PN_TENANT_BYTES_MAX);
	return false;
}

/* "alipay shop1" */
static const char *
title_make(
    struct conf_load *load, const struct conf_kind *kind, struct pn_str name)
{
	struct pn_str title;

	if (name.len == 0)
		return kind->name;
	title = pn_arena_printf(
	    load->arena, "%s " PN_STR_FMT, kind->name, PN_STR_ARG(name));
	if (title.data == NULL)
		load->memory_out = true;
	return title.data;
}

ptrdiff_t
conf_section_add(
    struct conf_load *load, struct pn_conf_place place, struct pn_str text)
{
	struct pn_str word = pn_str_trim(text), name = { NULL, 0 };
	const struct conf_kind *kind;
	struct conf_section *sections, *section;
	size_t *count;

	for (size_t i = 0; i < word.len; i++)
		if (is_blank(word.data[i])) {
			name = pn_str_trim(
			    (struct pn_str){ word.data + i, word.len - i });
			word.len = i;
			break;
		}
	kind = kind_find(load, place, word, name.len > 0);
	if (kind == NULL || !name_check(load, place, kind, name))
		return CONF_NO_SECTION;
	count = &load->family_counts[kind->family];
	if (*count == families[kind->family].max) {
		conf_fail(load, place, "more than %zu sections such as [%s]",
		    *count, kind->section);
		return CONF_NO_SECTION;
	}
	sections = conf_grow(load, load->sections, load->section_count,
	    &load->section_size, sizeof(*sections));
	if (sections == NULL)
		return CONF_NO_SECTION;
	load->sections = sections;
	section = &sections[load->section_count];
	*section = (struct conf_section){ .kind = kind, .place = place };
	section->title = title_make(load, kind, name);
	if (families[kind->family].what != NULL)
		section->name = conf_copy(load, name);
	if (load->memory_out)
		return CONF_NO_SECTION;
	(*count)++;
	return (ptrdiff_t)load->section_count++;
}

static int
section_compare(const void *a, const void *b)
{
	const struct conf_section *const *left = a, *const *right = b;
	int order = strcmp((*left)->title, (*right)->title);

	if (order != 0)
		return order;
	return *left < *right ? -1 : *left > *right;
}

int
conf_sections_place(struct conf_load *load, const char *only)
{
	struct pn_conf *conf = load->conf;
	size_t count = load->section_count;
	struct conf_section **sorted;

	sorted = conf_alloc(load, (count + 1) * sizeof(*sorted));
	conf->accounts = conf_alloc(load,
	    (load->family_counts[CONF_ACCOUNT] + 1) * sizeof(*conf->accounts));
	conf->delivers = conf_alloc(load,
	    (load->family_counts[CONF_ENDPOINT] + 1) * sizeof(*conf->delivers));
	conf->guard_routes =
	    conf_alloc(load, (load->family_counts[CONF_GUARDED] + 1) *
				 sizeof(*conf->guard_routes));
	if (load->memory_out)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &load->sections[i];
	qsort(sorted, count, sizeof(*sorted), section_compare);
	for (size_t i = 0; i < count; i++) {
		struct conf_section *section = sorted[i];
		enum conf_family family = section->kind->family;

		if (i > 0 && strcmp(sorted[i - 1]->title, section->title) == 0)
			conf_fail(load, section->place,
			    "section [%s] stands twice, first in %s:%d",
			    section->title, sorted[i - 1]->place.file,
			    sorted[i - 1]->place.line);
		if (only == NULL || (family == CONF_ACCOUNT &&
					strcmp(section->title, only) == 0))
			section->base = families[family].place(load, section);
	}
	return load->memory_out ? -ENOMEM : 0;
}
