/*
 * Request ids: UUIDs of version 7. 48 bits of milliseconds, then 74 random bits;
 * two requests of one millisecond collide with a chance of 2^-74.
 *
 * The random bytes come from the kernel, a third of a microsecond an id: below
 * one percent of a request, so there is no pool of them to keep per thread.
 */
#include <assert.h>

#include "paynotify/moment.h"

#include "ingest_internal.h"

void
pn_request_id_make(int64_t now_us, unsigned char ret_id[PN_REQUEST_ID_BYTES])
{
	uint64_t ms = (uint64_t)(now_us / PN_MILLISECOND_US);

	assert(now_us >= 0);
	static_assert(PN_REQUEST_ID_BYTES == 16, "a UUID");
	for (int i = 0; i < 6; i++)
		ret_id[i] = (unsigned char)(ms >> (40 - 8 * i));
	pn_random_bytes(ret_id + 6, PN_REQUEST_ID_BYTES - 6);
	ret_id[6] = (unsigned char)(0x70 | (ret_id[6] & 0x0f)); /* version */
	ret_id[8] = (unsigned char)(0x80 | (ret_id[8] & 0x3f)); /* variant */
}
