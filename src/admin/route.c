/*
 * The table of routes: method, path, who may, what it needs, which parameters it
 * takes, what it does. The dispatcher reads the row and does the rest, so none
 * of them can forget to ask who is there; GET /api/v1 prints the table, which is
 * what the tests walk.
 *
 * A path is compared segment by segment, undecoded: "%2F" in a name is a name's.
 * A "{word}" at the end takes all that is left, since keys have slashes in them.
 * What stands in a path as it is wins over a "{word}".
 */
#include "api.h"

#include <assert.h>

#define PAGED (ADMIN_LIMIT | ADMIN_AFTER)

/* clang-format off */
static const struct admin_route routes[] = {
	{ "GET", "/healthz", ADMIN_OPEN, ADMIN_NEEDS_NOTHING, 0,
	  admin_health, "200 as long as the process answers" },
	{ "GET", "/readyz", ADMIN_OPEN, ADMIN_NEEDS_NOTHING, 0,
	  admin_ready, "200 when the database takes events, else 503 and why" },
	{ "GET", "/metrics", ADMIN_READ, ADMIN_NEEDS_NOTHING, 0,
	  admin_metrics, "every counter, for Prometheus" },
	{ "GET", "/api/v1", ADMIN_READ, ADMIN_NEEDS_NOTHING, 0,
	  admin_index, "this table" },
	{ "GET", "/api/v1/events", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT | ADMIN_TYPE | ADMIN_KEY | ADMIN_OUT_TRADE_NO |
	  ADMIN_SINCE | PAGED,
	  admin_events_list, "what was recorded, the newest first" },
	{ "GET", "/api/v1/events/{event}", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT,
	  admin_events_show, "an event by id, key or seq" },
	{ "GET", "/api/v1/receipts", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT | ADMIN_PROVIDER | ADMIN_VERDICT | ADMIN_OUT_TRADE_NO |
	  ADMIN_SINCE | PAGED,
	  admin_receipts_list, "requests and their verdicts, the newest first" },
	{ "GET", "/api/v1/orders/{out_trade_no}", ADMIN_READ,
	  ADMIN_NEEDS_READING, ADMIN_TENANT,
	  admin_orders_show, "all that is known of an order, as a timeline" },
	{ "GET", "/api/v1/quarantine", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT | ADMIN_PROVIDER | ADMIN_STATE | ADMIN_SINCE | PAGED,
	  admin_quarantine_list, "what was signed and could not be recorded,"
	  " the newest first" },
	{ "GET", "/api/v1/quarantine/{id}", ADMIN_READ, ADMIN_NEEDS_READING, 0,
	  admin_quarantine_show, "one of them, with its events" },
	{ "GET", "/api/v1/consumers", ADMIN_READ, ADMIN_NEEDS_READING, 0,
	  admin_consumers_list, "who gets events, and how far each is" },
	{ "GET", "/api/v1/deliveries", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_CONSUMER | ADMIN_STATE | ADMIN_TENANT | PAGED,
	  admin_deliveries_list, "what is not handed off, the oldest first" },
	{ "GET", "/api/v1/deliveries/{event}", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT,
	  admin_deliveries_show, "where an event stands, every attempt and"
	  " action" },
	{ "GET", "/api/v1/keys", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT | ADMIN_ROUTE | ADMIN_STATE | PAGED,
	  admin_keys_list, "keys of the gateway, by tenant, route and key" },
	{ "GET", "/api/v1/keys/{key}", ADMIN_READ, ADMIN_NEEDS_READING,
	  ADMIN_TENANT | ADMIN_ROUTE,
	  admin_keys_show, "one of them, its answer, and what was done by"
	  " hand" },

	{ "POST", "/api/v1/deliveries/redeliver", ADMIN_ACT,
	  ADMIN_NEEDS_WRITING, 0,
	  admin_deliveries_redeliver, "hands events over once more" },
	{ "POST", "/api/v1/deliveries/skip", ADMIN_ACT, ADMIN_NEEDS_WRITING, 0,
	  admin_deliveries_skip, "gives events up" },
	{ "POST", "/api/v1/consumers/{name}/pause", ADMIN_ACT,
	  ADMIN_NEEDS_WRITING, 0,
	  admin_consumers_pause, "hands nothing to a consumer" },
	{ "POST", "/api/v1/consumers/{name}/resume", ADMIN_ACT,
	  ADMIN_NEEDS_WRITING, 0,
	  admin_consumers_resume, "goes on with a consumer" },
	{ "POST", "/api/v1/consumers/{name}/remove", ADMIN_ACT,
	  ADMIN_NEEDS_WRITING, 0,
	  admin_consumers_remove, "forgets a consumer" },
	{ "POST", "/api/v1/keys/release", ADMIN_ACT, ADMIN_NEEDS_WRITING, 0,
	  admin_keys_release, "has a key's next request run" },
	{ "POST", "/api/v1/keys/forget", ADMIN_ACT, ADMIN_NEEDS_WRITING, 0,
	  admin_keys_forget, "forgets a key and its answer" },

	{ "GET", "/api/v1/log", ADMIN_READ, ADMIN_NEEDS_NOTHING, 0,
	  admin_log_show, "how much is logged" },
	{ "PUT", "/api/v1/log", ADMIN_ACT, ADMIN_NEEDS_NOTHING, 0,
	  admin_log_set, "logs more or less, until the daemon ends" },
};
/* clang-format on */

