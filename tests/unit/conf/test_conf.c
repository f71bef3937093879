/*
 * The text of a configuration: what it means, and what is refused with which
 * words. Files and their permissions are in test_conf_files.c.
 */
#include "conf_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "paynotify/conf_option_doc.h"

#define ALIPAY                        \
	"[alipay shop1]\n"            \
	"app_id = 2021000000000001\n" \
	"public_key = key.pem\n"

/* A default that is not what the manual says would surprise every operator. */
static void
test_conf__defaults_are_those_of_the_manual(void **state)
{
	const struct pn_conf *conf = folder_accept(*state, "");

	assert_int_equal(conf->server.listen.count, 1);
	assert_string_equal(conf->server.listen.values[0], "127.0.0.1:8600");
	assert_int_equal(conf->server.threads, 0);
	assert_int_equal(conf->server.max_body_bytes, 65536);
	assert_int_equal(conf->server.max_connections, 4096);
	assert_int_equal(conf->server.max_connections_per_peer, 256);
	assert_int_equal(conf->server.idle_timeout_us, 15000000);
	assert_int_equal(conf->server.request_timeout_us, 10000000);
	assert_int_equal(conf->server.commit_timeout_us, 2000000);
	assert_int_equal(conf->server.rate_limit_per_second, 0);
	assert_int_equal(conf->server.trusted_proxies.count, 1);
	assert_int_equal(conf->admin.listen.count, 0);
	assert_string_equal(
	    conf->database.dsn, "host=/run/postgresql dbname=paynotify");
	assert_null(conf->database.admin_dsn);
	assert_int_equal(conf->database.writers, 1);
	assert_false(conf->database.require_sync);
	assert_int_equal(conf->retention.key_hot_us, 259200000000);
	assert_int_equal(conf->retention.receipts_us, 7776000000000);
	assert_int_equal(conf->retention.evidence_us, 94608000000000);
	assert_int_equal(conf->account_count, 0);
}

/* An admin port that opens unasked is a hole; one asked for must open. */
static void
test_conf__admin_port_only_with_its_section(void **state)
{
	const struct pn_conf *conf = folder_accept(*state, "[admin]\n");

	assert_int_equal(conf->admin.listen.count, 1);
	assert_string_equal(conf->admin.listen.values[0], "127.0.0.1:8601");
}

/* The sample of the manual must mean what it says, comments and all. */
static void
test_conf__reads_every_kind_of_value(void **state)
{
	const struct pn_conf *conf = folder_accept(*state,
	    "\xef\xbb\xbf# comment\r\n"
	    "[server] ; comment\r\n"
	    "listen = [::]:80\n"
	    "  listen=pay.example.org:8600   ; comment\n"
	    "listen = unix:run/pn.sock\n"
	    "threads = 8\n"
	    "max_body = 1m\n"
	    "idle_timeout = 500ms\n"
	    "rate_limit = 20/s\n"
	    "trusted_proxies = 10.0.0.0/8\n"
	    "trusted_proxies = 2400:b200::/32\n"
	    "\t [ database ]\n"
	    "dsn = host=a,b password=x;y target_session_attrs=read-write\n"
	    "require_sync = yes\n"
	    "[retention]\n"
	    "key_hot = 4d\n"
	    "receipts = 1d\n"
	    "evidence = 10y\n"
	    "[log]\nlevel = warning\nformat = json\n"
	    "debug = store\ndebug = http");
	struct folder *folder = *state;
	char socket[256];

	(void)snprintf(
	    socket, sizeof(socket), "unix:%s/run/pn.sock", folder->path);
	assert_int_equal(conf->server.listen.count, 3);
	assert_string_equal(conf->server.listen.values[0], "[::]:80");
	assert_string_equal(
	    conf->server.listen.values[1], "pay.example.org:8600");
	assert_string_equal(conf->server.listen.values[2], socket);
	assert_int_equal(conf->server.listen.places[1].line, 4);
	assert_int_equal(conf->server.threads, 8);
	assert_int_equal(conf->server.max_body_bytes, 1 << 20);
	assert_int_equal(conf->server.idle_timeout_us, 500000);
	assert_int_equal(conf->server.rate_limit_per_second, 20);
	assert_int_equal(conf->server.trusted_proxies.count, 2);
	assert_string_equal(conf->database.dsn,
	    "host=a,b password=x;y target_session_attrs=read-write");
	assert_true(conf->database.require_sync);
	assert_int_equal(conf->retention.key_hot_us, 345600000000);
	assert_int_equal(conf->retention.receipts_us, 86400000000);
	assert_int_equal(conf->retention.evidence_us, 315360000000000);
	assert_int_equal(conf->log.debug, 0x140); /* store, http */
}

