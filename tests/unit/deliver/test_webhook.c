/*
 * Standard Webhooks: the vectors that the specification's own libraries and its
 * documentation are tested with, and what a secret may be.
 */
#include "webhook.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/encode.h"

/* One of the vectors has a shorter secret than the specification allows. */
static void
secret_is(struct pn_secret *secret, const char *text)
{
	unsigned char bytes[64];
	size_t len = 0;

	assert_int_equal(pn_base64_decode(pn_str_from(text), bytes, &len), 0);
	assert_int_equal(pn_secret_set(secret, bytes, len), 0);
}

/* Signs and gives the headers; the buffers are the caller's to free. */
static void
sign(const struct pn_webhook *webhook, const char *body, struct pn_buf *text,
    struct pn_buf *headers)
{
	size_t skip;

	*text = pn_buf_init(4096);
	*headers = pn_buf_init(4096);
	skip = pn_webhook_begin(text, webhook);
	pn_buf_add_text(text, body);
	assert_string_equal(text->data + skip, body);
	pn_webhook_add_headers(headers, webhook, pn_buf_str(text));
	assert_false(pn_buf_failed(headers));
}

static const struct vector {
	const char *secret, *id, *body, *signature;
	int64_t sent_at_s;
} VECTORS[] = {
	{ "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
	    "{\"test\": 2432232314}",
	    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 1614265330 },
	{ "plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf",
	    "{\"event_type\":\"ping\",\"data\":{\"success\":true}}",
	    "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=", 1731705121 },
};

/* If it failed: no library that verifies Standard Webhooks would take what is
 * pushed. */
static void
test_webhook__signs_as_the_specification(void **state)
{
	(void)state;
	for (size_t i = 0; i < PN_COUNT(VECTORS); i++) {
		const struct vector *v = &VECTORS[i];
		struct pn_secret secret = { 0 };
		struct pn_webhook webhook = {
			.id = pn_str_from(v->id),
			.sent_at_s = v->sent_at_s,
			.secrets = &secret,
			.secret_count = 1,
		};
		struct pn_buf text, headers, want = pn_buf_init(4096);

		secret_is(&secret, v->secret);
		sign(&webhook, v->body, &text, &headers);
		pn_buf_printf(&want,
		    "Content-Type: application/json\n"
		    "User-Agent: paynotifyd/%s\n"
		    "webhook-id: %s\n"
		    "webhook-timestamp: %lld\n"
		    "webhook-signature: %s\n",
		    PN_VERSION, v->id, (long long)v->sent_at_s, v->signature);
		assert_string_equal(headers.data, want.data);
		pn_buf_done(&text);
		pn_buf_done(&headers);
		pn_buf_done(&want);
		pn_secret_done(&secret);
	}
}

/* If it failed: a rotation of the secret would lose events at receivers that
 * know only one of the two, or a redelivery would not look like one. */
static void
test_webhook__signs_with_each_secret_in_order(void **state)
{
	struct pn_secret secrets[2] = { { 0 } };
	struct pn_webhook webhook = {
		.id = pn_str_from(VECTORS[0].id),
		.sent_at_s = VECTORS[0].sent_at_s,
		.redelivery = true,
		.secrets = secrets,
		.secret_count = 2,
	};
	struct pn_buf text, headers;

	(void)state;
	secret_is(&secrets[0], VECTORS[1].secret);
	secret_is(&secrets[1], VECTORS[0].secret);
	sign(&webhook, VECTORS[0].body, &text, &headers);
	assert_non_null(strstr(headers.data,
	    "webhook-signature: v1,3Q7B9pz3SlC1/gG4UJ269Qj4TLRRQk5tdhkvlUuj234="
	    " v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\n"));
	assert_non_null(strstr(headers.data, "webhook-redelivery: true\n"));
	pn_buf_done(&text);
	pn_buf_done(&headers);
	pn_secret_done(&secrets[0]);
	pn_secret_done(&secrets[1]);
}

/* If it failed: an endpoint would be signed for with a weak or another secret
 * than the receiver has, or a right one would be refused. */
static void
test_webhook__takes_secrets_of_24_to_64_bytes_only(void **state)
{
	static const struct {
		const char *text;
		int r;
		size_t len;
		const char *why;
	} rows[] = {
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", 0, 24, NULL },
		/* 23 bytes, */
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY=", 1, 0, "24 to 64" },
		/* 64 bytes, */
		{ "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
		    0, 64, NULL },
		/* 65, and many more. */
		{ "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		    1, 0, "24 to 64" },
		{ "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		    1, 0, "24 to 64" },
		{ "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		    1, 0, "24 to 64" },
		{ "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", 1, 0, "whsec_" },
		{ "WHSEC_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", 1, 0, "whsec_" },
		{ "whsec_", 1, 0, "24 to 64" },
		{ "", 1, 0, "whsec_" },
		/* Without padding, with a blank, URL-safe. */
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3OA", 1, 0, "base64" },
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY ", 1, 0, "base64" },
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0N-_3", 1, 0, "base64" },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct pn_secret secret = { 0 };
		struct pn_error error = { { 0 } };
		int r = pn_webhook_secret_parse(
		    pn_str_from(rows[i].text), &secret, &error);

		if (r != rows[i].r || secret.len != rows[i].len)
			fail_msg("%s: %d, %zu bytes: %s", rows[i].text, r,
			    secret.len, error.text);
		if (rows[i].why != NULL) {
			assert_non_null(strstr(error.text, rows[i].why));
			/* It may be nearly the right one. */
			assert_null(strstr(error.text, "MDEy"));
		}
		pn_secret_done(&secret);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_webhook__signs_as_the_specification),
		cmocka_unit_test(test_webhook__signs_with_each_secret_in_order),
		cmocka_unit_test(
		    test_webhook__takes_secrets_of_24_to_64_bytes_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
