/*
 * The tables of options.c: which sections there are, which options, and all
 * about them that is not code. Private to src/conf.
 */
#ifndef PN_CONF_OPTIONS_H
#define PN_CONF_OPTIONS_H

#include <stddef.h>

#include "paynotify/conf.h"
#include "paynotify/conf_option_doc.h"

/* How a value is written, and what stands at the option's offset. */
enum conf_type {
	CONF_NUMBER,   /* int64_t */
	CONF_SIZE,     /* int64_t, bytes */
	CONF_DURATION, /* int64_t, microseconds */
	CONF_RATE,     /* int64_t, per second; "off" is 0 */
	CONF_MOMENT,   /* int64_t, us; "beginning" is PN_MOMENT_NONE */
	CONF_BOOL,     /* bool */
	CONF_WORD,     /* an enum; one of option.words */
	CONF_WORDS,    /* unsigned, a bit for each of option.words */
	CONF_DSN,      /* struct conf_text; what is in it is libpq's affair */
	CONF_URL,      /* struct conf_text */
	CONF_ROUTE,    /* struct conf_text: a method and a path */
	CONF_ID,       /* struct pn_conf_strings */
	CONF_TENANT,   /* struct pn_conf_strings */
	CONF_EVENT,    /* struct pn_conf_strings: types of events */
	CONF_HEADER,   /* struct pn_conf_strings: names of header fields */
	CONF_STATUS,   /* struct pn_conf_strings: "503", "5xx" */
	CONF_LISTEN,   /* struct pn_conf_strings */
	CONF_CIDR,     /* struct pn_conf_cidrs */
	CONF_FILE,     /* struct pn_conf_files, public */
	CONF_LABELLED_FILE, /* struct pn_conf_files, public, "ID:path" */
	CONF_SECRET_FILE,   /* struct pn_conf_files, secret */
	CONF_TYPE_COUNT
};

/* A text that can be judged only when all is loaded, by a layer that knows how:
 * so its place is kept. Two members each of the structs asserted here. */
struct conf_text {
	char *text;
	struct pn_conf_place place;
};
static_assert(offsetof(struct pn_conf_database, dsn_place) -
			  offsetof(struct pn_conf_database, dsn) ==
		      offsetof(struct conf_text, place) &&
		  offsetof(struct pn_conf_database, admin_dsn_place) -
			  offsetof(struct pn_conf_database, admin_dsn) ==
		      offsetof(struct conf_text, place) &&
		  offsetof(struct pn_conf_deliver, url_place) -
			  offsetof(struct pn_conf_deliver, url) ==
		      offsetof(struct conf_text, place) &&
		  offsetof(struct pn_conf_guard_route, path_place) -
			  offsetof(struct pn_conf_guard_route, path) ==
		      offsetof(struct conf_text, place) &&
		  offsetof(struct pn_conf_guard_route, upstream_place) -
			  offsetof(struct pn_conf_guard_route, upstream) ==
		      offsetof(struct conf_text, place),
    "a place stands behind its text");

enum conf_flags {
	CONF_REPEATABLE = 1 << 0,
	CONF_REQUIRED = 1 << 1,
};

/* One row an option: everything about it that is not code. */
struct conf_option {
	const char *section, *key; /* section: as of its kind */
	enum conf_type type;
	unsigned flags;
	size_t offset;    /* in what the section becomes */
	int64_t min, max; /* of the number; of the bytes of a file */
	/* CONF_WORD and CONF_WORDS: the words by value; a list: its defaults, if they are
	 * several. NULL-terminated. */
	const char *const *words;
	const char *default_value; /* NULL: none */
	const char *doc;
};

struct conf_load;
struct conf_section;

/* What a section becomes: section.c has a row for each. */
enum conf_family {
	CONF_SINGLE,   /* "[server]": members of struct pn_conf */
	CONF_ACCOUNT,  /* "[alipay shop1]": a struct pn_conf_account */
	CONF_ENDPOINT, /* "[deliver app]": a struct pn_conf_deliver */
	CONF_GUARDED,  /* "[guard charges]": a struct pn_conf_guard_route */
	CONF_FAMILY_COUNT
};

/* One row a kind of section. */
struct conf_kind {
	const char *name;    /* the first word; [guard] and [guard NAME] share
			      * one, the second tells them apart */
	const char *section; /* what its options' rows call it */
	enum conf_family family;
	bool optional;   /* no section, no defaults */
	bool reloadable; /* SIGHUP applies what is changed in it */
	/* Relations between options; NULL: there are none. */
	void (*check)(
	    struct conf_load *load, const struct conf_section *section);
};

/* A bound of the number of rows, for arrays of one element a row. */
enum { CONF_ROWS_MAX = 96 };

const struct conf_option *conf_option_at(size_t index);
/* The defaults of a list that has several, NULL-terminated; else NULL. */
const char *const *conf_option_defaults(const struct conf_option *option);
size_t conf_option_find(const struct conf_kind *kind, const char *key);
const struct conf_kind *conf_kind_at(size_t index); /* NULL at the end */
const char *conf_type_name(enum conf_type type);

#endif
