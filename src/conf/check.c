/*
 * What the options of a section must be together, beyond what each row of the
 * option table says of its own option. Run on sections whose options were all
 * right, so that one slip is told once.
 */
#include "conf_internal.h"

void
conf_check_alipay(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_account *account = section->base;

	/* One Alipay account is one seller: with several applications in it,
	 * an app_id alone no longer says whose money a message is about. */
	if (account->alipay.app_id.count > 1 &&
	    account->alipay.seller_id.count == 0)
		conf_fail(load, section->place,
		    "[%s] seller_id is required with several app_ids",
		    section->title);
}

void
conf_check_wechat(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_account *account = section->base;
	const struct pn_conf_wechat *wechat = &account->wechat;
	bool keys = wechat->public_key.count + wechat->platform_cert.count > 0;
	bool secrets = wechat->api_v3_key_file.count > 0;

	if (keys && !secrets)
		conf_fail(load, section->place,
		    "[%s] api_v3_key_file is required with public_key and"
		    " platform_cert: it decrypts what they verify",
		    section->title);
	else if (secrets && !keys)
		conf_fail(load, section->place,
		    "[%s] public_key or platform_cert is required with"
		    " api_v3_key_file: it verifies the signatures",
		    section->title);
	else if (!secrets && wechat->api_v2_key_file.count == 0)
		conf_fail(load, section->place,
		    "[%s] no way to verify: APIv3 takes api_v3_key_file and"
		    " public_key or platform_cert, APIv2 api_v2_key_file",
		    section->title);
	/* The algorithm takes any, so an account of a test may have any. */
	for (size_t i = 0; i < wechat->api_v2_key_file.count; i++)
		if (wechat->api_v2_key_file.files[i].content.len !=
		    PN_WECHAT_KEY_BYTES)
			conf_warn(load, wechat->api_v2_key_file.files[i].place,
			    "[%s] api_v2_key_file has %zu bytes; a key of"
			    " the merchant platform has %d",
			    section->title,
			    wechat->api_v2_key_file.files[i].content.len,
			    PN_WECHAT_KEY_BYTES);
}

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

void
conf_check_deliver(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_deliver *endpoint = section->base;

	tenants_check(load, &endpoint->tenants);
	if (conf_url_is_exposed(pn_str_from(endpoint->url)))
		conf_warn(load, endpoint->url_place,
		    "[%s] url is http:// to another host: everyone on the way"
		    " can read the events; use https:// unless the network is"
		    " yours alone",
		    section->title);
}

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

void
conf_check_whole(struct conf_load *load)
{
	const struct pn_conf *conf = load->conf;
	const struct pn_conf_guard_route *routes = conf->guard_routes;
	const struct conf_section *guard = section_find(load, "guard");

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
		if (routes[i].tenant_header.count > 0 &&
		    conf->server.trusted_proxies.count == 0)
			conf_warn(load, routes[i].tenant_header.places[0],
			    "[guard %s] tenant_header is believed of trusted"
			    " proxies only, and [server] trusted_proxies is"
			    " none",
			    routes[i].name);
}
