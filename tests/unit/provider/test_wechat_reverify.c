/*
 * Evidence of WeChat Pay, verified again: APIv3 by the public key on record,
 * APIv2 by a secret of the account if it is still the one.
 */
#include "wechat_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pn_request
sample_of(struct wechat_fixture *fixture, const char *event,
    const char *dialect, struct pn_notification *ret_notification)
{
	struct pn_sample sample = wechat_fixture_sample_of(event);
	struct pn_request request;

	sample.dialect = dialect;
	request = wechat_fixture_sample(fixture, &sample);
	*ret_notification = wechat_fixture_verify(fixture, &request);
	assert_true(ret_notification->verified);
	return request;
}

static struct pn_public_key *
recorded_key(const struct pn_notification *notification)
{
	struct pn_public_key *key;
	struct pn_error error;

	assert_int_equal(pn_public_key_parse(
			     pn_str_from(pn_public_key_pem(notification->key)),
			     &key, &error),
	    0);
	return key;
}

/* Flips the byte at and asks again. */
static int
again(struct wechat_fixture *fixture, struct pn_str text, size_t at,
    const struct pn_request *request, struct pn_public_key *key,
    const void *account, const unsigned char *fingerprint)
{
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	char *byte = (char *)(uintptr_t)text.data + at;
	const char *reason = NULL;
	int r;

	*byte ^= 1;
	r = fixture->provider->reverify(
	    request, key, account, fingerprint, arena, &reason);
	*byte ^= 1;
	assert_true(r != PN_REVERIFY_WRONG || reason[0] != '\0');
	pn_arena_free(arena);
	return r;
}

/* Fails if an event or its time could be changed in what is stored. */
static void
test_wechat__any_flipped_byte_of_v3_is_found(void **state)
{
	static const char *const headers[] = { "Wechatpay-Timestamp",
		"Wechatpay-Nonce", "Wechatpay-Signature" };
	struct wechat_fixture *fixture = *state;
	struct pn_notification n;
	struct pn_request request =
	    sample_of(fixture, "payment.succeeded", "v3", &n);
	struct pn_public_key *key = recorded_key(&n);
	const char *reason = NULL;
	struct pn_str value;

	/* Read-only text of the sample becomes our own. */
	request.body = pn_arena_copy(fixture->arena, request.body);
	assert_int_equal(fixture->provider->reverify(&request, key, NULL,
			     n.key_fingerprint, fixture->arena, &reason),
	    0);
	for (size_t i = 0; i < request.body.len; i++)
		assert_int_equal(again(fixture, request.body, i, &request, key,
				     NULL, n.key_fingerprint),
		    PN_REVERIFY_WRONG);
	for (size_t h = 0; h < PN_COUNT(headers); h++) {
		struct pn_header own[16];
		struct pn_request changed = request;

		assert_true(request.header_count <= PN_COUNT(own));
		for (size_t i = 0; i < request.header_count; i++) {
			own[i] = request.headers[i];
			own[i].value =
			    pn_arena_copy(fixture->arena, own[i].value);
		}
		changed.headers = own;
		assert_int_equal(
		    pn_request_header(&changed, headers[h], &value), 1);
		for (size_t i = 0; i < value.len; i++)
			assert_int_equal(again(fixture, value, i, &changed, key,
					     NULL, n.key_fingerprint),
			    PN_REVERIFY_WRONG);
	}
	pn_public_key_unref(key);
}

/* Fails if evidence passed with another key than the one on record, or with
 * none. */
static void
test_wechat__another_key_or_none_is_wrong(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_notification n;
	struct pn_request request =
	    sample_of(fixture, "payment.succeeded", "v3", &n);
	struct pn_public_key *other;
	const char *reason = NULL;
	struct pn_error error;

	assert_int_equal(
	    pn_public_key_parse(
		pn_conf_file_text(&fixture->public_files[0]), &other, &error),
	    0);
	assert_memory_not_equal(pn_public_key_fingerprint(other),
	    n.key_fingerprint, PN_SHA256_BYTES);
	assert_int_equal(fixture->provider->reverify(&request, other, NULL,
			     n.key_fingerprint, fixture->arena, &reason),
	    PN_REVERIFY_WRONG);
	assert_int_equal(
	    fixture->provider->reverify(&request, NULL, fixture->account,
		n.key_fingerprint, fixture->arena, &reason),
	    PN_REVERIFY_WRONG);
	pn_public_key_unref(other);
}

/* Fails if a lost secret made honest evidence wrong, or a present one did not
 * find a change. */
static void
test_wechat__v2_needs_its_secret(void **state)
{
	static const char *const dialects[] = { "v2", "v2-hmac" };
	struct wechat_fixture *fixture = *state;
	const unsigned char stranger[PN_SHA256_BYTES] = { 1 };

	for (size_t d = 0; d < PN_COUNT(dialects); d++) {
		struct pn_sample sample =
		    wechat_fixture_sample_of("payment.succeeded");
		struct pn_notification n;
		struct pn_request request =
		    sample_of(fixture, "payment.succeeded", "v2", &n);
		const char *reason = NULL;
		ptrdiff_t at;

		/* The account takes MD5 only; what was signed with HMAC when
		 * it took that holds all the same. */
		sample.dialect = dialects[d];
		request = wechat_fixture_sample(fixture, &sample);
		request.body = pn_arena_copy(fixture->arena, request.body);
		assert_int_equal(fixture->provider->reverify(&request, NULL,
				     fixture->account, n.key_fingerprint,
				     fixture->arena, &reason),
		    0);
		assert_int_equal(
		    fixture->provider->reverify(&request, NULL, NULL,
			n.key_fingerprint, fixture->arena, &reason),
		    PN_REVERIFY_NO_KEY);
		assert_int_equal(
		    fixture->provider->reverify(&request, NULL,
			fixture->account, stranger, fixture->arena, &reason),
		    PN_REVERIFY_NO_KEY);
		at = pn_str_find(request.body, PN_STR("8888"));
		assert_true(at > 0);
		assert_int_equal(
		    again(fixture, request.body, (size_t)at, &request, NULL,
			fixture->account, n.key_fingerprint),
		    PN_REVERIFY_WRONG);
	}
}

/* Fails if a refund, which has no sign, could not be told from rubbish. */
static void
test_wechat__v2_refunds_are_told_by_what_decrypts(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_notification n;
	struct pn_request request =
	    sample_of(fixture, "refund.succeeded", "v2", &n);
	const char *reason = NULL;
	ptrdiff_t at;

	request.body = pn_arena_copy(fixture->arena, request.body);
	assert_int_equal(
	    fixture->provider->reverify(&request, NULL, fixture->account,
		n.key_fingerprint, fixture->arena, &reason),
	    0);
	at = pn_str_find(request.body, PN_STR("<req_info>"));
	assert_true(at > 0);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(
		    again(fixture, request.body, (size_t)at + 24 + i, &request,
			NULL, fixture->account, n.key_fingerprint),
		    PN_REVERIFY_WRONG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, wechat_fixture_arena, wechat_fixture_arena_done)
		TEST(test_wechat__any_flipped_byte_of_v3_is_found),
		TEST(test_wechat__another_key_or_none_is_wrong),
		TEST(test_wechat__v2_needs_its_secret),
		TEST(test_wechat__v2_refunds_are_told_by_what_decrypts),
	};

	return cmocka_run_group_tests(
	    tests, wechat_fixture_setup, wechat_fixture_teardown);
}
