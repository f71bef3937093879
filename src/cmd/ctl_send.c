/*
 * Where to send, what goes over the wire, and whether the answer is the
 * provider's success.
 *
 * A reply is judged by asking the provider for its success reply and comparing
 * bytes: a 200 with another body (every APIv2 failure is one) is no success.
 */
#include "ctl_send.h"

#include <string.h>

static int
copy(char *target, size_t bytes, struct pn_str from)
{
	if (from.len >= bytes)
		return 1;
	if (from.len > 0)
		memcpy(target, from.data, from.len);
	target[from.len] = '\0';
	return 0;
}

static bool
has_odd_bytes(struct pn_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] <= 0x20 ||
		    (unsigned char)text.data[i] >= 0x7f)
			return true;
	return false;
}

int
ctl_target_parse(
    const char *to, struct ctl_target *ret_target, struct pn_error *ret_error)
{
	struct pn_str text = pn_str_from(to), host;
	struct ctl_target target = { .path = "" };
	size_t scheme = strlen("http://"), end;
	bool bad = has_odd_bytes(text);

	if (pn_str_starts(text, "unix:/")) {
		bad = bad || copy(target.url, sizeof(target.url), text) != 0;
		(void)copy(
		    target.host, sizeof(target.host), PN_STR("localhost"));
	} else if (pn_str_starts(text, "http://")) {
		host = (struct pn_str){ text.data + scheme, text.len - scheme };
		end = scheme;
		while (end < text.len && text.data[end] != '/' &&
		       text.data[end] != '?')
			end++;
		host.len = end - scheme;
		bad = bad || host.len == 0 ||
		      (end < text.len && text.data[end] == '?') ||
		      memchr(host.data, '@', host.len) != NULL ||
		      copy(target.url, sizeof(target.url),
			  (struct pn_str){ text.data, end }) != 0 ||
		      copy(target.host, sizeof(target.host), host) != 0 ||
		      copy(target.path, sizeof(target.path),
			  (struct pn_str){ text.data + end, text.len - end }) !=
			  0;
		if (strcmp(target.path, "/") == 0)
			target.path[0] = '\0';
	} else {
		bad = true;
	}
	if (bad)
		return pn_error_set(ret_error, 1,
		    "\"%s\" is not "
		    "http://host:port[/path] or unix:/path",
		    to);
	*ret_target = target;
	return 0;
}

/* A daemon that listens everywhere is reached by loopback. */
int
ctl_target_of_listen(const char *listen, struct ctl_target *ret_target,
    struct pn_error *ret_error)
{
	struct pn_str text = pn_str_from(listen);
	char url[PN_PATH_BYTES_MAX];

	if (pn_str_starts(text, "unix:"))
		return ctl_target_parse(listen, ret_target, ret_error);
	if (pn_str_starts(text, "0.0.0.0:"))
		(void)snprintf(url, sizeof(url), "http://127.0.0.1%s",
		    strchr(listen, ':'));
	else if (pn_str_starts(text, "[::]:"))
		(void)snprintf(url, sizeof(url), "http://[::1]%s",
		    strchr(listen, ']') + 1);
	else
		(void)snprintf(url, sizeof(url), "http://%s", listen);
	return ctl_target_parse(url, ret_target, ret_error);
}

/* Without --to the daemon's own section is needed, so all of the file. */
int
ctl_target_find(const struct ctl *ctl, struct ctl_target *ret_target)
{
	PN_CLEANUP(pn_conf_unrefp) struct pn_conf *whole = NULL;
	struct pn_error error = { .text = "" };

	if (ctl->args.to != NULL) {
		if (ctl_target_parse(ctl->args.to, ret_target, &error) != 0)
			return ctl_usage(ctl->command, "--to %s", error.text);
		return CTL_DONE;
	}
	if (pn_conf_load(ctl->args.config, NULL, &whole, &error) < 0 ||
	    ctl_target_of_listen(
		whole->server.listen.values[0], ret_target, &error) != 0) {
		ctl_complain("%s (or give --to URL)", error.text);
		return CTL_BAD_CONFIG;
	}
	return CTL_DONE;
}

void
ctl_request_add(struct pn_buf *out, const struct pn_request *request,
    const char *path, const char *host)
{
	struct pn_str value;

	pn_buf_add_str(out, request->method);
	pn_buf_printf(out, " %s", path);
	if (request->query.data != NULL) {
		pn_buf_add_char(out, '?');
		pn_buf_add_str(out, request->query);
	}
	pn_buf_add_text(out, " HTTP/1.1\r\n");
	if (pn_request_header(request, "Host", &value) == 0)
		pn_buf_printf(out, "Host: %s\r\n", host);
	for (size_t i = 0; i < request->header_count; i++) {
		pn_buf_add_str(out, request->headers[i].name);
		pn_buf_add_text(out, ": ");
		pn_buf_add_str(out, request->headers[i].value);
		pn_buf_add_text(out, "\r\n");
	}
	if (pn_request_header(request, "Content-Length", &value) == 0 &&
	    pn_request_header(request, "Transfer-Encoding", &value) == 0)
		pn_buf_printf(
		    out, "Content-Length: %zu\r\n", request->body.len);
	pn_buf_add_text(out, "\r\n");
	pn_buf_add_str(out, request->body);
}

bool
ctl_reply_is_success(const struct pn_provider *provider,
    const struct pn_request *request, const struct pn_net_reply *reply,
    struct pn_arena *arena)
{
	struct pn_reply wanted;

	if (provider == NULL)
		return reply->status >= 200 && reply->status < 300;
	if (reply->status != 200 ||
	    provider->reply(provider->dialect_of(request), PN_OUTCOME_SUCCESS,
		"", arena, &wanted) < 0)
		return false;
	return pn_str_equal(reply->body, wanted.body);
}
