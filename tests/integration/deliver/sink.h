/*
 * An application that events are pushed to: an HTTP server that records what
 * comes and answers as it is told.
 */
#ifndef PN_TEST_SINK_H
#define PN_TEST_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;

enum { SINK_REQUESTS_MAX = 4096 };

struct sink_request {
	char id[64], timestamp[32], signature[512], redelivery[8];
	char content_type[64], user_agent[64], method[16];
	char body[2048];
};

struct sink *sink_new(void);
void sink_free(struct sink *sink);
/* http://127.0.0.1:port/hook; the sink's. */
char *sink_url(struct sink *sink);

/* How all that come from now on are answered. NULL: no Retry-After. */
void sink_answer(struct sink *sink, int status, const char *retry_after);
/* The next so many are answered with status, those behind them as above. */
void sink_answer_next(struct sink *sink, unsigned count, int status);
/* Requests are recorded, and answered when let go. */
void sink_hold(struct sink *sink, bool hold);

/* Each is answered only after this time: a slow application. */
void sink_delay(struct sink *sink, int64_t us);

size_t sink_count(struct sink *sink);
/* Waits until so many have come; fails the test after 20 s. */
void sink_wait(struct sink *sink, size_t count);
/* A copy of the nth, from 0. */
struct sink_request sink_get(struct sink *sink, size_t n);

#endif
