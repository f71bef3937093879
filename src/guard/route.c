/*
 * The routes of the gateway: which one a request belongs to, and what the
 * statuses of its upstream say.
 *
 * Paths are compared as bytes in the one form that path.c gives them, so
 * "/v1/%63harges" is "/v1/charges": the same work is not done under two scopes.
 * More is not taken for equal: "/v1/charges/" and "//v1/charges" are other paths.
 * But a rest with a "." or ".." among its segments belongs to no route: who asks
 * the upstream would resolve it, out of the route's own path maybe. What some
 * servers decode before they resolve separates segments here too: "%2F", "%5C".
 *
 * There are few routes, at most PN_GUARD_ROUTES_MAX, and they are walked one by
 * one: a comparison each, most of which end at the method or the length.
 *
 * Invariant: no two routes have one method and one path, so the best match is
 * one. What conf checks of a single option is relied on (assert); what options
 * mean together is checked here.
 */
#include "guard_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "paynotify/limits.h"
#include "paynotify/parse.h"

enum {
	ALLOW_BYTES_MAX = 1024,
	STATUS_TEXT_LEN = 3, /* "409", "5xx" */
	/* A text and a path each, of at most what a line of the configuration
	 * has, three bytes for one. */
	ROUTE_ARENA_BYTES = 8 * PN_CONF_LINE_BYTES_MAX,
};

/* -- what a status says ----------------------------------------------------- */

static void
set_class(struct pn_guard_route *route, unsigned hundreds, enum pn_work work)
{
	for (unsigned i = 0; i < 100; i++)
		route->work[hundreds * 100 + i] = (unsigned char)work;
}

static void
set_usual_work(struct pn_guard_route *route)
{
	/* 1xx and what is no status at all: an upstream that speaks no HTTP
	 * that we know, of which we know nothing. */
	set_class(route, 0, PN_WORK_UNKNOWN);
	set_class(route, 1, PN_WORK_UNKNOWN);
	set_class(route, 2, PN_WORK_DONE);
	set_class(route, 3, PN_WORK_DONE);
	set_class(route, 4, PN_WORK_DONE);
	set_class(route, 5, PN_WORK_UNKNOWN);
	route->work[408] = PN_WORK_UNKNOWN;
	route->work[425] = PN_WORK_NOT;
	route->work[429] = PN_WORK_NOT;
}

/* "5xx": true, and 5; "409": false. */
static bool
parse_status(struct pn_str text, unsigned *ret_status)
{
	uint64_t status;
	int r;

	/* 1xx is none that an answer ends with: conf takes no such. */
	assert(text.len == STATUS_TEXT_LEN);
	assert(text.data[0] >= '2' && text.data[0] <= '5');
	if (text.data[1] == 'x') {
		*ret_status = (unsigned)(text.data[0] - '0');
		return true;
	}
	r = pn_parse_uint(text, PN_STATUS_COUNT - 1, &status);
	assert(r == 0);
	*ret_status = (unsigned)status;
	return false;
}

struct status_list {
	const char *option;
	const struct pn_conf_strings *entries;
	enum pn_work work;
};
enum { STATUS_LISTS = 3 };

/* An entry that another list has before this one. NULL: none has. */
static const char *
other_list(const struct status_list *lists, size_t list, const char *entry)
{
	for (size_t i = 0; i < list; i++)
		for (size_t k = 0; k < lists[i].entries->count; k++)
			if (strcmp(lists[i].entries->values[k], entry) == 0)
				return lists[i].option;
	return NULL;
}

static int
check_entry(const struct status_list *lists, size_t list, size_t entry,
    struct pn_error *ret_error)
{
	const struct pn_conf_strings *entries = lists[list].entries;
	const char *text = entries->values[entry];
	const char *other = other_list(lists, list, text);

	if (other != NULL)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: %s \"%s\" stands in %s too: a status means one "
		    "thing",
		    entries->places[entry].file, entries->places[entry].line,
		    lists[list].option, text, other);
	return 0;
}

static void
apply_list(
    struct pn_guard_route *route, const struct status_list *list, bool classes)
{
	unsigned status;

