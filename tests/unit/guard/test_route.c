/*
 * Routes. If these fail, a request is done under another route's keys, at
 * another address, or an unknown outcome is taken for a known one.
 */
#include "guard_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char tenant_name[] = "shop1";
static char *one_tenant[] = { tenant_name };
static char file_name[] = "g.conf";
static struct pn_conf_place one_place[] = { { file_name, 9 } };

/* As conf makes them, of defaults. */
static struct pn_conf_guard_route
route_conf(char *name, char *path, char *upstream, int line)
{
	return (struct pn_conf_guard_route){
		.name = name,
		.place = { file_name, line },
		.path = path,
		.path_place = { file_name, line + 1 },
		.upstream = upstream,
		.upstream_place = { file_name, line + 2 },
		.tenant = { one_tenant, one_place, 1 },
		.lease_us = 30000000,
		.ttl_us = 86400000000,
		.attempts_max = 10,
	};
}

static char up[] = "http://127.0.0.1:9000/v1/charges";

/* Opens one route; text of what was refused in *ret_error. */
static int
open_one(struct pn_conf_guard_route conf, struct pn_error *ret_error)
{
	const struct pn_conf all = { .guard_routes = &conf,
		.guard_route_count = 1 };
	struct pn_guard_routes routes;
	int r = pn_guard_routes_open(&all, &routes, ret_error);

	if (r == 0)
		pn_guard_routes_close(&routes);
	assert_int_equal(pn_guard_check(&all, ret_error), r);
	return r;
}

static void
assert_refused(struct pn_conf_guard_route conf, const char *because)
{
	struct pn_error error = { "" };

	assert_int_equal(open_one(conf, &error), -EINVAL);
	if (strstr(error.text, because) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, because);
}

/* -- finding ---------------------------------------------------------------- */

static char paths[][32] = { "POST /v1/charges", "DELETE /v1/charges",
	"POST /v1/*", "PUT /v1/orders/*", "POST /v1/orders/*", "PATCH /",
	"POST /v1/orders/" };
enum { PATHS = PN_COUNT(paths) };

struct found {
	struct pn_conf_guard_route confs[PATHS];
	struct pn_conf conf;
	struct pn_guard_routes routes;
	struct pn_arena *arena;
};

static struct found found;

static int
found_setup(void **state)
{
	for (size_t i = 0; i < PATHS; i++)
		found.confs[i] = route_conf(paths[i], paths[i], up, (int)i);
	found.conf = (struct pn_conf){ .guard_routes = found.confs,
		.guard_route_count = PATHS };
	found.arena = pn_arena_new(1 << 16);
	*state = &found;
	return found.arena == NULL ||
	       pn_guard_routes_open(&found.conf, &found.routes, NULL);
}

static int
found_teardown(void **state)
{
	struct found *given = *state;

	pn_guard_routes_close(&given->routes);
	pn_arena_free(given->arena);
	return 0;
}

static struct pn_guard_match
find(const struct found *given, struct pn_str method, struct pn_str path)
{
	struct pn_str form;

	assert_int_equal(pn_guard_path(path, given->arena, &form), 0);
	return pn_guard_route_find(&given->routes, method, form);
}

