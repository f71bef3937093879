/*
 * What the `keys` commands share. Private to src/cmd.
 */
#ifndef PN_CTL_KEYS_H
#define PN_CTL_KEYS_H

#include "ctl.h"

#include "paynotify/guard_keys.h"

/* "held", "lease ended", "free"; else the state; "archived" */
struct pn_str ctl_keys_state_text(const struct pn_guard_key_row *row);

#endif