/* inih cuts at 200 bytes by default: a DSN that lost its end connects to the
 * wrong place. */
static void
test_conf__long_lines_are_whole_or_refused(void **state)
{
	enum { DSN_BYTES = 4000, TOO_LONG = PN_CONF_LINE_BYTES_MAX + 1 };
	char dsn[TOO_LONG + 1] = "", text[TOO_LONG + 64];
	const struct pn_conf *conf;

	memset(dsn, 'x', TOO_LONG);
	(void)snprintf(text, sizeof(text), "[database]\ndsn = %.*s\n%s",
	    (int)DSN_BYTES, dsn, "writers = 2\n");
	conf = folder_accept(*state, text);
	assert_int_equal(strlen(conf->database.dsn), DSN_BYTES);
	assert_int_equal(conf->database.writers, 2);
	(void)snprintf(text, sizeof(text), "[database]\ndsn = %s\n", dsn);
	folder_refuse(*state, text, "main.conf:2: line of 4103 bytes");
}

/* A NUL ends a line for C, and what an editor shows behind it is lost. */
static void
test_conf__nul_bytes_are_refused(void **state)
{
	static const char text[] = "[server]\nthreads = 2\0 2\n";
	struct folder *folder = *state;
	FILE *out;

	folder_write(folder, "main.conf", "", 0600);
	out = fopen(folder_path(folder, "main.conf"), "w");
	assert_non_null(out);
	assert_int_equal(
	    fwrite(text, 1, sizeof(text) - 1, out), sizeof(text) - 1);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(folder_load(folder, NULL), -EINVAL);
	assert_non_null(strstr(folder->error.text, "main.conf:2: NUL byte"));
}

/* A mistake whose place is not told costs an operator the evening. */
static void
test_conf__errors_say_file_line_and_what_was_meant(void **state)
{
	static const char *const cases[][2] = {
		{ "[server]\n\nlisen = a:1\n",
		    "main.conf:3: [server] unknown option \"lisen\"; did you"
		    " mean \"listen\"?" },
		{ "[server]\ndsn = x\n",
		    "main.conf:2: [server] unknown option \"dsn\"; it belongs"
		    " in [database]" },
		{ "[server]\nnonsense = 1\n",
		    "main.conf:2: [server] unknown option \"nonsense\"" },
		{ "[sever]\n", "main.conf:1: unknown section \"sever\"; did"
			       " you mean \"server\"?" },
		{ "[Server]\n", "did you mean \"server\"?" },
		{ "[refunds charges]\n", "main.conf:1: unknown section" },
		{ "[server]\norder_check = off\n", "unknown option" },
		{ "[server x]\n", "takes no second word" },
		{ "[alipay]\n", "needs the tenant's name" },
		{ "[alipay Shop]\n", "tenant \"Shop\" must be 1 to 32 of" },
		{ "[alipay a b]\n", "tenant \"a b\" must be" },
		{ "[alipay abcdefghijklmnopqrstuvwxyz0123456]\n", "tenant" },
		{ "[server\n", "main.conf:1: no \"]\"" },
		{ "[server] threads = 1\n", "behind the section's name" },
		{ "threads = 1\n", "main.conf:1: option \"threads\" stands"
				   " before any section" },
		{ "[server]\nthreads\n", "main.conf:2: no \"=\" in"
					 " \"threads\"" },
		{ "[server]\n= 1\n", "main.conf:2: no option before" },
		{ "[server]\n[database]\n[server]\n",
		    "main.conf:3: section [server] stands twice, first in" },
		{ "[server]\nthreads = 1\nthreads = 1\n",
		    "main.conf:3: [server] threads is given twice" },
		{ "[server]\ninclude = x\n", "include stands at the top" },
	};

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		folder_refuse(*state, cases[i][0], cases[i][1]);
}

