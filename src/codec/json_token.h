/*
 * The tokens of JSON, copied in the one spelling that each has in the canonical
 * form, for json_canonical.c. Private to this folder. Pure; any thread.
 */
#ifndef PN_CODEC_JSON_TOKEN_H
#define PN_CODEC_JSON_TOKEN_H

#include "paynotify/compiler.h"
#include "paynotify/str.h"

/* UTF-8 goes from at, which is before end, to where there is room for as much:
 * what is copied is never longer than what it was read from. */
struct pn_json_copier {
	const char *at, *end;
	char *to;
};

static inline void
pn_json_copy_byte(struct pn_json_copier *text)
{
	*text->to++ = *text->at++;
}

/* Copy what begins at at, and move behind it. False: it is no such token, and
 * how far it was copied is not said. */
bool pn_json_copy_string(struct pn_json_copier *text) PN_MUSTCHECK;
bool pn_json_copy_number(struct pn_json_copier *text) PN_MUSTCHECK;
bool
pn_json_copy_word(struct pn_json_copier *text, struct pn_str word) PN_MUSTCHECK;

#endif
