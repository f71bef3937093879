/*
 * Exchanges that end badly. If these fail, a caller believes that a request
 * was never sent when the peer may have acted on it, or the other way round,
 * or a request is sent twice.
 */
#include "client_support.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct state {
	struct peer *peer;
	struct pn_client *client;
};

/* -- names: the process's own getaddrinfo, which curl's threads call ----------- */

static sem_t lookup_begun, lookup_may_end, lookup_ended;

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
    struct addrinfo **ret_list)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
	    struct addrinfo **);

	if (strcmp(name, "unknown.invalid") == 0)
		return EAI_NONAME;
	if (strcmp(name, "hangs.invalid") == 0) {
		(void)sem_post(&lookup_begun);
		while (sem_wait(&lookup_may_end) != 0)
			continue;
		(void)sem_post(&lookup_ended);
		return EAI_AGAIN;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(name, service, hints, ret_list);
}

static int
open_both(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->peer = peer_open(NULL, NULL);
	s->client = client_new(16, 8);
	*state = s;
	return 0;
}

static int
close_both(void **state)
{
	struct state *s = *state;

	pn_client_close(s->client);
	peer_close(s->peer);
	free(s);
	return 0;
}

/* A port where no one listens, for as long as the socket is open. */
static int
take_port(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* A refused connection counts as lost, or its error shows the password or the
 * token of the URL, or does not say what is wrong with whom. */
static void
test_client__refused_connection_is_not_sent(void **state)
{
	struct state *s = *state;
	char url[PEER_URL_BYTES], expected[128];
	struct call *call;
	int port, fd = take_port(&port);

	(void)snprintf(url, sizeof(url),
	    "http://user:Secret@127.0.0.1:%d/p?token=Secret#Secret", port);
	(void)snprintf(expected, sizeof(expected),
	    "could not connect to \"http://127.0.0.1:%d\": Connection refused",
	    port);
	call = call_new(url);
	assert_int_equal(call_run(s->client, call), PN_CLIENT_NOT_SENT);
	assert_string_equal(call->request.error.text, expected);
	assert_false(call->request.sent);
	call_free(call);
	(void)close(fd);
}

static struct rlimit descriptors;

/* No more descriptors for this process, or as many as before. The client has
 * what it needs open already. */
static void
allow_descriptors(bool allow)
{
	struct rlimit none;
	int fd = dup(STDIN_FILENO); /* the first that is free */

	if (allow) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
		return;
	}
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	none = descriptors;
	none.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

/* What this host lacks is held against the peer: its events use up their
 * attempts while a descriptor is missing here. */
static void
test_client__what_this_host_lacks_is_told_apart(void **state)
{
	static const struct {
		const char *url, *error;
	} cases[] = {
		{ "http://127.0.0.1:1/", "Too many open files" },
		{ "http://[::1]:1/", "Too many open files" },
		{ "http://unknown.invalid/", "thread failed to start" },
	};
	struct state *s = *state;
	struct call *call;

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		call = call_new(cases[i].url);
		allow_descriptors(false);
		assert_int_equal(call_run(s->client, call), PN_CLIENT_NOT_SENT);
		allow_descriptors(true);
		assert_true(call->request.host_fault);
		assert_non_null(
		    strstr(call->request.error.text, cases[i].error));
		call_free(call);
		/* It is the peer's again. */
		call = call_new(cases[i].url);
		assert_int_equal(call_run(s->client, call), PN_CLIENT_NOT_SENT);
		assert_false(call->request.host_fault);
		call_free(call);
	}
}

/* A URL that cannot be used is tried for ever as if the network were down, or
 * another scheme gets at files. */
