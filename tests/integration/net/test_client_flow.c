/*
 * Many requests at once: limits, waiting, threads, the end of the client. If
 * these fail, a slow host holds up the others, a limit does not hold, or a
 * request is forgotten or done twice.
 */
#include "client_support.h"

#include <stdatomic.h>
#include <stdio.h>

enum { CALLS_MAX = 64, THREADS = 4, CALLS_PER_THREAD = 100 };

struct calls {
	struct call *calls[CALLS_MAX];
	int count;
};

static void
send_many(struct calls *calls, struct pn_client *client, struct peer *peer,
    const char *path, int count)
{
	char url[PEER_URL_BYTES];

	*calls = (struct calls){ .count = count };
	(void)peer_url(peer, "127.0.0.1", path, url);
	for (int i = 0; i < count; i++) {
		calls->calls[i] = call_new(url);
		call_send(client, calls->calls[i]);
	}
}

static void
expect_many(struct calls *calls, enum pn_client_end end)
{
	for (int i = 0; i < calls->count; i++) {
		call_wait(calls->calls[i]);
		assert_int_equal(calls->calls[i]->request.end, end);
		call_free(calls->calls[i]);
	}
}

/* One host gets more connections than it may, or those that wait are lost, or
 * they keep another host's requests waiting too. */
static void
test_client__limit_of_a_host_holds_no_one_else_up(void **state)
{
	struct peer *slow = peer_open(NULL, NULL);
	struct peer *quick = peer_open(NULL, NULL);
	struct pn_client *client = client_new(8, 3);
	struct calls held;
	char url[PEER_URL_BYTES];

	(void)state;
	send_many(&held, client, slow, "/hold", 20);
	peer_wait_holding(slow, 3);
	(void)peer_url(quick, "127.0.0.1", "/ok", url);
	for (int i = 0; i < 20; i++)
		expect_end(client, url, PN_CLIENT_ANSWERED, true, NULL);
	assert_int_equal(peer_requests(slow), 3);
	peer_release(slow);
	expect_many(&held, PN_CLIENT_ANSWERED);
	assert_int_equal(slow->holding_most, 3);
	assert_int_equal(peer_connections(slow), 3);
	assert_int_equal(peer_requests(slow), 20);
	pn_client_close(client);
	peer_close(slow);
	peer_close(quick);
}

/* All hosts together get more connections than allowed; or the idle ones of
 * one host count and nothing goes to the others. */
static void
test_client__limit_of_all_counts_idle_ones(void **state)
{
	struct peer *peers[3], *other = peer_open(NULL, NULL);
	struct pn_client *client = client_new(4, 4);
	struct calls held, waiting;

	(void)state;
	for (int i = 0; i < 3; i++) {
		peers[i] = peer_open(NULL, NULL);
		send_many(&held, client, peers[i], "/hold", 4);
		peer_wait_holding(peers[i], 4);
		/* It has all four: those of the one before were closed. */
		if (i > 0)
			peer_wait_closed(peers[i - 1], 4);
		send_many(&waiting, client, other, "/ok-close", 8);
		assert_int_equal(peer_requests(other), 8 * i);
		peer_release(peers[i]);
		expect_many(&held, PN_CLIENT_ANSWERED);
		expect_many(&waiting, PN_CLIENT_ANSWERED);
		assert_int_equal(peer_requests(other), 8 * (i + 1));
		assert_int_equal(peer_connections(peers[i]), 4);
	}
	pn_client_close(client);
	for (int i = 0; i < 3; i++)
		peer_close(peers[i]);
	peer_close(other);
}

/* What waits for a connection waits for ever. */
static void
test_client__waiting_counts_for_the_timeout(void **state)
{
	struct peer *peer = peer_open(NULL, NULL);
	struct pn_client *client = client_new(8, 1);
	struct calls held;
	struct call *late, *patient;
	char url[PEER_URL_BYTES];

	(void)state;
	send_many(&held, client, peer, "/hold", 1);
	peer_wait_holding(peer, 1);
	(void)peer_url(peer, "127.0.0.1", "/ok", url);
	patient = call_new(url);
	call_send(client, patient);
	late = call_new(url);
	late->request.timeout_us = 50 * PN_MILLISECOND_US;
	assert_int_equal(call_run(client, late), PN_CLIENT_TIMEOUT);
	assert_false(late->request.sent);
	assert_non_null(strstr(late->request.error.text, "became free"));
	call_free(late);
	assert_int_equal(peer_requests(peer), 1);
	peer_release(peer);
	call_wait(patient);
	assert_int_equal(patient->request.end, PN_CLIENT_ANSWERED);
	call_free(patient);
	expect_many(&held, PN_CLIENT_ANSWERED);
	pn_client_close(client);
	peer_close(peer);
}

/* A request is forgotten when the client closes, and whoever waits for its end
 * waits for ever; or it is said that nothing was sent. */
