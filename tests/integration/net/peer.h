/*
 * A server for the client's tests: raw sockets, a thread a connection, and a
 * behaviour a path, most of them bad. Paths and what they do: peer_acts.c.
 */
#ifndef PN_TEST_PEER_H
#define PN_TEST_PEER_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	PEER_CONNECTIONS_MAX = 256,
	PEER_INPUT_BYTES = 4 << 20,
	PEER_URL_BYTES = 256,
};

struct peer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread, threads[PEER_CONNECTIONS_MAX];
	int fds[PEER_CONNECTIONS_MAX]; /* -1: closed */
	int listener, port;
	SSL_CTX *tls; /* NULL: plain */
	/* Under the lock. */
	int connections, closed, requests;
	int holding, holding_most;
	bool released;   /* those that hold go on */
	char last[8192]; /* the last request as it came, cut */
};

struct peer_connection {
	struct peer *peer;
	int slot, fd;
	SSL *ssl;
	char *input; /* the request, with a NUL behind it */
	size_t len;  /* of the input; whole is what belongs to the request */
	size_t whole;
	bool dies; /* at the next request, instead of answering */
};

/* cert and key: PEM files; NULL: plain HTTP. */
struct peer *peer_open(const char *cert, const char *key);
void peer_close(struct peer *peer);
const char *peer_url(const struct peer *peer, const char *host,
    const char *path, char ret_url[PEER_URL_BYTES]);
int peer_requests(struct peer *peer);
int peer_connections(struct peer *peer);
/* Waits until so many connections were closed by the server, or hold. */
void peer_wait_closed(struct peer *peer, int count);
void peer_wait_holding(struct peer *peer, int count);
void peer_wait_requests(struct peer *peer, int count);
/* What holds is answered, and nothing holds any more. */
void peer_release(struct peer *peer);

/* peer_acts.c: answers the request; false: the connection is closed. */
bool peer_act(struct peer_connection *c, const char *path);
/* False when the other side is gone. */
bool peer_send(struct peer_connection *c, const void *data, size_t len);
/* Until the other side has closed. */
void peer_drain(struct peer_connection *c);

#endif
