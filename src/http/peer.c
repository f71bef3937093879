/*
 * Who is at the other end: addresses as bytes and text, and whom to believe
 * about them.
 *
 * An IPv4 client looks different on a dual-stack listener (::ffff:192.0.2.1);
 * it is one peer all the same, so every address is kept as 16 bytes with IPv4
 * mapped, and shown as IPv4. The text is what receipts and the log say.
 *
 * X-Forwarded-For is a list that every proxy appends to, so only what stands
 * right of the first stranger was written by somebody we trust. It is read from
 * the right: the direct peer must be a trusted proxy; the entry it appended is
 * believed; if that is a trusted proxy too, so is the entry left of it. An entry
 * that is no address ends the walk: what stands left of it may be anything.
 *
 * Pure. It deliberately knows no Forwarded (RFC 7239) and no X-Real-IP: a second
 * way to say the same is a second way to lie.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "paynotify/parse.h"

#include "http_internal.h"

static const unsigned char mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

static bool
is_mapped(const unsigned char address[16])
{
	return memcmp(address, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

static void
set_text(struct pn_peer *peer)
{
	bool v4 = is_mapped(peer->address);

	if (inet_ntop(v4 ? AF_INET : AF_INET6,
		v4 ? peer->address + 12 : peer->address, peer->text,
		sizeof(peer->text)) == NULL)
		peer->text[0] = '\0';
}

static void
set_v4(struct pn_peer *peer, const struct in_addr *address)
{
	static_assert(sizeof(*address) == 4, "an IPv4 address has four bytes");
	memcpy(peer->address, mapped_prefix, sizeof(mapped_prefix));
	memcpy(peer->address + 12, address, sizeof(*address));
}

void
pn_peer_of_sockaddr(const struct sockaddr *address, struct pn_peer *ret)
{
	*ret = (struct pn_peer){ .text = "" };
	if (address == NULL)
		return;
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;

		/* Not through a cast: MHD's storage need not be aligned. */
		memcpy(&in, address, sizeof(in));
		set_v4(ret, &in.sin_addr);
		set_text(ret);
	} else if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		memcpy(ret->address, &in6.sin6_addr, sizeof(ret->address));
		set_text(ret);
	}
}

/* Takes the port off: "1.2.3.4:5", "[::1]:5", "[::1]". Two colons without
 * brackets are a bare IPv6 address. */
static struct pn_str
host_of(struct pn_str text)
{
	ptrdiff_t colon, bracket;

	if (pn_str_starts(text, "[")) {
		bracket = pn_str_find(text, PN_STR("]"));
		if (bracket < 0)
			return (struct pn_str){ NULL, 0 };
		return (struct pn_str){ text.data + 1, (size_t)bracket - 1 };
	}
	colon = pn_str_find(text, PN_STR(":"));
	if (colon >= 0 && memchr(text.data + colon + 1, ':',
			      text.len - (size_t)colon - 1) == NULL)
		text.len = (size_t)colon;
	return text;
}

int
pn_peer_parse(struct pn_str text, struct pn_peer *ret)
{
	char copy[PN_PEER_TEXT_BYTES];
	struct pn_peer peer = { .text = "" };
	struct in_addr in;
	struct in6_addr in6;
	struct pn_str host = host_of(text);

	if (host.len == 0 || host.len >= sizeof(copy) ||
	    memchr(host.data, '\0', host.len) != NULL)
		return 1;
	memcpy(copy, host.data, host.len);
	copy[host.len] = '\0';
	if (inet_pton(AF_INET, copy, &in) == 1)
		set_v4(&peer, &in);
	else if (inet_pton(AF_INET6, copy, &in6) == 1)
		memcpy(peer.address, &in6, sizeof(peer.address));
	else
		return 1;
	set_text(&peer);
	*ret = peer;
	return 0;
}

bool
pn_peer_is_loopback(const struct pn_peer *peer)
{
	static const unsigned char loopback6[16] = { [15] = 1 };

	if (peer->text[0] == '\0') /* a unix socket */
		return true;
	if (is_mapped(peer->address))
		return peer->address[12] == 127;
	return memcmp(peer->address, loopback6, sizeof(loopback6)) == 0;
}

void
pn_peer_key(const struct pn_peer *peer, unsigned char ret_key[16])
{
	memcpy(ret_key, peer->address, 16);
	if (!is_mapped(peer->address))
		memset(ret_key + 8, 0, 8);
}

uint64_t
pn_peer_hash(const unsigned char key[16], uint64_t seed)
{
	uint64_t hash = UINT64_C(14695981039346656037) ^ seed;

	for (int i = 0; i < 16; i++) /* FNV-1a */
		hash = (hash ^ key[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

/* The last entry of *list, which loses it. data NULL when nothing is left. */
static struct pn_str
last_entry(struct pn_str *list)
{
	struct pn_str entry = *list;
	const char *comma;

	if (list->data == NULL)
		return *list;
	comma = list->len == 0 ? NULL : memrchr(list->data, ',', list->len);
	if (comma == NULL) {
		*list = (struct pn_str){ NULL, 0 };
	} else {
		entry.data = comma + 1;
		entry.len = list->len - (size_t)(comma + 1 - list->data);
		list->len = (size_t)(comma - list->data);
	}
	return pn_str_trim(entry);
}

void
pn_peer_forwarded(const struct pn_conf_cidrs *trusted,
    const struct pn_peer *direct, const struct pn_header *headers,
    size_t header_count, struct pn_peer *ret)
{
	struct pn_peer peer = *direct, left;
	unsigned hops = 0;

	assert(header_count <= PN_HEADER_COUNT_MAX);
	/* The last line of a repeated header was appended last. */
	for (size_t i = header_count; i-- > 0;) {
		struct pn_str list = headers[i].value;

		if (!pn_str_equal_fold(
			headers[i].name, PN_STR("X-Forwarded-For")))
			continue;
		while (list.data != NULL) {
			struct pn_str entry = last_entry(&list);

			if (!pn_conf_cidrs_match(
				trusted, pn_str_from(peer.text)) ||
			    hops++ == PN_FORWARDED_HOPS_MAX ||
			    pn_peer_parse(entry, &left) != 0)
				goto out;
			peer = left;
		}
	}
out:
	*ret = peer;
}
