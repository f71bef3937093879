/*
 * Byte slices. A struct pn_str borrows: whoever made the bytes owns them, and
 * most often that is the arena of the request. Bytes may include NUL, so a
 * length always goes with the pointer. Any thread.
 */
#ifndef PN_STR_H
#define PN_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct pn_str {
	const char *data; /* not NUL-terminated in general; NULL when absent */
	size_t len;
};

#define PN_STR(literal) ((struct pn_str){ (literal), sizeof(literal) - 1 })
#define PN_STR_FMT      "%.*s"
#define PN_STR_ARG(s)   (int)(s).len, (s).data == NULL ? "" : (s).data

static inline struct pn_str
pn_str_from(const char *text)
{
	return (struct pn_str){ text, text == NULL ? 0 : strlen(text) };
}

static inline bool
pn_str_equal(struct pn_str a, struct pn_str b)
{
	return a.len == b.len &&
	       (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool
pn_str_is(struct pn_str a, const char *text)
{
	return pn_str_equal(a, pn_str_from(text));
}

/* Compares as bytes, shorter first: the order of keys in a batch. */
int pn_str_compare(struct pn_str a, struct pn_str b);

/* ASCII letters only: header names, charset names. */
bool pn_str_equal_fold(struct pn_str a, struct pn_str b);
bool pn_str_starts(struct pn_str s, const char *prefix);
/* Position of needle in haystack, or -1. */
ptrdiff_t pn_str_find(struct pn_str haystack, struct pn_str needle);
/* Without leading and trailing space, tab, CR, LF. */
struct pn_str pn_str_trim(struct pn_str s);
/* Cuts s at the first separator: returns what is before it and moves *rest
 * behind it. *rest.data is NULL after the last piece. */
struct pn_str pn_str_split(struct pn_str *rest, char separator);
/* Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, at most
 * U+10FFFF). NUL is well-formed here. */
bool pn_str_is_utf8(struct pn_str s);
/* A token of RFC 9110, which a method and a header's name are: not empty, and
 * none but certain ASCII characters. */
bool pn_str_is_token(struct pn_str s);
/* Length of the longest well-formed prefix. *ret_bad: how many bytes behind it
 * are the ill-formed sequence (what one U+FFFD stands for), 0 at the end. */
size_t pn_str_utf8_prefix(struct pn_str s, size_t *ret_bad);

#endif
