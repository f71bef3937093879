/*
 * What the `keys` commands share. Private to src/cmd.
 */
#ifndef PN_CTL_KEYS_H
#define PN_CTL_KEYS_H

#include "ctl.h"

#include "paynotify/guard_keys.h"

/* Whether what was given can name a key of the guard: CTL_DONE, or CTL_USAGE,
 * told. */
int ctl_keys_check(const struct ctl *ctl) PN_MUSTCHECK;
/* "held", "lease ended", "free"; else the state; "archived" */
struct pn_str ctl_keys_state_text(const struct pn_guard_key_row *row);

#endif
