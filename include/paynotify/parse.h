/*
 * Strict parsing of numbers, durations and sizes: the whole slice must be the
 * value, no sign, no space, no leading "+", no wrap-around. atoi, strtol and
 * sscanf are banned by tests/lint. Pure; any thread.
 *
 * All return 0, or 1 when the text is not such a value (nothing written).
 */
#ifndef PN_PARSE_H
#define PN_PARSE_H

#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

/* [0-9]+, at most max. Leading zeros are allowed. */
int pn_parse_uint(
    struct pn_str text, uint64_t max, uint64_t *ret_value) PN_MUSTCHECK;
/* An optional "-", then digits; the whole range of int64_t. */
int pn_parse_int64(struct pn_str text, int64_t *ret_value) PN_MUSTCHECK;
/* Digits and a unit: ms, s, m, h, d, y (365 days); 0 needs none. Result in
 * microseconds. */
int pn_parse_duration_us(struct pn_str text, int64_t *ret_us) PN_MUSTCHECK;
/* Digits and an optional unit k or m (1024, 1024 * 1024). Bytes. */
int pn_parse_size_bytes(
    struct pn_str text, uint64_t max, uint64_t *ret_bytes) PN_MUSTCHECK;
/* yes, no, on, off, true, false. */
int pn_parse_bool(struct pn_str text, bool *ret_value) PN_MUSTCHECK;

#endif
