/*
 * The XML of WeChat v2. What is accepted holds no declaration, has sorted,
 * distinct names, UTF-8 without NUL in its values, and says the same when it is
 * written and parsed again.
 */
#include "fuzz.h"

#include <assert.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"
#include "paynotify/xml.h"

static void
add_escaped(struct pn_buf *out, struct pn_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		/* Line ends would be normalised, "]]>" refused. */
		if (c < 0x20 || strchr("<>&", c) != NULL)
			pn_buf_printf(out, "&#%u;", c);
		else
			pn_buf_add_char(out, (char)c);
	}
}

static void
check_again(struct pn_arena *arena, const struct pn_form *form)
{
	struct pn_buf text = pn_buf_init(PN_XML_BYTES_MAX * 8);
	struct pn_form again = { NULL, 0 };
	int r;

	pn_buf_add_text(&text, "<xml>");
	for (size_t i = 0; i < form->count; i++) {
		const struct pn_field *field = &form->fields[i];

		pn_buf_printf(
		    &text, "<" PN_STR_FMT ">", PN_STR_ARG(field->name));
		add_escaped(&text, field->value);
		pn_buf_printf(
		    &text, "</" PN_STR_FMT ">", PN_STR_ARG(field->name));
	}
	pn_buf_add_text(&text, "</xml>");
	assert(!pn_buf_failed(&text));
	if (text.len <= PN_XML_BYTES_MAX) {
		r = pn_xml_parse(arena, pn_buf_str(&text), "xml", &again, NULL);
		assert(r <= 0);
		for (size_t i = 0; r == 0 && i < form->count; i++) {
			assert(again.count == form->count);
			assert(pn_str_equal(
			    form->fields[i].name, again.fields[i].name));
			assert(pn_str_equal(
			    form->fields[i].value, again.fields[i].value));
		}
	}
	pn_buf_done(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	const struct pn_str text = { (const char *)data, size };
	struct pn_error error = { "" };
	struct pn_form form;
	int r;

	if (arena == NULL)
		return 0;
	pn_xml_init();
	r = pn_xml_parse(arena, text, "xml", &form, &error);
	assert(r == 0 || error.text[0] != '\0');
	if (r == 0) {
		assert(pn_str_find(text, PN_STR("<!DOCTYPE")) < 0 ||
		       pn_str_find(text, PN_STR("<![CDATA[")) >= 0);
		for (size_t i = 0; i < form.count; i++) {
			const struct pn_field *field = &form.fields[i];

			assert(field->name.len > 0);
			assert(pn_str_is_utf8(field->value));
			assert(pn_str_find(field->value, PN_STR("\0")) < 0);
			assert(i == 0 ||
			       pn_str_compare(field[-1].name, field->name) < 0);
		}
		check_again(arena, &form);
	}
	pn_arena_free(arena);
	return 0;
}
