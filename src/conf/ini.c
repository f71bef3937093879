/*
 * One file's text to sections and items, by inih, whose reader and handler
 * callbacks are here. As Debian builds it, inih has habits that would change
 * the meaning of a file in silence; what is done about each:
 *
 *  - the handler is not told the line: the reader, which hands out one line a
 *    call, counts, and the handler runs before the next call;
 *  - an indented "key = value" continues the value above: leading blanks are
 *    taken off in the reader, so that it is what it looks like;
 *  - lines are cut at 200 bytes: the buffer is set to PN_CONF_LINE_BYTES_MAX,
 *    and a longer line is an error;
 *  - a section without options is never reported, its name is cut at 49 bytes
 *    and what follows the "]" is dropped: the reader sees section lines first;
 *  - NUL ends a line early: an error, as it belongs in no configuration.
 *
 * inih still splits names from values and takes off comments: a line that
 * begins with ";" or "#", and from a ";" after a blank on.
 */
#include "conf_internal.h"

#include <assert.h>
#include <errno.h>
#include <ini.h>
#include <pthread.h>

struct reader {
	struct conf_load *load;
	struct pn_str rest;         /* not handed out yet */
	struct pn_conf_place place; /* of the line handed out last */
	ptrdiff_t section;          /* it stands in */
	bool in_section; /* a section line was seen, right or wrong */
	bool is_main;
	struct pn_str line; /* handed out last */
	bool pending;       /* it must be an option, and none was handled yet */
};

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* inih's settings are globals of the library; nothing else uses it. */
static void
library_set(void)
{
	ini_allow_multiline = false;
	ini_max_line = PN_CONF_LINE_BYTES_MAX + (int)sizeof("\r\n");
}

static struct pn_str
strip_left(struct pn_str s)
{
	while (s.len > 0 && (*s.data == ' ' || *s.data == '\t')) {
		s.data++;
		s.len--;
	}
	return s;
}

/* "[name tenant] ; comment" */
static void
section_line(struct reader *reader, struct pn_str line)
{
	const char *close = memchr(line.data, ']', line.len);
	struct pn_str name, behind;

	reader->in_section = true;
	reader->section = CONF_NO_SECTION;
	if (close == NULL) {
		conf_fail(reader->load, reader->place,
		    "no \"]\" at the end of the section's name");
		return;
	}
	name =
	    (struct pn_str){ line.data + 1, (size_t)(close - line.data - 1) };
	behind =
	    pn_str_trim((struct pn_str){ close + 1, line.len - name.len - 2 });
	if (behind.len > 0 && *behind.data != ';' && *behind.data != '#') {
		conf_fail(reader->load, reader->place,
		    "\"" PN_STR_FMT "\" behind the section's name",
		    PN_STR_ARG(behind));
		return;
	}
	reader->section = conf_section_add(reader->load, reader->place, name);
}

/* What inih gets to see of a line; empty if it was dealt with here. */
static struct pn_str
line_filter(struct reader *reader, struct pn_str line)
{
	const struct pn_str nothing = { "", 0 };

	if (reader->place.line == 1 && pn_str_starts(line, "\xef\xbb\xbf")) {
		line.data += 3;
		line.len -= 3;
	}
	line = strip_left(line);
	if (line.len > PN_CONF_LINE_BYTES_MAX) {
		conf_fail(reader->load, reader->place,
		    "line of %zu bytes; at most %d are read", line.len,
		    (int)PN_CONF_LINE_BYTES_MAX);
		return nothing;
	}
	if (memchr(line.data, '\0', line.len) != NULL) {
		conf_fail(reader->load, reader->place,
		    "NUL byte: this is no text file");
		return nothing;
	}
	if (line.len > 0 && *line.data == '[') {
		section_line(reader, line);
		return nothing;
	}
	reader->line = pn_str_trim(line);
	reader->pending = reader->line.len > 0 && *reader->line.data != ';' &&
			  *reader->line.data != '#';
	return line;
}

/* inih tells of the first line only that is neither option nor comment. */
static void
line_settle(struct reader *reader)
{
	enum { SHOWN_MAX = 40 };
	struct pn_str line = reader->line;

	if (!reader->pending)
		return;
	reader->pending = false;
	if (line.len > SHOWN_MAX)
		line.len = SHOWN_MAX;
	conf_fail(reader->load, reader->place, "no \"=\" in \"" PN_STR_FMT "\"",
	    PN_STR_ARG(line));
}

static char *
read_line(char *buffer, int size, void *stream)
{
	struct reader *reader = stream;
	struct pn_str line;

	line_settle(reader);
	if (reader->rest.len == 0 || reader->load->memory_out)
		return NULL;
	line = pn_str_split(&reader->rest, '\n');
	reader->place.line++;
	line = line_filter(reader, line);
	assert(size > 0 && line.len < (size_t)size);
	if (line.len > 0)
		memcpy(buffer, line.data, line.len);
	buffer[line.len] = '\0';
	return buffer;
}

static void
include_note(struct reader *reader, const char *value)
{
	if (!reader->is_main)
		conf_fail(reader->load, reader->place,
		    "include is for the main file only");
	else if (reader->in_section)
		conf_fail(reader->load, reader->place,
		    "include stands at the top of the file, before any"
		    " section");
	else if (*value == '\0')
		conf_fail(reader->load, reader->place, "include names no file");
	else
		conf_include_expand(reader->load, reader->place, value);
}

static int
handle(void *user, const char *section, const char *name, const char *value)
{
	struct reader *reader = user;
	struct conf_load *load = reader->load;
	struct conf_item *items, *item;

	(void)section; /* cut at 49 bytes: the reader knows it whole */
	assert(reader->pending);
	reader->pending = false;
	if (strcmp(name, "include") == 0) {
		include_note(reader, value);
		return 1;
	}
	if (*name == '\0') {
		conf_fail(load, reader->place, "no option before the \"=\"");
		return 1;
	}
	if (!reader->in_section) {
		conf_fail(load, reader->place,
		    "option \"%s\" stands before any section", name);
		return 1;
	}
	if (reader->section == CONF_NO_SECTION)
		return 1; /* one error for the section is enough */
	if (load->item_count == PN_CONF_OPTIONS_MAX) {
		if (!load->items_full)
			conf_fail(load, reader->place, "more than %d options",
			    (int)PN_CONF_OPTIONS_MAX);
		load->items_full = true;
		return 1;
	}
	items = conf_grow(load, load->items, load->item_count, &load->item_size,
	    sizeof(*items));
	if (items == NULL)
		return 0;
	load->items = items;
	item = &items[load->item_count];
	item->section = (size_t)reader->section;
	item->place = reader->place;
	item->key = conf_copy(load, pn_str_from(name));
	item->value = conf_copy(load, pn_str_from(value));
	if (item->key == NULL || item->value == NULL)
		return 0;
	load->item_count++;
	return 1;
}

int
conf_ini_read(
    struct conf_load *load, const char *file, struct pn_str text, bool is_main)
{
	struct reader reader = {
		.load = load,
		.rest = text,
		.place = { .file = file },
		.section = CONF_NO_SECTION,
		.is_main = is_main,
	};
	int r;

	r = pthread_once(&library_once, library_set);
	assert(r == 0);
	r = ini_parse_stream(read_line, &reader, handle, &reader);
	if (load->memory_out || r < 0)
		return -ENOMEM;
	return 0;
}
