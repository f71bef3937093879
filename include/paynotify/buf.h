/*
 * A growing byte buffer with a maximum. Errors stick: append as often as
 * needed, then ask pn_buf_failed() once. Not thread-safe.
 */
#ifndef PN_BUF_H
#define PN_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

struct pn_buf {
	char *data; /* len bytes and always a NUL behind them, or NULL */
	size_t len, size, max;
	bool failed; /* memory was out or max exceeded; nothing was appended */
};

static inline struct pn_buf
pn_buf_init(size_t bytes_max)
{
	return (struct pn_buf){ .max = bytes_max };
}

void pn_buf_done(struct pn_buf *buf);  /* cleanses and frees; reusable after */
void pn_buf_reset(struct pn_buf *buf); /* len 0, memory kept, failed false */
void pn_buf_add(struct pn_buf *buf, const void *data, size_t len);
void pn_buf_add_str(struct pn_buf *buf, struct pn_str s);
void pn_buf_add_text(struct pn_buf *buf, const char *text);
void pn_buf_add_char(struct pn_buf *buf, char c);
void pn_buf_printf(struct pn_buf *buf, const char *fmt, ...) PN_PRINTF(2, 3);
void pn_buf_vprintf(struct pn_buf *buf, const char *fmt, va_list ap)
    PN_PRINTF(2, 0);
/* Room for len more bytes to be written at the place returned, counted in at
 * once. NULL when failed. */
char *pn_buf_extend(struct pn_buf *buf, size_t len);

static inline bool
pn_buf_failed(const struct pn_buf *buf)
{
	return buf->failed;
}

static inline struct pn_str
pn_buf_str(const struct pn_buf *buf)
{
	return (struct pn_str){ buf->data, buf->len };
}

#endif
