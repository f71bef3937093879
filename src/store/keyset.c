/*
 * Open addressing with linear probing. Ids are digests, so their first bytes
 * are the hash. Removal moves later members back instead of leaving marks: the
 * set is as fast after a year as on the first day.
 *
 * What this deliberately does not do: grow. Its size follows from the limits.
 */
#include "keyset.h"

#include <string.h>

static unsigned
home(const unsigned char *id)
{
	uint32_t hash;

	memcpy(&hash, id, sizeof(hash));
	return hash & (PN_KEYSET_SLOTS - 1);
}

/* The slot of id, or the free one where it would go. */
static unsigned
find(const struct pn_keyset *set, const unsigned char *id)
{
	unsigned i = home(id);

	assert(set->count <= PN_KEYSET_SLOTS / 2);
	while (set->slots[i].used &&
	       memcmp(set->slots[i].id, id, PN_KEYSET_ID_BYTES) != 0)
		i = (i + 1) & (PN_KEYSET_SLOTS - 1);
	return i;
}

struct pn_keyset_slot *
pn_keyset_find(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES])
{
	struct pn_keyset_slot *slot = &set->slots[find(set, id)];

	return slot->used ? slot : NULL;
}

void
pn_keyset_add(struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES])
{
	struct pn_keyset_slot *slot = &set->slots[find(set, id)];

	if (slot->used)
		return;
	*slot = (struct pn_keyset_slot){ .used = true };
	memcpy(slot->id, id, PN_KEYSET_ID_BYTES);
	set->count++;
}

void
pn_keyset_remove(
    struct pn_keyset *set, const unsigned char id[PN_KEYSET_ID_BYTES])
{
	unsigned hole = find(set, id), i = hole, distance;

	if (!set->slots[hole].used)
		return;
	for (;;) { /* ends at a free slot: half of them are */
		i = (i + 1) & (PN_KEYSET_SLOTS - 1);
		if (!set->slots[i].used)
			break;
		/* May this one move back to the hole, or would it then stand
		 * before its home? */
		distance = (i - home(set->slots[i].id)) & (PN_KEYSET_SLOTS - 1);
		if (distance >= ((i - hole) & (PN_KEYSET_SLOTS - 1))) {
			set->slots[hole] = set->slots[i];
			hole = i;
		}
	}
	set->slots[hole].used = false;
	set->count--;
}
