/*
 * [deliver NAME] sections: what an endpoint is, and which mistakes would lose
 * or leak events without a word if they were let pass.
 */
#include "conf_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "paynotify/moment.h"

#define SECRET "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n"
#define ALIPAY(tenant)                \
	"[alipay " tenant "]\n"       \
	"app_id = 2021000000000001\n" \
	"public_key = key.pem\n"
#define DELIVER(name, url)       \
	"[deliver " name "]\n"   \
	"secret_file = secret\n" \
	"url = " url "\n"
#define LOCAL "http://127.0.0.1:9000/events"

static int
setup(void **state)
{
	int r = folder_setup(state);

	folder_write(*state, "key.pem", "key", 0644);
	folder_write(*state, "secret", SECRET, 0600);
	folder_write(*state, "next", SECRET, 0600);
	return r;
}

/* A default that is not what the manual says; a filter that is not empty sends
 * less than all. */
static void
test_conf_deliver__defaults_are_those_of_the_manual(void **state)
{
	const struct pn_conf *conf =
	    folder_accept(*state, DELIVER("app", LOCAL));
	const struct pn_conf_deliver *app = conf->delivers;

	assert_int_equal(conf->deliver_count, 1);
	assert_string_equal(app->name, "app");
	assert_int_equal(app->place.line, 1);
	assert_string_equal(app->url, LOCAL);
	assert_int_equal(app->url_place.line, 3);
	assert_int_equal(app->tenants.count, 0);
	assert_int_equal(app->types.count, 0);
	assert_int_equal(app->ca_file.count, 0);
	assert_true(app->start_us == PN_MOMENT_NONE);
	assert_int_equal(app->timeout_us, 10000000);
	assert_int_equal(app->max_in_flight, 64);
	assert_null(conf->warnings);
	conf = folder_accept(*state, "");
	assert_int_equal(conf->deliver_count, 0);
}

/* The order of secrets decides which signature comes first; the order of
 * endpoints must not depend on the order of files. */
static void
test_conf_deliver__every_option_is_read(void **state)
{
	struct folder *folder = *state;
	const struct pn_conf *conf = folder_accept(folder,
	    DELIVER("b",
		"https://app.example.org/events?shop=1") "tenants = "
							 "shop2\ntenants = "
							 "shop1\n"
							 "types = "
							 "payment.*\ntypes = "
							 "wechat.coupon.use_2\n"
							 "secret_file = "
							 "next\nca_file = "
							 "key.pem\n"
							 "timeout = "
							 "100ms\nmax_in_flight "
							 "= 1024\n" DELIVER(
							     "a-1",
							     LOCAL) "timeout = "
								    "5m\nmax_"
								    "in_flight "
								    "= "
								    "1"
								    "\n" ALIPAY(
									"shop1")
									ALIPAY(
									    "sh"
									    "op"
									    "2"));
	const struct pn_conf_deliver *b = &conf->delivers[1];

	assert_int_equal(conf->deliver_count, 2);
	assert_int_equal(conf->account_count, 2);
	assert_string_equal(conf->delivers[0].name, "a-1");
	assert_int_equal(conf->delivers[0].timeout_us, 300000000);
	assert_int_equal(conf->delivers[0].max_in_flight, 1);
	assert_string_equal(b->name, "b");
	assert_int_equal(b->tenants.count, 2);
	assert_string_equal(b->tenants.values[0], "shop2");
	assert_int_equal(b->tenants.places[1].line, 5);
	assert_int_equal(b->types.count, 2);
	assert_string_equal(b->types.values[0], "payment.*");
	assert_int_equal(b->secret_file.count, 2);
	assert_string_equal(
	    b->secret_file.files[0].path, folder_path(folder, "secret"));
	assert_string_equal(
	    b->secret_file.files[1].path, folder_path(folder, "next"));
	assert_int_equal(
	    b->secret_file.files[0].content.len, strlen(SECRET) - 1);
	assert_string_equal(
	    b->ca_file.files[0].path, folder_path(folder, "key.pem"));
	assert_int_equal(b->timeout_us, 100000);
	assert_int_equal(b->max_in_flight, 1024);
}

/* What would fail at every attempt must fail before the start; a password would
 * stand in lists and logs. */
