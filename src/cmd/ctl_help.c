/*
 * Help, from the tables: what a table does not say is not offered. The man page
 * paynotifyctl(1) is checked against the same tables by
 * tests/integration/cmd.
 */
#include "ctl.h"

#include <string.h>

void
ctl_command_title(
    const struct ctl_command *command, char *ret_text, size_t bytes)
{
	(void)snprintf(ret_text, bytes, "%s%s%s",
	    command->group == NULL ? "" : command->group,
	    command->group == NULL ? "" : " ", command->name);
}

static void
print_row(FILE *out, const struct ctl_command *command)
{
	char title[64];

	ctl_command_title(command, title, sizeof(title));
	(void)fprintf(out, "  %-20s  %s\n", title, command->summary);
}

void
ctl_help_all(FILE *out)
{
	(void)fprintf(out, "usage: " CTL_NAME " COMMAND [-c FILE] [--json] "
			   "[OPTION...]\n\n");
	for (size_t i = 0; i < ctl_command_count(); i++)
		print_row(out, &ctl_commands[i]);
	(void)fprintf(out,
	    "\n`" CTL_NAME " COMMAND --help` tells more; "
	    "--version prints the version.\n"
	    "Exit codes: 0 done, 1 refused or found wrong, 2 usage, "
	    "78 bad configuration.\n");
}

void
ctl_help_group(FILE *out, const char *group)
{
	for (size_t i = 0; i < ctl_command_count(); i++)
		if (ctl_commands[i].group != NULL &&
		    strcmp(ctl_commands[i].group, group) == 0)
			print_row(out, &ctl_commands[i]);
}

void
ctl_help_usage(FILE *out, const struct ctl_command *command)
{
	char title[64];

	ctl_command_title(command, title, sizeof(title));
	(void)fprintf(out, "usage: " CTL_NAME " %s", title);
	for (int id = 0; id < CTL_OPT_COUNT; id++)
		if ((command->required & CTL_BIT(id)) != 0)
			(void)fprintf(out, " --%s %s", ctl_options[id].name,
			    ctl_options[id].metavar);
	(void)fprintf(out, " [OPTION...]%s%s",
	    command->operands == NULL ? "" : " ",
	    command->operands == NULL ? "" : command->operands);
}

void
ctl_help_command(FILE *out, const struct ctl_command *command)
{
	ctl_help_usage(out, command);
	(void)fprintf(out, "\n\n%s.\n", command->summary);
	if (command->details[0] != '\0')
		(void)fprintf(out, "\n%s", command->details);
	(void)fprintf(out, "\n");
	for (int id = 0; id < CTL_OPT_COUNT; id++) {
		const struct ctl_option *o = &ctl_options[id];
		char left[64], letter[8] = "    ";

		if ((command->options & CTL_BIT(id)) == 0)
			continue;
		if (o->letter != 0)
			(void)snprintf(
			    letter, sizeof(letter), "-%c, ", o->letter);
		(void)snprintf(left, sizeof(left), "%s--%s%s%s", letter,
		    o->name, o->metavar == NULL ? "" : " ",
		    o->metavar == NULL ? "" : o->metavar);
		if (strlen(left) > 24)
			(void)fprintf(
			    out, "  %s\n  %-24s %s\n", left, "", o->help);
		else
			(void)fprintf(out, "  %-24s %s\n", left, o->help);
	}
}
