/*
 * Digests against published vectors, comparison, random bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/digest.h"
#include "paynotify/encode.h"

static void
assert_hex(const unsigned char *data, size_t len, const char *want)
{
	char text[2 * 64 + 1];

	assert_true(len <= 64);
	pn_hex_lower(data, len, text);
	assert_string_equal(text, want);
}

/* Every id and fingerprint would be another one. */
static void
test_digest__sha256_is_that_of_fips_180(void **state)
{
	unsigned char digest[PN_SHA256_BYTES];

	(void)state;
	pn_sha256(PN_STR("abc"), digest);
	assert_hex(digest, sizeof(digest),
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	pn_sha256((struct pn_str){ NULL, 0 }, digest);
	assert_hex(digest, sizeof(digest),
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* No APIv2 message would verify. */
static void
test_digest__md5_is_that_of_rfc_1321(void **state)
{
	unsigned char digest[PN_MD5_BYTES];

	(void)state;
	pn_md5(PN_STR("message digest"), digest);
	assert_hex(digest, sizeof(digest), "f96b697d7cb7938d525a2f31aaf161d0");
}

/* No APIv2 message of an HMAC-SHA256 account would verify. */
static void
test_digest__hmac_is_that_of_rfc_4231(void **state)
{
	unsigned char digest[PN_SHA256_BYTES];
	struct pn_secret key = { NULL, 0 };

	(void)state;
	assert_int_equal(pn_secret_set(&key, "Jefe", 4), 0);
	pn_hmac_sha256(&key, PN_STR("what do ya want for nothing?"), digest);
	assert_hex(digest, sizeof(digest),
	    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	pn_hmac_sha256(&key, (struct pn_str){ NULL, 0 }, digest);
	assert_hex(digest, sizeof(digest),
	    "923598ca6d64af2a5dba79dcd021a8a0fe5c5f557519adaaf0ad532d4506dd30");
	pn_secret_done(&key);
}

/* A comparison that stops at a NUL, or at the shorter one, accepts forgeries. */
static void
test_digest__comparison_looks_at_every_byte(void **state)
{
	(void)state;
	assert_true(pn_equal_constant_time(PN_STR("ab\0c"), PN_STR("ab\0c")));
	assert_false(pn_equal_constant_time(PN_STR("ab\0c"), PN_STR("ab\0d")));
	assert_false(pn_equal_constant_time(PN_STR("abc"), PN_STR("ab")));
	assert_false(pn_equal_constant_time(PN_STR("bbc"), PN_STR("abc")));
	assert_true(pn_equal_constant_time(PN_STR(""), PN_STR("")));
}

/* Two request ids that are equal would join two payments. */
static void
test_digest__random_bytes_differ_and_fill_the_buffer(void **state)
{
	enum { BYTES = 4096, ENOUGH = 200 };
	unsigned char a[BYTES] = { 0 }, b[BYTES] = { 0 };
	unsigned seen[256] = { 0 }, kinds = 0;

	(void)state;
	pn_random_bytes(a, sizeof(a));
	pn_random_bytes(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	/* The last quarter alone must show many byte values. */
	for (size_t i = BYTES / 4 * 3; i < BYTES; i++)
		if (seen[a[i]]++ == 0)
			kinds++;
	assert_true(kinds > ENOUGH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digest__sha256_is_that_of_fips_180),
		cmocka_unit_test(test_digest__md5_is_that_of_rfc_1321),
		cmocka_unit_test(test_digest__hmac_is_that_of_rfc_4231),
		cmocka_unit_test(test_digest__comparison_looks_at_every_byte),
		cmocka_unit_test(
		    test_digest__random_bytes_differ_and_fill_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
