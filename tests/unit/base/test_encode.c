/*
 * Base64 and hex. If these fail, a right signature is refused, or one signature
 * has many texts.
 */
#include "paynotify/encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* The vectors of RFC 4648 section 10. */
static void
test_encode__base64_has_the_vectors_of_the_rfc(void **state)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" },
		{ "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" } };
	unsigned char data[16];
	char text[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(pairs); i++) {
		pn_base64_encode(pairs[i][0], strlen(pairs[i][0]), text);
		assert_string_equal(text, pairs[i][1]);
		assert_int_equal(
		    strlen(text), PN_BASE64_ENCODED_BYTES(strlen(pairs[i][0])));
		assert_int_equal(
		    pn_base64_decode(pn_str_from(pairs[i][1]), data, &len), 0);
		assert_int_equal(len, strlen(pairs[i][0]));
		assert_memory_equal(data, pairs[i][0], len);
	}
}

/* A byte value that is encoded or decoded wrongly, at any position. */
static void
test_encode__base64_round_trips_every_byte(void **state)
{
	unsigned char data[259], back[264];
	char text[360];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 167 + 13);
	for (size_t n = 0; n <= sizeof(data); n++) {
		pn_base64_encode(data, n, text);
		assert_int_equal(
		    pn_base64_decode(pn_str_from(text), back, &len), 0);
		assert_int_equal(len, n);
		assert_memory_equal(back, data, n);
	}
}

/* A second text for the same bytes: a forger varies a captured signature. */
static void
test_encode__base64_refuses_every_other_text(void **state)
{
	static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg===", "=Zg=",
		"Z===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n", "Zm 9",
		"Zm9v=", "Zm-_", "Z=g=", "Zm9\xc3", "Zg= =", "Zm9vZg=\n" };
	unsigned char data[16];
	size_t len = 99;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		if (pn_base64_decode(pn_str_from(bad[i]), data, &len) != 1)
			fail_msg("decoded: %s", bad[i]);
	}
	assert_int_equal(pn_base64_decode(PN_STR("Zm\0v"), data, &len), 1);
	assert_int_equal(len, 99);
	for (int c = 0; c < 256; c++) {
		char text[4] = { 'A', 'A', 'A', (char)c };
		bool valid = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
			     (c >= '0' && c <= '9') || c == '+' || c == '/' ||
			     c == '=';

		assert_int_equal(
		    pn_base64_decode((struct pn_str){ text, 4 }, data, &len),
		    valid ? 0 : 1);
	}
}

/* A fingerprint in the wrong case, or half of one accepted. */
static void
test_encode__hex_is_exact(void **state)
{
	const unsigned char data[] = { 0x00, 0x9f, 0xab };
	unsigned char back[3];
	char text[7];

	(void)state;
	pn_hex_lower(data, 3, text);
	assert_string_equal(text, "009fab");
	assert_int_equal(pn_hex_decode(pn_str_from(text), back, 3), 0);
	assert_memory_equal(back, data, 3);
	pn_hex_upper(data, 3, text);
	assert_string_equal(text, "009FAB");
	assert_int_equal(pn_hex_decode(pn_str_from(text), back, 3), 0);
	assert_int_equal(pn_hex_decode(PN_STR("009fa"), back, 3), 1);
	assert_int_equal(pn_hex_decode(PN_STR("009fabc"), back, 3), 1);
	assert_int_equal(pn_hex_decode(PN_STR("009fabcd"), back, 3), 1);
	assert_int_equal(pn_hex_decode(PN_STR("009fag"), back, 3), 1);
	assert_int_equal(pn_hex_decode(PN_STR("0x9fab"), back, 3), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_encode__base64_has_the_vectors_of_the_rfc),
		cmocka_unit_test(test_encode__base64_round_trips_every_byte),
		cmocka_unit_test(test_encode__base64_refuses_every_other_text),
		cmocka_unit_test(test_encode__hex_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
