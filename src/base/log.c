/*
 * The log: one line a problem, with who it is about.
 *
 * Two ways out. Where stderr is the journal (systemd says so in JOURNAL_STREAM,
 * and device and inode are compared, since a child may have been given another
 * stderr), a line goes there with fields that journalctl can match:
 * journalctl PAYNOTIFY_TENANT=shop1. Everywhere else it is logfmt:
 *
 *   level=warning req=0195... provider=alipay tenant=shop1 msg="could not ..."
 *
 * Values come from strangers. Control bytes, ill-formed UTF-8 and C1 controls
 * are written as \xHH, so that nobody forges a line or paints a terminal; a
 * long value is cut, so that a line never passes PN_LOG_LINE_BYTES_MAX. A line
 * is one write(2): lines of several threads do not mix.
 *
 * State: the level and the answer to "is it the journal", asked once. Failure
 * to write is dropped: there is nowhere left to tell it. It never allocates,
 * and leaves errno as it was.
 */
#include "paynotify/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION 1
#include <systemd/sd-journal.h>

#include "paynotify/limits.h"
#include "paynotify/moment.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

enum {
	MESSAGE_BYTES_MAX = 2048, /* before escaping */
	FIELD_BYTES_MAX = 512,    /* a field, before escaping */
	FIELDS_MAX = 8,
};

static const char *const level_names[] = {
	[PN_LOG_ERR] = "err",
	[PN_LOG_WARNING] = "warning",
	[PN_LOG_NOTICE] = "notice",
	[PN_LOG_INFO] = "info",
	[PN_LOG_DEBUG] = "debug",
};

static _Atomic int log_level = PN_LOG_INFO;
static pthread_once_t journal_once = PTHREAD_ONCE_INIT;
static bool journal_is_stderr;

/* A line being built. What no longer fits is cut: after the first piece that
 * was refused nothing is added, so that there is no hole and no half escape. */
struct line {
	char data[PN_LOG_LINE_BYTES_MAX];
	size_t len;
	bool full;
};

enum { LINE_END_BYTES = 2 }; /* the closing quote and the line feed */

void
pn_log_set_level(enum pn_log_level level)
{
	assert(level >= PN_LOG_ERR && level <= PN_LOG_DEBUG);
	atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

int
pn_log_level_parse(struct pn_str name, enum pn_log_level *ret_level)
{
	for (int i = PN_LOG_ERR; i <= PN_LOG_DEBUG; i++) {
		if (pn_str_is(name, level_names[i])) {
			*ret_level = (enum pn_log_level)i;
			return 0;
		}
	}
	return 1;
}

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
line_add(struct line *line, const char *data, size_t len)
{
	assert(line->len <= sizeof(line->data) - LINE_END_BYTES);
	if (line->full ||
	    len > sizeof(line->data) - LINE_END_BYTES - line->len) {
		line->full = true;
		return;
	}
	memcpy(line->data + line->len, data, len);
	line->len += len;
}

/* Whether the byte at i may stand as it is in a line of text. */
static bool
is_plain(struct pn_str s, size_t i, bool utf8)
{
	unsigned char c = (unsigned char)s.data[i];

	if (c < 0x20 || c == 0x7f)
		return false;
	if (c < 0x80)
		return true;
	if (!utf8)
		return false;
	/* C1 controls, U+0080 to U+009F, are c2 80 to c2 9f. */
	if (c == 0xc2 && (unsigned char)s.data[i + 1] < 0xa0)
		return false;
	return i == 0 || (unsigned char)s.data[i - 1] != 0xc2 || c >= 0xa0;
}

/* At most bytes_max bytes, without the half character that cutting leaves. */
static struct pn_str
cut_text(struct pn_str s, size_t bytes_max)
{
	size_t bad, prefix;

	s.len = bytes_max;
	prefix = pn_str_utf8_prefix(s, &bad);
	if (prefix + bad == s.len)
		s.len = prefix;
	return s;
}

static void
line_add_escaped(
    struct line *line, struct pn_str s, size_t bytes_max, bool quotes)
{
	char escape[8];
	bool utf8, cut = s.len > bytes_max;

	if (cut)
		s = cut_text(s, bytes_max);
	utf8 = pn_str_is_utf8(s);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (quotes && (c == '"' || c == '\\')) {
			escape[0] = '\\';
			escape[1] = c;
			line_add(line, escape, 2);
		} else if (is_plain(s, i, utf8)) {
			line_add(line, &c, 1);
		} else {
			(void)snprintf(escape, sizeof(escape), "\\x%02x",
			    (unsigned)(unsigned char)c);
			line_add(line, escape, 4);
		}
	}
	if (cut)
		line_add(line, "...", 3);
}

static void
line_add_field(
    struct line *line, const char *name, struct pn_str value, bool quotes)
{
	if (value.data == NULL)
		return;
	line_add(line, " ", 1);
	line_add(line, name, strlen(name));
	line_add(line, quotes ? "=\"" : "=", quotes ? 2 : 1);
	line_add_escaped(line, value, FIELD_BYTES_MAX, true);
	if (quotes)
		line_add(line, "\"", 1);
}

static void
write_stderr(enum pn_log_level level, const struct pn_log_about *about,
    struct pn_str message)
{
	struct line line;

