/*
 * Where the body ends. If these fail, a proxy in front and this server read two
 * different requests from the same bytes (request smuggling).
 */
#include "http_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static enum pn_framing
framing_of(const struct pn_header *headers, size_t count, uint64_t *length)
{
	struct pn_request request = { .headers = headers,
		.header_count = count };

	return pn_head_framing(&request, length);
}

#define H(name, value)                           \
	{                                        \
		PN_STR(name),                    \
		{                                \
			value, sizeof(value) - 1 \
		}                                \
	}
#define FRAMING(length, ...)                              \
	framing_of((struct pn_header[]){ __VA_ARGS__ },   \
	    sizeof((struct pn_header[]){ __VA_ARGS__ }) / \
		sizeof(struct pn_header),                 \
	    length)

/* A request without a body waits for one. */
static void
test_head__length_is_read(void **state)
{
	uint64_t length = 9;

	(void)state;
	assert_int_equal(FRAMING(&length, H("Host", "a")), PN_FRAMING_LENGTH);
	assert_int_equal(length, 0);
	assert_int_equal(
	    FRAMING(&length, H("content-LENGTH", "42")), PN_FRAMING_LENGTH);
	assert_int_equal(length, 42);
	assert_int_equal(FRAMING(&length, H("Transfer-Encoding", "Chunked")),
	    PN_FRAMING_CHUNKED);
}

/* Two lengths, equal or not; a length and chunks. */
static void
test_head__two_lengths_are_ambiguous(void **state)
{
	uint64_t length;

	(void)state;
	assert_int_equal(FRAMING(&length, H("Content-Length", "5"),
			     H("Content-Length", "5")),
	    PN_FRAMING_AMBIGUOUS);
	assert_int_equal(FRAMING(&length, H("Content-Length", "5"), H("A", "b"),
			     H("CONTENT-length", "6")),
	    PN_FRAMING_AMBIGUOUS);
	assert_int_equal(FRAMING(&length, H("Content-Length", "5"),
			     H("Transfer-Encoding", "chunked")),
	    PN_FRAMING_AMBIGUOUS);
	assert_int_equal(FRAMING(&length, H("Transfer-Encoding", "chunked"),
			     H("Transfer-Encoding", "chunked")),
	    PN_FRAMING_AMBIGUOUS);
}

/* A number that another parser reads otherwise; a coding that is not undone. */
static void
test_head__odd_lengths_are_ambiguous(void **state)
{
	static const char *const lengths[] = { "", "+5", "-1", "5, 5", "0x5",
		"5 5", "18446744073709551617", "9223372036854775808" };
	static const char *const codings[] = { "", "identity", "gzip, chunked",
		"chunked, chunked", "xchunked", "chunked;q=1" };
	uint64_t length;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(lengths); i++)
		assert_int_equal(
		    FRAMING(&length,
			{ PN_STR("Content-Length"), pn_str_from(lengths[i]) }),
		    PN_FRAMING_AMBIGUOUS);
	for (size_t i = 0; i < PN_COUNT(codings); i++)
		assert_int_equal(
		    FRAMING(&length, { PN_STR("Transfer-Encoding"),
					 pn_str_from(codings[i]) }),
		    PN_FRAMING_AMBIGUOUS);
}

/* libmicrohttpd takes them for headers of another name, a proxy for a length. */
static void
test_head__names_that_are_none_are_ambiguous(void **state)
{
	static const char *const names[] = { "Content-Length ",
		"Content-Length\t", "\vContent-Length", "Content-Length;",
		"Content-Length: 5", "Transfer-Encoding ", "A ", "" };
	uint64_t length;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(names); i++)
		assert_int_equal(FRAMING(&length, H("Content-Length", "5"),
				     { pn_str_from(names[i]), PN_STR("5") }),
		    PN_FRAMING_AMBIGUOUS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head__length_is_read),
		cmocka_unit_test(test_head__two_lengths_are_ambiguous),
		cmocka_unit_test(test_head__odd_lengths_are_ambiguous),
		cmocka_unit_test(test_head__names_that_are_none_are_ambiguous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
