/*
 * Headers of a request. If this fails, a repeated or lower-case header decides
 * over a signature unseen.
 */
#include "paynotify/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* The second of two headers hidden, or the first one's value not given. */
static void
test_request__counts_headers_of_any_case(void **state)
{
	const struct pn_header headers[] = {
		{ PN_STR("Host"), PN_STR("a") },
		{ PN_STR("wechatpay-NONCE"), PN_STR("1") },
		{ PN_STR("Wechatpay-Nonce"), PN_STR("2") },
		{ PN_STR("X-Empty"), { "", 0 } },
	};
	struct pn_request request = { .headers = headers, .header_count = 4 };
	struct pn_str value = PN_STR("old");

	(void)state;
	assert_int_equal(
	    pn_request_header(&request, "Wechatpay-Nonce", &value), 2);
	assert_true(pn_str_is(value, "1"));
	assert_int_equal(pn_request_header(&request, "x-empty", &value), 1);
	assert_non_null(value.data);
	assert_int_equal(pn_request_header(&request, "Hos", &value), 0);
	assert_null(value.data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request__counts_headers_of_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