static void
test_client__bad_urls_are_not_sent(void **state)
{
	static const char *const urls[] = { "", "127.0.0.1/", "nonsense://x/",
		"HTTPS:///", "http://?x", "http://u:p@/", "x=http://127.0.0.1/",
		"ftp://127.0.0.1/", "file:///etc/passwd", "http://",
		"http:///path", "http://a b/", "http://[::1/",
		"http://127.0.0.1:99999/", "http://127.0.0.1:x/",
		"http://127.0.0.1/a\nb", "gopher://127.0.0.1/" };
	struct state *s = *state;

	for (size_t i = 0; i < PN_COUNT(urls); i++)
		expect_end(
		    s->client, urls[i], PN_CLIENT_NOT_SENT, false, "URL");
}

/* A name that does not exist counts as lost. */
static void
test_client__unknown_name_is_not_sent(void **state)
{
	struct state *s = *state;

	expect_end(s->client, "http://unknown.invalid/", PN_CLIENT_NOT_SENT,
	    false, "unknown.invalid");
}

/* One name server that does not answer holds up all deliveries: the client's
 * thread waits for the lookup that has timed out. The lookup goes on until
 * another request was answered. */
static void
test_client__hanging_lookup_holds_no_one_up(void **state)
{
	struct state *s = *state;
	struct call *call = call_new("http://hangs.invalid/");
	char url[PEER_URL_BYTES];

	call->request.timeout_us = 50 * PN_MILLISECOND_US;
	call_send(s->client, call);
	assert_int_equal(sem_wait(&lookup_begun), 0);
	call_wait(call);
	assert_int_equal(call->request.end, PN_CLIENT_TIMEOUT);
	assert_false(call->request.sent);
	assert_string_equal(call->request.error.text,
	    "could not connect to \"http://hangs.invalid\" within 50 ms");
	call_free(call);
	expect_end(s->client, peer_url(s->peer, "127.0.0.1", "/ok", url),
	    PN_CLIENT_ANSWERED, true, NULL);
	assert_int_equal(sem_post(&lookup_may_end), 0);
	assert_int_equal(sem_wait(&lookup_ended), 0);
}

/* What the peer may have acted on is reported as never sent. */
static void
test_client__broken_answers_are_lost(void **state)
{
	static const struct {
		const char *path, *error;
	} cases[] = {
		{ "/close", "broke after the request was sent" },
		{ "/reset", "broke after the request was sent" },
		{ "/garbage", "is no whole HTTP" },
		{ "/half-head", "is no whole HTTP" },
		{ "/half-body", "status 200, broke off" },
		{ "/bad-chunk", "status 200, broke off" },
		{ "/bad-length", "answer of" },
		{ "/two-lengths", "ambiguous Content-Length" },
		{ "/huge-length", "ambiguous Content-Length" },
		{ "/endless-headers", "headers without end" },
	};
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	for (size_t i = 0; i < PN_COUNT(cases); i++)
		expect_end(s->client,
		    peer_url(s->peer, "127.0.0.1", cases[i].path, url),
		    PN_CLIENT_LOST, true, cases[i].error);
	assert_int_equal(peer_requests(s->peer), PN_COUNT(cases));
}

/* A peer that reads and says nothing is waited for without end; or the caller
 * takes it that nothing was sent. */
static void
test_client__silence_is_a_timeout_after_sending(void **state)
{
	static const struct {
		const char *path, *error;
	} cases[] = { { "/silent", "no answer from" },
		{ "/half-then-wait", "came only in part" } };
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	for (size_t i = 0; i < PN_COUNT(cases); i++) {
		struct call *call = call_new(
		    peer_url(s->peer, "127.0.0.1", cases[i].path, url));

		call->request.timeout_us = 100 * PN_MILLISECOND_US;
		assert_int_equal(call_run(s->client, call), PN_CLIENT_TIMEOUT);
		assert_true(call->request.sent);
		assert_int_equal(call->request.status, 0);
		assert_true(
		    call->request.elapsed_us >= 100 * PN_MILLISECOND_US);
		assert_non_null(
		    strstr(call->request.error.text, cases[i].error));
		call_free(call);
	}
}

