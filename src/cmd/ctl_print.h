/*
 * How the commands speak and what they read and write: complaints, results,
 * tables, connection strings, files. Private to src/cmd; one thread at a time
 * but for ctl_complain().
 */
#ifndef PN_CTL_PRINT_H
#define PN_CTL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/compiler.h"
#include "paynotify/conf.h"
#include "paynotify/error.h"
#include "paynotify/event.h"
#include "paynotify/json.h"

struct ctl_command;

enum {
	CTL_OUTPUT_BYTES_MAX = 64 << 20,
	CTL_COLUMNS_MAX = 10,
};

/* ctl_print.c: complaints go to stderr, one line each, with the program's
 * name in front. ctl_usage adds where the help is and returns CTL_USAGE. */
void ctl_complain(const char *fmt, ...) PN_PRINTF(1, 2);
int ctl_usage(const struct ctl_command *command, const char *fmt, ...)
    PN_PRINTF(2, 3);
/* "no such file or directory", of a negative errno */
const char *ctl_fault_text(int r);
/* Text from outside, safe for a terminal: control characters and ones that
 * change the direction of writing become \xNN or \uNNNN. */
void ctl_add_clean(struct pn_buf *out, struct pn_str text);
/* Members of an object: codec's, by the commands' names. */
#define ctl_add_member      pn_json_add_text
#define ctl_add_number      pn_json_add_number
#define ctl_add_bool        pn_json_add_bool
#define ctl_add_time_member pn_json_add_moment
/* 1,234,567 */
void ctl_add_grouped(struct pn_buf *out, int64_t value);
/* "88.88 CNY", by the currency's number of decimals. */
void ctl_add_money(struct pn_buf *out, int64_t minor, struct pn_str currency);
/* What the event is about in money: its amount, or the sum that a refund brought
 * it to where the provider tells only that. If it is about any, it stands behind
 * `before`. */
void ctl_add_amount(
    struct pn_buf *out, const char *before, const struct pn_event *event);
/* 2026-03-01T02:00:05Z, or "" for PN_MOMENT_NONE */
void ctl_add_time(struct pn_buf *out, int64_t us);
/* The same of a whole JSON text, in which control characters below U+0020 are
 * escaped: DEL, C1 and the marks above become \uNNNN, so that it still says what
 * it said. Text that has passed ctl_add_clean() is not changed. */
void ctl_add_json_clean(struct pn_buf *out, struct pn_str json);
/* "tenant           shop1": one thing shown, a line a field. The label alone; or
 * the whole line, none where there is nothing: "", PN_MOMENT_NONE. */
void ctl_add_label(struct pn_buf *out, const char *label);
void ctl_add_line(struct pn_buf *out, const char *label, struct pn_str text);
void ctl_add_time_line(struct pn_buf *out, const char *label, int64_t us);
/* Writes the buffer to stdout, cleaned as JSON, and empties it. CTL_DONE;
 * CTL_REFUSED, told, when it could not be written or built. */
int ctl_flush(struct pn_buf *out);

/* ctl_term.c: columns of the terminal that fd is; 0: it is none. */
size_t ctl_term_columns(int fd);
/* Whether what goes there is to be coloured: not with NO_COLOR. */
bool ctl_term_colours(int fd);
enum ctl_tone {
	CTL_TONE_PLAIN,
	CTL_TONE_GOOD,
	CTL_TONE_WARN,
	CTL_TONE_BAD,
	CTL_TONE_HEAD,
	CTL_TONE_COUNT
};
/* What a state or a verdict is to an operator. */
enum ctl_tone ctl_term_tone(struct pn_str word);
/* The text (clean already) in that colour. */
void ctl_term_add(struct pn_buf *out, enum ctl_tone tone, struct pn_str text);

/* ctl_table.c: rows of cells, aligned by what a terminal shows of them. On a
 * terminal titles are bold, states coloured, and what does not fit a line is
 * cut; elsewhere nothing is. */
struct ctl_table;
struct ctl_table *
ctl_table_new(const char *const *titles, size_t columns) PN_MUSTCHECK;
void ctl_table_free(struct ctl_table *table);
/* As if standard output were this: columns 0 is no terminal. */
void
ctl_table_set_terminal(struct ctl_table *table, size_t columns, bool colours);
void ctl_table_freep(struct ctl_table **table);
/* The next cell of the row that is being filled; cleaned. 0 or -ENOMEM. */
int ctl_table_cell(struct ctl_table *table, struct pn_str text) PN_MUSTCHECK;
int ctl_table_number(struct ctl_table *table, int64_t value) PN_MUSTCHECK;
int ctl_table_time(struct ctl_table *table, int64_t us) PN_MUSTCHECK;
/* Appends the rows so far to out (with titles the first time) and drops them;
 * the widths stay. */
void
ctl_table_print(struct ctl_table *table, bool reversed, struct pn_buf *out);
size_t ctl_table_rows(const struct ctl_table *table);
/* Columns that a terminal needs for UTF-8 text. */
size_t ctl_text_width(struct pn_str text);

/* ctl_dsn.c: a connection string that may be shown: without the password. */
void ctl_dsn_redact(const char *dsn, struct pn_buf *out);
/* Tells a database fault: where, why, and what to do. Returns CTL_REFUSED. */
int ctl_database_complain(const struct pn_conf *conf, const char *dsn, int r,
    const struct pn_error *error);

/* ctl_event_text.c: one line a field */
void ctl_event_add_text(struct pn_buf *out, const struct pn_event_row *row);
void ctl_payload_add_text(struct pn_buf *out, struct pn_str payload);

/* ctl_file.c: a whole file, "-" is stdin. 0; 1 when it is longer than max;
 * -errno. */
int ctl_file_read(
    const char *path, size_t bytes_max, struct pn_buf *ret_bytes) PN_MUSTCHECK;
int ctl_file_write(const char *path, struct pn_str bytes) PN_MUSTCHECK;

#endif