/* The same work is done under two scopes, or two paths are taken for one. */
static void
test_route__one_form_of_a_path(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "/v1/charges", "/v1/charges" },
		{ "/%41%7a%30%2d%2E%5f%7E", "/Az0-._~" },
		{ "/%2f%3a%25%c3%A9", "/%2F%3A%25%C3%A9" },
		{ "/%2563", "/%2563" },
		{ "/\xc3\xa9 #", "/%C3%A9%20%23" },
		{ "/a|b;c=(d)*", "/a|b;c=(d)*" },
		{ "/%", NULL },
		{ "/%4", NULL },
		{ "/%%36%33", NULL },
		{ "/%g0", NULL },
		{ "//", NULL },
		{ "/v1//charges", NULL },
		{ "/v1/charges//", NULL },
		{ "/v1/%2F/%2f%2Fcharges", "/v1/%2F/%2F%2Fcharges" },
	};
	const struct found *given = *state;
	struct pn_arena *none = pn_arena_new(0);
	struct pn_str path, again;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		int r = pn_guard_path(
		    pn_str_from(cases[i][0]), given->arena, &path);

		assert_int_equal(r, cases[i][1] == NULL);
		if (r != 0)
			continue;
		assert_string_equal(path.data, cases[i][1]);
		assert_int_equal(path.len, strlen(cases[i][1]));
		assert_int_equal(pn_guard_path(path, given->arena, &again), 0);
		assert_true(pn_str_equal(path, again));
	}
	assert_int_equal(pn_guard_path(PN_STR("/"), none, &path), -ENOMEM);
	pn_arena_free(none);
}

/* The wrong route of several, or one that is none of its path. */
static void
test_route__longest_match(void **state)
{
	static const struct {
		struct pn_str method, path;
		const char *route; /* NULL: none */
		const char *rest;
		bool safe, known;
	} cases[] = {
		{ PN_STR("POST"), PN_STR("/v1/charges"), paths[0], "", 0, 0 },
		{ PN_STR("DELETE"), PN_STR("/v1/charges"), paths[1], "", 0, 0 },
		{ PN_STR("PUT"), PN_STR("/v1/charges"), NULL, "", 0, 1 },
		{ PN_STR("post"), PN_STR("/v1/charges"), NULL, "", 0, 1 },
		{ PN_STR("GET"), PN_STR("/v1/charges"), paths[0], "", 1, 0 },
		{ PN_STR("POST"), PN_STR("/v1/charges/"), paths[2], "charges/",
		    0, 0 },
		{ PN_STR("POST"), PN_STR("/v1/Charges"), paths[2], "Charges", 0,
		    0 },
		{ PN_STR("POST"), PN_STR("/v1/%63harge%73"), paths[0], "", 0,
		    0 },
		{ PN_STR("POST"), PN_STR("/v1%2fcharges"), NULL, "", 0, 0 },
		{ PN_STR("POST"), PN_STR("/v1/%2fcharges"), paths[2],
		    "%2Fcharges", 0, 0 },
		{ PN_STR("PUT"), PN_STR("/v1/order%73/%37"), paths[3], "7", 0,
		    0 },
		{ PN_STR("POST"), PN_STR("/v1/"), paths[2], "", 0, 0 },
		{ PN_STR("POST"), PN_STR("/v1"), NULL, "", 0, 0 },
		{ PN_STR("POST"), PN_STR("/v1/orders/7/pay"), paths[4], "7/pay",
		    0, 0 },
		{ PN_STR("PUT"), PN_STR("/v1/orders/7"), paths[3], "7", 0, 0 },
		{ PN_STR("POST"), PN_STR("/v1/orders/"), paths[6], "", 0, 0 },
		{ PN_STR("PUT"), PN_STR("/v1/orders/"), paths[3], "", 0, 0 },
		{ PN_STR("OPTIONS"), PN_STR("/v1/orders/"), paths[6], "", 1,
		    0 },
		{ PN_STR("HEAD"), PN_STR("/v1/orders/7"), paths[3], "7", 1, 0 },
		{ PN_STR("TRACE"), PN_STR("/v1/x"), NULL, "", 0, 1 },
		{ PN_STR("GET"), PN_STR("/v2"), NULL, "", 0, 0 },
		{ PN_STR("POST"), PN_STR("/"), NULL, "", 0, 1 },
		{ PN_STR("PATCH"), PN_STR("/"), paths[5], "", 0, 0 },
		{ PN_STR("PATCH"), PN_STR(""), NULL, "", 0, 0 },
		{ PN_STR("POST"), PN_STR("*"), NULL, "", 0, 0 },
	};
	const struct found *given = *state;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct pn_guard_match match =
		    find(given, cases[i].method, cases[i].path);

		if ((match.route == NULL) != (cases[i].route == NULL) ||
		    (match.route != NULL &&
			!pn_str_is(match.route->text, cases[i].route)) ||
		    !pn_str_is(match.rest, cases[i].rest) ||
		    match.is_safe != cases[i].safe ||
		    match.path_known != cases[i].known)
			fail_msg("case %zu", i);
	}
}

