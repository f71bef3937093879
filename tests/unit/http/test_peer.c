/*
 * Addresses and X-Forwarded-For. If these fail, a stranger chooses the address
 * that receipts, limits and the log have of him.
 */
#include "http_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* 127.0.0.0/8 and 10.0.0.0/8 */
static struct pn_conf_cidr blocks[] = {
	{ .address = { [10] = 0xff, 0xff, 127 }, .bits = 104 },
	{ .address = { [10] = 0xff, 0xff, 10 }, .bits = 104 },
};
static const struct pn_conf_cidrs trusted = { blocks, PN_COUNT(blocks) };
static const struct pn_conf_cidrs nobody = { NULL, 0 };

static struct pn_peer
peer_of(const char *text)
{
	struct pn_peer peer = { .text = "" };

	if (text[0] != '\0')
		assert_int_equal(pn_peer_parse(pn_str_from(text), &peer), 0);
	return peer;
}

static const char *
forwarded(const struct pn_conf_cidrs *cidrs, const char *direct,
    const char *const *lines, struct pn_peer *peer)
{
	struct pn_header headers[8];
	struct pn_peer from = peer_of(direct);
	size_t count = 0;

	for (; lines[count] != NULL; count++)
		headers[count] = (struct pn_header){ PN_STR("x-forwarded-FOR"),
			pn_str_from(lines[count]) };
	pn_peer_forwarded(cidrs, &from, headers, count, peer);
	return peer->text;
}

#define FORWARDED(cidrs, direct, ...)                                        \
	forwarded(cidrs, direct, (const char *const[]){ __VA_ARGS__, NULL }, \
	    &(struct pn_peer){ .text = "" })

/* A client that writes the header itself is believed. */
static void
test_peer__forwarded_is_ignored_from_strangers(void **state)
{
	(void)state;
	assert_string_equal(
	    FORWARDED(&trusted, "203.0.113.9", "1.2.3.4"), "203.0.113.9");
	assert_string_equal(
	    FORWARDED(&nobody, "127.0.0.1", "1.2.3.4"), "127.0.0.1");
}

/* What the client put on the left wins over what the proxy saw. */
static void
test_peer__forwarded_is_read_from_the_right(void **state)
{
	(void)state;
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "6.6.6.6, 203.0.113.9"),
	    "203.0.113.9");
	assert_string_equal(FORWARDED(&trusted, "127.0.0.1",
				"6.6.6.6, 203.0.113.9 , 10.1.1.1,10.2.2.2"),
	    "203.0.113.9");
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "10.1.1.1, 10.2.2.2"), "10.1.1.1");
}

/* A proxy that adds a line of its own is overruled by the client's line. */
static void
test_peer__forwarded_lines_are_one_list(void **state)
{
	(void)state;
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "6.6.6.6", "203.0.113.9"),
	    "203.0.113.9");
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "203.0.113.9", "10.0.0.1"),
	    "203.0.113.9");
}

/* Rubbish in the header becomes the peer, or what stands left of it does. */
static void
test_peer__forwarded_stops_at_what_is_no_address(void **state)
{
	(void)state;
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "6.6.6.6, unknown"), "127.0.0.1");
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "6.6.6.6, _x, 10.9.9.9"),
	    "10.9.9.9");
	assert_string_equal(FORWARDED(&trusted, "127.0.0.1", ""), "127.0.0.1");
	assert_string_equal(
	    FORWARDED(&trusted, "127.0.0.1", "1.2.3.4,"), "127.0.0.1");
}

/* Behind a proxy on a unix socket every client is nobody. */
static void
test_peer__unix_socket_is_a_trusted_proxy(void **state)
{
	(void)state;
	assert_string_equal(
	    FORWARDED(&trusted, "", "6.6.6.6, 203.0.113.9"), "203.0.113.9");
	assert_string_equal(FORWARDED(&nobody, "", "203.0.113.9"), "");
}

/* The same client under two names: two buckets, two counts. */
static void
test_peer__forms_of_an_address_are_one(void **state)
{
	static const char *const same[] = { "192.0.2.7", "192.0.2.7:4711",
		"::ffff:192.0.2.7", "[::ffff:192.0.2.7]:80" };
	static const char *const bad[] = { "", "[", "[]", "[::1", "1.2.3",
		"1.2.3.4.5", "x", "1.2.3.4 ", "::1%lo", "999.1.1.1",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	struct pn_peer peer;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(same); i++)
		assert_string_equal(peer_of(same[i]).text, "192.0.2.7");
	assert_string_equal(peer_of("[2001:DB8::1]:443").text, "2001:db8::1");
	assert_string_equal(peer_of("2001:db8:0::1").text, "2001:db8::1");
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(pn_peer_parse(pn_str_from(bad[i]), &peer), 1);
	assert_int_equal(
	    pn_peer_parse((struct pn_str){ "1.2.3.4\0", 8 }, &peer), 1);
}

/* A dual-stack listener shows ::ffff:127.0.0.1, and the limit counts it. */
static void
test_peer__sockaddr_of_every_family(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr un = { .sa_family = AF_UNIX };
	struct pn_peer peer;

	(void)state;
	in.sin_addr.s_addr = htonl(0x7f000001);
	pn_peer_of_sockaddr((struct sockaddr *)&in, &peer);
	assert_string_equal(peer.text, "127.0.0.1");
	assert_true(pn_peer_is_loopback(&peer));
	assert_int_equal(
	    inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6.sin6_addr), 1);
	pn_peer_of_sockaddr((struct sockaddr *)&in6, &peer);
	assert_string_equal(peer.text, "127.0.0.1");
	assert_true(pn_peer_is_loopback(&peer));
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::5", &in6.sin6_addr), 1);
	pn_peer_of_sockaddr((struct sockaddr *)&in6, &peer);
	assert_string_equal(peer.text, "2001:db8::5");
	assert_false(pn_peer_is_loopback(&peer));
	pn_peer_of_sockaddr(&un, &peer);
	assert_string_equal(peer.text, "");
	assert_true(pn_peer_is_loopback(&peer));
	pn_peer_of_sockaddr(NULL, &peer);
	assert_string_equal(peer.text, "");
}

/* A customer's IPv6 network is 2^64 peers, each with its own allowance. */
static void
test_peer__ipv6_counts_by_network(void **state)
{
	struct pn_peer a = peer_of("2001:db8::1"), b = peer_of("2001:db8::2:3"),
		       c = peer_of("2001:db8:0:1::1"), d = peer_of("1.2.3.4"),
		       e = peer_of("1.2.3.5");
	unsigned char keys[5][16];

	(void)state;
	pn_peer_key(&a, keys[0]);
	pn_peer_key(&b, keys[1]);
	pn_peer_key(&c, keys[2]);
	pn_peer_key(&d, keys[3]);
	pn_peer_key(&e, keys[4]);
	assert_memory_equal(keys[0], keys[1], 16);
	assert_memory_not_equal(keys[0], keys[2], 16);
	assert_memory_not_equal(keys[3], keys[4], 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_peer__forwarded_is_ignored_from_strangers),
		cmocka_unit_test(test_peer__forwarded_is_read_from_the_right),
		cmocka_unit_test(test_peer__forwarded_lines_are_one_list),
		cmocka_unit_test(
		    test_peer__forwarded_stops_at_what_is_no_address),
		cmocka_unit_test(test_peer__unix_socket_is_a_trusted_proxy),
		cmocka_unit_test(test_peer__forms_of_an_address_are_one),
		cmocka_unit_test(test_peer__sockaddr_of_every_family),
		cmocka_unit_test(test_peer__ipv6_counts_by_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
