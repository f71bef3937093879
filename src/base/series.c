/*
 * Series: opened by label values, counted by pointer, printed by a loop.
 *
 * The values of one set of labels stand in one piece of memory: as many as the
 * last label has fixed values, or the buckets and the sum of a histogram. So the
 * table is looked through once an account, not once a verdict, and one line of
 * text is kept for all of them.
 *
 * A lock guards opening, closing and printing. Counting does not take it: what
 * it touches is never moved or freed. No order between values is promised; a
 * page may have a request in the sum of a histogram that is not in its buckets
 * yet.
 *
 * What is unknown is not printed, which is how Prometheus wants it: a zero would
 * be believed, and an alarm on what is absent is a rule of its own.
 */
#include "paynotify/series.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/limits.h"
#include "paynotify/metrics.h"

#include "series_internal.h"

struct pn_series {
	struct pn_series *next_in_bucket;
	struct pn_series *next; /* of the family, in order of opening */
	const struct pn_family_row *family;
	char *labels;   /* provider="alipay",tenant="shop1"; escaped */
	unsigned users; /* opened less closed; under the lock */
	bool is_gauge, is_histogram;
	/* Buckets, then the sum; or one for each end; or one. */
	_Atomic int64_t values[];
};

enum {
	BUCKETS = 1 << 14, /* for PN_CONF_ACCOUNTS_MAX with some series each */
	/* Names are ours and short; each byte of a value may be escaped. */
	LABELS_BYTES_MAX = PN_FAMILY_LABELS_MAX * (2 * PN_LABEL_BYTES_MAX + 16),
	NAME_BYTES_MAX = 56,
	NUMBER_BYTES_MAX = 32,
};
static_assert(NAME_BYTES_MAX + LABELS_BYTES_MAX + NUMBER_BYTES_MAX <=
		  PN_SERIES_LINE_BYTES_MAX,
    "a line is no longer than the page's cap supposes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pn_series *buckets[BUCKETS];
static struct {
	struct pn_series *first, *last;
} lists[PN_FAMILY_COUNT];
static size_t line_count; /* of a page, without HELP and TYPE */

/* -- opening -------------------------------------------------------------------- */

static size_t
value_count(const struct pn_family_row *family)
{
	if (family->type == PN_TYPE_HISTOGRAM)
		return family->bound_count + 2;
	return family->ends == NULL ? 1 : family->end_count;
}

/* Those whose values are given when a series is opened. */
static size_t
free_label_count(const struct pn_family_row *family)
{
	size_t count = 0;

	while (count < PN_FAMILY_LABELS_MAX && family->labels[count] != NULL)
		count++;
	assert(family->ends == NULL || count > 0);
	return family->ends == NULL ? count : count - 1;
}

static void
add_escaped(struct pn_buf *out, const char *value)
{
	for (size_t i = 0; i < PN_LABEL_BYTES_MAX && value[i] != '\0'; i++) {
		if (value[i] == '\n') {
			pn_buf_add_text(out, "\\n");
			continue;
		}
		if (value[i] == '\\' || value[i] == '"')
			pn_buf_add_char(out, '\\');
		pn_buf_add_char(out, value[i]);
	}
}

static void
add_labels(struct pn_buf *out, const struct pn_family_row *family,
    const char *const *values)
{
	size_t count = free_label_count(family);

	for (size_t i = 0; i < count; i++) {
		pn_buf_printf(
		    out, "%s%s=\"", i == 0 ? "" : ",", family->labels[i]);
		add_escaped(out, values[i]);
		pn_buf_add_char(out, '"');
	}
}

/* FNV-1a. The values are the operator's, so nobody aims at a bucket. */
static size_t
bucket_of(enum pn_family family, const char *labels)
{
	uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)family;

	for (; *labels != '\0'; labels++)
		hash =
		    (hash ^ (unsigned char)*labels) * UINT64_C(1099511628211);
	return (hash ^ hash >> 32) % BUCKETS;
}

static struct pn_series *
find(size_t bucket, const struct pn_family_row *family, const char *labels)
{
	struct pn_series *series = buckets[bucket];

	while (series != NULL && (series->family != family ||
				     strcmp(series->labels, labels) != 0))
		series = series->next_in_bucket;
	return series;
}

/* NULL: no memory, or no room. Takes the labels. */
static struct pn_series *
add_new(size_t bucket, enum pn_family number, char *labels)
{
	const struct pn_family_row *family = &pn_families[number];
	size_t count = value_count(family);
	size_t lines = family->type == PN_TYPE_HISTOGRAM ? count + 1 : count;
	struct pn_series *series;

	if (line_count + lines > PN_SERIES_LINES_MAX)
		return NULL;
	series = calloc(1, sizeof(*series) + count * sizeof(series->values[0]));
	if (series == NULL)
		return NULL;
	line_count += lines;
	series->family = family;
	series->labels = labels;
	series->is_gauge = family->type == PN_TYPE_GAUGE;
	series->is_histogram = family->type == PN_TYPE_HISTOGRAM;
	for (size_t i = 0; series->is_gauge && i < count; i++)
		atomic_init(&series->values[i], PN_SERIES_ABSENT);
	series->next_in_bucket = buckets[bucket];
	buckets[bucket] = series;
	if (lists[number].last == NULL)
		lists[number].first = series;
	else
		lists[number].last->next = series;
	lists[number].last = series;
	return series;
}

static struct pn_series *
open_locked(enum pn_family number, const char *labels)
{
	size_t bucket = bucket_of(number, labels);
	struct pn_series *series = find(bucket, &pn_families[number], labels);
	char *copy;

	if (series != NULL)
		return series;
	copy = strdup(labels);
	if (copy == NULL)
		return NULL;
	series = add_new(bucket, number, copy);
	if (series == NULL)
		free(copy);
	return series;
}

