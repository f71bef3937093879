/*
 * What is known of a terminal: whether it is one, how wide, and whether it is to
 * show colours. Everything that is for a terminal alone asks here, so that what
 * goes into a file or a pipe is plain text.
 */
#include "ctl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "paynotify/parse.h"

enum { COLUMNS_USUAL = 80, COLUMNS_MIN = 20, COLUMNS_MAX = 10000 };

/* Some shells and tests set it where the terminal does not know. */
static size_t
columns_of_environment(void)
{
	const char *text = getenv("COLUMNS");
	uint64_t columns;

	if (text == NULL ||
	    pn_parse_uint(pn_str_from(text), COLUMNS_MAX, &columns) != 0)
		return COLUMNS_USUAL;
	return (size_t)columns;
}

size_t
ctl_term_columns(int fd)
{
	const char *term = getenv("TERM");
	struct winsize size;
	size_t columns;

	if (!isatty(fd) || (term != NULL && strcmp(term, "dumb") == 0))
		return 0;
	columns = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
		      ? size.ws_col
		      : columns_of_environment();
	return columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
}

/* no-color.org: any value but the empty one. */
bool
ctl_term_colours(int fd)
{
	const char *no = getenv("NO_COLOR");

	return ctl_term_columns(fd) > 0 && (no == NULL || no[0] == '\0');
}

/* Words that tables and overviews show as states, and what they are to an
 * operator. A word that is not here is neither good nor bad. */
static const struct {
	const char *word;
	enum ctl_tone tone;
} tones[] = {
	{ "COMPLETED", CTL_TONE_GOOD },
	{ "accepted", CTL_TONE_GOOD },
	{ "active", CTL_TONE_GOOD },
	{ "applied", CTL_TONE_GOOD },
	{ "done", CTL_TONE_GOOD },
	{ "recorded", CTL_TONE_GOOD },
	{ "resolved", CTL_TONE_GOOD },
	{ "PROCESSING", CTL_TONE_WARN },
	{ "held", CTL_TONE_WARN },
	{ "leased", CTL_TONE_WARN },
	{ "lease ended", CTL_TONE_WARN },
	{ "open", CTL_TONE_WARN },
	{ "paused", CTL_TONE_WARN },
	{ "pending", CTL_TONE_WARN },
	{ "retry", CTL_TONE_WARN },
	{ "stale", CTL_TONE_WARN },
	{ "unsupported", CTL_TONE_WARN },
	{ "waiting", CTL_TONE_WARN },
	{ "FAILED", CTL_TONE_BAD },
	{ "bad_signature", CTL_TONE_BAD },
	{ "changed", CTL_TONE_BAD },
	{ "conflict", CTL_TONE_BAD },
	{ "dead", CTL_TONE_BAD },
	{ "disabled", CTL_TONE_BAD },
	{ "malformed", CTL_TONE_BAD },
	{ "missing", CTL_TONE_BAD },
	{ "quarantined", CTL_TONE_BAD },
	{ "rejected", CTL_TONE_BAD },
	{ "undecryptable", CTL_TONE_BAD },
	{ "unknown_key", CTL_TONE_BAD },
	{ "wrong", CTL_TONE_BAD },
	{ "wrong_account", CTL_TONE_BAD },
};

enum ctl_tone
ctl_term_tone(struct pn_str word)
{
	for (size_t i = 0; i < PN_COUNT(tones); i++)
		if (pn_str_is(word, tones[i].word))
			return tones[i].tone;
	return CTL_TONE_PLAIN;
}

void
ctl_term_add(struct pn_buf *out, enum ctl_tone tone, struct pn_str text)
{
	static const char *const codes[CTL_TONE_COUNT] = {
		[CTL_TONE_GOOD] = "\033[32m",
		[CTL_TONE_WARN] = "\033[33m",
		[CTL_TONE_BAD] = "\033[31m",
		[CTL_TONE_HEAD] = "\033[1m",
	};

	if (codes[tone] == NULL) {
		pn_buf_add_str(out, text);
		return;
	}
	pn_buf_add_text(out, codes[tone]);
	pn_buf_add_str(out, text);
	pn_buf_add_text(out, "\033[0m");
}