/* A value half understood is a setting nobody chose. */
static void
test_conf__values_are_whole_and_in_range(void **state)
{
	static const char *const cases[][2] = {
		{ "[server]\nthreads = 1 2\n", "main.conf:2: threads: \"1 2\""
					       " is not a number" },
		{ "[server]\nthreads = 2 # two\n", "begins with \" ;\"" },
		{ "[server]\nthreads =\n", "threads: \"\" is not a number" },
		{ "[server]\nthreads = 257\n", "not within 0 and 256" },
		{ "[server]\nmax_body = 2m\n", "not within 1024 and 1048576" },
		{ "[server]\nmax_body = 64 k\n", "is not a size" },
		{ "[server]\nidle_timeout = 15\n", "is not a duration" },
		{ "[server]\ncommit_timeout = 2m\n", "not within 1ms and 1m" },
		{ "[retention]\nreceipts = 23h\n", "within 1d and 100y" },
		{ "[retention]\nevidence = 101y\n", "within 1d and 100y" },
		{ "[server]\nrate_limit = 20\n", "is not a rate" },
		{ "[server]\nrate_limit = 0/s\n", "not within 1 and" },
		{ "[server]\nrate_limit = 5/m\n", "is not a rate" },
		{ "[server]\nlisten = 8600\n", "is not host:port" },
		{ "[server]\nlisten = :8600\n", "is not host:port" },
		{ "[server]\nlisten = ::1:8600\n", "IPv6 stands in []" },
		{ "[server]\nlisten = a:65536\n", "is not host:port" },
		{ "[server]\nlisten = a:1, b:2\n", "repeat the key" },
		{ "[server]\ntrusted_proxies = 10.0.0.0/33\n", "is not an" },
		{ "[server]\ntrusted_proxies = 10.0.0/8\n", "is not an" },
		{ "[server]\ntrusted_proxies = 10.0.0.0/\n", "is not an" },
		/* An empty list would be everybody. */
		{ "[alipay x]\nallow = none\n", "is not an" },
		{ "[database]\ndsn =\n", "dsn: \"\" is not a value" },
		{ "[database]\nwriters = 0\n", "not within 1 and 16" },
		{ "[database]\nrequire_sync = maybe\n", "not yes or no" },
		{ ALIPAY "sign_type = RSA3\n", "sign_type: \"RSA3\" is not"
					       " RSA2 or RSA" },
		{ ALIPAY "sign_type = rsa\n", "is not RSA2 or RSA" },
		{ "[alipay a]\napp_id = 1, 2\n", "repeat the key" },
		{ "[wechat a]\npublic_key = key.pem\n",
		    "main.conf:2: public_key: \"key.pem\" is not"
		    " PUB_KEY_ID_...:FILE" },
		{ "[wechat a]\npublic_key = PUB_KEY_ID_01\n", "is not PUB" },
	};

	folder_write(*state, "key.pem", "key", 0644);
	for (size_t i = 0; i < PN_COUNT(cases); i++)
		folder_refuse(*state, cases[i][0], cases[i][1]);
}

