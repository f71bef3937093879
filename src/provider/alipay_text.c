/*
 * From the sender's charset to UTF-8, and the payload.
 *
 * A notification tells its charset in the signed parameter `charset`; only
 * where that is missing does the unsigned Content-Type count. Both may lie:
 * the gateway echoes the charset that it understood, not the one that the
 * merchant's bytes are in. So conversion comes after the signature, value by
 * value, and never fails: what cannot be decoded becomes U+FFFD.
 *
 * Most values are ASCII and the same in every charset in use here; they are
 * borrowed from the form, not copied.
 *
 * Names stay as they came in message->text, because lookups are by name; only
 * the payload has them converted. The payload leaves `sign` out: the evidence
 * has it, and it differs between deliveries of the same event.
 */
#include "alipay_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/charset.h"
#include "paynotify/json.h"
#include "paynotify/limits.h"

/* What a batch takes; over it the notification could not be committed. */
enum { PAYLOAD_BYTES_MAX = PN_BATCH_BYTES_MAX };

/* The charset of a Content-Type, empty when it has none. */
static struct pn_str
content_type_charset(const struct pn_request *request)
{
	struct pn_str rest, part;

	if (pn_request_header(request, "Content-Type", &rest) == 0)
		return (struct pn_str){ NULL, 0 };
	(void)pn_str_split(&rest, ';');
	while (rest.data != NULL) {
		struct pn_str value, name;

		part = pn_str_split(&rest, ';');
		value = part;
		name = pn_str_trim(pn_str_split(&value, '='));
		if (value.data == NULL ||
		    !pn_str_equal_fold(name, PN_STR("charset")))
			continue;
		value = pn_str_trim(value);
		if (value.len >= 2 && value.data[0] == '"' &&
		    value.data[value.len - 1] == '"') {
			value.data++;
			value.len -= 2;
		}
		return value;
	}
	return (struct pn_str){ NULL, 0 };
}

static bool
is_ascii(struct pn_str s)
{
	uint64_t word, high = 0;
	size_t i = 0;

	for (; i + sizeof(word) <= s.len; i += sizeof(word)) {
		memcpy(&word, s.data + i, sizeof(word));
		high |= word;
	}
	for (; i < s.len; i++)
		high |= (unsigned char)s.data[i];
	return (high & UINT64_C(0x8080808080808080)) == 0;
}

static struct pn_str
message_charset(
    const struct pn_alipay_message *message, const struct pn_request *request)
{
	struct pn_str charset = pn_form_get(&message->raw, "charset");

	return charset.len > 0 ? charset : content_type_charset(request);
}

int
pn_alipay_to_text(struct pn_alipay_message *message,
    const struct pn_request *request, struct pn_arena *arena)
{
	struct pn_str charset = message_charset(message, request);
	size_t count = message->raw.count;
	struct pn_field *fields;

	assert(count > 0 && count <= PN_FORM_FIELDS_MAX);

	fields = pn_arena_alloc(arena, count * sizeof(*fields));
	if (fields == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		fields[i] = message->raw.fields[i];
		if (is_ascii(fields[i].value))
			continue;
		fields[i].value = pn_charset_to_utf8(
		    arena, charset, message->raw.fields[i].value);
		if (fields[i].value.data == NULL)
			return -ENOMEM;
	}
	message->text = (struct pn_form){ fields, count };
	return 0;
}

/* The fields but those named in without (NULL-terminated) as a JSON object. */
static int
fields_to_json(const struct pn_form *text, const char *const *without,
    struct pn_arena *arena, struct pn_str *ret_json)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(PAYLOAD_BYTES_MAX);
	struct pn_str json;
	size_t bytes = 0;

	for (size_t i = 0; i < text->count; i++) /* "name":"value", */
		bytes += text->fields[i].name.len + text->fields[i].value.len +
			 sizeof("\"\":\"\",");
	/* Room at once; a text that needs more, for escapes, still gets it. */
	(void)pn_buf_extend(&out, bytes);
	pn_buf_reset(&out);
	for (size_t i = 0; i < text->count; i++) {
		const struct pn_field *field = &text->fields[i];
		const char *const *name = without;

		while (*name != NULL && !pn_str_is(field->name, *name))
			name++;
		if (*name != NULL)
			continue;
		pn_buf_add_char(&out, out.len == 0 ? '{' : ',');
		/* Ill-formed bytes of a name become U+FFFD here. */
		pn_json_add_string(&out, field->name);
		pn_buf_add_char(&out, ':');
		pn_json_add_string(&out, field->value);
	}
	if (out.len == 0)
		pn_buf_add_char(&out, '{');
	pn_buf_add_char(&out, '}');
	if (pn_buf_failed(&out))
		return -ENOMEM;
	json = pn_arena_copy(arena, pn_buf_str(&out));
	if (json.data == NULL)
		return -ENOMEM;
	*ret_json = json;
	return 0;
}

int
pn_alipay_payload(const struct pn_alipay_message *message,
    struct pn_arena *arena, struct pn_str *ret_payload)
{
	static const char *const without[] = { "sign", NULL };

	return fields_to_json(&message->text, without, arena, ret_payload);
}

/* A retry keeps notify_id; notify_time and with it sign are of the attempt. */
int
pn_alipay_witness(const struct pn_alipay_message *message,
    struct pn_arena *arena, struct pn_str *ret_witness)
{
	static const char *const without[] = { "notify_time", "sign", NULL };

	return fields_to_json(&message->text, without, arena, ret_witness);
}
