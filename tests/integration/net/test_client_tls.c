/*
 * https with certificates of a CA of the test's own (tls.sh makes them). If
 * these fail, a request with its secrets goes to whoever answers, or it is
 * said that it may have been sent when the certificate was refused.
 */
#include "client_support.h"

#include <stdio.h>

struct state {
	struct peer *peer; /* its certificate is for "localhost" */
	struct pn_client *client;
	char ca[256], other_ca[256];
};

static void
path_of(const char *name, char ret_path[256])
{
	const char *folder = getenv("PN_TLS_DIR");

	assert_non_null(folder);
	assert_true(snprintf(ret_path, 256, "%s/%s", folder, name) < 256);
}

static int
open_both(void **state)
{
	struct state *s = calloc(1, sizeof(*s));
	char cert[256], key[256];

	assert_non_null(s);
	path_of("server.pem", cert);
	path_of("server.key", key);
	path_of("ca.pem", s->ca);
	path_of("other.pem", s->other_ca);
	s->peer = peer_open(cert, key);
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

static void
expect_tls(struct state *s, const char *host, const char *ca,
    enum pn_client_end end, const char *error)
{
	char url[PEER_URL_BYTES];
	struct call *call = call_new(peer_url(s->peer, host, "/echo", url));
	const char *text = call->request.error.text;

	call->request.ca_file = ca;
	if (call_run(s->client, call) != end ||
	    call->request.sent != (end == PN_CLIENT_ANSWERED) ||
	    strstr(text, error) == NULL)
		fail_msg("end %d, sent %d, \"%s\"", call->request.end,
		    call->request.sent, text);
	assert_string_equal(call->body, end == PN_CLIENT_ANSWERED ? "{}" : "");
	for (const char *at = text; *at != '\0'; at++)
		assert_true(*at >= ' ' && *at <= '~');
	call_free(call);
}

/* https does not work, or each request costs a handshake. */
static void
test_client__tls_with_its_ca_is_answered_and_kept(void **state)
{
	struct state *s = *state;

	for (int i = 0; i < 10; i++)
		expect_tls(s, "localhost", s->ca, PN_CLIENT_ANSWERED, "");
	assert_int_equal(peer_connections(s->peer), 1);
}

/* Anyone with a certificate for another name gets the request. */
static void
test_client__tls_for_another_name_is_not_sent(void **state)
{
	struct state *s = *state;

	expect_tls(s, "127.0.0.1", s->ca, PN_CLIENT_NOT_SENT,
	    "could not reach \"https://127.0.0.1:");
	assert_int_equal(peer_requests(s->peer), 0);
}

/* Anyone with a CA of his own gets the request. */
static void
test_client__tls_of_an_unknown_ca_is_not_sent(void **state)
{
	struct state *s = *state;

	expect_tls(s, "localhost", NULL, PN_CLIENT_NOT_SENT, "certificate");
	expect_tls(
	    s, "localhost", s->other_ca, PN_CLIENT_NOT_SENT, "certificate");
	expect_tls(s, "localhost", "/nonexistent/ca.pem", PN_CLIENT_NOT_SENT,
	    "/nonexistent/ca.pem");
	assert_int_equal(peer_requests(s->peer), 0);
}

/* A connection that one request's CA vouched for is used by another request
 * that does not trust that CA; or a handle keeps the CA of its last request. */
static void
test_client__tls_trust_is_each_requests_own(void **state)
{
	struct state *s = *state;

	for (int i = 0; i < 3; i++) {
		expect_tls(s, "localhost", s->ca, PN_CLIENT_ANSWERED, "");
		expect_tls(s, "localhost", s->other_ca, PN_CLIENT_NOT_SENT,
		    "certificate");
		expect_tls(
		    s, "localhost", NULL, PN_CLIENT_NOT_SENT, "certificate");
	}
	assert_int_equal(peer_requests(s->peer), 3);
}

/* A port that speaks no TLS counts as one that may have read the request. */
static void
test_client__tls_to_a_plain_port_is_not_sent(void **state)
{
	struct state *s = *state;
	struct peer *plain = peer_open(NULL, NULL);
	char url[PEER_URL_BYTES];
	struct call *call;

	/* The other way round the peer gets bytes it cannot read. */
	(void)snprintf(
	    url, sizeof(url), "http://localhost:%d/echo", s->peer->port);
	expect_end(s->client, url, PN_CLIENT_LOST, true, "");
	(void)snprintf(
	    url, sizeof(url), "https://localhost:%d/garbage", plain->port);
	call = call_new(url);
	call->request.timeout_us = 200 * PN_MILLISECOND_US;
	/* It waits for the end of a request's head. */
	assert_int_equal(call_run(s->client, call), PN_CLIENT_TIMEOUT);
	assert_false(call->request.sent);
	call_free(call);
	peer_close(plain);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_client__tls_with_its_ca_is_answered_and_kept),
		TEST(test_client__tls_for_another_name_is_not_sent),
		TEST(test_client__tls_of_an_unknown_ca_is_not_sent),
		TEST(test_client__tls_trust_is_each_requests_own),
		TEST(test_client__tls_to_a_plain_port_is_not_sent),
	};

	client_tests_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
