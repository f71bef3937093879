/*
 * Is the server alive: do its threads return from what they began?
 *
 * Each thread that handles a request has a number of its own in a slot for as
 * long as it is in there. Who looks, now and then, remembers the slots: a number
 * that is still there has been handled since the last look. Handlers do not block,
 * so between two looks that are seconds apart that is a deadlock, or a loop that
 * does not end. The connection watchdog, which takes the mutex that every
 * connection passes by, must have ticked too. No clock is read: a machine that was
 * paused is not taken for a dead one.
 *
 * It deliberately does not ask whether requests are answered: without a database
 * none is, and a restart would not help. Nor does it connect to itself: under a
 * flood it would wait like everybody else, and be taken for dead.
 */
#include <assert.h>

#include "http_internal.h"

size_t
pn_alive_enter(struct pn_alive *alive)
{
	uint64_t number = atomic_fetch_add_explicit(
			      &alive->numbers, 1, memory_order_relaxed) +
			  1;

	for (size_t i = 0; i < PN_ALIVE_SLOTS; i++) {
		uint64_t empty = 0;

		if (atomic_compare_exchange_strong_explicit(&alive->slots[i],
			&empty, number, memory_order_relaxed,
			memory_order_relaxed))
			return i;
	}
	return PN_ALIVE_SLOTS; /* more threads than slots: not looked at */
}

void
pn_alive_leave(struct pn_alive *alive, size_t slot)
{
	assert(slot <= PN_ALIVE_SLOTS);
	if (slot < PN_ALIVE_SLOTS)
		atomic_store_explicit(
		    &alive->slots[slot], 0, memory_order_relaxed);
}

bool
pn_alive_look(struct pn_alive *alive)
{
	bool moves = true;

	for (size_t i = 0; i < PN_ALIVE_SLOTS; i++) {
		uint64_t number = atomic_load_explicit(
		    &alive->slots[i], memory_order_relaxed);

		if (number != 0 && number == alive->seen[i])
			moves = false;
		alive->seen[i] = number;
	}
	return moves;
}

bool
pn_server_is_alive(struct pn_server *server)
{
	bool moves = pn_alive_look(&server->alive);

	return pn_watch_has_ticked(server->watch) && moves;
}
