/*
 * What is right option by option and cannot be meant all the same. If these fail,
 * `config check` says OK and every notification is refused, an endpoint waits for
 * events that never come, or the daemon's start ends in the system's words.
 */
#include "conf_files.h"

#include <stdio.h>

#define WECHAT                          \
	"[wechat a]\n"                  \
	"api_v2_key_file = key\n"       \
	"public_key = PUB_KEY_ID_1:k\n" \
	"api_v3_key_file = key\n"
#define ALIPAY         \
	"[alipay a]\n" \
	"public_key = k\n"
#define ENDPOINT                      \
	"[deliver app]\n"             \
	"url = http://127.0.0.1:1/\n" \
	"secret_file = key\n"

/* Fails if an id that no account can have passed without a word, or if one were
 * doubted that accounts have. */
static void
test_conf_check__unlikely_ids_and_types_are_warned_of(void **state)
{
	static const struct {
		const char *head, *value;
		const char *said; /* NULL: nothing */
	} rows[] = {
		{ WECHAT "mchid = ", "19x",
		    "main.conf:5: [wechat a] mchid \"19x\" is hardly right: it"
		    " has 8 to 10 digits;" },
		{ WECHAT "mchid = ", "1900000109", NULL },
		{ WECHAT "mchid = ", "10000100", NULL },
		{ WECHAT "mchid = 10000100\nappid = ", "2021000000000001",
		    "main.conf:6: [wechat a] appid " },
		{ WECHAT "mchid = 10000100\nappid = ", "wx2421b1c4370ec43b",
		    NULL },
		{ WECHAT "mchid = 10000100\nappid = ", "ww2421b1c4370ec43b",
		    NULL },
		{ ALIPAY "app_id = ", "wx00",
		    "main.conf:3: [alipay a] app_id " },
		{ ALIPAY "app_id = ", "2088000000000001", "app_id " },
		{ ALIPAY "app_id = ", "2014072300007148", NULL },
		{ ALIPAY "app_id = ", "9021000122682882", NULL },
		{ ALIPAY "app_id = 2021000000000001\nseller_id = ",
		    "shop@example.com", "main.conf:4: [alipay a] seller_id " },
		{ ALIPAY "app_id = 2021000000000001\nseller_id = ",
		    "2088721003899159", NULL },
		{ ENDPOINT "types = ", "payments.*",
		    "main.conf:4: [deliver app] types \"payments.*\" is no type"
		    " of any event, so nothing of it is sent; did you mean"
		    " \"payment.*\"?" },
		{ ENDPOINT "types = ", "refund.suceeded",
		    "did you mean \"refund.succeeded\"?" },
		{ ENDPOINT "types = ", "order.paid", "nothing of it is" },
		{ ENDPOINT "types = ", "payment", "types \"payment\"" },
		{ ENDPOINT "types = ", "payment.succeeded.*", "types \"" },
		{ ENDPOINT "types = ", "payment.*", NULL },
		{ ENDPOINT "types = ", "refund.abnormal", NULL },
		{ ENDPOINT "types = ", "wechat.*", NULL },
		{ ENDPOINT "types = ", "wechat.complaint.*", NULL },
		{ ENDPOINT "types = ", "alipay.dut_user_sign", NULL },
	};
	const char *warnings;

	folder_write(*state, "k", "key", 0644);
	folder_write(*state, "key", "12345678901234567890123456789012", 0600);
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		char text[512];

		(void)snprintf(
		    text, sizeof(text), "%s%s\n", rows[i].head, rows[i].value);
		warnings = folder_accept(*state, text)->warnings;
		if (rows[i].said == NULL) {
			assert_null(warnings);
			continue;
		}
		assert_non_null(warnings);
		assert_non_null(strstr(warnings, rows[i].said));
	}
}

/* Fails if two listeners with one address were found out at the start only, or
 * if two were refused that go together. */
