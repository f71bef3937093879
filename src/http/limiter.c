/*
 * How many requests a second a peer may send that turn out to be unverified: a
 * token bucket for each, in a table of fixed size.
 *
 * Only unverified requests take a token, after their verification failed, so a
 * provider that shares an address with a flood (a proxy that hides its clients,
 * a cloud's NAT) is never refused. What it saves is the receipt and the log
 * line, and it tells an honest but broken sender to slow down.
 *
 * The table is set-associative: a hash with a seed of its own picks a set of
 * four buckets, and a new peer takes the one that was used longest ago. A flood
 * from more addresses than there are buckets so forgets some of them; what
 * memory it takes is fixed all the same.
 *
 * A bucket holds micro-tokens, so that slow rates fill evenly; a burst is one
 * second's worth.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http_internal.h"

enum {
	SETS = 1024, /* with 4 ways: 4096 peers in 160 kB */
	WAYS = 4,
};

#define TOKEN INT64_C(1000000) /* micro-tokens of one request */

struct bucket {
	unsigned char key[16];
	int64_t used_us; /* 0: empty */
	int64_t tokens;
};

struct pn_limiter {
	pthread_mutex_t lock;
	int64_t per_second;
	uint64_t seed;
	struct bucket sets[SETS][WAYS];
};

struct pn_limiter *
pn_limiter_new(int64_t per_second)
{
	struct pn_limiter *limiter;

	assert(per_second > 0);
	limiter = calloc(1, sizeof(*limiter));
	if (limiter == NULL)
		return NULL;
	limiter->per_second = per_second;
	/* An address of this process: a peer cannot know it (ASLR), and a
	 * collision costs another peer its burst at most. */
	limiter->seed =
	    (uint64_t)(uintptr_t)limiter ^ (uint64_t)pn_clock_realtime_us();
	if (pthread_mutex_init(&limiter->lock, NULL) != 0) {
		free(limiter);
		return NULL;
	}
	return limiter;
}

void
pn_limiter_free(struct pn_limiter *limiter)
{
	if (limiter == NULL)
		return;
	(void)pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

/* The peer's bucket, or the one that was used longest ago, filled anew. */
static struct bucket *
bucket_of(struct pn_limiter *limiter, const unsigned char key[16])
{
	struct bucket *set =
	    limiter->sets[pn_peer_hash(key, limiter->seed) % SETS];
	struct bucket *oldest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].used_us != 0 && memcmp(set[i].key, key, 16) == 0)
			return &set[i];
		if (set[i].used_us < oldest->used_us)
			oldest = &set[i];
	}
	memcpy(oldest->key, key, 16);
	oldest->used_us = 0;
	oldest->tokens = limiter->per_second * TOKEN;
	return oldest;
}

bool
pn_limiter_exhausted(
    struct pn_limiter *limiter, const struct pn_peer *peer, int64_t now_us)
{
	int64_t full = limiter->per_second * TOKEN, elapsed;
	unsigned char key[16];
	struct bucket *bucket;
	bool exhausted;

	assert(now_us > 0);
	pn_peer_key(peer, key);
	(void)pthread_mutex_lock(&limiter->lock);
	bucket = bucket_of(limiter, key);
	elapsed = bucket->used_us == 0 ? 0 : now_us - bucket->used_us;
	/* A second fills any bucket: no product overflows. */
	if (elapsed >= PN_SECOND_US)
		bucket->tokens = full;
	else if (elapsed > 0)
		bucket->tokens += elapsed * limiter->per_second;
	if (bucket->tokens > full)
		bucket->tokens = full;
	/* Threads read the clock before they take the lock. */
	if (elapsed >= 0)
		bucket->used_us = now_us;
	exhausted = bucket->tokens < TOKEN;
	if (!exhausted)
		bucket->tokens -= TOKEN;
	(void)pthread_mutex_unlock(&limiter->lock);
	return exhausted;
}
