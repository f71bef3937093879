/*
 * What is held back when lines that are alike come too fast: a stranger can
 * cause refusals, and an outage a line a request, as fast as they like.
 *
 * Alike are lines of one format (its address: a call site), provider, tenant
 * and subject; not the request, key, peer or numbers in the text, which differ
 * in every line of a flood. So a forged flood for one account hides neither
 * another account's lines nor another verdict.
 *
 * Each such kind has a bucket: BURST lines at once and one an interval after
 * that; of a state that lasts (pn_log_every()) one an interval from the start.
 * It is kept as the time at which the bucket is full again. The line that gets
 * through next tells how many did not. When none comes, because the flood has
 * ended, pn_log_tell_held() says it with the text of the last that was written.
 *
 * The buckets are a table of fixed size under one mutex, held for tens of
 * nanoseconds and only for lines that the level lets through. A bucket that is
 * full again is as good as none, so its place is free. When all places that a
 * kind could have are taken, it shares the crowd's with others in that
 * position: a flood under many names is bounded too. There every line counts
 * alike, also that of a state that lasts: it must not shut out the others for
 * its own interval. Errors have a crowd of their own, so that an outage is told
 * whatever many others complain of.
 */
#include "log_internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "paynotify/moment.h"

enum {
	BURST = 10,
	PLACES = 256,
	PROBES = 8, /* places that a kind may have */
	CROWD = PLACES,
	ERRORS, /* the crowd's errors */
	BUCKETS,
};

static const int64_t INTERVAL_US = PN_SECOND_US;
/* A flood is over when nothing was held back for so long. */
static const int64_t QUIET_US = 3 * PN_SECOND_US;

struct bucket {
	uint64_t id;      /* 0: nobody's */
	int64_t full_us;  /* monotonic: when it holds all its lines again */
	int64_t slack_us; /* how far full_us may lie ahead for a line to pass */
	int64_t held_us;  /* when the last was held back */
	unsigned held;
	enum pn_log_category category; /* and what follows: to tell it */
	enum pn_log_level level;
	struct log_flood_texts texts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bucket buckets[BUCKETS];

/* FNV-1a; what a stranger could choose is not in it. */
static uint64_t
mix(uint64_t hash, const char *text)
{
	if (text == NULL)
		text = "";
	do
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	while (*text++ != '\0');
	return hash;
}

uint64_t
log_flood_id(const struct pn_log_about *about, const char *fmt)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uintptr_t)fmt;

	hash = mix(hash, about == NULL ? NULL : about->provider);
	hash = mix(hash, about == NULL ? NULL : about->tenant);
	hash = mix(hash, about == NULL ? NULL : about->subject);
	return hash == 0 ? 1 : hash;
}

static bool
is_free(const struct bucket *bucket, int64_t now_us)
{
	return bucket->id == 0 ||
	       (bucket->held == 0 && bucket->full_us <= now_us);
}

static struct bucket *
find(uint64_t id)
{
	for (size_t i = 0; i < PROBES; i++) {
		struct bucket *bucket = &buckets[(id + i) % PLACES];

		if (bucket->id == id)
			return bucket;
	}
	return NULL;
}

static struct bucket *
crowd(enum pn_log_level level)
{
	return &buckets[level == PN_LOG_ERR ? ERRORS : CROWD];
}

static bool
is_shared(const struct bucket *bucket)
{
	return bucket >= &buckets[PLACES];
}

/* Its bucket, or a new one, or one that is shared. */
static struct bucket *
take(uint64_t id, enum pn_log_level level, int64_t now_us)
{
	struct bucket *bucket = find(id);

	for (size_t i = 0; i < PROBES && bucket == NULL; i++)
		if (is_free(&buckets[(id + i) % PLACES], now_us))
			bucket = &buckets[(id + i) % PLACES];
	if (bucket == NULL)
		bucket = crowd(level);
	else if (bucket->id != id)
		*bucket = (struct bucket){ .id = id };
	return bucket;
}