const struct admin_route *
admin_route_at(size_t index)
{
	return index < PN_COUNT(routes) ? &routes[index] : NULL;
}

static bool
is_word(struct pn_str segment)
{
	return pn_str_starts(segment, "{");
}

/* Whether the path is the pattern's; *ret_segment: what its word stands for. */
static bool
matches(const char *pattern, struct pn_str path, struct pn_str *ret_segment)
{
	struct pn_str left = pn_str_from(pattern), rest = path;
	struct pn_str segment = { NULL, 0 };

	while (left.data != NULL && rest.data != NULL) {
		struct pn_str want = pn_str_split(&left, '/'), all = rest;
		struct pn_str got = pn_str_split(&rest, '/');

		if (is_word(want) && left.data == NULL) {
			got = all;
			rest = (struct pn_str){ NULL, 0 };
		}
		if (is_word(want) ? got.len == 0 : !pn_str_equal(want, got))
			return false;
		if (is_word(want))
			segment = got;
	}
	if (left.data != NULL || rest.data != NULL)
		return false;
	*ret_segment = segment;
	return true;
}

static bool
takes(const struct admin_route *route, struct pn_str method)
{
	return pn_str_is(method, route->method) ||
	       (pn_str_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

const struct admin_route *
admin_route_find(struct pn_str method, struct pn_str path,
    struct pn_str *ret_segment, bool *ret_known)
{
	const struct admin_route *found = NULL;
	struct pn_str segment;

	*ret_known = false;
	*ret_segment = (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < PN_COUNT(routes); i++) {
		if (!matches(routes[i].path, path, &segment))
			continue;
		*ret_known = true;
		if (!takes(&routes[i], method) ||
		    (found != NULL && segment.data != NULL))
			continue;
		found = &routes[i];
		*ret_segment = segment;
	}
	return found;
}

void
admin_route_allow(struct pn_str path, struct pn_buf *out)
{
	struct pn_str segment;

	for (size_t i = 0; i < PN_COUNT(routes); i++) {
		if (!matches(routes[i].path, path, &segment) ||
		    (out->len > 0 && pn_str_find(pn_buf_str(out),
					 pn_str_from(routes[i].method)) >= 0))
			continue;
		pn_buf_add_text(out, out->len > 0 ? ", " : "");
		pn_buf_add_text(out, strcmp(routes[i].method, "GET") == 0
					 ? "GET, HEAD"
					 : routes[i].method);
	}
}
