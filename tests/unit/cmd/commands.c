/*
 * A command table for the tests: the real one is in src/cmd/ctl_commands.c. One
 * command with every kind of option.
 */
#include "ctl.h"

static int
run_nothing(struct ctl *ctl)
{
	(void)ctl;
	return CTL_DONE;
}

const struct ctl_command ctl_commands[] = {
	{
	    .group = "sample",
	    .name = "do",
	    .operands = "WORD",
	    .operand_min = 1,
	    .operand_max = 2,
	    .options = ~UINT64_C(0) & ~CTL_BIT(CTL_OPT_FOLLOW),
	    .required = CTL_BIT(CTL_OPT_ACCOUNT),
	    .run = run_nothing,
	    .summary = "does nothing",
	    .details = "",
	},
};

size_t
ctl_command_count(void)
{
	return PN_COUNT(ctl_commands);
}
