/*
 * The admin port: is it alive, can it record, how much has it done.
 *
 *   /healthz  200 as long as the process answers
 *   /readyz   200 when the database takes events, else 503 and what to do
 *   /metrics  every counter, for Prometheus
 *
 * A server of its own, with a thread of its own, so that a flood on the public
 * port cannot hide what is going on; and only where no other host can reach it,
 * because nothing here asks who is there.
 *
 * Privilege, method and content are columns of the route table; whatever is not
 * in it is 404, whatever is no GET or HEAD is 405.
 */
#include "paynotify/admin.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <microhttpd.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"
#include "paynotify/metrics.h"
#include "paynotify/server.h"
#include "paynotify/service.h"

enum {
	CONNECTIONS_MAX = 64,
	CONNECTION_BYTES = 8 << 10,
	TIMEOUT_S = 10,
	PAGE_BYTES_MAX = 64 << 10,
};

struct admin_listener {
	struct pn_listen listen;
	struct MHD_Daemon *daemon;
};

struct pn_admin {
	struct pn_store *store; /* borrowed */
	struct admin_listener listeners[PN_LISTEN_MAX];
	size_t listener_count;
};

/* -- pages ------------------------------------------------------------------- */

static unsigned
page_health(struct pn_admin *admin, struct pn_buf *out)
{
	(void)admin;
	pn_buf_add_text(out, "ok");
	return MHD_HTTP_OK;
}

static unsigned
page_ready(struct pn_admin *admin, struct pn_buf *out)
{
	char text[256] = "";
	enum pn_store_health health =
	    pn_store_health(admin->store, text, sizeof(text));

	pn_buf_add_text(out, text);
	return health == PN_STORE_READY ? MHD_HTTP_OK
					: MHD_HTTP_SERVICE_UNAVAILABLE;
}

static unsigned
page_metrics(struct pn_admin *admin, struct pn_buf *out)
{
	(void)admin;
	pn_metrics_print(out);
	return MHD_HTTP_OK;
}

static const struct route {
	const char *path;
	unsigned (*page)(struct pn_admin *admin, struct pn_buf *out);
	const char *content_type;
} routes[] = {
	{ "/healthz", page_health, "text/plain" },
	{ "/readyz", page_ready, "text/plain; charset=utf-8" },
	{ "/metrics", page_metrics, "text/plain; version=0.0.4" },
};

/* -- answering ----------------------------------------------------------------- */

static enum MHD_Result
answer(struct MHD_Connection *connection, unsigned status,
    const char *content_type, struct pn_str body)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
	    body.len, (void *)(uintptr_t)body.data, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r = MHD_NO;

	if (response == NULL)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
		content_type) == MHD_YES &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
		"no-store") == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
		MHD_add_response_header(
		    response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
		r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result
answer_route(struct pn_admin *admin, struct MHD_Connection *connection,
    const struct route *route)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(PAGE_BYTES_MAX);
	unsigned status = route->page(admin, &out);

	if (pn_buf_failed(&out))
		return MHD_NO;
	return answer(connection, status, route->content_type,
	    out.data == NULL ? PN_STR("") : pn_buf_str(&out));
}

static enum MHD_Result
handle(void *cls, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload,
    size_t *upload_len, void **context)
{
	(void)version;
	(void)upload;
	(void)upload_len;
	(void)context;
	for (size_t i = 0; i < PN_COUNT(routes); i++) {
		if (strcmp(url, routes[i].path) != 0)
			continue;
		if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
			return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			    "text/plain", PN_STR("method not allowed"));
		return answer_route(cls, connection, &routes[i]);
	}
	return answer(
	    connection, MHD_HTTP_NOT_FOUND, "text/plain", PN_STR("not found"));
}

/* -- life ------------------------------------------------------------------------ */

static int
start_listener(struct pn_admin *admin, const struct pn_listen *listen,
    struct pn_error *ret_error)
{
	struct admin_listener *l = &admin->listeners[admin->listener_count];
	int r;

	l->listen = *listen;
	l->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle,
	    admin, MHD_OPTION_LISTEN_SOCKET, listen->fd,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_END);
	if (l->daemon == NULL) {
		r = errno == 0 ? -EAGAIN : -errno;
		return pn_error_set(ret_error, r,
		    "could not start the admin server on \"%s\": %s",
		    listen->text, strerrordesc_np(-r));
	}
	admin->listener_count++;
	return 0;
}

int
pn_admin_open(const struct pn_conf *conf, struct pn_store *store,
    struct pn_admin **ret_admin, struct pn_error *ret_error)
{
	const struct pn_conf_strings *listen = &conf->admin.listen;
	struct pn_admin *admin = calloc(1, sizeof(*admin));
	struct pn_listen listens[PN_LISTEN_MAX];
	size_t count = 0;
	int r;

	assert(store != NULL && listen->count <= PN_LISTEN_MAX);
	if (admin == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	admin->store = store;
	r = pn_listen_open_all(
	    listen, PN_SOCKET_ADMIN, true, listens, &count, ret_error);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = start_listener(admin, &listens[i], ret_error);
	if (r < 0) { /* those before are the admin's */
		for (size_t i = admin->listener_count; i < count; i++)
			pn_listen_close(&listens[i]);
		pn_admin_close(admin);
		return r;
	}
	*ret_admin = admin;
	return 0;
}

void
pn_admin_close(struct pn_admin *admin)
{
	if (admin == NULL)
		return;
	for (size_t i = 0; i < admin->listener_count; i++) {
		/* Else libmicrohttpd would close the socket, and shut it
		 * down, which systemd's must not be. */
		(void)MHD_quiesce_daemon(admin->listeners[i].daemon);
		MHD_stop_daemon(admin->listeners[i].daemon);
		pn_listen_close(&admin->listeners[i].listen);
	}
	free(admin);
}
