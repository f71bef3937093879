/*
 * The canonical form of JSON: what two documents that mean the same have in
 * common. No white space, members in the order of their names' bytes, each
 * string written in one way only. Numbers keep their text, since 1.0 and 1, or
 * 1e2 and 100, are not the same to every reader.
 *
 * pn_json_parse() judges, so that strictness and faults are those of json.c;
 * the form is then made from the text, because parsing loses what a number
 * looked like. What is written is never longer than what it was read from (an
 * escape only ever becomes shorter), so the room is taken once. Invariant of
 * the walk: written bytes <= read bytes.
 *
 * Order: while an object is open, where each of its members stands in what was
 * written is kept on a stack; when it closes, they are put in order in place,
 * through a second room. That moves a byte once for each object around it, so at
 * most PN_JSON_DEPTH_MAX times, and objects that are in order already, never.
 * What moves is inside of the object that closes: members of those around it
 * stay where they are.
 *
 * This is not RFC 8785: that one writes numbers again as a double prints, which
 * would have two amounts over 2^53 be the same.
 */
#include "paynotify/json.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "json_plain.h"
#include "paynotify/buf.h"
#include "paynotify/encode.h"
#include "paynotify/limits.h"

/* A member as it was written: "name":value, from the first quote on. */
struct member {
	const char *at;
	size_t len;
};

struct open_value {
	bool is_object;
	size_t first; /* of its members on the stack */
	char *start;  /* of what is between the braces */
};

struct writer {
	struct pn_arena *arena;
	const char *at, *end; /* what is read */
	char *out, *room;     /* what is written; room: NULL until needed */
	size_t size;
	char *to;
	struct open_value open[PN_JSON_DEPTH_MAX];
	size_t depth;
	bool name_next;        /* in an object, where a member begins */
	struct pn_buf members; /* struct member each */
};

/* -- strings --------------------------------------------------------------- */

/* What a backslash and c stand for, c not being a "u". */
static unsigned
unescaped(char c)
{
	switch (c) {
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	default: return (unsigned char)c; /* a quote, backslash or solidus */
	}
}

static unsigned
read_hex(struct writer *w)
{
	unsigned char bytes[2];
	int r;

	assert(w->end - w->at >= 4);
	r = pn_hex_decode((struct pn_str){ w->at, 4 }, bytes, sizeof(bytes));
	assert(r == 0);
	w->at += 4;
	return (unsigned)bytes[0] << 8 | bytes[1];
}

