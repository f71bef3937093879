/*
 * Whose request it is. Two tenants' equal keys must never meet, so there is one
 * way a route to say it, and no default:
 *  - the route's own tenant;
 *  - a header, believed only of a trusted proxy: a client could name another;
 *  - an API key, of which the configuration has the digest and the tenant.
 *
 * A header that stands twice is refused and not chosen from: the proxy adds its
 * line, the client brought another, and who reads the first is deceived.
 *
 * API keys are looked up by their SHA-256, in a sorted table, by an ordinary
 * search. How long that takes may tell how much of a digest is right, but who
 * asks cannot choose the digest of what is asked, and the keys are random and
 * long; so there is nothing to be learnt from it. The digests also keep the
 * keys out of the configuration, of memory and of what is stored.
 */
#include "guard_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "paynotify/digest.h"
#include "paynotify/encode.h"
#include "paynotify/limits.h"

enum {
	TENANT_BYTES_MAX = 128, /* what a header may name; see 0007 */
	/* Digest, blank, a name of one letter, and the end of the line. */
	LINE_BYTES_MIN = 2 * PN_SHA256_BYTES + 3,
	API_KEYS_MAX = PN_CA_FILE_BYTES_MAX / LINE_BYTES_MIN + 1,
};

struct api_key {
	unsigned char digest[PN_SHA256_BYTES];
	struct pn_str tenant;
	int line;
};

struct pn_api_keys {
	struct pn_arena *arena; /* the tenants' names */
	size_t count, room;
	struct api_key keys[]; /* by digest */
};

/* -- the file --------------------------------------------------------------- */

