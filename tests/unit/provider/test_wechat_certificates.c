/*
 * What WeChat Pay's accounts tell for the metrics and of what is doubtful: which
 * certificates end when, and when an attempt was sent. If these fail, a certificate ends unannounced
 * and notifications are refused from that second on, or a clock is watched that
 * is nobody's.
 */
#include "wechat_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "paynotify/moment.h"

enum {
	DAY_S = 86400,
	BEGINS_S = WECHAT_NOW_S - 90 * DAY_S,
	ENDS_S = WECHAT_NOW_S + DAY_S
};

/* A certificate of that serial, as a file of the configuration. */
static void
make_certificate(struct pn_conf_file *file, long serial)
{
	EVP_PKEY *pair = EVP_RSA_gen(2048);
	X509 *x509 = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	long len;

	assert_non_null(pair);
	assert_non_null(x509);
	assert_int_equal(
	    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial), 1);
	assert_non_null(ASN1_TIME_set(X509_getm_notBefore(x509), BEGINS_S));
	assert_non_null(ASN1_TIME_set(X509_getm_notAfter(x509), ENDS_S));
	assert_int_equal(X509_set_pubkey(x509, pair), 1);
	assert_true(X509_sign(x509, pair, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(bio, x509), 1);
	len = BIO_get_mem_data(bio, &data);
	assert_int_equal(pn_secret_set(&file->content, data, (size_t)len), 0);
	BIO_free(bio);
	X509_free(x509);
	EVP_PKEY_free(pair);
}

struct seen {
	int count;
	char serial[32];
	int64_t not_after_us;
};

static int
visit(void *payload, const char *serial, int64_t not_after_us)
{
	struct seen *seen = payload;

	assert_true(strlen(serial) < sizeof(seen->serial));
	memcpy(seen->serial, serial, strlen(serial) + 1);
	seen->not_after_us = not_after_us;
	seen->count++;
	return 0;
}

/* A public key has no end, whatever wraps it: an alarm on it would be a lie. */
static void
test_wechat__platform_certificates_tell_when_they_end(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_conf_file files[2] = { fixture->public_files[0],
		fixture->public_files[0] };
	struct seen seen = { .count = 0 };
	struct pn_error error;
	void *account;

	memset(&files[0].content, 0, sizeof(files[0].content));
	memset(&files[1].content, 0, sizeof(files[1].content));
	make_certificate(&files[0], 0x0a0b);
	make_certificate(&files[1], 0x77);
	files[0].label = NULL;
	conf.wechat.platform_cert = (struct pn_conf_files){ files, 1 };
	conf.wechat.public_key = (struct pn_conf_files){ files + 1, 1 };
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	assert_int_equal(
	    fixture->provider->account_certificates(account, visit, &seen), 0);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.serial, "0A0B");
	assert_int_equal(seen.not_after_us, ENDS_S * PN_SECOND_US);
	fixture->provider->account_close(account);
	pn_secret_done(&files[0].content);
	pn_secret_done(&files[1].content);
}

struct doubts {
	int count, line;
	char text[512];
};

static int
keep(void *payload, const struct pn_conf_place *place, const char *text)
{
	struct doubts *doubts = payload;

	assert_true(strlen(text) < sizeof(doubts->text));
	memcpy(doubts->text, text, strlen(text) + 1);
	doubts->line = place->line;
	doubts->count++;
	return 0;
}

/* A certificate that ends unannounced is found by the notifications it signs. */
static void
test_wechat__dates_of_platform_certificates_are_doubted(void **state)
{
	static const struct {
		int64_t now_s;
		const char *said; /* NULL: nothing */
	} rows[] = {
		{ BEGINS_S - 1, "is not valid before 2025-12-01T02:00:06Z" },
		{ BEGINS_S, NULL },
		{ ENDS_S - 30 * DAY_S, NULL },
		{ ENDS_S - 30 * DAY_S + 1, "ends 2026-03-02T02:00:06Z: add" },
		{ ENDS_S, "ends 2026-03-02T02:00:06Z: add its successor" },
		{ ENDS_S + 1, "ended 2026-03-02T02:00:06Z: what it signs is" },
	};
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct pn_conf_file file = fixture->public_files[0];
	struct pn_error error;
	void *account;

	memset(&file.content, 0, sizeof(file.content));
	make_certificate(&file, 0x77);
	file.place.line = 77;
	conf.wechat.platform_cert = (struct pn_conf_files){ &file, 1 };
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		struct doubts seen = { .count = 0 };
		const struct pn_doubts doubts = { rows[i].now_s * PN_SECOND_US,
			keep, &seen };

		assert_int_equal(
		    fixture->provider->account_doubts(account, &doubts), 0);
		assert_int_equal(seen.count, rows[i].said != NULL);
		if (rows[i].said == NULL)
			continue;
		assert_non_null(strstr(seen.text, rows[i].said));
		assert_int_equal(seen.line, 77);
	}
	fixture->provider->account_close(account);
	pn_secret_done(&file.content);
}

/* All that trigger signs would be refused, or none of it made. */
static void
test_wechat__a_private_key_of_nothing_is_doubted(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_conf_account conf = fixture->conf;
	struct doubts seen = { .count = 0 };
	const struct pn_doubts doubts = { WECHAT_NOW_US, keep, &seen };
	struct pn_error error;
	void *account;

	assert_int_equal(
	    fixture->provider->account_doubts(fixture->account, &doubts), 0);
	assert_int_equal(seen.count, 0);
	conf.wechat.public_key.count = 1; /* the other's alone */
	assert_int_equal(
	    fixture->provider->account_open(&conf, &account, &error), 0);
	assert_int_equal(
	    fixture->provider->account_doubts(account, &doubts), 0);
	assert_int_equal(seen.count, 1);
	assert_non_null(strstr(seen.text, "belongs to no key of [wechat "));
	fixture->provider->account_close(account);
}

/* The clock would be compared with a time that nobody signed, or that of the
 * first attempt, a day ago. */
static void
test_wechat__sending_time_is_the_signed_header(void **state)
{
	struct wechat_fixture *fixture = *state;
	struct pn_sample sample = wechat_fixture_sample_of("payment.succeeded");
	struct pn_notification n;
	struct pn_request request;

	sample.now_us = WECHAT_NOW_US - 7 * PN_SECOND_US;
	request = wechat_fixture_sample(fixture, &sample);
	n = wechat_fixture_verify(fixture, &request);
	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
	assert_int_equal(n.signed_at_us, sample.now_us);
	request.body.len--; /* forged */
	n = wechat_fixture_verify(fixture, &request);
	assert_false(n.verified);
	assert_true(n.signed_at_us == PN_MOMENT_NONE);
	sample.dialect = "v2";
	request = wechat_fixture_sample(fixture, &sample);
	n = wechat_fixture_verify(fixture, &request);
	assert_int_equal(n.verdict, PN_VERDICT_ACCEPTED);
	assert_true(n.signed_at_us == PN_MOMENT_NONE);
}

int
main(void)
{
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, wechat_fixture_arena, wechat_fixture_arena_done)
	const struct CMUnitTest tests[] = {
		TEST(test_wechat__platform_certificates_tell_when_they_end),
		TEST(test_wechat__dates_of_platform_certificates_are_doubted),
		TEST(test_wechat__a_private_key_of_nothing_is_doubted),
		TEST(test_wechat__sending_time_is_the_signed_header),
	};

	return cmocka_run_group_tests(
	    tests, wechat_fixture_setup, wechat_fixture_teardown);
}
