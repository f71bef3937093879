/*
 * What form.c and xml.c share: fields in the order of their names, each name
 * once. Private to this folder. Pure; any thread.
 */
#ifndef PN_CODEC_FIELDS_H
#define PN_CODEC_FIELDS_H

#include "paynotify/form.h"

/* Sorts by name, as bytes. 0; 1 when a name occurs twice (error says which). */
int
pn_fields_sort(struct pn_form *form, struct pn_error *ret_error) PN_MUSTCHECK;

#endif
