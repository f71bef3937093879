/*
 * The growing buffer. If these fail, a reply is cut or has a hole in it.
 */
#include "paynotify/buf.h"

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

/* A text that lost bytes while the buffer grew. */
static void
test_buf__keeps_all_bytes_while_growing(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf buf = pn_buf_init(1 << 20);

	(void)state;
	for (int i = 0; i < 5000; i++)
		pn_buf_printf(&buf, "%04d", i);
	assert_false(pn_buf_failed(&buf));
	assert_int_equal(buf.len, 20000);
	assert_memory_equal(buf.data, "000000010002", 12);
	assert_memory_equal(buf.data + 19996, "4999", 5);
}

/* A reply with a hole: what comes after a failed append must fail too. */
static void
test_buf__failure_sticks(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf buf = pn_buf_init(10);

	(void)state;
	pn_buf_add_text(&buf, "12345");
	pn_buf_add_text(&buf, "678901");
	assert_true(pn_buf_failed(&buf));
	pn_buf_add_char(&buf, 'x');
	assert_int_equal(buf.len, 5);
	assert_string_equal(buf.data, "12345");
	assert_null(pn_buf_extend(&buf, SIZE_MAX));
	pn_buf_reset(&buf);
	assert_false(pn_buf_failed(&buf));
	pn_buf_add_text(&buf, "1234567890");
	assert_false(pn_buf_failed(&buf));
	assert_string_equal(buf.data, "1234567890");
}

/* Wrap-around of the length. */
static void
test_buf__refuses_lengths_that_wrap(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf buf = pn_buf_init(SIZE_MAX);

	(void)state;
	pn_buf_add_char(&buf, 'x');
	assert_null(pn_buf_extend(&buf, SIZE_MAX - 1));
	assert_true(pn_buf_failed(&buf));
}

/* Bytes that stop at a NUL; an empty slice that crashes memcpy. */
static void
test_buf__takes_nul_and_empty_slices(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf buf = pn_buf_init(100);

	(void)state;
	pn_buf_add_str(&buf, (struct pn_str){ NULL, 0 });
	assert_non_null(buf.data);
	assert_int_equal(pn_buf_str(&buf).len, 0);
	pn_buf_add_str(&buf, PN_STR("a\0b"));
	assert_int_equal(pn_buf_str(&buf).len, 3);
	assert_memory_equal(buf.data, "a\0b", 4);
	pn_buf_done(&buf);
	pn_buf_add_char(&buf, 'z');
	assert_string_equal(buf.data, "z");
	pn_buf_done(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buf__keeps_all_bytes_while_growing),
		cmocka_unit_test(test_buf__failure_sticks),
		cmocka_unit_test(test_buf__refuses_lengths_that_wrap),
		cmocka_unit_test(test_buf__takes_nul_and_empty_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
