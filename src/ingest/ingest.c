/*
 * The pipeline as a whole: which accounts it serves now, and what outlives them
 * (the store, the gates of its log lines).
 *
 * A reload exchanges the accounts under load. A request looks for its route in
 * the set that is current when its head is there, and holds a reference to that
 * set from then on: what verifies it, what renders its reply and what its receipt
 * says are of one configuration. The lock is held for no longer than it takes to
 * count one more: looking is done without it. Closing an old set is left to who
 * has exchanged it.
 */
#include "paynotify/ingest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "ingest_internal.h"

int
pn_ingest_open(struct pn_accounts *accounts, struct pn_ingest **ret_ingest,
    struct pn_error *ret_error)
{
	struct pn_ingest *ingest = calloc(1, sizeof(*ingest));

	if (ingest == NULL || pthread_mutex_init(&ingest->lock, NULL) != 0) {
		free(ingest);
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	}
	ingest->accounts = pn_accounts_ref(accounts);
	*ret_ingest = ingest;
	return 0;
}

void
pn_ingest_close(struct pn_ingest *ingest)
{
	if (ingest == NULL)
		return;
	pn_accounts_unref(ingest->accounts);
	(void)pthread_mutex_destroy(&ingest->lock);
	free(ingest);
}

void
pn_ingest_set_store(struct pn_ingest *ingest, struct pn_store *store)
{
	ingest->store = store;
}

void
pn_ingest_set_statuses(
    struct pn_ingest *ingest, unsigned (*status_of)(enum pn_outcome outcome))
{
	ingest->status_of = status_of;
}

struct pn_accounts *
pn_ingest_exchange(struct pn_ingest *ingest, struct pn_accounts *accounts)
{
	struct pn_accounts *old;

	(void)pn_accounts_ref(accounts);
	pthread_mutex_lock(&ingest->lock);
	old = ingest->accounts;
	ingest->accounts = accounts;
	pthread_mutex_unlock(&ingest->lock);
	return old;
}

void
pn_ingest_warn_certificates(struct pn_ingest *ingest, int64_t now_us)
{
	struct pn_accounts *accounts;

	if (ingest == NULL)
		return;
	pthread_mutex_lock(&ingest->lock);
	accounts = pn_accounts_ref(ingest->accounts);
	pthread_mutex_unlock(&ingest->lock);
	pn_accounts_warn_certificates(accounts, now_us);
	pn_accounts_unref(accounts);
}

/* -- routing ----------------------------------------------------------------------- */

const struct pn_route *
pn_ingest_route(struct pn_ingest *ingest, struct pn_str path)
{
	struct pn_accounts *accounts;
	const struct pn_route *route;

	pthread_mutex_lock(&ingest->lock);
	accounts = pn_accounts_ref(ingest->accounts);
	pthread_mutex_unlock(&ingest->lock);
	route = pn_accounts_route(accounts, path);
	if (route == NULL)
		pn_accounts_unref(accounts);
	else
		assert(route->accounts == accounts); /* its reference now */
	return route;
}

void
pn_route_unref(const struct pn_route *route)
{
	if (route != NULL)
		pn_accounts_unref(route->accounts);
}

bool
pn_ingest_admits(const struct pn_route *route, struct pn_str peer)
{
	const struct pn_conf_cidrs *allow = &route->conf->allow;

	/* Of trusted proxies a unix socket is one, but what is behind it is
	 * nobody that a list could name. */
	return allow->count == 0 ||
	       (peer.len > 0 && pn_conf_cidrs_match(allow, peer));
}
