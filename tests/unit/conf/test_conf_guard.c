/*
 * [guard] and [guard NAME]: where the gateway listens and what its routes are,
 * and which mistakes would do a payment twice, or refuse it, if they were let
 * pass.
 */
#include "conf_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCAL "http://127.0.0.1:9000/v1/charges"
#define ROUTE(name)                 \
	"[guard " name "]\n"        \
	"path = POST /v1/charges\n" \
	"upstream = " LOCAL "\n"
#define FIXED(name) ROUTE(name) "tenant = shop1\n"
#define DIGEST                             \
	"9f86d081884c7d659a2feaa0c55ad015" \
	"a3bf4f1b2b0b822cd15d6c15b0f00a08 shop1\n"

static int
setup(void **state)
{
	int r = folder_setup(state);

	folder_write(*state, "ca.pem", "ca", 0644);
	folder_write(*state, "keys", DIGEST, 0644);
	return r;
}

/* A default that is not what the manual says. */
static void
test_conf_guard__defaults_are_those_of_the_manual(void **state)
{
	const struct pn_conf *conf =
	    folder_accept(*state, FIXED("charges") "[guard]\n");
	const struct pn_conf_guard_route *route = conf->guard_routes;

	assert_int_equal(conf->guard.listen.count, 1);
	assert_string_equal(conf->guard.listen.values[0], "127.0.0.1:8602");
	assert_int_equal(conf->guard.max_body_bytes, 1 << 20);
	assert_int_equal(conf->guard_route_count, 1);
	assert_string_equal(route->name, "charges");
	assert_int_equal(route->place.line, 1);
	assert_string_equal(route->path, "POST /v1/charges");
	assert_int_equal(route->path_place.line, 2);
	assert_string_equal(route->upstream, LOCAL);
	assert_int_equal(route->upstream_place.line, 3);
	assert_int_equal(route->tenant.count, 1);
	assert_string_equal(route->tenant.values[0], "shop1");
	assert_int_equal(route->tenant_header.count, 0);
	assert_int_equal(route->api_keys.count, 0);
	assert_int_equal(route->ca_file.count, 0);
	assert_int_equal(route->timeout_us, 30000000);
	assert_int_equal(route->wait_us, 10000000);
	assert_int_equal(route->lease_us, 30000000);
	assert_int_equal(route->ttl_us, 86400000000);
	assert_int_equal(route->unknown, PN_GUARD_RETRY);
	assert_int_equal(route->after_expiry, PN_GUARD_NEW);
	assert_int_equal(route->attempts_max, 10);
	assert_int_equal(route->max_in_flight, 256);
	assert_int_equal(route->max_response_bytes, 1 << 20);
	assert_int_equal(route->keep_header.count, 0);
	assert_int_equal(route->keep_status.count, 0);
	assert_int_equal(route->release_status.count, 0);
	assert_int_equal(route->unknown_status.count, 0);
	assert_null(conf->warnings);
}

/* A port that opens unasked is a hole. */
static void
test_conf_guard__listens_only_with_its_section(void **state)
{
	const struct pn_conf *conf = folder_accept(*state, "");

	assert_int_equal(conf->guard.listen.count, 0);
	assert_int_equal(conf->guard.max_body_bytes, 0);
	assert_int_equal(conf->guard_route_count, 0);
	/* Of nothing but that there is nothing at all. */
	assert_non_null(strstr(conf->warnings, "no account: nothing"));
	assert_null(strchr(conf->warnings, '\n'));
}

/* An option read into another one's place; one order of routes for all
 * daemons, whatever the files'. */
