/*
 * One-dimensional PostgreSQL arrays in binary form: what a batch is sent as.
 * Errors stick, as in pn_buf: add all, then ask pn_array_failed(). A NULL at
 * the end costs nothing, and an array of NULLs only is sent as the empty one:
 * subscripts behind the end give NULL as well.
 */
#ifndef PN_STORE_ARRAY_H
#define PN_STORE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/buf.h"
#include "paynotify/str.h"

/* OIDs of element types; fixed in PostgreSQL for ever (pg_type.dat). */
enum pn_array_type {
	PN_ARRAY_BOOL = 16,
	PN_ARRAY_BYTEA = 17,
	PN_ARRAY_INT8 = 20,
	PN_ARRAY_INT4 = 23,
	PN_ARRAY_TEXT = 25,
	PN_ARRAY_JSON = 114,
	PN_ARRAY_TIMESTAMPTZ = 1184,
	PN_ARRAY_INTERVAL = 1186,
	PN_ARRAY_UUID = 2950,
	PN_ARRAY_JSONB = 3802,
};

struct pn_array {
	struct pn_buf buf;
	enum pn_array_type type;
	uint32_t count;        /* members written */
	uint32_t nulls_behind; /* NULLs not yet written */
	bool has_nulls;
};

struct pn_array pn_array_init(enum pn_array_type type, size_t bytes_max);
void pn_array_done(struct pn_array *array);
void pn_array_reset(struct pn_array *array);

void pn_array_add_null(struct pn_array *array);
void pn_array_add_bytes(struct pn_array *array, const void *data, size_t len);
/* NULL when s.data is. */
void pn_array_add_str(struct pn_array *array, struct pn_str s);
/* NULL when it is empty. */
void pn_array_add_filled(struct pn_array *array, struct pn_str s);
/* Each byte becomes one character: ISO 8859-1 to UTF-8. */
void pn_array_add_latin1(struct pn_array *array, struct pn_str s);
/* Text that may be anything: each byte that is not printable ASCII shows as
 * "?". NULL when it is empty. */
void pn_array_add_ascii(struct pn_array *array, struct pn_str s);
void pn_array_add_bool(struct pn_array *array, bool value);
void pn_array_add_int4(struct pn_array *array, int32_t value);
void pn_array_add_int8(struct pn_array *array, int64_t value);
/* Microseconds since 1970; PN_MOMENT_NONE is NULL. */
void pn_array_add_moment(struct pn_array *array, int64_t us);
void pn_array_add_interval(struct pn_array *array, int64_t us);

/* Writes the header; what is returned lives until the next change. */
struct pn_str pn_array_finish(struct pn_array *array);
/* The value of its only member, after pn_array_finish(); data NULL: NULL. */
struct pn_str pn_array_only(const struct pn_array *array);
bool pn_array_failed(const struct pn_array *array);

#endif
