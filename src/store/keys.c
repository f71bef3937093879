/*
 * The keys that verify notifications, as the store knows them: what evidence
 * refers to must be in verifying_keys before, or it could never be verified
 * again.
 *
 * Each writer sees to that for its own connection: when it connects it writes all
 * keys (the server may be another one, which has lost some), and later those that
 * were added since (a reload), before it takes anything from the queue. Who adds
 * keys does so before anything can be verified with them, and both look under one
 * lock; so what a writer takes refers to nothing that it has not written. That
 * costs a statement a writer and reload, and needs no waiting: a database that is
 * away gets them with the reconnection.
 *
 * After a reload all writers insert the same rows, and all but the first wait for
 * its commit. That ends by itself, so who waited too long tries again and keeps
 * its connection; but not for longer than a notification waits for its commit.
 * What stands in the way still is told as a database that is away: nothing can be
 * recorded.
 *
 * Keys are never taken out: evidence of the old ones may still be in the queue. So
 * they stand in the order in which they were added, a writer needs to remember no
 * more than how many it has written, and a key that it has seen stays good to read
 * without the lock. One thread adds. It finds what is new without the lock, which
 * every notification takes: only the exchange of the list is under it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/limits.h"
#include "paynotify/moment.h"

#include "array.h"
#include "keys.h"
#include "statements.h"

enum {
	KEYS_AT_ONCE = 128, /* in one statement */
	KEYS_BYTES_MAX = KEYS_AT_ONCE * (PN_KEY_FILE_BYTES_MAX + 64),
};
/* Before a statement that met a lock is sent again. */
static const int64_t RETRY_US = 100 * PN_MILLISECOND_US;

static int
compare(const void *a, const void *b)
{
	const struct pn_store_key *left = a, *right = b;

	return memcmp(left->fingerprint, right->fingerprint, PN_SHA256_BYTES);
}

static bool
is_known(const struct pn_store *store, const struct pn_store_key *key)
{
	return store->key_count > 0 &&
	       bsearch(key, store->keys_sorted, store->key_count, sizeof(*key),
		   compare) != NULL;
}

static void
free_pem(struct pn_store_key *key)
{
	free((char *)(uintptr_t)key->pem);
	key->pem = NULL;
}

/* Copies those that are not known to list, from *end on. */
static int
append_new(const struct pn_store *store, struct pn_store_key *list, size_t *end,
    const struct pn_store_key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct pn_store_key *to = &list[*end];

		if (is_known(store, &keys[i]))
			continue;
		*to = keys[i];
		if (keys[i].pem != NULL) {
			to->pem = strdup(keys[i].pem);
			if (to->pem == NULL)
				return -ENOMEM;
		}
		++*end;
	}
	return 0;
}

/* Hands over both lists. */
static void
exchange(struct pn_store *store, struct pn_store_key *list,
    struct pn_store_key *sorted, size_t count)
{
	struct pn_store_key *before = store->keys;

	memcpy(sorted, list, count * sizeof(*list));
	qsort(sorted, count, sizeof(*sorted), compare);
	pthread_mutex_lock(&store->lock);
	store->keys = list;
	store->key_count = count;
	pthread_mutex_unlock(&store->lock);
	free(before);
	free(store->keys_sorted);
	store->keys_sorted = sorted;
}

int
pn_store_add_keys(
    struct pn_store *store, const struct pn_store_key *keys, size_t key_count)
{
	/* Nobody else changes them: to read them needs no lock. */
	size_t known = store->key_count, end = known;
	struct pn_store_key *list, *sorted;
	int r = 0;

	list = calloc(known + key_count + 1, sizeof(*list));
	sorted = calloc(known + key_count + 1, sizeof(*sorted));
	if (list == NULL || sorted == NULL)
		r = -ENOMEM;
	if (r == 0 && known > 0)
		memcpy(list, store->keys, known * sizeof(*list));
	if (r == 0)
		r = append_new(store, list, &end, keys, key_count);
	if (r == 0 && end > known) {
		exchange(store, list, sorted, end);
		return 0;
	}
	while (end > known)
		free_pem(&list[--end]);
	free(list);
	free(sorted);
	return r;
}

void
pn_store_free_keys(struct pn_store *store)
{
	for (size_t i = 0; i < store->key_count; i++)
		free_pem(&store->keys[i]);
	free(store->keys);
	free(store->keys_sorted);
}

bool
pn_store_has_new_keys(const struct pn_writer *writer)
{
	assert(writer->keys_written <= writer->store->key_count);
	return writer->keys_written < writer->store->key_count;
}

/* The next ones for this writer; 0: it has written all. Their text stays. */
static size_t
next_keys(const struct pn_writer *writer, struct pn_store_key *ret_keys)
{
	struct pn_store *store = writer->store;
	size_t count;

	pthread_mutex_lock(&store->lock);
	count = store->key_count - writer->keys_written;
	if (count > KEYS_AT_ONCE)
		count = KEYS_AT_ONCE;
	if (count > 0)
		memcpy(ret_keys, store->keys + writer->keys_written,
		    count * sizeof(*ret_keys));
	pthread_mutex_unlock(&store->lock);
	return count;
}

/* One statement. As pn_conn_run(). */
static int
insert(struct pn_writer *writer, const struct pn_store_key *keys, size_t count,
    struct pn_error *ret_error)
{
	struct pn_array prints = pn_array_init(PN_ARRAY_BYTEA, KEYS_BYTES_MAX);
	struct pn_array pems = pn_array_init(PN_ARRAY_TEXT, KEYS_BYTES_MAX);
	struct pn_str a, b;
	int r;

	for (size_t i = 0; i < count; i++) {
		pn_array_add_bytes(
		    &prints, keys[i].fingerprint, PN_SHA256_BYTES);
		pn_array_add_str(&pems, pn_str_from(keys[i].pem));
	}
	a = pn_array_finish(&prints);
	b = pn_array_finish(&pems);
	if (a.data == NULL || b.data == NULL)
		r = pn_error_set(ret_error, -ENOMEM, "out of memory");
	else
		r = pn_conn_query(&writer->conn, pn_sql_keys,
		    &(struct pn_params){
			.count = 2,
			.values = (const char *const[]){ a.data, b.data },
			.lengths = (const int[]){ (int)a.len, (int)b.len },
			.formats = (const int[]){ 1, 1 },
		    },
		    NULL, ret_error);
	pn_array_done(&prints);
	pn_array_done(&pems);
	return r;
}

/* Whether somebody else stood in the way, who will be gone: a lock, or a
 * transaction that was rolled back for another's sake. */
static bool
will_pass(const struct pn_conn *conn)
{
	return strcmp(conn->sqlstate, "55P03") == 0 ||
	       strncmp(conn->sqlstate, "40", 2) == 0;
}

int
pn_store_put_keys(struct pn_writer *writer, struct pn_error *ret_error)
{
	const struct pn_store *store = writer->store;
	int64_t until_us = pn_clock_monotonic_us() + store->commit_timeout_us;
	struct pn_store_key keys[KEYS_AT_ONCE];
	size_t count;
	int r = 0;

	while (r == 0 && (count = next_keys(writer, keys)) > 0) {
		r = insert(writer, keys, count, ret_error);
		if (r == 0)
			writer->keys_written += count;
		if (r <= 0 || !will_pass(&writer->conn) ||
		    pn_clock_monotonic_us() >= until_us)
			continue;
		r = pn_stop_wait(&store->stop, RETRY_US)
			? pn_error_set(ret_error, -ECANCELED, "told to stop")
			: 0;
	}
	return r;
}