static void
test_conf_deliver__urls_are_judged_before_the_start(void **state)
{
	static const char *const good[] = { "https://a", "http://[::1]:9000/",
		"https://a-b.c_d.Example:1/x;y=1,2/@me?q=%20&r=a:b@c",
		"https://xn--fiqs8s/", "http://localhost?x" };
	static const char *const bad[][2] = {
		{ "", "url is not http:// or https:// with a host" },
		{ "app.example.org/events", "is not http:// or https://" },
		{ "ftp://a/", "is not http:// or https://" },
		{ "HTTPS://a/", "is not http:// or https://" },
		{ "https:/a", "is not http:// or https://" },
		{ "https://[::1", "is not http:// or https://" },
		{ "https://[::1]x", "is not http:// or https://" },
		{ "https://", "has no host" },
		{ "https:///events", "has no host" },
		{ "https://?a", "has no host" },
		{ "http://:80/", "has no host" },
		{ "https://user:hunter2@a/", "has a user before the \"@\"" },
		{ "https://a#b", "has a fragment" },
		{ "https://a/b?c#", "has a fragment" },
		{ "https://a!b/", "has no valid host" },
		{ "https://[::1/64]/", "is not http:// or https://" },
		{ "https://[::1%2f64]/", "has no valid host" },
		{ "https://[localhost]/", "has no valid host" },
		{ "https://a:/", "has no valid port" },
		{ "https://a:0/", "has no valid port" },
		{ "https://a:65536/", "has no valid port" },
		{ "https://a:80:90/", "has no valid port" },
		{ "https://a/b c", "must be written as %XX" },
		{ "https://a/\xe4\xb8\xad", "must be written as %XX" },
	};
	struct folder *folder = *state;
	char text[4096], path[PN_URL_BYTES_MAX];

	for (size_t i = 0; i < PN_COUNT(good); i++) {
		const struct pn_conf *conf;

		(void)snprintf(
		    text, sizeof(text), DELIVER("app", "%s"), good[i]);
		conf = folder_accept(folder, text);
		assert_string_equal(conf->delivers[0].url, good[i]);
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		(void)snprintf(
		    text, sizeof(text), DELIVER("app", "%s"), bad[i][0]);
		folder_refuse(folder, text, bad[i][1]);
		assert_non_null(
		    strstr(folder->error.text, "main.conf:3: url "));
		assert_null(strstr(folder->error.text, "hunter2"));
	}
	memset(path, 'x', sizeof(path));
	(void)snprintf(text, sizeof(text), DELIVER("app", "https://a/%.*s"),
	    (int)(sizeof(path) - strlen("https://a/")), path);
	(void)folder_accept(folder, text);
	(void)snprintf(text, sizeof(text), DELIVER("app", "https://a/x%.*s"),
	    (int)(sizeof(path) - strlen("https://a/")), path);
	folder_refuse(folder, text, "url is longer than the 2048 bytes");
}

/* Payments in the clear across a network are allowed, never by accident. */
static void
test_conf_deliver__plain_http_elsewhere_is_warned_of(void **state)
{
	static const char *const quiet[] = { "https://app/",
		"http://127.8.8.8/", "http://[::1]/", "http://LocalHost:1/",
		"http://[::ffff:127.0.0.1]/" };
	static const char *const loud[] = { "http://app:9000/",
		"http://10.0.0.1/", "http://127.0.0.1.example.org/",
		"http://[fd00::1]/", "http://localhost.example.org/" };
	const struct pn_conf *conf;
	char text[512];

	for (size_t i = 0; i < PN_COUNT(quiet); i++) {
		(void)snprintf(
		    text, sizeof(text), DELIVER("app", "%s"), quiet[i]);
		assert_null(folder_accept(*state, text)->warnings);
	}
	for (size_t i = 0; i < PN_COUNT(loud); i++) {
		(void)snprintf(
		    text, sizeof(text), DELIVER("app", "%s"), loud[i]);
		conf = folder_accept(*state, text);
		assert_non_null(conf->warnings);
		assert_non_null(strstr(conf->warnings,
		    "main.conf:3: [deliver app] url is http:// to another"));
	}
	conf = folder_accept(
	    *state, DELIVER("a", "http://a/") DELIVER("b", "http://b/"));
	assert_non_null(strstr(conf->warnings, "main.conf:3: [deliver a] "));
	assert_non_null(strstr(conf->warnings, "\n"));
	assert_non_null(strstr(conf->warnings, "main.conf:6: [deliver b] "));
}

