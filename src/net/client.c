/*
 * The client: a queue that any thread may put requests in, and a thread that
 * takes them out, runs them on curl's multi handle and calls their done().
 *
 * One turn of the thread: take the whole queue, give it to the lanes, start
 * what may start, end what waited too long, wait for curl, end what is
 * complete. The other side is woken only when the queue turns non-empty, and
 * not by done(), which runs on the thread that would be woken.
 *
 * done() is called when nothing of the request is in use any more and its
 * connection counts as free, so it may free the request or send another; what
 * it sends goes through the queue like all else, so that nothing recurses.
 *
 * Invariants: a request is in exactly one of the queue, a lane, the running
 * list. The running list is what the multi handle has. lanes.running is its
 * length, at most connections_max, so curl never has to let one wait.
 *
 * It does not: repeat, follow, cache, keep cookies, or log.
 */
#include "paynotify/client.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "paynotify/moment.h"

#include "client_internal.h"

enum { POOL_MAX = 256 }; /* about 10 kB each */

struct pn_client {
	pthread_mutex_t lock;
	struct pn_client_request *queue_first, *queue_last; /* under lock */
	bool stopping;                                      /* under lock */
	pthread_t thread;
	int nice; /* constant */
	/* The thread's own. */
	struct pn_client_loop loop;
	struct pn_client_lanes lanes;
	struct pn_client_exchange *running; /* doubly linked */
	struct pn_client_exchange *pool;    /* by next */
	unsigned pool_count;
	bool again; /* done() has sent: do not wait */
};

static void
lock(struct pn_client *client)
{
	int r = pthread_mutex_lock(&client->lock);

	assert(r == 0);
}

static void
unlock(struct pn_client *client)
{
	int r = pthread_mutex_unlock(&client->lock);

	assert(r == 0);
}

void
pn_client_send(struct pn_client *client, struct pn_client_request *request)
{
	bool first, own;

	assert(request->method != NULL && request->url != NULL &&
	       request->done != NULL && request->timeout_us > 0 &&
	       request->timeout_us < INT64_MAX / 2);
	request->next = NULL;
	request->began_us = pn_clock_monotonic_us();
	lock(client);
	first = client->queue_first == NULL;
	if (first)
		client->queue_first = request;
	else
		client->queue_last->next = request;
	client->queue_last = request;
	own = pthread_equal(client->thread, pthread_self());
	if (own)
		client->again = true;
	/* Under the lock: it cannot have been closed meanwhile. */
	if (first && !own)
		pn_client_loop_wake(&client->loop);
	unlock(client);
}

/* -- ending --------------------------------------------------------------------- */

/* One that has, or had, no exchange. The error is set; memory: it was none. */
static void
end_unsent(
    struct pn_client_request *request, enum pn_client_end end, bool memory)
{
	request->end = end;
	request->host_fault = memory;
	request->sent = false;
	request->status = 0;
	request->answer_headers = request->answer = (struct pn_str){ NULL, 0 };
	request->elapsed_us = pn_clock_monotonic_us() - request->began_us;
	request->done(request); /* may be freed now */
}

static void
end_stopped(struct pn_client_request *request)
{
	(void)pn_error_set(&request->error, 0, "the client was stopped");
	end_unsent(request, PN_CLIENT_STOPPED, false);
}

static void
pool_put(struct pn_client *client, struct pn_client_exchange *exchange)
{
	pn_client_exchange_rest(exchange);
	if (client->pool_count == POOL_MAX) {
		pn_client_exchange_free(exchange);
		return;
	}
	exchange->next = client->pool;
	client->pool = exchange;
	client->pool_count++;
}

static struct pn_client_exchange *
pool_take(struct pn_client *client)
{
	struct pn_client_exchange *exchange = client->pool;

	if (exchange == NULL)
		return pn_client_exchange_new();
	client->pool = exchange->next;
	client->pool_count--;
	return exchange;
}

/* Takes a running one out of curl and out of its lane. */
static void
take_out(struct pn_client *client, struct pn_client_exchange *exchange)
{
	CURLMcode code =
	    curl_multi_remove_handle(client->loop.multi, exchange->easy);

	assert(code == CURLM_OK);
	if (exchange->previous == NULL)
		client->running = exchange->next;
	else
		exchange->previous->next = exchange->next;
	if (exchange->next != NULL)
		exchange->next->previous = exchange->previous;
	pn_client_lanes_leave(&client->lanes, exchange->lane);
}

/* What curl says is complete. */
static void
collect(struct pn_client *client)
{
	struct pn_client_exchange *exchange;
	struct pn_client_request *request;
	CURLMsg *message;
	CURLcode code;
	int left;

	while ((message = curl_multi_info_read(client->loop.multi, &left)) !=
	       NULL) {
		assert(message->msg == CURLMSG_DONE);
		code = message->data.result; /* gone with the handle */
		exchange = NULL;
		(void)curl_easy_getinfo(
		    message->easy_handle, CURLINFO_PRIVATE, &exchange);
		assert(exchange != NULL && exchange->request != NULL);
		request = exchange->request;
		take_out(client, exchange);
		pn_client_exchange_end(exchange, code);
		request->done(request); /* may be freed now */
		pool_put(client, exchange);
	}
}

/* -- starting ---------------------------------------------------------------- */

static int
start(struct pn_client *client, struct pn_client_request *request,
    struct pn_client_lane *lane)
{
	struct pn_client_exchange *exchange = pool_take(client);
	int r;

