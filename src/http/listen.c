/*
 * Listening sockets: the three forms of an address, made by ourselves rather
 * than by libmicrohttpd, whose error is only "no daemon".
 *
 *   host:port      IPv4 or a name (its first address)
 *   [address]:port IPv6; [::] takes IPv4 clients too
 *   unix:/path     mode 0660: the proxy in front shares the group
 *
 * A unix socket outlives a process that was killed. One that nobody answers is
 * stale and replaced; one that answers belongs to a running daemon and is an
 * error; a file that is no socket is never removed.
 *
 * Sockets that systemd passes win over all that: they are used as they are, and
 * belong to systemd. When this process ends they go on listening, what connects
 * meanwhile waits in their backlog, and the next process accepts it.
 *
 * "local" addresses are those that no other host can reach: loopback and unix
 * sockets. The admin port takes no other.
 */
#include "paynotify/server.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "paynotify/parse.h"
#include "paynotify/service.h"

#include "http_internal.h"

enum { BACKLOG = 1024, HOST_BYTES_MAX = 256, PORT_BYTES = 8 };

static const char unix_prefix[] = "unix:";

struct place {
	bool is_unix;
	char host[HOST_BYTES_MAX]; /* or the path */
	char port[PORT_BYTES];
};

static int
fail(struct pn_error *ret_error, const char *address, int r)
{
	char reason[128];

	const char *text = strerrordesc_np(-r);

	(void)snprintf(reason, sizeof(reason), "%s",
	    text == NULL ? "unknown error" : text);
	reason[0] = (char)tolower((unsigned char)reason[0]);
	return pn_error_set(
	    ret_error, r, "could not listen on \"%s\": %s", address, reason);
}

static int
copy(struct pn_str s, char *ret_text, size_t size)
{
	if (s.len == 0 || s.len >= size || memchr(s.data, '\0', s.len) != NULL)
		return 1;
	memcpy(ret_text, s.data, s.len);
	ret_text[s.len] = '\0';
	return 0;
}

static int
parse_unix(struct pn_str path, struct place *ret_place)
{
	struct sockaddr_un un;

	ret_place->is_unix = true;
	if (path.len >= sizeof(un.sun_path))
		return 1;
	return copy(path, ret_place->host, sizeof(ret_place->host));
}

static int
parse_tcp(struct pn_str text, struct place *ret_place)
{
	const char *colon =
	    text.len == 0 ? NULL : memrchr(text.data, ':', text.len);
	struct pn_str host, port;
	uint64_t number;

	if (colon == NULL)
		return 1;
	host = (struct pn_str){ text.data, (size_t)(colon - text.data) };
	port = (struct pn_str){ colon + 1, text.len - host.len - 1 };
	if (pn_str_starts(host, "[")) {
		if (host.len < 3 || host.data[host.len - 1] != ']')
			return 1;
		host = (struct pn_str){ host.data + 1, host.len - 2 };
	} else if (pn_str_find(host, PN_STR(":")) >= 0) {
		return 1; /* an IPv6 address needs brackets */
	}
	if (pn_parse_uint(port, UINT16_MAX, &number) != 0 ||
	    copy(port, ret_place->port, sizeof(ret_place->port)) != 0)
		return 1;
	return copy(host, ret_place->host, sizeof(ret_place->host));
}

static bool
is_local(const struct place *place)
{
	struct pn_peer peer;

	return place->is_unix || strcmp(place->host, "localhost") == 0 ||
	       (pn_peer_parse(pn_str_from(place->host), &peer) == 0 &&
		   pn_peer_is_loopback(&peer));
}

static int
parse_place(const char *address, bool local, struct place *ret_place,
    struct pn_error *ret_error)
{
	struct place place = { .is_unix = false };
	struct pn_str text = pn_str_from(address);
	int r;