/* A filter with a slip in it lets nothing through, and no one is told. */
static void
test_conf_deliver__filters_must_be_able_to_match(void **state)
{
	static const char *const bad_types[] = { "", "*", ".*", "payment*",
		"Payment.succeeded", "payment.*.x", "payment.*, refund.*",
		"payment-succeeded" };
	struct folder *folder = *state;
	char text[512];

	for (size_t i = 0; i < PN_COUNT(bad_types); i++) {
		(void)snprintf(text, sizeof(text),
		    DELIVER("app", LOCAL) "types = %s\n", bad_types[i]);
		folder_refuse(folder, text, "main.conf:4: types: ");
		assert_non_null(strstr(folder->error.text,
		    "is not a type such as payment.succeeded or payment.*"));
	}
	folder_refuse(folder, DELIVER("app", LOCAL) "tenants = Shop\n",
	    "main.conf:4: tenants: \"Shop\" is not a tenant such as shop1");
	folder_refuse(
	    folder, DELIVER("app", LOCAL) "tenants = a, b\n", "repeat the key");
	folder_refuse(folder,
	    DELIVER("app", LOCAL) "tenants = shop1\ntenants = ship1\n" ALIPAY(
		"other") ALIPAY("shop1"),
	    "main.conf:5: tenants: no account has the tenant \"ship1\"; did"
	    " you mean \"shop1\"?");
	folder_refuse(folder,
	    DELIVER("app", LOCAL) "tenants = elsewhere\n" ALIPAY("shop1"),
	    "no account has the tenant \"elsewhere\": add [alipay elsewhere]"
	    " or [wechat elsewhere], or take it out");
	/* A process that only delivers knows no accounts. */
	(void)folder_accept(folder, DELIVER("app", LOCAL) "tenants = shop1\n");
}

/* An endpoint that begins hours off, or at another time than is written, sends
 * what was never meant for it or leaves out what was. */
static void
test_conf_deliver__start_is_a_moment_or_the_beginning(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
	} good[] = {
		{ "beginning", PN_MOMENT_NONE },
		{ "2026-03-01", INT64_C(1772323200000000) },
		{ "2026-03-01T10:00:00+08:00", INT64_C(1772330400000000) },
		{ "2026-03-01T02:00:00.5Z", INT64_C(1772330400500000) },
		{ "1970-01-01", 0 },
	};
	static const char *const bad[] = { "", "now", "Beginning", "0",
		"2026-02-29", "2026-03-1", "2026-03-01 10:00:00",
		"2026-03-01T10:00:00", "1969-12-31", "24h", "-infinity",
		"2026-03-0a" };
	char text[512];

	for (size_t i = 0; i < PN_COUNT(good); i++) {
		(void)snprintf(text, sizeof(text),
		    DELIVER("app", LOCAL) "start = %s\n", good[i].text);
		assert_true(folder_accept(*state, text)->delivers[0].start_us ==
			    good[i].us);
	}
	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		(void)snprintf(text, sizeof(text),
		    DELIVER("app", LOCAL) "start = %s\n", bad[i]);
		folder_refuse(*state, text,
		    "is not \"beginning\", a date such as 2026-03-01");
	}
}

static void
test_conf_deliver__what_is_needed_and_in_range(void **state)
{
	static const char *const cases[][2] = {
		{ "[deliver]\n", "section [deliver] needs the endpoint's name:"
				 " [deliver app]" },
		{ "[deliver App]\n", "endpoint \"App\" must be 1 to 32 of" },
		{ "[deliver app]\nsecret_file = secret\n",
		    "main.conf:1: [deliver app] url is required" },
		{ "[deliver app]\nurl = " LOCAL "\n",
		    "main.conf:1: [deliver app] secret_file is required" },
		{ DELIVER("app", LOCAL) "timeout = 99ms\n",
		    "main.conf:4: timeout: \"99ms\" is not within 100ms and"
		    " 5m" },
		{ DELIVER("app", LOCAL) "timeout = 301s\n", "100ms and 5m" },
		{ DELIVER("app", LOCAL) "max_in_flight = 0\n", "1 and 1024" },
		{ DELIVER("app", LOCAL) "max_in_flight = 1025\n", "1 and" },
		{ DELIVER("app", LOCAL) "url = " LOCAL "\n",
		    "main.conf:4: [deliver app] url is given twice" },
		{ DELIVER("app", LOCAL) "ca_file = key.pem\n"
					"ca_file = key.pem\n",
		    "ca_file is given twice" },
		{ DELIVER("app", LOCAL) DELIVER("app", LOCAL),
		    "main.conf:4: section [deliver app] stands twice" },
		{ DELIVER("app", LOCAL) "tenant = a\n",
		    "[deliver app] unknown option \"tenant\"; did you mean"
		    " \"tenants\"?" },
		{ "[server]\nsecret_file = a\n", "it belongs in [deliver]" },
	};

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		folder_refuse(*state, cases[i][0], cases[i][1]);
}

