/*
 * JSON's tokens, by the grammar of RFC 8259 and nothing beside it.
 *
 * A string's one spelling is the shortest that is UTF-8: a character escaped
 * only if it must be, by two characters if it can be, else by four lower-case
 * digits. Half of a surrogate pair has no UTF-8, so it stays an escape, and two
 * halves that make a pair become its character. So an escape never becomes longer.
 */
#include "json_token.h"

#include <assert.h>
#include <limits.h>

#include "json_plain.h"
#include "paynotify/encode.h"

/* -- strings --------------------------------------------------------------- */

static void
write_byte(struct pn_json_copier *text, unsigned byte)
{
	*text->to++ = (char)byte;
}

static bool
is_high_surrogate(unsigned c)
{
	return c >= 0xd800 && c <= 0xdbff;
}

static bool
is_low_surrogate(unsigned c)
{
	return c >= 0xdc00 && c <= 0xdfff;
}

/* Takes \uXXXX; false, and nothing is taken: that is not what comes. */
static bool
read_unit(struct pn_json_copier *text, unsigned *ret_unit)
{
	unsigned char bytes[2];

	if (text->end - text->at < 6 || text->at[0] != '\\' ||
	    text->at[1] != 'u' ||
	    pn_hex_decode(
		(struct pn_str){ text->at + 2, 4 }, bytes, sizeof(bytes)) != 0)
		return false;
	text->at += 6;
	*ret_unit = (unsigned)bytes[0] << 8 | bytes[1];
	return true;
}

/* The character of the escape at the backslash, or the half of a pair that has
 * no other half. */
static bool
read_escape(struct pn_json_copier *text, unsigned *ret_character)
{
	static const char meanings[UCHAR_MAX + 1] = { ['"'] = '"',
		['\\'] = '\\',
		['/'] = '/',
		['b'] = '\b',
		['f'] = '\f',
		['n'] = '\n',
		['r'] = '\r',
		['t'] = '\t' };
	const char *behind;
	unsigned unit, low;

	if (!read_unit(text, &unit)) {
		if (text->end - text->at < 2)
			return false;
		*ret_character =
		    (unsigned char)meanings[(unsigned char)text->at[1]];
		text->at += 2;
		return *ret_character != 0;
	}
	behind = text->at;
	if (is_high_surrogate(unit) && read_unit(text, &low)) {
		if (is_low_surrogate(low))
			unit =
			    0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
		else
			text->at = behind;
	}
	*ret_character = unit;
	return true;
}

static void
write_unit(struct pn_json_copier *text, unsigned unit)
{
	static const char digits[] = "0123456789abcdef";

	write_byte(text, '\\');
	write_byte(text, 'u');
	for (int shift = 12; shift >= 0; shift -= 4)
		write_byte(text, (unsigned char)digits[unit >> shift & 0xf]);
}

/* As JSON or UTF-8 needs it escaped, or as UTF-8. */
static void
write_character(struct pn_json_copier *text, unsigned c)
{
	static const char shorts[0x20] = { ['\b'] = 'b',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't' };

	if (c == '"' || c == '\\' || (c < 0x20 && shorts[c] != '\0')) {
		write_byte(text, '\\');
		write_byte(text, c < 0x20 ? (unsigned char)shorts[c] : c);
	} else if (c < 0x20 || is_high_surrogate(c) || is_low_surrogate(c)) {
		write_unit(text, c);
	} else if (c < 0x80) {
		write_byte(text, c);
	} else if (c < 0x800) {
		write_byte(text, 0xc0 | c >> 6);
		write_byte(text, 0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		write_byte(text, 0xe0 | c >> 12);
		write_byte(text, 0x80 | (c >> 6 & 0x3f));
		write_byte(text, 0x80 | (c & 0x3f));
	} else {
		write_byte(text, 0xf0 | c >> 18);
		write_byte(text, 0x80 | (c >> 12 & 0x3f));
		write_byte(text, 0x80 | (c >> 6 & 0x3f));
		write_byte(text, 0x80 | (c & 0x3f));
	}
}

bool
pn_json_copy_string(struct pn_json_copier *text)
{
	size_t plain;
	unsigned c;

	assert(*text->at == '"');
	pn_json_copy_byte(text);
	for (;;) {
		plain = pn_json_plain_bytes((struct pn_str){
		    text->at, (size_t)(text->end - text->at) });
		memcpy(text->to, text->at, plain);
		text->to += plain;
		text->at += plain;
		if (text->at == text->end)
			return false;
		if (*text->at == '"')
			break;
		if (*text->at != '\\' || !read_escape(text, &c))
			return false;
		write_character(text, c);
	}
	pn_json_copy_byte(text);
	return true;
}

/* -- numbers and words ------------------------------------------------------ */

static bool
copy_any(struct pn_json_copier *text, const char *characters)
{
	if (text->at == text->end || *text->at == '\0' ||
	    strchr(characters, *text->at) == NULL)
		return false;
	pn_json_copy_byte(text);
	return true;
}

static bool
copy_digits(struct pn_json_copier *text)
{
	const char *start = text->at;

	while (text->at < text->end && *text->at >= '0' && *text->at <= '9')
		pn_json_copy_byte(text);
	return text->at > start;
}

bool
pn_json_copy_number(struct pn_json_copier *text)
{
	(void)copy_any(text, "-");
	if (!copy_any(text, "0") && !copy_digits(text))
		return false;
	if (copy_any(text, ".") && !copy_digits(text))
		return false;
	if (!copy_any(text, "eE"))
		return true;
	(void)copy_any(text, "+-");
	return copy_digits(text);
}

bool
pn_json_copy_word(struct pn_json_copier *text, struct pn_str word)
{
	if ((size_t)(text->end - text->at) < word.len ||
	    memcmp(text->at, word.data, word.len) != 0)
		return false;
	memcpy(text->to, word.data, word.len);
	text->to += word.len;
	text->at += word.len;
	return true;
}
