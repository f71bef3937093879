/*
 * Accounts as routes: opening them all, and finding the one a request is for.
 *
 * An account is served at POST /notify/<provider>/<tenant>. The paths are made
 * once, ordered, and found by bisection: some ten comparisons for a thousand
 * accounts, and no hash that a stranger could aim at. A path must match byte for
 * byte: providers send back the notify_url they were given, and a path that is
 * the same only after decoding is somebody else's idea.
 *
 * All keys are parsed here, before the first request; an unreadable one is told
 * with file:line and the daemon does not start. What the accounts verify with is
 * collected for the store, so that evidence can be verified after a rotation.
 *
 * Immutable from opening to closing, but for each account's allowance of
 * unverified requests, which is one atomic: any thread may route.
 */
#include "paynotify/ingest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ingest_internal.h"

enum { KEYS_FIRST = 16, ROUTE_BYTES_MAX = 256 };

static int
out_of_memory(struct pn_error *ret_error)
{
	return pn_error_set(ret_error, -ENOMEM, "out of memory");
}

/* -- keys ---------------------------------------------------------------------- */

static int
add_key(void *payload, const unsigned char *fingerprint, const char *pem)
{
	struct pn_ingest *ingest = payload;

	if (ingest->key_count == ingest->key_size) {
		size_t size =
		    ingest->key_size == 0 ? KEYS_FIRST : ingest->key_size * 2;
		void *keys =
		    reallocarray(ingest->keys, size, sizeof(*ingest->keys));

		if (keys == NULL)
			return -ENOMEM;
		ingest->keys = keys;
		ingest->key_size = size;
	}
	memcpy(ingest->keys[ingest->key_count].fingerprint, fingerprint,
	    PN_SHA256_BYTES);
	ingest->keys[ingest->key_count++].pem = pem;
	return 0;
}

static int
compare_keys(const void *a, const void *b)
{
	const struct pn_store_key *left = a, *right = b;

	return memcmp(left->fingerprint, right->fingerprint, PN_SHA256_BYTES);
}

/* Several accounts may share a key. */
static void
unique_keys(struct pn_ingest *ingest)
{
	size_t kept = 0;

	if (ingest->key_count == 0)
		return;
	qsort(ingest->keys, ingest->key_count, sizeof(*ingest->keys),
	    compare_keys);
	for (size_t i = 1; i < ingest->key_count; i++)
		if (compare_keys(&ingest->keys[kept], &ingest->keys[i]) != 0)
			ingest->keys[++kept] = ingest->keys[i];
	ingest->key_count = kept + 1;
}

const struct pn_store_key *
pn_ingest_keys(const struct pn_ingest *ingest, size_t *ret_count)
{
	*ret_count = ingest->key_count;
	return ingest->keys;
}

/* -- opening -------------------------------------------------------------------- */

static int
compare_routes(const void *a, const void *b)
{
	const struct pn_route *left = a, *right = b;

	return pn_str_compare(left->path, right->path);
}

static int
open_account(struct pn_ingest *ingest, const struct pn_conf_account *conf,
    struct pn_error *ret_error)
{
	struct pn_route *route = &ingest->routes[ingest->route_count];
	int r;

	route->conf = conf;
	route->provider = pn_provider_find(pn_str_from(conf->provider));
	if (route->provider == NULL)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: there is no provider \"%s\"", conf->place.file,
		    conf->place.line, conf->provider);
	route->path = pn_arena_printf(
	    ingest->arena, "/notify/%s/%s", conf->provider, conf->tenant);
	route->name =
	    pn_arena_printf(ingest->arena, "notify/%s", conf->provider);
	route->rate = pn_arena_alloc(ingest->arena, sizeof(*route->rate));
	if (route->path.data == NULL || route->name.data == NULL ||
	    route->rate == NULL)
		return out_of_memory(ret_error);
	r = route->provider->account_open(conf, &route->account, ret_error);
	if (r < 0)
		return r;
	assert(r == 0);
	ingest->route_count++; /* from here closing closes it */
	r = route->provider->account_keys(route->account, add_key, ingest);
	return r < 0 ? out_of_memory(ret_error) : 0;
}

static int
open_accounts(struct pn_ingest *ingest, const struct pn_conf *conf,
    struct pn_error *ret_error)
{
	int r;

	ingest->arena =
	    pn_arena_new((conf->account_count + 1) * 2 * ROUTE_BYTES_MAX +
			 PN_PATH_BYTES_MAX);
	ingest->routes =
	    calloc(conf->account_count + 1, sizeof(*ingest->routes));
	if (ingest->arena == NULL || ingest->routes == NULL)
		return out_of_memory(ret_error);
	for (size_t i = 0; i < conf->account_count; i++) {
		r = open_account(ingest, &conf->accounts[i], ret_error);
		if (r < 0)
			return r;
	}
	qsort(ingest->routes, ingest->route_count, sizeof(*ingest->routes),
	    compare_routes);
	unique_keys(ingest);
	return 0;
}

int
pn_ingest_open(const struct pn_conf *conf, struct pn_ingest **ret_ingest,
    struct pn_error *ret_error)
{
	struct pn_ingest *ingest = calloc(1, sizeof(*ingest));
	int r;

	assert(conf->account_count <= PN_CONF_ACCOUNTS_MAX);
	if (ingest == NULL)
		return out_of_memory(ret_error);
	r = open_accounts(ingest, conf, ret_error);
	if (r < 0) {
		pn_ingest_close(ingest);
		return r;
	}
	*ret_ingest = ingest;
	return 0;
}

void
pn_ingest_close(struct pn_ingest *ingest)
{
	if (ingest == NULL)
		return;
	for (size_t i = 0; i < ingest->route_count; i++)
		ingest->routes[i].provider->account_close(
		    ingest->routes[i].account);
	free(ingest->routes);
	free(ingest->keys);
	pn_arena_free(ingest->arena);
	free(ingest);
}

void
pn_ingest_set_store(struct pn_ingest *ingest, struct pn_store *store)
{
	ingest->store = store;
}

void
pn_ingest_set_statuses(
    struct pn_ingest *ingest, unsigned (*status_of)(enum pn_outcome outcome))
{
	ingest->status_of = status_of;
}

/* -- routing ----------------------------------------------------------------------- */

const struct pn_route *
pn_ingest_route(const struct pn_ingest *ingest, struct pn_str path)
{
	struct pn_route wanted = { .path = pn_str_split(&path, '?') };

	if (ingest->route_count == 0 || wanted.path.len == 0)
		return NULL;
	return bsearch(&wanted, ingest->routes, ingest->route_count,
	    sizeof(*ingest->routes), compare_routes);
}

bool
pn_ingest_admits(const struct pn_route *route, struct pn_str peer)
{
	const struct pn_conf_cidrs *allow = &route->conf->allow;

	/* Of trusted proxies a unix socket is one, but what is behind it is
	 * nobody that a list could name. */
	return allow->count == 0 ||
	       (peer.len > 0 && pn_conf_cidrs_match(allow, peer));
}