static void
test_conf_guard__every_option_is_read(void **state)
{
	static const char text[] =
	    "[guard b]\n"
	    "path = DELETE /v1/*\n"
	    "upstream = https://api.example.org:1/x/\n"
	    "ca_file = ca.pem\n"
	    "api_keys = keys\n"
	    "timeout = 100ms\n"
	    "wait = 0s\n"
	    "lease = 2001ms\n"
	    "ttl = 400d\n"
	    "unknown = release\n"
	    "after_expiry = refuse\n"
	    "attempts_max = 1000\n"
	    "max_in_flight = 1024\n"
	    "max_response = 8m\n"
	    "keep_header = X-One\n"
	    "keep_header = x~!#$%&'*+-.^_`|2\n"
	    "keep_status = 501\n"
	    "keep_status = 599\n"
	    "release_status = 4xx\n"
	    "unknown_status = 200\n"
	    "[guard]\n"
	    "listen = [::]:80\n"
	    "listen = unix:/run/g.sock\n"
	    "max_body = 1k\n" FIXED("a-1") "unknown = hold\n";
	struct folder *folder = *state;
	const struct pn_conf *conf = folder_accept(folder, text);
	const struct pn_conf_guard_route *b = &conf->guard_routes[1];

	assert_int_equal(conf->guard.listen.count, 2);
	assert_string_equal(conf->guard.listen.values[1], "unix:/run/g.sock");
	assert_int_equal(conf->guard.listen.places[0].line, 22);
	assert_int_equal(conf->guard.max_body_bytes, 1024);
	assert_int_equal(conf->guard_route_count, 2);
	assert_string_equal(conf->guard_routes[0].name, "a-1");
	assert_int_equal(conf->guard_routes[0].unknown, PN_GUARD_HOLD);
	assert_string_equal(b->name, "b");
	assert_string_equal(b->path, "DELETE /v1/*");
	assert_string_equal(b->upstream, "https://api.example.org:1/x/");
	assert_int_equal(b->ca_file.count, 1);
	assert_string_equal(
	    b->ca_file.files[0].path, folder_path(folder, "ca.pem"));
	assert_int_equal(b->api_keys.count, 1);
	assert_true(
	    pn_str_is(pn_conf_file_text(&b->api_keys.files[0]), DIGEST));
	assert_int_equal(b->api_keys.files[0].place.line, 5);
	assert_int_equal(b->timeout_us, 100000);
	assert_int_equal(b->wait_us, 0);
	assert_int_equal(b->lease_us, 2001000);
	assert_int_equal(b->ttl_us, 34560000000000);
	assert_int_equal(b->unknown, PN_GUARD_RELEASE);
	assert_int_equal(b->after_expiry, PN_GUARD_REFUSE);
	assert_int_equal(b->attempts_max, 1000);
	assert_int_equal(b->max_in_flight, 1024);
	assert_int_equal(b->max_response_bytes, 8 << 20);
	assert_int_equal(b->keep_header.count, 2);
	assert_string_equal(b->keep_header.values[0], "X-One");
	assert_int_equal(b->keep_header.places[1].line, 16);
	assert_int_equal(b->keep_status.count, 2);
	assert_string_equal(b->keep_status.values[1], "599");
	assert_string_equal(b->release_status.values[0], "4xx");
	assert_string_equal(b->unknown_status.values[0], "200");
	assert_int_equal(b->unknown_status.places[0].line, 20);
	conf = folder_accept(
	    folder, "[guard]\n" ROUTE("c") "tenant_header = X-Tenant\n");
	assert_string_equal(
	    conf->guard_routes[0].tenant_header.values[0], "X-Tenant");
}

