/*
 * The guess at what a misspelt word was meant to be. Pure; any thread.
 */
#ifndef PN_NEAREST_H
#define PN_NEAREST_H

#include <stddef.h>

/* The nearest of names; NULL when none is near. Borrowed from names. */
const char *
pn_nearest(const char *name, const char *const *names, size_t count);

#endif
