/*
 * The table of families, for series.c and its tests.
 */
#ifndef PN_SERIES_INTERNAL_H
#define PN_SERIES_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "paynotify/series.h"

enum {
	PN_FAMILY_LABELS_MAX = 3,
	PN_FAMILY_VALUES_MAX = 24, /* of one series: ends, or buckets and sum */
};

enum pn_family_type {
	PN_TYPE_COUNTER,
	PN_TYPE_GAUGE,
	PN_TYPE_HISTOGRAM,
	PN_TYPE_COUNT
};

/* An upper bound of a histogram, and how it is written. */
struct pn_bound {
	int64_t value;
	const char *text;
};

struct pn_family_row {
	const char *name; /* of _seconds: values are microseconds */
	enum pn_family_type type;
	const char *help;
	const char *labels[PN_FAMILY_LABELS_MAX]; /* NULL behind the last */
	/* Fixed values of the last label, as many as a series has. */
	const char *const *ends;
	size_t end_count;
	/* Of a histogram; one more bucket has no bound. */
	const struct pn_bound *bounds;
	size_t bound_count;
};

extern const struct pn_family_row pn_families[PN_FAMILY_COUNT];

#endif
