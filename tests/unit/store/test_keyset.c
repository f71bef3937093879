/*
 * The set of keys in flight against a plain list, through many additions and
 * removals: also where ids collide and removals move members.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keyset.h"

enum { IDS = 400, STEPS = 200000 };

/* Ids whose first bytes, the hash, are the same for many. */
static void
make_id(unsigned number, unsigned char id[PN_KEYSET_ID_BYTES])
{
	uint32_t hash = number % 7 == 0 ? PN_KEYSET_SLOTS - 2 : number % 40;

	memset(id, 0, PN_KEYSET_ID_BYTES);
	memcpy(id, &hash, sizeof(hash));
	memcpy(id + 8, &number, sizeof(number));
}

/* If it failed: a key could be with two writers at once, or never be taken
 * again. */
static void
test_keyset__knows_what_is_in_it(void **state)
{
	struct pn_keyset *set = calloc(1, sizeof(*set));
	unsigned char id[PN_KEYSET_ID_BYTES];
	bool in[IDS] = { false };
	uint64_t random = 1;
	unsigned number, count = 0;

	(void)state;
	assert_non_null(set);
	for (int step = 0; step < STEPS; step++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		number = (unsigned)(random >> 33) % IDS;
		make_id(number, id);
		assert_int_equal(pn_keyset_find(set, id) != NULL, in[number]);
		if ((random >> 63) != 0) {
			pn_keyset_add(set, id);
			count += !in[number];
			in[number] = true;
		} else {
			pn_keyset_remove(set, id);
			count -= in[number];
			in[number] = false;
		}
		assert_int_equal(set->count, count);
	}
	for (unsigned i = 0; i < IDS; i++) {
		make_id(i, id);
		assert_int_equal(pn_keyset_find(set, id) != NULL, in[i]);
	}
	free(set);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keyset__knows_what_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
