/*
 * The memory of one request: a bump allocator over a list of chunks.
 *
 * The arena itself stands at the head of its first chunk, so that a request of
 * the usual size costs one malloc and one free. The first chunk has room for a
 * notification of a few kB with its decoded form, its event and its reply;
 * glibc keeps blocks of that size in its lists, so it is never given back to
 * the kernel between requests. Later chunks double.
 *
 * Invariants: used <= size in every chunk; bytes_taken, what all chunks hold
 * for the caller, never exceeds bytes_max. What is given out is aligned for
 * any type and zero. On free exactly the used bytes are cleansed: cleansing
 * whole chunks would cost more than the parsing.
 *
 * It deliberately frees nothing on its own and runs no destructors: objects
 * with a life of their own (json_t, contexts of libraries) are freed by the
 * function that made them.
 */
#include "paynotify/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_CHUNK_BYTES = 16 << 10,
	CHUNK_BYTES_MAX = 1 << 20, /* past this chunks no longer double */
	ALIGNMENT = alignof(max_align_t),
};

struct chunk {
	struct chunk *older;
	size_t size, used; /* of data */
	alignas(max_align_t) char data[];
};

struct pn_arena {
	struct chunk *newest;
	size_t bytes_taken, bytes_max;
};

static_assert(
    FIRST_CHUNK_BYTES > sizeof(struct chunk) + sizeof(struct pn_arena),
    "the arena lives in its first chunk");

static size_t
aligned(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static struct chunk *
chunk_new(size_t size, struct chunk *older)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk == NULL)
		return NULL;
	chunk->older = older;
	chunk->size = size;
	chunk->used = 0;
	return chunk;
}

struct pn_arena *
pn_arena_new(size_t bytes_max)
{
	struct chunk *chunk =
	    chunk_new(FIRST_CHUNK_BYTES - sizeof(struct chunk), NULL);
	struct pn_arena *arena;

	if (chunk == NULL)
		return NULL;
	arena = (struct pn_arena *)(void *)chunk->data;
	chunk->used = aligned(sizeof(*arena));
	arena->newest = chunk;
	arena->bytes_taken = 0;
	arena->bytes_max = bytes_max;
	return arena;
}

void
pn_arena_free(struct pn_arena *arena)
{
	struct chunk *chunk, *older;

	if (arena == NULL)
		return;
	/* The oldest chunk, freed last, is the one that holds the arena. */
	for (chunk = arena->newest; chunk != NULL; chunk = older) {
		assert(chunk->used <= chunk->size);
		older = chunk->older;
		explicit_bzero(chunk->data, chunk->used);
		free(chunk);
	}
}

void
pn_arena_freep(struct pn_arena **arena)
{
	pn_arena_free(*arena);
	*arena = NULL;
}

/* A chunk with room for bytes; the older ones stay as they are. */
static struct chunk *
grow(struct pn_arena *arena, size_t bytes)
{
	size_t size = arena->newest->size * 2;
	struct chunk *chunk;

	if (size > CHUNK_BYTES_MAX)
		size = CHUNK_BYTES_MAX;
	if (size < bytes)
		size = bytes;
	chunk = chunk_new(size, arena->newest);
	if (chunk != NULL)
		arena->newest = chunk;
	return chunk;
}

/* Not zeroed: for what is written over at once. */
static void *
take(struct pn_arena *arena, size_t bytes)
{
	struct chunk *chunk = arena->newest;
	void *taken;

	assert(arena->bytes_taken <= arena->bytes_max);
	if (bytes > arena->bytes_max - arena->bytes_taken)
		return NULL;
	bytes = aligned(bytes == 0 ? 1 : bytes);
	/* Rounding up may pass the maximum by less than one alignment. */
	if (bytes > arena->bytes_max - arena->bytes_taken)
		return NULL;
	if (bytes > chunk->size - chunk->used) {
		chunk = grow(arena, bytes);
		if (chunk == NULL)
			return NULL;
	}
	taken = chunk->data + chunk->used;
	chunk->used += bytes;
	arena->bytes_taken += bytes;
	assert(chunk->used <= chunk->size);
	return taken;
}

void *
pn_arena_alloc(struct pn_arena *arena, size_t bytes)
{
	void *taken = take(arena, bytes);

	if (taken != NULL)
		memset(taken, 0, bytes);
	return taken;
}

struct pn_str
pn_arena_copy(struct pn_arena *arena, struct pn_str s)
{
	char *copy = s.len == SIZE_MAX ? NULL : take(arena, s.len + 1);

	if (copy == NULL)
		return (struct pn_str){ NULL, 0 };
	if (s.len > 0)
		memcpy(copy, s.data, s.len);
	copy[s.len] = '\0';
	return (struct pn_str){ copy, s.len };
}

struct pn_str
pn_arena_printf(struct pn_arena *arena, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return (struct pn_str){ NULL, 0 };
	text = take(arena, (size_t)len + 1);
	if (text == NULL)
		return (struct pn_str){ NULL, 0 };
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return (struct pn_str){ text, (size_t)len };
}
