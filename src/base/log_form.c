/*
 * A line's form: logfmt, JSON, or the fields of the journal.
 *
 * One way to escape serves all three: that of JSON, which is what parsers of
 * logfmt undo within quotes too. Values come from strangers, so control bytes,
 * C1 controls and characters that reorder or break a line (U+2028, the bidi
 * controls) are escaped, so that nobody forges a line or paints a terminal;
 * what is not UTF-8 becomes U+FFFD, and the line is UTF-8 whatever came in.
 *
 * Each field has a budget of escaped bytes, the message what is left: a line
 * never passes PN_LOG_LINE_BYTES_MAX, which a pipe takes whole, and a long value
 * is cut with "..." without harm to the form or to the other fields.
 */
#include "log_internal.h"

#include <assert.h>
#include <stdio.h>

#include "paynotify/moment.h"

enum {
	ESCAPE_BYTES_MAX = 6, /* \u0001 */
	WORD_BYTES_MAX = 128, /* of a field that is a word */
	KEY_BYTES_MAX = PN_KEY_BYTES_MAX,
	NAMES_BYTES_MAX = 256, /* names, quotes and blanks of all fields */
	END_BYTES = 3,         /* "}\n behind a message */
	MESSAGE_BYTES_MIN = 1024,
};

static_assert(9 * WORD_BYTES_MAX + KEY_BYTES_MAX + NAMES_BYTES_MAX +
		      MESSAGE_BYTES_MIN + END_BYTES <=
		  PN_LOG_LINE_BYTES_MAX,
    "whatever the fields hold, there is room for a message");

static const char dots[] = "...";
enum { DOTS_BYTES = sizeof(dots) - 1 };

static void
add(struct log_text *text, const char *data, size_t len)
{
	assert(len <= sizeof(text->data) - text->len);
	memcpy(text->data + text->len, data, len);
	text->len += len;
}

static void
add_text(struct log_text *text, const char *data)
{
	add(text, data, strlen(data));
}

struct pn_str
log_form_whole(struct pn_str text)
{
	size_t bad, prefix = pn_str_utf8_prefix(text, &bad);

	if (prefix + bad == text.len)
		text.len = prefix;
	return text;
}

/* The code point of a well-formed sequence. */
static unsigned
decode(const unsigned char *at, size_t len)
{
	static const unsigned char lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	unsigned point = at[0] & lead_bits[len];

	for (size_t i = 1; i < len; i++)
		point = point << 6 | (at[i] & 0x3f);
	return point;
}

static bool
is_harmful(unsigned point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       point == 0x2028 || point == 0x2029 ||
	       (point >= 0x202a && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

/* The next character of s, *at is moved behind it, as it may stand in a line.
 * Returns its length. */
static size_t
next_escaped(struct pn_str s, size_t *at, bool quotes,
    char ret_piece[ESCAPE_BYTES_MAX + 1])
{
	const char *from = s.data + *at;
	unsigned char c = (unsigned char)*from;
	size_t bad, len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	struct pn_str one = { from, len };
	unsigned point;

	if (one.len > s.len - *at)
		one.len = s.len - *at;
	if (pn_str_utf8_prefix(one, &bad) < len) {
		*at += bad > 0 ? bad : one.len;
		memcpy(ret_piece, "\\ufffd", ESCAPE_BYTES_MAX);
		return ESCAPE_BYTES_MAX;
	}
	*at += len;
	point = decode((const unsigned char *)from, len);
	if (quotes && (c == '"' || c == '\\')) {
		ret_piece[0] = '\\';
		ret_piece[1] = (char)c;
		return 2;
	}
	if (c == '\n' || c == '\t' || c == '\r') {
		ret_piece[0] = '\\';
		ret_piece[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
		return 2;
	}
	if (is_harmful(point))
		return (size_t)snprintf(
		    ret_piece, ESCAPE_BYTES_MAX + 1, "\\u%04x", point);
	memcpy(ret_piece, from, len);
	return len;
}

/* At most bytes_max bytes of s, escaped. */
static void
add_escaped(
    struct log_text *text, struct pn_str s, size_t bytes_max, bool quotes)
{
	size_t end = text->len + bytes_max, len, at = 0;
	size_t cut = text->len; /* where dots still fit */
	char piece[ESCAPE_BYTES_MAX + 1];

	assert(end <= sizeof(text->data) && bytes_max >= DOTS_BYTES);
	while (at < s.len) {
		len = next_escaped(s, &at, quotes, piece);
		if (text->len + len > end) {
			text->len = cut;
			add(text, dots, DOTS_BYTES);
			return;
		}
		add(text, piece, len);
		if (text->len + DOTS_BYTES <= end)
			cut = text->len;
	}
}

/* Whether a value of logfmt may go without quotes. */
static bool
is_bare(struct pn_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"\\=", c) != NULL)
			return false;
	}
	return s.len > 0;
}

