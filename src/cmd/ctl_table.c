/*
 * A table for people: cells padded to the widest of their column, counted in
 * columns of a terminal (a Chinese character takes two, a combining mark none),
 * the last one not padded.
 *
 * On a terminal a line that is too long is cut, so that each row is one line;
 * the columns that matter least are the last. Colours go around cells that were
 * cleaned before and are of no width; only a column that holds states has any,
 * so that an order that is called "dead" does not look so.
 *
 * Rows are kept until printed; a long list is printed in blocks, and widths only
 * grow from block to block, so a table of any length takes little memory.
 */
#include "ctl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "paynotify/moment.h"

struct ctl_table {
	const char *const *titles;
	size_t columns;
	size_t widths[CTL_COLUMNS_MAX];
	struct pn_buf text; /* cells one after another */
	size_t *ends;       /* of each cell in text */
	size_t cells, cells_room;
	bool titled;
	size_t terminal_columns; /* 0: none */
	bool colours;
};

struct ctl_table *
ctl_table_new(const char *const *titles, size_t columns)
{
	struct ctl_table *table = calloc(1, sizeof(*table));

	assert(columns > 0 && columns <= CTL_COLUMNS_MAX);
	if (table == NULL)
		return NULL;
	table->titles = titles;
	table->columns = columns;
	table->text = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	ctl_table_set_terminal(table, ctl_term_columns(STDOUT_FILENO),
	    ctl_term_colours(STDOUT_FILENO));
	for (size_t i = 0; i < columns; i++)
		table->widths[i] = ctl_text_width(pn_str_from(titles[i]));
	return table;
}

void
ctl_table_set_terminal(struct ctl_table *table, size_t columns, bool colours)
{
	table->terminal_columns = columns;
	table->colours = colours;
}

void
ctl_table_free(struct ctl_table *table)
{
	if (table == NULL)
		return;
	pn_buf_done(&table->text);
	free(table->ends);
	free(table);
}

void
ctl_table_freep(struct ctl_table **table)
{
	ctl_table_free(*table);
	*table = NULL;
}

/* The beginning of text that takes at most columns_max. */
static struct pn_str
fit(struct pn_str text, size_t columns_max, size_t *ret_columns)
{
	mbstate_t state = { 0 };
	size_t width = 0, used, i;

	for (i = 0; i < text.len; i += used) {
		wchar_t c;
		int columns = 1;

		used = mbrtowc(&c, text.data + i, text.len - i, &state);
		if (used == 0 || used > text.len - i) {
			/* NUL, or not a character: one column, start anew */
			state = (mbstate_t){ 0 };
			used = 1;
		} else {
			columns = wcwidth(c);
			columns = columns > 0 ? columns : 0;
		}
		if (width + (size_t)columns > columns_max)
			break;
		width += (size_t)columns;
	}
	*ret_columns = width;
	return (struct pn_str){ text.data, i };
}

size_t
ctl_text_width(struct pn_str text)
{
	size_t width;

	(void)fit(text, SIZE_MAX, &width);
	return width;
}

int
ctl_table_cell(struct ctl_table *table, struct pn_str text)
{
	size_t start = table->text.len, column = table->cells % table->columns;
	size_t width;

	if (table->cells == table->cells_room) {
		size_t room =
		    table->cells_room == 0 ? 64 : table->cells_room * 2;
		size_t *ends = reallocarray(table->ends, room, sizeof(*ends));

		if (ends == NULL)
			return -ENOMEM;
		table->ends = ends;
		table->cells_room = room;
	}
	if (text.len == 0)
		text = PN_STR("-"); /* a hole would hide which column it is */
	ctl_add_clean(&table->text, text);
	if (pn_buf_failed(&table->text))
		return -ENOMEM;
	table->ends[table->cells++] = table->text.len;
	width = ctl_text_width((struct pn_str){
	    table->text.data + start, table->text.len - start });
	if (width > table->widths[column])
		table->widths[column] = width;
	return 0;
}

int
ctl_table_number(struct ctl_table *table, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	return ctl_table_cell(table, pn_str_from(text));
}

int
ctl_table_time(struct ctl_table *table, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES] = "";

	if (us != PN_MOMENT_NONE)
		pn_moment_format_rfc3339(us - us % PN_SECOND_US, text);
	return ctl_table_cell(table, pn_str_from(text));
}

size_t
ctl_table_rows(const struct ctl_table *table)
{
	return table->cells / table->columns;
}

static bool
holds_states(const char *title)
{
	static const char *const titles[] = { "STATE", "VERDICT", "RESULT" };

	for (size_t i = 0; i < PN_COUNT(titles); i++)
		if (strcmp(title, titles[i]) == 0)
			return true;
	return false;
}

static enum ctl_tone
tone_of(const struct ctl_table *table, size_t column, struct pn_str text,
    bool is_title)
{
	if (!table->colours)
		return CTL_TONE_PLAIN;
	if (is_title)
		return CTL_TONE_HEAD;
	return holds_states(table->titles[column]) ? ctl_term_tone(text)
						   : CTL_TONE_PLAIN;
}

/* *used: columns of the line so far. */
static void
print_cell(const struct ctl_table *table, size_t column, struct pn_str text,
    bool is_title, size_t *used, struct pn_buf *out)
{
	size_t room = table->terminal_columns == 0
			  ? SIZE_MAX
			  : table->terminal_columns - *used;
	bool last = column + 1 == table->columns, cut = false;
	enum ctl_tone tone = tone_of(table, column, text, is_title);
	size_t width = ctl_text_width(text);

	if (width > room) {
		cut = true;
		text = fit(text, room > 0 ? room - 1 : 0, &width);
	}
	ctl_term_add(out, tone, text);
	if (cut && room > 0) {
		pn_buf_add_text(out, "\u2026");
	}
	*used += cut ? room : width; /* nothing stands behind a cut */
	for (size_t i = width; !last && i < table->widths[column] + 2; i++) {
		if (table->terminal_columns != 0 &&
		    *used >= table->terminal_columns)
			break;
		pn_buf_add_char(out, ' ');
		++*used;
	}
	if (last)
		pn_buf_add_char(out, '\n');
}

void
ctl_table_print(struct ctl_table *table, bool reversed, struct pn_buf *out)
{
	size_t rows = ctl_table_rows(table);

	assert(table->cells % table->columns == 0);
	if (rows > 0 && !table->titled) {
		size_t used = 0;

		for (size_t c = 0; c < table->columns; c++)
			print_cell(table, c, pn_str_from(table->titles[c]),
			    true, &used, out);
		table->titled = true;
	}
	for (size_t i = 0; i < rows; i++) {
		size_t row = reversed ? rows - 1 - i : i, used = 0;

		for (size_t c = 0; c < table->columns; c++) {
			size_t cell = row * table->columns + c;
			size_t from = cell == 0 ? 0 : table->ends[cell - 1];

			print_cell(table, c,
			    (struct pn_str){ table->text.data + from,
				table->ends[cell] - from },
			    false, &used, out);
		}
	}
	table->cells = 0;
	pn_buf_reset(&table->text);
}