/* A client leaves the route's own path at the upstream. */
static void
test_route__rest_has_no_dot_segments(void **state)
{
	static const struct pn_str bad[] = { PN_STR("/v1/.."), PN_STR("/v1/."),
		PN_STR("/v1/../admin"), PN_STR("/v1/x/../../admin"),
		PN_STR("/v1/x/.."), PN_STR("/v1/%2e%2E/admin"),
		PN_STR("/v1/.%2e/admin"), PN_STR("/v1/%2e"),
		PN_STR("/v1/x/./y"), PN_STR("/v1/x%2f..%2Fy"),
		PN_STR("/v1/x\\.."), PN_STR("/v1/..%5c") };
	static const struct pn_str good[] = { PN_STR("/v1/..."),
		PN_STR("/v1/a..b"), PN_STR("/v1/.x"), PN_STR("/v1/x."),
		PN_STR("/v1/%2e%2e%2e"), PN_STR("/v1/%2f"),
		PN_STR("/v1/%252e%252e/x") };
	const struct found *given = *state;
	struct pn_guard_match match;

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		match = find(given, PN_STR("POST"), bad[i]);
		assert_null(match.route);
		assert_false(match.path_known);
	}
	for (size_t i = 0; i < PN_COUNT(good); i++) {
		match = find(given, PN_STR("POST"), good[i]);
		assert_non_null(match.route);
	}
}

/* Allow leaves out what works, or names a method twice. */
static void
test_route__allow_is_what_works(void **state)
{
	const struct found *given = *state;
	struct pn_arena *none = pn_arena_new(0);

	assert_string_equal(pn_guard_route_allow(&given->routes,
				PN_STR("/v1/charges"), given->arena)
				.data,
	    "GET, HEAD, OPTIONS, POST, DELETE");
	assert_string_equal(pn_guard_route_allow(&given->routes,
				PN_STR("/v1/orders/"), given->arena)
				.data,
	    "GET, HEAD, OPTIONS, POST, PUT");
	assert_null(
	    pn_guard_route_allow(&given->routes, PN_STR("/"), none).data);
	pn_arena_free(none);
}

/* -- what a configuration means --------------------------------------------- */

/* An answer that says "maybe" is kept as the answer, or a 4xx charged again. */
static void
test_route__usual_statuses(void **state)
{
	const struct found *given = *state;
	const struct pn_guard_route *route = &given->routes.routes[0];

	for (int status = 200; status < 500; status++)
		assert_int_equal(pn_guard_route_work(route, status),
		    status == 408                    ? PN_WORK_UNKNOWN
		    : status == 425 || status == 429 ? PN_WORK_NOT
						     : PN_WORK_DONE);
	for (int status = 500; status < 600; status++)
		assert_int_equal(
		    pn_guard_route_work(route, status), PN_WORK_UNKNOWN);
	assert_int_equal(pn_guard_route_work(route, 0), PN_WORK_UNKNOWN);
	assert_int_equal(pn_guard_route_work(route, 101), PN_WORK_UNKNOWN);
	assert_int_equal(pn_guard_route_work(route, 600), PN_WORK_UNKNOWN);
	assert_int_equal(pn_guard_route_work(route, -1), PN_WORK_UNKNOWN);
}

static char s503[] = "503", s5xx[] = "5xx", s4xx[] = "4xx", s409[] = "409";

