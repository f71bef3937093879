/*
 * Who may go next: a lane for each host, each with a queue and a count of what
 * runs, so that a slow host keeps no one else waiting; lanes that have someone
 * waiting and may run more take turns.
 *
 * curl has limits of its own (CURLMOPT_MAX_HOST_CONNECTIONS). They are not
 * used: in the libcurl of Debian 12 a transfer that waits for a connection
 * does not time out (curl's pull request 13276). So no more is given to curl
 * than may have a connection, and what waits costs a pointer here instead of
 * an easy handle there.
 *
 * A lane is there as long as someone waits or runs in it. Lanes are told apart
 * by the origin of the URL as it is written; that "http://a" and "http://a:80"
 * are the same host is not known here, and does no harm.
 *
 * Pure data: no clock, no sockets.
 */
#include "client_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void
pn_client_lanes_init(struct pn_client_lanes *lanes, unsigned connections_max,
    unsigned connections_per_host_max)
{
	assert(connections_max > 0 && connections_per_host_max > 0);
	*lanes = (struct pn_client_lanes){
		.running_max = connections_max,
		.lane_running_max = connections_per_host_max,
		.until_us = INT64_MAX,
	};
}

void
pn_client_lanes_done(struct pn_client_lanes *lanes)
{
	assert(lanes->waiting == 0 && lanes->running == 0);
	for (size_t i = 0; i < PN_COUNT(lanes->buckets); i++)
		assert(lanes->buckets[i] == NULL);
}

static struct pn_client_lane **
bucket_of(struct pn_client_lanes *lanes, struct pn_str origin)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < origin.len; i++)
		hash =
		    (hash ^ (unsigned char)(origin.data[i] | 32)) * 16777619u;
	return &lanes->buckets[hash % PN_CLIENT_LANE_BUCKETS];
}

static struct pn_str
origin_of(const struct pn_client_lane *lane)
{
	return (struct pn_str){ lane->origin, lane->origin_len };
}

/* The lane of the URL, made if it is not there; NULL: out of memory. */
static struct pn_client_lane *
lane_of(struct pn_client_lanes *lanes, const char *url)
{
	char text[PN_CLIENT_ORIGIN_BYTES_MAX];
	struct pn_str origin = pn_client_origin(url, text);
	struct pn_client_lane **bucket = bucket_of(lanes, origin), *lane;

	for (lane = *bucket; lane != NULL; lane = lane->next)
		if (pn_str_equal_fold(origin_of(lane), origin))
			return lane;
	lane = calloc(1, sizeof(*lane) + origin.len);
	if (lane == NULL)
		return NULL;
	lane->origin_len = origin.len;
	if (origin.len > 0)
		memcpy(lane->origin, origin.data, origin.len);
	lane->next = *bucket;
	*bucket = lane;
	return lane;
}

/* Puts a lane among the ready if it belongs there. */
static void
make_ready(struct pn_client_lanes *lanes, struct pn_client_lane *lane)
{
	if (lane->ready || lane->first == NULL ||
	    lane->running >= lanes->lane_running_max)
		return;
	lane->ready = true;
	lane->after = NULL;
	if (lanes->ready_last == NULL)
		lanes->ready_first = lane;
	else
		lanes->ready_last->after = lane;
	lanes->ready_last = lane;
}

static void
free_if_empty(struct pn_client_lanes *lanes, struct pn_client_lane *lane)
{
	struct pn_client_lane **at;

	if (lane->first != NULL || lane->running > 0 || lane->ready)
		return;
	at = bucket_of(lanes, origin_of(lane));
	while (*at != lane) /* ends: it is in there */
		at = &(*at)->next;
	*at = lane->next;
	free(lane);
}

static int64_t
deadline_of(const struct pn_client_request *request)
{
	return request->began_us + request->timeout_us;
}

int
pn_client_lanes_add(
    struct pn_client_lanes *lanes, struct pn_client_request *request)
{
	struct pn_client_lane *lane = lane_of(lanes, request->url);

	if (lane == NULL)
		return -ENOMEM;
	request->next = NULL;
	if (lane->first == NULL)
		lane->first = request;
	else
		lane->last->next = request;
	lane->last = request;
	lanes->waiting++;
	if (deadline_of(request) < lanes->until_us)
		lanes->until_us = deadline_of(request);
	make_ready(lanes, lane);
	return 0;
}

/* Takes the first one out of the ready. */
static struct pn_client_lane *
take_ready(struct pn_client_lanes *lanes)
{
	struct pn_client_lane *lane = lanes->ready_first;

	if (lane == NULL)
		return NULL;
	assert(lane->ready && lane->running < lanes->lane_running_max);
	lane->ready = false;
	lanes->ready_first = lane->after;
	if (lanes->ready_first == NULL)
		lanes->ready_last = NULL;
	return lane;
}

struct pn_client_request *
pn_client_lanes_next(
    struct pn_client_lanes *lanes, struct pn_client_lane **ret_lane)
{
	struct pn_client_request *request = NULL;
	struct pn_client_lane *lane;

	assert(lanes->running <= lanes->running_max);
	if (lanes->running == lanes->running_max)
		return NULL;
	lane = take_ready(lanes);
	if (lane == NULL)
		return NULL;
	request = lane->first;
	assert(request != NULL && lanes->waiting > 0);
	lane->first = request->next;
	request->next = NULL;
	lanes->waiting--;
	if (lanes->waiting == 0)
		lanes->until_us = INT64_MAX;
	lane->running++;
	lanes->running++;
	make_ready(lanes, lane); /* behind the others */
	*ret_lane = lane;
	return request;
}

void
pn_client_lanes_leave(
    struct pn_client_lanes *lanes, struct pn_client_lane *lane)
{
	assert(lane->running > 0 && lanes->running > 0);
	lane->running--;
	lanes->running--;
	make_ready(lanes, lane);
	free_if_empty(lanes, lane);
}

/* Takes the late ones of a lane out, to the end of a list; *until_us becomes
 * the earliest deadline of the others if that is earlier. */
static struct pn_client_request **
late_of_lane(struct pn_client_lanes *lanes, struct pn_client_lane *lane,
    int64_t now_us, struct pn_client_request **end)
{
	struct pn_client_request *request = lane->first, *next;

	lane->first = lane->last = NULL;
	for (; request != NULL; request = next) {
		next = request->next;
		request->next = NULL;
		if (deadline_of(request) <= now_us) {
			*end = request;
			end = &request->next;
			lanes->waiting--;
			continue;
		}
		if (deadline_of(request) < lanes->until_us)
			lanes->until_us = deadline_of(request);
		if (lane->first == NULL)
			lane->first = request;
		else
			lane->last->next = request;
		lane->last = request;
	}
	return end;
}

struct pn_client_request *
pn_client_lanes_late(struct pn_client_lanes *lanes, int64_t now_us)
{
	struct pn_client_request *late = NULL, **end = &late;
	struct pn_client_lane *lane, *next;

	if (now_us < lanes->until_us)
		return NULL;
	lanes->until_us = INT64_MAX;
	/* The ready ones are found anew: some may have become empty. */
	while (take_ready(lanes) != NULL)
		continue;
	for (size_t i = 0; i < PN_COUNT(lanes->buckets); i++)
		for (lane = lanes->buckets[i]; lane != NULL; lane = next) {
			next = lane->next;
			end = late_of_lane(lanes, lane, now_us, end);
			make_ready(lanes, lane);
			free_if_empty(lanes, lane);
		}
	return late;
}
