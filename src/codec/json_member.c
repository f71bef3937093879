/*
 * Writing objects member by member, for lists that are printed or sent as they
 * are read: no tree is built of what is only written once.
 */
#include "paynotify/json.h"

#include <inttypes.h>

#include "paynotify/buf.h"
#include "paynotify/moment.h"

static void
add_name(struct pn_buf *out, const char *name)
{
	if (out->len > 0 && out->data[out->len - 1] != '{')
		pn_buf_add_char(out, ',');
	pn_json_add_string(out, pn_str_from(name));
	pn_buf_add_char(out, ':');
}

void
pn_json_add_null(struct pn_buf *out, const char *name)
{
	add_name(out, name);
	pn_buf_add_text(out, "null");
}

void
pn_json_add_text(struct pn_buf *out, const char *name, struct pn_str text)
{
	if (text.len == 0) {
		pn_json_add_null(out, name);
		return;
	}
	add_name(out, name);
	pn_json_add_string(out, text);
}

void
pn_json_add_number(struct pn_buf *out, const char *name, int64_t value)
{
	add_name(out, name);
	pn_buf_printf(out, "%" PRId64, value);
}

void
pn_json_add_bool(struct pn_buf *out, const char *name, bool value)
{
	add_name(out, name);
	pn_buf_add_text(out, value ? "true" : "false");
}

void
pn_json_add_moment(struct pn_buf *out, const char *name, int64_t us)
{
	char text[PN_MOMENT_TEXT_BYTES] = "";

	if (us != PN_MOMENT_NONE)
		pn_moment_format_rfc3339(us, text);
	pn_json_add_text(out, name, pn_str_from(text));
}

void
pn_json_add_raw(struct pn_buf *out, const char *name, struct pn_str json)
{
	add_name(out, name);
	pn_buf_add_str(out, json);
}

void
pn_json_add_array(struct pn_buf *out, const char *name, struct pn_str members)
{
	add_name(out, name);
	pn_buf_add_char(out, '[');
	pn_buf_add_str(out, members);
	pn_buf_add_char(out, ']');
}
