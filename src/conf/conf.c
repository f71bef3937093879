/*
 * Loading a configuration: read the files into sections and items, give each
 * section its place, apply the items by the option table, fill in defaults,
 * check what is missing. Errors are collected; with one, nothing is returned.
 *
 * Invariants of a loaded configuration: all strings and arrays live in its
 * arena; accounts are sorted by provider and tenant, each pair once, endpoints
 * and routes by name; every required option is there; every file was readable,
 * and safe from others.
 *
 * It deliberately does not look into keys and certificates: what is in a file
 * is the provider's to judge.
 */
#include "paynotify/conf.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf_internal.h"

/* What pn_conf_load hands out is the first member. */
struct owner {
	struct pn_conf conf;
	struct pn_arena *arena;
};

static_assert(offsetof(struct owner, conf) == 0,
    "free_all finds the owner by the address of the configuration");

enum { KINDS_MAX = 16, KEYS_MAX = 64 };

/* Lists of files hold secrets outside the arena. */
static void
files_done(struct pn_conf_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		pn_secret_done(&files->files[i].content);
	files->count = 0;
}

static void
base_done(const char *section, void *base)
{
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		const struct conf_option *option = conf_option_at(i);

		if (strcmp(option->section, section) != 0)
			continue;
		if (option->type == CONF_FILE ||
		    option->type == CONF_LABELLED_FILE ||
		    option->type == CONF_SECRET_FILE)
			files_done((void *)((char *)base + option->offset));
	}
}

static void
free_all(struct pn_conf *conf)
{
	struct owner *owner = (struct owner *)conf;
	const struct conf_kind *kind;

	for (size_t i = 0; (kind = conf_kind_at(i)) != NULL; i++)
		if (kind->family == CONF_SINGLE)
			base_done(kind->section, conf);
	for (size_t i = 0; i < conf->account_count; i++)
		base_done(conf->accounts[i].provider, &conf->accounts[i]);
	for (size_t i = 0; i < conf->deliver_count; i++)
		base_done("deliver", &conf->delivers[i]);
	for (size_t i = 0; i < conf->guard_route_count; i++)
		base_done("guard NAME", &conf->guard_routes[i]);
	pn_arena_free(owner->arena);
	free(owner);
}

int
pn_conf_warn(struct pn_conf *conf, struct pn_conf_place place, const char *text)
{
	struct owner *owner = (struct owner *)conf;
	const char *before = conf->warnings;
	char line[16] = "";
	struct pn_str warnings;

	if (place.line > 0)
		(void)snprintf(line, sizeof(line), ":%d", place.line);
	warnings = pn_arena_printf(owner->arena, "%s%s%s%s: %s",
	    before != NULL ? before : "", before != NULL ? "\n" : "",
	    place.file, line, text);
	if (warnings.data == NULL)
		return -ENOMEM;
	conf->warnings = warnings.data;
	return 0;
}

struct pn_conf *
pn_conf_ref(struct pn_conf *conf)
{
	unsigned more = atomic_fetch_add_explicit(
	    &conf->references_more, 1, memory_order_relaxed);

	assert(more < UINT_MAX);
	return conf;
}

void
pn_conf_unref(struct pn_conf *conf)
{
	if (conf == NULL)
		return;
	/* Whoever frees sees all that the others have done before. */
	if (atomic_fetch_sub_explicit(
		&conf->references_more, 1, memory_order_acq_rel) == 0)
		free_all(conf);
}

void
pn_conf_unrefp(struct pn_conf **conf)
{
	pn_conf_unref(*conf);
	*conf = NULL;
}

static int
account_compare(const void *a, const void *b)
{
	const struct pn_conf_account *left = a, *right = b;
	int order = strcmp(left->provider, right->provider);

	return order != 0 ? order : strcmp(left->tenant, right->tenant);
}

