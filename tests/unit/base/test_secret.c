/*
 * Secrets. If these fail, a key is shared, lost or kept when it should not be.
 */
#include "paynotify/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* A secret that borrows: cleansing the caller's buffer would destroy it. */
static void
test_secret__is_a_copy_and_can_be_replaced(void **state)
{
	char key[] = "0123\0"
		     "5";
	PN_CLEANUP(pn_secret_done) struct pn_secret secret = { NULL, 0 };

	(void)state;
	assert_int_equal(pn_secret_set(&secret, key, 6), 0);
	key[0] = 'x';
	assert_int_equal(secret.len, 6);
	assert_memory_equal(secret.data,
	    "0123\0"
	    "5",
	    6);
	/* From itself: the old bytes must live until they are copied. */
	assert_int_equal(pn_secret_set(&secret, secret.data + 1, 3), 0);
	assert_int_equal(secret.len, 3);
	assert_memory_equal(secret.data, "123", 3);
	assert_int_equal(pn_secret_set(&secret, NULL, 0), 0);
	assert_non_null(secret.data);
	pn_secret_done(&secret);
	assert_null(secret.data);
	assert_int_equal(secret.len, 0);
	pn_secret_done(&secret);
	pn_secret_done(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secret__is_a_copy_and_can_be_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
