/*
 * The accounts of a configuration as routes: opening them all, and finding the
 * one a request is for.
 *
 * An account is served at POST /notify/<provider>/<tenant>. The paths are made
 * once, ordered, and found by bisection: some ten comparisons for a thousand
 * accounts, and no hash that a stranger could aim at. A path must match byte for
 * byte: providers send back the notify_url they were given, and a path that is
 * the same only after decoding is somebody else's idea.
 *
 * All keys are parsed here, before the first request; an unreadable one is told
 * with file:line, and the daemon does not start, or goes on with the accounts it
 * has. What the accounts verify with is collected for the store, so that evidence
 * can be verified after a rotation.
 *
 * A set is immutable, but for each account's allowance of unverified requests,
 * which is one atomic: any thread may route. It is counted, because a reload puts
 * another in its place while requests are under way: each of them keeps the set
 * it was routed by, to its end. Closing a thousand accounts takes long, so it is
 * not left to the thread that answers the last of them: whoever exchanges a set
 * keeps a reference to the old one until it is the only one left.
 */
#include "paynotify/ingest.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ingest_internal.h"

enum { KEYS_FIRST = 16, ROUTE_BYTES_MAX = 256 };

struct pn_accounts {
	_Atomic unsigned references;
	struct pn_conf *conf;    /* a reference of its own */
	struct pn_arena *arena;  /* paths, names */
	struct pn_route *routes; /* ordered by path */
	size_t route_count;
	struct pn_store_key *keys; /* ordered, each once */
	size_t key_count, key_size;
};

static int
out_of_memory(struct pn_error *ret_error)
{
	return pn_error_set(ret_error, -ENOMEM, "out of memory");
}

/* -- keys ---------------------------------------------------------------------- */

static int
add_key(void *payload, const unsigned char *fingerprint, const char *pem)
{
	struct pn_accounts *accounts = payload;

	if (accounts->key_count == accounts->key_size) {
		size_t size = accounts->key_size == 0 ? KEYS_FIRST
						      : accounts->key_size * 2;
		void *keys =
		    reallocarray(accounts->keys, size, sizeof(*accounts->keys));

		if (keys == NULL)
			return -ENOMEM;
		accounts->keys = keys;
		accounts->key_size = size;
	}
	memcpy(accounts->keys[accounts->key_count].fingerprint, fingerprint,
	    PN_SHA256_BYTES);
	accounts->keys[accounts->key_count++].pem = pem;
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
unique_keys(struct pn_accounts *accounts)
{
	size_t kept = 0;

	if (accounts->key_count == 0)
		return;
	qsort(accounts->keys, accounts->key_count, sizeof(*accounts->keys),
	    compare_keys);
	for (size_t i = 1; i < accounts->key_count; i++)
		if (compare_keys(&accounts->keys[kept], &accounts->keys[i]) !=
		    0)
			accounts->keys[++kept] = accounts->keys[i];
	accounts->key_count = kept + 1;
}

const struct pn_store_key *
pn_accounts_keys(const struct pn_accounts *accounts, size_t *ret_count)
{
	*ret_count = accounts->key_count;
	return accounts->keys;
}

/* -- opening -------------------------------------------------------------------- */

static int
compare_routes(const void *a, const void *b)
{
	const struct pn_route *left = a, *right = b;

	return pn_str_compare(left->path, right->path);
}

static int
on_doubt(void *payload, const struct pn_conf_place *place, const char *text)
{
	struct pn_accounts *accounts = payload;

	return pn_conf_warn(accounts->conf, *place, text);
}

static int
tell_doubts(struct pn_accounts *accounts, const struct pn_route *route)
{
	const struct pn_doubts doubts = {
		.now_us = pn_clock_realtime_us(),
		.visit = on_doubt,
		.payload = accounts,
	};

	if (route->provider->account_doubts == NULL)
		return 0;
	return route->provider->account_doubts(route->account, &doubts);
}

static int
open_account(struct pn_accounts *accounts, const struct pn_conf_account *conf,
    struct pn_error *ret_error)
{
	struct pn_route *route = &accounts->routes[accounts->route_count];
	int r;

	route->accounts = accounts;
	route->conf = conf;
	route->provider = pn_provider_find(pn_str_from(conf->provider));
	if (route->provider == NULL)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:%d: there is no provider \"%s\"", conf->place.file,
		    conf->place.line, conf->provider);
	route->path = pn_arena_printf(
	    accounts->arena, "/notify/%s/%s", conf->provider, conf->tenant);
	route->name =
	    pn_arena_printf(accounts->arena, "notify/%s", conf->provider);
	route->rate = pn_arena_alloc(accounts->arena, sizeof(*route->rate));
	if (route->path.data == NULL || route->name.data == NULL ||
	    route->rate == NULL)
		return out_of_memory(ret_error);
	r = route->provider->account_open(conf, &route->account, ret_error);
	if (r < 0)
		return r;
	assert(r == 0);
	accounts->route_count++; /* from here closing closes it */
	if (pn_route_series_open(route) < 0)
		return out_of_memory(ret_error);
	r = route->provider->account_keys(route->account, add_key, accounts);
	if (r == 0)
		r = tell_doubts(accounts, route);
	return r < 0 ? out_of_memory(ret_error) : 0;
}