	line.len = 0;
	line.full = false;
	line_add(&line, "level=", 6);
	line_add(&line, level_names[level], strlen(level_names[level]));
	if (about != NULL) {
		line_add_field(
		    &line, "req", pn_str_from(about->request_id), false);
		line_add_field(
		    &line, "provider", pn_str_from(about->provider), false);
		line_add_field(
		    &line, "tenant", pn_str_from(about->tenant), false);
		line_add_field(&line, "key", about->key, true);
		line_add_field(&line, "peer", pn_str_from(about->peer), false);
	}
	line_add(&line, " msg=\"", 6);
	line_add_escaped(&line, message, MESSAGE_BYTES_MAX, true);
	memcpy(line.data + line.len, "\"\n", LINE_END_BYTES);
	line.len += LINE_END_BYTES;
	if (write(STDERR_FILENO, line.data, line.len) < 0) {
		/* Nowhere left to tell it. */
	}
}

static void
journal_field(struct line *line, struct iovec *fields, int *count,
    const char *name, struct pn_str value, size_t bytes_max)
{
	size_t start = line->len;

	if (value.data == NULL)
		return;
	assert(*count < FIELDS_MAX);
	line_add(line, name, strlen(name));
	line_add(line, "=", 1);
	if (line->full)
		return; /* half a name would make the journal refuse it all */
	line_add_escaped(line, value, bytes_max, false);
	fields[*count].iov_base = line->data + start;
	fields[*count].iov_len = line->len - start;
	(*count)++;
}

static int
write_journal(enum pn_log_level level, const struct pn_log_about *about,
    struct pn_str message)
{
	static const char priorities[] = "01234567";
	struct iovec fields[FIELDS_MAX];
	struct line line;
	int count = 0;

	line.len = 0;
	line.full = false;
	/* The message first: a long key must not push it out of the line. */
	journal_field(
	    &line, fields, &count, "MESSAGE", message, MESSAGE_BYTES_MAX);
	journal_field(&line, fields, &count, "PRIORITY",
	    (struct pn_str){ priorities + level, 1 }, 1);
	journal_field(&line, fields, &count, "SYSLOG_IDENTIFIER",
	    pn_str_from(program_invocation_short_name), FIELD_BYTES_MAX);
	if (about != NULL) {
		journal_field(&line, fields, &count, "PAYNOTIFY_REQUEST",
		    pn_str_from(about->request_id), FIELD_BYTES_MAX);
		journal_field(&line, fields, &count, "PAYNOTIFY_PROVIDER",
		    pn_str_from(about->provider), FIELD_BYTES_MAX);
		journal_field(&line, fields, &count, "PAYNOTIFY_TENANT",
		    pn_str_from(about->tenant), FIELD_BYTES_MAX);
		journal_field(&line, fields, &count, "PAYNOTIFY_KEY",
		    about->key, FIELD_BYTES_MAX);
		journal_field(&line, fields, &count, "PAYNOTIFY_PEER",
		    pn_str_from(about->peer), FIELD_BYTES_MAX);
	}
	return sd_journal_sendv(fields, count);
}

static void PN_PRINTF(4, 0)
    log_line(enum pn_log_level level, const struct pn_log_about *about,
	unsigned held, const char *fmt, va_list ap)
{
	char text[MESSAGE_BYTES_MAX];
	struct pn_str message = { text, 0 };
	int saved = errno, len;

	len = vsnprintf(text, sizeof(text), fmt, ap);
	if (len > 0)
		message.len = strnlen(text, sizeof(text));
	if (len >= (int)sizeof(text))
		message = cut_text(message, message.len);
	if (held > 0 && message.len < sizeof(text)) {
		len = snprintf(text + message.len, sizeof(text) - message.len,
		    " (%u like it held back)", held);
		if (len > 0)
			message.len = strnlen(text, sizeof(text));
	}
	(void)pthread_once(&journal_once, journal_look);
	if (!journal_is_stderr || write_journal(level, about, message) < 0)
		write_stderr(level, about, message);
	errno = saved;
}

static bool
is_silent(enum pn_log_level level)
{
	assert(level >= PN_LOG_ERR && level <= PN_LOG_DEBUG);
	return (int)level >
	       atomic_load_explicit(&log_level, memory_order_relaxed);
}

void
pn_log(enum pn_log_level level, const struct pn_log_about *about,
    const char *fmt, ...)
{
	va_list ap;

	if (is_silent(level))
		return;
	va_start(ap, fmt);
	log_line(level, about, 0, fmt, ap);
	va_end(ap);
}

void
pn_log_gated(struct pn_log_gate *gate, long long interval_us,
    enum pn_log_level level, const struct pn_log_about *about, const char *fmt,
    ...)
{
	long long now = pn_clock_monotonic_us(), next;
	va_list ap;

	if (is_silent(level))
		return;
	next = atomic_load(&gate->next_us);
	/* Of the threads that see the gate open, one gets through. */
	if (now < next || !atomic_compare_exchange_strong(
			      &gate->next_us, &next, now + interval_us)) {
		atomic_fetch_add(&gate->held, 1);
		return;
	}
	va_start(ap, fmt);
	log_line(level, about, atomic_exchange(&gate->held, 0), fmt, ap);
	va_end(ap);
}
