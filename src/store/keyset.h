/*
 * The set of event ids (16 bytes, half a SHA-256 of tenant, route and key) that
 * are with a writer now or reserved for one: a key stands at most once in a
 * batch and with at most one writer. Fixed size, no allocation; the caller
 * holds the store's lock.
 */
#ifndef PN_STORE_KEYSET_H
#define PN_STORE_KEYSET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "paynotify/limits.h"

enum {
	PN_KEYSET_ID_BYTES = 16,
	PN_KEYSET_SLOTS = 65536, /* a power of two */
};
/* All that waits may be reserved, and all writers may be at work. */
static_assert(
    (PN_QUEUE_EVENTS_MAX + PN_WRITERS_MAX * PN_BATCH_EVENTS_MAX) * 2 <=
	PN_KEYSET_SLOTS,
    "the set is never more than half full");

struct pn_keyset {
	struct pn_keyset_slot {
		bool used;
		bool held;       /* somebody elsewhere has it locked */
		bool wanted;     /* a notification in the queue waits for it */
		uint8_t waiting; /* how many were told to, while held */
		unsigned char id[PN_KEYSET_ID_BYTES];
	} slots[PN_KEYSET_SLOTS];
	unsigned count;
};

/* Its slot, NULL when it is not there. Good until the next removal. */
struct pn_keyset_slot *pn_keyset_find(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);
/* Adding what is there, or removing what is not, does nothing. */
void pn_keyset_add(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);
void pn_keyset_remove(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES]);

#endif
