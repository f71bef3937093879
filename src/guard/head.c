/*
 * Headers on their way through the gateway: a request's to the upstream, an
 * answer's to the client and into the database.
 *
 * What speaks of one connection does not go through (RFC 9110 7.6.1). Neither
 * does what the gateway says itself: a client's Idempotency-Attempt or
 * X-Forwarded-For would be believed by the upstream, an upstream's
 * Idempotency-Replayed by the client. Names that CGI, WSGI or PHP cannot tell from
 * these are meant too: whatever is no letter and no digit counts as "-".
 *
 * X-Forwarded-For is the one address that the server found out, whatever stood
 * there before: an upstream that reads the list from the wrong end is not
 * deceived then. Of what else a proxy says (X-Forwarded-Proto, Forwarded,
 * X-Real-IP, the tenant_header of any route), a trusted one is believed, a client
 * not: neither with a name that is read as if it were the proxy's, nor with a
 * second line beside the proxy's. That holds without a key too: what a GET names
 * as its tenant is all that its upstream has to go by.
 *
 * A line goes through whole or not at all: one whose name is no token or whose
 * value has a control character is left out, because it would end early, start
 * another line, or have curl refuse all of them. Bytes that are not ASCII pass
 * through but are not stored: PostgreSQL would want to know what they mean.
 *
 * Nothing here fails: it writes into a buffer whose error sticks.
 */
#include "head.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/encode.h"
#include "paynotify/limits.h"
#include "paynotify/moment.h"

/* -- names ------------------------------------------------------------------ */

static char
fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

/* Whether name begins with prefix, which is in lower case with "-". */
static bool
name_begins(struct pn_str name, const char *prefix)
{
	size_t len = strlen(prefix);

	if (name.len < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (fold(name.data[i]) != prefix[i])
			return false;
	return true;
}

static bool
name_is(struct pn_str name, const char *other)
{
	return name.len == strlen(other) && name_begins(name, other);
}

/* Whether one is read as the other where "-" is not kept apart. */
static bool
name_is_like(struct pn_str name, struct pn_str other)
{
	for (size_t i = 0; name.len == other.len && i < name.len; i++)
		if (fold(name.data[i]) != fold(other.data[i]))
			return false;
	return name.len == other.len;
}

/* Of "-", letters and digits: so a name that is like it is not what it says. */
static bool
is_plain(struct pn_str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] != '-' && fold(name.data[i]) == '-')
			return false;
	return true;
}

static bool
name_is_one_of(struct pn_str name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (name_is(name, names[i]))
			return true;
	return false;
}

/* Of one connection, whichever way. */
static bool
is_hop_by_hop(struct pn_str name)
{
	static const char *const names[] = { "connection", "keep-alive",
		"proxy-authenticate", "proxy-authorization", "proxy-connection",
		"te", "trailer", "transfer-encoding", "upgrade" };

	return name_is_one_of(name, names, PN_COUNT(names));
}

/* Whether a value of Connection has name in its list. */
static bool
list_has(struct pn_str list, struct pn_str name)
{
	while (list.data != NULL)
		if (pn_str_equal_fold(
			pn_str_trim(pn_str_split(&list, ',')), name))
			return true;
	return false;
}

/* The gateway's own words, in requests and answers. */
static bool
is_own(struct pn_str name)
{
	static const char *const names[] = { "idempotent-replayed",
		"x-idempotent-replay", "x-idempotent-replayed" };

	return name_begins(name, "idempotency-") ||
	       name_begins(name, "x-idempotency-") ||
	       name_is_one_of(name, names, PN_COUNT(names));
}

/* -- lines ------------------------------------------------------------------ */

static bool
is_token(struct pn_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			(c >= 'a' && c <= 'z') ||
			(c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL)))
			return false;
	}
	return name.len > 0;
}

static bool
is_value(struct pn_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.data[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool
is_ascii(struct pn_str value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.data[i] >= 0x80)
			return false;
	return true;
}

/* The next line of lines that is one. False: there is none left. */
static bool
next_line(struct pn_str *lines, struct pn_header *ret_line)
{
	struct pn_str value, name;

	while (lines->data != NULL && lines->len > 0) {
		value = pn_str_split(lines, '\n');
		name = pn_str_split(&value, ':');
		value = pn_str_trim(value);
		if (value.data == NULL || !is_token(name) || !is_value(value))
			continue;
		*ret_line = (struct pn_header){ .name = name, .value = value };
		return true;
	}
	return false;
}

static void
add_line(struct pn_buf *out, struct pn_str name, struct pn_str value)
{
	pn_buf_add_str(out, name);
	pn_buf_add_text(out, ": ");
	pn_buf_add_str(out, value);
	pn_buf_add_char(out, '\n');
}

/* -- to the upstream -------------------------------------------------------- */

bool
pn_guard_overrides_method(const struct pn_request *request)
{
	static const char *const names[] = { "x-http-method-override",
		"x-http-method", "x-method-override" };

	for (size_t i = 0; i < request->header_count; i++) {
		const struct pn_header *header = &request->headers[i];

		if (name_is_one_of(header->name, names, PN_COUNT(names)) &&
		    !pn_str_equal_fold(
			pn_str_trim(header->value), request->method))
			return true;
	}
	return false;
}

/* What a proxy says of who is in front of it. */
static bool
is_of_proxies(struct pn_str name)
{
	return name_begins(name, "x-forwarded-") ||
	       name_is(name, "forwarded") || name_is(name, "x-real-ip") ||
	       name_is(name, "via");
}

static bool
is_named_by_connection(const struct pn_request *request, struct pn_str name)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (name_is(request->headers[i].name, "connection") &&
		    list_has(request->headers[i].value, name))
			return true;
	return false;
}

