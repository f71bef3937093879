/*
 * One line a problem, on stderr: logfmt, or with sd-daemon level prefixes and
 * journal fields when stderr is the journal. Programs log, libraries return:
 * only http, ingest, store, net, deliver, guard, admin and cmd call this.
 * Any thread; a line is written with one write(2).
 *
 *   could not verify signature: key "ab12" not in keystore
 *
 * lower case, no full stop, names quoted, reason last. Values from outside are
 * escaped (control bytes, quotes) and cut.
 */
#ifndef PN_LOG_H
#define PN_LOG_H

#include "paynotify/compiler.h"
#include "paynotify/str.h"

enum pn_log_level {
	PN_LOG_ERR = 3, /* numbers as in syslog */
	PN_LOG_WARNING = 4,
	PN_LOG_NOTICE = 5,
	PN_LOG_INFO = 6,
	PN_LOG_DEBUG = 7,
};

/* Who it is about; NULL members are left out. */
struct pn_log_about {
	const char *request_id;
	const char *provider;
	const char *tenant;
	struct pn_str key;
	const char *peer;
};

void pn_log_set_level(enum pn_log_level level);
/* "err", "warning", ... -> level; 1 when the name is unknown. */
int pn_log_level_parse(
    struct pn_str name, enum pn_log_level *ret_level) PN_MUSTCHECK;

/* about may be NULL. */
void pn_log(enum pn_log_level level, const struct pn_log_about *about,
    const char *fmt, ...) PN_PRINTF(3, 4);

#define pn_log_err(...)     pn_log(PN_LOG_ERR, NULL, __VA_ARGS__)
#define pn_log_warning(...) pn_log(PN_LOG_WARNING, NULL, __VA_ARGS__)
#define pn_log_notice(...)  pn_log(PN_LOG_NOTICE, NULL, __VA_ARGS__)
#define pn_log_info(...)    pn_log(PN_LOG_INFO, NULL, __VA_ARGS__)
#define pn_log_debug(...)   pn_log(PN_LOG_DEBUG, NULL, __VA_ARGS__)

/* At most one line in interval_us for each gate; the next line tells how many
 * were held back. Declare the gate static at file scope. */
struct pn_log_gate {
	_Atomic long long next_us;
	_Atomic unsigned held;
};
void pn_log_gated(struct pn_log_gate *gate, long long interval_us,
    enum pn_log_level level, const struct pn_log_about *about, const char *fmt,
    ...) PN_PRINTF(5, 6);

#endif
