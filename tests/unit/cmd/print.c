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

#include "ctl_list.h"

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

/* A program reads the same text as before, and a terminal is not steered. */
static void
test_ctl_print__json_cannot_steer_the_terminal(void **state)
{
	static const char raw[] = "{\"a\":\"\xc2\x9b"
				  "31m \x7f \xe2\x80\xae \xe2\x80\xa8 "
				  "\xe2\x81\xa6 \xe2\x80\x8f \xd8\x9c "
				  "\xc2\xa0 \xe2\x80\x94 \xe4\xb8\xad\"}\n"
				  "\xe2";
	struct pn_buf out = pn_buf_init(4096);

	(void)state;
	ctl_add_json_clean(&out, pn_str_from(raw));
	pn_buf_add_char(&out, '\0');
	assert_string_equal(out.data,
	    "{\"a\":\"\\u009b31m \\u007f \\u202e \\u2028 \\u2066 \\u200f "
	    "\\u061c \xc2\xa0 \xe2\x80\x94 \xe4\xb8\xad\"}\n\xe2");
	pn_buf_done(&out);
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

/* Control sequences from a notification must not reach the terminal, and a cut or
 * a colour must not hide what a row is. */
static void
test_ctl_print__a_terminal_gets_colours_and_whole_lines(void **state)
{
	static const char *const titles[] = { "NAME", "STATE", "REASON" };
	struct ctl_table *table = ctl_table_new(titles, PN_COUNT(titles));
	struct pn_buf out = pn_buf_init(4096);

	(void)state;
	assert_non_null(table);
	ctl_table_set_terminal(table, 24, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    ctl_table_cell(table,
			i == 0 ? PN_STR("dead") : PN_STR("蛋\033e\u0301")),
		    0);
		assert_int_equal(
		    ctl_table_cell(
			table, i == 0 ? PN_STR("dead") : PN_STR("unknown")),
		    0);
		assert_int_equal(
		    ctl_table_cell(table, PN_STR("a 蛋糕店 that is long")), 0);
	}
	ctl_table_print(table, false, &out);
	assert_string_equal(out.data,
	    "\033[1mNAME\033[0m     \033[1mSTATE\033[0m    "
	    "\033[1mREASON\033[0m\n"
	    "dead     \033[31mdead\033[0m     a 蛋\u2026\n"
	    "蛋\\x1be\u0301  unknown  a 蛋\u2026\n");
	pn_buf_reset(&out);
	/* Not even a column is left: nothing wraps. */
	ctl_table_set_terminal(table, 9, false);
	assert_int_equal(ctl_table_cell(table, PN_STR("exactly")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("s")), 0);
	assert_int_equal(ctl_table_cell(table, PN_STR("")), 0);
	ctl_table_print(table, false, &out);
	assert_string_equal(out.data, "exactly  \n");
	ctl_table_free(table);
	pn_buf_done(&out);
}

static void
assert_line(const struct ctl_progress *progress, int64_t elapsed_us,
    size_t columns, const char *wanted)
{
	struct pn_buf out = pn_buf_init(1024);

	ctl_progress_add_line(progress, elapsed_us, columns, &out);
	assert_string_equal(out.data, wanted);
	assert_true(out.len <= columns);
	pn_buf_done(&out);
}

/* A bar that promises what it does not know, or that wraps, is worse than none. */
static void
test_ctl_print__progress_says_what_is_known(void **state)
{
	struct ctl_progress p = { .what = "evidence",
		.done = 250000,
		.total = 1000000,
		.about = true };

	(void)state;
	assert_line(&p, 10 * PN_SECOND_US, 80,
	    "evidence  250,000 of ~1,000,000  [#####...............]  "
	    "25,000/s  0:30 left");
	assert_line(&p, 10 * PN_SECOND_US, 60,
	    "evidence  250,000 of ~1,000,000  25,000/s  0:30 left");
	assert_line(
	    &p, 10 * PN_SECOND_US, 40, "evidence  250,000 of ~1,000,000");
	assert_line(&p, PN_SECOND_US, 80,
	    "evidence  250,000 of ~1,000,000  [#####...............]");
	p.total = 200000; /* there was more than was thought */
	assert_line(&p, 10 * PN_SECOND_US, 80, "evidence  250,000  25,000/s");
	p = (struct ctl_progress){ .what = "x", .done = 1, .total = 100000 };
	assert_line(&p, 60 * PN_SECOND_US, 80,
	    "x  1 of 100,000  [....................]");
	p.done = 100;
	assert_line(&p, 100 * PN_SECOND_US, 80,
	    "x  100 of 100,000  [....................]  1/s  27:45:00 left");
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
		    test_ctl_print__json_cannot_steer_the_terminal),
		cmocka_unit_test(
		    test_ctl_print__columns_stand_under_each_other),
		cmocka_unit_test(
		    test_ctl_print__a_terminal_gets_colours_and_whole_lines),
		cmocka_unit_test(test_ctl_print__progress_says_what_is_known),
		cmocka_unit_test(test_ctl_print__no_time_is_null_and_a_dash),
		cmocka_unit_test(
		    test_ctl_print__money_has_its_currencys_decimals),
		cmocka_unit_test(test_ctl_print__members_make_an_object),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