/* A class overrides the status that was singled out. */
static void
test_route__single_status_before_its_class(void **state)
{
	char *keep[] = { s503, s4xx }, *release[] = { s5xx },
	     *maybe[] = { s409 };
	struct pn_conf_place places[2] = { { file_name, 5 }, { file_name, 6 } };
	struct pn_conf_guard_route conf = route_conf(paths[0], paths[0], up, 1);
	const struct pn_conf all = { .guard_routes = &conf,
		.guard_route_count = 1 };
	struct pn_guard_routes routes;
	const struct pn_guard_route *route;

	(void)state;
	conf.keep_status = (struct pn_conf_strings){ keep, places, 2 };
	conf.release_status = (struct pn_conf_strings){ release, places, 1 };
	conf.unknown_status = (struct pn_conf_strings){ maybe, places, 1 };
	assert_int_equal(pn_guard_routes_open(&all, &routes, NULL), 0);
	route = &routes.routes[0];
	assert_int_equal(pn_guard_route_work(route, 503), PN_WORK_DONE);
	assert_int_equal(pn_guard_route_work(route, 500), PN_WORK_NOT);
	assert_int_equal(pn_guard_route_work(route, 599), PN_WORK_NOT);
	assert_int_equal(pn_guard_route_work(route, 409), PN_WORK_UNKNOWN);
	assert_int_equal(pn_guard_route_work(route, 408), PN_WORK_DONE);
	assert_int_equal(pn_guard_route_work(route, 200), PN_WORK_DONE);
	pn_guard_routes_close(&routes);
}

/* A status that means two things means the one that was written last. */
static void
test_route__status_in_two_lists_is_refused(void **state)
{
	char *a[] = { s409, s503 }, *b[] = { s5xx, s503 };
	struct pn_conf_place places_a[] = { { file_name, 5 },
		{ file_name, 6 } },
			     places_b[] = { { file_name, 7 },
				     { file_name, 8 } };
	struct pn_conf_guard_route conf = route_conf(paths[0], paths[0], up, 1);

	(void)state;
	conf.keep_status = (struct pn_conf_strings){ a, places_a, 2 };
	conf.unknown_status = (struct pn_conf_strings){ b, places_b, 2 };
	assert_refused(
	    conf, "g.conf:8: unknown_status \"503\" stands in keep_status too");
	conf.release_status = conf.unknown_status;
	assert_refused(
	    conf, "g.conf:8: release_status \"503\" stands in keep_status too");
	conf.unknown_status.count = 1;
	conf.release_status.count = 1;
	assert_refused(conf,
	    "g.conf:7: unknown_status \"5xx\" stands in release_status too");
}

/* A daemon starts with routes that cannot work, or work as nobody meant. */
static void
test_route__refuses_what_cannot_work(void **state)
{
	char query[] = "http://h/a?b", fragment[] = "http://h/a#b",
	     none[] = "http:///a", other[] = "ftp://h/a", relative[] = "h/a",
	     port[] = "https://h";
	struct pn_conf_guard_route conf = route_conf(paths[0], paths[0], up, 1);

	(void)state;
	assert_int_equal(open_one(conf, NULL), 0);
	conf.upstream = port;
	assert_int_equal(open_one(conf, NULL), 0);
	conf.upstream = query;
	assert_refused(conf, "g.conf:3: upstream \"http://h/a?b\" has a query");
	conf.upstream = fragment;
	assert_refused(conf, "g.conf:3: upstream \"http://h/a#b\" has a query");
	conf.upstream = none;
	assert_refused(conf, "g.conf:3: upstream \"http:///a\" is not http://");
	conf.upstream = other;
	assert_refused(conf, "with a host");
	conf.upstream = relative;
	assert_refused(conf, "with a host");
	conf.upstream = up;
	conf.tenant_header = conf.tenant;
	assert_refused(conf, "g.conf:1: [guard POST /v1/charges] needs only one"
			     " of tenant, tenant_header and api_keys");
	conf.tenant.count = conf.tenant_header.count = 0;
	assert_refused(conf, "needs one of tenant");
}

