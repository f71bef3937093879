/*
 * Base64 (RFC 4648 section 4, standard alphabet), hex and UUIDs. Pure; any
 * thread.
 */
#ifndef PN_ENCODE_H
#define PN_ENCODE_H

#include <stddef.h>

#include "paynotify/arena.h"
#include "paynotify/compiler.h"
#include "paynotify/str.h"

/* Bytes that decoding len characters of base64 can give at most. */
#define PN_BASE64_DECODED_MAX(len)   ((len) / 4 * 3)
#define PN_BASE64_ENCODED_BYTES(len) (((len) + 2) / 3 * 4)

/* Strict: length a multiple of 4, padding exactly where it belongs, unused
 * bits zero, no white space. ret_data must have PN_BASE64_DECODED_MAX bytes.
 * Returns 0, or 1 when it is not such text. */
int pn_base64_decode(
    struct pn_str text, unsigned char *ret_data, size_t *ret_len) PN_MUSTCHECK;
/* ret_text must have PN_BASE64_ENCODED_BYTES(len) + 1; gets a NUL. */
void pn_base64_encode(const void *data, size_t len, char *ret_text);

/* ret_text must have 2 * len + 1; gets a NUL. */
void pn_hex_lower(const void *data, size_t len, char *ret_text);
void pn_hex_upper(const void *data, size_t len, char *ret_text);
/* Either case; length must be 2 * len. 0, or 1 when it is not hex. */
int pn_hex_decode(
    struct pn_str text, unsigned char *ret_data, size_t len) PN_MUSTCHECK;

enum { PN_UUID_BYTES = 16, PN_UUID_TEXT_BYTES = 37 };
/* 01234567-89ab-cdef-0123-456789abcdef, and a NUL. */
void pn_uuid_text(
    const unsigned char id[PN_UUID_BYTES], char ret_text[PN_UUID_TEXT_BYTES]);

#endif
