/*
 * What is remembered of completed keys, so that a replay asks no database.
 *
 * Sound because an answer, once committed, does not change until its key's life
 * ends, which is remembered with it; only an operator can forget a key before,
 * and that is notified to all gateways. So nothing is remembered, and nothing
 * that is remembered is used, while the connection that listens is away (the
 * caller's part); and when it is back all is forgotten.
 *
 * The least recently used goes first. What is large is not worth the place of
 * many small ones.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flight.h"

enum {
	BUCKETS = 1 << 16,
	BYTES_MAX = 64 << 20, /* some 150,000 small answers */
	ENTRY_BYTES_MAX = BYTES_MAX / 256,
};

struct pn_memory_entry {
	struct pn_memory_entry *next_in_bucket;
	struct pn_memory_entry *newer, *older;
	unsigned char digest[PN_CLAIM_DIGEST_BYTES];
	unsigned char hash[PN_SHA256_BYTES];
	struct pn_result *result;
	size_t bytes;
};

int
pn_memory_open(struct pn_memory *memory)
{
	*memory = (struct pn_memory){ .bytes = 0 };
	memory->buckets = calloc(BUCKETS, sizeof(struct pn_memory_entry *));
	return memory->buckets == NULL ? -ENOMEM : 0;
}

void
pn_memory_close(struct pn_memory *memory)
{
	if (memory->buckets == NULL)
		return;
	pn_memory_forget_all(memory);
	free(memory->buckets);
	memory->buckets = NULL;
}

/* The digest is a SHA-256: any bytes of it do. */
static struct pn_memory_entry **
bucket(
    struct pn_memory *memory, const unsigned char digest[PN_CLAIM_DIGEST_BYTES])
{
	return &memory->buckets[((size_t)digest[1] << 8 | digest[0]) % BUCKETS];
}

/* Where the pointer to the entry stands, or that to where one would. */
static struct pn_memory_entry **
find(
    struct pn_memory *memory, const unsigned char digest[PN_CLAIM_DIGEST_BYTES])
{
	struct pn_memory_entry **at = bucket(memory, digest);

	while (*at != NULL &&
	       memcmp((*at)->digest, digest, PN_CLAIM_DIGEST_BYTES) != 0)
		at = &(*at)->next_in_bucket;
	return at;
}

static void
unlink_age(struct pn_memory *memory, struct pn_memory_entry *entry)
{
	*(entry->newer == NULL ? &memory->newest : &entry->newer->older) =
	    entry->older;
	*(entry->older == NULL ? &memory->oldest : &entry->older->newer) =
	    entry->newer;
}

static void
link_newest(struct pn_memory *memory, struct pn_memory_entry *entry)
{
	entry->newer = NULL;
	entry->older = memory->newest;
	if (memory->newest == NULL)
		memory->oldest = entry;
	else
		memory->newest->newer = entry;
	memory->newest = entry;
}

static void
drop(struct pn_memory *memory, struct pn_memory_entry **at)
{
	struct pn_memory_entry *entry = *at;

	assert(entry->bytes <= memory->bytes);
	*at = entry->next_in_bucket;
	unlink_age(memory, entry);
	memory->bytes -= entry->bytes;
	pn_result_unref(entry->result);
	free(entry);
}

struct pn_result *
pn_memory_find(struct pn_memory *memory,
    const unsigned char digest[PN_CLAIM_DIGEST_BYTES],
    const unsigned char hash[PN_SHA256_BYTES], int64_t now_us, bool *ret_same)
{
	struct pn_memory_entry **at = find(memory, digest), *entry = *at;

	if (entry == NULL)
		return NULL;
	if (entry->result->expires_at_us <= now_us) {
		drop(memory, at);
		return NULL;
	}
	unlink_age(memory, entry);
	link_newest(memory, entry);
	*ret_same = memcmp(entry->hash, hash, PN_SHA256_BYTES) == 0;
	return entry->result;
}

void
pn_memory_put(struct pn_memory *memory,
    const unsigned char digest[PN_CLAIM_DIGEST_BYTES],
    const unsigned char hash[PN_SHA256_BYTES], struct pn_result *result)
{
	struct pn_memory_entry **at = find(memory, digest), *entry;
	size_t bytes = sizeof(*entry) + sizeof(*result) + result->headers.len +
		       result->kept.len + result->body.len;

	assert(result->expires_at_us != 0);
	if (*at != NULL)
		drop(memory, at);
	if (bytes > ENTRY_BYTES_MAX)
		return;
	entry = calloc(1, sizeof(*entry));
	if (entry == NULL)
		return;
	memcpy(entry->digest, digest, PN_CLAIM_DIGEST_BYTES);
	memcpy(entry->hash, hash, PN_SHA256_BYTES);
	entry->result = pn_result_ref(result);
	entry->bytes = bytes;
	at = bucket(memory, digest);
	entry->next_in_bucket = *at;
	*at = entry;
	link_newest(memory, entry);
	memory->bytes += bytes;
	while (memory->bytes > BYTES_MAX)
		pn_memory_forget(memory, memory->oldest->digest);
}

void
pn_memory_forget(
    struct pn_memory *memory, const unsigned char digest[PN_CLAIM_DIGEST_BYTES])
{
	struct pn_memory_entry **at = find(memory, digest);

	if (*at != NULL)
		drop(memory, at);
}

void
pn_memory_forget_all(struct pn_memory *memory)
{
	while (memory->oldest != NULL)
		pn_memory_forget(memory, memory->oldest->digest);
	assert(memory->bytes == 0 && memory->newest == NULL);
}
