/*
 * See wire.h. Replies are read byte by byte, so that the next one stays in the
 * socket.
 */
#include "wire.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "paynotify/parse.h"

static void
must(bool condition)
{
	if (!condition)
		abort();
}

void
wire_open(struct wire *wire, const struct pn_handler *handler, void *service)
{
	struct pn_conf_server *conf = &wire->conf;
	uint64_t port;

	wire->address = strdup("127.0.0.1:0");
	must(wire->address != NULL);
	conf->listen.values = &wire->address;
	conf->listen.count = 1;
	conf->threads = 2;
	conf->max_connections = conf->max_connections_per_peer = 64;
	conf->idle_timeout_us = conf->request_timeout_us = 60 * PN_SECOND_US;
	wire->options.conf = conf;
	wire->options.listen = &conf->listen;
	wire->options.body_bytes_max = 2000;
	wire->options.handler = handler;
	wire->options.service = service;
	must(pn_server_open(&wire->options, &wire->server, NULL) == 0);
	must(
	    pn_parse_uint(
		pn_str_from(strchr(pn_server_listening(wire->server), ':') + 1),
		65535, &port) == 0);
	wire->port = (int)port;
}

void
wire_close(struct wire *wire)
{
	pn_server_close(wire->server, 100 * PN_MILLISECOND_US);
	wire->server = NULL;
	free(wire->address);
	wire->address = NULL;
}

int
wire_connect(const struct wire *wire)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)wire->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0);
	must(connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0);
	return fd;
}

void
wire_send(int fd, const char *text)
{
	must(send(fd, text, strlen(text), MSG_NOSIGNAL) ==
	     (ssize_t)strlen(text));
}

void
wire_post(int fd, const char *path, const char *body)
{
	char text[4096];

	(void)snprintf(text, sizeof(text),
	    "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
	    path, strlen(body), body);
	wire_send(fd, text);
}

static int
read_reply(int fd, bool has_body, char reply[REPLY_BYTES_MAX])
{
	size_t len = 0, head = 0;
	uint64_t body = 0, status = 0;
	char *end;

	memset(reply, 0, REPLY_BYTES_MAX);
	while (head == 0 || len < head + body) {
		if (len + 1 >= REPLY_BYTES_MAX ||
		    recv(fd, reply + len, 1, 0) != 1)
			return 0;
		len++;
		end = len < 4 ? NULL : strstr(reply + len - 4, "\r\n\r\n");
		if (head == 0 && end != NULL) {
			char *length = strstr(reply, "Content-Length: ");

			head = len;
			if (has_body && length != NULL &&
			    pn_parse_uint((struct pn_str){ length + 16,
					      strcspn(length + 16, "\r") },
				REPLY_BYTES_MAX, &body) != 0)
				return 0;
		}
	}
	if (pn_parse_uint((struct pn_str){ reply + 9, 3 }, 999, &status) != 0)
		return 0;
	return (int)status;
}

int
wire_read(int fd, char reply[REPLY_BYTES_MAX])
{
	return read_reply(fd, true, reply);
}

int
wire_read_head(int fd, char reply[REPLY_BYTES_MAX])
{
	return read_reply(fd, false, reply);
}