static void
test_conf_check__an_address_has_one_listener(void **state)
{
	static const struct {
		const char *text;
		const char *because; /* NULL: they go together */
	} rows[] = {
		{ "[server]\nlisten = 127.0.0.1:7\n[admin]\n"
		  "listen = 127.0.0.1:7\n",
		    "main.conf:4: [admin] listen: \"127.0.0.1:7\" is taken by"
		    " [server] listen = 127.0.0.1:7 in " },
		{ "[server]\nlisten = 127.0.0.1:7\n[admin]\n"
		  "listen = 127.0.0.1:7\n",
		    "main.conf:2" },
		{ "[admin]\nlisten = 127.0.0.1:8600\n",
		    "main.conf:2: [admin] listen: \"127.0.0.1:8600\" is taken"
		    " by the default of [server] listen, 127.0.0.1:8600" },
		{ "[server]\nlisten = 127.0.0.1:8601\n[admin]\n",
		    "main.conf:2: [server] listen: \"127.0.0.1:8601\" is taken"
		    " by the default of [admin] listen" },
		{ "[server]\nlisten = a:1\nlisten = a:01\n",
		    "main.conf:3: [server] listen: \"a:01\" is taken by"
		    " [server]" },
		{ "[guard]\nlisten = unix:/s\n[admin]\nlisten = unix:/s\n",
		    "is taken by [admin] listen = unix:/s in " },
		{ "[server]\nlisten = 0.0.0.0:7\n[admin]\n"
		  "listen = 127.0.0.1:7\n",
		    "main.conf:4: [admin] listen: \"127.0.0.1:7\" is taken" },
		{ "[server]\nlisten = 10.0.0.1:7\n[guard]\nlisten = [::]:7\n",
		    "main.conf:4: [guard] listen: \"[::]:7\" is taken" },
		{ "[server]\nlisten = a:1; first\n",
		    "a comment behind a value begins with \" ;\", a blank" },
		{ "[server]\nlisten = 127.0.0.1:8601\n", NULL },
		{ "[server]\nlisten = 127.0.0.1:0\n[admin]\n"
		  "listen = 127.0.0.1:0\n",
		    NULL },
		{ "[server]\nlisten = 127.0.0.1:7\nlisten = [::1]:7\n"
		  "listen = 127.0.0.2:7\nlisten = 127.0.0.1:70\n",
		    NULL },
		{ "[server]\nlisten = 0.0.0.0:7\nlisten = [::1]:7\n", NULL },
	};

	for (size_t i = 0; i < PN_COUNT(rows); i++)
		if (rows[i].because == NULL)
			(void)folder_accept(*state, rows[i].text);
		else
			folder_refuse(*state, rows[i].text, rows[i].because);
}

/* An operator wonders why nothing runs while commits are slow: a lease that is
 * over before its commit is known is none. */
static void
test_conf_check__a_lease_should_outlast_the_commit(void **state)
{
	static const char route[] = "[guard]\n"
				    "[guard a]\n"
				    "path = POST /a\n"
				    "upstream = http://127.0.0.1:9/\n"
				    "tenant = shop1\n";
	const struct pn_conf *conf;
	char text[512];

	(void)snprintf(text, sizeof(text), "%slease = 2s\n", route);
	conf = folder_accept(*state, text);
	assert_non_null(strstr(conf->warnings,
	    "[guard a] lease is not longer than [server] commit_timeout"));
	(void)snprintf(text, sizeof(text), "%slease = 2001ms\n", route);
	conf = folder_accept(*state, text);
	assert_null(conf->warnings);
}

/* Fails if one payment could be two events without a word, or if sections were
 * doubted that have good reason to share a number. */
static void
test_conf_check__accounts_that_meet_are_warned_of(void **state)
{
	static const struct {
		const char *second;
		bool meets; /* [alipay a] or [wechat a] */
	} rows[] = {
		{ "[alipay b]\napp_id = 2021000000000001\npublic_key = k\n",
		    true },
		{ "[alipay b]\napp_id = 2021000000000001\npublic_key = k\n"
		  "seller_id = 2088000000000002\n",
		    false },
		{ "[alipay b]\napp_id = 2021000000000001\npublic_key = k\n"
		  "seller_id = 2088000000000001\n",
		    true },
		{ "[alipay b]\napp_id = 2021000000000002\npublic_key = k\n",
		    false },
		{ "[alipay b]\napp_id = 2021000000000001\npublic_key = k2\n",
		    false },
		{ "[wechat b]\nmchid = 10000100\napi_v2_key_file = key\n",
		    true },
		{ "[wechat b]\nmchid = 10000100\napi_v2_key_file = key2\n",
		    false },
		{ "[wechat b]\nmchid = 10000101\napi_v2_key_file = key\n",
		    false },
		{ "[wechat b]\nmchid = 10000100\napi_v2_key_file = key\n"
		  "appid = wx2421b1c4370ec43b\n",
		    false },
		{ "[wechat b]\nmchid = 10000100\napi_v2_key_file = key2\n"
		  "api_v3_key_file = key\npublic_key = PUB_KEY_ID_1:k\n",
		    true },
	};
	char text[1024];
	const char *warnings;

	folder_write(*state, "k", "key", 0644);
	folder_write(*state, "k2", "other", 0644);
	folder_write(*state, "key", "12345678901234567890123456789012", 0600);
	folder_write(*state, "key2", "22345678901234567890123456789012", 0600);
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		(void)snprintf(text, sizeof(text),
		    ALIPAY "app_id = 2021000000000001\n"
			   "seller_id = 2088000000000001\n" WECHAT
			   "mchid = 10000100\n"
			   "appid = wx2421b1c4370ec43a\n%s",
		    rows[i].second);
		warnings = folder_accept(*state, text)->warnings;
		assert_int_equal(warnings != NULL, rows[i].meets);
		if (rows[i].meets)
			assert_non_null(strstr(warnings,
			    " a notification that is sent to both is an event"
			    " of each"));
	}
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf_check__unlikely_ids_and_types_are_warned_of),
		TEST(test_conf_check__a_lease_should_outlast_the_commit),
		TEST(test_conf_check__accounts_that_meet_are_warned_of),
		TEST(test_conf_check__an_address_has_one_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