/* A route that no request can ever match is an API without a guard. */
static void
test_conf_guard__routes_are_a_method_and_a_path(void **state)
{
	static const char *const good[] = { "POST /", "PUT /a", "PATCH /a/b/*",
		"DELETE /*", "POST /v1/%E4;x=1,2@:!$&'()+=~", "POST /notify",
		"POST /notifyx/", "POST /v1//*", "POST /v1/notify/x" };
	static const char *const bad[][2] = {
		{ "", "does not begin with POST, PUT, PATCH or DELETE" },
		{ "/v1/charges", "does not begin with POST" },
		{ "GET /v1", "does not begin with POST" },
		{ "post /v1", "does not begin with POST" },
		{ "POSTER /v1", "does not begin with POST" },
		{ "POST", "has no path that begins with \"/\"" },
		{ "POST  /v1", "has no path that begins with \"/\"" },
		{ "POST\t/v1", "does not begin with POST" },
		{ "POST v1", "has no path that begins with \"/\"" },
		{ "POST *", "has no path that begins with \"/\"" },
		{ "POST http://a/", "has no path that begins with \"/\"" },
		{ "POST /v1 /v2", "must be written as %XX" },
		{ "POST /v1/\xe4\xb8\xad", "must be written as %XX" },
		{ "POST /v1\x7f", "must be written as %XX" },
		{ "POST /v1/%4", "has a \"%\" without two hex digits" },
		{ "POST /v1?a=b", "has a query or a fragment" },
		{ "POST /v1#a", "has a query or a fragment" },
		{ "POST /v1*", "has a \"*\" that is not the end" },
		{ "POST /*/refunds", "has a \"*\" that is not the end" },
		{ "POST /v1/**", "has a \"*\" that is not the end" },
		{ "POST /notify/", "begins with /notify/" },
		{ "POST /notify/alipay/shop1", "begins with /notify/" },
		{ "POST /notify/*", "begins with /notify/" },
	};
	static const char shape[] = "[guard]\n[guard a]\npath = %s\n"
				    "upstream = " LOCAL "\ntenant = a\n";
	struct folder *folder = *state;
	char text[4096], path[256] = "";

	for (size_t i = 0; i < PN_COUNT(good); i++) {
		const struct pn_conf *conf;

		(void)snprintf(text, sizeof(text), shape, good[i]);
		conf = folder_accept(folder, text);
		assert_string_equal(conf->guard_routes[0].path, good[i]);
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		(void)snprintf(text, sizeof(text), shape, bad[i][0]);
		folder_refuse(folder, text, bad[i][1]);
		assert_non_null(
		    strstr(folder->error.text, "main.conf:3: path: \""));
	}
	memset(path, 'x', sizeof(path) - 1);
	memcpy(path, "POST /", strlen("POST /"));
	(void)snprintf(text, sizeof(text), shape, path);
	assert_int_equal(
	    strlen(folder_accept(folder, text)->guard_routes[0].path), 255);
	(void)snprintf(
	    text, sizeof(text), "[guard]\n[guard a]\npath = %sx\n", path);
	folder_refuse(folder, text, "is longer than the 255 bytes");
}

/* Whose a key is must be said once: nobody's is everybody's. */
static void
test_conf_guard__tenants_come_from_one_source(void **state)
{
	static const char *const bad[] = {
		"tenant = a\ntenant_header = X-Tenant\n",
		"tenant = a\napi_keys = keys\n",
		"tenant_header = X-Tenant\napi_keys = keys\n",
		"tenant = a\ntenant_header = X-Tenant\napi_keys = keys\n",
	};
	char text[512];

	folder_refuse(*state, "[guard]\n" ROUTE("a"),
	    "main.conf:2: [guard a] whose keys are they? tenant,"
	    " tenant_header or api_keys is required");
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		(void)snprintf(
		    text, sizeof(text), "[guard]\n" ROUTE("a") "%s", bad[i]);
		folder_refuse(*state, text,
		    "main.conf:2: [guard a] only one of tenant,"
		    " tenant_header and api_keys may say whose a key is");
	}
}