/* Whether an upstream may take it for the one who asks, and must not: it is not
 * from a trusted proxy, or it is not the only one, or not spelt as the proxy's. The
 * tenant_header of all routes: the upstream may be the same. */
static bool
is_forged_tenant(
    const struct pn_guard_forward *forward, const struct pn_header *header)
{
	const struct pn_call *call = forward->call;
	const struct pn_conf *conf = forward->route->all;
	struct pn_str value;

	for (size_t i = 0; i < conf->guard_route_count; i++) {
		const struct pn_conf_strings *names =
		    &conf->guard_routes[i].tenant_header;

		if (names->count == 0 ||
		    !name_is_like(header->name, pn_str_from(names->values[0])))
			continue;
		if (!call->from_proxy ||
		    pn_request_header(
			&call->request, names->values[0], &value) != 1 ||
		    !pn_str_equal_fold(
			header->name, pn_str_from(names->values[0])))
			return true;
	}
	return name_is(header->name, "x-api-key") && !is_plain(header->name);
}

static bool
goes_upstream(
    const struct pn_guard_forward *forward, const struct pn_header *header)
{
	const struct pn_call *call = forward->call;
	static const char *const never[] = { "host", "content-length", "expect",
		/* The answer is stored for clients that say otherwise. */
		"accept-encoding", "x-forwarded-for", "x-forwarded-host" };

	if (!is_token(header->name) || !is_value(header->value))
		return false;
	if (is_hop_by_hop(header->name) || is_own(header->name) ||
	    name_is_one_of(header->name, never, PN_COUNT(never)))
		return false;
	if (is_of_proxies(header->name) &&
	    (!call->from_proxy || !is_plain(header->name)))
		return false;
	if (is_forged_tenant(forward, header))
		return false;
	return !is_named_by_connection(&call->request, header->name);
}

/* The host that the client asked for, as far as that can be known. */
static struct pn_str
host_asked_for(const struct pn_call *call)
{
	struct pn_str host;

	if (call->from_proxy &&
	    pn_request_header(&call->request, "X-Forwarded-Host", &host) == 1)
		return host;
	(void)pn_request_header(&call->request, "Host", &host);
	return host;
}

/* 123e4567-e89b-12d3-a456-426614174000 */
static void
add_uuid(struct pn_buf *out, const unsigned char token[PN_LEASE_TOKEN_BYTES])
{
	static const size_t ends[] = { 4, 6, 8, 10, PN_LEASE_TOKEN_BYTES };
	char hex[2 * PN_LEASE_TOKEN_BYTES + 1];
	size_t at = 0;

	pn_hex_lower(token, PN_LEASE_TOKEN_BYTES, hex);
	for (size_t i = 0; i < PN_COUNT(ends); i++) {
		if (i > 0)
			pn_buf_add_char(out, '-');
		pn_buf_add(out, hex + 2 * at, 2 * (ends[i] - at));
		at = ends[i];
	}
}

void
pn_guard_forward_headers(
    const struct pn_guard_forward *forward, struct pn_buf *out)
{
	const struct pn_call *call = forward->call;
	struct pn_str host = host_asked_for(call);

	assert(call->request.header_count <= PN_HEADER_COUNT_MAX);
	for (size_t i = 0; i < call->request.header_count; i++) {
		const struct pn_header *header = &call->request.headers[i];

		if (goes_upstream(forward, header))
			add_line(out, header->name, header->value);
	}
	if (call->request.peer.len > 0)
		add_line(out, PN_STR("X-Forwarded-For"), call->request.peer);
	if (host.len > 0 && is_value(host))
		add_line(out, PN_STR("X-Forwarded-Host"), host);
	if (forward->key.data == NULL)
		return;
	assert(forward->attempt > 0 && forward->token != NULL);
	add_line(out, PN_STR("Idempotency-Key"), forward->key);
	pn_buf_printf(out, "Idempotency-Attempt: %d\n", forward->attempt);
	pn_buf_add_text(out, "Idempotency-Token: ");
	add_uuid(out, forward->token);
	pn_buf_add_char(out, '\n');
	add_line(out, PN_STR("Idempotency-Tenant"), forward->tenant);
}