/* The character of the escape; the backslash was read. */
static unsigned
read_escape(struct writer *w)
{
	unsigned c, low;

	assert(w->at < w->end);
	if (*w->at != 'u')
		return unescaped(*w->at++);
	w->at++;
	c = read_hex(w);
	if (c < 0xd800 || c > 0xdfff)
		return c;
	assert(c < 0xdc00 && w->end - w->at >= 6);
	w->at += 2;
	low = read_hex(w);
	assert(low >= 0xdc00 && low <= 0xdfff);
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static void
write_byte(struct writer *w, unsigned byte)
{
	*w->to++ = (char)byte;
}

/* As JSON needs it escaped, or as UTF-8. */
static void
write_character(struct writer *w, unsigned c)
{
	static const char shorts[0x20] = { ['\b'] = 'b',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't' };
	static const char digits[] = "0123456789abcdef";

	if (c == '"' || c == '\\' || (c < 0x20 && shorts[c] != '\0')) {
		write_byte(w, '\\');
		write_byte(w, c < 0x20 ? (unsigned char)shorts[c] : c);
	} else if (c < 0x20) {
		memcpy(w->to, "\\u00", 4);
		w->to += 4;
		write_byte(w, (unsigned char)digits[c >> 4]);
		write_byte(w, (unsigned char)digits[c & 0xf]);
	} else if (c < 0x80) {
		write_byte(w, c);
	} else if (c < 0x800) {
		write_byte(w, 0xc0 | c >> 6);
		write_byte(w, 0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		write_byte(w, 0xe0 | c >> 12);
		write_byte(w, 0x80 | (c >> 6 & 0x3f));
		write_byte(w, 0x80 | (c & 0x3f));
	} else {
		write_byte(w, 0xf0 | c >> 18);
		write_byte(w, 0x80 | (c >> 12 & 0x3f));
		write_byte(w, 0x80 | (c >> 6 & 0x3f));
		write_byte(w, 0x80 | (c & 0x3f));
	}
}

/* The string at the quote, quotes included. */
static void
write_string(struct writer *w)
{
	size_t plain;

	write_byte(w, (unsigned char)*w->at++);
	for (;;) {
		plain = pn_json_plain_bytes(
		    (struct pn_str){ w->at, (size_t)(w->end - w->at) });
		memcpy(w->to, w->at, plain);
		w->to += plain;
		w->at += plain;
		assert(w->at < w->end && (*w->at == '"' || *w->at == '\\'));
		if (*w->at++ == '"')
			break;
		write_character(w, read_escape(w));
	}
	write_byte(w, '"');
}

/* -- members --------------------------------------------------------------- */

/* The next byte of a name as it was written, -1 at its end. */
static int
name_byte(const char **at)
{
	unsigned char high, low;

	if (**at == '"')
		return -1;
	if (**at != '\\')
		return (unsigned char)*(*at)++;
	*at += 2;
	if ((*at)[-1] != 'u')
		return (int)unescaped((*at)[-1]);
	high = (unsigned char)(*at)[2];
	low = (unsigned char)(*at)[3];
	*at += 4;
	return (high - '0') << 4 | (low >= 'a' ? low - 'a' + 10 : low - '0');
}

static int
compare_members(const void *a, const void *b)
{
	const char *at_a = ((const struct member *)a)->at + 1;
	const char *at_b = ((const struct member *)b)->at + 1;
	int byte_a, byte_b;

	do {
		byte_a = name_byte(&at_a);
		byte_b = name_byte(&at_b);
	} while (byte_a == byte_b && byte_a >= 0);
	return byte_a - byte_b;
}

static struct member *
members_of(
    const struct writer *w, const struct open_value *open, size_t *ret_count)
{
	size_t count = w->members.len / sizeof(struct member);

	assert(open->is_object && open->first <= count);
	*ret_count = count - open->first;
	if (*ret_count == 0)
		return NULL;
	return (struct member *)(void *)w->members.data + open->first;
}

static int
begin_member(struct writer *w)
{
	const struct member member = { .at = w->to };

	pn_buf_add(&w->members, &member, sizeof(member));
	return pn_buf_failed(&w->members) ? -ENOMEM : 0;
}

static void
end_member(struct writer *w)
{
	size_t count;
	struct member *members = members_of(w, &w->open[w->depth - 1], &count);

	if (count == 0)
		return;
	assert(members[count - 1].len == 0 && members[count - 1].at < w->to);
	members[count - 1].len = (size_t)(w->to - members[count - 1].at);
}

/* Writes the members again in the order that they have on the stack now. */
static int
write_sorted(
    struct writer *w, char *start, const struct member *members, size_t count)
{
	size_t len = (size_t)(w->to - start);
	char *to;

	if (w->room == NULL)
		w->room = pn_arena_alloc(w->arena, w->size);
	if (w->room == NULL)
		return -ENOMEM;
	to = w->room;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			*to++ = ',';
		memcpy(to, members[i].at, members[i].len);
		to += members[i].len;
	}
	assert((size_t)(to - w->room) == len);
	memcpy(start, w->room, len);
	return 0;
}

/* 0; 1: a name stands twice; -ENOMEM. */
static int
sort_members(struct writer *w, const struct open_value *open)
{
	bool sorted = true;
	size_t count;
	struct member *members = members_of(w, open, &count);

	for (size_t i = 1; sorted && i < count; i++)
		sorted = compare_members(&members[i - 1], &members[i]) < 0;
	if (sorted)
		return 0;
	qsort(members, count, sizeof(*members), compare_members);
	for (size_t i = 1; i < count; i++)
		if (compare_members(&members[i - 1], &members[i]) == 0)
			return 1;
	return write_sorted(w, open->start, members, count);
}

/* -- the walk -------------------------------------------------------------- */

static void
open_value(struct writer *w)
{
	bool is_object = *w->at == '{';

	assert(w->depth < PN_JSON_DEPTH_MAX);
	write_byte(w, (unsigned char)*w->at++);
	w->open[w->depth++] = (struct open_value){ .is_object = is_object,
		.first = w->members.len / sizeof(struct member),
		.start = w->to };
	w->name_next = is_object;
}

static int
close_value(struct writer *w)
{
	const struct open_value *open;
	int r;

	assert(w->depth > 0);
	open = &w->open[w->depth - 1];
	if (open->is_object) {
		end_member(w);
		r = sort_members(w, open);
		if (r != 0)
			return r;
		w->members.len = open->first * sizeof(struct member);
	}
	write_byte(w, (unsigned char)*w->at++);
	w->depth--;
	w->name_next = false;
	return 0;
}

static int
write_next(struct writer *w)
{
	switch (*w->at) {
	case ' ':
	case '\t':
	case '\r':
	case '\n': w->at++; return 0;
	case '{':
	case '[': open_value(w); return 0;
	case '}':
	case ']': return close_value(w);
	case '"':
		if (w->name_next && begin_member(w) != 0)
			return -ENOMEM;
		w->name_next = false;
		write_string(w);
		return 0;
	case ',':
		assert(w->depth > 0);
		w->name_next = w->open[w->depth - 1].is_object;
		if (w->name_next)
			end_member(w);
		break;
	default: break; /* a colon, or of a number, or of a word */
	}
	write_byte(w, (unsigned char)*w->at++);
	return 0;
}

int
pn_json_canonical(struct pn_str text, struct pn_arena *arena,
    struct pn_str *ret_canonical, struct pn_error *ret_error)
{
	json_t *value;
	struct writer w = { .arena = arena,
		.at = text.data,
		.size = text.len,
		/* A member is "":0, at least. */
		.members =
		    pn_buf_init((text.len / 4 + 1) * sizeof(struct member)) };
	int r = pn_json_parse(text, &value, ret_error);

	if (r != 0)
		return r;
	json_decref(value);
	w.end = text.data + text.len;
	w.out = w.to = pn_arena_alloc(arena, text.len);
	if (w.out == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	while (r == 0 && w.at < w.end) {
		r = write_next(&w);
		assert(w.to - w.out <= w.at - text.data);
	}
	pn_buf_done(&w.members);
	if (r != 0)
		return pn_error_set(ret_error, r,
		    r < 0 ? "out of memory" : "a name stands twice");
	assert(w.depth == 0);
	*ret_canonical = (struct pn_str){ w.out, (size_t)(w.to - w.out) };
	return 0;
}