/* Routes that nobody serves look like a gateway until the first payment. */
static void
test_conf_guard__routes_and_listener_need_each_other(void **state)
{
	struct folder *folder = *state;
	const char *first;

	folder_refuse(folder, FIXED("b") FIXED("a"),
	    "main.conf:5: [guard a] is served nowhere: add a section [guard]");
	first = strstr(folder->error.text, "is served nowhere");
	assert_null(strstr(first + 1, "is served nowhere"));
	folder_refuse(folder, FIXED("a") "unknown = maybe\n",
	    "main.conf:1: [guard a] is served nowhere");
	assert_non_null(strstr(folder->error.text, "main.conf:5: unknown"));
	folder_make(folder, "conf.d", 0700);
	folder_write(folder, "conf.d/guard.conf", "[guard]\n", 0600);
	(void)folder_accept(folder, "include = conf.d/*.conf\n" FIXED("a"));
	assert_non_null(
	    strstr(folder_accept(folder, "[server]\n[guard]\n")->warnings,
		"main.conf:2: [guard] has no route: add a section such as"));
	/* The listener's own fault is told, and not that it is missing. */
	folder_refuse(folder, "[guard]\nlisten = 8602\n",
	    "main.conf:2: listen: \"8602\" is not host:port");
	folder_refuse(folder, FIXED("a") "[guard]\nlisten = 8602\n",
	    "main.conf:6: listen: \"8602\" is not host:port");
	assert_null(strstr(folder->error.text, "nowhere"));
}

/* An option in the section beside the right one would be the most usual slip;
 * a wrong name must not become a route, nor a route the listener. */
static void
test_conf_guard__errors_say_where_what_belongs(void **state)
{
	static const char *const cases[][2] = {
		{ "[guard]\nttl = 24h\n",
		    "main.conf:2: [guard] unknown option \"ttl\"; it belongs"
		    " in [guard NAME]" },
		{ "[guard]\ntimeout = 5s\n", "it belongs in [guard NAME]" },
		{ FIXED("a") "listen = a:1\n",
		    "main.conf:5: [guard a] unknown option \"listen\"; it"
		    " belongs in [guard]\n" },
		{ FIXED("a") "max_body = 1m\n", "it belongs in [guard]\n" },
		{ "[server]\nkeep_status = 501\n", "belongs in [guard NAME]" },
		{ "[guard]\nlistten = a:1\n", "did you mean \"listen\"?" },
		{ FIXED("a") "keep_headers = a\n",
		    "did you mean \"keep_header\"?" },
		{ "[guard Charges]\n",
		    "main.conf:1: route \"Charges\" must be 1 to 32 of" },
		{ "[guard a b]\n", "route \"a b\" must be" },
		{ "[gaurd]\n", "did you mean \"guard\"?" },
		{ "[Guard a]\n", "did you mean \"guard\"?" },
		{ "[guard]\n[guard]\n",
		    "main.conf:2: section [guard] stands twice" },
		{ "[guard]\n" FIXED("a") FIXED("a"),
		    "main.conf:6: section [guard a] stands twice" },
		{ FIXED("a") "tenant = b\n", "tenant is given twice" },
		{ FIXED("a") "path = PUT /\n", "path is given twice" },
		{ "[guard a]\nupstream = " LOCAL "\ntenant = a\n",
		    "main.conf:1: [guard a] path is required" },
		{ "[guard a]\npath = PUT /a\ntenant = a\n",
		    "main.conf:1: [guard a] upstream is required" },
	};

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		folder_refuse(*state, cases[i][0], cases[i][1]);
}

