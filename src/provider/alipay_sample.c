/*
 * Signed requests as Alipay makes them, for `trigger` on test accounts and for
 * tests: pure, so the same sample gives the same bytes.
 *
 * A draft is a list of name and value in wire order. It is made from a table
 * row (which event) and a shape (which family of fields, alipay_draft.c),
 * converted to the charset, signed over the sorted list with the very function
 * that verifies, and encoded in Java URLEncoder's style. That the string is
 * right is proven elsewhere: tests/golden signs by itself and public SDKs
 * verify samples.
 *
 * Oddities change one thing. What is signed right and is odd all the same:
 * bad-amount (total_amount one fen more: a conflict with the usual sample),
 * other-app, other-seller, gbk, sha1 (right key, the other algorithm). What no
 * signature covers: tampered (an id or the amount changed after signing),
 * no-sign, duplicate-field, and wrong-key. A pure function has no second key
 * at hand, so wrong-key spoils the signature itself unless the caller brings
 * sign_key; the receiver cannot tell the difference.
 */
#include "alipay_draft.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "paynotify/buf.h"
#include "paynotify/charset.h"

enum {
	SAMPLE_BYTES_MAX = PN_BODY_BYTES_MAX,
	AMOUNT_FEN_DEFAULT = 8888,
};

static const struct pn_alipay_kind kinds[] = {
	{ "payment.succeeded", SHAPE_PAID, true },
	{ "payment.finished", SHAPE_FINISHED, true },
	{ "payment.pending", SHAPE_PENDING, true },
	{ "payment.closed", SHAPE_CLOSED, true },
	{ "refund.succeeded", SHAPE_REFUND, true },
	{ "alipay.dut_user_sign", SHAPE_SIGN, false },
	{ "alipay.dut_user_unsign", SHAPE_UNSIGN, false },
	{ "alipay.fund.trans.order.changed", SHAPE_FUND, false },
	{ "alipay.servicemarket_order_notify", SHAPE_SERVICE, false },
};

const char *const pn_alipay_sample_events[] = {
	"payment.succeeded",
	"payment.finished",
	"payment.pending",
	"payment.closed",
	"refund.succeeded",
	"alipay.dut_user_sign",
	"alipay.dut_user_unsign",
	"alipay.fund.trans.order.changed",
	"alipay.servicemarket_order_notify",
	NULL,
};
static_assert(PN_COUNT(pn_alipay_sample_events) == PN_COUNT(kinds) + 1,
    "what is listed is what there is");

/* Position + 1 is the enum. */
const struct pn_sample_oddity pn_alipay_sample_oddities[] = {
	{ "bad-amount", "one fen more than the usual sample: 422 if that one "
			"of this order came before, else 200" },
	{ "tampered", "the amount, or an id, changed after signing: 401" },
	{ "wrong-key", "the signature of another key: 401" },
	{ "no-sign", "no signature: 400" },
	{ "other-app", "another app_id: 403" },
	{ "other-seller", "another seller_id: 403 if the account has one, "
			  "else 200" },
	{ "sha1", "signed with the other algorithm, SHA-1 for RSA2: 401" },
	{ "gbk", "nothing wrong, in GBK: 200" },
	{ "duplicate-field", "a field that stands twice: 400" },
	{ NULL, NULL },
};
static_assert(PN_COUNT(pn_alipay_sample_oddities) == ODDITY_COUNT,
    "every oddity has a name");

static int
compare_fields(const void *a, const void *b)
{
	const struct pn_field *left = a;
	const struct pn_field *right = b;

	return pn_str_compare(left->name, right->name);
}