struct pn_series *
pn_series_open(enum pn_family family, const char *const *values)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf labels = pn_buf_init(LABELS_BYTES_MAX + 1);
	struct pn_series *series = NULL;

	assert((unsigned)family < PN_FAMILY_COUNT);
	assert(values != NULL || free_label_count(&pn_families[family]) == 0);
	add_labels(&labels, &pn_families[family], values);
	if (!pn_buf_failed(&labels)) {
		(void)pthread_mutex_lock(&lock);
		series =
		    open_locked(family, labels.data == NULL ? "" : labels.data);
		if (series != NULL)
			series->users++;
		(void)pthread_mutex_unlock(&lock);
	}
	if (series == NULL)
		pn_metric_add(PN_METRIC_SERIES_REFUSED, 1);
	return series;
}

void
pn_series_close(struct pn_series *series)
{
	if (series == NULL)
		return;
	(void)pthread_mutex_lock(&lock);
	assert(series->users > 0);
	if (--series->users == 0 && series->is_gauge)
		pn_series_set(series, PN_SERIES_ABSENT);
	(void)pthread_mutex_unlock(&lock);
}

/* -- counting ------------------------------------------------------------------- */

void
pn_series_add(struct pn_series *series, unsigned which, int64_t n)
{
	if (series == NULL)
		return;
	assert(!series->is_gauge && !series->is_histogram);
	assert(which < value_count(series->family));
	atomic_fetch_add_explicit(
	    &series->values[which], n, memory_order_relaxed);
}

void
pn_series_set(struct pn_series *series, int64_t value)
{
	if (series == NULL)
		return;
	assert(series->is_gauge);
	atomic_store_explicit(&series->values[0], value, memory_order_relaxed);
}

int64_t
pn_series_get(const struct pn_series *series, unsigned which)
{
	if (series == NULL)
		return PN_SERIES_ABSENT;
	assert(which < value_count(series->family));
	return atomic_load_explicit(
	    &series->values[which], memory_order_relaxed);
}

void
pn_series_observe(struct pn_series *series, int64_t value)
{
	const struct pn_bound *bounds;
	size_t count, i = 0;

	if (series == NULL)
		return;
	assert(series->is_histogram);
	bounds = series->family->bounds;
	count = series->family->bound_count;
	while (i < count && value > bounds[i].value)
		i++;
	atomic_fetch_add_explicit(&series->values[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    &series->values[count + 1], value, memory_order_relaxed);
}

/* -- printing ------------------------------------------------------------------- */

static void
print_number(struct pn_buf *out, bool is_time, int64_t value)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (is_time)
		pn_buf_printf(out, " %s%" PRIu64 ".%06" PRIu64 "\n",
		    value < 0 ? "-" : "", size / 1000000, size % 1000000);
	else
		pn_buf_printf(out, " %" PRId64 "\n", value);
}

/* name{labels,label="value"} or less of it. */
static void
print_name(struct pn_buf *out, const struct pn_series *series,
    const char *suffix, const char *label, const char *value)
{
	bool any = series->labels[0] != '\0';

	pn_buf_add_text(out, series->family->name);
	pn_buf_add_text(out, suffix);
	if (any || label != NULL)
		pn_buf_printf(out, "{%s", series->labels);
	if (label != NULL)
		pn_buf_printf(out, "%s%s=\"%s\"", any ? "," : "", label, value);
	if (any || label != NULL)
		pn_buf_add_char(out, '}');
}

static void
print_histogram(
    struct pn_buf *out, const struct pn_series *series, bool is_time)
{
	const struct pn_family_row *family = series->family;
	size_t count = family->bound_count;
	int64_t sum = pn_series_get(series, (unsigned)(count + 1)), below = 0;

	for (size_t i = 0; i <= count; i++) {
		below += pn_series_get(series, (unsigned)i);
		print_name(out, series, "_bucket", "le",
		    i < count ? family->bounds[i].text : "+Inf");
		print_number(out, false, below);
	}
	print_name(out, series, "_sum", NULL, NULL);
	print_number(out, is_time, sum);
	print_name(out, series, "_count", NULL, NULL);
	print_number(out, false, below);
}

static void
print_series(struct pn_buf *out, const struct pn_series *series, bool is_time)
{
	const struct pn_family_row *family = series->family;
	size_t last = free_label_count(family);

	if (series->is_histogram) {
		print_histogram(out, series, is_time);
		return;
	}
	for (unsigned i = 0; i < value_count(family); i++) {
		int64_t value = pn_series_get(series, i);

		if (value == PN_SERIES_ABSENT)
			continue;
		print_name(out, series, "",
		    family->ends == NULL ? NULL : family->labels[last],
		    family->ends == NULL ? NULL : family->ends[i]);
		print_number(out, is_time, value);
	}
}

static bool
ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

void
pn_series_print(struct pn_buf *out)
{
	static const char *const types[PN_TYPE_COUNT] = {
		[PN_TYPE_COUNTER] = "counter",
		[PN_TYPE_GAUGE] = "gauge",
		[PN_TYPE_HISTOGRAM] = "histogram",
	};

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < PN_FAMILY_COUNT; i++) {
		const struct pn_family_row *family = &pn_families[i];
		bool is_time = ends_in(family->name, "_seconds");

		pn_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name,
		    family->help, family->name, types[family->type]);
		for (const struct pn_series *s = lists[i].first; s != NULL;
		     s = s->next)
			print_series(out, s, is_time);
	}
	(void)pthread_mutex_unlock(&lock);
}