/* Told one at a time, ten mistakes are ten failed starts. */
static void
test_conf__all_errors_are_told_at_once(void **state)
{
	struct folder *folder = *state;
	static const char header[] = "[server]\n", line[] = "zzzzzz = 1\n";
	char text[8192];
	size_t len = strlen(header);

	folder_refuse(folder,
	    "x = 1\n[server]\nthreads = a\ny = 2\n[alipay shop1]\n",
	    "main.conf:1: ");
	assert_non_null(strstr(folder->error.text, "\n"));
	assert_non_null(strstr(folder->error.text, "main.conf:3: "));
	assert_non_null(strstr(folder->error.text, "main.conf:4: "));
	assert_non_null(strstr(folder->error.text,
	    "main.conf:5: [alipay shop1] app_id is required"));
	assert_non_null(strstr(
	    folder->error.text, "[alipay shop1] public_key is required"));
	memcpy(text, header, len);
	for (size_t i = 0; i < 200; i++, len += strlen(line))
		memcpy(text + len, line, sizeof(line));
	folder_refuse(folder, text, "... and ");
	assert_true(strlen(folder->error.text) < PN_ERROR_TEXT_BYTES_MAX);
	assert_non_null(strstr(folder->error.text, " more errors"));
}

/* Without a bound, a generated file of a million accounts is a start that
 * never ends; it must say so, not cut the rest off. */
static void
test_conf__too_many_accounts_are_refused(void **state)
{
	enum { LINE_BYTES = 32 };
	size_t size = (size_t)(PN_CONF_ACCOUNTS_MAX + 1) * LINE_BYTES, len = 0;
	char *text = calloc(1, size);

	assert_non_null(text);
	for (int i = 0; i <= PN_CONF_ACCOUNTS_MAX; i++)
		len += (size_t)snprintf(
		    text + len, size - len, "[alipay s%d]\n", i);
	folder_refuse(*state, text, "[alipay s0] app_id is required");
	folder_write(*state, "main.conf", text, 0600);
	assert_int_equal(folder_load(*state, "alipay/s0"), -EINVAL);
	assert_non_null(strstr(((struct folder *)*state)->error.text,
	    "main.conf:4097: more than 4096 sections"));
	free(text);
}

/* A list that loses a value while it grows loses an application's payments;
 * one without a bound is no bound. */
static void
test_conf__lists_grow_to_their_maximum(void **state)
{
	const struct pn_conf_strings *ids;
	char text[8192] = ALIPAY "seller_id = 2088\n";
	size_t len = strlen(text);

	folder_write(*state, "key.pem", "key", 0644);
	for (int i = 1; i < PN_CONF_REPEAT_MAX; i++)
		len += (size_t)snprintf(
		    text + len, sizeof(text) - len, "app_id = a%d\n", i);
	ids = &folder_accept(*state, text)->accounts[0].alipay.app_id;
	assert_int_equal(ids->count, PN_CONF_REPEAT_MAX);
	assert_string_equal(ids->values[0], "2021000000000001");
	for (int i = 1; i < PN_CONF_REPEAT_MAX; i++) {
		char want[16];

		(void)snprintf(want, sizeof(want), "a%d", i);
		assert_string_equal(ids->values[i], want);
		assert_int_equal(ids->places[i].line, 4 + i);
	}
	(void)snprintf(text + len, sizeof(text) - len, "app_id = more\n");
	folder_refuse(*state, text, "main.conf:68: app_id: more than 64");
}

/* An account that silently is none refuses a shop's payments for a day. */
static void
test_conf__an_empty_account_is_an_error(void **state)
{
	folder_refuse(*state, "[alipay shop1]",
	    "main.conf:1: [alipay shop1] app_id is required");
	folder_refuse(*state, "[wechat shop1]\n[alipay shop1]\n",
	    "main.conf:1: [wechat shop1] mchid is required");
}

