/*
 * application/x-www-form-urlencoded, decoded exactly once.
 *
 * Alipay signs the decoded names and values, joined without any escaping. So
 * whatever two readers could understand differently is refused here instead of
 * being mended: a name that stands twice, a pair without "=", a stray "%", an
 * empty pair. A decoded name that holds "=" or "&" is refused as well: in the
 * joined string it would look like several fields, so that a re-encoded body
 * could hide fields inside a name and keep its signature. NUL in a name would
 * hide its rest from whoever looks names up as C strings.
 *
 * All decoded bytes go to one block of the arena, as long as the body: decoding
 * never makes a text longer. Values stay in the sender's charset; turning them
 * into UTF-8 before the signature is checked would be the oldest mistake.
 */
#include "paynotify/form.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "fields.h"
#include "paynotify/buf.h"
#include "paynotify/limits.h"

/* Value + 1 of each hex digit; 0 is no hex digit. */
static const unsigned char hex_values[256] = {
	['0'] = 1,
	['1'] = 2,
	['2'] = 3,
	['3'] = 4,
	['4'] = 5,
	['5'] = 6,
	['6'] = 7,
	['7'] = 8,
	['8'] = 9,
	['9'] = 10,
	['A'] = 11,
	['B'] = 12,
	['C'] = 13,
	['D'] = 14,
	['E'] = 15,
	['F'] = 16,
	['a'] = 11,
	['b'] = 12,
	['c'] = 13,
	['d'] = 14,
	['e'] = 15,
	['f'] = 16,
};

/* Decodes in to out, which has in.len bytes, and returns how many it wrote;
 * SIZE_MAX when a "%" is not followed by two hex digits. */
static size_t
decode(struct pn_str in, char *out)
{
	const unsigned char *at = (const unsigned char *)in.data;
	const unsigned char *end = at + in.len;
	char *start = out;
	unsigned high, low;

	while (at < end) {
		if (*at == '%') {
			if (end - at < 3)
				return SIZE_MAX;
			high = hex_values[at[1]];
			low = hex_values[at[2]];
			if (high == 0 || low == 0)
				return SIZE_MAX;
			*out++ = (char)((high - 1) << 4 | (low - 1));
			at += 3;
			continue;
		}
		*out++ = *at == '+' ? ' ' : (char)*at;
		at++;
	}
	assert((size_t)(out - start) <= in.len);
	return (size_t)(out - start);
}

static bool
is_clean_name(struct pn_str name)
{
	return memchr(name.data, '&', name.len) == NULL &&
	       memchr(name.data, '=', name.len) == NULL &&
	       memchr(name.data, '\0', name.len) == NULL;
}

/* One pair, decoded to *out, which moves on. position: where it begins. */
static int
decode_pair(struct pn_str pair, size_t position, char **out,
    struct pn_field *ret_field, struct pn_error *ret_error)
{
	struct pn_str rest = pair, name = pn_str_split(&rest, '=');

	if (rest.data == NULL)
		return pn_error_set(
		    ret_error, 1, "pair at byte %zu has no \"=\"", position);
	if (name.len == 0)
		return pn_error_set(
		    ret_error, 1, "pair at byte %zu has no name", position);
	ret_field->name.data = *out;
	ret_field->name.len = decode(name, *out);
	if (ret_field->name.len == SIZE_MAX)
		return pn_error_set(ret_error, 1,
		    "name at byte %zu has a malformed percent-escape",
		    position);
	if (ret_field->name.len > PN_FORM_NAME_BYTES_MAX)
		return pn_error_set(ret_error, 1,
		    "name at byte %zu is longer than %d bytes", position,
		    PN_FORM_NAME_BYTES_MAX);
	if (!is_clean_name(ret_field->name))
		return pn_error_set(ret_error, 1,
		    "name at byte %zu holds \"&\", \"=\" or NUL", position);
	*out += ret_field->name.len;
	ret_field->value.data = *out;
	ret_field->value.len = decode(rest, *out);
	if (ret_field->value.len == SIZE_MAX)
		return pn_error_set(ret_error, 1,
		    "field \"" PN_STR_FMT "\" at byte %zu has a malformed "
		    "percent-escape",
		    PN_STR_ARG(ret_field->name), position);
	*out += ret_field->value.len;
	return 0;
}

static size_t
count_pairs(struct pn_str body)
{
	struct pn_str rest = body;
	size_t count = 0;

	/* One more than the maximum is enough to know that it is too many. */
	while (rest.data != NULL && count <= PN_FORM_FIELDS_MAX) {
		(void)pn_str_split(&rest, '&');
		count++;
	}
	return count;
}

int
pn_form_parse(struct pn_arena *arena, struct pn_str body,
    struct pn_form *ret_form, struct pn_error *ret_error)
{
	struct pn_form form = { NULL, 0 };
	struct pn_str rest = body, pair;
	size_t pairs;
	char *out;
	int r;

	if (body.len == 0) {
		*ret_form = form;
		return 0;
	}
	pairs = count_pairs(body);
	if (pairs > PN_FORM_FIELDS_MAX)
		return pn_error_set(
		    ret_error, 1, "more than %d fields", PN_FORM_FIELDS_MAX);
	form.fields = pn_arena_alloc(arena, pairs * sizeof(form.fields[0]));
	out = pn_arena_alloc(arena, body.len);
	if (form.fields == NULL || out == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	for (; form.count < pairs; form.count++) {
		pair = pn_str_split(&rest, '&');
		r = decode_pair(pair, (size_t)(pair.data - body.data), &out,
		    &form.fields[form.count], ret_error);
		if (r != 0)
			return r;
	}
	assert(rest.data == NULL);
	r = pn_fields_sort(&form, ret_error);
	if (r != 0)
		return r;
	*ret_form = form;
	return 0;
}

/* Raw in Java's URLEncoder: letters, digits and these four. */
static bool
is_raw(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '*' || c == '-' || c == '_' ||
	       c == '.';
}

void
pn_form_encode(struct pn_buf *out, struct pn_str value)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];
		const char escape[] = { '%', digits[c >> 4], digits[c & 15] };

		if (c == ' ')
			pn_buf_add_char(out, '+');
		else if (is_raw((char)c))
			pn_buf_add_char(out, (char)c);
		else
			pn_buf_add(out, escape, sizeof(escape));
	}
}
