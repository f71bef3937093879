/*
 * What follows from how an attempt ended: whether there is another one, and
 * when. Pure; any thread.
 */
#ifndef PN_DELIVER_SCHEDULE_H
#define PN_DELIVER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/client.h"
#include "paynotify/str.h"

enum pn_verdict {
	PN_VERDICT_DONE,
	PN_VERDICT_RETRY,
	PN_VERDICT_DEAD,    /* that was the last attempt */
	PN_VERDICT_DISABLE, /* 410: as RETRY, and the endpoint wants no more */
};

enum { PN_PUSH_ATTEMPTS_MAX = 12 }; /* the first and eleven retries */

/* attempt: which one ended so, from 1. status: 0 unless answered. */
enum pn_verdict
pn_schedule_classify(enum pn_client_end end, int status, int attempt);
/* Whether the endpoint as a whole works, as far as this tells: an event that it
 * refuses is the event's fault. For the breaker. */
bool pn_schedule_is_alive(enum pn_client_end end, int status);

/* From the end of this attempt to the next. random: any 32 bits.
 * retry_after_us: what the endpoint asked for, or 0. */
int64_t
pn_schedule_delay_us(int attempt, int64_t retry_after_us, uint32_t random);
/* The value of a Retry-After header, whatever the status is that it came with
 * (RFC 9110, 10.2.3, ties it to none): seconds, or an HTTP date (IMF-fixdate)
 * from now_us on; 0 to 24 h. 0 too if it is neither, or absent. */
int64_t pn_schedule_retry_after_us(struct pn_str value, int64_t now_us);

/* Before the next try to connect to the database. failures > 0. */
int64_t pn_schedule_reconnect_us(unsigned failures, uint32_t random);

/* 80 % to 120 % of it. */
int64_t pn_schedule_jitter_us(int64_t us, uint32_t random);

#endif
