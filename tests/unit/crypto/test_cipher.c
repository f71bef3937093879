/*
 * AES as WeChat Pay uses it: published vectors, and every way in which a
 * ciphertext can be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "paynotify/cipher.h"
#include "paynotify/encode.h"

enum { BYTES_MAX = 256 };

static const char key_text[] = "0123456789abcdef0123456789abcdef";

struct bytes {
	unsigned char data[BYTES_MAX];
	size_t len;
};

static struct bytes
from_hex(const char *hex)
{
	struct bytes bytes = { .len = strlen(hex) / 2 };

	assert_int_equal(
	    pn_hex_decode(pn_str_from(hex), bytes.data, bytes.len), 0);
	return bytes;
}

static struct pn_str
str(const struct bytes *bytes)
{
	return (struct pn_str){ (const char *)bytes->data, bytes->len };
}

static struct pn_secret
secret(const void *data, size_t len)
{
	struct pn_secret key = { NULL, 0 };

	assert_int_equal(pn_secret_set(&key, data, len), 0);
	return key;
}

/* Test case 16 of the GCM specification: with it wrong, no notification of
 * APIv3 decrypts. */
static void
test_cipher__gcm_is_that_of_the_specification(void **state)
{
	struct bytes raw = from_hex("feffe9928665731c6d6a8f9467308308"
				    "feffe9928665731c6d6a8f9467308308");
	struct bytes nonce = from_hex("cafebabefacedbaddecaf888");
	struct bytes aad = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
	struct bytes plain = from_hex(
	    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
	    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
	struct bytes cipher = from_hex(
	    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
	    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
	    "76fc6ece0f4e1768cddf8853bb2d551b");
	struct pn_secret key = secret(raw.data, raw.len);
	struct bytes out = { .len = 0 };

	(void)state;
	assert_int_equal(pn_aes_gcm_encrypt(&key, str(&nonce), str(&aad),
			     str(&plain), out.data, &out.len),
	    0);
	assert_true(pn_str_equal(str(&out), str(&cipher)));
	assert_int_equal(pn_aes_gcm_decrypt(&key, str(&nonce), str(&aad),
			     str(&cipher), out.data, &out.len),
	    0);
	assert_true(pn_str_equal(str(&out), str(&plain)));
	pn_secret_done(&key);
}

/* One flipped bit anywhere that passes is a forged amount. */
static void
test_cipher__gcm_refuses_every_flipped_bit(void **state)
{
	struct pn_secret key = secret(key_text, 32);
	struct pn_str nonce = PN_STR("abcdefghijkl"), aad = PN_STR("aad");
	struct bytes cipher, plain = { .len = 99 };

	(void)state;
	assert_int_equal(pn_aes_gcm_encrypt(&key, nonce, aad, PN_STR("text"),
			     cipher.data, &cipher.len),
	    0);
	assert_int_equal(cipher.len, 4 + PN_GCM_TAG_BYTES);
	for (size_t bit = 0; bit < 8 * cipher.len; bit++) {
		cipher.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		memset(plain.data, 'x', 4);
		assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, aad,
				     str(&cipher), plain.data, &plain.len),
		    1);
		/* nothing of the unverified text stays, nothing is counted */
		assert_memory_equal(plain.data, "\0\0\0\0", 4);
		assert_int_equal(plain.len, 99);
		cipher.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, PN_STR("aae"),
			     str(&cipher), plain.data, &plain.len),
	    1);
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, PN_STR(""),
			     str(&cipher), plain.data, &plain.len),
	    1);
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, aad, str(&cipher),
			     plain.data, &plain.len),
	    0);
	assert_memory_equal(plain.data, "text", 4);
	pn_secret_done(&key);
}

