/*
 * Section lines: "[server]", or "[alipay shop1]" for an account. A section is
 * noted even if no option follows, since the INI library tells only of
 * options, and an empty account must be an error and not nothing.
 *
 * That a section stands only once is checked after reading, when the sections
 * are sorted: see conf.c.
 */
#include "conf_internal.h"

#include <assert.h>

enum { KINDS_MAX = 16 };

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
tenant_is_valid(struct pn_str tenant)
{
	if (tenant.len < 1 || tenant.len > PN_TENANT_BYTES_MAX)
		return false;
	for (size_t i = 0; i < tenant.len; i++) {
		char c = tenant.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* NULL after telling why. */
static const struct conf_kind *
kind_find(
    struct conf_load *load, struct pn_conf_place place, struct pn_str name)
{
	const char *names[KINDS_MAX];
	const struct conf_kind *kind;
	const char *near, *text;
	size_t count = 0;

	for (; (kind = conf_kind_at(count)) != NULL; count++) {
		assert(count < KINDS_MAX);
		if (pn_str_is(name, kind->name))
			return kind;
		names[count] = kind->name;
	}
	text = conf_copy(load, name);
	if (text == NULL)
		return NULL;
	near = conf_nearest(text, names, count);
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
tenant_check(struct conf_load *load, struct pn_conf_place place,
    const struct conf_kind *kind, struct pn_str tenant)
{
	if (!kind->account) {
		if (tenant.len == 0)
			return true;
		conf_fail(load, place,
		    "section [%s] takes no second word: \"" PN_STR_FMT "\"",
		    kind->name, PN_STR_ARG(tenant));
		return false;
	}
	if (tenant.len == 0) {
		conf_fail(load, place,
		    "section [%s] needs the tenant's name: [%s shop1]",
		    kind->name, kind->name);
		return false;
	}
	if (tenant_is_valid(tenant))
		return true;
	conf_fail(load, place,
	    "tenant \"" PN_STR_FMT "\" must be 1 to %d of a-z 0-9 _ -",
	    PN_STR_ARG(tenant), (int)PN_TENANT_BYTES_MAX);
	return false;
}

ptrdiff_t
conf_section_add(
    struct conf_load *load, struct pn_conf_place place, struct pn_str text)
{
	struct pn_str name = pn_str_trim(text), tenant = { NULL, 0 };
	const struct conf_kind *kind;
	struct conf_section *sections, *section;

	for (size_t i = 0; i < name.len; i++)
		if (is_blank(name.data[i])) {
			tenant = pn_str_trim(
			    (struct pn_str){ name.data + i, name.len - i });
			name.len = i;
			break;
		}
	kind = kind_find(load, place, name);
	if (kind == NULL || !tenant_check(load, place, kind, tenant))
		return CONF_NO_SECTION;
	if (load->section_count == PN_CONF_ACCOUNTS_MAX) {
		conf_fail(load, place, "more than %d sections",
		    (int)PN_CONF_ACCOUNTS_MAX);
		return CONF_NO_SECTION;
	}
	sections = conf_grow(load, load->sections, load->section_count,
	    &load->section_size, sizeof(*sections));
	if (sections == NULL)
		return CONF_NO_SECTION;
	load->sections = sections;
	section = &sections[load->section_count];
	*section = (struct conf_section){ .kind = kind, .place = place };
	section->title = kind->name;
	if (kind->account) {
		struct pn_str title = pn_arena_printf(load->arena,
		    "%s " PN_STR_FMT, kind->name, PN_STR_ARG(tenant));

		section->tenant = conf_copy(load, tenant);
		section->title = title.data;
		if (section->tenant == NULL || title.data == NULL) {
			load->memory_out = true;
			return CONF_NO_SECTION;
		}
	}
	return (ptrdiff_t)load->section_count++;
}
