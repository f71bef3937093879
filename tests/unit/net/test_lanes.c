/*
 * Who may go next, without sockets or a clock. If these fail, one host takes
 * the turns of the others, or a request is lost among those that wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client_internal.h"

enum { COUNT = 12 };

struct fixture {
	struct pn_client_lanes lanes;
	struct pn_client_request requests[COUNT];
	struct pn_client_lane *taken[COUNT];
};

/* A letter is a host; time is the place in the list. */
static void
fill(struct fixture *f, const char *hosts, unsigned all, unsigned per_host)
{
	static const char *const urls[] = { "http://a/1", "http://b:80/?x",
		"https://c" };

	*f = (struct fixture){ .lanes = { .running = 0 } };
	pn_client_lanes_init(&f->lanes, all, per_host);
	for (size_t i = 0; hosts[i] != '\0'; i++) {
		f->requests[i].url = urls[hosts[i] - 'a'];
		f->requests[i].timeout_us = (int64_t)i + 1;
		assert_int_equal(
		    pn_client_lanes_add(&f->lanes, &f->requests[i]), 0);
	}
}

/* The numbers of those that may run now, as letters: A is the first. */
static void
expect_next(struct fixture *f, const char *expected)
{
	struct pn_client_request *request;
	struct pn_client_lane *lane;
	char got[COUNT + 1];
	size_t len = 0, i;

	while ((request = pn_client_lanes_next(&f->lanes, &lane)) != NULL) {
		i = (size_t)(request - f->requests);
		assert_null(f->taken[i]);
		f->taken[i] = lane;
		got[len++] = (char)('A' + i);
	}
	got[len] = '\0';
	assert_string_equal(got, expected);
}

static void
leave(struct fixture *f, const char *which)
{
	for (; *which != '\0'; which++)
		pn_client_lanes_leave(&f->lanes, f->taken[*which - 'A']);
}

static void
expect_late(struct fixture *f, int64_t now_us, const char *expected)
{
	struct pn_client_request *late =
	    pn_client_lanes_late(&f->lanes, now_us);
	bool seen[COUNT] = { false };

	for (; late != NULL; late = late->next)
		seen[late - f->requests] = true;
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(seen[i], strchr(expected, 'A' + i) != NULL);
}

/* A host with many waiting has all turns. */
static void
test_lanes__hosts_take_turns(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f, "aaaabbc", 100, 100);
	expect_next(&f, "AEGBFCD");
	leave(&f, "AEGBFCD");
	pn_client_lanes_done(&f.lanes);
}

/* More run in a lane, or in all, than may; or a place that is free again is
 * given to no one. */
static void
test_lanes__limits_hold_and_places_are_given_on(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f, "aaaabbc", 4, 2);
	expect_next(&f, "AEGB");
	leave(&f, "G");
	expect_next(&f, "F"); /* a has two, and may not have a third */
	leave(&f, "E");
	expect_next(&f, "");
	leave(&f, "A");
	expect_next(&f, "C");
	leave(&f, "BCF");
	expect_next(&f, "D");
	leave(&f, "D");
	pn_client_lanes_done(&f.lanes);
}

/* Late ones stay, others go, or a lane emptied that way is used after it was
 * freed. */
static void
test_lanes__late_ones_are_taken_out(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f, "aabbcc", 1, 1);
	expect_next(&f, "A");
	assert_int_equal(f.lanes.until_us, 1); /* A's, so a bit early */
	expect_late(&f, 0, "");
	expect_late(&f, 1, "");
	assert_int_equal(f.lanes.until_us, 2);
	expect_late(&f, 4, "BCD");
	assert_int_equal(f.lanes.waiting, 2);
	assert_int_equal(f.lanes.until_us, 5);
	leave(&f, "A");
	expect_next(&f, "E");
	leave(&f, "E");
	expect_late(&f, INT64_MAX, "F");
	assert_int_equal(f.lanes.until_us, INT64_MAX);
	pn_client_lanes_done(&f.lanes);
}

/* A lane for each URL instead of each host, so that the limit of a host does
 * not hold; or hosts that differ share one. */
static void
test_lanes__lane_is_scheme_host_and_port(void **state)
{
	static const char *const urls[] = { "http://a/1", "http://a?2",
		"HTTP://A", "http://u:p@a/3", "https://a/", "http://a:80/",
		"http://b/" };
	static const char expected[] = "AEFG"; /* one each */
	struct fixture f = { .lanes = { .running = 0 } };

	(void)state;
	pn_client_lanes_init(&f.lanes, 100, 1);
	for (size_t i = 0; i < PN_COUNT(urls); i++) {
		f.requests[i].url = urls[i];
		f.requests[i].timeout_us = 1;
		assert_int_equal(
		    pn_client_lanes_add(&f.lanes, &f.requests[i]), 0);
	}
	expect_next(&f, expected);
	expect_late(&f, 1, "BCD");
	leave(&f, expected);
	pn_client_lanes_done(&f.lanes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes__hosts_take_turns),
		cmocka_unit_test(
		    test_lanes__limits_hold_and_places_are_given_on),
		cmocka_unit_test(test_lanes__late_ones_are_taken_out),
		cmocka_unit_test(test_lanes__lane_is_scheme_host_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
