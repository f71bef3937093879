/*
 * Asks the database for the figures that only it knows (sql/0009) and shows them
 * in the metrics.
 *
 * What could not be asked is absent, not the last that was known: an old figure
 * looks like a good one. When they were last asked is a figure itself.
 *
 * Consumers come and go: each time, those that are not among the answer's any
 * more become absent.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/parse.h"
#include "paynotify/series.h"

#include "janitor_internal.h"
#include "statements.h"

/* Columns of statements/figures.sql. */
enum { FIGURE, CONSUMER, VALUE };

static const struct figure {
	const char *name;
	enum pn_family family;
	bool of_consumer;
} figures[] = {
	{ "quarantine_open", PN_FAMILY_QUARANTINE_OPEN, false },
	{ "quarantine_age", PN_FAMILY_QUARANTINE_SINCE, false },
	{ "hot_keys", PN_FAMILY_HOT_KEYS, false },
	{ "hot_key_overdue", PN_FAMILY_HOT_KEY_OVERDUE, false },
	{ "partitions_ahead", PN_FAMILY_PARTITIONS_AHEAD, false },
	{ "dead_letters", PN_FAMILY_DEAD_LETTERS, true },
	{ "undelivered_age", PN_FAMILY_UNDELIVERED_AGE, true },
};
static_assert(PN_FIGURES_MAX >= PN_COUNT(figures) + 2 * PN_CONSUMERS_TOLD_MAX,
    "an answer's figures have room");

static struct pn_series *
series_of(const char *name, const char *consumer)
{
	for (size_t i = 0; i < PN_COUNT(figures); i++)
		if (strcmp(figures[i].name, name) == 0)
			return pn_series_open(figures[i].family,
			    figures[i].of_consumer
				? (const char *const[]){ consumer }
				: NULL);
	return NULL; /* of a newer schema */
}

/* Shows all of an answer. Those of before are closed afterwards, so that what
 * is in both is never absent. */
static void
show(struct pn_janitor *janitor, const PGresult *answer)
{
	struct pn_series *before[PN_FIGURES_MAX];
	size_t before_count = janitor->figure_count;
	int rows = PQntuples(answer);

	memcpy(before, janitor->figures, before_count * sizeof(before[0]));
	janitor->figure_count = 0;
	for (int i = 0; i < rows && janitor->figure_count < PN_FIGURES_MAX - 1;
	     i++) {
		struct pn_series *series =
		    series_of(PQgetvalue(answer, i, FIGURE),
			PQgetvalue(answer, i, CONSUMER));
		uint64_t value;

		janitor->figures[janitor->figure_count++] = series;
		if (pn_parse_uint(pn_str_from(PQgetvalue(answer, i, VALUE)),
			INT64_MAX, &value) == 0)
			pn_series_set(series, (int64_t)value);
	}
	janitor->figures[janitor->figure_count] =
	    pn_series_open(PN_FAMILY_FIGURES_TIME, NULL);
	pn_series_set(
	    janitor->figures[janitor->figure_count++], pn_clock_realtime_us());
	for (size_t i = 0; i < before_count; i++)
		pn_series_close(before[i]);
}

void
pn_figures_forget(struct pn_janitor *janitor)
{
	for (size_t i = 0; i < janitor->figure_count; i++)
		pn_series_close(janitor->figures[i]);
	janitor->figure_count = 0;
}

int
pn_duty_figures(
    struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *answer = NULL;
	int r;

	(void)ret_rest_us;
	r = pn_conn_exec(&hand->conn, pn_sql_figures, &answer, error);
	if (r == 0)
		show(hand->janitor, answer);
	else
		pn_figures_forget(hand->janitor);
	return r;
}
