/*
 * What the options of a section must be together, beyond what each row of the
 * option table says of its own option. Run on sections whose options were all
 * right, so that one slip is told once. Accounts: check_account.c.
 */
#include "conf_internal.h"

#include "paynotify/parse.h"

/* -- endpoints --------------------------------------------------------------- */

static bool
tenant_exists(const struct pn_conf *conf, const char *tenant)
{
	for (size_t i = 0; i < conf->account_count; i++)
		if (strcmp(conf->accounts[i].tenant, tenant) == 0)
			return true;
	return false;
}

static const char *
tenant_nearest(const struct pn_conf *conf, const char *tenant)
{
	const char *near[2] = { NULL, NULL };

	for (size_t i = 0; i < conf->account_count; i++) {
		near[1] = conf->accounts[i].tenant;
		near[0] = near[0] == NULL ? pn_nearest(tenant, near + 1, 1)
					  : pn_nearest(tenant, near, 2);
	}
	return near[0];
}

/* A filter that lets nothing through is a queue that never moves, and no one is
 * told. A process that only delivers may have no account in its file; then
 * there is nothing to compare with. */
static void
tenants_check(struct conf_load *load, const struct pn_conf_strings *tenants)
{
	const struct pn_conf *conf = load->conf;

	for (size_t i = 0; i < tenants->count && conf->account_count > 0; i++) {
		const char *tenant = tenants->values[i], *near = NULL;

		if (tenant_exists(conf, tenant))
			continue;
		/* Guesses that are not shown are not worth the time. */
		if (load->error_told == load->error_count)
			near = tenant_nearest(conf, tenant);
		if (near != NULL)
			conf_fail(load, tenants->places[i],
			    "tenants: no account has the tenant \"%s\"; did"
			    " you mean \"%s\"?",
			    tenant, near);
		else
			conf_fail(load, tenants->places[i],
			    "tenants: no account has the tenant \"%s\": add"
			    " [alipay %s] or [wechat %s], or take it out",
			    tenant, tenant, tenant);
	}
}

/* The types that there are; a provider's own begin with its name. */
static const char *const types_known[] = { "payment.succeeded",
	"payment.finished", "payment.pending", "payment.closed",
	"payment.failed", "refund.succeeded", "refund.abnormal",
	"refund.closed" };
static const char *const types_own[] = { "alipay.", "wechat." };

/* "payment.*" is what begins with "payment.". */
static bool
type_matches(struct pn_str pattern)
{
	bool all = pattern.data[pattern.len - 1] == '*';

	pattern.len -= all;
	for (size_t i = 0; i < PN_COUNT(types_own); i++)
		if (pn_str_starts(pattern, types_own[i]))
			return true;
	for (size_t i = 0; i < PN_COUNT(types_known); i++) {
		struct pn_str known = pn_str_from(types_known[i]);

		if (all && known.len > pattern.len)
			known.len = pattern.len;
		if (pn_str_equal(known, pattern))
			return true;
	}
	return false;
}

/* Nothing worse: a later version may have more types, and an endpoint waits for
 * them. */
static void
types_check(struct conf_load *load, const struct conf_section *section,
    const struct pn_conf_strings *types)
{
	static const char *const patterns[] = { "payment.*", "refund.*",
		"alipay.*", "wechat.*" };

	for (size_t i = 0; i < types->count; i++) {
		const char *type = types->values[i], *near;

		if (type_matches(pn_str_from(type)))
			continue;
		near =
		    strchr(type, '*') != NULL
			? pn_nearest(type, patterns, PN_COUNT(patterns))
			: pn_nearest(type, types_known, PN_COUNT(types_known));
		conf_warn(load, types->places[i],
		    "[%s] types \"%s\" is no type of any event, so nothing of"
		    " it is sent%s%s%s",
		    section->title, type,
		    near != NULL ? "; did you mean \"" : "",
		    near != NULL ? near : "", near != NULL ? "\"?" : "");
	}
}

void
conf_check_deliver(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_deliver *endpoint = section->base;

	tenants_check(load, &endpoint->tenants);
	types_check(load, section, &endpoint->types);
	if (conf_url_is_exposed(pn_str_from(endpoint->url)))
		conf_warn(load, endpoint->url_place,
		    "[%s] url is http:// to another host: everyone on the way"
		    " can read the events; use https:// unless the network is"
		    " yours alone",
		    section->title);
}

/* -- the gateway ------------------------------------------------------------- */

void
conf_check_guard_route(
    struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_guard_route *route = section->base;
	size_t means = route->tenant.count + route->tenant_header.count +
		       route->api_keys.count;

	if (means == 0)
		conf_fail(load, section->place,
		    "[%s] whose keys are they? tenant, tenant_header or"
		    " api_keys is required",
		    section->title);
	else if (means > 1)
		conf_fail(load, section->place,
		    "[%s] only one of tenant, tenant_header and api_keys may"
		    " say whose a key is",
		    section->title);
	if (conf_url_is_exposed(pn_str_from(route->upstream)))
		conf_warn(load, route->upstream_place,
		    "[%s] upstream is http:// to another host: everyone on the"
		    " way can read and change requests and answers; use"
		    " https:// unless the network is yours alone",
		    section->title);
}

/* NULL when there is none. */
static const struct conf_section *
section_find(const struct conf_load *load, const char *kind)
{
	for (size_t i = 0; i < load->section_count; i++)
		if (strcmp(load->sections[i].kind->section, kind) == 0)
			return &load->sections[i];
	return NULL;
}

