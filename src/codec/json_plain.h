/*
 * Plain JSON, the usual one, for json.c. Private to this folder. Pure; any
 * thread.
 */
#ifndef PN_CODEC_JSON_PLAIN_H
#define PN_CODEC_JSON_PLAIN_H

#include <jansson.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

/* A new reference, to what jansson would read; NULL: the text is not plain, or
 * memory is out, and jansson must say what is to be said of it. */
json_t *pn_json_plain(struct pn_str text) PN_MUSTCHECK;

/* How many bytes stand before the first quote, backslash or control byte: what
 * a JSON string holds as it is, if it is UTF-8. */
size_t pn_json_plain_bytes(struct pn_str text);

#endif
