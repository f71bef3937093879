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
 * four buckets, and a new peer takes the one that will be full first, which is
 * what is lost least by forgetting it. A flood from more addresses than there are
 * buckets so forgets some of them; what memory it takes is fixed all the same.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/rate.h"

#include "http_internal.h"

enum {
	SETS = 1024, /* with 4 ways: 4096 peers in 96 kB */
	WAYS = 4,
};

struct bucket {
	unsigned char key[16];
	struct pn_rate rate; /* full_ns 0: nobody's */
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

static int64_t
full_ns(const struct bucket *bucket)
{
	return atomic_load_explicit(
	    &bucket->rate.full_ns, memory_order_relaxed);
}

/* The peer's bucket, or the one that is full first, as a new one. */
static struct bucket *
bucket_of(struct pn_limiter *limiter, const unsigned char key[16])
{
	struct bucket *set =
	    limiter->sets[pn_peer_hash(key, limiter->seed) % SETS];
	struct bucket *fullest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (full_ns(&set[i]) != 0 && memcmp(set[i].key, key, 16) == 0)
			return &set[i];
		if (full_ns(&set[i]) < full_ns(fullest))
			fullest = &set[i];
	}
	memcpy(fullest->key, key, 16);
	atomic_store_explicit(&fullest->rate.full_ns, 0, memory_order_relaxed);
	return fullest;
}

bool
pn_limiter_exhausted(
    struct pn_limiter *limiter, const struct pn_peer *peer, int64_t now_us)
{
	unsigned char key[16];
	bool exhausted;

	pn_peer_key(peer, key);
	/* The lock is for the keys: a bucket may change hands. */
	(void)pthread_mutex_lock(&limiter->lock);
	exhausted = pn_rate_exhausted(
	    &bucket_of(limiter, key)->rate, limiter->per_second, now_us);
	(void)pthread_mutex_unlock(&limiter->lock);
	return exhausted;
}
