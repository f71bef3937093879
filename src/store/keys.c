/*
 * The keys that verify notifications, as the store knows them: what evidence
 * refers to must be in verifying_keys before, or it could never be verified
 * again.
 *
 * Each writer sees to that for its own connection: when it connects it writes all
 * keys, and when some were added since (a reload), all of them once more, before
 * it takes anything from the queue. Who adds keys does so before anything can be
 * verified with them, and both look under one lock; so what a writer takes refers
 * to nothing that it has not written. That costs a statement a writer and reload,
 * and needs no waiting: a database that is away gets them with the reconnection.
 *
 * Keys are never taken out: evidence of the old ones may still be in the queue.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "keys.h"
#include "statements.h"

enum { KEYS_BYTES_MAX = 64 << 20 };

static bool
is_known(const struct pn_store *store, const struct pn_store_key *key)
{
	for (size_t i = 0; i < store->key_count; i++)
		if (memcmp(store->keys[i].fingerprint, key->fingerprint,
			PN_SHA256_BYTES) == 0)
			return true;
	return false;
}

/* Behind those that count: nobody sees it before key_count says so. */
static int
append(struct pn_store *store, size_t at, const struct pn_store_key *key)
{
	struct pn_store_key *to = &store->keys[at];

	*to = *key;
	if (key->pem == NULL)
		return 0;
	to->pem = strdup(key->pem);
	return to->pem == NULL ? -ENOMEM : 0;
}

static void
free_pem(struct pn_store_key *key)
{
	free((char *)(uintptr_t)key->pem);
	key->pem = NULL;
}

/* Under the lock. */
static int
add_keys(struct pn_store *store, const struct pn_store_key *keys, size_t count)
{
	size_t end = store->key_count;
	int r = 0;
	void *grown = reallocarray(
	    store->keys, store->key_count + count + 1, sizeof(*store->keys));

	if (grown == NULL)
		return -ENOMEM;
	store->keys = grown;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!is_known(store, &keys[i]))
			r = append(store, end++, &keys[i]);
	if (r < 0) {
		while (end > store->key_count)
			free_pem(&store->keys[--end]);
		return r;
	}
	if (end > store->key_count)
		store->key_version++;
	store->key_count = end;
	return 0;
}

int
pn_store_add_keys(
    struct pn_store *store, const struct pn_store_key *keys, size_t key_count)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = add_keys(store, keys, key_count);
	pthread_mutex_unlock(&store->lock);
	return r;
}

void
pn_store_free_keys(struct pn_store *store)
{
	for (size_t i = 0; i < store->key_count; i++)
		free_pem(&store->keys[i]);
	free(store->keys);
}

bool
pn_store_has_new_keys(const struct pn_writer *writer)
{
	assert(writer->key_version <= writer->store->key_version);
	return writer->key_version != writer->store->key_version;
}

int
pn_store_put_keys(struct pn_writer *writer, struct pn_error *ret_error)
{
	struct pn_store *store = writer->store;
	struct pn_array prints = pn_array_init(PN_ARRAY_BYTEA, KEYS_BYTES_MAX);
	struct pn_array pems = pn_array_init(PN_ARRAY_TEXT, KEYS_BYTES_MAX);
	unsigned version;
	struct pn_str a, b;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	version = store->key_version;
	for (size_t i = 0; i < store->key_count; i++) {
		pn_array_add_bytes(
		    &prints, store->keys[i].fingerprint, PN_SHA256_BYTES);
		pn_array_add_str(&pems, pn_str_from(store->keys[i].pem));
	}
	pthread_mutex_unlock(&store->lock);
	a = pn_array_finish(&prints);
	b = pn_array_finish(&pems);
	if (a.data == NULL || b.data == NULL)
		r = pn_error_set(ret_error, -ENOMEM, "out of memory");
	else if (version > 0) /* else there are none */
		r = pn_conn_query(&writer->conn, pn_sql_keys,
		    &(struct pn_params){
			.count = 2,
			.values = (const char *const[]){ a.data, b.data },
			.lengths = (const int[]){ (int)a.len, (int)b.len },
			.formats = (const int[]){ 1, 1 },
		    },
		    NULL, ret_error);
	if (r == 0)
		writer->key_version = version;
	pn_array_done(&prints);
	pn_array_done(&pems);
	return r;
}