	for (size_t i = 0; i < list->entries->count; i++) {
		if (parse_status(pn_str_from(list->entries->values[i]),
			&status) != classes)
			continue;
		if (classes)
			set_class(route, status, list->work);
		else
			route->work[status] = (unsigned char)list->work;
	}
}

static int
init_work(struct pn_guard_route *route, struct pn_error *ret_error)
{
	const struct pn_conf_guard_route *conf = route->conf;
	const struct status_list lists[STATUS_LISTS] = {
		{ "keep_status", &conf->keep_status, PN_WORK_DONE },
		{ "release_status", &conf->release_status, PN_WORK_NOT },
		{ "unknown_status", &conf->unknown_status, PN_WORK_UNKNOWN },
	};
	int r = 0;

	set_usual_work(route);
	for (size_t i = 0; i < STATUS_LISTS; i++)
		for (size_t k = 0; r == 0 && k < lists[i].entries->count; k++)
			r = check_entry(lists, i, k, ret_error);
	for (size_t i = 0; r == 0 && i < STATUS_LISTS; i++)
		apply_list(route, &lists[i], true);
	for (size_t i = 0; r == 0 && i < STATUS_LISTS; i++)
		apply_list(route, &lists[i], false);
	return r;
}

enum pn_work
pn_guard_route_work(const struct pn_guard_route *route, int status)
{
	if (status < 0 || status >= PN_STATUS_COUNT)
		return PN_WORK_UNKNOWN;
	return (enum pn_work)route->work[status];
}

/* -- opening ---------------------------------------------------------------- */

/* "POST /v1/charges" in its parts. */
static int
init_path(struct pn_guard_route *route, struct pn_arena *arena,
    struct pn_error *ret_error)
{
	const struct pn_conf_guard_route *conf = route->conf;
	struct pn_str path = pn_str_from(conf->path), method;
	int r;

	method = pn_str_split(&path, ' ');
	r = pn_guard_path(path, arena, &path);
	if (r < 0)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	if (r > 0 || method.len == 0 || path.len == 0 || path.data[0] != '/')
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: path \"%s\" is not a method and a path, as in "
		    "POST /v1/charges",
		    conf->path_place.file, conf->path_place.line, conf->path);
	route->text = pn_arena_printf(arena, PN_STR_FMT " " PN_STR_FMT,
	    PN_STR_ARG(method), PN_STR_ARG(path));
	if (route->text.data == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	path = route->text;
	route->method = pn_str_split(&path, ' ');
	if (path.len >= 2 && memcmp(path.data + path.len - 2, "/*", 2) == 0) {
		route->has_rest = true;
		path.len--;
	}
	route->path = path;
	return 0;
}

/* What is put behind the upstream's address must belong to its path. */
static int
check_upstream(
    const struct pn_conf_guard_route *conf, struct pn_error *ret_error)
{
	const char *host = NULL;

	if (strncmp(conf->upstream, "http://", strlen("http://")) == 0)
		host = conf->upstream + strlen("http://");
	else if (strncmp(conf->upstream, "https://", strlen("https://")) == 0)
		host = conf->upstream + strlen("https://");
	if (host == NULL || strcspn(host, "/?#") == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: upstream \"%s\" is not http:// or https:// with a "
		    "host, as in http://127.0.0.1:9000/v1/charges",
		    conf->upstream_place.file, conf->upstream_place.line,
		    conf->upstream);
	if (strpbrk(host, "?#") != NULL)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: upstream \"%s\" has a query or a fragment: the "
		    "query comes from the request",
		    conf->upstream_place.file, conf->upstream_place.line,
		    conf->upstream);
	return 0;
}

static int
init_tenant(struct pn_guard_route *route, struct pn_error *ret_error)
{
	const struct pn_conf_guard_route *conf = route->conf;
	size_t given = (conf->tenant.count > 0) +
		       (conf->tenant_header.count > 0) +
		       (conf->api_keys.count > 0);

	if (given != 1)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: [guard %s] needs %s of tenant, tenant_header and "
		    "api_keys: whose keys they are is said in one way",
		    conf->place.file, conf->place.line, conf->name,
		    given == 0 ? "one" : "only one");
	assert(conf->tenant.count <= 1 && conf->tenant_header.count <= 1 &&
	       conf->api_keys.count <= 1);
	if (conf->api_keys.count == 0)
		return 0;
	return pn_api_keys_open(
	    &conf->api_keys.files[0], &route->api_keys, ret_error);
}

