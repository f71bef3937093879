/*
 * From the provider's charset to UTF-8 that PostgreSQL and JSON take. Pure.
 */
#ifndef PN_CHARSET_H
#define PN_CHARSET_H

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/str.h"

/* Converts text said to be in charset (case-insensitive: utf-8, gbk, gb2312,
 * gb18030; empty or unknown: utf-8 if it is well-formed, else GB18030). The
 * GB family is decoded as GB18030, their superset. Bodies lie: where text is
 * well-formed UTF-8 but no valid GB18030, it is taken as UTF-8. Undecodable
 * bytes become U+FFFD; NUL stays. In the arena; data NULL: no memory. */
struct pn_str pn_charset_to_utf8(
    struct pn_arena *arena, struct pn_str charset, struct pn_str text);
/* UTF-8 to GBK, for samples; 1 when a character has no place there. */
int pn_charset_from_utf8(struct pn_arena *arena, const char *charset,
    struct pn_str text, struct pn_str *ret_text) PN_MUSTCHECK;

#endif
