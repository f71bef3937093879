/*
 * The text that goes with a fault.
 *
 * Texts are built in a buffer of their own and then copied, so that the old
 * text may be among the arguments. A text that is too long is cut: a fault is
 * never replaced by a fault about its text.
 */
#include "paynotify/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
copy_text(struct pn_error *error, const char *text)
{
	size_t len = strnlen(text, sizeof(error->text) - 1);

	memcpy(error->text, text, len);
	error->text[len] = '\0';
}

int
pn_error_set(struct pn_error *error, int r, const char *fmt, ...)
{
	char text[PN_ERROR_TEXT_BYTES_MAX];
	va_list ap;

	if (error == NULL)
		return r;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	copy_text(error, text);
	return r;
}

int
pn_error_prefix(struct pn_error *error, int r, const char *fmt, ...)
{
	char text[PN_ERROR_TEXT_BYTES_MAX];
	size_t len;
	va_list ap;

	if (error == NULL)
		return r;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	len = strlen(text);
	(void)snprintf(text + len, sizeof(text) - len, "%s", error->text);
	copy_text(error, text);
	return r;
}
