/*
 * Strict JSON (RFC 8259) on top of jansson: UTF-8 only, no duplicate names, no
 * lone surrogates, no trailing bytes, depth at most PN_JSON_DEPTH_MAX, integers
 * that do not fit int64_t and numbers longer than PN_JSON_NUMBER_BYTES_MAX
 * refused. "\u0000" in strings is allowed, not in names. Only pn_json_canonical()
 * takes more. Pure.
 *
 * json_t objects are owned as jansson says; use json_auto_t or PN_CLEANUP.
 */
#ifndef PN_JSON_H
#define PN_JSON_H

#include <jansson.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

/* 0; 1 when it is not such JSON (error says what and where); -ENOMEM.
 * *ret_value is a new reference. */
int pn_json_parse(struct pn_str text, json_t **ret_value,
    struct pn_error *ret_error) PN_MUSTCHECK;
void pn_json_freep(json_t **value); /* for PN_CLEANUP */

/* Borrowed from the value; data NULL when absent, not a string or empty: an
 * empty value counts as absent. Keeps embedded NUL. */
struct pn_str pn_json_text(const json_t *object, const char *name);
/* 0 and the value; 1 absent or null; 2 present and not an integer. */
int pn_json_int64(
    const json_t *object, const char *name, int64_t *ret_value) PN_MUSTCHECK;

/* Text of a JSON value fit for PostgreSQL json/jsonb: the text is taken as it
 * is (key order, numbers), only an escaped NUL becomes an escaped U+FFFD.
 * text must have passed pn_json_parse. In the arena; data NULL: no memory. */
struct pn_str pn_json_sanitise(struct pn_arena *arena, struct pn_str text);
/* Text that is the same for two documents of one meaning: no white space,
 * members by name, strings written in one way; numbers as they are, so that 1.0
 * and 1 differ. Of all that is JSON by RFC 8259, also of what pn_json_parse()
 * refuses: numbers, depth, lone surrogates, and names that stand twice, whose
 * members stay in the order in which they came. In the arena, not longer than
 * text. 0; 1: it is not JSON; -ENOMEM. */
int pn_json_canonical(struct pn_str text, struct pn_arena *arena,
    struct pn_str *ret_canonical) PN_MUSTCHECK;
/* Appends a JSON string of UTF-8 text with quotes; NUL and ill-formed bytes
 * become U+FFFD. */
struct pn_buf;
void pn_json_add_string(struct pn_buf *out, struct pn_str text);
/* Append a member, `"name":value`, with a comma before it unless it comes right
 * behind a "{" or at the beginning. Text that is empty and a time that is
 * PN_MOMENT_NONE are null; a time is RFC 3339 in UTC. */
void pn_json_add_text(struct pn_buf *out, const char *name, struct pn_str text);
void pn_json_add_number(struct pn_buf *out, const char *name, int64_t value);
void pn_json_add_bool(struct pn_buf *out, const char *name, bool value);
void pn_json_add_moment(struct pn_buf *out, const char *name, int64_t us);
void pn_json_add_null(struct pn_buf *out, const char *name);
/* The text of an array, `a,b`; and JSON as it is. */
void
pn_json_add_array(struct pn_buf *out, const char *name, struct pn_str members);
void pn_json_add_raw(struct pn_buf *out, const char *name, struct pn_str json);

#endif