static int
open_accounts(struct pn_accounts *accounts, const struct pn_conf *conf,
    struct pn_error *ret_error)
{
	int r;

	accounts->arena =
	    pn_arena_new((conf->account_count + 1) * 2 * ROUTE_BYTES_MAX +
			 PN_PATH_BYTES_MAX);
	accounts->routes =
	    calloc(conf->account_count + 1, sizeof(*accounts->routes));
	if (accounts->arena == NULL || accounts->routes == NULL)
		return out_of_memory(ret_error);
	for (size_t i = 0; i < conf->account_count; i++) {
		r = open_account(accounts, &conf->accounts[i], ret_error);
		if (r < 0)
			return r;
	}
	qsort(accounts->routes, accounts->route_count,
	    sizeof(*accounts->routes), compare_routes);
	unique_keys(accounts);
	return 0;
}

static void
free_accounts(struct pn_accounts *accounts)
{
	for (size_t i = 0; i < accounts->route_count; i++) {
		pn_route_series_close(&accounts->routes[i]);
		accounts->routes[i].provider->account_close(
		    accounts->routes[i].account);
	}
	free(accounts->routes);
	free(accounts->keys);
	pn_arena_free(accounts->arena);
	pn_conf_unref(accounts->conf);
	free(accounts);
}

int
pn_accounts_open(struct pn_conf *conf, struct pn_accounts **ret_accounts,
    struct pn_error *ret_error)
{
	struct pn_accounts *accounts = calloc(1, sizeof(*accounts));
	int r;

	assert(conf->account_count <= PN_CONF_ACCOUNTS_MAX);
	if (accounts == NULL)
		return out_of_memory(ret_error);
	accounts->references = 1;
	accounts->conf = pn_conf_ref(conf);
	r = open_accounts(accounts, conf, ret_error);
	if (r < 0) {
		free_accounts(accounts);
		return r;
	}
	*ret_accounts = accounts;
	return 0;
}

struct pn_accounts *
pn_accounts_ref(struct pn_accounts *accounts)
{
	unsigned before = atomic_fetch_add_explicit(
	    &accounts->references, 1, memory_order_relaxed);

	assert(before > 0 && before < UINT_MAX);
	return accounts;
}

void
pn_accounts_unref(struct pn_accounts *accounts)
{
	unsigned before;

	if (accounts == NULL)
		return;
	/* Whoever frees sees all that the others have done before. */
	before = atomic_fetch_sub_explicit(
	    &accounts->references, 1, memory_order_acq_rel);
	assert(before > 0);
	if (before == 1)
		free_accounts(accounts);
}

bool
pn_accounts_is_last(const struct pn_accounts *accounts)
{
	return atomic_load_explicit(
		   &accounts->references, memory_order_acquire) == 1;
}

/* -- routing ----------------------------------------------------------------------- */

const struct pn_route *
pn_accounts_route(const struct pn_accounts *accounts, struct pn_str path)
{
	struct pn_route wanted = { .path = pn_str_split(&path, '?') };

	if (accounts->route_count == 0 || wanted.path.len == 0)
		return NULL;
	return bsearch(&wanted, accounts->routes, accounts->route_count,
	    sizeof(*accounts->routes), compare_routes);
}

void
pn_accounts_warn_certificates(
    const struct pn_accounts *accounts, int64_t now_us)
{
	for (size_t i = 0; i < accounts->route_count; i++)
		pn_route_warn_certificates(&accounts->routes[i], now_us);
}
