/*
 * What the files of conf share. Loading has two halves: reading (ini.c, with
 * file.c) turns the files into sections and items, text with its place;
 * applying (value.c, by the rows of options.c) turns items into typed values.
 * conf.c runs both. Errors are collected, so that an operator sees them all.
 */
#ifndef PN_CONF_INTERNAL_H
#define PN_CONF_INTERNAL_H

#include <sys/types.h>

#include "options.h"
#include "paynotify/arena.h"
#include "paynotify/conf.h"
#include "paynotify/nearest.h"

struct conf_section {
	const struct conf_kind *kind;
	const char *name;  /* "shop1"; NULL for a single one */
	const char *title; /* "alipay shop1" */
	struct pn_conf_place place;
	bool given[CONF_ROWS_MAX]; /* by option: it stands here */
	bool wrong; /* an option was refused: relations are not checked */
	void *base; /* what the offsets count from; NULL: not wanted */
};

struct conf_item {
	size_t section;
	struct pn_conf_place place;
	const char *key, *value;
};

struct conf_load {
	struct pn_arena *arena;
	struct pn_conf *conf;
	struct pn_error *error; /* the text so far */
	size_t error_bytes, error_count, error_told;
	bool memory_out;

	struct conf_section *sections;
	size_t section_count, section_size;
	size_t family_counts[CONF_FAMILY_COUNT]; /* of them */
	struct conf_item *items;
	size_t item_count, item_size;
	bool items_full; /* told already */
	char **includes; /* paths still to be read */
	size_t include_count;

	/* The group of the main file: for root, which is in no group of the
	 * daemon's and checks on its behalf. */
	bool main_group_known;
	gid_t main_group;
};

/* error.c: collects one line; the text keeps as many as fit. */
void conf_fail(struct conf_load *load, struct pn_conf_place place,
    const char *fmt, ...) PN_PRINTF(3, 4);
/* Collects one line of the warnings. */
void conf_warn(struct conf_load *load, struct pn_conf_place place,
    const char *fmt, ...) PN_PRINTF(3, 4);
/* Of a value that was refused: how a comment behind it would be written, if it
 * has what looks like one; else "". */
const char *conf_comment_hint(struct pn_str value);

/* ini.c: splits a file's text into sections and items. -ENOMEM. */
int conf_ini_read(struct conf_load *load, const char *file, struct pn_str text,
    bool is_main) PN_MUSTCHECK;

/* section.c: from the text between the brackets. Index, or CONF_NO_SECTION
 * after telling why. */
enum { CONF_NO_SECTION = -1 };
ptrdiff_t conf_section_add(
    struct conf_load *load, struct pn_conf_place place, struct pn_str text);
/* Refuses sections that stand twice and gives each that is wanted its place in
 * the configuration, in order of the titles. only: the title of the one account
 * that is wanted; NULL: all. -ENOMEM. */
int conf_sections_place(struct conf_load *load, const char *only) PN_MUSTCHECK;
/* What a tenant and an endpoint may be called. */
bool conf_name_is_valid(struct pn_str name);

/* file.c */
enum conf_guard {
	CONF_GUARD_WRITE, /* others must not write it */
	CONF_GUARD_READ,  /* others must not even read it */
};
/* Reads a whole file of at most bytes_max, with its group. 0; -errno with the
 * reason in ret_error. */
int conf_file_read(const struct conf_load *load, const char *path,
    enum conf_guard guard, size_t bytes_max, struct pn_secret *ret_content,
    gid_t *ret_group, struct pn_error *ret_error) PN_MUSTCHECK;
/* Adds the paths that an include pattern names, sorted. */
void conf_include_expand(
    struct conf_load *load, struct pn_conf_place place, const char *pattern);
/* Absolute, or relative to the folder of the file that names it; credentials
 * expanded. NULL after telling why. */
char *conf_path_resolve(
    struct conf_load *load, struct pn_conf_place place, const char *path);
/* With the credentials folder filled in. NULL after telling why. */
char *conf_expand(
    struct conf_load *load, struct pn_conf_place place, const char *text);

/* value.c: 0; 1 after telling why. */
int conf_value_set(struct conf_load *load, const struct conf_option *option,
    void *base, struct pn_conf_place place, const char *value) PN_MUSTCHECK;
/* list.c: the values that are lists. */
int conf_list_add(struct conf_load *load, const struct conf_option *option,
    void *data, struct pn_conf_place place, const char *value) PN_MUSTCHECK;
/* check_account.c: what no single row can say of accounts. */
void
conf_check_alipay(struct conf_load *load, const struct conf_section *section);
void
conf_check_wechat(struct conf_load *load, const struct conf_section *section);
/* Beside each other. */
void conf_check_accounts(struct conf_load *load);

/* check.c: of all else. */
void
conf_check_deliver(struct conf_load *load, const struct conf_section *section);
void conf_check_guard_route(
    struct conf_load *load, const struct conf_section *section);
/* What sections must be together, when each is complete. */
void conf_check_whole(struct conf_load *load);

/* http.c: words of HTTP that options are made of. */
/* What is wrong with "POST /v1/charges", as the end of a sentence that begins
 * with it; NULL: nothing. */
const char *conf_route_fault(struct pn_str text);
bool conf_header_is_valid(struct pn_str name);
bool conf_status_is_valid(struct pn_str text);

/* url.c: what is wrong with a URL that something is to be sent to, as the end
 * of a sentence that begins with it; NULL: nothing. */
const char *conf_url_fault(struct pn_str text);
/* Of a URL without a fault: others can read what is sent to it. */
bool conf_url_is_exposed(struct pn_str text);

/* cidr.c: 0, or 1. */
int conf_cidr_parse(
    struct pn_str text, struct pn_conf_cidr *ret_block) PN_MUSTCHECK;

/* In the load's arena; note when memory is out and return NULL. */
void *conf_alloc(struct conf_load *load, size_t bytes);
char *conf_copy(struct conf_load *load, struct pn_str text);
/* Room for one more element in an array that grows by doubling. */
void *conf_grow(struct conf_load *load, void *array, size_t count, size_t *size,
    size_t bytes);

#endif