static void
copy(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%s", text == NULL ? "" : text);
}

static bool
may_pass(const struct bucket *bucket, int64_t now_us)
{
	return bucket->full_us - bucket->slack_us <= now_us;
}

bool
log_flood_admits(uint64_t id, const struct log_line *line, int64_t interval_us,
    int64_t now_us, unsigned *ret_held)
{
	struct bucket *bucket;
	bool passes;

	assert(interval_us >= 0);
	pthread_mutex_lock(&lock);
	bucket = take(id, line->level, now_us);
	if (is_shared(bucket))
		interval_us = PN_LOG_BURST;
	bucket->slack_us =
	    interval_us == PN_LOG_BURST ? (BURST - 1) * INTERVAL_US : 0;
	if (interval_us == PN_LOG_BURST)
		interval_us = INTERVAL_US;
	passes = may_pass(bucket, now_us);
	if (passes) {
		if (bucket->full_us < now_us)
			bucket->full_us = now_us;
		bucket->full_us += interval_us;
		*ret_held = bucket->held;
		bucket->held = 0;
		bucket->category = line->category;
		bucket->level = line->level;
		copy(bucket->texts.provider, sizeof(bucket->texts.provider),
		    line->about.provider);
		copy(bucket->texts.tenant, sizeof(bucket->texts.tenant),
		    line->about.tenant);
		copy(bucket->texts.subject, sizeof(bucket->texts.subject),
		    line->about.subject);
	} else {
		bucket->held++;
		bucket->held_us = now_us;
	}
	pthread_mutex_unlock(&lock);
	return passes;
}

void
log_flood_written(uint64_t id, const struct log_line *line)
{
	struct pn_str message = line->message;
	struct bucket *bucket;

	if (id == 0)
		return; /* it was not asked whether it may pass */
	pthread_mutex_lock(&lock);
	bucket = find(id);
	if (bucket == NULL)
		bucket = crowd(line->level);
	if (message.len > sizeof(bucket->texts.message) - 1)
		message.len = sizeof(bucket->texts.message) - 1;
	message = log_form_whole(message);
	memcpy(bucket->texts.message, message.data, message.len);
	bucket->texts.message[message.len] = '\0';
	pthread_mutex_unlock(&lock);
}

bool
log_flood_is_shut(uint64_t id, int64_t now_us)
{
	struct bucket *bucket;
	bool shut;

	pthread_mutex_lock(&lock);
	bucket = find(id);
	shut = bucket != NULL && !may_pass(bucket, now_us);
	pthread_mutex_unlock(&lock);
	return shut;
}

static const char *
or_null(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

/* Its telling counts as a line. */
static void
tell(struct bucket *bucket, int64_t now_us, struct log_line *ret_line,
    struct log_flood_texts *ret_texts, unsigned *ret_held)
{
	*ret_texts = bucket->texts;
	*ret_held = bucket->held;
	*ret_line = (struct log_line){
		.category = bucket->category,
		.level = bucket->level,
		.about = {
			.provider = or_null(ret_texts->provider),
			.tenant = or_null(ret_texts->tenant),
			.subject = or_null(ret_texts->subject),
		},
		.message = pn_str_from(ret_texts->message),
		.time_us = bucket->held_us,
	};
	bucket->held = 0;
	if (bucket->full_us < now_us)
		bucket->full_us = now_us;
	bucket->full_us += INTERVAL_US;
}

bool
log_flood_next(size_t *at, bool all, int64_t now_us, struct log_line *ret_line,
    struct log_flood_texts *ret_texts, unsigned *ret_held)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (; *at < BUCKETS && !found; (*at)++) {
		struct bucket *bucket = &buckets[*at];

		if (bucket->held == 0)
			continue;
		if (!all && (bucket->held_us + QUIET_US > now_us ||
				!may_pass(bucket, now_us)))
			continue;
		tell(bucket, now_us, ret_line, ret_texts, ret_held);
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}
