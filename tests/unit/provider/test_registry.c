/*
 * The registry. Its names are what configuration sections, request paths,
 * receipts and `verify --json` are made of, and every caller uses the functions
 * of a row without asking whether they are there: so both are checked for each
 * row, also for one that is added later.
 */
#include "paynotify/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Fails if a provider could be listed but not found, or lacked a function that
 * every caller calls without asking. */
static void
test_registry__every_provider_is_whole(void **state)
{
	const struct pn_provider *provider;
	size_t count = 0;

	(void)state;
	for (; (provider = pn_provider_at(count)) != NULL; count++) {
		assert_ptr_equal(
		    pn_provider_find(pn_str_from(provider->name)), provider);
		assert_non_null(provider->evidence_headers);
		assert_non_null(provider->account_open);
		assert_non_null(provider->account_close);
		assert_non_null(provider->account_keys);
		assert_non_null(provider->verify);
		assert_non_null(provider->reverify);
		assert_non_null(provider->dialect_of);
		assert_non_null(provider->reply);
		assert_non_null(provider->sample);
		assert_non_null(provider->sample_events);
		assert_non_null(provider->sample_oddities);
		provider->account_close(NULL);
	}
	assert_int_equal(count, 2);
}

/* Fails if a name that only resembles a provider's were routed to it. */
static void
test_registry__names_are_exact(void **state)
{
	(void)state;
	assert_null(pn_provider_find(PN_STR("Alipay")));
	assert_null(pn_provider_find(PN_STR("alipa")));
	assert_null(pn_provider_find(PN_STR("alipay ")));
	assert_null(pn_provider_find(PN_STR("")));
}

/* Fails if a verdict had another name than `verify --json` promises. */
static void
test_registry__verdicts_have_the_promised_names(void **state)
{
	static const char *const names[] = { "accepted", "malformed",
		"bad_signature", "unknown_key", "stale", "undecryptable",
		"wrong_account", "unsupported" };

	(void)state;
	assert_int_equal(PN_COUNT(names), PN_VERDICT_COUNT);
	for (int i = 0; i < PN_VERDICT_COUNT; i++)
		assert_string_equal(
		    pn_verdict_name((enum pn_verdict)i), names[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registry__every_provider_is_whole),
		cmocka_unit_test(test_registry__names_are_exact),
		cmocka_unit_test(
		    test_registry__verdicts_have_the_promised_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