/* -- to the client ---------------------------------------------------------- */

static bool
goes_to_client(struct pn_str name)
{
	/* Made by the server, of what it sends. */
	static const char *const never[] = { "content-length", "date" };

	return !is_hop_by_hop(name) && !is_own(name) &&
	       !name_is_one_of(name, never, PN_COUNT(never));
}

/* [guard] keep_header; all but what was for the first client alone when the
 * configuration has none. */
static bool
is_kept(const struct pn_guard_route *route, const struct pn_header *line)
{
	static const char *const personal[] = { "set-cookie", "set-cookie2",
		"www-authenticate", "authentication-info" };
	const struct pn_conf_strings *names = &route->conf->keep_header;

	if (!is_ascii(line->value))
		return false;
	if (names->count == 0)
		return !name_is_one_of(
		    line->name, personal, PN_COUNT(personal));
	for (size_t i = 0; i < names->count; i++)
		if (pn_str_equal_fold(
			line->name, pn_str_from(names->values[i])))
			return true;
	return false;
}

/* All that lines' Connection headers name, as one list. */
static void
add_named_by_connection(struct pn_str lines, struct pn_buf *list)
{
	struct pn_header line;

	for (int i = 0; i < PN_HEADER_COUNT_MAX && next_line(&lines, &line);
	     i++)
		if (name_is(line.name, "connection")) {
			pn_buf_add_str(list, line.value);
			pn_buf_add_char(list, ',');
		}
}

/* Of lines those that go on; kept NULL: all, else what has such a name and can
 * be stored. */
static void
add_answer_lines(
    struct pn_str lines, const struct pn_guard_route *kept, struct pn_buf *out)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf named = pn_buf_init(lines.len + 1);
	struct pn_header line;

	add_named_by_connection(lines, &named);
	if (pn_buf_failed(&named))
		out->failed = true;
	for (int i = 0; i < PN_HEADER_COUNT_MAX && next_line(&lines, &line);
	     i++) {
		if (!goes_to_client(line.name) ||
		    list_has(pn_buf_str(&named), line.name))
			continue;
		if (kept == NULL || is_kept(kept, &line))
			add_line(out, line.name, line.value);
	}
}

void
pn_guard_answer_headers(struct pn_str lines, struct pn_buf *out)
{
	add_answer_lines(lines, NULL, out);
}

void
pn_guard_kept_headers(
    const struct pn_guard_route *route, struct pn_str lines, struct pn_buf *out)
{
	add_answer_lines(lines, route, out);
}

/* -- as an answer has them -------------------------------------------------- */

enum { OWN_HEADERS_MAX = 4 }; /* of a replay, and Idempotency-Expires */

static size_t
add_replayed(struct pn_header *headers)
{
	static const char *const names[] = { "Idempotency-Replayed",
		"Idempotent-Replayed", "X-Idempotent-Replay" };

	for (size_t i = 0; i < PN_COUNT(names); i++)
		headers[i] = (struct pn_header){ .name = pn_str_from(names[i]),
			.value = PN_STR("true") };
	return PN_COUNT(names);
}

/* To the second that has begun: nobody is told a later end than there is. */
static struct pn_str
expires_text(int64_t expires_at_us, struct pn_arena *arena)
{
	char text[PN_MOMENT_TEXT_BYTES];

	pn_moment_format_rfc3339(
	    expires_at_us - expires_at_us % PN_SECOND_US, text);
	return pn_arena_copy(arena, pn_str_from(text));
}

int
pn_guard_header_list(struct pn_str lines, bool replayed, int64_t expires_at_us,
    struct pn_arena *arena, struct pn_answer *ret_answer)
{
	struct pn_header *headers, line;
	size_t count = 0;

	headers = pn_arena_alloc(
	    arena, (PN_HEADER_COUNT_MAX + OWN_HEADERS_MAX) * sizeof(*headers));
	if (headers == NULL)
		return -ENOMEM;
	/* What is stored may be an application's own: see guard_complete(). */
	while (count < PN_HEADER_COUNT_MAX && next_line(&lines, &line))
		if (goes_to_client(line.name))
			headers[count++] = line;
	if (replayed)
		count += add_replayed(headers + count);
	if (expires_at_us > 0) {
		headers[count].name = PN_STR("Idempotency-Expires");
		headers[count].value = expires_text(expires_at_us, arena);
		if (headers[count].value.data == NULL)
			return -ENOMEM;
		count++;
	}
	ret_answer->headers = headers;
	ret_answer->header_count = count;
	return 0;
}
