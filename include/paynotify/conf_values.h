/*
 * What the options of a configuration are made of: lists, files, address
 * blocks, each with the place it stands at. Part of conf.h; immutable likewise.
 */
#ifndef PN_CONF_VALUES_H
#define PN_CONF_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "paynotify/log.h"
#include "paynotify/secret.h"
#include "paynotify/str.h"

/* [log] and [retention]: values and nothing else. */
struct pn_conf_log {
	enum pn_log_level level;
	enum pn_log_format format;
	unsigned debug; /* a bit a category: all of it is written */
};

struct pn_conf_retention {
	int64_t key_hot_us;
	int64_t receipts_us; /* receipts and attempts of deliveries */
	int64_t evidence_us; /* evidence and the payload of events */
};

/* Where a value stands: for messages. */
struct pn_conf_place {
	const char *file;
	int line;
};

struct pn_conf_strings {
	char **values;
	struct pn_conf_place *places;
	size_t count;
};

/* A file that an option names, with its content. */
struct pn_conf_file {
	char *label; /* "PUB_KEY_ID_..." before the colon, or NULL */
	char *path;
	struct pn_conf_place place;
	struct pn_secret content; /* secrets: one trailing newline removed */
};

/* Borrowed: the file's content as text. */
static inline struct pn_str
pn_conf_file_text(const struct pn_conf_file *file)
{
	return (struct pn_str){ (const char *)file->content.data,
		file->content.len };
}

struct pn_conf_files {
	struct pn_conf_file *files;
	size_t count;
};

/* [template TENANT]: see src/provider/README.md. */
struct pn_conf_template {
	struct pn_conf_strings merchant;  /* exactly 1 value */
	struct pn_conf_files secret_file; /* exactly 1 file */
};

/* An address block: "10.0.0.0/8", "2400:b200::/32", "127.0.0.1". */
struct pn_conf_cidr {
	unsigned char address[16]; /* IPv4 mapped into ::ffff:0:0/96 */
	unsigned bits;
};

struct pn_conf_cidrs {
	struct pn_conf_cidr *blocks;
	size_t count;
};

#endif
