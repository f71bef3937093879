/*
 * The table of DESIGN.md section 6. If this fails, a provider stops retrying
 * what was not recorded, or retries what was.
 */
#include "http_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A status of the table was changed, or an outcome has none. */
static void
test_reply__every_outcome_has_its_status(void **state)
{
	static const unsigned statuses[] = {
		[PN_OUTCOME_SUCCESS] = 200,
		[PN_OUTCOME_MALFORMED] = 400,
		[PN_OUTCOME_UNAUTHENTIC] = 401,
		[PN_OUTCOME_WRONG_ACCOUNT] = 403,
		[PN_OUTCOME_CONFLICT] = 422,
		[PN_OUTCOME_RATE_LIMITED] = 429,
		[PN_OUTCOME_UNDECRYPTABLE] = 500,
		[PN_OUTCOME_UNAVAILABLE] = 503,
	};

	(void)state;
	assert_int_equal(PN_COUNT(statuses), PN_OUTCOME_COUNT);
	for (unsigned i = 0; i < PN_COUNT(statuses); i++)
		assert_int_equal(
		    pn_server_status((enum pn_outcome)i), statuses[i]);
}

/* Any status below 300 but for a success tells a provider "taken". */
static void
test_reply__only_success_is_2xx(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PN_OUTCOME_COUNT; i++)
		assert_int_equal(pn_server_status((enum pn_outcome)i) < 300,
		    i == PN_OUTCOME_SUCCESS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply__every_outcome_has_its_status),
		cmocka_unit_test(test_reply__only_success_is_2xx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
