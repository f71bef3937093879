/*
 * The canonical form of JSON: what two documents that mean the same have in
 * common. No white space, members in the order of their names (of the bytes as
 * they are written here), each string written in one way only.
 *
 * All that is JSON by the grammar of RFC 8259 has one, also what
 * pn_json_parse() refuses: that one guards against readers who differ, and here
 * nobody reads. Two documents have one form only if no reader to whom the order of
 * members says nothing can tell them apart; so what readers differ about is kept
 * as it came:
 *  - numbers keep their text: 1.0 and 1, 1e2 and 100, 1e400 and 1e401;
 *  - half of a surrogate pair, which UTF-8 has no bytes for, stays an escape;
 *  - members of one name all stay, and in their order: one reader takes the
 *    first of them, another the last, a third refuses them.
 *
 * The first walk holds the text against the grammar and writes the form, but
 * for the order. What is written is never longer than what it was read from (an
 * escape only ever becomes shorter), so the room is taken once. Invariant:
 * written bytes <= read bytes.
 *
 * Order: an object is listed when it opens, and taken off the list when it
 * closes and is in order, and so is all inside of it; so most documents leave an
 * empty list, and are done. For the others a second walk copies what was written
 * to a second room, going through the members of listed objects in their order.
 * So a byte is written twice at most, however deep it stands: putting each object
 * in order when it closes would move it once for every object around it.
 *
 * Nothing recurses, and depth has no bound but the length of the text.
 *
 * This is not RFC 8785: that one writes numbers again as a double prints, which
 * would have two amounts over 2^53 be the same.
 */
#include "paynotify/json.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "json_token.h"
#include "paynotify/buf.h"

/* What the grammar lets come next. */
enum {
	VALUE = 1 << 0,
	NAME = 1 << 1,
	COLON = 1 << 2,
	COMMA = 1 << 3,
	CLOSE = 1 << 4,
};

struct member {
	struct pn_str name; /* as it was written, without its quotes */
	const char *end;    /* of its value */
	size_t objects;     /* how many were listed before it */
};

struct object {
	const char *start, *end; /* of what was written between the braces */
	size_t first, last;      /* of its members, last being behind them: on
				  * members while it is open, then on sorted */
	size_t after;            /* the next one listed that is not inside */
	size_t parent;           /* the one around it */
};

static const size_t NO_OBJECT = SIZE_MAX;

struct writer {
	struct pn_json_copier text;
	char *out;             /* where begins what is written */
	unsigned expected;     /* VALUE and so on; 0: the end */
	struct pn_buf open;    /* of each value that is open, what closes it */
	size_t object;         /* the innermost that is open */
	struct pn_buf objects; /* struct object, as they begin */
	struct pn_buf members; /* struct member, of objects that are open */
	struct pn_buf sorted;  /* struct member, of listed ones that closed */
};

static struct object *
object_at(const struct writer *w, size_t index)
{
	return (struct object *)(void *)w->objects.data + index;
}

static size_t
object_count(const struct writer *w)
{
	return w->objects.len / sizeof(struct object);
}

static struct member *
member_at(const struct pn_buf *members, size_t index)
{
	return (struct member *)(void *)members->data + index;
}

static size_t
member_count(const struct pn_buf *members)
{
	return members->len / sizeof(struct member);
}

/* -- members --------------------------------------------------------------- */

/* By name; those of one name stay as they came, though qsort() is not stable. */
static int
compare_members(const void *a, const void *b)
{
	const struct member *member_a = a, *member_b = b;
	int r = pn_str_compare(member_a->name, member_b->name);

	if (r != 0)
		return r;
	return (member_a->name.data > member_b->name.data) -
	       (member_a->name.data < member_b->name.data);
}

/* Whether they were in order. */
static bool
sort_members(struct member *members, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (compare_members(&members[i - 1], &members[i]) > 0) {
			qsort(
			    members, count, sizeof(*members), compare_members);
			return false;
		}
	return true;
}

