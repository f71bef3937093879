/*
 * Who may. Three questions, by the privilege of the route:
 *
 *   open   nobody is asked: who asks /healthz and /readyz (a load balancer)
 *          cannot keep a secret. Why it is not ready, in the database's own
 *          words, is for those who may read
 *   read   a token where one is set. Without one the port is on loopback or a
 *          unix socket: who is on the machine may look. A browser on it may be
 *          made to look on a stranger's behalf (a name of his that he points at
 *          127.0.0.1), so over TCP the name that was asked for must be an
 *          address or "localhost"
 *   act    a token where one is set. Without one over a unix socket only: its
 *          mode says who may, while a port of loopback is every process's and
 *          every web page's
 *
 * Every token is compared, in constant time, whichever is right; what was wrong
 * with a wrong one is not told.
 */
#include "admin_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "paynotify/digest.h"
#include "paynotify/parse.h"
#include "paynotify/request.h"

enum { HOST_BYTES_MAX = 64 }; /* the longest address has 45 */

static const char scheme[] = "Bearer ";

/* Exactly one Authorization: two that differ are read differently by others. */
static bool
has_token(const struct admin_job *job)
{
	struct pn_str value, sent;
	bool found = false;

	if (pn_request_header(&job->call->request, "Authorization", &value) !=
		1 ||
	    value.len < sizeof(scheme) - 1 ||
	    !pn_str_equal_fold(
		(struct pn_str){ value.data, sizeof(scheme) - 1 },
		pn_str_from(scheme)))
		return false;
	sent = pn_str_trim((struct pn_str){ value.data + sizeof(scheme) - 1,
	    value.len - (sizeof(scheme) - 1) });
	for (size_t i = 0; i < job->admin->token_count; i++) {
		const struct pn_secret *token = &job->admin->tokens[i];
		bool same = pn_equal_constant_time(sent,
		    (struct pn_str){ (const char *)token->data, token->len });

		found = same || found;
	}
	return found;
}

/* "127.0.0.1:8601", "[::1]", "localhost": what no stranger's name is. */
static bool
is_own_host(struct pn_str host)
{
	char text[HOST_BYTES_MAX];
	struct in6_addr address; /* has room for an IPv4 one */
	bool bracketed = pn_str_starts(host, "[");
	struct pn_str name, port = host;
	uint64_t number;

	if (bracketed) {
		port = (struct pn_str){ host.data + 1, host.len - 1 };
		name = pn_str_split(&port, ']');
		if (port.data == NULL ||
		    (port.len > 0 && pn_str_split(&port, ':').len > 0))
			return false;
	} else {
		name = pn_str_split(&port, ':');
	}
	if (port.len > 0 && pn_parse_uint(port, UINT16_MAX, &number) != 0)
		return false;
	if (!bracketed && pn_str_equal_fold(name, PN_STR("localhost")))
		return true;
	if (name.len >= sizeof(text))
		return false;
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	return inet_pton(bracketed ? AF_INET6 : AF_INET, text, &address) == 1;
}

/* A request without any is not a browser's. */
static bool
names_own_host(const struct pn_request *request)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (pn_str_equal_fold(
			request->headers[i].name, PN_STR("Host")) &&
		    !is_own_host(request->headers[i].value))
			return false;
	return true;
}

bool
admin_access_reads(const struct admin_job *job)
{
	if (job->admin->token_count > 0)
		return has_token(job);
	return job->call->from_unix || names_own_host(&job->call->request);
}

int
admin_access_check(struct admin_job *job, enum admin_privilege privilege)
{
	if (privilege == ADMIN_OPEN)
		return 0;
	if (job->admin->token_count > 0) {
		if (has_token(job))
			return 0;
		admin_header(job, PN_STR("WWW-Authenticate"),
		    PN_STR("Bearer realm=\"paynotifyd\""));
		return admin_problem(job, ADMIN_NO_TOKEN,
		    "Send one of the tokens of [admin] token_file as "
		    "Authorization: Bearer TOKEN.");
	}
	if (job->call->from_unix)
		return 0;
	if (!names_own_host(&job->call->request))
		return admin_problem(job, ADMIN_FOREIGN_HOST,
		    "The header Host must be an address or localhost. A web "
		    "page of somebody else's may be behind this request; if "
		    "it is yours, set [admin] token_file, or ask by address.");
	if (privilege == ADMIN_ACT)
		return admin_problem(job, ADMIN_NO_ACTING,
		    "Every process and every web page on this machine can "
		    "reach this port: to act, set [admin] token_file, or use "
		    "a unix socket.");
	return 0;
}
