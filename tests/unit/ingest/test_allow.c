/*
 * Who may notify an account, and how often all together may be wrong. If these
 * fail, a list keeps nobody out or the provider too, or one account's flood is
 * another's.
 */
#include "fakes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/metrics.h"

/* One account's flood, from many addresses, fills log and disk; it refuses
 * another account, or what is genuine. */
static void
test_allow__each_account_has_an_allowance_of_its_own(void **state)
{
	struct world *w = *state;
	int limited = 0;

	w->accounts[1].rate_limit_per_second = 2; /* shop1 */
	for (int i = 0; i < 20; i++) {
		tell(PN_VERDICT_BAD_SIGNATURE, false);
		pn_ingest_submit(w->ingest, &w->job);
		limited += w->job.outcome == PN_OUTCOME_RATE_LIMITED;
		expect(w, w->job.outcome);
	}
	/* More where this is so slow that the bucket fills meanwhile. */
	assert_in_range(limited, 1, 18);
	assert_string_equal(refusal_verdict, "rate_limited");
	tell(PN_VERDICT_ACCEPTED, true);
	pn_ingest_submit(w->ingest, &w->job);
	store_says(PN_STORE_RECORDED);
	expect(w, PN_OUTCOME_SUCCESS);
	pn_route_unref(w->job.route);
	w->job.route = pn_ingest_route(w->ingest, PN_STR("/notify/fake/shop2"));
	tell(PN_VERDICT_BAD_SIGNATURE, false);
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAUTHENTIC);
}

/* What one peer is refused for is charged to everybody. */
static void
test_allow__what_a_peer_is_refused_for_is_not_the_accounts(void **state)
{
	struct world *w = *state;

	w->accounts[1].rate_limit_per_second = 1;
	w->limited = true;
	for (int i = 0; i < 20; i++) {
		tell(PN_VERDICT_BAD_SIGNATURE, false);
		pn_ingest_submit(w->ingest, &w->job);
		expect(w, PN_OUTCOME_RATE_LIMITED);
	}
	w->limited = false;
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAUTHENTIC);
}

static struct pn_conf_cidr blocks[] = {
	{ .address = { [10] = 0xff, [11] = 0xff, 192, 0, 2 }, .bits = 120 },
	{ .address = { 0x20, 0x01, 0x0d, 0xb8 }, .bits = 32 },
};

/* An account takes notifications from a stranger, or from nobody. */
static void
test_allow__an_account_may_name_who_may_come(void **state)
{
	static const struct {
		const char *peer;
		bool admitted;
	} rows[] = {
		{ "192.0.2.1", true }, { "::ffff:192.0.2.1", true },
		{ "2001:db8:1::7", true }, { "192.0.3.1", false },
		{ "2001:db9::1", false }, { "::1", false },
		{ "", false }, /* not known */
	};
	struct world *w = *state;

	for (int listed = 0; listed < 2; listed++) {
		if (listed)
			w->accounts[1].allow =
			    (struct pn_conf_cidrs){ blocks, 2 };
		for (size_t i = 0; i < PN_COUNT(rows); i++)
			assert_int_equal(pn_ingest_admits(w->job.route,
					     pn_str_from(rows[i].peer)),
			    !listed || rows[i].admitted);
	}
}

/* A stranger leaves no trace, or fills the receipts with what it sends, or takes
 * the allowance of who may come. */
static void
test_allow__who_may_not_come_leaves_a_brief_receipt(void **state)
{
	struct world *w = *state;
	int64_t before = pn_series_get(
	    w->job.route->series.requests, PN_REQUEST_NOT_ALLOWED);

	w->accounts[1].rate_limit_per_second = 1;
	w->job.body_bytes = 4711;
	for (int i = 1; i <= 3; i++) {
		pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_ADDRESS);
		assert_int_equal(w->job.outcome, PN_OUTCOME_NOT_ALLOWED);
		assert_int_equal(refusals, i);
		assert_int_equal(
		    refusal_status, fake_status_of(PN_OUTCOME_NOT_ALLOWED));
		assert_string_equal(refusal_verdict, "not_allowed");
		assert_int_equal(refusal_body_len + refusal_headers_len, 0);
		assert_int_equal(refusal_body_bytes, 4711);
	}
	assert_int_equal(pn_series_get(w->job.route->series.requests,
			     PN_REQUEST_NOT_ALLOWED),
	    before + 3);
	w->request.peer = PN_STR("");
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_ADDRESS);
	assert_non_null(strstr(refusal_reason, "unix socket"));
	w->request.body =
	    PN_STR("<xml>"); /* a dialect where the body decides */
	pn_ingest_refuse(w->ingest, &w->job, PN_REFUSE_ADDRESS);
	assert_int_equal(refusal_status, 200);
	tell(PN_VERDICT_BAD_SIGNATURE, false);
	pn_ingest_submit(w->ingest, &w->job);
	expect(w, PN_OUTCOME_UNAUTHENTIC);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)
	const struct CMUnitTest tests[] = {
		TEST(test_allow__each_account_has_an_allowance_of_its_own),
		TEST(
		    test_allow__what_a_peer_is_refused_for_is_not_the_accounts),
		TEST(test_allow__an_account_may_name_who_may_come),
		TEST(test_allow__who_may_not_come_leaves_a_brief_receipt),
	};

	pn_log_configure(PN_LOG_ERR, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
