/*
 * Tenants. If these fail, a client chooses whose keys it uses: it reads another
 * one's answers, or blocks them.
 */
#include "guard_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/encode.h"

static char path[] = "keys.txt";

/* The file of what keys_add() wrote. */
static struct pn_conf_file
key_file(const struct pn_buf *text)
{
	return (struct pn_conf_file){ .path = path,
		.place = { "g.conf", 4 },
		.content = { (unsigned char *)text->data, text->len } };
}

static void
keys_add(struct pn_buf *text, const char *api_key, const char *behind)
{
	unsigned char digest[PN_SHA256_BYTES];
	char hex[2 * PN_SHA256_BYTES + 1];

	pn_sha256(pn_str_from(api_key), digest);
	pn_hex_lower(digest, sizeof(digest), hex);
	pn_buf_printf(text, "%s%s", hex, behind);
}

static struct pn_api_keys *
keys_of(const struct pn_buf *text)
{
	const struct pn_conf_file file = key_file(text);
	struct pn_api_keys *keys = NULL;
	struct pn_error error = { "" };

	if (pn_api_keys_open(&file, &keys, &error) != 0)
		fail_msg("%s", error.text);
	return keys;
}

static void
assert_refused(const struct pn_buf *text, const char *because)
{
	const struct pn_conf_file file = key_file(text);
	struct pn_api_keys *keys = NULL;
	struct pn_error error = { "" };

	assert_int_equal(pn_api_keys_open(&file, &keys, &error), -EINVAL);
	if (strstr(error.text, because) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, because);
}

/* -- the file --------------------------------------------------------------- */

/* A key is another tenant's, or not found among others. */
static void
test_tenant__keys_are_found(void **state)
{
	struct pn_buf text = pn_buf_init(1 << 20);
	struct pn_api_keys *keys;
	char name[32], key[32];
	struct pn_str tenant;

	(void)state;
	pn_buf_add_text(&text, "# who asks\n\n \t\r\n");
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(key, sizeof(key), "secret-%d", i);
		(void)snprintf(name, sizeof(name),
		    i % 2 == 0 ? " shop-%d\n" : "\t shop-%d # new\r\n", i);
		keys_add(&text, key, name);
	}
	keys_add(&text, "last", " a_tenant_of_the_longest_name-012");
	keys = keys_of(&text);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(key, sizeof(key), "secret-%d", i);
		(void)snprintf(name, sizeof(name), "shop-%d", i);
		tenant = pn_api_keys_find(keys, pn_str_from(key));
		assert_true(pn_str_is(tenant, name));
	}
	tenant = pn_api_keys_find(keys, PN_STR("last"));
	assert_true(pn_str_is(tenant, "a_tenant_of_the_longest_name-012"));
	assert_null(pn_api_keys_find(keys, PN_STR("secret-2000")).data);
	assert_null(pn_api_keys_find(keys, PN_STR("")).data);
	pn_api_keys_close(keys);
	pn_buf_done(&text);
}

/* A mistake in the file locks a client out, silently; or stands in a log. */
static void
test_tenant__bad_lines_are_told_by_line(void **state)
{
	static const struct {
		const char *behind, *because;
	} cases[] = {
		{ "", "keys.txt:3: the line is not a SHA-256" },
		{ "x shop\n", "keys.txt:3: the line is not a SHA-256" },
		{ " \n", "keys.txt:3: the line is not a SHA-256" },
		{ " # shop\n", "keys.txt:3: the line is not a SHA-256" },
		{ " Shop\n", "keys.txt:3: the line has no tenant" },
		{ " a shop\n", "keys.txt:3: the line has no tenant" },
		{ " a_tenant_of_the_longest_name-0123\n", "has no tenant" },
		{ " sh\xc3\xb6p\n", "has no tenant" },
	};
	struct pn_buf text = pn_buf_init(1 << 20);

	(void)state;
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		pn_buf_reset(&text);
		pn_buf_add_text(&text, "#\n\n");
		keys_add(&text, "k", cases[i].behind);
		assert_refused(&text, cases[i].because);
	}
	pn_buf_reset(&text);
	pn_buf_add_text(&text, "my-secret-api-key shop\n");
	assert_refused(&text, "keys.txt:1: the line is not a SHA-256");
	pn_buf_reset(&text);
	pn_buf_printf(&text, "%064d shop\n%063dg shop\n", 0, 0);
	assert_refused(&text, "keys.txt:2: ");
	pn_buf_reset(&text);
	pn_buf_add_text(&text, "# none yet\n");
	assert_refused(&text, "keys.txt:1: the file has no API key");
	pn_buf_done(&text);
}

/* One key of two tenants: which one it is depends on the sort. */
static void
test_tenant__one_key_twice_is_refused(void **state)
{
	struct pn_buf text = pn_buf_init(1 << 20);

	(void)state;
	keys_add(&text, "k", " a\n");
	keys_add(&text, "l", " a\n");
	keys_add(&text, "m", " a\n");
	keys_add(&text, "k", " b\n");
	assert_refused(&text, "keys.txt:4: the API key stands in line 1 too");
	pn_buf_done(&text);
}

/* -- a request's tenant ----------------------------------------------------- */

static enum pn_problem
tenant(const struct pn_guard_route *route, bool from_proxy,
    const struct pn_header *headers, size_t count, struct pn_str *ret_tenant)
{
	const struct pn_call call = { .request = { .headers = headers,
					  .header_count = count },
		.from_proxy = from_proxy };

	*ret_tenant = (struct pn_str){ NULL, 0 };
	return pn_guard_tenant(route, &call, ret_tenant);
}

