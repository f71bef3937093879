/*
 * What is printed: no password, no escape sequence of a stranger, columns that
 * are columns also where names are Chinese, money in its currency's decimals.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl.h"

#include "paynotify/moment.h"

static void
assert_redacted(const char *dsn, const char *wanted)
{
	struct pn_buf out = pn_buf_init(4096);

	ctl_dsn_redact(dsn, &out);
	pn_buf_add_char(&out, '\0');
	assert_false(pn_buf_failed(&out));
	assert_string_equal(out.data, wanted);
	pn_buf_done(&out);
}

/* A complaint is pasted into tickets: the password must not be in it. */
static void
test_ctl_print__a_dsn_is_shown_without_its_password(void **state)
{
	(void)state;
	assert_redacted("host=/run/postgresql dbname=paynotify",
	    "host=/run/postgresql dbname=paynotify");
	assert_redacted("host=db password=geheim user=u", "host=db user=u");
	assert_redacted(
	    "host = db  password = 'it''s a \\' secret' port= 5433", "host=db");
	assert_redacted(
	    "host=db password='a b\\'c d' port=5433", "host=db port=5433");
	assert_redacted(
	    "host=db password=a\\ b port=5433", "host=db port=5433");
	assert_redacted(
	    "host=db sslpassword=x passfile=/p sslkey=k", "host=db");
	assert_redacted("postgresql://u:geheim@h:5432/d?target_session_attrs="
			"read-write&password=x&sslmode=disable",
	    "postgresql://u@h:5432/d?target_session_attrs=read-write");
	assert_redacted("postgres://u:ge/he@im@h/d", "postgres://u@h/d");
	assert_redacted("postgresql://u:ge?heim@h/d", "postgresql://...");
	assert_redacted("postgresql://u@h1,h2/d", "postgresql://u@h1,h2/d");
	assert_redacted(
	    "postgresql:///d?host=/run", "postgresql:///d?host=/run");
	assert_redacted("postgresql://", "postgresql://");
	assert_redacted("geheim", "");
	assert_redacted("", "");
}

static void
assert_clean(struct pn_str text, const char *wanted)
{
	struct pn_buf out = pn_buf_init(4096);

	ctl_add_clean(&out, text);
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data, wanted);
	pn_buf_done(&out);
}

/* An order title could otherwise rewrite what the operator sees. */
static void
test_ctl_print__text_from_outside_cannot_steer_the_terminal(void **state)
{
	(void)state;
	assert_clean(PN_STR("plain 中文 ok"), "plain 中文 ok");
	assert_clean(PN_STR("\033[2Jx\r\n\t\0y\x7f"),
	    "\\x1b[2Jx\\x0d\\x0a\\x09\\x00y\\x7f");
	assert_clean(PN_STR("\xc2\x9b"
			    "31m"),
	    "\\x9b"
	    "31m"); /* C1 CSI */
	assert_clean(PN_STR("\xe2\x80\xae"
			    "fdp"),
	    "\\u202e"
	    "fdp");
	assert_clean(PN_STR("\xff\xfe"), "\\xff\\xfe"); /* not UTF-8 */
	assert_clean(PN_STR("\xf0\x9f\x8e\x82"), "\xf0\x9f\x8e\x82");
}

/* A Chinese name takes two columns a character: what follows must still stand
 * under its title. */
static void
test_ctl_print__columns_stand_under_each_other(void **state)
{
	static const char *const titles[] = { "NAME", "N", "LAST" };
	struct ctl_table *table = ctl_table_new(titles, PN_COUNT(titles));
	struct pn_buf out = pn_buf_init(4096);

	(void)state;
	assert_non_null(table);
	assert_int_equal(ctl_table_cell(table, PN_STR("蛋糕店")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("1")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("x")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("ab")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("y")), 0);
	assert_int_equal(ctl_table_rows(table), 2);
	ctl_table_print(table, false, &out);
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data, "NAME    N  LAST\n"
				      "蛋糕店  1  x\n"
				      "ab      -  y\n");
	/* a later block keeps the widths and has no titles */
	pn_buf_reset(&out);
	for (int i = 0; i < 6; i++)
		assert_int_equal(ctl_table_cell(table,
				     i % 2 == 0 ? PN_STR("p") : PN_STR("q")),
		    0);
	ctl_table_print(table, true, &out);
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data, "q       p  q\np       q  p\n");
	ctl_table_free(table);
	pn_buf_done(&out);
}

