/*
 * The table of commands as a whole: what its rows promise each other. The parser
 * and the dispatcher believe every word of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl.h"

enum {
	TERMINAL_COLUMNS = 80,
	SUMMARY_COLUMN = 24, /* where help begins it */
};

static bool
is_word(const char *text)
{
	return text[0] >= 'a' && text[0] <= 'z' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz-") == strlen(text);
}

/* If it failed: one of two rows could never be called. */
static void
test_ctl_table__each_command_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < ctl_command_count(); i++) {
		const struct ctl_command *c = &ctl_commands[i];
		char title[64], other[64];

		ctl_command_title(c, title, sizeof(title));
		assert_true(is_word(c->name));
		assert_true(c->group == NULL || is_word(c->group));
		assert_non_null(c->run);
		for (size_t j = 0; j < i; j++) {
			ctl_command_title(
			    &ctl_commands[j], other, sizeof(other));
			assert_string_not_equal(title, other);
		}
	}
}

/* If it failed: a command would ask for what it then calls unknown. */
static void
test_ctl_table__what_must_be_given_may_be_given(void **state)
{
	const uint64_t all = CTL_BIT(CTL_OPT_COUNT) - 1;

	(void)state;
	for (size_t i = 0; i < ctl_command_count(); i++) {
		const struct ctl_command *c = &ctl_commands[i];

		assert_true((c->required & ~c->options) == 0);
		assert_true((c->options & ~all) == 0);
		assert_true((c->options & CTL_BIT(CTL_OPT_CONFIG)) != 0);
		assert_true((c->options & CTL_BIT(CTL_OPT_JSON)) != 0);
		assert_true((c->options & CTL_BIT(CTL_OPT_HELP)) != 0);
		assert_true(c->operand_min <= c->operand_max);
		assert_int_equal(c->operands != NULL, c->operand_max > 0);
	}
}

/* If it failed: of two rows with one name getopt would take either. */
static void
test_ctl_table__a_command_has_no_option_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < ctl_command_count(); i++)
		for (int a = 0; a < CTL_OPT_COUNT; a++)
			for (int b = 0; b < a; b++) {
				uint64_t both = CTL_BIT(a) | CTL_BIT(b);

				if ((ctl_commands[i].options & both) != both)
					continue;
				assert_string_not_equal(
				    ctl_options[a].name, ctl_options[b].name);
				assert_true(ctl_options[a].letter == 0 ||
					    ctl_options[a].letter !=
						ctl_options[b].letter);
			}
}

/* If it failed: something could be changed without a word of who and why, or a
 * command that only looks would be given the means to change it. */
static void
test_ctl_table__what_may_write_is_recorded(void **state)
{
	const uint64_t record =
	    CTL_BIT(CTL_OPT_REASON) | CTL_BIT(CTL_OPT_ACTOR);

	(void)state;
	for (size_t i = 0; i < ctl_command_count(); i++) {
		const struct ctl_command *c = &ctl_commands[i];

		assert_true((c->options & record) ==
			    (c->need == CTL_NEEDS_WRITING ? record : 0));
		/* Only what goes back to how it ought to be needs no reason. */
		if (c->need == CTL_NEEDS_WRITING &&
		    strcmp(c->name, "resume") != 0)
			assert_true(
			    (c->required & CTL_BIT(CTL_OPT_REASON)) != 0);
	}
}

/* If it failed: help would be torn on an ordinary terminal. */
static void
test_ctl_table__help_fits_a_terminal(void **state)
{
	(void)state;
	for (size_t i = 0; i < ctl_command_count(); i++) {
		const struct ctl_command *c = &ctl_commands[i];
		struct pn_str rest = pn_str_from(c->details);

		if (SUMMARY_COLUMN + strlen(c->summary) > TERMINAL_COLUMNS)
			fail_msg("too long: %s", c->summary);
		assert_true(c->summary[strlen(c->summary) - 1] != '.');
		while (rest.data != NULL) {
			struct pn_str line = pn_str_split(&rest, '\n');

			if (ctl_text_width(line) > TERMINAL_COLUMNS)
				fail_msg(
				    "too long: " PN_STR_FMT, PN_STR_ARG(line));
		}
		assert_true(c->details[0] == '\0' ||
			    c->details[strlen(c->details) - 1] == '\n');
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_ctl_table__each_command_has_a_name_of_its_own),
		cmocka_unit_test(
		    test_ctl_table__what_must_be_given_may_be_given),
		cmocka_unit_test(test_ctl_table__a_command_has_no_option_twice),
		cmocka_unit_test(test_ctl_table__what_may_write_is_recorded),
		cmocka_unit_test(test_ctl_table__help_fits_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
