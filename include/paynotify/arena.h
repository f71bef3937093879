/*
 * One arena a request: everything a request needs is taken from it and freed
 * at once when both the connection and the store are done with it.
 *
 * Not thread-safe: one thread at a time fills it. Reading what it holds from
 * another thread is fine after a hand-over with a barrier (mutex, atomic).
 */
#ifndef PN_ARENA_H
#define PN_ARENA_H

#include <stddef.h>

#include "paynotify/compiler.h"
#include "paynotify/str.h"

struct pn_arena;

/* bytes_max: the most it ever takes. NULL when memory is out. */
struct pn_arena *pn_arena_new(size_t bytes_max) PN_MUSTCHECK;
/* Frees all it gave out, cleansed first (it may hold decrypted text). */
void pn_arena_free(struct pn_arena *arena);
void pn_arena_freep(struct pn_arena **arena); /* for PN_CLEANUP */

/* Zeroed, aligned for any type. NULL when memory or the maximum is out. */
void *pn_arena_alloc(struct pn_arena *arena, size_t bytes) PN_MUSTCHECK;
/* A copy with a NUL behind it. data NULL when memory is out. */
struct pn_str pn_arena_copy(struct pn_arena *arena, struct pn_str s);
struct pn_str pn_arena_printf(struct pn_arena *arena, const char *fmt, ...)
    PN_PRINTF(2, 3);

#endif
