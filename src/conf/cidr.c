/*
 * Address blocks: of trusted proxies, of who may notify. IPv4 lives in ::ffff:0:0/96, so that one
 * comparison serves both families and a v4-mapped peer is found too.
 */
#include "conf_internal.h"

#include <arpa/inet.h>
#include <assert.h>

#include "paynotify/parse.h"

enum {
	ADDRESS_BITS = 128,
	MAPPED_BITS = 96, /* in front of an IPv4 address */
	MAPPED_BYTES = MAPPED_BITS / 8,
};

static const unsigned char mapped[MAPPED_BYTES] = { [10] = 0xff, [11] = 0xff };

static int
address_parse(struct pn_str text, unsigned char ret_address[16], bool *ret_v4)
{
	char copy[INET6_ADDRSTRLEN];
	unsigned char v4[4], v6[16];

	if (text.len == 0 || text.len >= sizeof(copy) ||
	    memchr(text.data, '\0', text.len) != NULL)
		return 1;
	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	if (inet_pton(AF_INET, copy, v4) == 1) {
		memcpy(ret_address, mapped, sizeof(mapped));
		memcpy(ret_address + sizeof(mapped), v4, sizeof(v4));
		*ret_v4 = true;
		return 0;
	}
	if (inet_pton(AF_INET6, copy, v6) != 1)
		return 1;
	memcpy(ret_address, v6, sizeof(v6));
	*ret_v4 = false;
	return 0;
}

int
conf_cidr_parse(struct pn_str text, struct pn_conf_cidr *ret_block)
{
	struct pn_str rest = text, address = pn_str_split(&rest, '/');
	struct pn_conf_cidr block;
	uint64_t bits;
	bool v4;

	if (address_parse(address, block.address, &v4) != 0)
		return 1;
	bits = v4 ? 32 : ADDRESS_BITS;
	if (rest.data != NULL && pn_parse_uint(rest, bits, &bits) != 0)
		return 1;
	block.bits = (unsigned)bits + (v4 ? MAPPED_BITS : 0);
	*ret_block = block;
	return 0;
}

static bool
block_holds(const struct pn_conf_cidr *block, const unsigned char address[16])
{
	unsigned bytes = block->bits / 8, bits = block->bits % 8;

	assert(block->bits <= ADDRESS_BITS);
	if (memcmp(block->address, address, bytes) != 0)
		return false;
	return bits == 0 ||
	       (block->address[bytes] ^ address[bytes]) >> (8 - bits) == 0;
}

bool
pn_conf_cidrs_match(const struct pn_conf_cidrs *cidrs, struct pn_str address)
{
	unsigned char bytes[16];
	bool v4;

	if (address.len == 0)
		return cidrs->count > 0;
	if (address_parse(address, bytes, &v4) != 0)
		return false;
	for (size_t i = 0; i < cidrs->count; i++)
		if (block_holds(&cidrs->blocks[i], bytes))
			return true;
	return false;
}
