/*
 * A folder with configuration files for one test, and loading them.
 */
#ifndef PN_TEST_CONF_FILES_H
#define PN_TEST_CONF_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/conf.h"

struct folder {
	char path[128];
	char file[512];        /* of folder_path() */
	struct pn_error error; /* of the last load */
	struct pn_conf *conf;  /* of the last load, if it worked */
};

/* cmocka setup and teardown: *state is a struct folder. */
int folder_setup(void **state);
int folder_teardown(void **state);
void folder_write(
    struct folder *folder, const char *name, const char *text, unsigned mode);
void folder_make(struct folder *folder, const char *name, unsigned mode);
/* "<folder>/<name>", valid until the next call. */
const char *folder_path(struct folder *folder, const char *name);
/* Loads <folder>/main.conf. */
int folder_load(struct folder *folder, const char *only_account);
/* Writes main.conf and loads it: must work, must fail saying text. */
const struct pn_conf *folder_accept(struct folder *folder, const char *text);
void
folder_refuse(struct folder *folder, const char *text, const char *because);

#endif
