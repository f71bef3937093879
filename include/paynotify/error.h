/*
 * The three-way return and the text that goes with a fault.
 *
 *   r < 0   a fault, -errno like; passed up untouched
 *   r == 0  done
 *   r > 0   a named outcome of that function, enumerated in its header
 *
 * A function whose fault an operator must understand fills a struct pn_error:
 * what was wrong, where (file:line, field), and what to do about it, lower
 * case, no full stop. Libraries return, programs log.
 */
#ifndef PN_ERROR_H
#define PN_ERROR_H

#include "paynotify/compiler.h"
#include "paynotify/limits.h"

struct pn_error {
	char text[PN_ERROR_TEXT_BYTES_MAX];
};

/* Sets the text (error may be NULL) and returns r, so that a caller can write
 * return pn_error_set(error, -EINVAL, "%s:%d: ...", ...). */
int pn_error_set(struct pn_error *error, int r, const char *fmt, ...)
    PN_PRINTF(3, 4);
/* Puts text before what is there: "conf.d/a.conf:3: " + old text. */
int pn_error_prefix(struct pn_error *error, int r, const char *fmt, ...)
    PN_PRINTF(3, 4);

#endif