	if (exchange == NULL)
		return pn_error_set(&request->error, -ENOMEM, "out of memory");
	r = pn_client_exchange_start(
	    exchange, request, pn_clock_monotonic_us(), &request->error);
	if (r == 0 && curl_multi_add_handle(
			  client->loop.multi, exchange->easy) != CURLM_OK)
		r = pn_error_set(&request->error, -ENOMEM, "out of memory");
	if (r < 0) {
		pn_client_exchange_rest(exchange);
		pn_client_exchange_free(exchange); /* may be half set up */
		return r;
	}
	exchange->lane = lane;
	exchange->previous = NULL;
	exchange->next = client->running;
	if (client->running != NULL)
		client->running->previous = exchange;
	client->running = exchange;
	return 0;
}

/* All that may run, until the lanes have no more. */
static void
pump(struct pn_client *client)
{
	struct pn_client_request *request;
	struct pn_client_lane *lane = NULL;
	int r;

	while (
	    (request = pn_client_lanes_next(&client->lanes, &lane)) != NULL) {
		r = start(client, request, lane);
		if (r == 0)
			continue;
		pn_client_lanes_leave(&client->lanes, lane);
		if (r == -ETIMEDOUT)
			pn_client_report_late(request, client->lanes.running);
		end_unsent(request,
		    r == -ETIMEDOUT ? PN_CLIENT_TIMEOUT : PN_CLIENT_NOT_SENT,
		    r == -ENOMEM);
	}
}

static void
end_late(struct pn_client *client)
{
	struct pn_client_request *late = pn_client_lanes_late(
				     &client->lanes, pn_clock_monotonic_us()),
				 *next;

	for (; late != NULL; late = next) {
		next = late->next;
		pn_client_report_late(late, client->lanes.running);
		end_unsent(late, PN_CLIENT_TIMEOUT, false);
	}
}

/* -- the thread ------------------------------------------------------------------ */

static struct pn_client_request *
take_queue(struct pn_client *client, bool *ret_stopping)
{
	struct pn_client_request *batch;

	lock(client);
	batch = client->queue_first;
	client->queue_first = client->queue_last = NULL;
	client->again = false;
	*ret_stopping = client->stopping;
	unlock(client);
	return batch;
}

static void
sort_in(struct pn_client *client, struct pn_client_request *batch)
{
	struct pn_client_request *next;

	for (; batch != NULL; batch = next) {
		next = batch->next;
		if (pn_client_lanes_add(&client->lanes, batch) == 0)
			continue;
		(void)pn_error_set(&batch->error, 0, "out of memory");
		end_unsent(batch, PN_CLIENT_NOT_SENT, true);
	}
}

static void
stop_all(struct pn_client *client, struct pn_client_request *batch)
{
	struct pn_client_exchange *exchange;
	struct pn_client_request *request, *next;

	while ((exchange = client->running) != NULL) {
		request = exchange->request;
		take_out(client, exchange);
		exchange->stopped = true;
		pn_client_exchange_end(exchange, CURLE_ABORTED_BY_CALLBACK);
		request->done(request);
		pool_put(client, exchange);
	}
	for (request = pn_client_lanes_late(&client->lanes, INT64_MAX);
	     request != NULL; request = next) {
		next = request->next;
		end_stopped(request);
	}
	for (; batch != NULL; batch = next) {
		next = batch->next;
		end_stopped(batch);
	}
}

static void *
run(void *payload)
{
	struct pn_client *client = payload;
	struct pn_client_request *batch;
	bool stopping;

	/* Linux: of this thread. Not allowed, it runs as it is. */
	if (client->nice > 0)
		(void)setpriority(PRIO_PROCESS, 0, client->nice);
	for (;;) {
		batch = take_queue(client, &stopping);
		if (stopping)
			break;
		sort_in(client, batch);
		pump(client);
		end_late(client);
		pn_client_loop_turn(
		    &client->loop, client->again ? 0 : client->lanes.until_us);
		collect(client);
	}
	do {
		stop_all(client, batch);
		batch = take_queue(client, &stopping);
	} while (batch != NULL);
	return NULL;
}

/* Signals are for the program's other threads; SIGPIPE is for none. */
static int
start_thread(struct pn_client *client)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	assert(r == 0);
	lock(client); /* client->thread is there before anyone reads it */
	r = pthread_create(&client->thread, NULL, run, client);
	unlock(client);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void
free_client(struct pn_client *client)
{
	struct pn_client_exchange *exchange;

	while ((exchange = client->pool) != NULL) {
		client->pool = exchange->next;
		pn_client_exchange_free(exchange);
	}
	pn_client_loop_close(&client->loop);
	pn_client_lanes_done(&client->lanes);
	(void)pthread_mutex_destroy(&client->lock);
	free(client);
}

int
pn_client_open(const struct pn_client_options *options,
    struct pn_client **ret_client, struct pn_error *ret_error)
{
	struct pn_client *client = calloc(1, sizeof(*client));
	int r;

	if (client == NULL || pthread_mutex_init(&client->lock, NULL) != 0) {
		free(client);
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	}
	client->nice = options->nice;
	pn_client_lanes_init(&client->lanes, options->connections_max,
	    options->connections_per_host_max);
	r = pn_client_loop_open(
	    &client->loop, options->connections_max, ret_error);
	if (r == 0) {
		r = start_thread(client);
		if (r < 0)
			(void)pn_error_set(ret_error, r,
			    "could not start a thread: %s", strerror(-r));
	}
	if (r < 0) {
		free_client(client);
		return r;
	}
	*ret_client = client;
	return 0;
}

void
pn_client_close(struct pn_client *client)
{
	int r;

	if (client == NULL)
		return;
	lock(client);
	client->stopping = true;
	pn_client_loop_wake(&client->loop);
	unlock(client);
	r = pthread_join(client->thread, NULL);
	assert(r == 0);
	free_client(client);
}
