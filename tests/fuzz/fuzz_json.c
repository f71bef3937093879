/*
 * JSON. What is accepted jansson accepts too, as the same value, and it stays
 * acceptable when sanitised, with no escaped NUL left. Its canonical form is the
 * same value and its own canonical form. And any bytes at all can be added as a
 * string and read back as UTF-8.
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

static void
check_canonical(struct pn_arena *arena, struct pn_str text, json_t *value)
{
	struct pn_str form, again;
	json_t *other = NULL;
	int r = pn_json_canonical(text, arena, &form, NULL);

	assert(r == 0 && form.len <= text.len);
	r = pn_json_parse(form, &other, NULL);
	assert(r == 0 && json_equal(value, other));
	json_decref(other);
	r = pn_json_canonical(form, arena, &again, NULL);
	assert(r == 0 && pn_str_equal(form, again));
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
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
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
		check_canonical(arena, text, value);
		json_decref(value);
	}
	check_string(text);
	pn_arena_free(arena);
	return 0;
}