/* A client's own header is believed, or one of two chosen. */
static void
test_tenant__header_is_a_proxys(void **state)
{
	char name[] = "X-Tenant";
	char *names[] = { name };
	char long_name[130];
	const struct pn_conf_guard_route conf = { .tenant_header = {
						      names, NULL, 1 } };
	const struct pn_guard_route route = { .conf = &conf };
	struct pn_header headers[] = {
		{ PN_STR("x-tenant"), PN_STR("Shop 1/a") },
		{ PN_STR("X-TENANT"), PN_STR("shop2") },
	};
	struct pn_str got;

	(void)state;
	assert_int_equal(tenant(&route, true, headers, 1, &got), 0);
	assert_true(pn_str_is(got, "Shop 1/a"));
	assert_int_equal(tenant(&route, false, headers, 1, &got),
	    PN_PROBLEM_TENANT_UNTRUSTED);
	assert_int_equal(
	    tenant(&route, true, headers, 2, &got), PN_PROBLEM_TENANT_MISSING);
	assert_int_equal(
	    tenant(&route, true, headers, 0, &got), PN_PROBLEM_TENANT_MISSING);
	memset(long_name, 'a', sizeof(long_name));
	headers[0].value = (struct pn_str){ long_name, 128 };
	assert_int_equal(tenant(&route, true, headers, 1, &got), 0);
	headers[0].value.len = 129;
	assert_int_equal(
	    tenant(&route, true, headers, 1, &got), PN_PROBLEM_TENANT_MISSING);
	headers[0].value = PN_STR("");
	assert_int_equal(
	    tenant(&route, true, headers, 1, &got), PN_PROBLEM_TENANT_MISSING);
	headers[0].value = PN_STR("a\tb");
	assert_int_equal(
	    tenant(&route, true, headers, 1, &got), PN_PROBLEM_TENANT_MISSING);
	headers[0].value = PN_STR("a\x7f");
	assert_int_equal(
	    tenant(&route, true, headers, 1, &got), PN_PROBLEM_TENANT_MISSING);
	headers[0].value = PN_STR("sh\xc3\xb6p");
	assert_int_equal(
	    tenant(&route, true, headers, 1, &got), PN_PROBLEM_TENANT_MISSING);
}

/* A request without a key, or with two, is somebody's. */
static void
test_tenant__api_key_comes_once(void **state)
{
	static const struct {
		struct pn_str name, value;
		bool ok;
	} cases[] = {
		{ PN_STR("Authorization"), PN_STR("Bearer k"), true },
		{ PN_STR("authorization"), PN_STR("BEARER  k"), true },
		{ PN_STR("x-api-key"), PN_STR("k"), true },
		{ PN_STR("Authorization"), PN_STR("k"), false },
		{ PN_STR("Authorization"), PN_STR("Bearer"), false },
		{ PN_STR("Authorization"), PN_STR("Bearer "), false },
		{ PN_STR("Authorization"), PN_STR("Basic k"), false },
		{ PN_STR("Authorization"), PN_STR("Bearer x"), false },
		{ PN_STR("Authorization"), PN_STR("Bearer k k"), false },
		{ PN_STR("X-Api-Key"), PN_STR("Bearer k"), false },
		{ PN_STR("X-Api-Key"), PN_STR("K"), false },
		{ PN_STR("X-Api-Key"), PN_STR(""), false },
		{ PN_STR("X-Tenant"), PN_STR("shop"), false },
	};
	struct pn_buf text = pn_buf_init(1 << 20);
	const struct pn_conf_guard_route conf = { .name = NULL };
	struct pn_guard_route route = { .conf = &conf };
	struct pn_str got;

	(void)state;
	keys_add(&text, "k", " shop\n");
	keys_add(&text, "", " nobody\n");
	route.api_keys = keys_of(&text);
	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		const struct pn_header headers[] = {
			{ cases[i].name, cases[i].value },
			{ PN_STR("X-Api-Key"), PN_STR("k") },
		};

		if (tenant(&route, true, headers, 1, &got) !=
		    (cases[i].ok ? PN_PROBLEM_NONE : PN_PROBLEM_API_KEY))
			fail_msg("case %zu", i);
		assert_int_equal(got.data != NULL, cases[i].ok);
		if (cases[i].ok)
			assert_int_equal(tenant(&route, true, headers, 2, &got),
			    PN_PROBLEM_API_KEY);
	}
	pn_api_keys_close(route.api_keys);
	pn_buf_done(&text);
}

/* What a client says matters where it must not. */
static void
test_tenant__fixed(void **state)
{
	char name[] = "shop1";
	char *names[] = { name };
	const struct pn_conf_guard_route conf = { .tenant = {
						      names, NULL, 1 } };
	const struct pn_guard_route route = { .conf = &conf };
	const struct pn_header header = { PN_STR("X-Tenant"), PN_STR("x") };
	struct pn_str got;

	(void)state;
	assert_int_equal(tenant(&route, true, &header, 1, &got), 0);
	assert_true(pn_str_is(got, "shop1"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenant__keys_are_found),
		cmocka_unit_test(test_tenant__bad_lines_are_told_by_line),
		cmocka_unit_test(test_tenant__one_key_twice_is_refused),
		cmocka_unit_test(test_tenant__header_is_a_proxys),
		cmocka_unit_test(test_tenant__api_key_comes_once),
		cmocka_unit_test(test_tenant__fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