static void
add_field(struct log_text *text, enum pn_log_format format, const char *name,
    struct pn_str value, size_t bytes_max)
{
	bool json = format == PN_LOG_JSON;
	bool quotes = json || !is_bare(value);

	if (value.data == NULL)
		return;
	if (text->len > 0)
		add_text(text, json ? ",\"" : " ");
	else if (json)
		add_text(text, "{\"");
	add_text(text, name);
	add_text(text, json ? "\":" : "=");
	if (quotes)
		add_text(text, "\"");
	add_escaped(text, value, bytes_max, true);
	if (quotes)
		add_text(text, "\"");
}

/* With microseconds also when they are 0: columns stay columns. */
static void
format_time(int64_t us, char ret_text[PN_MOMENT_TEXT_BYTES])
{
	int64_t fraction = us % PN_SECOND_US;
	size_t len;

	pn_moment_format_rfc3339(us - fraction, ret_text);
	len = strlen(ret_text) - 1; /* the Z */
	(void)snprintf(ret_text + len, PN_MOMENT_TEXT_BYTES - len, ".%06uZ",
	    (unsigned)fraction % 1000000);
}

void
log_form_line(const struct log_line *line, enum pn_log_format format,
    struct log_text *ret_text)
{
	const struct pn_log_about *about = &line->about;
	char time[PN_MOMENT_TEXT_BYTES];
	const struct {
		const char *name, *value;
	} words[] = {
		{ "time", time },
		{ "level", pn_log_level_names[line->level] },
		{ "category", pn_log_category_names[line->category] },
		{ "req", about->request_id },
		{ "provider", about->provider },
		{ "tenant", about->tenant },
		{ "subject", about->subject },
		{ "peer", about->peer },
	};
	bool json = format == PN_LOG_JSON;

	ret_text->len = 0;
	format_time(line->time_us, time);
	for (size_t i = 0; i < PN_COUNT(words); i++)
		add_field(ret_text, format, words[i].name,
		    pn_str_from(words[i].value), WORD_BYTES_MAX);
	add_field(ret_text, format, "key", about->key, KEY_BYTES_MAX);
	/* The message, always in quotes. */
	add_text(ret_text, json ? ",\"msg\":\"" : " msg=\"");
	add_escaped(ret_text, line->message,
	    sizeof(ret_text->data) - ret_text->len - END_BYTES, true);
	add_text(ret_text, json ? "\"}\n" : "\"\n");
}

static void
add_journal(struct log_text *text, struct iovec *fields, int *count,
    const char *name, struct pn_str value, size_t bytes_max)
{
	size_t start = text->len;

	if (value.data == NULL)
		return;
	assert(*count < LOG_FIELDS_MAX);
	add_text(text, name);
	add_text(text, "=");
	add_escaped(text, value, bytes_max, false);
	fields[*count].iov_base = text->data + start;
	fields[*count].iov_len = text->len - start;
	(*count)++;
}

int
log_form_fields(const struct log_line *line, const char *program,
    struct log_text *text, struct iovec ret_fields[LOG_FIELDS_MAX])
{
	/* The numbers of syslog, by level. */
	static const char priorities[PN_LOG_LEVEL_COUNT][2] = { "3", "4", "5",
		"6", "7" };
	const struct pn_log_about *about = &line->about;
	const struct {
		const char *name, *value;
	} words[] = {
		{ "PRIORITY", priorities[line->level] },
		{ "SYSLOG_IDENTIFIER", program },
		{ "PAYNOTIFY_CATEGORY", pn_log_category_names[line->category] },
		{ "PAYNOTIFY_REQUEST", about->request_id },
		{ "PAYNOTIFY_PROVIDER", about->provider },
		{ "PAYNOTIFY_TENANT", about->tenant },
		{ "PAYNOTIFY_SUBJECT", about->subject },
		{ "PAYNOTIFY_PEER", about->peer },
	};
	int count = 0;

	text->len = 0;
	for (size_t i = 0; i < PN_COUNT(words); i++)
		add_journal(text, ret_fields, &count, words[i].name,
		    pn_str_from(words[i].value), WORD_BYTES_MAX);
	add_journal(text, ret_fields, &count, "PAYNOTIFY_KEY", about->key,
	    KEY_BYTES_MAX);
	add_journal(text, ret_fields, &count, "MESSAGE", line->message,
	    sizeof(text->data) - text->len - sizeof("MESSAGE="));
	return count;
}
