/*
 * The admin port: is it alive, can it record, how much has it done; what is
 * recorded, and what an operator does about it.
 *
 * A server of its own, with a thread of its own, so that a flood on the public
 * port cannot hide what is going on. That thread never waits: it judges requests
 * (who, what, with which parameters) and answers what needs no database; the rest
 * is the workers' (work.c), so that a query that hangs hides nothing either.
 *
 *   begin   the head is there: route.c, access.c
 *   submit  the body is there: input.c; run here, or put to a worker
 *   refuse  a problem of begin's, or the server's own reasons
 *
 * What the port may do to whom is in access.c, which routes there are in
 * route.c. Closing it ends the queries that run: whoever asked is told that it
 * is not known whether an action was done.
 */
#include "paynotify/admin.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"
#include "paynotify/service.h"

#include "admin_internal.h"

enum {
	CONNECTIONS_MAX = 64,
	BODY_BYTES_MAX = 64 << 10,
	PROBLEM_BYTES_MAX = 64 << 10,
};
static const int64_t REQUEST_US = 10 * PN_SECOND_US;
static const int64_t CLOSE_US = PN_SECOND_US; /* for heads and bodies */

/* -- answering --------------------------------------------------------------- */

void
admin_header(struct admin_job *job, struct pn_str name, struct pn_str value)
{
	assert(job->header_count < ADMIN_HEADERS_MAX);
	job->headers[job->header_count++] =
	    (struct pn_header){ .name = name, .value = value };
}

static void
set_answer(struct admin_job *job)
{
	if (job->status == 0 || pn_buf_failed(&job->out))
		(void)admin_problem(
		    job, ADMIN_NO_MEMORY, "Ask for less, or later.");
	admin_header(
	    job, PN_STR("Content-Type"), pn_str_from(job->content_type));
	admin_header(job, PN_STR("Cache-Control"), PN_STR("no-store"));
	admin_header(job, PN_STR("X-Content-Type-Options"), PN_STR("nosniff"));
	job->call->answer = (struct pn_answer){
		.status = job->status,
		.headers = job->headers,
		.header_count = job->header_count,
		.body =
		    job->out.data == NULL ? PN_STR("") : pn_buf_str(&job->out),
	};
}

void
admin_answer(struct admin_job *job)
{
	struct pn_call *call = job->call;

	set_answer(job);
	pn_call_done(call);
	pn_call_release(call);
}

/* -- the handler ------------------------------------------------------------- */

static struct admin_job *
job_of(void *service, struct pn_call *call)
{
	struct admin_job *job = call->job;

	if (job->admin == NULL) {
		job->admin = service;
		job->call = call;
		job->out = pn_buf_init(PROBLEM_BYTES_MAX);
	}
	return job;
}

static int
refuse_route(struct admin_job *job, bool known)
{
	const struct pn_request *request = &job->call->request;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf allow = pn_buf_init(PN_PATH_BYTES_MAX);

	if (!known)
		return admin_problem(job, ADMIN_NO_ROUTE,
		    "There is nothing at this path; GET /api/v1 lists what "
		    "there is.");
	admin_route_allow(request->path, &allow);
	admin_header(job, PN_STR("Allow"),
	    pn_arena_copy(job->call->arena, pn_buf_str(&allow)));
	return admin_problem(job, ADMIN_BAD_METHOD,
	    "This path takes " PN_STR_FMT ".", PN_STR_ARG(pn_buf_str(&allow)));
}

static enum pn_refused
admin_begin(void *service, struct pn_call *call)
{
	struct admin_job *job = job_of(service, call);
	bool known;
	int r;

	job->route = admin_route_find(
	    call->request.method, call->request.path, &job->segment, &known);
	r = admin_access_check(
	    job, job->route != NULL ? job->route->privilege : ADMIN_READ);
	if (r == 0 && job->route == NULL)
		r = refuse_route(job, known);
	if (r == 0 && strcmp(job->route->method, "GET") != 0)
		r = admin_input_media_check(job);
	return r == 0 ? PN_REFUSED_NOT : PN_REFUSED_PATH;
}

static void
admin_submit(void *service, struct pn_call *call)
{
	struct admin_job *job = job_of(service, call);
	int r = admin_input_read(job);

	if (r == 0 && job->route->need != ADMIN_NEEDS_NOTHING) {
		admin_work_put(job->admin->work, job);
		return;
	}
	if (r == 0)
		r = job->route->run(job);
	if (r < 0)
		(void)admin_problem_of_fault(job, r);
	admin_answer(job);
}

static void
admin_refuse(void *service, struct pn_call *call, enum pn_refused why)
{
	struct admin_job *job = job_of(service, call);

	switch (why) {
	case PN_REFUSED_PATH: break; /* begin() has said it */
	case PN_REFUSED_BODY:
		(void)admin_problem(job, ADMIN_LONG_BODY,
		    "At most %d bytes are read.", (int)BODY_BYTES_MAX);
		break;
	case PN_REFUSED_HEADERS:
		(void)admin_problem(job, ADMIN_LONG_HEAD, "Send fewer.");
		break;
	case PN_REFUSED_STOPPING:
		(void)admin_problem(job, ADMIN_STOPPING,
		    "Nothing was done. Ask again in a moment.");
		break;
	default:
		(void)admin_problem(job, ADMIN_BAD_LENGTH,
		    "Content-Length stands twice, is no number or comes "
		    "together with Transfer-Encoding; or a header is "
		    "folded, or has no proper name.");
	}
	set_answer(job);
}

