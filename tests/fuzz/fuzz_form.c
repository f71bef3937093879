/*
 * Form bodies and charsets. What is accepted has sorted, distinct names that
 * hold neither "&" nor "=", says the same when encoded and parsed again, and
 * its values become UTF-8 in whatever charset they are said to be.
 */
#include "fuzz.h"

#include <assert.h>

#include "paynotify/buf.h"
#include "paynotify/charset.h"
#include "paynotify/form.h"
#include "paynotify/json.h"
#include "paynotify/limits.h"

static void
check_text(struct pn_arena *arena, struct pn_str value)
{
	static const char *const charsets[] = { "utf-8", "GBK", "" };
	struct pn_str text;

	for (size_t i = 0; i < PN_COUNT(charsets); i++) {
		text =
		    pn_charset_to_utf8(arena, pn_str_from(charsets[i]), value);
		/* Memory may be out after very many values. */
		assert(text.data == NULL || pn_str_is_utf8(text));
	}
}

static void
check_again(struct pn_arena *arena, const struct pn_form *form)
{
	struct pn_buf body = pn_buf_init(PN_BODY_BYTES_MAX * 4);
	struct pn_form again = { NULL, 0 };
	int r;

	for (size_t i = 0; i < form->count; i++) {
		if (i > 0)
			pn_buf_add_char(&body, '&');
		pn_form_encode(&body, form->fields[i].name);
		pn_buf_add_char(&body, '=');
		pn_form_encode(&body, form->fields[i].value);
	}
	assert(!pn_buf_failed(&body));
	r = pn_form_parse(arena, pn_buf_str(&body), &again, NULL);
	assert(r <= 0);
	if (r == 0) {
		assert(again.count == form->count);
		for (size_t i = 0; i < form->count; i++) {
			assert(pn_str_equal(
			    form->fields[i].name, again.fields[i].name));
			assert(pn_str_equal(
			    form->fields[i].value, again.fields[i].value));
		}
	}
	pn_buf_done(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	const struct pn_str body = { (const char *)data, size };
	struct pn_error error = { "" };
	struct pn_form form;
	int r;

	if (arena == NULL || size > PN_BODY_BYTES_MAX) {
		pn_arena_free(arena);
		return 0;
	}
	r = pn_form_parse(arena, body, &form, &error);
	assert(r == 0 || error.text[0] != '\0');
	if (r == 0) {
		for (size_t i = 0; i < form.count; i++) {
			struct pn_str name = form.fields[i].name;

			assert(name.len > 0);
			assert(pn_str_find(name, PN_STR("&")) < 0);
			assert(pn_str_find(name, PN_STR("=")) < 0);
			assert(i == 0 || pn_str_compare(form.fields[i - 1].name,
					     name) < 0);
			check_text(arena, form.fields[i].value);
		}
		check_again(arena, &form);
	}
	pn_arena_free(arena);
	return 0;
}
