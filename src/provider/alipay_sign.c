/*
 * Alipay's signature: RSASSA-PKCS1-v1_5 over the decoded parameters, sorted by
 * name as bytes and joined as name=value with "&".
 *
 * Design. What was decoded once from the form is what is signed; nothing is
 * trimmed, unescaped, converted or decoded a second time, whatever charset the
 * message claims: every one of these was a bug of some receiver. All
 * parameters count, known or not.
 *
 * Two rules are in use and no flag in the message tells which: V1 drops `sign`
 * and `sign_type`, V2 drops `sign` only. Trade notifications are always V1;
 * other messages are tried as V1, then as V2. Official SDKs disagree on empty
 * values; both groups work in production, so the string with them is tried
 * first, and the one without them only if there is one.
 *
 * There is no key id either: each configured key is tried, so that an old and
 * a new one can stand side by side. The algorithm is the configured one; under
 * V1 sign_type is not signed, and believing it would let a forger choose
 * SHA-1.
 *
 * Invariant: at most PN_ACCOUNT_KEYS_MAX keys times four strings are tried, and
 * only for a signature of a length that some configured key makes.
 *
 * It deliberately does not map blanks in `sign` back to "+": such a body was
 * pasted from a decoded log, never sent by Alipay.
 */
#include "alipay_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "paynotify/encode.h"
#include "paynotify/limits.h"

/* An RSA key of 16384 bits signs 2048 bytes; longer text is no signature. */
enum { SIGN_TEXT_BYTES_MAX = PN_BASE64_ENCODED_BYTES(2048) };

static const struct pn_alipay_rule rules[] = {
	{ .sign_type = false, .empty = true },
	{ .sign_type = true, .empty = true },
	{ .sign_type = false, .empty = false },
	{ .sign_type = true, .empty = false },
};

bool
pn_alipay_rule_signs(struct pn_alipay_rule rule, const struct pn_field *field)
{
	if (field->value.len == 0 && !rule.empty)
		return false;
	if (!pn_str_starts(field->name, "sign"))
		return true;
	/* sign_time and sign_scene begin alike and are signed. */
	if (pn_str_is(field->name, "sign"))
		return false;
	return rule.sign_type || !pn_str_is(field->name, "sign_type");
}

struct pn_str
pn_alipay_canonical(struct pn_arena *arena, const struct pn_form *form,
    struct pn_alipay_rule rule)
{
	size_t bytes = 1; /* never 0: an empty string is not "no memory" */
	size_t len = 0;
	char *text;

	assert(form->count <= PN_FORM_FIELDS_MAX);

	for (size_t i = 0; i < form->count; i++)
		bytes +=
		    form->fields[i].name.len + form->fields[i].value.len + 2;
	text = pn_arena_alloc(arena, bytes);
	if (text == NULL)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < form->count; i++) {
		const struct pn_field *field = &form->fields[i];

		if (!pn_alipay_rule_signs(rule, field))
			continue;
		if (len > 0)
			text[len++] = '&';
		memcpy(text + len, field->name.data, field->name.len);
		len += field->name.len;
		text[len++] = '=';
		if (field->value.len > 0)
			memcpy(text + len, field->value.data, field->value.len);
		len += field->value.len;
	}
	assert(len < bytes);
	return (struct pn_str){ text, len };
}

bool
pn_alipay_is_trade(const struct pn_form *form)
{
	struct pn_str type = pn_form_get(form, "notify_type");

	if (type.len > 0)
		return pn_str_is(type, "trade_status_sync");
	return pn_form_get(form, "trade_status").len > 0 &&
	       pn_form_get(form, "msg_method").len == 0;
}

static bool
has_empty_value(const struct pn_form *form)
{
	for (size_t i = 0; i < form->count; i++) {
		if (form->fields[i].value.len == 0)
			return true;
	}
	return false;
}

static bool
some_key_signs_so_long(const struct pn_alipay *account, size_t bytes)
{
	for (size_t i = 0; i < account->key_count; i++) {
		if (pn_public_key_signature_bytes(account->keys[i]) == bytes)
			return true;
	}
	return false;
}

/* 0 and the bytes; 1 and a reason; -ENOMEM. */
static int
decode_sign(const struct pn_alipay *account, struct pn_str text,
    struct pn_arena *arena, struct pn_str *ret_signature,
    const char **ret_reason)
{
	unsigned char *data;
	size_t len;

	if (memchr(text.data, ' ', text.len) != NULL) {
		*ret_reason = "sign holds blanks: its \"+\" were not "
			      "percent-encoded, as in a decoded log line";
		return 1;
	}
	if (memchr(text.data, '%', text.len) != NULL) {
		*ret_reason = "sign was percent-encoded twice";
		return 1;
	}
	if (text.len > SIGN_TEXT_BYTES_MAX) {
		*ret_reason = "sign is longer than any signature";
		return 1;
	}
	data = pn_arena_alloc(arena, PN_BASE64_DECODED_MAX(text.len) + 1);
	if (data == NULL)
		return -ENOMEM;
	if (pn_base64_decode(text, data, &len) != 0) {
		*ret_reason = "sign is not base64";
		return 1;
	}
	if (!some_key_signs_so_long(account, len)) {
		*ret_reason = "sign has not the length that a configured "
			      "public_key makes";
		return 1;
	}
	*ret_signature = (struct pn_str){ (const char *)data, len };
	return 0;
}

static const struct pn_public_key *
key_that_verifies(const struct pn_alipay *account, struct pn_str text,
    struct pn_str signature)
{
	assert(account->key_count <= PN_ACCOUNT_KEYS_MAX);

	for (size_t i = 0; i < account->key_count; i++) {
		if (pn_public_key_verify(
			account->keys[i], account->hash, text, signature))
			return account->keys[i];
	}
	return NULL;
}

int
pn_alipay_verify_sign(const struct pn_alipay *account,
    const struct pn_form *form, struct pn_arena *arena,
    struct pn_alipay_rule *ret_rule, const struct pn_public_key **ret_key,
    const char **ret_reason)
{
	bool v2 = !pn_alipay_is_trade(form) &&
		  pn_form_get(form, "sign_type").data != NULL;
	bool drop_empty = has_empty_value(form);
	struct pn_str signature;
	int r;

	r = decode_sign(
	    account, pn_form_get(form, "sign"), arena, &signature, ret_reason);
	if (r != 0)
		return r;
	for (size_t i = 0; i < PN_COUNT(rules); i++) {
		struct pn_str text;
		const struct pn_public_key *key;

		if ((rules[i].sign_type && !v2) ||
		    (!rules[i].empty && !drop_empty))
			continue;
		text = pn_alipay_canonical(arena, form, rules[i]);
		if (text.data == NULL)
			return -ENOMEM;
		key = key_that_verifies(account, text, signature);
		if (key != NULL) {
			*ret_rule = rules[i];
			*ret_key = key;
			return 0;
		}
	}
	*ret_reason = "no configured public_key verifies the signature";
	return 1;
}