static void
test_client__close_stops_everything(void **state)
{
	struct peer *peer = peer_open(NULL, NULL);
	struct pn_client *client = client_new(8, 2);
	struct calls held;
	int sent = 0;

	(void)state;
	send_many(&held, client, peer, "/silent", 40);
	peer_wait_requests(peer, 2);
	pn_client_close(client);
	for (int i = 0; i < held.count; i++) {
		sent += held.calls[i]->request.sent;
		assert_string_equal(held.calls[i]->request.error.text,
		    "the client was stopped");
	}
	assert_int_equal(sent, 2);
	expect_many(&held, PN_CLIENT_STOPPED);
	peer_close(peer);
	pn_client_close(NULL);
	/* Nothing sent at all, and closed before the thread ran. */
	pn_client_close(client_new(1, 1));
}

/* -- sending from done() -------------------------------------------------------- */

struct chain {
	struct pn_client *client;
	int left;
	sem_t end;
};

static void
go_on(struct pn_client_request *request)
{
	struct chain *chain = request->payload;

	assert_int_equal(request->end, PN_CLIENT_ANSWERED);
	if (--chain->left > 0)
		pn_client_send(chain->client, request); /* the same again */
	else
		(void)sem_post(&chain->end);
}

/* A request sent from done() is lost or sleeps until something else happens;
 * or the stack grows with each. */
static void
test_client__done_may_send_the_next(void **state)
{
	struct peer *peer = peer_open(NULL, NULL);
	struct chain chain = { .client = client_new(1, 1), .left = 500 };
	char url[PEER_URL_BYTES];
	struct pn_client_request request = {
		.method = "POST",
		.url = peer_url(peer, "127.0.0.1", "/ok", url),
		.timeout_us = 30 * PN_SECOND_US,
		.answer_bytes_max = 10,
		.done = go_on,
		.payload = &chain,
	};

	(void)state;
	assert_int_equal(sem_init(&chain.end, 0, 0), 0);
	pn_client_send(chain.client, &request);
	while (sem_wait(&chain.end) != 0)
		continue;
	assert_int_equal(peer_requests(peer), 500);
	assert_int_equal(peer_connections(peer), 1);
	pn_client_close(chain.client);
	peer_close(peer);
	(void)sem_destroy(&chain.end);
}

static void
try_again(struct pn_client_request *request)
{
	struct chain *chain = request->payload;

	assert_int_equal(request->end, PN_CLIENT_NOT_SENT);
	if (--chain->left > 0)
		pn_client_send(chain->client, request);
	else
		(void)sem_post(&chain->end);
}

/* What is refused before curl sees it, and sent again at once, recurses or
 * hangs. */
static void
test_client__done_of_what_was_refused_may_send(void **state)
{
	struct chain chain = { .client = client_new(1, 1), .left = 1000 };
	struct pn_client_request request = {
		.method = "NO METHOD",
		.url = "http://127.0.0.1:1/",
		.timeout_us = 30 * PN_SECOND_US,
		.done = try_again,
		.payload = &chain,
	};

	(void)state;
	assert_int_equal(sem_init(&chain.end, 0, 0), 0);
	pn_client_send(chain.client, &request);
	while (sem_wait(&chain.end) != 0)
		continue;
	pn_client_close(chain.client);
	(void)sem_destroy(&chain.end);
}

/* -- many threads ----------------------------------------------------------------- */

struct sender {
	struct pn_client *client;
	struct peer *peer;
	pthread_t thread;
	int answered;
};

static void *
send_from_thread(void *payload)
{
	struct sender *sender = payload;
	char url[PEER_URL_BYTES];
	struct call *calls[CALLS_PER_THREAD];

	(void)peer_url(sender->peer, "127.0.0.1", "/echo", url);
	for (int i = 0; i < CALLS_PER_THREAD; i++) {
		calls[i] = call_new(url);
		call_send(sender->client, calls[i]);
	}
	for (int i = 0; i < CALLS_PER_THREAD; i++) {
		call_wait(calls[i]);
		sender->answered +=
		    calls[i]->request.end == PN_CLIENT_ANSWERED &&
		    calls[i]->dones == 1 && strcmp(calls[i]->body, "{}") == 0;
		call_free(calls[i]);
	}
	return NULL;
}

/* Two threads' requests trample the queue, or a wake-up is missed. */
static void
test_client__any_thread_may_send(void **state)
{
	struct sender senders[THREADS];
	struct peer *peer = peer_open(NULL, NULL);
	struct pn_client *client = client_new(8, 8);

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		senders[i] = (struct sender){ .client = client, .peer = peer };
		assert_int_equal(pthread_create(&senders[i].thread, NULL,
				     send_from_thread, &senders[i]),
		    0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(senders[i].thread, NULL), 0);
		assert_int_equal(senders[i].answered, CALLS_PER_THREAD);
	}
	assert_int_equal(peer_requests(peer), THREADS * CALLS_PER_THREAD);
	assert_true(peer_connections(peer) <= 8);
	pn_client_close(client);
	peer_close(peer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_client__limit_of_a_host_holds_no_one_else_up),
		cmocka_unit_test(test_client__limit_of_all_counts_idle_ones),
		cmocka_unit_test(test_client__waiting_counts_for_the_timeout),
		cmocka_unit_test(test_client__close_stops_everything),
		cmocka_unit_test(test_client__done_may_send_the_next),
		cmocka_unit_test(
		    test_client__done_of_what_was_refused_may_send),
		cmocka_unit_test(test_client__any_thread_may_send),
	};

	client_tests_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