/* A handshake that hangs is a connection never made; the caller must not take
 * it for a request that may have been read. */
static void
test_client__hanging_handshake_is_a_timeout_before_sending(void **state)
{
	struct state *s = *state;
	char url[64];
	struct call *call;
	int port, fd = take_port(&port);

	assert_int_equal(listen(fd, 8), 0); /* no one accepts */
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/", port);
	call = call_new(url);
	call->request.timeout_us = 100 * PN_MILLISECOND_US;
	assert_int_equal(call_run(s->client, call), PN_CLIENT_TIMEOUT);
	assert_false(call->request.sent);
	assert_non_null(
	    strstr(call->request.error.text, "could not connect to"));
	call_free(call);
	(void)close(fd);
}

/* curl sends the request again on a new connection, and what it asks for is
 * done twice. */
static void
test_client__request_on_a_dying_connection_is_sent_once(void **state)
{
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	/* More often than the five times that curl counts for a handle. */
	for (int i = 1; i <= 8; i++) {
		expect_end(s->client,
		    peer_url(s->peer, "127.0.0.1", "/die-next", url),
		    PN_CLIENT_ANSWERED, true, NULL);
		expect_end(s->client,
		    peer_url(s->peer, "127.0.0.1", "/ok", url), PN_CLIENT_LOST,
		    true, "connection");
		assert_int_equal(peer_requests(s->peer), 2 * i);
	}
	expect_end(s->client, url, PN_CLIENT_ANSWERED, true, NULL);
}

/* A connection that the peer closed while it was idle costs a request. */
static void
test_client__connection_closed_while_idle_is_not_used(void **state)
{
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	(void)peer_url(s->peer, "127.0.0.1", "/ok-then-close", url);
	for (int i = 1; i <= 10; i++) {
		expect_end(s->client, url, PN_CLIENT_ANSWERED, true, NULL);
		peer_wait_closed(s->peer, i);
	}
	assert_int_equal(peer_connections(s->peer), 10);
}

/* A cut or broken answer leaves its rest to the next request. */
static void
test_client__bad_connections_are_not_kept(void **state)
{
	static const char *const paths[] = { "/half-then-wait", "/silent",
		"/endless-body" };
	struct state *s = *state;
	char url[PEER_URL_BYTES];

	for (size_t i = 0; i < PN_COUNT(paths); i++) {
		struct call *call =
		    call_new(peer_url(s->peer, "127.0.0.1", paths[i], url));

		call->request.timeout_us =
		    i < 2 ? 50 * PN_MILLISECOND_US : 30 * PN_SECOND_US;
		call->request.answer_bytes_max = 10;
		assert_int_equal(call_run(s->client, call),
		    i < 2 ? PN_CLIENT_TIMEOUT : PN_CLIENT_CUT);
		call_free(call);
		expect_end(s->client,
		    peer_url(s->peer, "127.0.0.1", "/ok-close", url),
		    PN_CLIENT_ANSWERED, true, NULL);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_client__refused_connection_is_not_sent),
		TEST(test_client__what_this_host_lacks_is_told_apart),
		TEST(test_client__bad_urls_are_not_sent),
		TEST(test_client__unknown_name_is_not_sent),
		TEST(test_client__hanging_lookup_holds_no_one_up),
		TEST(test_client__broken_answers_are_lost),
		TEST(test_client__silence_is_a_timeout_after_sending),
		TEST(
		    test_client__hanging_handshake_is_a_timeout_before_sending),
		TEST(test_client__request_on_a_dying_connection_is_sent_once),
		TEST(test_client__connection_closed_while_idle_is_not_used),
		TEST(test_client__bad_connections_are_not_kept),
	};

	client_tests_begin();
	if (sem_init(&lookup_begun, 0, 0) != 0 ||
	    sem_init(&lookup_may_end, 0, 0) != 0 ||
	    sem_init(&lookup_ended, 0, 0) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