static bool
is_name(struct pn_str text)
{
	if (text.len < 1 || text.len > PN_TENANT_BYTES_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* "<digest> <tenant>", with blanks or tabs between them. What is wrong is not
 * quoted: it may be a key itself, put there by mistake. */
static const char *
parse_line(struct pn_str line, struct api_key *key)
{
	const size_t digest_len = 2 * PN_SHA256_BYTES;
	struct pn_str digest = { line.data, digest_len }, tenant;

	if (line.len <= digest_len ||
	    pn_hex_decode(digest, key->digest, sizeof(key->digest)) != 0 ||
	    (line.data[digest_len] != ' ' && line.data[digest_len] != '\t'))
		return "is not a SHA-256 in 64 hex digits, a blank and a "
		       "tenant; sha256sum makes one: printf %s KEY | sha256sum";
	tenant = pn_str_trim(
	    (struct pn_str){ line.data + digest_len, line.len - digest_len });
	if (!is_name(tenant))
		return "has no tenant of 1 to 32 characters a-z, 0-9, _ and -";
	key->tenant = tenant;
	return NULL;
}

/* A line without what is no part of it. Empty: there is nothing on it. */
static struct pn_str
significant(struct pn_str line)
{
	struct pn_str text = line;

	text = pn_str_split(&text, '#');
	return pn_str_trim(text);
}

static int
compare_digests(const void *a, const void *b)
{
	return memcmp(((const struct api_key *)a)->digest,
	    ((const struct api_key *)b)->digest, PN_SHA256_BYTES);
}

static int
add_line(struct pn_api_keys *keys, const struct pn_conf_file *file,
    struct pn_str line, int number, struct pn_error *ret_error)
{
	struct api_key *key = &keys->keys[keys->count];
	const char *fault;

	fault = keys->count == keys->room ? "is one too many"
					  : parse_line(line, key);
	if (fault != NULL)
		return pn_error_set(ret_error, -EINVAL, "%s:%d: the line %s",
		    file->path, number, fault);
	key->line = number;
	key->tenant = pn_arena_copy(keys->arena, key->tenant);
	if (key->tenant.data == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	keys->count++;
	return 0;
}

static int
sort_keys(struct pn_api_keys *keys, const struct pn_conf_file *file,
    struct pn_error *ret_error)
{
	qsort(keys->keys, keys->count, sizeof(keys->keys[0]), compare_digests);
	for (size_t i = 1; i < keys->count; i++) {
		int a = keys->keys[i - 1].line, b = keys->keys[i].line;

		if (compare_digests(&keys->keys[i - 1], &keys->keys[i]) == 0)
			return pn_error_set(ret_error, -EINVAL,
			    "%s:%d: the API key stands in line %d too",
			    file->path, a > b ? a : b, a > b ? b : a);
	}
	if (keys->count == 0)
		return pn_error_set(ret_error, -EINVAL,
		    "%s:1: the file has no API key, so nobody could ask",
		    file->path);
	return 0;
}

int
pn_api_keys_open(const struct pn_conf_file *file, struct pn_api_keys **ret_keys,
    struct pn_error *ret_error)
{
	struct pn_str rest = pn_conf_file_text(file), line;
	size_t room = rest.len / LINE_BYTES_MIN + 1;
	struct pn_api_keys *keys;
	int r = 0;

	if (room > API_KEYS_MAX)
		room = API_KEYS_MAX;
	keys = calloc(1, sizeof(*keys) + room * sizeof(keys->keys[0]));
	if (keys == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	keys->room = room;
	keys->arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	if (keys->arena == NULL)
		r = pn_error_set(ret_error, -ENOMEM, "out of memory");
	for (int number = 1; r == 0 && rest.data != NULL; number++) {
		line = significant(pn_str_split(&rest, '\n'));
		if (line.len > 0)
			r = add_line(keys, file, line, number, ret_error);
	}
	if (r == 0)
		r = sort_keys(keys, file, ret_error);
	if (r != 0)
		pn_api_keys_close(keys);
	else
		*ret_keys = keys;
	return r;
}

void
pn_api_keys_close(struct pn_api_keys *keys)
{
	if (keys == NULL)
		return;
	pn_arena_free(keys->arena);
	free(keys);
}

struct pn_str
pn_api_keys_find(const struct pn_api_keys *keys, struct pn_str api_key)
{
	const struct api_key *found;
	struct api_key wanted;

	pn_sha256(api_key, wanted.digest);
	found = bsearch(&wanted, keys->keys, keys->count, sizeof(keys->keys[0]),
	    compare_digests);
	if (found == NULL)
		return (struct pn_str){ NULL, 0 };
	return found->tenant;
}

/* -- a request's tenant ----------------------------------------------------- */

static bool
is_printable(struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < 0x20 || text.data[i] > 0x7e)
			return false;
	return true;
}

static enum pn_problem
tenant_of_header(const struct pn_guard_route *route, const struct pn_call *call,
    struct pn_str *ret_tenant)
{
	struct pn_str tenant;

	if (!call->from_proxy)
		return PN_PROBLEM_TENANT_UNTRUSTED;
	if (pn_request_header(&call->request,
		route->conf->tenant_header.values[0], &tenant) != 1 ||
	    tenant.len < 1 || tenant.len > TENANT_BYTES_MAX ||
	    !is_printable(tenant))
		return PN_PROBLEM_TENANT_MISSING;
	*ret_tenant = tenant;
	return PN_PROBLEM_NONE;
}

static enum pn_problem
tenant_of_api_key(const struct pn_guard_route *route,
    const struct pn_call *call, struct pn_str *ret_tenant)
{
	struct pn_str authorization, key, scheme, tenant;
	size_t authorizations, keys;

	authorizations =
	    pn_request_header(&call->request, "Authorization", &authorization);
	keys = pn_request_header(&call->request, "X-Api-Key", &key);
	if (authorizations + keys != 1)
		return PN_PROBLEM_API_KEY;
	if (authorizations == 1) {
		key = authorization;
		scheme = pn_str_split(&key, ' ');
		if (!pn_str_equal_fold(scheme, PN_STR("Bearer")))
			return PN_PROBLEM_API_KEY;
		key = pn_str_trim(key);
	}
	if (key.len == 0)
		return PN_PROBLEM_API_KEY;
	tenant = pn_api_keys_find(route->api_keys, key);
	if (tenant.data == NULL)
		return PN_PROBLEM_API_KEY;
	*ret_tenant = tenant;
	return PN_PROBLEM_NONE;
}

enum pn_problem
pn_guard_tenant(const struct pn_guard_route *route, const struct pn_call *call,
    struct pn_str *ret_tenant)
{
	if (route->api_keys != NULL)
		return tenant_of_api_key(route, call, ret_tenant);
	if (route->conf->tenant_header.count > 0)
		return tenant_of_header(route, call, ret_tenant);
	assert(route->conf->tenant.count == 1);
	*ret_tenant = pn_str_from(route->conf->tenant.values[0]);
	return PN_PROBLEM_NONE;
}
