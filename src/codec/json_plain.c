/*
 * The short way for plain JSON: an object of objects, arrays, strings without
 * escapes, unsigned integers and literals, which is what providers send.
 *
 * jansson looks at a document byte by byte, through four calls each, and that
 * was a sixth of all that a notification costs the daemon. Here a string is
 * skipped eight bytes at a time; values are made by jansson all the same.
 *
 * This does not judge. Whatever is not plain (an escape, a sign, a fraction, a
 * number of 19 digits, any fault at all) is left to jansson from the beginning,
 * so its strictness, its faults and their texts stay the only ones. The one
 * thing to keep right is the invariant: what is accepted here jansson accepts
 * too, as an equal value. fuzz_json.c holds both against each other.
 *
 * Objects and arrays are kept on a stack instead of recursing into them.
 */
#include "json_plain.h"

#include <assert.h>
#include <stdint.h>

#include "paynotify/limits.h"

enum { DIGITS_MAX = 18 }; /* fit an int64_t, whatever they are */

struct reader {
	const char *at, *end;
	/* Containers that are open, outermost first; each belongs to the one
	 * before it. */
	json_t *open[PN_JSON_DEPTH_MAX];
	size_t depth;
	struct pn_str name; /* of the member to come, in an object */
};

static uint64_t
has_zero_byte(uint64_t word)
{
	return (word - UINT64_C(0x0101010101010101)) & ~word &
	       UINT64_C(0x8080808080808080);
}

size_t
pn_json_plain_bytes(struct pn_str text)
{
	static const uint64_t ones = UINT64_C(0x0101010101010101);
	size_t at = 0;
	uint64_t word;

	for (; at + sizeof(word) <= text.len; at += sizeof(word)) {
		memcpy(&word, text.data + at, sizeof(word));
		/* Each term may err behind a true find, never before it. */
		if ((has_zero_byte(word ^ (ones * '"')) |
			has_zero_byte(word ^ (ones * '\\')) |
			((word - ones * 0x20) & ~word & (ones * 0x80))) != 0)
			break;
	}
	while (at < text.len && text.data[at] != '"' && text.data[at] != '\\' &&
	       (unsigned char)text.data[at] >= 0x20)
		at++;
	return at;
}

static char
next_token(struct reader *in)
{
	while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' ||
				       *in->at == '\r' || *in->at == '\t'))
		in->at++;
	return in->at < in->end ? *in->at : '\0';
}

/* The string at the quote; the reader moves behind it. */
static bool
read_string(struct reader *in, struct pn_str *ret_string)
{
	struct pn_str rest = { ++in->at, 0 };
	size_t len;

	rest.len = (size_t)(in->end - rest.data);
	len = pn_json_plain_bytes(rest);
	if (len == rest.len || rest.data[len] != '"')
		return false;
	*ret_string = (struct pn_str){ rest.data, len };
	in->at += len + 1;
	return true;
}

static json_t *
read_number(struct reader *in)
{
	const char *start = in->at;
	json_int_t number = 0;

	for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++) {
		if (in->at - start >= DIGITS_MAX)
			return NULL;
		number = number * 10 + (*in->at - '0');
	}
	if (in->at == start || (*start == '0' && in->at - start > 1))
		return NULL;
	/* What follows must be a separator: a fraction is none. */
	return json_integer(number);
}

static bool
skip_word(struct reader *in, const char *word, size_t len)
{
	if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
		return false;
	in->at += len;
	return true;
}

/* NULL: not plain. */
static json_t *
read_value(struct reader *in)
{
	struct pn_str string;

	switch (next_token(in)) {
	case '{': in->at++; return json_object();
	case '[': in->at++; return json_array();
	case '"':
		if (!read_string(in, &string))
			return NULL;
		return json_stringn_nocheck(string.data, string.len);
	case 't': return skip_word(in, "true", 4) ? json_true() : NULL;
	case 'f': return skip_word(in, "false", 5) ? json_false() : NULL;
	case 'n': return skip_word(in, "null", 4) ? json_null() : NULL;
	default: return read_number(in);
	}
}

static bool
read_name(struct reader *in)
{
	if (next_token(in) != '"' || !read_string(in, &in->name) ||
	    next_token(in) != ':')
		return false;
	in->at++;
	return true;
}

/* Into the innermost container, which takes the reference in all cases. */
static bool
add_value(struct reader *in, json_t *value)
{
	json_t *parent = in->open[in->depth - 1];
	size_t before;

	if (json_is_array(parent))
		return json_array_append_new(parent, value) == 0;
	before = json_object_size(parent);
	return json_object_setn_new_nocheck(
		   parent, in->name.data, in->name.len, value) == 0 &&
	       json_object_size(parent) == before + 1; /* else a second one */
}

/* Behind a value: goes to the next one, closing what ends. */
static bool
advance(struct reader *in)
{
	while (in->depth > 0) {
		bool object = json_is_object(in->open[in->depth - 1]);
		char token = next_token(in);

		if (token != ',' && token != (object ? '}' : ']'))
			return false;
		in->at++;
		if (token == ',')
			return !object || read_name(in);
		in->depth--;
	}
	(void)next_token(in);
	return in->at == in->end;
}

/* From a value that was read to the next one, which may be its first member. */
static bool
step(struct reader *in, json_t *value)
{
	bool object = json_is_object(value);

	if (!object && !json_is_array(value))
		return advance(in);
	if (in->depth == PN_JSON_DEPTH_MAX)
		return false;
	in->open[in->depth++] = value;
	if (next_token(in) == (object ? '}' : ']'))
		return advance(in);
	return !object || read_name(in);
}

static bool
read_members(struct reader *in)
{
	json_t *value;

	/* Each turn reads a byte at least. */
	while (in->depth > 0) {
		value = read_value(in);
		if (value == NULL || !add_value(in, value) || !step(in, value))
			return false;
	}
	return true;
}

json_t *
pn_json_plain(struct pn_str text)
{
	struct reader in = { .at = text.data };
	json_t *whole;

	if (text.len == 0 || !pn_str_is_utf8(text))
		return NULL;
	in.end = text.data + text.len;
	if (next_token(&in) != '{')
		return NULL;
	whole = read_value(&in);
	if (whole != NULL && step(&in, whole) && read_members(&in)) {
		assert(in.at == in.end && in.depth == 0);
		return whole;
	}
	json_decref(whole);
	return NULL;
}
