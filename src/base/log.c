/*
 * The log: one line a fault, with whom it is about.
 *
 * Two ways out. Where stderr is the journal (systemd says so in JOURNAL_STREAM,
 * and device and inode are compared, since a child may have been given another
 * stderr), a line goes there with fields that journalctl can match:
 * journalctl PAYNOTIFY_TENANT=shop1. Everywhere else it is text on stderr:
 *
 *   time=2026-03-01T02:00:05.123456Z level=warning category=ingest req=0195...
 *   provider=alipay tenant=shop1 msg="could not ..."
 *
 * or the same as a JSON object; all on one line, written with one write(2), so
 * that lines of several threads do not mix.
 *
 * On its way a line is admitted or held back (log_flood.c), its message made,
 * masked (log_mask.c) and escaped (log_form.c).
 *
 * State: a level a category, which is all that a silent line looks at; what
 * those were made from, for who asks; the format; and the answer to "is it the
 * journal", asked once. Failure to write is dropped: there is nowhere left to
 * tell it. It never allocates, and leaves errno as it was.
 */
#include "paynotify/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION 1
#include <systemd/sd-journal.h>

#include "paynotify/moment.h"

#include "log_internal.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

const char *const pn_log_level_names[PN_LOG_LEVEL_COUNT + 1] = {
	[PN_LOG_ERR] = "err",
	[PN_LOG_WARNING] = "warning",
	[PN_LOG_NOTICE] = "notice",
	[PN_LOG_INFO] = "info",
	[PN_LOG_DEBUG] = "debug",
};

const char *const pn_log_format_names[PN_LOG_FORMAT_COUNT + 1] = {
	[PN_LOG_LOGFMT] = "logfmt",
	[PN_LOG_JSON] = "json",
};

const char *const pn_log_category_names[PN_LOG_CATEGORY_COUNT + 1] = {
	[PN_LOG_IN_BASE] = "base",
	[PN_LOG_IN_CODEC] = "codec",
	[PN_LOG_IN_CRYPTO] = "crypto",
	[PN_LOG_IN_EVENT] = "event",
	[PN_LOG_IN_CONF] = "conf",
	[PN_LOG_IN_PROVIDER] = "provider",
	[PN_LOG_IN_STORE] = "store",
	[PN_LOG_IN_INGEST] = "ingest",
	[PN_LOG_IN_HTTP] = "http",
	[PN_LOG_IN_NET] = "net",
	[PN_LOG_IN_DELIVER] = "deliver",
	[PN_LOG_IN_GUARD] = "guard",
	[PN_LOG_IN_ADMIN] = "admin",
	[PN_LOG_IN_CMD] = "cmd",
};

_Atomic unsigned char pn_log_levels[PN_LOG_CATEGORY_COUNT] = {
	[0 ... PN_LOG_CATEGORY_COUNT - 1] = PN_LOG_INFO,
};
/* Both in one word, so that who asks never sees half a change. */
static _Atomic unsigned long switches = PN_LOG_INFO;
enum { SWITCHES_LEVEL_BITS = 8 };
static_assert(PN_LOG_CATEGORY_COUNT + SWITCHES_LEVEL_BITS <= 32,
    "a level and a bit a category are one word");

static _Atomic int stderr_format = PN_LOG_LOGFMT;
static pthread_once_t journal_once = PTHREAD_ONCE_INIT;
static bool journal_is_stderr;

/* -- switches ---------------------------------------------------------------- */

void
pn_log_configure(enum pn_log_level level, unsigned debug)
{
	assert(level < PN_LOG_LEVEL_COUNT);
	assert(debug < 1U << PN_LOG_CATEGORY_COUNT);
	atomic_store(
	    &switches, (unsigned long)debug << SWITCHES_LEVEL_BITS | level);
	for (unsigned i = 0; i < PN_LOG_CATEGORY_COUNT; i++)
		atomic_store_explicit(&pn_log_levels[i],
		    (debug & 1U << i) != 0 ? PN_LOG_DEBUG : level,
		    memory_order_relaxed);
}

enum pn_log_level
pn_log_level(void)
{
	unsigned long mask = (1UL << SWITCHES_LEVEL_BITS) - 1;

	return (enum pn_log_level)(atomic_load(&switches) & mask);
}

unsigned
pn_log_debug_categories(void)
{
	return (unsigned)(atomic_load(&switches) >> SWITCHES_LEVEL_BITS);
}

void
pn_log_set_format(enum pn_log_format format)
{
	assert(format < PN_LOG_FORMAT_COUNT);
	atomic_store(&stderr_format, format);
}

/* 1: none of the names. */
static int
find_name(struct pn_str name, const char *const *names, int *ret_value)
{
	for (int i = 0; names[i] != NULL; i++) {
		if (pn_str_is(name, names[i])) {
			*ret_value = i;
			return 0;
		}
	}
	return 1;
}

int
pn_log_level_parse(struct pn_str name, enum pn_log_level *ret_level)
{
	int value, r = find_name(name, pn_log_level_names, &value);

	if (r == 0)
		*ret_level = (enum pn_log_level)value;
	return r;
}