/* Who can read the secret can forge events to the application; a bundle of
 * authorities is longer than any key. */
static void
test_conf_deliver__files_are_guarded_and_bounded(void **state)
{
	enum { BUNDLE_BYTES = 300000 };
	struct folder *folder = *state;
	char *big = calloc(1, PN_CA_FILE_BYTES_MAX + 8);

	assert_non_null(big);
	folder_write(folder, "open", SECRET, 0644);
	folder_refuse(folder,
	    "[deliver app]\nurl = " LOCAL "\nsecret_file = open\n",
	    "main.conf:3: secret_file: ");
	assert_non_null(strstr(folder->error.text, "chmod 600"));
	folder_write(folder, "secret", "\n", 0600);
	folder_refuse(folder, DELIVER("app", LOCAL), "secret\" is empty");
	memset(big, 'x', 1024);
	folder_write(folder, "secret", big, 0600);
	(void)folder_accept(folder, DELIVER("app", LOCAL));
	memset(big, 'x', 1025);
	folder_write(folder, "secret", big, 0600);
	folder_refuse(
	    folder, DELIVER("app", LOCAL), "has more than 1024 bytes");
	folder_write(folder, "secret", SECRET, 0600);
	memset(big, 'x', BUNDLE_BYTES);
	folder_write(folder, "ca", big, 0644);
	(void)folder_accept(folder, DELIVER("app", LOCAL) "ca_file = ca\n");
	memset(big, 'x', PN_CA_FILE_BYTES_MAX + 1);
	folder_write(folder, "ca", big, 0644);
	folder_refuse(folder, DELIVER("app", LOCAL) "ca_file = ca\n",
	    "has more than 1048576 bytes");
	free(big);
}

/* More endpoints than the deliverer has room for must be told, not cut off; and
 * accounts must not take their places. */
static void
test_conf_deliver__too_many_endpoints_are_refused(void **state)
{
	size_t size = (size_t)(PN_ENDPOINTS_MAX + 1) * 128, len = 0;
	char *text = calloc(1, size);

	assert_non_null(text);
	for (int i = 0; i < PN_ENDPOINTS_MAX; i++)
		len += (size_t)snprintf(
		    text + len, size - len, DELIVER("app%d", LOCAL), i);
	assert_int_equal(
	    folder_accept(*state, text)->deliver_count, PN_ENDPOINTS_MAX);
	(void)snprintf(text + len, size - len, DELIVER("more", LOCAL));
	folder_refuse(*state, text,
	    "main.conf:193: more than 64 sections such as [deliver]");
	free(text);
}

/* Verifying a capture offline must not need the secrets of endpoints, nor an
 * endpoint pass for an account. */
static void
test_conf_deliver__an_account_alone_needs_no_endpoint(void **state)
{
	struct folder *folder = *state;

	folder_write(folder, "main.conf",
	    ALIPAY("shop1") "[deliver app]\nurl = nonsense\n"
			    "secret_file = missing\ntenants = nobody\n",
	    0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), 0);
	assert_int_equal(folder->conf->account_count, 1);
	assert_int_equal(folder->conf->deliver_count, 0);
	assert_int_equal(folder_load(folder, NULL), -EINVAL);
	assert_int_equal(folder_load(folder, "deliver/app"), -EINVAL);
	assert_non_null(strstr(folder->error.text, "no section [deliver app]"));
	assert_null(strstr(folder->error.text, "secret_file"));
	folder_write(folder, "main.conf",
	    ALIPAY("shop1") "[deliver app]\nurll = x\n", 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), -EINVAL);
	assert_non_null(strstr(folder->error.text, "did you mean \"url\"?"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf_deliver__defaults_are_those_of_the_manual),
		TEST(test_conf_deliver__every_option_is_read),
		TEST(test_conf_deliver__urls_are_judged_before_the_start),
		TEST(test_conf_deliver__plain_http_elsewhere_is_warned_of),
		TEST(test_conf_deliver__filters_must_be_able_to_match),
		TEST(test_conf_deliver__start_is_a_moment_or_the_beginning),
		TEST(test_conf_deliver__what_is_needed_and_in_range),
		TEST(test_conf_deliver__files_are_guarded_and_bounded),
		TEST(test_conf_deliver__too_many_endpoints_are_refused),
		TEST(test_conf_deliver__an_account_alone_needs_no_endpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
