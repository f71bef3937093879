/*
 * Whether the server is alive. If these fail, systemd's watchdog kills a daemon
 * that is only busy, or leaves one alone that has hung for good.
 */
#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A handler that hangs until it is told to go on. */
struct hanging {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_in, go_on;
};

static enum pn_refused
hang(void *service, struct pn_call *call)
{
	struct hanging *h = service;

	(void)call;
	(void)pthread_mutex_lock(&h->lock);
	h->is_in = true;
	(void)pthread_cond_broadcast(&h->changed);
	while (!h->go_on)
		(void)pthread_cond_wait(&h->changed, &h->lock);
	(void)pthread_mutex_unlock(&h->lock);
	return PN_REFUSED_PATH;
}

static void
submit(void *service, struct pn_call *call)
{
	(void)service;
	(void)call;
	abort(); /* nothing gets so far */
}

static void
refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	(void)service;
	(void)why;
	call->answer.status = 404;
}

static const struct pn_handler handler = {
	.begin = hang,
	.submit = submit,
	.refuse = refuse,
};

/* A deadlock in a handler goes unnoticed for ever. */
static void
test_alive__a_handler_that_hangs_is_seen(void **state)
{
	struct hanging h = { .lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER };
	struct wire wire = { .port = 0 };
	char reply[REPLY_BYTES_MAX];
	int fd;

	(void)state;
	wire_open(&wire, &handler, &h);
	assert_true(pn_alive_look(&wire.server->alive));
	fd = wire_connect(&wire);
	wire_send(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	(void)pthread_mutex_lock(&h.lock);
	while (!h.is_in)
		(void)pthread_cond_wait(&h.changed, &h.lock);
	(void)pthread_mutex_unlock(&h.lock);
	/* It may just have begun; then it has not. */
	assert_true(pn_alive_look(&wire.server->alive));
	assert_false(pn_alive_look(&wire.server->alive));
	assert_false(pn_server_is_alive(wire.server));

	(void)pthread_mutex_lock(&h.lock);
	h.go_on = true;
	(void)pthread_cond_broadcast(&h.changed);
	(void)pthread_mutex_unlock(&h.lock);
	assert_int_equal(wire_read(fd, reply), 404);
	(void)close(fd);
	wire_close(&wire);
}

/* A thread that is busy with one request after another is taken for hung. */
static void
test_alive__who_comes_and_goes_is_alive(void **state)
{
	struct pn_alive alive = { .numbers = 0 };
	size_t first, second;

	(void)state;
	for (int i = 0; i < 3; i++) {
		first = pn_alive_enter(&alive);
		assert_true(pn_alive_look(&alive));
		pn_alive_leave(&alive, first);
		second = pn_alive_enter(&alive);
		assert_int_equal(first, second); /* in the same place */
		assert_true(pn_alive_look(&alive));
		pn_alive_leave(&alive, second);
	}
}

/* More threads than places write where there is none. */
static void
test_alive__more_threads_than_places(void **state)
{
	struct pn_alive alive = { .numbers = 0 };

	(void)state;
	for (size_t i = 0; i < PN_ALIVE_SLOTS; i++)
		assert_int_equal(pn_alive_enter(&alive), i);
	assert_int_equal(pn_alive_enter(&alive), PN_ALIVE_SLOTS);
	pn_alive_leave(&alive, PN_ALIVE_SLOTS);
	assert_true(pn_alive_look(&alive));
	assert_false(pn_alive_look(&alive));
}

/* The connection watchdog hangs, and so does every connection after it. */
static void
test_alive__the_watchdog_must_tick(void **state)
{
	struct pn_conf_cidrs nobody = { .count = 0 };
	struct pn_watch_options options = {
		.idle_timeout_us = PN_SECOND_US,
		.request_timeout_us = 80 * PN_MILLISECOND_US,
		.connections_max = 1,
		.connections_per_peer_max = 1,
		.trusted = &nobody,
	};
	struct pn_watch *watch = NULL;
	int64_t until_us = pn_clock_monotonic_us() + 60 * PN_SECOND_US;

	(void)state;
	assert_int_equal(pn_watch_open(&options, &watch, NULL), 0);
	while (!pn_watch_has_ticked(watch))
		assert_true(pn_clock_monotonic_us() < until_us);
	pn_watch_close(watch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alive__a_handler_that_hangs_is_seen),
		cmocka_unit_test(test_alive__who_comes_and_goes_is_alive),
		cmocka_unit_test(test_alive__more_threads_than_places),
		cmocka_unit_test(test_alive__the_watchdog_must_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
