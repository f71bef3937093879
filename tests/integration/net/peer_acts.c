/*
 * What the server does, by path. A text that is an answer is sent as it
 * stands; a function may do worse.
 */
#include "peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct act {
	const char *path;
	const char *answer;
	bool close; /* after the answer */
	bool (*call)(struct peer_connection *c);
};

static bool
send_text(struct peer_connection *c, const char *text)
{
	return peer_send(c, text, strlen(text));
}

/* Answers, and closes when the next request was read. */
static bool
act_die_next(struct peer_connection *c)
{
	c->dies = true;
	return send_text(c, OK);
}

static bool
act_silent(struct peer_connection *c)
{
	peer_drain(c);
	return false;
}

static bool
act_hold(struct peer_connection *c)
{
	struct peer *peer = c->peer;

	pthread_mutex_lock(&peer->lock);
	peer->holding++;
	if (peer->holding > peer->holding_most)
		peer->holding_most = peer->holding;
	pthread_cond_broadcast(&peer->changed);
	while (!peer->released)
		pthread_cond_wait(&peer->changed, &peer->lock);
	peer->holding--;
	pthread_mutex_unlock(&peer->lock);
	return send_text(c, OK);
}

static bool
act_endless_body(struct peer_connection *c)
{
	static const char piece[4096] = "an endless body";

	if (!send_text(c, "HTTP/1.1 200 OK\r\nX-Kept: yes\r\n\r\n"))
		return false;
	while (peer_send(c, piece, sizeof(piece)))
		continue;
	return false;
}

static bool
act_endless_chunks(struct peer_connection *c)
{
	if (!send_text(
		c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return false;
	while (send_text(c, "4\r\nmore\r\n"))
		continue;
	return false;
}

static bool
act_endless_headers(struct peer_connection *c)
{
	if (!send_text(c, "HTTP/1.1 200 OK\r\n"))
		return false;
	while (send_text(c, "X-More: and more\r\n"))
		continue;
	return false;
}

static bool
act_many_headers(struct peer_connection *c)
{
	if (!send_text(c, "HTTP/1.1 200 OK\r\nX-First: 1\r\n"))
		return false;
	for (int i = 0; i < 2000; i++)
		if (!send_text(c, "X-More: and more\r\n"))
			return false;
	return send_text(c, "X-Last: 1\r\nContent-Length: 2\r\n\r\nok");
}

/* Part of the answer, then nothing until the client gives up. */
static bool
act_half_then_wait(struct peer_connection *c)
{
	if (send_text(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))
		peer_drain(c);
	return false;
}

static bool
act_reset(struct peer_connection *c)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	return false;
}

/* The body comes back. */
static bool
act_echo(struct peer_connection *c)
{
	const char *body = strstr(c->input, "\r\n\r\n") + 4;
	size_t len = c->whole - (size_t)(body - c->input);
	char head[128];

	(void)snprintf(head, sizeof(head),
	    "HTTP/1.1 201 Created\r\nContent-Length: %zu\r\n\r\n", len);
	return send_text(c, head) && peer_send(c, body, len);
}

static const struct act acts[] = {
	{ "/ok", OK, false, NULL },
	{ "/ok-then-close", OK, true, NULL },
	{ "/ok-close",
	    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
	    "ok",
	    true, NULL },
	{ "/204", "HTTP/1.1 204 No Content\r\n\r\n", false, NULL },
	{ "/302",
	    "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n",
	    false, NULL },
	{ "/417",
	    "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
	    false, NULL },
	{ "/503",
	    "HTTP/1.1 503 Busy\r\nretry-after:  120 \r\nX-Folded: a\r\n\t b\r\n"
	    "Content-Length: 4\r\n\r\nbusy",
	    false, NULL },
	{ "/interim", "HTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\n\r\n" OK, false,
	    NULL },
	{ "/chunked",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "3;x=y\r\nchu\r\n4\r\nnked\r\n0\r\nX-Trailer: 1\r\n\r\n",
	    false, NULL },
	{ "/until-close", "HTTP/1.0 200 OK\r\n\r\nuntil the end", true, NULL },
	{ "/head", "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n", false,
	    NULL },
	{ "/close", "", true, NULL },
	{ "/garbage", "220 mail.example ESMTP ready\r\n", true, NULL },
	{ "/half-head", "HTTP/1.1 200 OK\r\nContent-Le", true, NULL },
	{ "/half-body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
	    true, NULL },
	{ "/bad-length", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhalf",
	    true, NULL },
	{ "/two-lengths",
	    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n"
	    "\r\nwhole",
	    true, NULL },
	{ "/huge-length",
	    "HTTP/1.1 200 OK\r\nContent-Length: "
	    "9223372036854775808\r\n\r\nhalf",
	    true, NULL },
	{ "/length-twice",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: "
	    "2\r\n\r\nok",
	    false, NULL },
	{ "/bad-chunk",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "zz\r\nno chunk\r\n",
	    true, NULL },
	{ "/die-next", NULL, false, act_die_next },
	{ "/silent", NULL, false, act_silent },
	{ "/hold", NULL, false, act_hold },
	{ "/endless-body", NULL, false, act_endless_body },
	{ "/endless-chunks", NULL, false, act_endless_chunks },
	{ "/endless-headers", NULL, false, act_endless_headers },
	{ "/many-headers", NULL, false, act_many_headers },
	{ "/half-then-wait", NULL, false, act_half_then_wait },
	{ "/reset", NULL, false, act_reset },
	{ "/echo", NULL, false, act_echo },
};

bool
peer_act(struct peer_connection *c, const char *path)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(acts[i].path, path) != 0)
			continue;
		if (acts[i].call != NULL)
			return acts[i].call(c);
		return send_text(c, acts[i].answer) && !acts[i].close;
	}
	return send_text(
	    c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}