static int
convert(struct pn_alipay_draft *draft, struct pn_error *error)
{
	const char *charset = draft->sample->charset;

	if (charset == NULL)
		return 0;
	for (size_t i = 0; i < draft->count; i++) {
		struct pn_field *field = &draft->fields[i];
		int r = pn_charset_from_utf8(
		    draft->arena, charset, field->value, &field->value);

		if (r > 0)
			return pn_error_set(error, 1,
			    "no such charset, or \"" PN_STR_FMT
			    "\" has no place in it: \"%s\"",
			    PN_STR_ARG(field->name), charset);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds sign_type and sign. */
static int
sign(struct pn_alipay_draft *draft, struct pn_error *error)
{
	const struct pn_private_key *key = draft->sample->sign_key;
	struct pn_alipay_rule rule = {
		.sign_type = draft->kind->shape == SHAPE_SERVICE,
		.empty = true,
	};
	struct pn_field sorted[DRAFT_FIELDS_MAX];
	struct pn_form form = { sorted, 0 };
	enum pn_rsa_hash hash = draft->account->hash;
	struct pn_str text, base64;
	int r;

	if (key == NULL)
		key = draft->account->sample_key;
	if (key == NULL)
		return pn_error_set(error, -EINVAL,
		    "nothing to sign with: the account has no "
		    "test_private_key");
	pn_alipay_draft_add(draft, "sign_type",
	    hash == PN_RSA_SHA1 ? PN_STR("RSA") : PN_STR("RSA2"));
	if (draft->oddity == ODDITY_SHA1)
		hash = hash == PN_RSA_SHA1 ? PN_RSA_SHA256 : PN_RSA_SHA1;
	memcpy(sorted, draft->fields, draft->count * sizeof(sorted[0]));
	form.count = draft->count;
	qsort(sorted, form.count, sizeof(sorted[0]), compare_fields);
	text = pn_alipay_canonical(draft->arena, &form, rule);
	if (text.data == NULL)
		return -ENOMEM;
	r = pn_private_key_sign(key, hash, text, draft->arena, &base64);
	if (r < 0)
		return r;
	pn_alipay_draft_add(draft, "sign", base64);
	return 0;
}

static struct pn_field *
find(struct pn_alipay_draft *draft, const char *name)
{
	for (size_t i = 0; i < draft->count; i++) {
		if (pn_str_is(draft->fields[i].name, name))
			return &draft->fields[i];
	}
	return NULL;
}

/* Another character of the same kind at one place of a copy. */
static void
spoil(struct pn_alipay_draft *draft, struct pn_field *field, size_t at)
{
	char *copy = pn_arena_alloc(draft->arena, field->value.len);

	assert(at < field->value.len);
	if (copy == NULL) {
		draft->failed = true;
		return;
	}
	memcpy(copy, field->value.data, field->value.len);
	copy[at] = copy[at] == '1' ? '2' : '1';
	field->value.data = copy;
}

static void
spoil_signed(struct pn_alipay_draft *draft)
{
	struct pn_field *field;

	switch (draft->oddity) {
	case ODDITY_WRONG_KEY:
		if (draft->sample->sign_key == NULL)
			spoil(draft, find(draft, "sign"), 100);
		break;
	case ODDITY_NO_SIGN:
		/* sign is the last field. */
		draft->count--;
		break;
	case ODDITY_TAMPERED:
		field = find(draft, "total_amount");
		if (field == NULL)
			field = find(draft, "notify_id");
		spoil(draft, field, 0);
		break;
	case ODDITY_DUPLICATE_FIELD:
		pn_alipay_draft_add(draft, "version", PN_STR("1.0"));
		break;
	default: break;
	}
}

static int
encode(struct pn_alipay_draft *draft, struct pn_str *ret_body)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf body = pn_buf_init(SAMPLE_BYTES_MAX);

	if (draft->failed)
		return -ENOMEM;
	for (size_t i = 0; i < draft->count; i++) {
		if (i > 0)
			pn_buf_add_char(&body, '&');
		pn_form_encode(&body, draft->fields[i].name);
		pn_buf_add_char(&body, '=');
		pn_form_encode(&body, draft->fields[i].value);
	}
	if (pn_buf_failed(&body))
		return -ENOMEM;
	*ret_body = pn_arena_copy(draft->arena, pn_buf_str(&body));
	return ret_body->data == NULL ? -ENOMEM : 0;
}

static int
set_amounts(struct pn_alipay_draft *draft, struct pn_error *error)
{
	const struct pn_sample *sample = draft->sample;

	/* Up to [0-9]{1,9} yuan. */
	if (sample->amount_minor < 0 ||
	    sample->amount_minor > INT64_C(99999999998) ||
	    sample->refund_minor < 0)
		return pn_error_set(
		    error, 1, "an amount is 1 to 99999999998 fen");
	draft->total_fen = sample->amount_minor == 0 ? AMOUNT_FEN_DEFAULT
						     : sample->amount_minor;
	draft->refund_fen =
	    sample->refund_minor == 0 ? draft->total_fen : sample->refund_minor;
	if (draft->refund_fen > draft->total_fen)
		return pn_error_set(
		    error, 1, "a refund cannot be more than the amount");
	if (draft->oddity == ODDITY_BAD_AMOUNT)
		draft->total_fen++;
	pn_money_format_yuan(draft->total_fen, draft->total);
	pn_money_format_yuan(draft->refund_fen, draft->refund);
	return 0;
}

static void
append(char *text, size_t bytes, const char *name)
{
	size_t at = strlen(text);

	(void)snprintf(text + at, bytes - at, " %s", name);
}

static int
find_kind(struct pn_alipay_draft *draft, struct pn_error *error)
{
	struct pn_str event = draft->sample->event;

	for (size_t i = 0; i < PN_COUNT(kinds); i++) {
		if (pn_str_is(event, kinds[i].event)) {
			draft->kind = &kinds[i];
			return 0;
		}
	}
	if (error != NULL) {
		(void)pn_error_set(error, 1,
		    "alipay has no event \"" PN_STR_FMT "\"; there are:",
		    PN_STR_ARG(event));
		for (size_t i = 0; pn_alipay_sample_events[i] != NULL; i++)
			append(error->text, sizeof(error->text),
			    pn_alipay_sample_events[i]);
	}
	return 1;
}

static int
find_oddity(struct pn_alipay_draft *draft, struct pn_error *error)
{
	const char *name = draft->sample->oddity;

	draft->oddity = ODDITY_NONE;
	if (name == NULL)
		return 0;
	for (size_t i = 0; pn_alipay_sample_oddities[i].name != NULL; i++) {
		if (strcmp(name, pn_alipay_sample_oddities[i].name) == 0) {
			draft->oddity = (enum pn_alipay_oddity)(i + 1);
			return 0;
		}
	}
	if (error != NULL) {
		(void)pn_error_set(
		    error, 1, "alipay has no oddity \"%s\"; there are:", name);
		for (size_t i = 0; pn_alipay_sample_oddities[i].name != NULL;
		     i++)
			append(error->text, sizeof(error->text),
			    pn_alipay_sample_oddities[i].name);
	}
	return 1;
}

static int
check_sample(struct pn_alipay_draft *draft, struct pn_error *error)
{
	int r;

	r = find_kind(draft, error);
	if (r == 0)
		r = find_oddity(draft, error);
	if (r == 0)
		r = set_amounts(draft, error);
	if (r != 0)
		return r;
	if (draft->sample->dialect != NULL)
		return pn_error_set(error, 1, "alipay has no dialects");
	if (!draft->kind->trade && (draft->oddity == ODDITY_BAD_AMOUNT ||
				       draft->oddity == ODDITY_OTHER_SELLER))
		return pn_error_set(error, 1, "%s has no %s",
		    draft->kind->event, draft->sample->oddity);
	return 0;
}

static int
make_request(struct pn_alipay_draft *draft, struct pn_request *ret_request)
{
	static const char type[] =
	    "application/x-www-form-urlencoded; charset=";
	struct pn_header *headers =
	    pn_arena_alloc(draft->arena, 2 * sizeof(*headers));
	struct pn_str path, content_type, body;
	int r;

	r = encode(draft, &body);
	if (r < 0)
		return r;
	path = pn_arena_printf(
	    draft->arena, "/notify/alipay/%s", draft->account->conf->tenant);
	content_type = pn_arena_printf(draft->arena, "%s%s", type,
	    draft->sample->charset == NULL ? "utf-8" : draft->sample->charset);
	if (headers == NULL || path.data == NULL || content_type.data == NULL)
		return -ENOMEM;
	headers[0] =
	    (struct pn_header){ PN_STR("User-Agent"), PN_STR("Mozilla/4.0") };
	headers[1] = (struct pn_header){ PN_STR("Content-Type"), content_type };
	*ret_request = (struct pn_request){
		.method = PN_STR("POST"),
		.path = path,
		.headers = headers,
		.header_count = 2,
		.body = body,
	};
	return 0;
}

int
pn_alipay_sample(const void *account, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error)
{
	struct pn_sample wanted = *sample;
	struct pn_alipay_draft draft = {
		.account = account,
		.sample = &wanted,
		.arena = arena,
	};
	int r;

	r = check_sample(&draft, ret_error);
	if (r != 0)
		return r;
	if (draft.oddity == ODDITY_GBK && wanted.charset == NULL)
		wanted.charset = "GBK";
	draft.out_trade_no = wanted.out_trade_no;
	if (draft.out_trade_no.len == 0)
		draft.out_trade_no =
		    pn_alipay_draft_digits(&draft, "PN", 18, 10);
	pn_alipay_draft_fill(&draft);
	if (draft.failed)
		return -ENOMEM;
	r = convert(&draft, ret_error);
	if (r == 0)
		r = sign(&draft, ret_error);
	if (r != 0)
		return r;
	spoil_signed(&draft);
	return make_request(&draft, ret_request);
}