/* "None" must not look like a time or a number: a script would take the one for
 * the other. */
static void
test_ctl_print__no_time_is_null_and_a_dash(void **state)
{
	static const char *const titles[] = { "AT", "N" };
	struct ctl_table *table = ctl_table_new(titles, PN_COUNT(titles));
	struct pn_buf out = pn_buf_init(4096);

	(void)state;
	pn_buf_add_char(&out, '{');
	ctl_add_time_member(&out, "a", PN_MOMENT_NONE);
	ctl_add_time_member(&out, "b", INT64_C(1772362806287123));
	ctl_add_bool(&out, "c", true);
	ctl_add_bool(&out, "d", false);
	pn_buf_add_text(&out, "}");
	assert_string_equal(out.data,
	    "{\"a\":null,\"b\":\"2026-03-01T11:00:06.287123Z\","
	    "\"c\":true,\"d\":false}");
	pn_buf_reset(&out);
	assert_non_null(table);
	assert_int_equal(ctl_table_time(table, PN_MOMENT_NONE), 0);
	assert_int_equal(ctl_table_number(table, INT64_MIN), 0);
	assert_int_equal(ctl_table_time(table, INT64_C(1772362806287123)), 0);
	assert_int_equal(ctl_table_number(table, 0), 0);
	ctl_table_print(table, false, &out);
	assert_string_equal(out.data, "AT                    N\n"
				      "-                     "
				      "-9223372036854775808\n"
				      "2026-03-01T11:00:06Z  0\n");
	ctl_table_free(table);
	pn_buf_done(&out);
}

static void
assert_money(int64_t minor, const char *currency, const char *wanted)
{
	struct pn_buf out = pn_buf_init(64);

	ctl_add_money(&out, minor, pn_str_from(currency));
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data, wanted);
	pn_buf_done(&out);
}

/* A yen has no fen: 8888 JPY shown as 88.88 would be a hundredth. */
static void
test_ctl_print__money_has_its_currencys_decimals(void **state)
{
	(void)state;
	assert_money(8888, "CNY", "88.88 CNY");
	assert_money(5, "CNY", "0.05 CNY");
	assert_money(0, "CNY", "0.00 CNY");
	assert_money(-105, "CNY", "-1.05 CNY");
	assert_money(8888, "JPY", "8888 JPY");
	assert_money(8888, "KWD", "8.888 KWD");
	assert_money(INT64_MAX, "CNY", "92233720368547758.07 CNY");
	assert_money(INT64_MIN, "CNY", "-92233720368547758.08 CNY");
}

/* JSON for programs must be JSON: commas between, none at the start. */
static void
test_ctl_print__members_make_an_object(void **state)
{
	struct pn_buf out = pn_buf_init(4096);

	(void)state;
	pn_buf_add_char(&out, '{');
	ctl_add_member(&out, "a", PN_STR("x\"{"));
	ctl_add_member(&out, "b", PN_STR(""));
	ctl_add_number(&out, "c", -1);
	pn_buf_add_text(&out, "}");
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data, "{\"a\":\"x\\\"{\",\"b\":null,\"c\":-1}");
	pn_buf_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_ctl_print__a_dsn_is_shown_without_its_password),
		cmocka_unit_test(
		    test_ctl_print__text_from_outside_cannot_steer_the_terminal),
		cmocka_unit_test(
		    test_ctl_print__columns_stand_under_each_other),
		cmocka_unit_test(test_ctl_print__no_time_is_null_and_a_dash),
		cmocka_unit_test(
		    test_ctl_print__money_has_its_currencys_decimals),
		cmocka_unit_test(test_ctl_print__members_make_an_object),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