/* Lengths come from outside: each bound must hold by itself. */
static void
test_cipher__gcm_checks_lengths(void **state)
{
	struct pn_secret key = secret(key_text, 32), shorter;
	struct pn_str nonce = PN_STR("abcdefghijkl"), none = { NULL, 0 };
	struct bytes cipher, plain;

	(void)state;
	assert_int_equal(pn_aes_gcm_encrypt(
			     &key, nonce, none, none, cipher.data, &cipher.len),
	    0);
	assert_int_equal(cipher.len, PN_GCM_TAG_BYTES);
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, none, str(&cipher),
			     plain.data, &plain.len),
	    0);
	assert_int_equal(plain.len, 0);
	cipher.len--;
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, none, str(&cipher),
			     plain.data, &plain.len),
	    1);
	assert_int_equal(
	    pn_aes_gcm_decrypt(&key, nonce, none, none, plain.data, &plain.len),
	    1);
	cipher.len++;
	nonce.len--;
	assert_int_equal(pn_aes_gcm_decrypt(&key, nonce, none, str(&cipher),
			     plain.data, &plain.len),
	    1);
	assert_int_equal(pn_aes_gcm_decrypt(&key, PN_STR("abcdefghijklm"), none,
			     str(&cipher), plain.data, &plain.len),
	    1);
	assert_int_equal(pn_aes_gcm_decrypt(&key, none, none, str(&cipher),
			     plain.data, &plain.len),
	    1);
	shorter = secret(key_text, 31);
	assert_int_equal(pn_aes_gcm_decrypt(&shorter, PN_STR("abcdefghijkl"),
			     none, str(&cipher), plain.data, &plain.len),
	    -EINVAL);
	pn_secret_done(&key);
	pn_secret_done(&shorter);
}

/* Refunds of APIv2 would not decrypt. Vector made with openssl enc. */
static void
test_cipher__ecb_agrees_with_openssl_enc(void **state)
{
	struct pn_secret key = secret(key_text, 32);
	struct bytes one = from_hex("a59c096412eecb79830021104f861307");
	struct bytes two = from_hex("f83c9a60dc0cdb98219f79d6d5db1635"
				    "8aa36241fde8df054dc325c6c695b89e");
	struct bytes out;

	(void)state;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&one), out.data, &out.len), 0);
	assert_int_equal(out.len, 5);
	assert_memory_equal(out.data, "hello", 5);
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&two), out.data, &out.len), 0);
	assert_int_equal(out.len, 16);
	assert_memory_equal(out.data, key_text, 16);
	assert_int_equal(
	    pn_aes_ecb_encrypt(&key, PN_STR("hello"), out.data, &out.len), 0);
	assert_true(pn_str_equal(str(&out), str(&one)));
	pn_secret_done(&key);
}

/* A padding that is not checked fully makes garbage of a wrong key pass for a
 * refund. The last block of "two" is padding alone: cut it, and what is left
 * ends in no padding. */
static void
test_cipher__ecb_checks_padding_and_length(void **state)
{
	struct pn_secret key = secret(key_text, 32);
	struct pn_secret other = secret("1123456789abcdef0123456789abcdef", 32);
	struct bytes two = from_hex("f83c9a60dc0cdb98219f79d6d5db1635"
				    "8aa36241fde8df054dc325c6c695b89e");
	struct bytes out = { .len = 7 };

	(void)state;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&other, str(&two), out.data, &out.len), 1);
	two.len = 16;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&two), out.data, &out.len), 1);
	two.len = 17;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&two), out.data, &out.len), 1);
	two.len = 0;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&two), out.data, &out.len), 1);
	assert_int_equal(out.len, 7);
	key.len = 16;
	two.len = 32;
	assert_int_equal(
	    pn_aes_ecb_decrypt(&key, str(&two), out.data, &out.len), -EINVAL);
	key.len = 32;
	pn_secret_done(&key);
	pn_secret_done(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cipher__gcm_is_that_of_the_specification),
		cmocka_unit_test(test_cipher__gcm_refuses_every_flipped_bit),
		cmocka_unit_test(test_cipher__gcm_checks_lengths),
		cmocka_unit_test(test_cipher__ecb_agrees_with_openssl_enc),
		cmocka_unit_test(test_cipher__ecb_checks_padding_and_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
