/*
 * JSON. What is accepted jansson accepts too, as the same value, and it stays
 * acceptable when sanitised, with no escaped NUL left. It has a canonical form,
 * which is the same value, whatever the order of members and the escapes.
 *
 * All that jansson has no other objection to than a limit of its own has a
 * canonical form, and nothing else has; the form is its own, and white space
 * does not change it. And any bytes at all can be added as a string and read back
 * as UTF-8.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/buf.h"
#include "paynotify/json.h"
#include "paynotify/limits.h"

/* The short way of json_plain.c must not read anything of its own. */
static void
check_same(struct pn_str text, const json_t *value)
{
	const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT;
	json_t *other = json_loadb(text.data, text.len,
	    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	char *a = json_dumps(value, flags), *b = json_dumps(other, flags);

	assert(other != NULL && a != NULL && b != NULL);
	assert(strcmp(a, b) == 0);
	free(a);
	free(b);
	json_decref(other);
}

static void
check_sanitised(struct pn_arena *arena, struct pn_str text)
{
	struct pn_str sane = pn_json_sanitise(arena, text), again;
	json_t *value = NULL;
	int r;

	if (sane.data == NULL)
		return;
	r = pn_json_parse(sane, &value, NULL);
	/* Two names that differ only in their NUL cannot be: jansson refuses
	 * a NUL in a name. */
	assert(r == 0);
	json_decref(value);
	again = pn_json_sanitise(arena, sane);
	assert(again.data == NULL || pn_str_equal(sane, again));
}

static struct pn_str
canonical(struct pn_arena *arena, struct pn_str text)
{
	struct pn_str form;
	int r = pn_json_canonical(text, arena, &form);

	assert(r == 0 && form.len <= text.len);
	return form;
}

/* The form of a value that was parsed. */
static void
check_meaning(struct pn_arena *arena, struct pn_str text, json_t *value)
{
	struct pn_str form = canonical(arena, text);
	char *a = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);
	char *b = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII |
					JSON_ESCAPE_SLASH | JSON_INDENT(1));
	json_t *other = NULL;
	int r = pn_json_parse(form, &other, NULL);

	assert(r == 0 && json_equal(value, other));
	json_decref(other);
	assert(a != NULL && b != NULL);
	assert(pn_str_equal(canonical(arena, pn_str_from(a)),
	    canonical(arena, pn_str_from(b))));
	free(a);
	free(b);
}

enum verdict { IS_JSON, IS_NOT_JSON, IS_OVER_A_LIMIT };

/* What jansson says. It ends at the first fault, so behind a limit that text is
 * over anything may stand. */
static enum verdict
verdict_of_jansson(struct pn_str text)
{
	json_error_t error = { .text = "" };
	json_t *value = json_loadb(
	    text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

	if (value != NULL) {
		json_decref(value);
		/* 2.14 skips a NUL behind a number. */
		return memchr(text.data, '\0', text.len) == NULL ? IS_JSON
								 : IS_NOT_JSON;
	}
	switch (json_error_code(&error)) {
	case json_error_numeric_overflow:
	case json_error_stack_overflow:
	case json_error_null_byte_in_key: return IS_OVER_A_LIMIT;
	default: break;
	}
	/* Half of a surrogate pair. */
	return strstr(error.text, "invalid Unicode") == error.text
		   ? IS_OVER_A_LIMIT
		   : IS_NOT_JSON;
}

/* White space around everything that is not a part of a string. */
static struct pn_str
spaced(struct pn_arena *arena, struct pn_str text)
{
	static const char spaces[] = " \n\r\t";
	char *out = pn_arena_alloc(arena, text.len * 3), *to = out;
	bool in_string = false;

	assert(out != NULL);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool separate = !in_string && strchr("[]{},:", c) != NULL;

		if (separate)
			*to++ = spaces[i % 4];
		*to++ = c;
		if (separate)
			*to++ = spaces[i / 4 % 4];
		if (in_string && c == '\\')
			*to++ = text.data[++i];
		else if (c == '"')
			in_string = !in_string;
	}
	return (struct pn_str){ out, (size_t)(to - out) };
}

static void
check_form(struct pn_arena *arena, struct pn_str text)
{
	enum verdict verdict = verdict_of_jansson(text);
	struct pn_str form;
	int r = pn_json_canonical(text, arena, &form);

	assert(r == 0 || r == 1);
	assert(verdict != (r == 0 ? IS_NOT_JSON : IS_JSON));
	if (r != 0)
		return;
	assert(pn_str_equal(canonical(arena, form), form));
	assert(pn_str_equal(canonical(arena, spaced(arena, text)), form));
}

static void
check_string(struct pn_str bytes)
{
	struct pn_buf out = pn_buf_init(PN_BODY_BYTES_MAX * 8);
	json_t *value = NULL;
	int r;

	pn_json_add_string(&out, bytes);
	assert(!pn_buf_failed(&out));
	r = pn_json_parse(pn_buf_str(&out), &value, NULL);
	assert(r == 0 && json_is_string(value));
	json_decref(value);
	pn_buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pn_arena *arena = pn_arena_new(4 * PN_ARENA_BYTES_MAX);
	const struct pn_str text = { (const char *)data, size };
	struct pn_error error = { "" };
	json_t *value = NULL;
	int r;

	if (arena == NULL || size > PN_BODY_BYTES_MAX) {
		pn_arena_free(arena);
		return 0;
	}
	r = pn_json_parse(text, &value, &error);
	assert(r == 0 || error.text[0] != '\0');
	if (r == 0) {
		assert(pn_str_is_utf8(text));
		check_same(text, value);
		check_sanitised(arena, text);
		check_meaning(arena, text, value);
		json_decref(value);
	}
	check_form(arena, text);
	check_string(text);
	pn_arena_free(arena);
	return 0;
}
