/*
 * Loading and checking the configuration, the same for both programs. Private
 * to src/cmd.
 */
#ifndef PN_CMD_LOAD_H
#define PN_CMD_LOAD_H

#include "paynotify/conf.h"
#include "paynotify/ingest.h"

/* Everything that can be known to be wrong without opening anything: options,
 * addresses, connection strings, keys. On failure nothing is handed out;
 * -ENOMEM, or another with file:line in the text. */
int cmd_load(const char *path, struct pn_conf **ret_conf,
    struct pn_accounts **ret_accounts, struct pn_error *ret_error) PN_MUSTCHECK;
/* What the log is to write from now on. */
void cmd_apply_log(const struct pn_conf_log *log);
/* The connection strings alone, for commands that need no key. */
int cmd_check_database(
    const struct pn_conf *conf, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
