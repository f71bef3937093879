/*
 * The binary form of an array (array_recv() in PostgreSQL): dimensions, flags
 * and element type, then length and bound of each dimension, then the members,
 * each with its length before it (-1: NULL). Numbers are big-endian.
 *
 * Binary, since text arrays would have to be quoted here and parsed there.
 */
#include "array.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "paynotify/moment.h"

enum { HEADER_BYTES = 20 };

/* PostgreSQL counts from 2000-01-01. */
static const int64_t EPOCH_2000_US = INT64_C(946684800) * PN_SECOND_US;

static void
put_int32(char *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

struct pn_array
pn_array_init(enum pn_array_type type, size_t bytes_max)
{
	struct pn_array array = {
		.buf = pn_buf_init(bytes_max),
		.type = type,
	};

	pn_array_reset(&array);
	return array;
}

void
pn_array_done(struct pn_array *array)
{
	pn_buf_done(&array->buf);
}

void
pn_array_reset(struct pn_array *array)
{
	pn_buf_reset(&array->buf);
	(void)pn_buf_extend(&array->buf, HEADER_BYTES);
	array->count = 0;
	array->nulls_behind = 0;
	array->has_nulls = false;
}

void
pn_array_add_null(struct pn_array *array)
{
	array->nulls_behind++;
}

/* The place for a member of len bytes; NULL when failed. */
static char *
member(struct pn_array *array, size_t len)
{
	char *at;

	assert(len <= INT32_MAX);
	for (; array->nulls_behind > 0; array->nulls_behind--) {
		at = pn_buf_extend(&array->buf, 4);
		if (at == NULL)
			return NULL;
		put_int32(at, UINT32_MAX);
		array->count++;
		array->has_nulls = true;
	}
	at = pn_buf_extend(&array->buf, len + 4);
	if (at == NULL)
		return NULL;
	put_int32(at, (uint32_t)len);
	array->count++;
	return at + 4;
}

void
pn_array_add_bytes(struct pn_array *array, const void *data, size_t len)
{
	char *at = member(array, len);

	if (at != NULL && len > 0)
		memcpy(at, data, len);
}

void
pn_array_add_str(struct pn_array *array, struct pn_str s)
{
	if (s.data == NULL)
		pn_array_add_null(array);
	else
		pn_array_add_bytes(array, s.data, s.len);
}

void
pn_array_add_filled(struct pn_array *array, struct pn_str s)
{
	if (s.len == 0)
		pn_array_add_null(array);
	else
		pn_array_add_bytes(array, s.data, s.len);
}

void
pn_array_add_latin1(struct pn_array *array, struct pn_str s)
{
	size_t i, high = 0;
	unsigned char c;
	char *at;

	for (i = 0; i < s.len; i++)
		high += (unsigned char)s.data[i] >> 7;
	at = member(array, s.len + high);
	if (at == NULL || s.len == 0)
		return;
	if (high == 0) {
		memcpy(at, s.data, s.len);
		return;
	}
	for (i = 0; i < s.len; i++) {
		c = (unsigned char)s.data[i];
		if (c >= 0x80) {
			*at++ = (char)(0xc0 | c >> 6);
			c = 0x80 | (c & 0x3f);
		}
		*at++ = (char)c;
	}
}

void
pn_array_add_ascii(struct pn_array *array, struct pn_str s)
{
	char *at;

	if (s.len == 0) {
		pn_array_add_null(array);
		return;
	}
	at = member(array, s.len);
	for (size_t i = 0; at != NULL && i < s.len; i++)
		at[i] = s.data[i] >= ' ' && s.data[i] <= '~' ? s.data[i] : '?';
}

void
pn_array_add_bool(struct pn_array *array, bool value)
{
	char c = value ? 1 : 0;

	pn_array_add_bytes(array, &c, 1);
}

void
pn_array_add_int4(struct pn_array *array, int32_t value)
{
	char *at = member(array, 4);

	if (at != NULL)
		put_int32(at, (uint32_t)value);
}

void
pn_array_add_int8(struct pn_array *array, int64_t value)
{
	uint64_t big = htobe64((uint64_t)value);

	pn_array_add_bytes(array, &big, sizeof(big));
}

void
pn_array_add_moment(struct pn_array *array, int64_t us)
{
	if (us == PN_MOMENT_NONE)
		pn_array_add_null(array);
	else
		pn_array_add_int8(array, us - EPOCH_2000_US);
}

void
pn_array_add_interval(struct pn_array *array, int64_t us)
{
	/* interval_recv(): microseconds, days, months. */
	char *at = member(array, 16);
	uint64_t big = htobe64((uint64_t)us);

	if (at == NULL)
		return;
	memcpy(at, &big, sizeof(big));
	memset(at + sizeof(big), 0, 8);
}

struct pn_str
pn_array_finish(struct pn_array *array)
{
	char *at = array->buf.data;

	if (pn_array_failed(array))
		return (struct pn_str){ NULL, 0 };
	put_int32(at, array->count == 0 ? 0 : 1);
	put_int32(at + 4, array->has_nulls ? 1 : 0);
	put_int32(at + 8, (uint32_t)array->type);
	put_int32(at + 12, array->count);
	put_int32(at + 16, 1);
	/* The empty array has no dimensions. */
	return (struct pn_str){ at, array->count == 0 ? 12 : array->buf.len };
}

struct pn_str
pn_array_only(const struct pn_array *array)
{
	const char *at = array->buf.data + HEADER_BYTES;

	assert(!pn_array_failed(array));
	assert(array->count + array->nulls_behind == 1);
	if (array->count == 0)
		return (struct pn_str){ NULL, 0 };
	return (struct pn_str){ at + 4, array->buf.len - HEADER_BYTES - 4 };
}

bool
pn_array_failed(const struct pn_array *array)
{
	return pn_buf_failed(&array->buf);
}
