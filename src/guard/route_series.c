/*
 * What is counted of a route: its series, opened with the gateway.
 *
 * A request is counted once, when it is answered, by what it was answered with;
 * one for which there is no route is none's.
 */
#include <assert.h>

#include "paynotify/metrics.h"

#include "result.h"

void
pn_guard_series_open(struct pn_guard_routes *routes)
{
	for (size_t i = 0; i < routes->count; i++) {
		struct pn_guard_series *series = &routes->routes[i].series;
		const char *const route[] = { routes->routes[i].conf->name };

		assert(series->requests == NULL);
		series->requests =
		    pn_series_open(PN_FAMILY_GUARD_REQUESTS, route);
		series->upstream =
		    pn_series_open(PN_FAMILY_GUARD_UPSTREAM, route);
		series->seconds =
		    pn_series_open(PN_FAMILY_GUARD_SECONDS, route);
		series->wait = pn_series_open(PN_FAMILY_GUARD_WAIT, route);
		series->held = pn_series_open(PN_FAMILY_GUARD_HELD, route);
	}
}

void
pn_guard_series_close(struct pn_guard_routes *routes)
{
	for (size_t i = 0; i < routes->count; i++) {
		struct pn_guard_series *series = &routes->routes[i].series;

		pn_series_close(series->requests);
		pn_series_close(series->upstream);
		pn_series_close(series->seconds);
		pn_series_close(series->wait);
		pn_series_close(series->held);
		*series = (struct pn_guard_series){ .requests = NULL };
	}
}

static enum pn_guard_end
end_of(enum pn_problem problem, bool replayed, bool is_safe)
{
	/* All others are the client's. */
	static const struct {
		enum pn_problem problem;
		enum pn_guard_end end;
	} ends[] = {
		{ PN_PROBLEM_STOPPING, PN_GUARD_END_UNAVAILABLE },
		{ PN_PROBLEM_MISMATCH, PN_GUARD_END_MISMATCH },
		{ PN_PROBLEM_IN_PROGRESS, PN_GUARD_END_BUSY },
		{ PN_PROBLEM_SET_ASIDE, PN_GUARD_END_SET_ASIDE },
		{ PN_PROBLEM_EXPIRED, PN_GUARD_END_EXPIRED },
		{ PN_PROBLEM_DATABASE, PN_GUARD_END_UNAVAILABLE },
		{ PN_PROBLEM_NO_ROOM, PN_GUARD_END_UNAVAILABLE },
		{ PN_PROBLEM_UPSTREAM_UNREACHABLE, PN_GUARD_END_UPSTREAM },
		{ PN_PROBLEM_UPSTREAM_TIMEOUT, PN_GUARD_END_UPSTREAM },
		{ PN_PROBLEM_UPSTREAM_LOST, PN_GUARD_END_UPSTREAM },
		{ PN_PROBLEM_RESPONSE_TOO_LARGE, PN_GUARD_END_UPSTREAM },
		{ PN_PROBLEM_LEASE_LOST, PN_GUARD_END_UNKEPT },
		{ PN_PROBLEM_NOT_STORED, PN_GUARD_END_UNKEPT },
		{ PN_PROBLEM_INTERRUPTED, PN_GUARD_END_UPSTREAM },
		{ PN_PROBLEM_MEMORY, PN_GUARD_END_UNAVAILABLE },
	};

	if (problem == PN_PROBLEM_NONE)
		return is_safe    ? PN_GUARD_END_PASSED
		       : replayed ? PN_GUARD_END_REPLAYED
				  : PN_GUARD_END_ANSWERED;
	for (size_t i = 0; i < PN_COUNT(ends); i++)
		if (ends[i].problem == problem)
			return ends[i].end;
	return PN_GUARD_END_REFUSED;
}

void
pn_guard_count(const struct pn_guard_job *job, enum pn_problem problem)
{
	assert((unsigned)problem < PN_PROBLEM_COUNT);
	if (job->route == NULL)
		pn_metric_add(PN_METRIC_GUARD_UNROUTED, 1);
	else
		pn_series_add(job->route->series.requests,
		    end_of(problem, job->replayed, job->is_safe), 1);
}