static void
init_terms(struct pn_guard_route *route)
{
	const struct pn_conf_guard_route *conf = route->conf;

	assert(conf->lease_us > 0 && conf->ttl_us > 0);
	assert(conf->attempts_max >= 1 && conf->attempts_max <= INT32_MAX);
	route->terms = (struct pn_claim_terms){
		.lease_us = conf->lease_us,
		.ttl_us = conf->ttl_us,
		/* release is about holders that come back and do not know;
		 * one that does not come back has its lease run out. */
		.unknown = conf->unknown == PN_GUARD_HOLD ? PN_CLAIM_HOLD
							  : PN_CLAIM_RETRY,
		.after_expiry = conf->after_expiry == PN_GUARD_REFUSE
				    ? PN_CLAIM_REFUSE
				    : PN_CLAIM_NEW,
		.attempts_max = (int)conf->attempts_max,
	};
}

static int
check_others(const struct pn_guard_routes *routes,
    const struct pn_guard_route *route, struct pn_error *ret_error)
{
	const struct pn_conf_guard_route *conf = route->conf;

	for (const struct pn_guard_route *other = routes->routes; other < route;
	     other++)
		if (pn_str_equal(other->text, route->text))
			return pn_error_set(ret_error, -EINVAL,
			    "%s:%d: path \"%s\" is that of [guard %s] at %s:%d "
			    "too",
			    conf->path_place.file, conf->path_place.line,
			    conf->path, other->conf->name,
			    other->conf->path_place.file,
			    other->conf->path_place.line);
	return 0;
}

static int
route_init(struct pn_guard_routes *routes, struct pn_guard_route *route,
    struct pn_error *ret_error)
{
	int r = init_path(route, routes->arena, ret_error);

	if (r == 0)
		r = check_others(routes, route, ret_error);
	if (r == 0)
		r = check_upstream(route->conf, ret_error);
	if (r == 0)
		r = init_work(route, ret_error);
	if (r == 0)
		r = init_tenant(route, ret_error);
	if (r == 0)
		init_terms(route);
	return r;
}

int
pn_guard_routes_open(const struct pn_conf *conf,
    struct pn_guard_routes *ret_routes, struct pn_error *ret_error)
{
	struct pn_guard_routes routes = { .routes = NULL };
	int r = 0;

	routes.routes =
	    calloc(conf->guard_route_count + 1, sizeof(*routes.routes));
	routes.arena =
	    pn_arena_new((conf->guard_route_count + 1) * ROUTE_ARENA_BYTES);
	if (routes.routes == NULL || routes.arena == NULL) {
		pn_guard_routes_close(&routes);
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	}
	while (r == 0 && routes.count < conf->guard_route_count) {
		struct pn_guard_route *route = &routes.routes[routes.count++];

		route->conf = &conf->guard_routes[routes.count - 1];
		route->all = conf;
		r = route_init(&routes, route, ret_error);
	}
	if (r != 0)
		pn_guard_routes_close(&routes);
	else
		*ret_routes = routes;
	return r;
}

void
pn_guard_routes_close(struct pn_guard_routes *routes)
{
	if (routes == NULL)
		return;
	for (size_t i = 0; i < routes->count; i++)
		pn_api_keys_close(routes->routes[i].api_keys);
	free(routes->routes);
	pn_arena_free(routes->arena);
	*routes = (struct pn_guard_routes){ .routes = NULL };
}

/* A default has no place, and is right. */
static int
check_listen(const struct pn_conf_strings *listen, struct pn_error *ret_error)
{
	for (size_t i = 0; i < listen->count; i++) {
		int r = pn_listen_check(listen->values[i], false, ret_error);

		if (r < 0 && listen->places != NULL)
			return pn_error_prefix(ret_error, r,
			    "%s:%d: listen: ", listen->places[i].file,
			    listen->places[i].line);
		if (r < 0)
			return r;
	}
	return 0;
}

