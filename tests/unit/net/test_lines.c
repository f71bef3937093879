/*
 * Header lines and origins, without sockets. If these fail, a header is lost,
 * another one smuggled in, or a password stands in a log.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client_internal.h"

/* The lines as curl gets them, with "|" behind each. */
static int
make(struct pn_str headers, char *ret_text, size_t size)
{
	struct pn_client_lines lines = pn_client_lines_init();
	struct pn_error error = { .text = "" };
	int r = pn_client_lines_make(&lines, headers, &error);

	ret_text[0] = '\0';
	assert_int_equal(r < 0, error.text[0] != '\0');
	for (const struct curl_slist *at = lines.nodes; r == 0 && at != NULL;
	     at = at->next) {
		assert_true(strlen(ret_text) + strlen(at->data) + 2 < size);
		memcpy(ret_text + strlen(ret_text), at->data,
		    strlen(at->data) + 1);
		memcpy(ret_text + strlen(ret_text), "|", 2);
	}
	pn_buf_done(&lines.text);
	return r;
}

/* curl's own headers are sent, or the caller's are not. */
static void
test_lines__what_curl_gets(void **state)
{
	static const struct {
		struct pn_str headers;
		const char *lines;
	} cases[] = {
		{ { NULL, 0 }, "Expect:|Accept:|Content-Type:|" },
		{ PN_STR(""), "Expect:|Accept:|Content-Type:|" },
		{ PN_STR("A: 1"), "A: 1|Expect:|Accept:|Content-Type:|" },
		{ PN_STR("A:\n"), "A;|Expect:|Accept:|Content-Type:|" },
		{ PN_STR("A:   \tx \n"),
		    "A: \tx |Expect:|Accept:|Content-Type:|" },
		{ PN_STR("EXPECT: 1\nACCEPT: b\nCONTENT-type: c\n"
			 "content-LENGTH: 1\n"),
		    "ACCEPT: b|CONTENT-type: c|Expect:|" },
		{ PN_STR("A: b: c\n"),
		    "A: b: c|Expect:|Accept:|Content-Type:|" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		assert_int_equal(make(cases[i].headers, text, sizeof(text)), 0);
		assert_string_equal(text, cases[i].lines);
	}
}

/* More lines or bytes than there is room for are written anyway; or just as
 * many as may be are refused. */
static void
test_lines__limits(void **state)
{
	char headers[PN_HEADER_BYTES_MAX + 2], text[1 << 16];
	size_t len = 0;

	(void)state;
	for (int i = 0; i < PN_HEADER_COUNT_MAX; i++, len += 3)
		memcpy(headers + len, "A:\n", 3);
	assert_int_equal(
	    make((struct pn_str){ headers, len }, text, sizeof(text)), 0);
	memcpy(headers + len, "A:\n", 3);
	assert_int_equal(
	    make((struct pn_str){ headers, len + 3 }, text, sizeof(text)),
	    -EINVAL);
	memset(headers, 'a', sizeof(headers));
	headers[1] = ':';
	assert_int_equal(make((struct pn_str){ headers, PN_HEADER_BYTES_MAX },
			     text, sizeof(text)),
	    0);
	assert_int_equal(
	    make((struct pn_str){ headers, PN_HEADER_BYTES_MAX + 1 }, text,
		sizeof(text)),
	    -EINVAL);
}

/* A password or a token of a URL gets into an error; or the error names no
 * one. */
static void
test_lines__origin_of_a_url(void **state)
{
	static const struct {
		const char *url, *origin;
	} cases[] = {
		{ "http://a", "http://a" },
		{ "https://a.example:8443/p?q#f", "https://a.example:8443" },
		{ "http://u:Secret@a:1?x=@Secret", "http://a:1" },
		{ "http://u@x@a/", "http://a" },
		{ "http://[::1]:80/", "http://[::1]:80" },
		{ "http:///a", NULL },
		{ "http://?a", NULL },
		{ "http://u:p@/", NULL },
		{ "http:/a", NULL },
		{ "ftp://a/", NULL },
		{ "a", NULL },
		{ "", NULL },
		{ "http://a\nb/", NULL },
		{ "http://\xe4/", NULL },
	};
	char text[PN_CLIENT_ORIGIN_BYTES_MAX], url[400] = "http://";

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct pn_str origin = pn_client_origin(cases[i].url, text);

		assert_int_equal(origin.data == NULL, cases[i].origin == NULL);
		if (origin.data != NULL) {
			assert_string_equal(text, cases[i].origin);
			assert_int_equal(origin.len, strlen(text));
		}
	}
	memset(url + 7, 'a', PN_CLIENT_ORIGIN_BYTES_MAX - 8);
	assert_int_equal(
	    pn_client_origin(url, text).len, PN_CLIENT_ORIGIN_BYTES_MAX - 1);
	url[PN_CLIENT_ORIGIN_BYTES_MAX - 1] = 'a';
	assert_null(pn_client_origin(url, text).data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines__what_curl_gets),
		cmocka_unit_test(test_lines__limits),
		cmocka_unit_test(test_lines__origin_of_a_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
