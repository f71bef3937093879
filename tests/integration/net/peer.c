/*
 * The server's sockets and threads. Nothing waits for a time: everything ends
 * when the client closes or peer_close() shuts the sockets.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "paynotify/parse.h"

#define CHECK(condition) ((condition) ? (void)0 : abort())

static ssize_t
receive(struct peer_connection *c, void *data, size_t size)
{
	int n;

	if (c->ssl == NULL)
		return recv(c->fd, data, size, 0);
	n = SSL_read(c->ssl, data, (int)size);
	return n > 0 ? n : 0;
}

bool
peer_send(struct peer_connection *c, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	for (; len > 0; at += n, len -= (size_t)n) {
		n = c->ssl == NULL ? send(c->fd, at, len, MSG_NOSIGNAL)
				   : SSL_write(c->ssl, at, (int)len);
		if (n <= 0)
			return false;
	}
	return true;
}

void
peer_drain(struct peer_connection *c)
{
	char waste[4096];

	while (receive(c, waste, sizeof(waste)) > 0)
		continue;
}

static size_t
length_of(const char *head)
{
	const char *at = strcasestr(head, "\r\nContent-Length: ");
	uint64_t value = 0;

	if (at == NULL)
		return 0;
	at += strlen("\r\nContent-Length: ");
	CHECK(pn_parse_uint((struct pn_str){ at, strspn(at, "0123456789") },
		  PEER_INPUT_BYTES / 2, &value) == 0);
	return (size_t)value;
}

/* One request; false at the end. What is behind it stays. */
static bool
read_request(struct peer_connection *c)
{
	const char *end;
	ssize_t n;

	memmove(c->input, c->input + c->whole, c->len - c->whole);
	c->len -= c->whole;
	c->whole = 0;
	for (;;) {
		c->input[c->len] = '\0';
		end = strstr(c->input, "\r\n\r\n");
		if (end != NULL)
			c->whole =
			    (size_t)(end + 4 - c->input) + length_of(c->input);
		if (end != NULL && c->len >= c->whole)
			return true;
		c->whole = 0;
		n = receive(
		    c, c->input + c->len, PEER_INPUT_BYTES - 1 - c->len);
		if (n <= 0)
			return false;
		c->len += (size_t)n;
	}
}

static void
note_request(struct peer_connection *c)
{
	struct peer *peer = c->peer;
	size_t len =
	    c->whole < sizeof(peer->last) ? c->whole : sizeof(peer->last) - 1;

	pthread_mutex_lock(&peer->lock);
	memcpy(peer->last, c->input, len);
	peer->last[len] = '\0';
	peer->requests++;
	pthread_cond_broadcast(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
}

static bool
handshake(struct peer_connection *c)
{
	if (c->peer->tls == NULL)
		return true;
	c->ssl = SSL_new(c->peer->tls);
	CHECK(c->ssl != NULL && SSL_set_fd(c->ssl, c->fd) == 1);
	return SSL_accept(c->ssl) == 1;
}

static void
answer_requests(struct peer_connection *c)
{
	char path[256];
	const char *at;
	size_t len;

	while (read_request(c)) {
		note_request(c);
		if (c->dies)
			return;
		at = strchr(c->input, ' ') + 1;
		len = strcspn(at, " ?");
		CHECK(len < sizeof(path));
		memcpy(path, at, len);
		path[len] = '\0';
		if (!peer_act(c, path))
			return;
	}
}

static void *
serve_connection(void *payload)
{
	struct peer_connection *c = payload;
	struct peer *peer = c->peer;
	sigset_t pipes;

	/* OpenSSL writes without MSG_NOSIGNAL. Not ignored in the whole
	 * process: the client must do without. */
	(void)sigemptyset(&pipes);
	(void)sigaddset(&pipes, SIGPIPE);
	CHECK(pthread_sigmask(SIG_BLOCK, &pipes, NULL) == 0);
	if (handshake(c))
		answer_requests(c);
	SSL_free(c->ssl);
	pthread_mutex_lock(&peer->lock);
	(void)close(c->fd);
	peer->fds[c->slot] = -1;
	peer->closed++;
	pthread_cond_broadcast(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
	free(c->input);
	free(c);
	return NULL;
}

static void *
accept_all(void *payload)
{
	struct peer *peer = payload;
	struct peer_connection *c;
	int fd, slot, one = 1;

	while ((fd = accept(peer->listener, NULL, NULL)) >= 0) {
		CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
			  sizeof(one)) == 0);
		pthread_mutex_lock(&peer->lock);
		slot = peer->connections++;
		CHECK(slot < PEER_CONNECTIONS_MAX);
		c = calloc(1, sizeof(*c));
		CHECK(c != NULL);
		*c = (struct peer_connection){
			.peer = peer, .slot = slot, .fd = fd
		};
		c->input = malloc(PEER_INPUT_BYTES);
		CHECK(c->input != NULL);
		peer->fds[slot] = fd;
		CHECK(pthread_create(&peer->threads[slot], NULL,
			  serve_connection, c) == 0);
		pthread_mutex_unlock(&peer->lock);
	}
	return NULL;
}