static void
admin_end(struct pn_call *call)
{
	struct admin_job *job = call->job;

	pn_buf_done(&job->out);
	json_decref(job->body);
}

static const struct pn_handler handler = {
	.job_bytes = sizeof(struct admin_job),
	.begin = admin_begin,
	.submit = admin_submit,
	.refuse = admin_refuse,
	.end = admin_end,
};

/* -- life -------------------------------------------------------------------- */

static int
check_listen(const struct pn_conf_admin *conf, struct pn_error *error)
{
	const struct pn_conf_strings *listen = &conf->listen;

	for (size_t i = 0; i < listen->count; i++) {
		bool local = conf->token_file.count == 0;
		int r = pn_listen_check(listen->values[i], local, error);

		if (r == 0)
			continue;
		if (local &&
		    pn_listen_check(listen->values[i], false, NULL) == 0)
			(void)pn_error_set(error, r,
			    "\"%s\" can be reached by other hosts: only "
			    "loopback addresses and unix sockets are allowed "
			    "without token_file",
			    listen->values[i]);
		if (listen->places == NULL)
			return pn_error_prefix(error, r, "[admin] listen: ");
		return pn_error_prefix(error, r,
		    "%s:%d: listen: ", listen->places[i].file,
		    listen->places[i].line);
	}
	return 0;
}

/* As it goes into a header: what is not visible could not be sent. */
static bool
is_token(struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return true;
}

int
pn_admin_check(const struct pn_conf *conf, struct pn_error *ret_error)
{
	const struct pn_conf_files *files = &conf->admin.token_file;

	for (size_t i = 0; i < files->count; i++)
		if (!is_token(pn_conf_file_text(&files->files[i])))
			return pn_error_set(ret_error, -EINVAL,
			    "%s:%d: token_file: \"%s\" must hold one line of "
			    "visible ASCII without blanks, such as `openssl "
			    "rand -hex 32` makes",
			    files->files[i].place.file,
			    files->files[i].place.line, files->files[i].path);
	return check_listen(&conf->admin, ret_error);
}

static int
take_tokens(struct pn_admin *admin, const struct pn_conf_files *files)
{
	if (files->count == 0)
		return 0;
	admin->tokens = calloc(files->count, sizeof(*admin->tokens));
	if (admin->tokens == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++) {
		const struct pn_secret *content = &files->files[i].content;
		int r = pn_secret_set(
		    &admin->tokens[i], content->data, content->len);

		if (r < 0)
			return r;
		admin->token_count++;
	}
	return 0;
}

static int
serve(
    struct pn_admin *admin, const struct pn_conf *conf, struct pn_error *error)
{
	const struct pn_server_options options = {
		.conf = &admin->http,
		.listen = &conf->admin.listen,
		.socket_name = PN_SOCKET_ADMIN,
		.local = admin->token_count == 0,
		.uncounted = true,
		.body_bytes_max = BODY_BYTES_MAX,
		.handler = &handler,
		.service = admin,
	};
	const struct pn_conf_database *database = &conf->database;
	int r = admin_work_open(
	    database->admin_dsn != NULL ? database->admin_dsn : database->dsn,
	    &admin->work, error);

	if (r < 0)
		return r;
	r = pn_server_open(&options, &admin->server, error);
	if (r < 0)
		return r;
	if (pn_server_listening(admin->server)[0] != '\0') {
		pn_log_info(
		    "admin port on %s", pn_server_listening(admin->server));
	} else {
		admin_work_close(admin->work); /* nobody can ask */
		admin->work = NULL;
	}
	for (size_t i = 0; i < conf->admin.listen.count; i++)
		if (pn_listen_check(conf->admin.listen.values[i], true, NULL) <
		    0)
			pn_log_warning("the admin port on \"%s\" is plain "
				       "HTTP: put TLS in front of it, or its "
				       "token can be read on the way",
			    conf->admin.listen.values[i]);
	return 0;
}

int
pn_admin_open(const struct pn_conf *conf, struct pn_store *store,
    struct pn_admin **ret_admin, struct pn_error *ret_error)
{
	struct pn_admin *admin = calloc(1, sizeof(*admin));
	int r;

	assert(store != NULL && conf->admin.listen.count <= PN_LISTEN_MAX);
	if (admin == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	admin->store = store;
	admin->http = (struct pn_conf_server){
		.threads = 1,
		.max_connections = CONNECTIONS_MAX,
		.max_connections_per_peer = CONNECTIONS_MAX / 2,
		.idle_timeout_us = REQUEST_US,
		.request_timeout_us = REQUEST_US,
	};
	admin->conf_path = strdup(conf->path);
	r = admin->conf_path == NULL ? -ENOMEM : 0;
	if (r == 0)
		r = take_tokens(admin, &conf->admin.token_file);
	if (r < 0)
		(void)pn_error_set(ret_error, r, "out of memory");
	else
		r = serve(admin, conf, ret_error);
	if (r < 0) {
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
	if (admin->work != NULL)
		admin_work_stop(admin->work);
	pn_server_close(admin->server, CLOSE_US);
	admin_work_close(admin->work);
	for (size_t i = 0; i < admin->token_count; i++)
		pn_secret_done(&admin->tokens[i]);
	free(admin->tokens);
	free(admin->conf_path);
	free(admin);
}
