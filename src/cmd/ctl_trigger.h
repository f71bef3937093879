/*
 * A run of `trigger`, between its two files: ctl_trigger.c prepares and sums up,
 * ctl_delivery.c sends. Private to src/cmd.
 */
#ifndef PN_CTL_TRIGGER_H
#define PN_CTL_TRIGGER_H

#include "ctl_list.h"
#include "ctl_send.h"

#include <pthread.h>

#include "paynotify/key.h"

struct ctl_run {
	struct ctl *ctl;
	struct ctl_target target;
	char path[PN_PATH_BYTES_MAX];
	struct pn_private_key *sign_key; /* NULL: the account's */
	uint64_t seed;
	uint64_t total;
	bool to_folder;

	pthread_mutex_t lock; /* of all below, and of stdout */
	uint64_t next;
	int64_t group_now_us; /* of the notification that next belongs to */
	uint64_t sent, succeeded;
	struct ctl_progress progress; /* of sent */
	bool stop;
};

/* Makes the first sample and throws it away: what cannot be made is told before
 * anything is sent. CTL_DONE; CTL_USAGE when there is no such event, oddity or
 * the like; CTL_REFUSED when the account has not what it takes. */
int ctl_run_try(const struct ctl_run *run) PN_MUSTCHECK;

/* Makes every delivery of the run; counts and tells as it goes. */
void ctl_run_deliver(struct ctl_run *run);

#endif
