/*
 * application/x-www-form-urlencoded, decoded exactly once. Names and values
 * are bytes in the sender's charset. Pure; any thread.
 *
 * Refused: a name that occurs twice, a pair without "=", "%" not followed by
 * two hex digits, an empty name, a decoded name that holds "&", "=" or NUL (it
 * would hide fields in the string that is signed), more fields than
 * PN_FORM_FIELDS_MAX. An empty body has no fields.
 */
#ifndef PN_FORM_H
#define PN_FORM_H

#include <stddef.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/str.h"

struct pn_field {
	struct pn_str name, value;
};

struct pn_form {
	struct pn_field *fields; /* sorted by name, as bytes */
	size_t count;
};

/* 0; 1 when it is not such a form (error says why, field and position);
 * -ENOMEM. Everything lives in the arena. */
int pn_form_parse(struct pn_arena *arena, struct pn_str body,
    struct pn_form *ret_form, struct pn_error *ret_error) PN_MUSTCHECK;
/* The value of a field; data NULL when absent. Binary search. */
struct pn_str pn_form_get(const struct pn_form *form, const char *name);
/* Appends value in Java URLEncoder's style ("+" for space, "*-_." raw, other
 * %XX upper case), as Alipay sends it. */
struct pn_buf;
void pn_form_encode(struct pn_buf *out, struct pn_str value);

#endif
