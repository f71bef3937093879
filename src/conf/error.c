/*
 * Errors of a configuration, collected: an operator mends all of them at once
 * instead of one a start. The text of struct pn_error has one error a line;
 * what does not fit is counted in the last line (room for it is kept).
 * Warnings are collected likewise, whole: no option can earn many.
 *
 * Also the arena of the load, because memory being out is the one error that ends
 * everything.
 */
#include "conf_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum {
	TAIL_BYTES = 40, /* "\n... and 4294967295 more errors" */
	ARRAY_FIRST = 16,
};

static_assert((int)PN_ERROR_TEXT_BYTES_MAX > 4 * (int)TAIL_BYTES,
    "at least one error fits beside the tail");

static void
append(struct conf_load *load, size_t bytes_max, const char *line)
{
	char *text = load->error->text;
	int r;

	assert(load->error_bytes < bytes_max);
	r = snprintf(text + load->error_bytes, bytes_max - load->error_bytes,
	    "%s%s", load->error_bytes > 0 ? "\n" : "", line);
	if (r < 0)
		return;
	load->error_bytes += (size_t)r;
	if (load->error_bytes > bytes_max - 1)
		load->error_bytes = bytes_max - 1;
}

/* Told once it no longer fits: how many are missing. */
static void
append_tail(struct conf_load *load, size_t missing)
{
	char *text = load->error->text + load->error_bytes;
	size_t room = sizeof(load->error->text) - load->error_bytes;

	(void)snprintf(text, room, "\n... and %zu more errors", missing);
}

void
conf_fail(
    struct conf_load *load, struct pn_conf_place place, const char *fmt, ...)
{
	const size_t bytes_max = sizeof(load->error->text) - TAIL_BYTES;
	char line[PN_ERROR_TEXT_BYTES_MAX], reason[PN_ERROR_TEXT_BYTES_MAX];
	size_t shown;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	assert(r >= 0);
	if (place.line > 0)
		r = snprintf(line, sizeof(line), "%s:%d: %s", place.file,
		    place.line, reason);
	else
		r = snprintf(line, sizeof(line), "%s: %s", place.file, reason);
	assert(r >= 0);
	load->error_count++;
	shown = strlen(line);
	/* The first is told whatever its length, cut if it must be. */
	if (load->error_count == 1 ||
	    (load->error_bytes + 1 + shown < bytes_max &&
		strlen(load->error->text) == load->error_bytes)) {
		append(load, bytes_max, line);
		load->error_told++;
		return;
	}
	append_tail(load, load->error_count - load->error_told);
}

void
conf_warn(
    struct conf_load *load, struct pn_conf_place place, const char *fmt, ...)
{
	char reason[PN_ERROR_TEXT_BYTES_MAX];
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	assert(r >= 0);
	if (pn_conf_warn(load->conf, place, reason) < 0)
		load->memory_out = true;
}

const char *
conf_comment_hint(struct pn_str value)
{
	if (pn_str_find(value, PN_STR(" #")) < 0 &&
	    pn_str_find(value, PN_STR(";")) < 0)
		return "";
	return "; a comment behind a value begins with \" ;\", a blank first";
}

void *
conf_alloc(struct conf_load *load, size_t bytes)
{
	void *data = pn_arena_alloc(load->arena, bytes);

	if (data == NULL)
		load->memory_out = true;
	return data;
}

char *
conf_copy(struct conf_load *load, struct pn_str text)
{
	char *copy = conf_alloc(load, text.len + 1);

	if (copy != NULL && text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

void *
conf_grow(struct conf_load *load, void *array, size_t count, size_t *size,
    size_t bytes)
{
	size_t new_size = *size == 0 ? ARRAY_FIRST : *size * 2;
	void *new_array;

	assert(count <= *size);
	if (count < *size)
		return array;
	new_array = conf_alloc(load, new_size * bytes);
	if (new_array == NULL)
		return NULL;
	if (count > 0)
		memcpy(new_array, array, count * bytes);
	*size = new_size;
	return new_array;
}