int
pn_guard_check(const struct pn_conf *conf, struct pn_error *ret_error)
{
	struct pn_guard_routes routes = { .routes = NULL };
	int r = check_listen(&conf->guard.listen, ret_error);

	if (r == 0)
		r = pn_guard_routes_open(conf, &routes, ret_error);
	if (r == 0)
		pn_guard_routes_close(&routes);
	return r;
}

/* -- finding ---------------------------------------------------------------- */

/* How long what separates two segments is, where text begins with it. 0: no. */
static size_t
separator_bytes(struct pn_str text)
{
	if (pn_str_starts(text, "%2F") || pn_str_starts(text, "%5C"))
		return 3;
	return pn_str_starts(text, "/") || pn_str_starts(text, "\\");
}

static bool
has_dot_segment(struct pn_str rest)
{
	size_t begin = 0;

	for (size_t i = 0; i <= rest.len; i++) {
		struct pn_str left = { rest.data + i, rest.len - i };
		struct pn_str segment = { rest.data + begin, i - begin };
		size_t separator = separator_bytes(left);

		if (separator == 0 && left.len > 0)
			continue;
		if (pn_str_is(segment, ".") || pn_str_is(segment, ".."))
			return true;
		begin = i + separator;
	}
	return false;
}

static bool
route_has_path(const struct pn_guard_route *route, struct pn_str path,
    struct pn_str *ret_rest)
{
	struct pn_str rest;

	if (!route->has_rest) {
		*ret_rest = PN_STR("");
		return pn_str_equal(route->path, path);
	}
	if (path.len < route->path.len ||
	    memcmp(path.data, route->path.data, route->path.len) != 0)
		return false;
	rest = (struct pn_str){ path.data + route->path.len,
		path.len - route->path.len };
	if (has_dot_segment(rest))
		return false;
	*ret_rest = rest;
	return true;
}

/* Not TRACE: what comes back would be the request as the upstream got it, with
 * what only the gateway and the proxies say. */
static bool
is_safe_method(struct pn_str method)
{
	static const char *const methods[] = { "GET", "HEAD", "OPTIONS" };

	for (size_t i = 0; i < PN_COUNT(methods); i++)
		if (pn_str_is(method, methods[i]))
			return true;
	return false;
}

/* Both have the path that is asked for. The one in front stays where they are
 * equal: of a method that neither has. */
static bool
is_better(const struct pn_guard_route *a, const struct pn_guard_route *b)
{
	if (b == NULL)
		return true;
	if (a->has_rest != b->has_rest)
		return b->has_rest;
	return a->path.len > b->path.len;
}

struct pn_guard_match
pn_guard_route_find(const struct pn_guard_routes *routes, struct pn_str method,
    struct pn_str path)
{
	struct pn_guard_match match = { .is_safe = is_safe_method(method),
		.rest = PN_STR("") };
	struct pn_str rest;

	for (size_t i = 0; i < routes->count; i++) {
		const struct pn_guard_route *route = &routes->routes[i];

		if (!route_has_path(route, path, &rest))
			continue;
		match.path_known = true;
		if (!match.is_safe && !pn_str_equal(route->method, method))
			continue;
		if (is_better(route, match.route)) {
			match.route = route;
			match.rest = rest;
		}
	}
	match.is_safe = match.is_safe && match.route != NULL;
	match.path_known = match.path_known && match.route == NULL;
	return match;
}

struct pn_str
pn_guard_route_allow(const struct pn_guard_routes *routes, struct pn_str path,
    struct pn_arena *arena)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(ALLOW_BYTES_MAX);
	struct pn_str rest;

	pn_buf_add_text(&text, "GET, HEAD, OPTIONS");
	for (size_t i = 0; i < routes->count; i++) {
		const struct pn_guard_route *route = &routes->routes[i];

		if (!route_has_path(route, path, &rest) ||
		    pn_str_find(pn_buf_str(&text), route->method) >= 0)
			continue;
		pn_buf_add_text(&text, ", ");
		pn_buf_add_str(&text, route->method);
	}
	if (pn_buf_failed(&text))
		return (struct pn_str){ NULL, 0 };
	return pn_arena_copy(arena, pn_buf_str(&text));
}