/* What only the options together say. */
static void
test_conf__accounts_must_be_able_to_verify(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";

	folder_write(*state, "key.pem", "key", 0644);
	folder_write(*state, "v3", secret, 0600);
	folder_refuse(*state, "[wechat a]\nmchid = 1\n",
	    "main.conf:1: [wechat a] no way to verify");
	folder_refuse(*state, "[wechat a]\nmchid = 1\napi_v3_key_file = v3\n",
	    "public_key or platform_cert is required");
	folder_refuse(*state,
	    "[wechat a]\nmchid = 1\nplatform_cert ="
	    " key.pem\napi_v2_key_file = v3\n",
	    "api_v3_key_file is required");
	folder_refuse(*state, ALIPAY "app_id = 2\n",
	    "seller_id is required with several app_ids");
	(void)folder_accept(*state, ALIPAY "app_id = 2\nseller_id = 3\n");
	(void)folder_accept(
	    *state, "[wechat a]\nmchid = 1\napi_v2_key_file = v3\n");
}

/* The accounts are found by provider and tenant, and by nothing less. */
static void
test_conf__accounts_are_found_by_both_names(void **state)
{
	static const char account[] = "app_id = 1\npublic_key = key.pem\n";
	const struct pn_conf_account *found;
	const struct pn_conf *conf;
	char text[1024];

	folder_write(*state, "key.pem", "key", 0644);
	folder_write(
	    *state, "v2", "0123456789abcdef0123456789abcdef\r\n", 0600);
	(void)snprintf(text, sizeof(text),
	    "[wechat b]\nmchid = 1900000109\nappid = wx1\nappid = wx2\n"
	    "api_v2_key_file = v2\nv2_sign_type = HMAC-SHA256\n"
	    "timestamp_tolerance = 1m\n"
	    "[alipay b]\n%s[alipay\ta-1]\n%stest = yes\nsign_type = RSA\n",
	    account, account);
	conf = folder_accept(*state, text);
	assert_int_equal(conf->account_count, 3);
	found = pn_conf_account_find(conf, PN_STR("alipay"), PN_STR("a-1"));
	assert_non_null(found);
	assert_true(found->test);
	assert_int_equal(found->alipay.sign_type, PN_SIGN_RSA);
	assert_int_equal(found->place.line, 11);
	found = pn_conf_account_find(conf, PN_STR("wechat"), PN_STR("b"));
	assert_non_null(found);
	assert_string_equal(found->provider, "wechat");
	assert_string_equal(found->wechat.mchid.values[0], "1900000109");
	assert_int_equal(found->wechat.appid.count, 2);
	assert_int_equal(found->wechat.v2_sign_type, PN_V2_SIGN_HMAC_SHA256);
	assert_int_equal(found->wechat.timestamp_tolerance_us, 60000000);
	assert_int_equal(
	    found->wechat.api_v2_key_file.files[0].content.len, 32);
	assert_null(
	    pn_conf_account_find(conf, PN_STR("wechat"), PN_STR("a-1")));
	assert_null(
	    pn_conf_account_find(conf, PN_STR("alipay"), PN_STR("b\0c")));
	assert_null(pn_conf_account_find(conf, PN_STR(""), PN_STR("")));
}

/* Verifying a capture offline must not need the server's other secrets. */
static void
test_conf__one_account_needs_only_its_section(void **state)
{
	struct folder *folder = *state;

	folder_write(folder, "key.pem", "key", 0644);
	folder_write(folder, "main.conf",
	    ALIPAY "[wechat x]\nmchid = 1\napi_v3_key_file = missing\n", 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), 0);
	assert_int_equal(folder->conf->account_count, 1);
	assert_int_equal(folder_load(folder, NULL), -EINVAL);
	assert_int_equal(folder_load(folder, "alipay/other"), -EINVAL);
	assert_non_null(
	    strstr(folder->error.text, "no section [alipay other]"));
	folder_write(
	    folder, "main.conf", ALIPAY "[wechat x]\nmchidd = 1\n", 0600);
	assert_int_equal(folder_load(folder, "alipay/shop1"), -EINVAL);
}

