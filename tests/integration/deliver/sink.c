/*
 * The sink, on libmicrohttpd with a thread a connection: one that is held
 * blocks in its handler and nothing else. Every request is recorded before it
 * is answered, so a test that has seen it may rely on the answer not having
 * been read yet while the sink holds.
 */
#include "sink.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <microhttpd.h>

enum { PATIENCE_S = 20 };

struct sink {
	struct MHD_Daemon *daemon;
	char url[64];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int status, next_status;
	unsigned next_count;
	char retry_after[64];
	bool hold, ending;
	int64_t delay_us;
	size_t count;
	struct sink_request requests[SINK_REQUESTS_MAX];
};

static void
copy_header(
    struct MHD_Connection *connection, const char *name, char *to, size_t bytes)
{
	const char *value =
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

	(void)snprintf(to, bytes, "%s", value == NULL ? "" : value);
}

/* Records it and waits while the sink holds. The status to answer with. */
static int
record(
    struct sink *sink, const struct sink_request *request, char retry_after[64])
{
	int64_t delay_us;
	int status;

	pthread_mutex_lock(&sink->lock);
	if (sink->count < SINK_REQUESTS_MAX)
		sink->requests[sink->count++] = *request;
	pthread_cond_broadcast(&sink->changed);
	while (sink->hold && !sink->ending)
		pthread_cond_wait(&sink->changed, &sink->lock);
	status = sink->status;
	if (sink->next_count > 0) {
		sink->next_count--;
		status = sink->next_status;
	}
	memcpy(retry_after, sink->retry_after, sizeof(sink->retry_after));
	delay_us = sink->delay_us;
	pthread_mutex_unlock(&sink->lock);
	if (delay_us > 0)
		(void)usleep((useconds_t)delay_us);
	return status;
}

static enum MHD_Result
on_request(void *payload, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *size,
    void **connection_payload)
{
	struct sink_request *request = *connection_payload;
	struct MHD_Response *response;
	char retry_after[64], text[] = "thanks";
	enum MHD_Result result;
	size_t len;
	int status;

	(void)url;
	(void)version;
	if (request == NULL) {
		*connection_payload = calloc(1, sizeof(*request));
		return *connection_payload == NULL ? MHD_NO : MHD_YES;
	}
	if (*size > 0) {
		len = strlen(request->body);
		if (len + *size < sizeof(request->body))
			memcpy(request->body + len, data, *size);
		*size = 0;
		return MHD_YES;
	}
#define HEADER(name, member) \
	copy_header(connection, name, request->member, sizeof(request->member))
	HEADER("webhook-id", id);
	HEADER("webhook-timestamp", timestamp);
	HEADER("webhook-signature", signature);
	HEADER("webhook-redelivery", redelivery);
	HEADER("Content-Type", content_type);
	HEADER("User-Agent", user_agent);
	(void)snprintf(request->method, sizeof(request->method), "%s", method);
	status = record(payload, request, retry_after);
	response = MHD_create_response_from_buffer(
	    sizeof(text) - 1, text, MHD_RESPMEM_MUST_COPY);
	if (retry_after[0] != '\0')
		(void)MHD_add_response_header(
		    response, "Retry-After", retry_after);
	result = MHD_queue_response(connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return result;
}

static void
on_completed(void *payload, struct MHD_Connection *connection,
    void **connection_payload, enum MHD_RequestTerminationCode code)
{
	(void)payload;
	(void)connection;
	(void)code;
	free(*connection_payload);
	*connection_payload = NULL;
}

struct sink *
sink_new(void)
{
	struct sink *sink = calloc(1, sizeof(*sink));
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const union MHD_DaemonInfo *info;

	assert_non_null(sink);
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->changed, NULL);
	sink->status = 200;
	sink->daemon = MHD_start_daemon(
	    MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0,
	    NULL, NULL, on_request, sink, MHD_OPTION_SOCK_ADDR, &address,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
	assert_non_null(sink->daemon);
	info = MHD_get_daemon_info(sink->daemon, MHD_DAEMON_INFO_BIND_PORT);
	(void)snprintf(sink->url, sizeof(sink->url), "http://127.0.0.1:%u/hook",
	    (unsigned)info->port);
	return sink;
}

void
sink_free(struct sink *sink)
{
	if (sink == NULL)
		return;
	pthread_mutex_lock(&sink->lock);
	sink->ending = true;
	pthread_cond_broadcast(&sink->changed);
	pthread_mutex_unlock(&sink->lock);
	MHD_stop_daemon(sink->daemon);
	pthread_cond_destroy(&sink->changed);
	pthread_mutex_destroy(&sink->lock);
	free(sink);
}

char *
sink_url(struct sink *sink)
{
	return sink->url;
}

void
sink_answer(struct sink *sink, int status, const char *retry_after)
{
	pthread_mutex_lock(&sink->lock);
	sink->status = status;
	(void)snprintf(sink->retry_after, sizeof(sink->retry_after), "%s",
	    retry_after == NULL ? "" : retry_after);
	pthread_mutex_unlock(&sink->lock);
}

void
sink_answer_next(struct sink *sink, unsigned count, int status)
{
	pthread_mutex_lock(&sink->lock);
	sink->next_count = count;
	sink->next_status = status;
	pthread_mutex_unlock(&sink->lock);
}

void
sink_hold(struct sink *sink, bool hold)
{
	pthread_mutex_lock(&sink->lock);
	sink->hold = hold;
	pthread_cond_broadcast(&sink->changed);
	pthread_mutex_unlock(&sink->lock);
}

void
sink_delay(struct sink *sink, int64_t us)
{
	pthread_mutex_lock(&sink->lock);
	sink->delay_us = us;
	pthread_mutex_unlock(&sink->lock);
}

size_t
sink_count(struct sink *sink)
{
	size_t count;

	pthread_mutex_lock(&sink->lock);
	count = sink->count;
	pthread_mutex_unlock(&sink->lock);
	return count;
}

void
sink_wait(struct sink *sink, size_t count)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&sink->lock);
	while (sink->count < count)
		if (pthread_cond_timedwait(
			&sink->changed, &sink->lock, &until) != 0)
			fail_msg(
			    "%zu of %zu requests came", sink->count, count);
	pthread_mutex_unlock(&sink->lock);
}

struct sink_request
sink_get(struct sink *sink, size_t n)
{
	struct sink_request request;

	pthread_mutex_lock(&sink->lock);
	assert_true(n < sink->count);
	request = sink->requests[n];
	pthread_mutex_unlock(&sink->lock);
	return request;
}
