/*
 * Makes the account of wechat_fixture.h: RSA pairs by OpenSSL, written as PEM
 * into the structures that the configuration would have filled.
 */
#include "wechat_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

static void
take_pem(BIO *bio, struct pn_conf_file *file)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);

	assert_true(len > 0);
	assert_int_equal(pn_secret_set(&file->content, data, (size_t)len), 0);
	BIO_free(bio);
}

static void
make_keys(struct wechat_fixture *fixture)
{
	EVP_PKEY *pair = EVP_RSA_gen(2048);
	EVP_PKEY *other = EVP_RSA_gen(2048);
	BIO *bio = BIO_new(BIO_s_mem());

	assert_non_null(pair);
	assert_non_null(other);
	assert_int_equal(PEM_write_bio_PUBKEY(bio, other), 1);
	take_pem(bio, &fixture->public_files[0]);
	bio = BIO_new(BIO_s_mem());
	assert_int_equal(PEM_write_bio_PUBKEY(bio, pair), 1);
	take_pem(bio, &fixture->public_files[1]);
	bio = BIO_new(BIO_s_mem());
	assert_int_equal(
	    PEM_write_bio_PKCS8PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL),
	    1);
	take_pem(bio, &fixture->private_file);
	EVP_PKEY_free(pair);
	EVP_PKEY_free(other);
	assert_int_equal(pn_secret_set(&fixture->v3_file.content,
			     "unit-test-api-v3-key-of-32-bytes", 32),
	    0);
	assert_int_equal(pn_secret_set(&fixture->v2_file.content,
			     "unit0test0api0v2key0of032bytes00", 32),
	    0);
}

static void
set(char *out, size_t bytes, const char *text)
{
	assert_true((size_t)snprintf(out, bytes, "%s", text) < bytes);
}

static void
set_texts(struct wechat_fixture *fixture)
{
	struct pn_conf_file *const files[] = { &fixture->public_files[0],
		&fixture->public_files[1], &fixture->private_file,
		&fixture->v3_file, &fixture->v2_file };

	set(fixture->provider_name, sizeof(fixture->provider_name), "wechat");
	set(fixture->tenant, sizeof(fixture->tenant), "shop1");
	set(fixture->file, sizeof(fixture->file), "test.conf");
	set(fixture->path, sizeof(fixture->path), "key.pem");
	set(fixture->mchid_text, sizeof(fixture->mchid_text), "1900000001");
	set(fixture->appid_text, sizeof(fixture->appid_text),
	    "wx1111111111111111");
	fixture->mchids[0] = fixture->mchid_text;
	fixture->appids[0] = fixture->appid_text;
	for (size_t i = 0; i < PN_COUNT(files); i++) {
		files[i]->path = fixture->path;
		files[i]->place.file = fixture->file;
		files[i]->place.line = 7;
	}
	for (size_t i = 0; i < WECHAT_PUBLIC_KEYS; i++) {
		(void)snprintf(fixture->labels[i], sizeof(fixture->labels[i]),
		    "PUB_KEY_ID_%zu", i);
		fixture->public_files[i].label = fixture->labels[i];
	}
}

int
wechat_fixture_setup(void **state)
{
	struct wechat_fixture *fixture = calloc(1, sizeof(*fixture));
	struct pn_error error = { "" };

	assert_non_null(fixture);
	make_keys(fixture);
	set_texts(fixture);
	fixture->conf = (struct pn_conf_account){
		.provider = fixture->provider_name,
		.tenant = fixture->tenant,
		.place = { fixture->file, 3 },
		.test = true,
		.test_private_key = { &fixture->private_file, 1 },
		.wechat = {
			.mchid = { fixture->mchids, NULL, 1 },
			.appid = { fixture->appids, NULL, 1 },
			.api_v3_key_file = { &fixture->v3_file, 1 },
			.public_key = { fixture->public_files,
			    WECHAT_PUBLIC_KEYS },
			.api_v2_key_file = { &fixture->v2_file, 1 },
			.v2_sign_type = PN_V2_SIGN_MD5,
			.timestamp_tolerance_us = INT64_C(300000000),
		},
	};
	fixture->provider = pn_provider_find(PN_STR("wechat"));
	assert_non_null(fixture->provider);
	assert_int_equal(fixture->provider->account_open(
			     &fixture->conf, &fixture->account, &error),
	    0);
	*state = fixture;
	return 0;
}

int
wechat_fixture_teardown(void **state)
{
	struct wechat_fixture *fixture = *state;

	fixture->provider->account_close(fixture->account);
	for (size_t i = 0; i < WECHAT_PUBLIC_KEYS; i++)
		pn_secret_done(&fixture->public_files[i].content);
	pn_secret_done(&fixture->private_file.content);
	pn_secret_done(&fixture->v3_file.content);
	pn_secret_done(&fixture->v2_file.content);
	free(fixture);
	return 0;
}

int
wechat_fixture_arena(void **state)
{
	struct wechat_fixture *fixture = *state;

	fixture->arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	return fixture->arena == NULL ? -1 : 0;
}

int
wechat_fixture_arena_done(void **state)
{
	struct wechat_fixture *fixture = *state;

	pn_arena_freep(&fixture->arena);
	return 0;
}

struct pn_sample
wechat_fixture_sample_of(const char *event)
{
	return (struct pn_sample){
		.event = pn_str_from(event), .seed = 42, .now_us = WECHAT_NOW_US
	};
}

struct pn_request
wechat_fixture_sample(
    struct wechat_fixture *fixture, const struct pn_sample *sample)
{
	struct pn_error error = { "" };
	struct pn_request request;
	int r;

	r = fixture->provider->sample(
	    fixture->account, sample, fixture->arena, &request, &error);
	assert_string_equal(error.text, "");
	assert_int_equal(r, 0);
	return request;
}

struct pn_notification
wechat_fixture_verify(
    struct wechat_fixture *fixture, const struct pn_request *request)
{
	struct pn_notification notification;

	assert_int_equal(fixture->provider->verify(fixture->account, request,
			     WECHAT_NOW_US, fixture->arena, &notification),
	    0);
	return notification;
}
