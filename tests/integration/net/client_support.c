/*
 * Calls and clients of the tests.
 */
#include "client_support.h"

#include <stdio.h>

static void
copy(struct pn_client_request *request)
{
	struct call *call = request->payload;

	call->dones++;
	assert_true(request->answer.len < sizeof(call->body));
	assert_true(request->answer_headers.len < sizeof(call->head));
	if (request->answer_headers.len > 0)
		memcpy(call->head, request->answer_headers.data,
		    request->answer_headers.len);
	call->head[request->answer_headers.len] = '\0';
	if (request->answer.len > 0)
		memcpy(call->body, request->answer.data, request->answer.len);
	call->body[request->answer.len] = '\0';
	call->body_len = request->answer.len;
	request->answer = (struct pn_str){ call->body, call->body_len };
	request->answer_headers =
	    (struct pn_str){ call->head, request->answer_headers.len };
	assert_int_equal(sem_post(&call->done), 0);
}

struct call *
call_new(const char *url)
{
	struct call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	assert_true(strlen(url) < sizeof(call->url));
	memcpy(call->url, url, strlen(url) + 1);
	assert_int_equal(sem_init(&call->done, 0, 0), 0);
	call->request = (struct pn_client_request){
		.method = "POST",
		.url = call->url,
		.body = PN_STR("{}"),
		.timeout_us = 30 * PN_SECOND_US,
		.answer_bytes_max = ANSWER_BYTES,
		.done = copy,
		.payload = call,
	};
	return call;
}

void
call_free(struct call *call)
{
	assert_int_equal(call->dones, 1);
	(void)sem_destroy(&call->done);
	free(call);
}

void
call_send(struct pn_client *client, struct call *call)
{
	pn_client_send(client, &call->request);
}

void
call_wait(struct call *call)
{
	while (sem_wait(&call->done) != 0)
		continue;
}

enum pn_client_end
call_run(struct pn_client *client, struct call *call)
{
	call_send(client, call);
	call_wait(call);
	assert_int_equal(call->dones, 1);
	assert_true(call->request.elapsed_us >= 0);
	return call->request.end;
}

void
expect_end(struct pn_client *client, const char *url, enum pn_client_end end,
    bool sent, const char *error)
{
	struct call *call = call_new(url);
	enum pn_client_end got = call_run(client, call);

	if (got != end || call->request.sent != sent ||
	    (error != NULL && strstr(call->request.error.text, error) == NULL))
		fail_msg("%s: end %d, sent %d, \"%s\"", url, got,
		    call->request.sent, call->request.error.text);
	if (error == NULL)
		assert_string_equal(call->request.error.text, "");
	if (end != PN_CLIENT_ANSWERED && end != PN_CLIENT_CUT) {
		assert_int_equal(call->request.status, 0);
		assert_int_equal(call->body_len, 0);
		assert_string_equal(call->head, "");
	}
	call_free(call);
}

struct pn_client *
client_new(unsigned connections, unsigned per_host)
{
	struct pn_client_options options = { connections, per_host, 0 };
	struct pn_client *client = NULL;
	struct pn_error error;

	assert_int_equal(pn_client_open(&options, &client, &error), 0);
	return client;
}

void
client_tests_begin(void)
{
	if (setenv("http_proxy", "http://127.0.0.1:1", 1) != 0 ||
	    setenv("https_proxy", "http://127.0.0.1:1", 1) != 0 ||
	    setenv("ALL_PROXY", "http://127.0.0.1:1", 1) != 0 ||
	    pn_net_init() != 0)
		abort();
}