	if (pn_str_starts(text, unix_prefix)) {
		text.data += sizeof(unix_prefix) - 1;
		text.len -= sizeof(unix_prefix) - 1;
		r = parse_unix(text, &place);
	} else {
		r = parse_tcp(text, &place);
	}
	if (r != 0)
		return pn_error_set(ret_error, -EINVAL,
		    "could not listen on \"%s\": not host:port, [address]:port"
		    " or unix:/path (at most 107 bytes)",
		    address);
	if (local && !is_local(&place))
		return pn_error_set(ret_error, -EINVAL,
		    "could not listen on \"%s\": only loopback addresses and"
		    " unix sockets are allowed here",
		    address);
	*ret_place = place;
	return 0;
}

int
pn_listen_check(const char *address, bool local, struct pn_error *ret_error)
{
	struct place place = { .is_unix = false };

	return parse_place(address, local, &place, ret_error);
}

/* -- unix -------------------------------------------------------------------- */

/* Removes a socket that nobody listens on. 0, or -errno. */
static int
remove_stale(const struct sockaddr_un *un)
{
	struct stat status;
	int fd, r;

	if (lstat(un->sun_path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)un, sizeof(*un));
	r = r == 0 ? -EADDRINUSE : -errno;
	(void)close(fd);
	if (r != -ECONNREFUSED)
		return r == -EAGAIN ? -EADDRINUSE : r;
	return unlink(un->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int
open_unix(const struct place *place, struct pn_listen *ret_listen)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd, r;

	static_assert(sizeof(un.sun_path) <= PN_LISTEN_TEXT_BYTES,
	    "a path that fits a socket fits the struct");
	assert(strlen(place->host) < sizeof(un.sun_path));
	memcpy(un.sun_path, place->host, strlen(place->host) + 1);
	r = remove_stale(&un);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&un, sizeof(un)) < 0 ||
	    chmod(un.sun_path, 0660) < 0 || listen(fd, BACKLOG) < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	ret_listen->fd = fd;
	memcpy(ret_listen->unix_path, un.sun_path, strlen(un.sun_path) + 1);
	(void)snprintf(
	    ret_listen->text, sizeof(ret_listen->text), "unix:%s", un.sun_path);
	return 0;
}

/* -- TCP --------------------------------------------------------------------- */