/* -- listeners --------------------------------------------------------------- */

struct listener {
	const char *section;
	struct pn_str host, port; /* of a unix socket: all of it, and none */
	const char *text;
	struct pn_conf_place place;
};

static bool
host_is_v4(struct pn_str host)
{
	for (size_t i = 0; i < host.len; i++)
		if ((host.data[i] < '0' || host.data[i] > '9') &&
		    host.data[i] != '.')
			return false;
	return true;
}

/* Whether the first, if it is had, leaves nothing of the second. [::] takes IPv4
 * too. Names are not resolved, and a port that the system chooses is another one
 * each time. */
static bool
listener_covers(const struct listener *a, const struct listener *b)
{
	uint64_t port_a = 0, port_b = 0;

	if (a->port.len == 0 || b->port.len == 0)
		return strcmp(a->text, b->text) == 0;
	if (pn_parse_uint(a->port, UINT16_MAX, &port_a) != 0 ||
	    pn_parse_uint(b->port, UINT16_MAX, &port_b) != 0 ||
	    port_a != port_b || port_a == 0)
		return false;
	return pn_str_equal(a->host, b->host) || pn_str_is(a->host, "[::]") ||
	       (pn_str_is(a->host, "0.0.0.0") && host_is_v4(b->host));
}

static size_t
listeners_add(const char *section, const struct pn_conf_strings *list,
    struct listener *ret_listeners)
{
	for (size_t i = 0; i < list->count; i++) {
		struct pn_str text = pn_str_from(list->values[i]), host = text;

		if (pn_str_starts(text, "unix:"))
			host.len = 0;
		while (host.len > 0 && host.data[host.len - 1] != ':')
			host.len--;
		ret_listeners[i] = (struct listener){ .section = section,
			.text = list->values[i],
			.place = list->places[i] };
		if (host.len == 0)
			continue;
		ret_listeners[i].port = (struct pn_str){ text.data + host.len,
			text.len - host.len };
		host.len--;
		ret_listeners[i].host = host;
	}
	return list->count;
}

/* The second of the two would not start, and the system's word for it names
 * neither of the lines. */
static void
listeners_check(struct conf_load *load)
{
	const struct pn_conf *conf = load->conf;
	struct listener all[3 * PN_LISTEN_MAX];
	size_t count = listeners_add("server", &conf->server.listen, all);

	count += listeners_add("admin", &conf->admin.listen, all + count);
	count += listeners_add("guard", &conf->guard.listen, all + count);
	for (size_t k = 1; k < count; k++)
		for (size_t i = 0; i < k; i++) {
			/* A default has no line: told where the other stands. */
			bool swap = all[k].place.line == 0;
			const struct listener *told = &all[swap ? i : k];
			const struct listener *other = &all[swap ? k : i];

			if (!listener_covers(told, other) &&
			    !listener_covers(other, told))
				continue;
			if (other->place.line == 0)
				conf_fail(load, told->place,
				    "[%s] listen: \"%s\" is taken by the"
				    " default of [%s] listen, %s",
				    told->section, told->text, other->section,
				    other->text);
			else
				conf_fail(load, told->place,
				    "[%s] listen: \"%s\" is taken by [%s]"
				    " listen = %s in %s:%d",
				    told->section, told->text, other->section,
				    other->text, other->place.file,
				    other->place.line);
			break;
		}
}

/* -- all of it --------------------------------------------------------------- */

/* What options of a route mean together, and beside [server]. */
static void
guard_route_check(
    struct conf_load *load, const struct pn_conf_guard_route *route)
{
	const struct pn_conf *conf = load->conf;

	if (route->lease_us <= conf->server.commit_timeout_us)
		conf_warn(load, route->place,
		    "[guard %s] lease is not longer than [server]"
		    " commit_timeout: while commits are slow it is over"
		    " before it is known to be had, and nothing runs",
		    route->name);
	if (route->tenant_header.count > 0 &&
	    conf->server.trusted_proxies.count == 0)
		conf_warn(load, route->tenant_header.places[0],
		    "[guard %s] tenant_header is believed of trusted"
		    " proxies only, and [server] trusted_proxies is none",
		    route->name);
}

void
conf_check_whole(struct conf_load *load)
{
	const struct pn_conf *conf = load->conf;
	const struct pn_conf_guard_route *routes = conf->guard_routes;
	const struct conf_section *guard = section_find(load, "guard");

	listeners_check(load);
	conf_check_accounts(load);
	if (conf->account_count == 0 && conf->deliver_count == 0 &&
	    guard == NULL)
		conf_warn(load, (struct pn_conf_place){ .file = conf->path },
		    "no account: nothing is received; add a section"
		    " [alipay NAME] or [wechat NAME]");
	/* Told once, whatever the number of routes. */
	if (conf->guard_route_count > 0 && guard == NULL)
		conf_fail(load, routes[0].place,
		    "[guard %s] is served nowhere: add a section [guard]",
		    routes[0].name);
	if (conf->guard_route_count == 0 && guard != NULL)
		conf_warn(load, guard->place,
		    "[guard] has no route: add a section such as"
		    " [guard charges], or take it out");
	for (size_t i = 0; i < conf->guard_route_count; i++)
		guard_route_check(load, &routes[i]);
}