static int
open_object(struct writer *w)
{
	const struct object object = { .start = w->text.to,
		.first = member_count(&w->members),
		.parent = w->object };

	w->object = object_count(w);
	pn_buf_add(&w->objects, &object, sizeof(object));
	return pn_buf_failed(&w->objects) ? -ENOMEM : 0;
}

static int
close_object(struct writer *w)
{
	struct object *object = object_at(w, w->object);
	size_t count = member_count(&w->members) - object->first;
	struct member *members =
	    count == 0 ? NULL : member_at(&w->members, object->first);
	bool is_last = w->object + 1 == object_count(w);

	w->object = object->parent;
	w->members.len = object->first * sizeof(struct member);
	if (sort_members(members, count) && is_last) {
		w->objects.len -= sizeof(struct object);
		return 0;
	}
	assert(count > 0);
	object->end = w->text.to;
	object->after = object_count(w);
	object->first = member_count(&w->sorted);
	object->last = object->first + count;
	pn_buf_add(&w->sorted, members, count * sizeof(*members));
	return pn_buf_failed(&w->sorted) ? -ENOMEM : 0;
}

static int
write_name(struct writer *w)
{
	struct member member = { .name.data = w->text.to + 1,
		.objects = object_count(w) };

	if (!pn_json_copy_string(&w->text))
		return 1;
	member.name.len = (size_t)(w->text.to - 1 - member.name.data);
	pn_buf_add(&w->members, &member, sizeof(member));
	w->expected = COLON;
	return pn_buf_failed(&w->members) ? -ENOMEM : 0;
}

/* -- the first walk --------------------------------------------------------- */

static bool
in_object(const struct writer *w)
{
	return w->open.len > 0 && w->open.data[w->open.len - 1] == '}';
}

/* Behind a value. */
static void
end_value(struct writer *w)
{
	w->expected = w->open.len > 0 ? COMMA | CLOSE : 0;
	if (in_object(w))
		member_at(&w->members, member_count(&w->members) - 1)->end =
		    w->text.to;
}

static int
open_value(struct writer *w)
{
	bool is_object = *w->text.at == '{';

	pn_json_copy_byte(&w->text);
	pn_buf_add_char(&w->open, is_object ? '}' : ']');
	if (pn_buf_failed(&w->open))
		return -ENOMEM;
	w->expected = CLOSE | (is_object ? NAME : VALUE);
	return is_object ? open_object(w) : 0;
}

static int
close_value(struct writer *w)
{
	int r = 0;

	if ((w->expected & CLOSE) == 0 ||
	    w->open.data[w->open.len - 1] != *w->text.at)
		return 1;
	if (in_object(w))
		r = close_object(w);
	if (r != 0)
		return r;
	w->open.len--;
	pn_json_copy_byte(&w->text);
	end_value(w);
	return 0;
}

static int
write_value(struct writer *w)
{
	bool good;

	switch (*w->text.at) {
	case '{':
	case '[': return open_value(w);
	case '"': good = pn_json_copy_string(&w->text); break;
	case 't': good = pn_json_copy_word(&w->text, PN_STR("true")); break;
	case 'f': good = pn_json_copy_word(&w->text, PN_STR("false")); break;
	case 'n': good = pn_json_copy_word(&w->text, PN_STR("null")); break;
	default: good = pn_json_copy_number(&w->text); break;
	}
	if (!good)
		return 1;
	end_value(w);
	return 0;
}

/* A comma or colon. */
static int
write_separator(struct writer *w, unsigned kind)
{
	if ((w->expected & kind) == 0)
		return 1;
	pn_json_copy_byte(&w->text);
	w->expected = kind == COMMA && in_object(w) ? NAME : VALUE;
	return 0;
}

