/*
 * Bytes that must not be seen: API keys, private keys. Never given to the log
 * formatter (a struct does not fit a %s), cleansed when freed.
 */
#ifndef PN_SECRET_H
#define PN_SECRET_H

#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

struct pn_secret {
	unsigned char *data;
	size_t len;
};

/* Copies. -ENOMEM. */
int pn_secret_set(
    struct pn_secret *secret, const void *data, size_t len) PN_MUSTCHECK;
void pn_secret_done(struct pn_secret *secret); /* cleanse, free; NULL is fine */

#endif
