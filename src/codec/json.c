/*
 * Strict JSON: looking at values, and text that goes to PostgreSQL. Reading is
 * json_reader.c.
 *
 * An empty text counts as absent here, since a provider that sends "" means
 * nothing by it. A fault's text never quotes the document: it may hold a
 * payer's data.
 *
 * pn_json_sanitise() keeps the provider's own text, because printing the
 * parsed value again would change the order of names and the form of numbers.
 */
#include "paynotify/json.h"

#include <assert.h>

#include "json_reader.h"
#include "paynotify/buf.h"

static const char nul_escape[] = "\\u0000";
static const char replacement_escape[] = "\\ufffd";

int
pn_json_parse(
    struct pn_str text, json_t **ret_value, struct pn_error *ret_error)
{
	return pn_json_read(text, ret_value, ret_error);
}

void
pn_json_freep(json_t **value)
{
	json_decref(*value);
	*value = NULL;
}

struct pn_str
pn_json_text(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_string(value) || json_string_length(value) == 0)
		return (struct pn_str){ NULL, 0 };
	return (struct pn_str){ json_string_value(value),
		json_string_length(value) };
}

int
pn_json_int64(const json_t *object, const char *name, int64_t *ret_value)
{
	const json_t *value = json_object_get(object, name);

	static_assert(sizeof(json_int_t) == sizeof(int64_t), "no cut");
	if (value == NULL || json_is_null(value))
		return 1;
	if (!json_is_integer(value))
		return 2;
	*ret_value = json_integer_value(value);
	return 0;
}

struct pn_str
pn_json_sanitise(struct pn_arena *arena, struct pn_str text)
{
	const size_t escape_len = sizeof(nul_escape) - 1;
	char *bytes = pn_arena_alloc(arena, text.len + 1);

	static_assert(sizeof(nul_escape) == sizeof(replacement_escape),
	    "replaced in place");
	if (bytes == NULL)
		return (struct pn_str){ NULL, 0 };
	memcpy(bytes, text.data, text.len);
	if (pn_str_find(text, PN_STR(nul_escape)) < 0)
		return (struct pn_str){ bytes, text.len };
	/* A backslash stands only inside strings and takes the next byte with
	 * it, so walking by escapes tells \u0000 from \\u0000. */
	for (size_t at = 0; at < text.len; at++) {
		if (bytes[at] != '\\')
			continue;
		if (text.len - at >= escape_len &&
		    memcmp(bytes + at, nul_escape, escape_len) == 0)
			memcpy(bytes + at, replacement_escape, escape_len);
		at++;
	}
	return (struct pn_str){ bytes, text.len };
}

/* Well-formed UTF-8 with quotes, backslashes and control bytes escaped. */
static void
add_escaped(struct pn_buf *out, struct pn_str text)
{
	size_t plain = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		pn_buf_add(out, text.data + plain, i - plain);
		plain = i + 1;
		if (c == '"' || c == '\\')
			pn_buf_printf(out, "\\%c", c);
		else if (c == '\0')
			pn_buf_add_text(out, replacement_escape);
		else
			pn_buf_printf(out, "\\u%04x", c);
	}
	pn_buf_add(out, text.data + plain, text.len - plain);
}

void
pn_json_add_string(struct pn_buf *out, struct pn_str text)
{
	struct pn_str piece;
	size_t bad;

	pn_buf_add_char(out, '"');
	while (text.len > 0) {
		piece = (struct pn_str){ text.data,
			pn_str_utf8_prefix(text, &bad) };
		add_escaped(out, piece);
		if (bad > 0)
			pn_buf_add_text(out, replacement_escape);
		text.data += piece.len + bad;
		text.len -= piece.len + bad;
	}
	pn_buf_add_char(out, '"');
}
