/*
 * The flat XML of WeChat Pay APIv2, on libxml2: one root, children with text or
 * CDATA only. Pure; any thread after pn_xml_init() once.
 *
 * Refused before any entity work: a DOCTYPE, entities other than the five
 * predefined and numeric ones, nesting, duplicate names, comments,
 * namespace prefixes, processing instructions, other encodings than UTF-8, a
 * second root, trailing bytes, depth, size and count over the limits, tags over
 * PN_XML_TAG_BYTES_MAX. Attributes are ignored. No network, no files.
 */
#ifndef PN_XML_H
#define PN_XML_H

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/error.h"
#include "paynotify/form.h"
#include "paynotify/str.h"

void pn_xml_init(void); /* once, before threads */

/* Root must be called root_name ("xml", or "root" inside req_info). The fields
 * are sorted by name; values are text after unescaping, untrimmed.
 * 0; 1 when refused (error says why); -ENOMEM. */
int pn_xml_parse(struct pn_arena *arena, struct pn_str text,
    const char *root_name, struct pn_form *ret_fields,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
