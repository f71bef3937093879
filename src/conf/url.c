/*
 * URLs that something is sent to. What is refused here is what would fail or leak
 * at every attempt: another scheme, no host, a password that would stand in
 * lists and logs, a fragment that is never sent. Whether the host exists is
 * for the attempt to find out.
 *
 * Deliberately no parser of all that RFC 3986 allows: a URL is split once, at
 * the places where these questions are decided.
 */
#include "conf_internal.h"

#include <assert.h>

#include "paynotify/parse.h"

enum { PORT_MAX = 65535 };
static_assert(PN_URL_BYTES_MAX == 2048, "the text below says so");

static const char http[] = "http://", https[] = "https://";

struct url {
	bool tls;
	struct pn_str authority; /* user@host:port */
	struct pn_str host;      /* without [] */
	struct pn_str port;      /* data NULL: none */
	bool bracketed;
};

/* The host and the port of an authority. False: "[" without "]", or something
 * else than a port behind it. */
static bool
authority_split(struct url *url)
{
	struct pn_str rest = url->authority;
	const char *close;

	if (rest.len == 0 || *rest.data != '[') {
		url->host = pn_str_split(&rest, ':');
		url->port = rest;
		return true;
	}
	close = memchr(rest.data, ']', rest.len);
	if (close == NULL)
		return false;
	url->bracketed = true;
	url->host =
	    (struct pn_str){ rest.data + 1, (size_t)(close - rest.data - 1) };
	rest.len -= (size_t)(close + 1 - rest.data);
	rest.data = close + 1;
	if (rest.len == 0)
		return true;
	url->port = (struct pn_str){ rest.data + 1, rest.len - 1 };
	return *rest.data == ':';
}

static bool
url_split(struct pn_str text, struct url *ret_url)
{
	struct url url = { .tls = pn_str_starts(text, https) };
	size_t scheme = url.tls ? strlen(https) : strlen(http);

	if (!url.tls && !pn_str_starts(text, http))
		return false;
	url.authority =
	    (struct pn_str){ text.data + scheme, text.len - scheme };
	for (size_t i = 0; i < url.authority.len; i++)
		if (strchr("/?#", url.authority.data[i]) != NULL) {
			url.authority.len = i;
			break;
		}
	if (!authority_split(&url))
		return false;
	*ret_url = url;
	return true;
}

static bool
host_is_valid(const struct url *url)
{
	struct pn_conf_cidr block;

	if (url->bracketed)
		return conf_cidr_parse(url->host, &block) == 0;
	for (size_t i = 0; i < url->host.len; i++) {
		char c = url->host.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '.' || c == '-' ||
			c == '_'))
			return false;
	}
	return url->host.len > 0;
}

const char *
conf_url_fault(struct pn_str text)
{
	struct url url;
	uint64_t port;

	if (text.len > PN_URL_BYTES_MAX)
		return "is longer than the 2048 bytes that a URL may have";
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= 0x20 || text.data[i] >= 0x7f ||
		    strchr("\"<>\\^`{|}", text.data[i]) != NULL)
			return "has a character that must be written as %XX";
	if (!url_split(text, &url))
		return "is not http:// or https:// with a host, such as"
		       " https://app.example.org/events";
	if (memchr(url.authority.data, '@', url.authority.len) != NULL)
		return "has a user before the \"@\": take it out; the"
		       " application knows by the signature who sends";
	if (memchr(text.data, '#', text.len) != NULL)
		return "has a fragment, which is never sent: take out the"
		       " \"#\" and what follows it";
	if (url.host.len == 0)
		return "has no host: https://app.example.org/events";
	if (!host_is_valid(&url))
		return "has no valid host: a name, an IPv4 address or an IPv6"
		       " address in []";
	if (url.port.data != NULL &&
	    (pn_parse_uint(url.port, PORT_MAX, &port) != 0 || port == 0))
		return "has no valid port: 1 to 65535";
	return NULL;
}

bool
conf_url_is_exposed(struct pn_str text)
{
	struct pn_conf_cidr blocks[2];
	const struct pn_conf_cidrs loopback = { blocks, PN_COUNT(blocks) };
	struct url url;
	bool valid = url_split(text, &url);
	int r;

	assert(valid);
	r = conf_cidr_parse(PN_STR("127.0.0.0/8"), &blocks[0]);
	assert(r == 0);
	r = conf_cidr_parse(PN_STR("::1"), &blocks[1]);
	assert(r == 0);
	return !url.tls && !pn_str_equal_fold(url.host, PN_STR("localhost")) &&
	       !pn_conf_cidrs_match(&loopback, url.host);
}