int
pn_log_category_parse(struct pn_str name, enum pn_log_category *ret_category)
{
	int value, r = find_name(name, pn_log_category_names, &value);

	if (r == 0)
		*ret_category = (enum pn_log_category)value;
	return r;
}

/* -- out --------------------------------------------------------------------- */

/* JOURNAL_STREAM is "<device>:<inode>" in decimal. */
static void
journal_look(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char expected[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return;
	(void)snprintf(expected, sizeof(expected), "%ju:%ju",
	    (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	/* sd_journal_sendv() says it is done where there is no socket to send
	 * to, as in a chroot, and the line would be lost. */
	journal_is_stderr =
	    strcmp(stream, expected) == 0 && access(JOURNAL_SOCKET, W_OK) == 0;
}

static void
write_out(const struct log_line *line)
{
	struct iovec fields[LOG_FIELDS_MAX];
	struct log_text text;
	int count;

	(void)pthread_once(&journal_once, journal_look);
	if (journal_is_stderr) {
		count = log_form_fields(
		    line, program_invocation_short_name, &text, fields);
		if (sd_journal_sendv(fields, count) >= 0)
			return;
	}
	log_form_line(
	    line, (enum pn_log_format)atomic_load(&stderr_format), &text);
	if (write(STDERR_FILENO, text.data, text.len) < 0) {
		/* Nowhere left to tell it. */
	}
}

/* message: masked, in a buffer of LOG_TEXT_BYTES_MAX. A line that is written only
 * to tell them must not look as if it had just happened: ago_us, else 0. */
static void
add_held(struct pn_str *message, char *text, unsigned held, int64_t ago_us)
{
	char ago[48] = "";
	int len;

	if (held == 0)
		return;
	assert(message->data == text && message->len < LOG_TEXT_BYTES_MAX);
	if (ago_us >= PN_SECOND_US)
		(void)snprintf(ago, sizeof(ago), ", the last %lld s ago",
		    (long long)(ago_us / PN_SECOND_US));
	len = snprintf(text + message->len, LOG_TEXT_BYTES_MAX - message->len,
	    " (%u like it held back%s)", held, ago);
	if (len > 0)
		message->len = strnlen(text, LOG_TEXT_BYTES_MAX);
}

static void PN_PRINTF(4, 0) admitted(struct log_line *line, uint64_t id,
    unsigned held, const char *fmt, va_list ap)
{
	char text[LOG_TEXT_BYTES_MAX], masked[LOG_TEXT_BYTES_MAX];
	char key[LOG_TEXT_BYTES_MAX];
	struct pn_str message = { text, 0 };
	int len;

	len = vsnprintf(text, sizeof(text), fmt, ap);
	if (len > 0)
		message.len = strnlen(text, sizeof(text));
	if (len >= (int)sizeof(text))
		message = log_form_whole(message);
	line->message = log_mask(message, masked);
	/* The gateway's keys are the clients' own words; all others are made of
	 * the numbers of orders. */
	if (line->category == PN_LOG_IN_GUARD && line->about.key.len > 0)
		line->about.key = log_mask(line->about.key, key);
	log_flood_written(id, line);
	add_held(&line->message, masked, held, 0);
	write_out(line);
}

void
pn_log_line(enum pn_log_category category, enum pn_log_level level,
    int64_t interval_us, const struct pn_log_about *about, const char *fmt, ...)
{
	struct log_line line = {
		.category = category,
		.level = level,
		.time_us = pn_clock_realtime_us(),
	};
	int saved = errno;
	unsigned held = 0;
	uint64_t id = 0;
	va_list ap;

	assert(category < PN_LOG_CATEGORY_COUNT && level < PN_LOG_LEVEL_COUNT);
	if (about != NULL)
		line.about = *about;
	if (interval_us != PN_LOG_ALL && level != PN_LOG_DEBUG) {
		id = log_flood_id(about, fmt);
		if (!log_flood_admits(
			id, &line, interval_us, pn_clock_monotonic_us(), &held))
			return;
	}
	va_start(ap, fmt);
	admitted(&line, id, held, fmt, ap);
	va_end(ap);
	errno = saved;
}

bool
pn_log_is_held(const struct pn_log_about *about, const char *fmt)
{
	return log_flood_is_shut(
	    log_flood_id(about, fmt), pn_clock_monotonic_us());
}

void
pn_log_tell_held(bool all)
{
	struct log_flood_texts texts;
	char text[LOG_TEXT_BYTES_MAX];
	struct log_line line;
	unsigned held;
	size_t at = 0;

	while (log_flood_next(
	    &at, all, pn_clock_monotonic_us(), &line, &texts, &held)) {
		assert(line.message.len < sizeof(text));
		memcpy(text, line.message.data, line.message.len);
		line.message.data = text;
		add_held(&line.message, text, held,
		    pn_clock_monotonic_us() - line.time_us);
		line.time_us = pn_clock_realtime_us();
		write_out(&line);
	}
}
