/*
 * How the commands speak: complaints on stderr, results through a buffer to
 * stdout, text from outside made harmless for a terminal, money and times in one
 * form.
 *
 * A notification's fields are written by strangers: an order title may hold
 * escape sequences that would rewrite what the operator sees. Everything that is
 * printed for people passes ctl_add_clean(); JSON escapes what it must by
 * itself, and the rest on its way out (ctl_flush).
 */
#include "ctl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "paynotify/moment.h"

static void complain_list(const char *fmt, va_list ap) PN_PRINTF(1, 0);

static void
complain_list(const char *fmt, va_list ap)
{
	char line[PN_ERROR_TEXT_BYTES_MAX + 512];
	int n = snprintf(line, sizeof(line), CTL_NAME ": ");

	(void)vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	(void)fflush(stdout); /* in the order it happened */
	(void)fprintf(stderr, "%s\n", line);
}

void
ctl_complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain_list(fmt, ap);
	va_end(ap);
}

int
ctl_usage(const struct ctl_command *command, const char *fmt, ...)
{
	char title[64];
	va_list ap;

	va_start(ap, fmt);
	complain_list(fmt, ap);
	va_end(ap);
	ctl_command_title(command, title, sizeof(title));
	ctl_help_usage(stderr, command);
	(void)fprintf(
	    stderr, "; `" CTL_NAME " %s --help` lists the options\n", title);
	return CTL_USAGE;
}

const char *
ctl_fault_text(int r)
{
	const char *text = strerrordesc_np(-r);

	return text != NULL ? text : "unknown fault";
}

/* Decodes one character of well-formed UTF-8; *used bytes. */
static unsigned
decode(struct pn_str text, size_t *ret_used)
{
	const unsigned char *p = (const unsigned char *)text.data;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	unsigned c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3fu);
	*ret_used = n;
	return c;
}

/* Marks that turn the direction of writing: a name could read as another. And
 * ends of a line that only some programs know. */
static bool
is_mark(unsigned c)
{
	return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       c == 0x200e || c == 0x200f || c == 0x061c;
}

void
ctl_add_clean(struct pn_buf *out, struct pn_str text)
{
	bool utf8 = pn_str_is_utf8(text);
	size_t used;

	for (size_t i = 0; i < text.len; i += used) {
		unsigned c;

		if (utf8) {
			c = decode(
			    (struct pn_str){ text.data + i, text.len - i },
			    &used);
		} else {
			c = (unsigned char)text.data[i];
			used = 1;
		}
		if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (!utf8 && c >= 0x80))
			pn_buf_printf(out, "\\x%02x", c);
		else if (is_mark(c))
			pn_buf_printf(out, "\\u%04x", c);
		else
			pn_buf_add(out, text.data + i, used);
	}
}

/* With one of these four bytes begin all characters that are escaped. */
void
ctl_add_json_clean(struct pn_buf *out, struct pn_str json)
{
	size_t plain = 0, used = 1;

	for (size_t i = 0; i < json.len; i += used) {
		unsigned char first = (unsigned char)json.data[i];
		size_t bytes = first == 0xe2 ? 3 : first == 0x7f ? 1 : 2;
		unsigned c;

		used = 1;
		if ((first != 0x7f && first != 0xc2 && first != 0xd8 &&
			first != 0xe2) ||
		    json.len - i < bytes)
			continue;
		c = decode(
		    (struct pn_str){ json.data + i, json.len - i }, &used);
		if (!(c >= 0x7f && c < 0xa0) && !is_mark(c))
			continue;
		pn_buf_add(out, json.data + plain, i - plain);
		pn_buf_printf(out, "\\u%04x", c);
		plain = i + used;
	}
	pn_buf_add(out, json.data + plain, json.len - plain);
}

/* Decimals of a currency: two but for these (ISO 4217). */
static unsigned
currency_decimals(struct pn_str currency)
{
	static const char *const none[] = { "JPY", "KRW", "VND", "CLP", "ISK",
		"PYG", "UGX", "XAF", "XOF", "XPF" };
	static const char *const three[] = { "KWD", "BHD", "OMR", "JOD", "TND",
		"IQD", "LYD" };

	for (size_t i = 0; i < PN_COUNT(none); i++)
		if (pn_str_is(currency, none[i]))
			return 0;
	for (size_t i = 0; i < PN_COUNT(three); i++)
		if (pn_str_is(currency, three[i]))
			return 3;
	return 2;
}

void
ctl_add_money(struct pn_buf *out, int64_t minor, struct pn_str currency)
{
	static const uint64_t power[] = { 1, 10, 100, 1000 };
	unsigned decimals = currency_decimals(currency);
	uint64_t size = minor < 0 ? -(uint64_t)minor : (uint64_t)minor;

	if (minor < 0)
		pn_buf_add_char(out, '-');
	pn_buf_printf(
	    out, "%llu", (unsigned long long)(size / power[decimals]));
	if (decimals > 0)
		pn_buf_printf(out, ".%0*llu", (int)decimals,
		    (unsigned long long)(size % power[decimals]));
	if (currency.len > 0) {
		pn_buf_add_char(out, ' ');
		ctl_add_clean(out, currency);
	}
}

void
ctl_add_amount(
    struct pn_buf *out, const char *before, const struct pn_event *event)
{
	struct pn_amount amount = event->amount;
	bool total = !amount.present && event->refund.present;

	if (total)
		amount = event->refund.refunded_total;
	if (!amount.present)
		return;
	pn_buf_printf(out, "%s%s", before, total ? "total " : "");
	ctl_add_money(out, amount.minor, event->currency);
}

void
ctl_add_time(struct pn_buf *out, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES];

	if (us == PN_MOMENT_NONE)
		return;
	pn_moment_format_rfc3339(us - us % PN_SECOND_US, text);
	pn_buf_add_text(out, text);
}

void
ctl_add_label(struct pn_buf *out, const char *label)
{
	pn_buf_printf(out, "%-16s ", label);
}

void
ctl_add_line(struct pn_buf *out, const char *label, struct pn_str text)
{
	if (text.len == 0)
		return;
	ctl_add_label(out, label);
	ctl_add_clean(out, text);
	pn_buf_add_char(out, '\n');
}

void
ctl_add_time_line(struct pn_buf *out, const char *label, int64_t us)
{
	if (us == PN_MOMENT_NONE)
		return;
	ctl_add_label(out, label);
	ctl_add_time(out, us);
	pn_buf_add_char(out, '\n');
}

void
ctl_add_grouped(struct pn_buf *out, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)value);

	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
			pn_buf_add_char(out, ',');
		pn_buf_add_char(out, digits[i]);
	}
}

int
ctl_flush(struct pn_buf *out)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf clean = pn_buf_init(2 * CTL_OUTPUT_BYTES_MAX);
	int r = CTL_DONE;

	if (out->len > 0)
		ctl_add_json_clean(&clean, pn_buf_str(out));
	if (pn_buf_failed(out) || pn_buf_failed(&clean)) {
		ctl_complain("out of memory: ask for less with --limit");
		r = CTL_REFUSED;
	} else if (clean.len > 0 &&
		   (fwrite(clean.data, 1, clean.len, stdout) != clean.len ||
		       fflush(stdout) != 0)) {
		ctl_complain("could not write to standard output: %m");
		__fpurge(stdout); /* or the end of the program tells it again */
		clearerr(stdout);
		r = CTL_REFUSED;
	}
	pn_buf_reset(out);
	return r;
}
