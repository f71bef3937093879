/*
 * Keys and certificates for tests, by OpenSSL's own encoders, so that what our
 * reader takes is judged by another's writer.
 */
#include "key_make.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/bn.h>
#include <openssl/encoder.h>
#include <openssl/x509.h>

#include "paynotify/encode.h"

static char *
base64_of(const unsigned char *der, size_t len)
{
	char *text = malloc(PN_BASE64_ENCODED_BYTES(len) + 1);

	assert_non_null(text);
	pn_base64_encode(der, len, text);
	return text;
}

char *
made_base64(EVP_PKEY *pkey, enum made_form form)
{
	static const struct {
		int selection;
		const char *structure;
	} forms[] = {
		[MADE_SPKI] = { EVP_PKEY_PUBLIC_KEY, "SubjectPublicKeyInfo" },
		[MADE_PKCS1] = { EVP_PKEY_PUBLIC_KEY, "type-specific" },
		[MADE_PRIVATE_PKCS8] = { EVP_PKEY_KEYPAIR, "PrivateKeyInfo" },
		[MADE_PRIVATE_PKCS1] = { EVP_PKEY_KEYPAIR, "type-specific" },
	};
	OSSL_ENCODER_CTX *ctx = OSSL_ENCODER_CTX_new_for_pkey(
	    pkey, forms[form].selection, "DER", forms[form].structure, NULL);
	unsigned char *der = NULL;
	size_t len = 0;
	char *text;

	assert_non_null(ctx);
	assert_int_equal(OSSL_ENCODER_to_data(ctx, &der, &len), 1);
	text = base64_of(der, len);
	OPENSSL_free(der);
	OSSL_ENCODER_CTX_free(ctx);
	return text;
}

char *
made_certificate_base64(
    EVP_PKEY *pkey, const unsigned char *serial, size_t serial_bytes)
{
	X509 *certificate = X509_new();
	BIGNUM *number = BN_bin2bn(serial, (int)serial_bytes, NULL);
	unsigned char *der = NULL;
	char *text;
	int len;

	assert_non_null(certificate);
	assert_non_null(
	    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)));
	BN_free(number);
	assert_int_equal(X509_set_version(certificate, 2), 1);
	assert_int_equal(ASN1_TIME_set_string(
			     X509_getm_notBefore(certificate), "260101000000Z"),
	    1);
	assert_int_equal(ASN1_TIME_set_string(X509_getm_notAfter(certificate),
			     "20270101000000Z"),
	    1);
	assert_int_equal(X509_set_pubkey(certificate, pkey), 1);
	assert_true(X509_sign(certificate, pkey, EVP_sha256()) > 0);
	len = i2d_X509(certificate, &der);
	assert_true(len > 0);
	text = base64_of(der, (size_t)len);
	OPENSSL_free(der);
	X509_free(certificate);
	return text;
}

char *
made_pem(const char *label, const char *base64, size_t line_bytes,
    const char *newline)
{
	size_t len = strlen(base64), step = line_bytes == 0 ? len : line_bytes;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	fprintf(out, "-----BEGIN %s-----%s", label, newline);
	for (size_t i = 0; i < len; i += step)
		fprintf(out, "%.*s%s", (int)step, base64 + i, newline);
	fprintf(out, "-----END %s-----%s", label, newline);
	assert_int_equal(fclose(out), 0);
	return text;
}

struct pn_private_key *
made_private(EVP_PKEY *pkey)
{
	char *text = made_base64(pkey, MADE_PRIVATE_PKCS8);
	struct pn_private_key *key = NULL;
	struct pn_error error;

	assert_int_equal(
	    pn_private_key_parse(pn_str_from(text), &key, &error), 0);
	free(text);
	return key;
}