/* 0; 1: this is not JSON; -ENOMEM. */
static int
write_next(struct writer *w)
{
	switch (*w->text.at) {
	case ' ':
	case '\t':
	case '\r':
	case '\n': w->text.at++; return 0;
	case ',': return write_separator(w, COMMA);
	case ':': return write_separator(w, COLON);
	case '}':
	case ']': return close_value(w);
	case '"':
		if ((w->expected & NAME) != 0)
			return write_name(w);
		break;
	default: break;
	}
	return (w->expected & VALUE) != 0 ? write_value(w) : 1;
}

static int
write_all(struct writer *w, struct pn_str text)
{
	int r = 0;

	while (r == 0 && w->text.at < w->text.end) {
		r = write_next(w);
		assert(w->text.to - w->out <= w->text.at - text.data);
	}
	if (r == 0 && w->expected != 0)
		r = 1;
	return r;
}

/* -- the second walk -------------------------------------------------------- */

static char *
copy(char *to, const char *from, const char *end)
{
	assert(from <= end);
	memcpy(to, from, (size_t)(end - from));
	return to + (end - from);
}

/* Of the member that the walk of the object is at; NULL: of all. */
static const char *
end_of_member(const struct writer *w, const struct object *object)
{
	return object == NULL ? w->text.to
			      : member_at(&w->sorted, object->first - 1)->end;
}

/* What was written, but the members of listed objects in their order. An
 * object's first becomes the member to go to next. */
static void
write_in_order(const struct writer *w, char *to)
{
	const char *at = w->out, *end;
	size_t next = 0;              /* the first one listed behind at */
	struct object *object = NULL; /* the innermost listed around at */
	const struct member *member;

	for (;;) {
		end = end_of_member(w, object);
		if (next < object_count(w) && object_at(w, next)->start < end) {
			object = object_at(w, next);
			to = copy(to, at, object->start);
		} else {
			to = copy(to, at, end);
			if (object == NULL)
				break;
			if (object->first == object->last) {
				at = object->end;
				next = object->after;
				object = object->parent == NO_OBJECT
					     ? NULL
					     : object_at(w, object->parent);
				continue;
			}
			*to++ = ',';
		}
		member = member_at(&w->sorted, object->first++);
		at = member->name.data - 1;
		next = member->objects;
	}
}

static int
put_in_order(struct writer *w, struct pn_arena *arena)
{
	size_t len = (size_t)(w->text.to - w->out);
	char *room;

	if (object_count(w) == 0)
		return 0;
	room = pn_arena_alloc(arena, len);
	if (room == NULL)
		return -ENOMEM;
	write_in_order(w, room);
	w->out = room;
	w->text.to = room + len;
	return 0;
}

int
pn_json_canonical(
    struct pn_str text, struct pn_arena *arena, struct pn_str *ret_canonical)
{
	/* A member is "":0 at least. */
	const size_t count_max = text.len / 4 + 1;
	struct writer w = { .text = { .at = text.data },
		.expected = VALUE,
		.object = NO_OBJECT,
		.open = pn_buf_init(text.len),
		.objects = pn_buf_init(count_max * sizeof(struct object)),
		.members = pn_buf_init(count_max * sizeof(struct member)),
		.sorted = pn_buf_init(count_max * sizeof(struct member)) };
	int r;

	if (text.len == 0 || !pn_str_is_utf8(text))
		return 1;
	w.text.end = text.data + text.len;
	w.out = w.text.to = pn_arena_alloc(arena, text.len);
	if (w.out == NULL)
		return -ENOMEM;
	r = write_all(&w, text);
	if (r == 0)
		r = put_in_order(&w, arena);
	pn_buf_done(&w.open);
	pn_buf_done(&w.objects);
	pn_buf_done(&w.members);
	pn_buf_done(&w.sorted);
	if (r != 0)
		return r;
	*ret_canonical = (struct pn_str){ w.out, (size_t)(w.text.to - w.out) };
	return 0;
}
