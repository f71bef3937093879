/*
 * What a reload finds changed. If these fail, endpoints go on with secrets that
 * were rotated away, are exchanged for nothing, or an operator waits for what only
 * a restart applies.
 */
#include "conf_files.h"

#include <stdio.h>

#include "paynotify/conf_change.h"

#define ENDPOINT                      \
	"[deliver app]\n"             \
	"url = http://127.0.0.1:1/\n" \
	"secret_file = secret\n"
#define ROUTE "[guard]\n" ROUTE_ALONE
#define ROUTE_ALONE                        \
	"[guard charges]\n"                \
	"path = POST /c\ntenant = shop1\n" \
	"upstream = http://127.0.0.1:1/\n"

static struct pn_conf *
take(void *folder, const char *text)
{
	(void)folder_accept(folder, text);
	return pn_conf_ref(((struct folder *)folder)->conf);
}

static void
test_conf_change__endpoints_differ_in_any_option_and_file(void **state)
{
	static const struct {
		const char *text, *secret;
		bool differs;
	} rows[] = {
		{ ENDPOINT, "one", false },
		{ "[server]\nthreads = 2\n\n" ENDPOINT, "one", false },
		{ ENDPOINT, "two", true },
		{ ENDPOINT "timeout = 1s\n", "one", true },
		{ ENDPOINT "types = payment.*\n", "one", true },
		{ "", "one", true },
		{ ENDPOINT "[deliver b]\nurl = http://127.0.0.1:1/\n"
			   "secret_file = secret\n",
		    "one", true },
	};
	struct pn_conf *first, *next;

	folder_write(*state, "secret", "one", 0600);
	first = take(*state, ENDPOINT);
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		folder_write(*state, "secret", rows[i].secret, 0600);
		next = take(*state, rows[i].text);
		assert_int_equal(
		    pn_conf_endpoints_differ(first, next), rows[i].differs);
		assert_int_equal(
		    pn_conf_endpoints_differ(next, first), rows[i].differs);
		pn_conf_unref(next);
	}
	pn_conf_unref(first);
}

static void
note(const char *section, const char *key, void *payload)
{
	char *said = payload;
	size_t len = strlen(said);

	(void)snprintf(said + len, 256 - len, "[%s]%s%s;", section,
	    key == NULL ? "" : " ", key == NULL ? "" : key);
}

static void
test_conf_change__what_waits_for_a_restart_is_named(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "", "" },
		{ "[alipay shop1]\napp_id = 1\npublic_key = secret\n", "" },
		{ "[server]\nthreads = 3\nmax_body = 32k\n",
		    "[server] threads;[server] max_body;" },
		{ "[server]\nlisten = 127.0.0.1:1\n", "[server] listen;" },
		{ "[server]\ntrusted_proxies = 10.0.0.0/8\n",
		    "[server] trusted_proxies;" },
		{ "[database]\ndsn = dbname=x\nrequire_sync = yes\n",
		    "[database] dsn;[database] require_sync;" },
		{ ROUTE, "[guard];[guard charges];" },
		{ "[admin]\n", "[admin];" },
	};
	static const struct {
		const char *text, *said;
	} of_route[] = {
		{ ROUTE, "" },
		{ ROUTE "unknown = hold\n", "[guard charges] unknown;" },
		{ "[guard]\nlisten = 127.0.0.1:1\n" ROUTE_ALONE,
		    "[guard] listen;" },
		{ "[guard]\nmax_body = 2k\n" ROUTE_ALONE, "[guard] max_body;" },
		{ "", "[guard];[guard charges];" },
	};
	struct pn_conf *first, *next;

	folder_write(*state, "secret", "key", 0600);
	first = take(*state, "");
	for (size_t i = 0; i < PN_COUNT(rows); i++) {
		char said[256] = "";

		next = take(*state, rows[i].text);
		pn_conf_tell_restart(first, next, note, said);
		assert_string_equal(said, rows[i].said);
		pn_conf_unref(next);
	}
	pn_conf_unref(first);
	first = take(*state, ROUTE);
	for (size_t i = 0; i < PN_COUNT(of_route); i++) {
		char said[256] = "";

		next = take(*state, of_route[i].text);
		pn_conf_tell_restart(first, next, note, said);
		assert_string_equal(said, of_route[i].said);
		pn_conf_unref(next);
	}
	pn_conf_unref(first);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_conf_change__endpoints_differ_in_any_option_and_file),
		TEST(test_conf_change__what_waits_for_a_restart_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
