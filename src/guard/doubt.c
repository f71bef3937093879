/*
 * Claims of which it is not known whether they were committed: the connection
 * was lost in their COMMIT, and commit_timeout had passed before the database
 * was back. The client got 503, and nothing was sent. If the key is ours after
 * all it is leased to nobody; but whoever claims it under the same token has
 * it. So the token is kept for the client's retry, which would find the key
 * busy until the lease ends otherwise.
 *
 * A ring: as many as a statement can lose, and the oldest gives way. One that
 * is not here (it gave way, this process was restarted, another daemon gets the
 * retry) costs the wait for the lease, nothing else. A token is taken out by
 * the claim that goes under it, so that two never do at a time. And it is of no
 * use once half of the lease is over: what is left must do for the upstream's
 * first third, until the first renewal. A claim under a token that was taken
 * from here may have found nothing out either; then the lease is still that of
 * the claim that was lost first, and the token goes back with its time.
 */
#include <string.h>

#include "flight.h"

void
pn_doubts_put(struct pn_doubts *doubts, const struct pn_flight *flight)
{
	struct pn_doubt *doubt =
	    &doubts->ring[doubts->next++ % PN_COUNT(doubts->ring)];

	memcpy(doubt->digest, flight->digest, sizeof(doubt->digest));
	memcpy(doubt->hash, flight->hash, sizeof(doubt->hash));
	memcpy(doubt->token, flight->claim.token, sizeof(doubt->token));
	/* The lease began when it was claimed, or later; of a token that was
	 * taken, when it was first claimed. */
	doubt->until_us =
	    flight->in_doubt
		? flight->doubt_until_us
		: flight->since_us + flight->claim.terms->lease_us / 2;
	if (doubt->until_us > doubts->until_us)
		doubts->until_us = doubt->until_us;
}

void
pn_doubts_take(
    struct pn_doubts *doubts, struct pn_flight *flight, int64_t now_us)
{
	struct pn_doubt *doubt = doubts->ring;

	if (doubts->until_us <= now_us)
		return; /* as nearly always */
	for (; doubt < doubts->ring + PN_COUNT(doubts->ring); doubt++)
		if (doubt->until_us > now_us &&
		    memcmp(doubt->digest, flight->digest,
			sizeof(doubt->digest)) == 0 &&
		    memcmp(doubt->hash, flight->hash, sizeof(doubt->hash)) == 0)
			break;
	if (doubt == doubts->ring + PN_COUNT(doubts->ring))
		return;
	flight->in_doubt = true;
	flight->doubt_until_us = doubt->until_us;
	memcpy(flight->claim.token, doubt->token, sizeof(doubt->token));
	doubt->until_us = 0;
}
