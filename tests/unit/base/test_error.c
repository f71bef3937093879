/*
 * Texts of faults. If these fail, an operator does not learn what is wrong.
 */
#include "paynotify/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The place of the fault is lost, or the code changes on the way up. */
static void
test_error__prefix_goes_before_the_text(void **state)
{
	struct pn_error error = { "" };

	(void)state;
	assert_int_equal(
	    pn_error_set(&error, -EINVAL, "key \"%s\"", "x"), -EINVAL);
	assert_int_equal(
	    pn_error_prefix(&error, -EINVAL, "a.conf:%d: ", 3), -EINVAL);
	assert_string_equal(error.text, "a.conf:3: key \"x\"");
	assert_int_equal(pn_error_set(&error, 1, "again: %s", error.text), 1);
	assert_string_equal(error.text, "again: a.conf:3: key \"x\"");
	assert_int_equal(pn_error_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(pn_error_prefix(NULL, -EIO, "x"), -EIO);
}

/* A long text that runs over the buffer. */
static void
test_error__long_text_is_cut(void **state)
{
	struct pn_error error;
	char text[2 * PN_ERROR_TEXT_BYTES_MAX];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)pn_error_set(&error, 1, "%s", text);
	assert_int_equal(strlen(error.text), PN_ERROR_TEXT_BYTES_MAX - 1);
	(void)pn_error_prefix(&error, 1, "ab: ");
	assert_int_equal(strlen(error.text), PN_ERROR_TEXT_BYTES_MAX - 1);
	assert_memory_equal(error.text, "ab: x", 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error__prefix_goes_before_the_text),
		cmocka_unit_test(test_error__long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