struct peer *
peer_open(const char *cert, const char *key)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	CHECK(peer != NULL);
	CHECK(pthread_mutex_init(&peer->lock, NULL) == 0);
	CHECK(pthread_cond_init(&peer->changed, NULL) == 0);
	if (cert != NULL) {
		peer->tls = SSL_CTX_new(TLS_server_method());
		CHECK(peer->tls != NULL);
		CHECK(SSL_CTX_use_certificate_chain_file(peer->tls, cert) == 1);
		CHECK(SSL_CTX_use_PrivateKey_file(
			  peer->tls, key, SSL_FILETYPE_PEM) == 1);
	}
	peer->listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(peer->listener >= 0);
	CHECK(bind(peer->listener, (struct sockaddr *)&address, len) == 0);
	CHECK(listen(peer->listener, 256) == 0);
	CHECK(getsockname(peer->listener, (struct sockaddr *)&address, &len) ==
	      0);
	peer->port = ntohs(address.sin_port);
	CHECK(pthread_create(&peer->thread, NULL, accept_all, peer) == 0);
	return peer;
}

void
peer_close(struct peer *peer)
{
	peer_release(peer);
	(void)shutdown(peer->listener, SHUT_RDWR);
	CHECK(pthread_join(peer->thread, NULL) == 0);
	(void)close(peer->listener);
	pthread_mutex_lock(&peer->lock);
	for (int i = 0; i < peer->connections; i++)
		if (peer->fds[i] >= 0)
			(void)shutdown(peer->fds[i], SHUT_RDWR);
	pthread_mutex_unlock(&peer->lock);
	for (int i = 0; i < peer->connections; i++)
		CHECK(pthread_join(peer->threads[i], NULL) == 0);
	SSL_CTX_free(peer->tls);
	(void)pthread_cond_destroy(&peer->changed);
	(void)pthread_mutex_destroy(&peer->lock);
	free(peer);
}

const char *
peer_url(const struct peer *peer, const char *host, const char *path,
    char ret_url[PEER_URL_BYTES])
{
	(void)snprintf(ret_url, PEER_URL_BYTES, "%s://%s:%d%s",
	    peer->tls == NULL ? "http" : "https", host, peer->port, path);
	return ret_url;
}

static int
read_count(struct peer *peer, const int *count)
{
	int value;

	pthread_mutex_lock(&peer->lock);
	value = *count;
	pthread_mutex_unlock(&peer->lock);
	return value;
}

static void
wait_for(struct peer *peer, const int *what, int count)
{
	pthread_mutex_lock(&peer->lock);
	while (*what < count)
		pthread_cond_wait(&peer->changed, &peer->lock);
	pthread_mutex_unlock(&peer->lock);
}

int
peer_requests(struct peer *peer)
{
	return read_count(peer, &peer->requests);
}

int
peer_connections(struct peer *peer)
{
	return read_count(peer, &peer->connections);
}

void
peer_wait_closed(struct peer *peer, int count)
{
	wait_for(peer, &peer->closed, count);
}

void
peer_wait_holding(struct peer *peer, int count)
{
	wait_for(peer, &peer->holding, count);
}

void
peer_wait_requests(struct peer *peer, int count)
{
	wait_for(peer, &peer->requests, count);
}

void
peer_release(struct peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	peer->released = true;
	pthread_cond_broadcast(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
}
