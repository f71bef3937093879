/*
 * Strict JSON on top of jansson.
 *
 * jansson refuses duplicate names (asked to), ill-formed UTF-8, lone surrogates
 * and integers over 64 bits. What it lacks is done in one walk over the text
 * before it sees it:
 *  - NUL: jansson 2.14 skips one behind a number;
 *  - depth: jansson recurses 2048 levels deep, we stop at PN_JSON_DEPTH_MAX;
 *  - numbers: jansson takes a real that underflows to 0, but the text of the
 *    payload goes to PostgreSQL as it is, and there a number with 20,000
 *    digits behind the point makes the statement fail.
 *
 * The usual documents have neither escapes nor fractions; json_plain.c makes
 * those into jansson's values at a fifth of the cost, and leaves the rest to
 * what is here.
 *
 * A fault's text never quotes the document: it may hold a payer's data.
 *
 * pn_json_sanitise() keeps the provider's own text, because printing the
 * parsed value again would change the order of names and the form of numbers.
 */
#include "paynotify/json.h"

#include <assert.h>
#include <errno.h>

#include "json_plain.h"
#include "paynotify/buf.h"
#include "paynotify/limits.h"

static const char nul_escape[] = "\\u0000";
static const char replacement_escape[] = "\\ufffd";

/* Index behind the string that begins at text.data[at]. */
static size_t
skip_string(struct pn_str text, size_t at)
{
	for (at++; at < text.len; at++) {
		if (text.data[at] == '\\')
			at++;
		else if (text.data[at] == '"')
			return at + 1;
	}
	return text.len; /* unterminated: jansson will say so */
}

static bool
is_number_char(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
	       c == 'e' || c == 'E';
}

/* Index behind the number at text.data[at]; 0 when it is too long. */
static size_t
skip_number(struct pn_str text, size_t at)
{
	size_t start = at, exponent = 0;
	bool in_exponent = false;

	for (; at < text.len && is_number_char(text.data[at]); at++) {
		char c = text.data[at];

		if (at - start >= PN_JSON_NUMBER_BYTES_MAX)
			return 0;
		if (c == 'e' || c == 'E')
			in_exponent = true;
		else if (in_exponent && c >= '0' && c <= '9' &&
			 ++exponent > PN_JSON_EXPONENT_DIGITS_MAX)
			return 0;
	}
	return at;
}

/* NUL, depth and numbers, before jansson. */
static int
check_text(struct pn_str text, struct pn_error *ret_error)
{
	size_t at = 0, depth = 0, next;

	if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)
		return pn_error_set(ret_error, 1, "holds a NUL byte");
	while (at < text.len) {
		char c = text.data[at];

		if (c == '"') {
			at = skip_string(text, at);
			continue;
		}
		if (c == '-' || (c >= '0' && c <= '9')) {
			next = skip_number(text, at);
			if (next == 0)
				return pn_error_set(ret_error, 1,
				    "number at byte %zu is too long", at);
			at = next;
			continue;
		}
		if (c == '[' || c == '{') {
			if (++depth > PN_JSON_DEPTH_MAX)
				return pn_error_set(ret_error, 1,
				    "nested deeper than %d at byte %zu",
				    PN_JSON_DEPTH_MAX, at);
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
		at++;
	}
	return 0;
}

int
pn_json_parse(
    struct pn_str text, json_t **ret_value, struct pn_error *ret_error)
{
	json_error_t error;
	json_t *value;
	char *quote;
	int r;

	value = pn_json_plain(text);
	if (value != NULL) {
		*ret_value = value;
		return 0;
	}
	r = check_text(text, ret_error);
	if (r != 0)
		return r;
	value = json_loadb(text.data == NULL ? "" : text.data, text.len,
	    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (value == NULL) {
		if (json_error_code(&error) == json_error_out_of_memory)
			return pn_error_set(
			    ret_error, -ENOMEM, "out of memory");
		/* What follows "near" is a piece of the document. */
		quote = strstr(error.text, " near ");
		if (quote != NULL)
			*quote = '\0';
		return pn_error_set(
		    ret_error, 1, "%s at byte %d", error.text, error.position);
	}
	*ret_value = value;
	return 0;
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
		const char escaped[] = { '\\', (char)c };

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		pn_buf_add(out, text.data + plain, i - plain);
		plain = i + 1;
		if (c == '"' || c == '\\')
			pn_buf_add(out, escaped, sizeof(escaped));
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
	char *at;

	if (pn_json_plain_bytes(text) == text.len && pn_str_is_utf8(text)) {
		at = pn_buf_extend(out, text.len + 2);
		if (at == NULL)
			return;
		at[0] = at[text.len + 1] = '"';
		if (text.len > 0)
			memcpy(at + 1, text.data, text.len);
		return;
	}
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
