/*
 * The reader behind pn_json_parse: text to json_t. Private to this folder.
 */
#ifndef PN_CODEC_JSON_READER_H
#define PN_CODEC_JSON_READER_H

#include "paynotify/json.h"

/* As pn_json_parse. */
int pn_json_read(struct pn_str text, json_t **ret_value,
    struct pn_error *ret_error) PN_MUSTCHECK;

#endif