const struct pn_conf_account *
pn_conf_account_find(
    const struct pn_conf *conf, struct pn_str provider, struct pn_str tenant)
{
	char name[PN_TENANT_BYTES_MAX + 1], kind[PN_TENANT_BYTES_MAX + 1];
	struct pn_conf_account wanted = { .provider = kind, .tenant = name };

	if (provider.len >= sizeof(kind) || tenant.len >= sizeof(name) ||
	    provider.len == 0 || tenant.len == 0 || conf->account_count == 0)
		return NULL;
	memcpy(kind, provider.data, provider.len);
	kind[provider.len] = '\0';
	memcpy(name, tenant.data, tenant.len);
	name[tenant.len] = '\0';
	/* A NUL inside would make a prefix pass for the whole. */
	if (strlen(kind) != provider.len || strlen(name) != tenant.len)
		return NULL;
	return bsearch(&wanted, conf->accounts, conf->account_count,
	    sizeof(wanted), account_compare);
}

static void
unknown_key(struct conf_load *load, const struct conf_section *section,
    const struct conf_item *item)
{
	const char *names[KEYS_MAX], *near, *elsewhere = NULL;
	size_t count = 0;

	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		const struct conf_option *option = conf_option_at(i);

		assert(count < KEYS_MAX);
		if (strcmp(option->section, section->kind->section) == 0)
			names[count++] = option->key;
		else if (strcmp(option->key, item->key) == 0)
			elsewhere = option->section;
	}
	near = pn_nearest(item->key, names, count);
	if (near != NULL)
		conf_fail(load, item->place,
		    "[%s] unknown option \"%s\"; did you mean \"%s\"?",
		    section->title, item->key, near);
	else if (elsewhere != NULL)
		conf_fail(load, item->place,
		    "[%s] unknown option \"%s\"; it belongs in [%s]",
		    section->title, item->key, elsewhere);
	else
		conf_fail(load, item->place, "[%s] unknown option \"%s\"",
		    section->title, item->key);
}

static void
item_apply(struct conf_load *load, const struct conf_item *item)
{
	struct conf_section *section = &load->sections[item->section];
	size_t index = conf_option_find(section->kind, item->key);
	const struct conf_option *option;

	if (index == pn_conf_option_count()) {
		unknown_key(load, section, item);
		return;
	}
	option = conf_option_at(index);
	if (section->given[index] && (option->flags & CONF_REPEATABLE) == 0) {
		conf_fail(load, item->place, "[%s] %s is given twice",
		    section->title, option->key);
		return;
	}
	section->given[index] = true;
	if (section->base != NULL && conf_value_set(load, option, section->base,
					 item->place, item->value) != 0)
		section->wrong = true;
}

static void
default_set(struct conf_load *load, const struct conf_option *option,
    void *base, const char *value)
{
	const struct pn_conf_place nowhere = { "default", 0 };
	int r = conf_value_set(load, option, base, nowhere, value);

	assert(r == 0 || load->memory_out);
}

/* Defaults of what was not given, and what must be given. */
static void
section_complete(struct conf_load *load, struct conf_section *section)
{
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		const struct conf_option *option = conf_option_at(i);
		const char *const *defaults = conf_option_defaults(option);

		if (strcmp(option->section, section->kind->section) != 0 ||
		    section->given[i])
			continue;
		if ((option->flags & CONF_REQUIRED) != 0) {
			conf_fail(load, section->place, "[%s] %s is required",
			    section->title, option->key);
			section->wrong = true;
		} else if (option->default_value != NULL) {
			default_set(
			    load, option, section->base, option->default_value);
		}
		for (size_t j = 0; defaults != NULL && defaults[j] != NULL; j++)
			default_set(load, option, section->base, defaults[j]);
	}
	if (!section->wrong && section->kind->check != NULL)
		section->kind->check(load, section);
}

/* Sections that are not in the file have their defaults all the same. */
static void
absent_complete(struct conf_load *load)
{
	const struct conf_kind *kind;

	for (size_t i = 0; (kind = conf_kind_at(i)) != NULL; i++) {
		struct conf_section section = {
			.kind = kind,
			.title = kind->name,
			.base = load->conf,
		};
		bool present = kind->family != CONF_SINGLE || kind->optional;

		assert(i < KINDS_MAX);
		for (size_t j = 0; !present && j < load->section_count; j++)
			present = load->sections[j].kind == kind &&
				  load->sections[j].base != NULL;
		if (!present)
			section_complete(load, &section);
	}
}

