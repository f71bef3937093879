/*
 * The guard's keys as they are told: in words for people, in JSON for programs,
 * and what cannot be one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl_keys.h"

#include "paynotify/moment.h"
#include "paynotify/render.h"

static struct pn_guard_key_row
row_of(const char *state, const char *lease)
{
	return (struct pn_guard_key_row){
		.tenant = PN_STR("shop1"),
		.route = PN_STR("POST /v1/charges"),
		.key = PN_STR("k"),
		.state = pn_str_from(state),
		.lease = pn_str_from(lease),
		.created_at_us = PN_MOMENT_NONE,
		.locked_at_us = PN_MOMENT_NONE,
		.lease_expires_at_us = PN_MOMENT_NONE,
		.completed_at_us = PN_MOMENT_NONE,
		.expires_at_us = PN_MOMENT_NONE,
	};
}

/* If it failed: an operator would release what somebody is at work on. */
static void
test_ctl_keys__each_state_has_words(void **state)
{
	static const char *const words[][3] = {
		{ "PROCESSING", "held", "held" },
		{ "PROCESSING", "ended", "lease ended" },
		{ "PROCESSING", "free", "free" },
		{ "COMPLETED", "", "COMPLETED" },
		{ "FAILED", "", "FAILED" },
		{ "", "", "archived" },
	};

	(void)state;
	for (size_t i = 0; i < PN_COUNT(words); i++) {
		struct pn_guard_key_row row = row_of(words[i][0], words[i][1]);

		assert_true(pn_str_is(ctl_keys_state_text(&row), words[i][2]));
	}
}

static void
assert_json(const struct pn_guard_key_row *row, const char *members)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(4096);

	pn_render_guard_key(&out, row);
	if (strstr(out.data, members) == NULL)
		fail_msg("%s lacks %s", out.data, members);
}

/* If it failed: a program would take what is not known for 0. */
static void
test_ctl_keys__json_has_null_for_what_there_is_not(void **state)
{
	struct pn_guard_key_row row = row_of("", "");

	(void)state;
	assert_json(&row,
	    "\"key\":\"k\",\"state\":null,\"lease\":null,\"attempts\":null,"
	    "\"crashes\":null,\"created_at\":null,\"locked_at\":null,"
	    "\"lease_expires_at\":null,\"completed_at\":null,"
	    "\"expires_at\":null,\"response_status\":null,\"reason\":null");
	row = row_of("FAILED", "");
	row.attempts = 3;
	row.status = 201;
	row.expires_at_us = INT64_C(1772362806000000);
	assert_json(&row, "\"attempts\":3,\"crashes\":0,");
	assert_json(&row,
	    "\"expires_at\":\"2026-03-01T11:00:06Z\",\"response_status\""
	    ":201,");
}

static int
check(const char *tenant, const char *route, char *key)
{
	char *operands[] = { key, NULL };
	struct ctl ctl = {
		.command = &ctl_commands[0],
		.args = { .tenant = tenant,
		    .route = route,
		    .operands = operands,
		    .operand_count = key != NULL },
	};

	return ctl_keys_check(&ctl);
}

/* If it failed: the database would refuse the bytes with a text of its own, or an
 * operator believe that a webhook's key can be released. */
static void
test_ctl_keys__what_can_be_no_key_is_usage(void **state)
{
	char key[] = "k", bad[] = "a\xc3", chinese[] = "订单";

	(void)state;
	assert_int_equal(check(NULL, NULL, NULL), CTL_DONE);
	assert_int_equal(check("shop1", "POST /v1/charges", key), CTL_DONE);
	assert_int_equal(check("shop1", "GET /notify/x", chinese), CTL_DONE);
	assert_int_equal(check("shop1", "notify", key), CTL_DONE);
	assert_int_equal(check("shop1", "notify/alipay", key), CTL_USAGE);
	assert_int_equal(check(bad, NULL, key), CTL_USAGE);
	assert_int_equal(check(NULL, bad, key), CTL_USAGE);
	assert_int_equal(check(NULL, NULL, bad), CTL_USAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_keys__each_state_has_words),
		cmocka_unit_test(
		    test_ctl_keys__json_has_null_for_what_there_is_not),
		cmocka_unit_test(test_ctl_keys__what_can_be_no_key_is_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
