/*
 * Makes the account of alipay_fixture.h: an RSA pair by OpenSSL, written as
 * PEM into the structures that the configuration would have filled.
 */
#include "alipay_fixture.h"

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
make_keys(struct alipay_fixture *fixture)
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
}

static void
set(char *out, size_t bytes, const char *text)
{
	assert_true((size_t)snprintf(out, bytes, "%s", text) < bytes);
}

int
alipay_fixture_setup(void **state)
{
	struct alipay_fixture *fixture = calloc(1, sizeof(*fixture));
	struct pn_error error = { "" };

	assert_non_null(fixture);
	make_keys(fixture);
	set(fixture->provider_name, sizeof(fixture->provider_name), "alipay");
	set(fixture->tenant, sizeof(fixture->tenant), "shop1");
	set(fixture->file, sizeof(fixture->file), "test.conf");
	set(fixture->path, sizeof(fixture->path), "key.pem");
	set(fixture->seller_id_text, sizeof(fixture->seller_id_text),
	    "2088000000000001");
	fixture->seller_ids[0] = fixture->seller_id_text;
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(fixture->app_id_texts[i],
		    sizeof(fixture->app_id_texts[i]), "202100000000000%zu", i);
		fixture->app_ids[i] = fixture->app_id_texts[i];
		fixture->public_files[i].path = fixture->path;
		fixture->public_files[i].place.file = fixture->file;
		fixture->public_files[i].place.line = 7;
	}
	fixture->conf = (struct pn_conf_account){
		.provider = fixture->provider_name,
		.tenant = fixture->tenant,
		.place = { fixture->file, 3 },
		.test = true,
		.test_private_key = { &fixture->private_file, 1 },
		.alipay = {
			.app_id = { fixture->app_ids, NULL, 2 },
			.seller_id = { fixture->seller_ids, NULL, 1 },
			.public_key = { fixture->public_files, 2 },
			.sign_type = PN_SIGN_RSA2,
		},
	};
	fixture->provider = pn_provider_find(PN_STR("alipay"));
	assert_non_null(fixture->provider);
	assert_int_equal(fixture->provider->account_open(
			     &fixture->conf, &fixture->account, &error),
	    0);
	*state = fixture;
	return 0;
}

int
alipay_fixture_teardown(void **state)
{
	struct alipay_fixture *fixture = *state;

	fixture->provider->account_close(fixture->account);
	for (size_t i = 0; i < 2; i++)
		pn_secret_done(&fixture->public_files[i].content);
	pn_secret_done(&fixture->private_file.content);
	free(fixture);
	return 0;
}

int
alipay_fixture_arena(void **state)
{
	struct alipay_fixture *fixture = *state;

	fixture->arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	return fixture->arena == NULL ? -1 : 0;
}

int
alipay_fixture_arena_done(void **state)
{
	struct alipay_fixture *fixture = *state;

	pn_arena_freep(&fixture->arena);
	return 0;
}

struct pn_request
alipay_fixture_sample(
    struct alipay_fixture *fixture, const struct pn_sample *sample)
{
	struct pn_error error = { "" };
	struct pn_request request;

	assert_int_equal(fixture->provider->sample(fixture->account, sample,
			     fixture->arena, &request, &error),
	    0);
	assert_string_equal(error.text, "");
	return request;
}

struct pn_notification
alipay_fixture_verify(
    struct alipay_fixture *fixture, const struct pn_request *request)
{
	struct pn_notification notification;

	assert_int_equal(fixture->provider->verify(fixture->account, request,
			     FIXTURE_NOW_US, fixture->arena, &notification),
	    0);
	return notification;
}