static int
apply(struct conf_load *load, const char *only_account)
{
	const struct pn_conf *conf = load->conf;
	int r = conf_sections_place(load, only_account);

	if (r < 0)
		return r;
	/* By title is by provider and tenant: a blank sorts before all that a
	 * name may have. pn_conf_account_find relies on it. */
	for (size_t i = 1; i < conf->account_count; i++)
		assert(account_compare(
			   &conf->accounts[i - 1], &conf->accounts[i]) <= 0);
	for (size_t i = 0; i < load->item_count && !load->memory_out; i++)
		item_apply(load, &load->items[i]);
	for (size_t i = 0; i < load->section_count; i++)
		if (load->sections[i].base != NULL)
			section_complete(load, &load->sections[i]);
	absent_complete(load);
	if (only_account == NULL)
		conf_check_whole(load);
	return load->memory_out ? -ENOMEM : 0;
}

static int
file_load(struct conf_load *load, const char *path, bool is_main)
{
	struct pn_secret content = { NULL, 0 };
	struct pn_conf_place place = { path, 0 };
	struct pn_error error;
	gid_t group;
	int r;

	r = conf_file_read(load, path, CONF_GUARD_WRITE, PN_CONF_FILE_BYTES_MAX,
	    &content, &group, &error);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		conf_fail(load, place, "%s", error.text);
		return is_main ? r : 0;
	}
	if (is_main) {
		load->main_group = group;
		load->main_group_known = true;
	}
	r = conf_ini_read(load, path,
	    (struct pn_str){ (const char *)content.data, content.len },
	    is_main);
	pn_secret_done(&content);
	return r;
}

/* "alipay/shop1" as its section is titled, "alipay shop1". */
static char *
title_of(struct conf_load *load, const char *account)
{
	char *title = conf_copy(load, pn_str_from(account)), *slash;

	slash = title == NULL ? NULL : strchr(title, '/');
	if (slash != NULL)
		*slash = ' ';
	return title;
}

static int
load_all(struct conf_load *load, const char *only_account)
{
	const char *path = load->conf->path;
	struct pn_conf_place place = { path, 0 };
	char *title = NULL;
	int r = file_load(load, path, true);

	for (size_t i = 0; r == 0 && i < load->include_count; i++)
		r = file_load(load, load->includes[i], false);
	if (r < 0)
		return r;
	if (only_account != NULL) {
		title = title_of(load, only_account);
		if (title == NULL)
			return -ENOMEM;
	}
	r = apply(load, title);
	if (r < 0)
		return r;
	if (only_account != NULL && load->conf->account_count == 0)
		conf_fail(load, place, "no section [%s]", title);
	return load->error_count > 0 ? -EINVAL : 0;
}

int
pn_conf_load(const char *path, const char *only_account,
    struct pn_conf **ret_conf, struct pn_error *ret_error)
{
	struct owner *owner = calloc(1, sizeof(*owner));
	struct pn_error error = { "" };
	struct conf_load load = { .error = &error };
	int r = -ENOMEM;

	assert(path != NULL);
	if (owner == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	owner->arena = pn_arena_new(PN_CONF_ARENA_BYTES_MAX);
	if (owner->arena == NULL) {
		free(owner);
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	}
	load.arena = owner->arena;
	load.conf = &owner->conf;
	owner->conf.path = conf_copy(&load, pn_str_from(path));
	if (owner->conf.path != NULL)
		r = load_all(&load, only_account);
	if (r < 0) {
		pn_conf_unref(&owner->conf);
		return pn_error_set(ret_error, r, "%s",
		    r == -ENOMEM ? "out of memory" : error.text);
	}
	*ret_conf = &owner->conf;
	return 0;
}
