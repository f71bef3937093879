/*
 * From the provider's charset to UTF-8.
 *
 * Alipay announces a charset and does not always keep to it: a merchant that
 * sends UTF-8 without saying so is understood as GBK, and the same bytes come
 * back labelled GBK. So the label is a hint. What cannot be decoded becomes
 * U+FFFD, one for each ill-formed sequence: the text is for people, and the
 * bytes that were signed are kept as evidence anyway.
 *
 * Nearly all values are ASCII or UTF-8, so iconv is opened only for a value
 * that needs it: iconv_open() takes longer than all the rest. The GB family is
 * decoded as GB18030: GB2312 and GBK are parts of it, and what Alipay calls
 * GBK holds four-byte characters.
 *
 * It does not remove NUL: JSON does that, and the signature needs it.
 */
#include "paynotify/charset.h"

#include <assert.h>
#include <errno.h>
#include <iconv.h>
#include <stdint.h>

static const struct pn_str replacement = { "\xef\xbf\xbd", 3 };
static const struct pn_str none = { NULL, 0 };

/* The longest UTF-8 that one byte of GB18030 or of rubbish can become: a
 * replacement. Two bytes become three at most, four become four. */
enum { UTF8_PER_BYTE_MAX = 3 };

static bool
is_ascii(struct pn_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.data[i] >= 0x80)
			return false;
	}
	return true;
}

static bool
is_gb(struct pn_str charset)
{
	return pn_str_equal_fold(charset, PN_STR("gbk")) ||
	       pn_str_equal_fold(charset, PN_STR("gb2312")) ||
	       pn_str_equal_fold(charset, PN_STR("gb18030"));
}

static bool
is_utf8_name(struct pn_str charset)
{
	return pn_str_equal_fold(charset, PN_STR("utf-8")) ||
	       pn_str_equal_fold(charset, PN_STR("utf8"));
}

/* Ill-formed sequences replaced. */
static struct pn_str
mend_utf8(struct pn_arena *arena, struct pn_str text)
{
	char *out, *start = NULL;
	size_t good, bad;

	if (text.len < SIZE_MAX / UTF8_PER_BYTE_MAX)
		start = pn_arena_alloc(arena, text.len * UTF8_PER_BYTE_MAX + 1);
	if (start == NULL)
		return none;
	for (out = start; text.len > 0;) {
		good = pn_str_utf8_prefix(text, &bad);
		memcpy(out, text.data, good);
		out += good;
		if (bad > 0) {
			memcpy(out, replacement.data, replacement.len);
			out += replacement.len;
		}
		text.data += good + bad;
		text.len -= good + bad;
	}
	return (struct pn_str){ start, (size_t)(out - start) };
}

/* Decodes GB18030 into the arena; *ret_bad counts what was replaced. */
static struct pn_str
decode_gb(
    struct pn_arena *arena, iconv_t gb, struct pn_str text, size_t *ret_bad)
{
	size_t room = text.len * UTF8_PER_BYTE_MAX, left = text.len;
	char *start = pn_arena_alloc(arena, room + 1), *out = start;
	/* iconv takes char ** and changes only the pointer. */
	union {
		const char *constant;
		char *variable;
	} in = { .constant = text.data };

	*ret_bad = 0;
	if (start == NULL)
		return none;
	while (left > 0) {
		if (iconv(gb, &in.variable, &left, &out, &room) != (size_t)-1)
			break;
		assert(errno != E2BIG);
		/* One byte is given up: the next may begin a character. */
		assert(room >= replacement.len && left > 0);
		memcpy(out, replacement.data, replacement.len);
		out += replacement.len;
		room -= replacement.len;
		in.constant++;
		left--;
		(*ret_bad)++;
		(void)iconv(gb, NULL, NULL, NULL, NULL);
	}
	return (struct pn_str){ start, (size_t)(out - start) };
}

static struct pn_str
gb_to_utf8(struct pn_arena *arena, struct pn_str text)
{
	struct pn_str decoded;
	size_t bad;
	iconv_t gb;

	if (text.len >= SIZE_MAX / UTF8_PER_BYTE_MAX)
		return none;
	gb = iconv_open("UTF-8", "GB18030");
	if (gb == (iconv_t)-1)
		/* No table on this host: keep what is ASCII. */
		return errno == ENOMEM ? none : mend_utf8(arena, text);
	decoded = decode_gb(arena, gb, text, &bad);
	(void)iconv_close(gb);
	if (decoded.data != NULL && bad > 0 && pn_str_is_utf8(text))
		return pn_arena_copy(arena, text); /* the label lied */
	return decoded;
}

struct pn_str
pn_charset_to_utf8(
    struct pn_arena *arena, struct pn_str charset, struct pn_str text)
{
	if (is_ascii(text))
		return pn_arena_copy(arena, text);
	if (is_gb(charset))
		return gb_to_utf8(arena, text);
	if (pn_str_is_utf8(text))
		return pn_arena_copy(arena, text);
	return is_utf8_name(charset) ? mend_utf8(arena, text)
				     : gb_to_utf8(arena, text);
}

int
pn_charset_from_utf8(struct pn_arena *arena, const char *charset,
    struct pn_str text, struct pn_str *ret_text)
{
	/* No charset of the GB family makes a text longer than its UTF-8. */
	size_t left = text.len, room = text.len;
	char *start = pn_arena_alloc(arena, text.len + 1), *out = start;
	union {
		const char *constant;
		char *variable;
	} in = { .constant = text.data };
	iconv_t gb;
	size_t r;

	if (start == NULL)
		return -ENOMEM;
	gb = iconv_open(charset, "UTF-8");
	if (gb == (iconv_t)-1)
		return errno == EINVAL ? 1 : -errno;
	r = left == 0 ? 0 : iconv(gb, &in.variable, &left, &out, &room);
	(void)iconv_close(gb);
	if (r != 0)
		return 1; /* an error, or characters put in for others */
	*ret_text = (struct pn_str){ start, (size_t)(out - start) };
	return 0;
}
