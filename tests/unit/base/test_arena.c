/*
 * The arena. If these fail, requests overwrite each other's bytes or a hostile
 * one takes all memory.
 */
#include "paynotify/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Two objects that share bytes, or one that is not zero. */
static void
test_arena__gives_zeroed_aligned_disjoint_memory(void **state)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(1 << 20);
	unsigned char *blocks[200];
	size_t len;

	(void)state;
	assert_non_null(arena);
	for (size_t i = 0; i < 200; i++) {
		len = i * 7;
		blocks[i] = pn_arena_alloc(arena, len);
		assert_non_null(blocks[i]);
		assert_int_equal(
		    (uintptr_t)blocks[i] % alignof(max_align_t), 0);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(blocks[i][k], 0);
		memset(blocks[i], (int)i, len);
	}
	for (size_t i = 0; i < 200; i++) {
		for (size_t k = 0; k < i * 7; k++)
			assert_int_equal(blocks[i][k], i);
	}
}

/* One request that holds more than its share. */
static void
test_arena__stops_at_its_maximum(void **state)
{
	PN_CLEANUP(pn_arena_freep) struct pn_arena *arena = pn_arena_new(4096);

	(void)state;
	assert_null(pn_arena_alloc(arena, SIZE_MAX));
	assert_null(pn_arena_alloc(arena, 4097));
	assert_non_null(pn_arena_alloc(arena, 2048));
	assert_non_null(pn_arena_alloc(arena, 2048));
	assert_null(pn_arena_alloc(arena, 1));
	assert_null(pn_arena_copy(arena, PN_STR("x")).data);
	assert_null(pn_arena_printf(arena, "x").data);
}

/* A value larger than a chunk is cut or refused. */
static void
test_arena__takes_a_block_larger_than_a_chunk(void **state)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(8 << 20);
	char *small = pn_arena_alloc(arena, 10), *large;

	(void)state;
	assert_non_null(small);
	large = pn_arena_alloc(arena, 3 << 20);
	assert_non_null(large);
	memset(large, 1, 3 << 20);
	assert_int_equal(small[9], 0);
	assert_non_null(pn_arena_alloc(arena, 100));
}

/* A copy without its NUL, or one that stops at a NUL. */
static void
test_arena__copies_bytes_and_adds_nul(void **state)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(1 << 20);
	struct pn_str copy = pn_arena_copy(arena, PN_STR("a\0b"));

	(void)state;
	assert_int_equal(copy.len, 3);
	assert_memory_equal(copy.data, "a\0b", 4);
	copy = pn_arena_copy(arena, (struct pn_str){ NULL, 0 });
	assert_non_null(copy.data);
	assert_int_equal(copy.len, 0);
	copy = pn_arena_printf(arena, "%s:%d", "x", 42);
	assert_int_equal(copy.len, 4);
	assert_string_equal(copy.data, "x:42");
	pn_arena_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_arena__gives_zeroed_aligned_disjoint_memory),
		cmocka_unit_test(test_arena__stops_at_its_maximum),
		cmocka_unit_test(test_arena__takes_a_block_larger_than_a_chunk),
		cmocka_unit_test(test_arena__copies_bytes_and_adds_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