/* Two routes, of which only one is ever found. */
static void
test_route__refuses_one_path_twice(void **state)
{
	char a[] = "a", b[] = "b", escaped[] = "POST /v1/charge%73";
	struct pn_conf_guard_route confs[] = {
		route_conf(a, paths[0], up, 1),
		route_conf(b, paths[0], up, 11),
	};
	const struct pn_conf all = { .guard_routes = confs,
		.guard_route_count = 2 };
	struct pn_guard_routes routes;
	struct pn_error error;

	(void)state;
	assert_int_equal(pn_guard_routes_open(&all, &routes, &error), -EINVAL);
	assert_string_equal(error.text, "g.conf:12: path \"POST /v1/charges\" "
					"is that of [guard a] at g.conf:2 too");
	confs[1].path = escaped;
	assert_int_equal(pn_guard_routes_open(&all, &routes, &error), -EINVAL);
	assert_string_equal(error.text,
	    "g.conf:12: path \"POST /v1/charge%73\" is that of [guard a] at "
	    "g.conf:2 too");
}

/* unknown = release sets keys aside, or terms are another route's. */
static void
test_route__terms(void **state)
{
	struct pn_conf_guard_route conf = route_conf(paths[0], paths[0], up, 1);
	const struct pn_conf all = { .guard_routes = &conf,
		.guard_route_count = 1 };
	struct pn_guard_routes routes;

	(void)state;
	for (int i = PN_GUARD_RETRY; i <= PN_GUARD_RELEASE; i++) {
		conf.unknown = (enum pn_guard_unknown)i;
		conf.after_expiry = i == 0 ? PN_GUARD_NEW : PN_GUARD_REFUSE;
		conf.attempts_max = i + 1;
		assert_int_equal(pn_guard_routes_open(&all, &routes, NULL), 0);
		assert_int_equal(routes.routes[0].terms.unknown,
		    i == PN_GUARD_HOLD ? PN_CLAIM_HOLD : PN_CLAIM_RETRY);
		assert_int_equal(routes.routes[0].terms.after_expiry,
		    i == 0 ? PN_CLAIM_NEW : PN_CLAIM_REFUSE);
		assert_int_equal(routes.routes[0].terms.attempts_max, i + 1);
		assert_int_equal(routes.routes[0].terms.lease_us, 30000000);
		assert_int_equal(routes.routes[0].terms.ttl_us, 86400000000);
		pn_guard_routes_close(&routes);
	}
}

/* An address that cannot be listened on is found out at the start. */
static void
test_route__check_looks_at_addresses(void **state)
{
	char bad[] = "nonsense", good[] = "127.0.0.1:8602";
	char *listen[] = { good, bad };
	struct pn_conf_place places[] = { { file_name, 3 }, { file_name, 4 } };
	struct pn_conf conf = { .guard.listen = { listen, places, 2 } };
	struct pn_error error = { "" };

	(void)state;
	assert_true(pn_guard_check(&conf, &error) < 0);
	assert_non_null(strstr(error.text, "g.conf:4: listen: "));
	conf.guard.listen.count = 1;
	conf.guard.listen.places = NULL; /* a default */
	assert_int_equal(pn_guard_check(&conf, &error), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_route__one_form_of_a_path),
		cmocka_unit_test(test_route__longest_match),
		cmocka_unit_test(test_route__rest_has_no_dot_segments),
		cmocka_unit_test(test_route__allow_is_what_works),
		cmocka_unit_test(test_route__usual_statuses),
		cmocka_unit_test(test_route__single_status_before_its_class),
		cmocka_unit_test(test_route__status_in_two_lists_is_refused),
		cmocka_unit_test(test_route__refuses_what_cannot_work),
		cmocka_unit_test(test_route__refuses_one_path_twice),
		cmocka_unit_test(test_route__terms),
		cmocka_unit_test(test_route__check_looks_at_addresses),
	};

	return cmocka_run_group_tests(tests, found_setup, found_teardown);
}