/* A value half understood is a payment done twice, or never. */
static void
test_conf_guard__values_are_whole_and_in_range(void **state)
{
	static const char *const cases[][2] = {
		{ "timeout = 99ms", "\"99ms\" is not within 100ms and 10m" },
		{ "timeout = 11m", "100ms and 10m" },
		{ "wait = 301s", "\"301s\" is not within 0s and 5m" },
		{ "lease = 999ms", "within 1s and 1h" },
		{ "ttl = 401d", "within 1s and 400d" },
		{ "unknown = Retry", "is not retry or hold or release" },
		{ "after_expiry = old", "is not new or refuse" },
		{ "attempts_max = 0", "within 1 and 1000" },
		{ "attempts_max = 1001", "within 1 and 1000" },
		{ "max_in_flight = 0", "within 1 and 1024" },
		{ "max_in_flight = 1025", "within 1 and 1024" },
		{ "max_response = 1023", "within 1024 and 8388608 bytes" },
		{ "max_response = 9m", "within 1024 and 8388608 bytes" },
		{ "keep_header =", "\"\" is not the name of one header" },
		{ "keep_header = ETag, Link", "repeat the key" },
		{ "keep_header = ETag:", "is not the name of one header" },
		{ "keep_header = E\xc3\xa9", "is not the name of one header" },
		{ "keep_status =", "\"\" is not a status such as 503" },
		{ "keep_status = 199", "is not a status" },
		{ "keep_status = 600", "is not a status" },
		{ "keep_status = 1xx", "is not a status" },
		{ "keep_status = 6xx", "is not a status" },
		{ "keep_status = 50x", "is not a status" },
		{ "keep_status = 5x0", "is not a status" },
		{ "keep_status = 5XX", "is not a status" },
		{ "keep_status = 5030", "is not a status" },
		{ "keep_status = 5 3", "is not a status" },
		{ "release_status = 429, 425", "repeat the key" },
	};
	struct folder *folder = *state;
	char text[512], place[64];

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		(void)snprintf(text, sizeof(text),
		    "[guard]\n" FIXED("a") "%s\n", cases[i][0]);
		folder_refuse(folder, text, cases[i][1]);
		(void)snprintf(place, sizeof(place),
		    "main.conf:6: %.*s: ", (int)strcspn(cases[i][0], " "),
		    cases[i][0]);
		assert_non_null(strstr(folder->error.text, place));
	}
	folder_refuse(folder, "[guard]\n" ROUTE("a") "tenant = Shop\n",
	    "main.conf:5: tenant: \"Shop\" is not a tenant such as shop1");
	folder_refuse(folder, "[guard]\n" ROUTE("a") "tenant_header = X Y\n",
	    "main.conf:5: tenant_header: \"X Y\" is not the name of one");
	folder_refuse(folder, "[guard]\nmax_body = 1023\n",
	    "main.conf:2: max_body: \"1023\" is not within 1024 and 1048576");
	folder_refuse(folder, "[guard]\nmax_body = 2m\n", "1048576 bytes");
	folder_refuse(folder,
	    "[guard]\n[guard a]\npath = PUT /a\ntenant = a\n"
	    "upstream = ftp://a/\n",
	    "main.conf:5: upstream is not http:// or https://");
}

/* Who can write digests can be any tenant; a list for a platform's shops is
 * longer than any key. */
static void
test_conf_guard__files_are_guarded_and_bounded(void **state)
{
	enum { MANY_BYTES = 300000 };
	struct folder *folder = *state;
	char *big = calloc(1, PN_CA_FILE_BYTES_MAX + 8);

	assert_non_null(big);
	folder_write(folder, "keys", DIGEST, 0666);
	folder_refuse(folder, "[guard]\n" ROUTE("a") "api_keys = keys\n",
	    "main.conf:5: api_keys: ");
	assert_non_null(strstr(folder->error.text, "chmod go-w"));
	folder_write(folder, "keys", "", 0644);
	folder_refuse(folder, "[guard]\n" ROUTE("a") "api_keys = keys\n",
	    "keys\" is empty");
	folder_refuse(folder, "[guard]\n" FIXED("a") "ca_file = none\n",
	    "main.conf:6: ca_file: ");
	memset(big, 'x', MANY_BYTES);
	folder_write(folder, "keys", big, 0644);
	(void)folder_accept(folder, "[guard]\n" ROUTE("a") "api_keys = keys\n");
	memset(big, 'x', PN_CA_FILE_BYTES_MAX + 1);
	folder_write(folder, "keys", big, 0644);
	folder_refuse(folder, "[guard]\n" ROUTE("a") "api_keys = keys\n",
	    "has more than 1048576 bytes");
	free(big);
}

