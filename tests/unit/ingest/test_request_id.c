/*
 * Request ids. If these fail, receipts are not in order of time, or two requests
 * share one.
 */
#include "paynotify/encode.h"

#include "ingest_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

/* The database refuses it as a uuid, or sorts it anywhere. */
static void
test_request_id__is_a_uuid_of_version_7(void **state)
{
	/* RFC 9562, appendix A.6: 017F22E2-79B0-7... */
	const int64_t us = INT64_C(0x017f22e279b0) * PN_MILLISECOND_US + 999;
	unsigned char id[PN_REQUEST_ID_BYTES];
	char text[PN_UUID_TEXT_BYTES];

	(void)state;
	pn_request_id_make(us, id);
	pn_uuid_text(id, text);
	assert_int_equal(strlen(text), 36);
	assert_memory_equal(text, "017f22e2-79b0-7", 15);
	assert_int_equal(text[18], '-');
	assert_non_null(strchr("89ab", text[19]));
	assert_int_equal(text[23], '-');
}

/* Receipts are scattered over their index. */
static void
test_request_id__later_ones_are_greater(void **state)
{
	unsigned char before[PN_REQUEST_ID_BYTES] = { 0 };
	unsigned char id[PN_REQUEST_ID_BYTES];

	(void)state;
	for (int64_t ms = 1; ms < INT64_C(1) << 40; ms = ms * 3 + 1) {
		pn_request_id_make(ms * PN_MILLISECOND_US, id);
		assert_true(memcmp(before, id, sizeof(id)) < 0);
		memcpy(before, id, sizeof(id));
	}
}

/* Two requests of one millisecond are one. */
static void
test_request_id__same_moment_differs(void **state)
{
	unsigned char ids[64][PN_REQUEST_ID_BYTES];

	(void)state;
	for (int i = 0; i < 64; i++) {
		pn_request_id_make(PN_SECOND_US, ids[i]);
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(
			    ids[i], ids[j], PN_REQUEST_ID_BYTES);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_id__is_a_uuid_of_version_7),
		cmocka_unit_test(test_request_id__later_ones_are_greater),
		cmocka_unit_test(test_request_id__same_moment_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
