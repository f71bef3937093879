/*
 * The set of event ids (16 bytes, half a SHA-256 of tenant, route and key) that
 * are with a writer now: a key stands at most once in a batch and with at most
 * one writer. Fixed size, no allocation; the caller holds the store's lock.
 */
#ifndef PN_STORE_KEYSET_H
#define PN_STORE_KEYSET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/limits.h"

enum {
	PN_KEYSET_ID_BYTES = 16,
	PN_KEYSET_SLOTS = 8192, /* a power of two */
};
static_assert(PN_WRITERS_MAX * PN_BATCH_EVENTS_MAX * 2 <= PN_KEYSET_SLOTS,
    "the set is never more than half full");

struct pn_keyset {
	struct pn_keyset_slot {
		bool used;
		unsigned char id[PN_KEYSET_ID_BYTES];
	} slots[PN_KEYSET_SLOTS];
	unsigned count;
};

bool pn_keyset_has(
    const struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);
/* Adding what is there, or removing what is not, does nothing. */
void pn_keyset_add(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);
void pn_keyset_remove(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);

#endif