static int
bind_tcp(int fd, const struct addrinfo *info)
{
	int on = 1, off = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	/* [::] takes IPv4 too, whatever the system's default is. */
	if (info->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static void
describe(struct pn_listen *listen, const struct place *place)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(address);
	char port[PORT_BYTES] = "";
	bool v6 = strchr(place->host, ':') != NULL;

	if (getsockname(listen->fd, (struct sockaddr *)&address, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&address, len, NULL, 0, port,
		sizeof(port), NI_NUMERICSERV) != 0)
		(void)snprintf(port, sizeof(port), "%s", place->port);
	(void)snprintf(listen->text, sizeof(listen->text),
	    v6 ? "[%.100s]:%s" : "%.100s:%s", place->host, port);
}

static int
open_tcp(const struct place *place, struct pn_listen *ret_listen)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *info = NULL;
	int fd, r;

	r = getaddrinfo(place->host, place->port, &hints, &info);
	if (r != 0)
		return r == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL;
	fd = socket(
	    info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : bind_tcp(fd, info);
	freeaddrinfo(info);
	if (r < 0) {
		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	ret_listen->fd = fd;
	describe(ret_listen, place);
	return 0;
}

int
pn_listen_open(const char *address, bool local, struct pn_listen *ret_listen,
    struct pn_error *ret_error)
{
	struct pn_listen opened = { .fd = -1 };
	struct place place = { .is_unix = false };
	int r = parse_place(address, local, &place, ret_error);

	if (r < 0)
		return r;
	r = place.is_unix ? open_unix(&place, &opened)
			  : open_tcp(&place, &opened);
	if (r < 0)
		return fail(ret_error, address, r);
	*ret_listen = opened;
	return 0;
}

/* -- systemd's --------------------------------------------------------------- */

static bool
is_listening(int fd)
{
	int type = 0, listening = 0;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) ==
		   0 &&
	       listening != 0;
}

/* Where it listens, as a place that could be written into the configuration. */
static int
find_place(int fd, struct place *ret_place)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	} address = { .storage = { .ss_family = AF_UNSPEC } };
	socklen_t len = sizeof(address);

	if (getsockname(fd, &address.any, &len) < 0)
		return -errno;
	if (address.any.sa_family == AF_UNIX) {
		ret_place->is_unix = true;
		(void)snprintf(ret_place->host, sizeof(ret_place->host), "%.*s",
		    (int)sizeof(address.un.sun_path), address.un.sun_path);
		return 0;
	}
	if (getnameinfo(&address.any, len, ret_place->host,
		sizeof(ret_place->host), ret_place->port,
		sizeof(ret_place->port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return -EINVAL;
	return 0;
}

/* Whether only those whom a mode lets in can connect. An abstract socket has none,
 * and systemd's SocketMode= is 0666 unless it is given. */
static bool
has_mode(const struct place *place)
{
	struct stat status;

	return place->host[0] != '\0' && stat(place->host, &status) == 0 &&
	       (status.st_mode & S_IWOTH) == 0;
}

int
pn_listen_adopt(int fd, bool local, struct pn_listen *ret_listen,
    struct pn_error *ret_error)
{
	struct pn_listen adopted = { .fd = fd, .inherited = true };
	struct place place = { .is_unix = false };
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !is_listening(fd) || find_place(fd, &place) < 0)
		return pn_error_set(ret_error, -EINVAL,
		    "descriptor %d, passed by systemd, is no listening stream "
		    "socket (ListenStream=, Accept=no)",
		    fd);
	if (place.is_unix)
		(void)snprintf(adopted.text, sizeof(adopted.text),
		    "unix:%.100s", place.host);
	else
		describe(&adopted, &place);
	if (local && !is_local(&place))
		return pn_error_set(ret_error, -EINVAL,
		    "could not listen on \"%s\", passed by systemd: only "
		    "loopback addresses and unix sockets are allowed here",
		    adopted.text);
	if (local && place.is_unix && !has_mode(&place))
		return pn_error_set(ret_error, -EINVAL,
		    "could not listen on \"%s\", passed by systemd: every user "
		    "of this host may connect to it; give its unit a path and "
		    "SocketMode=0660",
		    adopted.text);
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return fail(ret_error, adopted.text, -errno);
	*ret_listen = adopted;
	return 0;
}

int
pn_listen_open_all(const struct pn_conf_strings *addresses,
    const char *socket_name, bool local, struct pn_listen *ret_listens,
    size_t *ret_count, struct pn_error *ret_error)
{
	int fds[PN_LISTEN_MAX];
	size_t inherited = socket_name == NULL ? 0
					       : pn_service_sockets(socket_name,
						     fds, PN_LISTEN_MAX);
	size_t count = inherited > 0 ? inherited : addresses->count;
	int r = 0;

	if (count > PN_LISTEN_MAX)
		return pn_error_set(ret_error, -EINVAL,
		    "systemd passed %zu sockets named \"%s\": at most %d are "
		    "used",
		    count, socket_name, (int)PN_LISTEN_MAX);
	for (size_t i = 0; i < count; i++) {
		r = inherited > 0 ? pn_listen_adopt(fds[i], local,
					&ret_listens[i], ret_error)
				  : pn_listen_open(addresses->values[i], local,
					&ret_listens[i], ret_error);
		if (r == 0)
			continue;
		while (i > 0)
			pn_listen_close(&ret_listens[--i]);
		return r;
	}
	*ret_count = count;
	return 0;
}

void
pn_listen_close(struct pn_listen *listen)
{
	if (listen->fd < 0)
		return;
	(void)close(listen->fd);
	listen->fd = -1;
	/* That of a socket of systemd's stays. */
	if (listen->unix_path[0] != '\0')
		(void)unlink(listen->unix_path);
}
