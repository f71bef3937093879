/*
 * What is documented of the option table (src/conf/options.c), for the sample
 * file, the man page, the README and the tests that compare them. Constant; any
 * thread.
 */
#ifndef PN_CONF_OPTION_DOC_H
#define PN_CONF_OPTION_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "paynotify/str.h"

struct pn_conf_option_doc {
	const char *section; /* "server", "alipay", "guard NAME", ... */
	const char *key;
	const char *type;          /* "duration", "file", ... */
	const char *default_value; /* NULL: none, or several */
	/* Of a list that has several, NULL-terminated; else NULL. */
	const char *const *default_values;
	bool repeatable, required;
	bool reloadable; /* applied by SIGHUP, else by a restart */
	const char *doc;
};
size_t pn_conf_option_count(void);
struct pn_conf_option_doc pn_conf_option_doc(size_t index);

/* Whether the value of an option of type "secret file", in the configuration's
 * file `file`, may be shown: it names a file that there is, or one in a folder
 * that there is. What does not may be the secret itself. */
bool pn_conf_names_file(const char *file, struct pn_str value);

#endif
