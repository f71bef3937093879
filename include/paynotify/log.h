/*
 * One line a fault, with whom it is about: to the journal, with fields, where
 * stderr is the journal; else logfmt or JSON on stderr. Programs log, libraries
 * return: only http, ingest, store, net, deliver, guard, admin and cmd call
 * this. Any thread; a line is written with one write(2).
 *
 *   could not verify signature: key "ab12" not in keystore
 *
 * lower case, no full stop, names quoted, reason last. Values from outside are
 * escaped and cut; secrets and personal data of the shapes that are known are
 * masked in the message (log_mask.c), but a call site had better not have any.
 *
 * A category a layer: the build compiles each layer with its own, and a line
 * whose category is not listened to costs one relaxed load, since the macros
 * evaluate no argument before that. pn_log_always() does not ask.
 *
 * Lines that are alike - of one call site, about one provider, tenant and
 * subject - are collapsed when they come too fast: ten at once and then one a
 * second are written, the next one telling how many were held back. Debug lines
 * never are: who switches them on wants to see each.
 */
#ifndef PN_LOG_H
#define PN_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

enum pn_log_level {
	PN_LOG_ERR,
	PN_LOG_WARNING,
	PN_LOG_NOTICE,
	PN_LOG_INFO,
	PN_LOG_DEBUG,
	PN_LOG_LEVEL_COUNT
};

enum pn_log_format { PN_LOG_LOGFMT, PN_LOG_JSON, PN_LOG_FORMAT_COUNT };

/* The layers of src/README.md. */
enum pn_log_category {
	PN_LOG_IN_BASE,
	PN_LOG_IN_CODEC,
	PN_LOG_IN_CRYPTO,
	PN_LOG_IN_EVENT,
	PN_LOG_IN_CONF,
	PN_LOG_IN_PROVIDER,
	PN_LOG_IN_STORE,
	PN_LOG_IN_INGEST,
	PN_LOG_IN_HTTP,
	PN_LOG_IN_NET,
	PN_LOG_IN_DELIVER,
	PN_LOG_IN_GUARD,
	PN_LOG_IN_ADMIN,
	PN_LOG_IN_CMD,
	PN_LOG_CATEGORY_COUNT
};

/* By value, NULL-terminated: "err", "logfmt", "base", ... */
extern const char *const pn_log_level_names[PN_LOG_LEVEL_COUNT + 1];
extern const char *const pn_log_format_names[PN_LOG_FORMAT_COUNT + 1];
extern const char *const pn_log_category_names[PN_LOG_CATEGORY_COUNT + 1];

/* The layers' libraries say which they are (CMakeLists.txt); what is no layer
 * is a program or a test of one. */
#ifndef PN_LOG_CATEGORY
#define PN_LOG_CATEGORY PN_LOG_IN_CMD
#endif

/* Whom a line is about; NULL members are left out. */
struct pn_log_about {
	const char *request_id;
	const char *provider;
	const char *tenant;
	const char *subject; /* what else: an endpoint, a route, a verdict */
	struct pn_str key;
	const char *peer;
};

/* -- switches ---------------------------------------------------------------- */

/* What is written from now on: lines up to level, of the categories whose bit
 * is set in debug all, and those of pn_log_always(). Any thread, at any time. */
void pn_log_configure(enum pn_log_level level, unsigned debug);
enum pn_log_level pn_log_level(void);
unsigned pn_log_debug_categories(void); /* bits: 1 << category */
/* On stderr; the journal has a form of its own. */
void pn_log_set_format(enum pn_log_format format);
/* A name -> its value; 1 when it is unknown. */
int pn_log_level_parse(
    struct pn_str name, enum pn_log_level *ret_level) PN_MUSTCHECK;
int pn_log_category_parse(
    struct pn_str name, enum pn_log_category *ret_category) PN_MUSTCHECK;

/* -- lines ------------------------------------------------------------------- */

/* pn_log(level, about, fmt, ...); about may be NULL. */
#define pn_log(level, ...)  PN_LOG_LINE(level, PN_LOG_BURST, __VA_ARGS__)
#define pn_log_err(...)     pn_log(PN_LOG_ERR, NULL, __VA_ARGS__)
#define pn_log_warning(...) pn_log(PN_LOG_WARNING, NULL, __VA_ARGS__)
#define pn_log_notice(...)  pn_log(PN_LOG_NOTICE, NULL, __VA_ARGS__)
#define pn_log_info(...)    pn_log(PN_LOG_INFO, NULL, __VA_ARGS__)
#define pn_log_debug(...)   pn_log(PN_LOG_DEBUG, NULL, __VA_ARGS__)
/* Never held back, and written whatever the level: alarms, each of which
 * somebody has to look at, and what an operator did, which is a record. */
#define pn_log_always(level, ...) PN_LOG_LINE(level, PN_LOG_ALL, __VA_ARGS__)
/* For a state that lasts: one line in interval_us (> 0) reminds of it. */
#define pn_log_every(interval_us, level, ...) \
	PN_LOG_LINE(level, interval_us, __VA_ARGS__)

/* Whether a line of this format and subject would be held back now: before
 * something dear is computed for it. */
bool pn_log_is_held(const struct pn_log_about *about, const char *fmt);
/* Writes how many lines were held back where a flood has ended and nothing came
 * behind it; all: also where it has not. The program calls it every few
 * seconds, and with all at its end. */
void pn_log_tell_held(bool all);

/* -- what the macros are made of ----------------------------------------------- */

/* An interval in microseconds, or one of these. */
#define PN_LOG_BURST INT64_C(0)
#define PN_LOG_ALL   INT64_C(-1)

extern _Atomic unsigned char pn_log_levels[PN_LOG_CATEGORY_COUNT];

static inline bool
pn_log_is_on(enum pn_log_level level, enum pn_log_category category)
{
	return (unsigned char)level <=
	       atomic_load_explicit(
		   &pn_log_levels[category], memory_order_relaxed);
}

#define PN_LOG_LINE(level, interval_us, ...)                                   \
	do {                                                                   \
		if ((interval_us) == PN_LOG_ALL ||                             \
		    pn_log_is_on(level, PN_LOG_CATEGORY))                      \
			pn_log_line(                                           \
			    PN_LOG_CATEGORY, level, interval_us, __VA_ARGS__); \
	} while (0)

void pn_log_line(enum pn_log_category category, enum pn_log_level level,
    int64_t interval_us, const struct pn_log_about *about, const char *fmt, ...)
    PN_PRINTF(5, 6);

#endif