/* Believing the wrong peer lets anyone choose his address. */
static void
test_conf__address_blocks_hold_what_they_should(void **state)
{
	const struct pn_conf *conf = folder_accept(*state,
	    "[server]\ntrusted_proxies = 10.1.0.0/15\n"
	    "trusted_proxies = 192.0.2.7\ntrusted_proxies = fd00::/8\n");
	const struct pn_conf_cidrs *cidrs = &conf->server.trusted_proxies;
	const struct pn_conf_cidrs none = { NULL, 0 };

	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("10.0.255.255")));
	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("10.1.0.1")));
	assert_false(pn_conf_cidrs_match(cidrs, PN_STR("10.2.0.1")));
	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("192.0.2.7")));
	assert_false(pn_conf_cidrs_match(cidrs, PN_STR("192.0.2.6")));
	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("::ffff:10.1.2.3")));
	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("fdab::1")));
	assert_false(pn_conf_cidrs_match(cidrs, PN_STR("fe80::1")));
	assert_false(pn_conf_cidrs_match(cidrs, PN_STR("localhost")));
	assert_true(pn_conf_cidrs_match(cidrs, PN_STR("")));
	assert_false(pn_conf_cidrs_match(&none, PN_STR("")));
	assert_false(pn_conf_cidrs_match(&none, PN_STR("10.0.0.1")));
	conf = folder_accept(*state, "[server]\ntrusted_proxies = none\n");
	assert_int_equal(conf->server.trusted_proxies.count, 0);
}

/* A section in which one more option may follow. */
static const char *
section_text(const char *section)
{
	if (strcmp(section, "alipay") == 0)
		return ALIPAY;
	if (strcmp(section, "wechat") == 0)
		return "[wechat a]\nmchid = 1\napi_v2_key_file = v2\n";
	if (strcmp(section, "deliver") == 0)
		return "[deliver a]\nurl = https://a/\nsecret_file = v2\n";
	if (strcmp(section, "guard NAME") == 0)
		return "[guard]\n[guard a]\npath = POST /a\ntenant = a\n"
		       "upstream = https://a/\n";
	return NULL;
}

/* An option without words in the manual does not exist for an operator; a
 * documented default that is refused is a lie. */
static void
test_conf__every_option_is_documented_and_its_default_parses(void **state)
{
	folder_write(*state, "key.pem", "key", 0644);
	folder_write(*state, "v2", "0123456789abcdef0123456789abcdef", 0600);
	assert_true(pn_conf_option_count() > 20);
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		struct pn_conf_option_doc doc = pn_conf_option_doc(i);
		const char *head = section_text(doc.section);
		char section[64], text[512];

		assert_true(strlen(doc.doc) > 10);
		assert_true(strlen(doc.type) > 0);
		assert_false(doc.required && doc.default_value != NULL);
		for (size_t j = 0; j < i; j++)
			assert_false(
			    strcmp(pn_conf_option_doc(j).section,
				doc.section) == 0 &&
			    strcmp(pn_conf_option_doc(j).key, doc.key) == 0);
		if (doc.default_value == NULL)
			continue;
		(void)snprintf(section, sizeof(section), "[%s]\n", doc.section);
		(void)snprintf(text, sizeof(text), "%s%s = %s\n",
		    head != NULL ? head : section, doc.key, doc.default_value);
		(void)folder_accept(*state, text);
	}
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf__defaults_are_those_of_the_manual),
		TEST(test_conf__admin_port_only_with_its_section),
		TEST(test_conf__reads_every_kind_of_value),
		TEST(test_conf__long_lines_are_whole_or_refused),
		TEST(test_conf__nul_bytes_are_refused),
		TEST(test_conf__errors_say_file_line_and_what_was_meant),
		TEST(test_conf__values_are_whole_and_in_range),
		TEST(test_conf__all_errors_are_told_at_once),
		TEST(test_conf__too_many_accounts_are_refused),
		TEST(test_conf__lists_grow_to_their_maximum),
		TEST(test_conf__an_empty_account_is_an_error),
		TEST(test_conf__accounts_must_be_able_to_verify),
		TEST(test_conf__accounts_are_found_by_both_names),
		TEST(test_conf__one_account_needs_only_its_section),
		TEST(test_conf__address_blocks_hold_what_they_should),
		TEST(
		    test_conf__every_option_is_documented_and_its_default_parses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
