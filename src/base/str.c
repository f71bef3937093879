/*
 * Byte slices: comparing, searching, cutting, and the checks for UTF-8 and for
 * tokens.
 *
 * Everything works on (pointer, length) and never looks for a NUL, because the
 * values of a notification may hold one. Folding of case is for ASCII letters
 * only and asks no locale: the result must not depend on the environment of
 * the service.
 *
 * pn_str_is_utf8() runs over every value of every notification, so it takes
 * eight ASCII bytes at a time and decodes only what is left. It does not
 * refuse noncharacters (U+FFFE): RFC 3629 has them well-formed, and so has
 * PostgreSQL.
 */
#include "paynotify/str.h"

#include <assert.h>
#include <stdint.h>

static const uint64_t HIGH_BITS = UINT64_C(0x8080808080808080);

int
pn_str_compare(struct pn_str a, struct pn_str b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int r = common == 0 ? 0 : memcmp(a.data, b.data, common);

	if (r != 0)
		return r;
	return (a.len > b.len) - (a.len < b.len);
}

static unsigned char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a')
				    : (unsigned char)c;
}

bool
pn_str_equal_fold(struct pn_str a, struct pn_str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (fold(a.data[i]) != fold(b.data[i]))
			return false;
	}
	return true;
}

bool
pn_str_starts(struct pn_str s, const char *prefix)
{
	size_t len = strlen(prefix);

	return s.len >= len && (len == 0 || memcmp(s.data, prefix, len) == 0);
}

ptrdiff_t
pn_str_find(struct pn_str haystack, struct pn_str needle)
{
	const char *found;

	if (needle.len == 0)
		return 0;
	if (haystack.len < needle.len)
		return -1;
	found = memmem(haystack.data, haystack.len, needle.data, needle.len);
	return found == NULL ? -1 : found - haystack.data;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct pn_str
pn_str_trim(struct pn_str s)
{
	while (s.len > 0 && is_blank(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

struct pn_str
pn_str_split(struct pn_str *rest, char separator)
{
	struct pn_str piece = *rest;
	const char *at =
	    rest->len == 0 ? NULL : memchr(rest->data, separator, rest->len);

	if (at == NULL) {
		*rest = (struct pn_str){ NULL, 0 };
		return piece;
	}
	piece.len = (size_t)(at - piece.data);
	rest->data = at + 1;
	rest->len -= piece.len + 1;
	return piece;
}

/*
 * The second byte of a sequence has a narrower range behind four of the lead
 * bytes; that is where overlong forms, surrogates and values over U+10FFFF
 * are. The table is RFC 3629 section 4. Returns the length of the sequence,
 * or 0 with the bytes that no longer can become one in *ret_bad.
 */
static size_t
sequence(const unsigned char *at, size_t left, size_t *ret_bad)
{
	unsigned char lead = at[0], low = 0x80, high = 0xbf;
	size_t want;

	if (lead >= 0xc2 && lead <= 0xdf) {
		want = 2;
	} else if (lead >= 0xe0 && lead <= 0xef) {
		want = 3;
		low = lead == 0xe0 ? 0xa0 : 0x80;
		high = lead == 0xed ? 0x9f : 0xbf;
	} else if (lead >= 0xf0 && lead <= 0xf4) {
		want = 4;
		low = lead == 0xf0 ? 0x90 : 0x80;
		high = lead == 0xf4 ? 0x8f : 0xbf;
	} else {
		*ret_bad = 1;
		return 0;
	}
	for (size_t i = 1; i < want; i++) {
		if (i >= left || at[i] < low || at[i] > high) {
			*ret_bad = i;
			return 0;
		}
		low = 0x80;
		high = 0xbf;
	}
	return want;
}

bool
pn_str_is_token(struct pn_str s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			(c >= 'a' && c <= 'z') ||
			(c != '\0' && strchr(others, c) != NULL)))
			return false;
	}
	return s.len > 0;
}

size_t
pn_str_utf8_prefix(struct pn_str s, size_t *ret_bad)
{
	const unsigned char *bytes = (const unsigned char *)s.data;
	size_t at = 0, len;
	uint64_t eight;

	*ret_bad = 0;
	while (at < s.len) {
		if (bytes[at] < 0x80) {
			if (s.len - at >= sizeof(eight)) {
				memcpy(&eight, bytes + at, sizeof(eight));
				if ((eight & HIGH_BITS) == 0) {
					at += sizeof(eight);
					continue;
				}
			}
			at++;
			continue;
		}
		len = sequence(bytes + at, s.len - at, ret_bad);
		if (len == 0)
			return at;
		at += len;
	}
	assert(at == s.len);
	return at;
}

bool
pn_str_is_utf8(struct pn_str s)
{
	size_t bad;

	return pn_str_utf8_prefix(s, &bad) == s.len;
}