/* Allowed, and hardly meant: the operator must hear of it. */
static void
test_conf_guard__what_is_hardly_meant_is_warned_of(void **state)
{
	const struct pn_conf *conf = folder_accept(*state,
	    "[guard]\n[guard a]\npath = POST /a\ntenant = a\n"
	    "upstream = http://10.0.0.1/a\n");

	assert_non_null(conf->warnings);
	assert_non_null(strstr(conf->warnings,
	    "main.conf:5: [guard a] upstream is http:// to another host"));
	conf = folder_accept(*state,
	    "[guard]\n[guard a]\npath = POST /a\ntenant_header = X-Tenant\n"
	    "upstream = https://api.example.org/a\n"
	    "[server]\ntrusted_proxies = none\n");
	assert_non_null(conf->warnings);
	assert_non_null(strstr(conf->warnings,
	    "main.conf:4: [guard a] tenant_header is believed of trusted"
	    " proxies only"));
	conf = folder_accept(
	    *state, "[guard]\n" ROUTE("a") "tenant_header = X-Tenant\n");
	assert_null(conf->warnings);
}

/* More routes than there is room for must be told, not cut off; and neither the
 * listener nor endpoints take their places. */
static void
test_conf_guard__too_many_routes_are_refused(void **state)
{
	size_t size = (size_t)(PN_GUARD_ROUTES_MAX + 2) * 128, len;
	char *text = calloc(1, size);

	assert_non_null(text);
	len = (size_t)snprintf(text, size, "[guard]\n");
	for (int i = 0; i < PN_GUARD_ROUTES_MAX; i++)
		len +=
		    (size_t)snprintf(text + len, size - len, FIXED("r%d"), i);
	assert_int_equal(folder_accept(*state, text)->guard_route_count,
	    PN_GUARD_ROUTES_MAX);
	(void)snprintf(text + len, size - len, FIXED("more"));
	folder_refuse(*state, text,
	    "main.conf:258: more than 64 sections such as [guard NAME]");
	free(text);
}

/* Verifying a capture offline must not need the gateway's files, nor a route
 * pass for an account. */
static void
test_conf_guard__an_account_alone_needs_no_route(void **state)
{
	static const char account[] = "[alipay shop1]\n"
				      "app_id = 2021000000000001\n"
				      "public_key = ca.pem\n";
	struct folder *folder = *state;
	char text[512];

	(void)snprintf(text, sizeof(text),
	    "%s[guard a]\npath = nonsense\nca_file = missing\n", account);
	folder_write(folder, "main.conf", text, 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), 0);
	assert_int_equal(folder->conf->account_count, 1);
	assert_int_equal(folder->conf->guard_route_count, 0);
	assert_int_equal(folder->conf->guard.listen.count, 0);
	assert_int_equal(folder_load(folder, NULL), -EINVAL);
	assert_int_equal(folder_load(folder, "guard/a"), -EINVAL);
	assert_non_null(strstr(folder->error.text, "no section [guard a]"));
	(void)snprintf(text, sizeof(text), "%s[guard]\n", account);
	folder_write(folder, "main.conf", text, 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), 0);
	assert_null(folder->conf->warnings);
	(void)snprintf(text, sizeof(text), "%s[guard]\nttl = 24h\n", account);
	folder_write(folder, "main.conf", text, 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), -EINVAL);
	assert_non_null(
	    strstr(folder->error.text, "it belongs in [guard NAME]"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf_guard__defaults_are_those_of_the_manual),
		TEST(test_conf_guard__listens_only_with_its_section),
		TEST(test_conf_guard__every_option_is_read),
		TEST(test_conf_guard__routes_are_a_method_and_a_path),
		TEST(test_conf_guard__tenants_come_from_one_source),
		TEST(test_conf_guard__routes_and_listener_need_each_other),
		TEST(test_conf_guard__errors_say_where_what_belongs),
		TEST(test_conf_guard__values_are_whole_and_in_range),
		TEST(test_conf_guard__files_are_guarded_and_bounded),
		TEST(test_conf_guard__what_is_hardly_meant_is_warned_of),
		TEST(test_conf_guard__too_many_routes_are_refused),
		TEST(test_conf_guard__an_account_alone_needs_no_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
