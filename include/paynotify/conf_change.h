/*
 * What differs between the configuration that runs and one that was loaded to
 * replace it. Pure; any thread.
 */
#ifndef PN_CONF_CHANGE_H
#define PN_CONF_CHANGE_H

#include <stdbool.h>

#include "paynotify/conf.h"

/* Whether [deliver NAME] sections were added, taken out or changed, also in what
 * is in their files. */
bool pn_conf_endpoints_differ(const struct pn_conf *a, const struct pn_conf *b);

/* section: "server", "guard charges". key NULL: the section as a whole is there
 * in only one of the two. Both are valid during the call. */
typedef void (*pn_conf_tell_fn)(
    const char *section, const char *key, void *payload);

/* Tells of every option that is changed and that a reload does not apply: see
 * pn_conf_option_doc.reloadable. */
void pn_conf_tell_restart(const struct pn_conf *running,
    const struct pn_conf *loaded, pn_conf_tell_fn tell, void *payload);

#endif
