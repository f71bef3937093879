/*
 * The log's parts: how a line is formatted (log_form.c), what is masked in it
 * (log_mask.c), what is held back (log_flood.c). Private to src/base.
 */
#ifndef PN_LOG_INTERNAL_H
#define PN_LOG_INTERNAL_H

#include <sys/uio.h>

#include "paynotify/limits.h"
#include "paynotify/log.h"

enum {
	LOG_TEXT_BYTES_MAX = 2048, /* a message, before it is escaped */
	LOG_FIELDS_MAX = 10,       /* of the journal */
};

/* A line as its call site gave it, its message made. */
struct log_line {
	enum pn_log_category category;
	enum pn_log_level level;
	struct pn_log_about about;
	struct pn_str message;
	int64_t time_us;
};

/* A line being built. */
struct log_text {
	char data[PN_LOG_LINE_BYTES_MAX];
	size_t len;
};

/* One line with its line feed. */
void log_form_line(const struct log_line *line, enum pn_log_format format,
    struct log_text *ret_text);
/* The fields of the journal; they point into text. Returns how many. */
int log_form_fields(const struct log_line *line, const char *program,
    struct log_text *text, struct iovec ret_fields[LOG_FIELDS_MAX]);
/* Without the half character that cutting may have left at its end. */
struct pn_str log_form_whole(struct pn_str text);

/* message with "***" where something is that must not be logged, in
 * ret_text. */
struct pn_str
log_mask(struct pn_str message, char ret_text[LOG_TEXT_BYTES_MAX]);

/* Lines that are alike have one. */
uint64_t log_flood_id(const struct pn_log_about *about, const char *fmt);
/* now_us: monotonic. Whether a line may be written now. *ret_held: how many like it were held back
 * since the last one that was. */
bool log_flood_admits(uint64_t id, const struct log_line *line,
    int64_t interval_us, int64_t now_us, unsigned *ret_held);
/* What was written, for log_flood_next(). */
void log_flood_written(uint64_t id, const struct log_line *line);
/* The next flood that has to be told, in *ret_line (its texts in ret_texts; its
 * time_us is when the last was held back, monotonic). False: there is none. *at:
 * 0 at first. */
struct log_flood_texts {
	char provider[PN_TENANT_BYTES_MAX + 1];
	char tenant[PN_TENANT_BYTES_MAX + 1];
	char subject[64];
	char message[256];
};
bool log_flood_next(size_t *at, bool all, int64_t now_us,
    struct log_line *ret_line, struct log_flood_texts *ret_texts,
    unsigned *ret_held);
bool log_flood_is_shut(uint64_t id, int64_t now_us);

#endif
