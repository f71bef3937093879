/*
 * What the client's tests share: a request, its copies of the answer, and a
 * way to wait for it.
 */
#ifndef PN_TEST_CLIENT_SUPPORT_H
#define PN_TEST_CLIENT_SUPPORT_H

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/client.h"
#include "paynotify/moment.h"
#include "paynotify/net.h"
#include "peer.h"

enum { ANSWER_BYTES = 64 << 10 };

struct call {
	struct pn_client_request request;
	char url[PEER_URL_BYTES];
	sem_t done;
	int dones;
	/* Copies, made in done(). */
	char head[32 << 10];
	char body[ANSWER_BYTES + 1];
	size_t body_len;
};

/* A POST of "{}" with half a minute of time, not sent yet. */
struct call *call_new(const char *url);
void call_free(struct call *call);
void call_send(struct pn_client *client, struct call *call);
void call_wait(struct call *call);
/* Both; returns how it ended. */
enum pn_client_end call_run(struct pn_client *client, struct call *call);
/* Sends a POST there and checks how it ends, and what the error says (a part
 * of it; NULL: nothing at all). */
void expect_end(struct pn_client *client, const char *url,
    enum pn_client_end end, bool sent, const char *error);
struct pn_client *client_new(unsigned connections, unsigned per_host);
/* For main(): runs the tests with a proxy in the environment that must not be
 * used. */
void client_tests_begin(void);

#endif
