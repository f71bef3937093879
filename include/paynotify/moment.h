/*
 * Times: int64_t microseconds since 1970 UTC, everywhere. Parsers are strict
 * about the form (the whole slice, all digits) and about the calendar (no
 * 30 February, no hour 24). The parsers and formatters are pure; the clocks
 * are called by programs only: providers get the time passed in.
 */
#ifndef PN_MOMENT_H
#define PN_MOMENT_H

#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

#define PN_SECOND_US      INT64_C(1000000)
#define PN_MILLISECOND_US INT64_C(1000)
#define PN_MOMENT_NONE    INT64_MIN /* "no such time" */

int64_t pn_clock_realtime_us(void);
int64_t pn_clock_monotonic_us(void);

/* Each returns 0, or 1 when the text has not that form. */
/* yyyy-MM-dd HH:mm:ss, optionally .S to .SSSSSS; Beijing time (UTC+8, no
 * daylight saving): Alipay's gmt_*, WeChat v2's success_time. */
int pn_moment_parse_beijing(struct pn_str text, int64_t *ret_us) PN_MUSTCHECK;
/* yyyyMMddHHmmss, Beijing time: WeChat v2's time_end. */
int pn_moment_parse_compact(struct pn_str text, int64_t *ret_us) PN_MUSTCHECK;
/* RFC 3339 with any offset or Z, optional fraction: WeChat v3. */
int pn_moment_parse_rfc3339(struct pn_str text, int64_t *ret_us) PN_MUSTCHECK;
/* What people give as a beginning: RFC 3339, a date (UTC), or a duration back
 * from now ("24h"). */
int pn_moment_parse_since(
    struct pn_str text, int64_t now_us, int64_t *ret_us) PN_MUSTCHECK;

enum { PN_MOMENT_TEXT_BYTES = 40 };
/* 2026-03-01T02:00:05Z, or with .287 or .287123 when there is a fraction.
 * ret_text gets a NUL. Any time: before 1970 it is the first one that there is a
 * text for, past the year 9999 the last. */
void pn_moment_format_rfc3339(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES]);
/* The same three forms as above, for samples. */
void pn_moment_format_beijing(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES]);
void pn_moment_format_compact(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES]);
/* 2026-03-01T10:00:05+08:00 */
void pn_moment_format_rfc3339_beijing(
    int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES]);

#endif
