/*
 * Base64 and hex.
 *
 * Base64 is strict, because a signature must have one text form only: a lax
 * decoder would let a forger vary a captured message without breaking it. The
 * decoder works through a table and collects the invalid bit of four
 * characters before it looks, since a WeChat body is mostly base64.
 *
 * It does not skip white space; callers that read key files strip it first.
 */
#include "paynotify/encode.h"

#include <assert.h>
#include <stdint.h>

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex_lower[] = "0123456789abcdef";
static const char hex_upper[] = "0123456789ABCDEF";

static_assert(sizeof(base64_alphabet) == 64 + 1, "six bits a character");

/* Value + 1 of each character, so that 0, what is not named, is invalid. */
static const unsigned char base64_values[256] = {
	['A'] = 1,
	['B'] = 2,
	['C'] = 3,
	['D'] = 4,
	['E'] = 5,
	['F'] = 6,
	['G'] = 7,
	['H'] = 8,
	['I'] = 9,
	['J'] = 10,
	['K'] = 11,
	['L'] = 12,
	['M'] = 13,
	['N'] = 14,
	['O'] = 15,
	['P'] = 16,
	['Q'] = 17,
	['R'] = 18,
	['S'] = 19,
	['T'] = 20,
	['U'] = 21,
	['V'] = 22,
	['W'] = 23,
	['X'] = 24,
	['Y'] = 25,
	['Z'] = 26,
	['a'] = 27,
	['b'] = 28,
	['c'] = 29,
	['d'] = 30,
	['e'] = 31,
	['f'] = 32,
	['g'] = 33,
	['h'] = 34,
	['i'] = 35,
	['j'] = 36,
	['k'] = 37,
	['l'] = 38,
	['m'] = 39,
	['n'] = 40,
	['o'] = 41,
	['p'] = 42,
	['q'] = 43,
	['r'] = 44,
	['s'] = 45,
	['t'] = 46,
	['u'] = 47,
	['v'] = 48,
	['w'] = 49,
	['x'] = 50,
	['y'] = 51,
	['z'] = 52,
	['0'] = 53,
	['1'] = 54,
	['2'] = 55,
	['3'] = 56,
	['4'] = 57,
	['5'] = 58,
	['6'] = 59,
	['7'] = 60,
	['8'] = 61,
	['9'] = 62,
	['+'] = 63,
	['/'] = 64,
};

/* The six bits of c, or a value with bit 31 set when c is no such character. */
static uint32_t
six_bits(char c)
{
	return (uint32_t)base64_values[(unsigned char)c] - 1;
}

int
pn_base64_decode(struct pn_str text, unsigned char *ret_data, size_t *ret_len)
{
	const char *in = text.data;
	unsigned char *out = ret_data;
	size_t whole, pad = 0;
	uint32_t a, b, c, d, bits;

	if (text.len % 4 != 0)
		return 1;
	if (text.len > 0 && in[text.len - 1] == '=')
		pad = in[text.len - 2] == '=' ? 2 : 1;
	whole = text.len / 4 - (pad > 0);
	for (size_t i = 0; i < whole; i++, in += 4) {
		a = six_bits(in[0]);
		b = six_bits(in[1]);
		c = six_bits(in[2]);
		d = six_bits(in[3]);
		if (((a | b | c | d) >> 31) != 0)
			return 1;
		bits = a << 18 | b << 12 | c << 6 | d;
		*out++ = (unsigned char)(bits >> 16);
		*out++ = (unsigned char)(bits >> 8);
		*out++ = (unsigned char)bits;
	}
	if (pad > 0) {
		a = six_bits(in[0]);
		b = six_bits(in[1]);
		c = pad == 1 ? six_bits(in[2]) : 0;
		if (((a | b | c) >> 31) != 0)
			return 1;
		bits = a << 18 | b << 12 | c << 6;
		/* Bits that no byte takes: two texts would mean the same. */
		if ((bits & (pad == 1 ? 0xff : 0xffff)) != 0)
			return 1;
		*out++ = (unsigned char)(bits >> 16);
		if (pad == 1)
			*out++ = (unsigned char)(bits >> 8);
	}
	*ret_len = (size_t)(out - ret_data);
	assert(*ret_len <= PN_BASE64_DECODED_MAX(text.len));
	return 0;
}

void
pn_base64_encode(const void *data, size_t len, char *ret_text)
{
	const unsigned char *in = data;
	uint32_t bits;

	for (; len >= 3; len -= 3, in += 3) {
		bits = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
		*ret_text++ = base64_alphabet[bits >> 18];
		*ret_text++ = base64_alphabet[bits >> 12 & 63];
		*ret_text++ = base64_alphabet[bits >> 6 & 63];
		*ret_text++ = base64_alphabet[bits & 63];
	}
	if (len > 0) {
		bits = (uint32_t)in[0] << 16;
		if (len == 2)
			bits |= (uint32_t)in[1] << 8;
		*ret_text++ = base64_alphabet[bits >> 18];
		*ret_text++ = base64_alphabet[bits >> 12 & 63];
		*ret_text++ = len == 2 ? base64_alphabet[bits >> 6 & 63] : '=';
		*ret_text++ = '=';
	}
	*ret_text = '\0';
}

static void
hex(const void *data, size_t len, const char *digits, char *ret_text)
{
	const unsigned char *in = data;

	for (size_t i = 0; i < len; i++) {
		*ret_text++ = digits[in[i] >> 4];
		*ret_text++ = digits[in[i] & 15];
	}
	*ret_text = '\0';
}

void
pn_hex_lower(const void *data, size_t len, char *ret_text)
{
	hex(data, len, hex_lower, ret_text);
}

void
pn_hex_upper(const void *data, size_t len, char *ret_text)
{
	hex(data, len, hex_upper, ret_text);
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
pn_hex_decode(struct pn_str text, unsigned char *ret_data, size_t len)
{
	int high, low;

	if (text.len / 2 != len || text.len % 2 != 0)
		return 1;
	for (size_t i = 0; i < len; i++) {
		high = hex_value(text.data[2 * i]);
		low = hex_value(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			return 1;
		ret_data[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

void
pn_uuid_text(
    const unsigned char id[PN_UUID_BYTES], char ret_text[PN_UUID_TEXT_BYTES])
{
	static const int groups[] = { 4, 2, 2, 2, 6 };
	char hex[13];
	char *at = ret_text;
	int from = 0;

	for (unsigned i = 0; i < PN_COUNT(groups); i++) {
		if (i > 0)
			*at++ = '-';
		pn_hex_lower(id + from, (size_t)groups[i], hex);
		memcpy(at, hex, (size_t)groups[i] * 2);
		at += groups[i] * 2;
		from += groups[i];
	}
	*at = '\0';
	assert(at - ret_text == PN_UUID_TEXT_BYTES - 1);
}
