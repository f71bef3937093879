/*
 * A growing byte buffer with a maximum and a sticky error.
 *
 * Writers of long texts (replies, metrics, JSON) append without looking and
 * ask once at the end. Once an append has failed, every later one fails as
 * well: a text with a hole in it must never be sent.
 *
 * Invariants: data is NULL and size 0, or len < size and data[len] is NUL;
 * len <= max. Growing copies by hand instead of realloc(), because realloc()
 * would leave the old bytes, possibly decrypted text, behind in the heap.
 */
#include "paynotify/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_BYTES = 256 };

void
pn_buf_done(struct pn_buf *buf)
{
	if (buf == NULL)
		return;
	if (buf->data != NULL)
		explicit_bzero(buf->data, buf->len);
	free(buf->data);
	*buf = pn_buf_init(buf->max);
}

void
pn_buf_reset(struct pn_buf *buf)
{
	buf->len = 0;
	buf->failed = false;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

/* Makes room for len more bytes and the NUL; false, and failed, if not. */
static bool
reserve(struct pn_buf *buf, size_t len)
{
	size_t need, size;
	char *data;

	assert(buf->len <= buf->max);
	assert(buf->data == NULL || buf->len < buf->size);
	if (buf->failed)
		return false;
	if (len > buf->max - buf->len || buf->len + len >= SIZE_MAX / 2) {
		buf->failed = true;
		return false;
	}
	need = buf->len + len + 1;
	if (need <= buf->size)
		return true;
	size = buf->size == 0 ? FIRST_BYTES : buf->size * 2;
	if (size < need)
		size = need;
	if (size - 1 > buf->max) /* max + 1 may wrap */
		size = buf->max + 1;
	data = malloc(size);
	if (data == NULL) {
		buf->failed = true;
		return false;
	}
	if (buf->data != NULL) {
		memcpy(data, buf->data, buf->len);
		explicit_bzero(buf->data, buf->len);
		free(buf->data);
	}
	buf->data = data;
	buf->size = size;
	buf->data[buf->len] = '\0';
	return true;
}

char *
pn_buf_extend(struct pn_buf *buf, size_t len)
{
	char *at;

	if (!reserve(buf, len))
		return NULL;
	at = buf->data + buf->len;
	buf->len += len;
	buf->data[buf->len] = '\0';
	return at;
}

void
pn_buf_add(struct pn_buf *buf, const void *data, size_t len)
{
	char *at = pn_buf_extend(buf, len);

	if (at != NULL && len > 0)
		memcpy(at, data, len);
}

void
pn_buf_add_str(struct pn_buf *buf, struct pn_str s)
{
	pn_buf_add(buf, s.data, s.len);
}

void
pn_buf_add_text(struct pn_buf *buf, const char *text)
{
	pn_buf_add(buf, text, strlen(text));
}

void
pn_buf_add_char(struct pn_buf *buf, char c)
{
	pn_buf_add(buf, &c, 1);
}

void
pn_buf_vprintf(struct pn_buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	char *at;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len < 0)
		buf->failed = true;
	at = len < 0 ? NULL : pn_buf_extend(buf, (size_t)len);
	if (at != NULL)
		(void)vsnprintf(at, (size_t)len + 1, fmt, again);
	va_end(again);
}

void
pn_buf_printf(struct pn_buf *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pn_buf_vprintf(buf, fmt, ap);
	va_end(ap);
}
