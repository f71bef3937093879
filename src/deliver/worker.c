/*
 * The deliverer's database thread. One round:
 *
 *   take what the client has finished  ->  judge it
 *   no connection?                     ->  connect, when it is time
 *   settle what is judged              ->  room
 *   claim for each endpoint with room  ->  send
 *   wait: for a NOTIFY, for the client, for the next time something is due
 *
 * Nothing in it sleeps for a fixed time: an event that is recorded while all is
 * quiet is claimed with the NOTIFY and sent at once; under load, what finished
 * while a statement ran is settled by the next one, so batches grow as far as
 * the database is slow and no further.
 *
 * Endpoints take turns: each claims at most PN_CLAIM_AT_ONCE a round, the first
 * is another one each time, and what a slow one holds are its own
 * max_in_flight attempts, never this thread.
 *
 * Sent is only what can be answered while the lease lasts. The lease counts
 * from before the claim was asked for, by our own clock, so it ends here before
 * it ends in the database. A claim that took too long is handed back unsent.
 *
 * When the database is away, attempts in flight end and wait here; the thread
 * connects again with back-off and says what is wrong when that changes, not
 * each time it tries.
 *
 * An attempt that this host had no descriptor, memory or thread for is none: it
 * counts neither for its event nor for the breaker.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "paynotify/digest.h"
#include "paynotify/log.h"

#include "deliver_internal.h"

static const int64_t POLL_US = PN_SECOND_US; /* for what is due by the clock */
static const int64_t REGISTER_AGAIN_US = 30 * PN_SECOND_US;
static const int64_t HOST_PAUSE_US = PN_SECOND_US;
static const int64_t LOG_INTERVAL_US = 60 * PN_SECOND_US;

static uint32_t
random_bits(void)
{
	uint32_t bits;

	pn_random_bytes(&bits, sizeof(bits));
	return bits;
}

/* -- what the client has finished ------------------------------------------- */

static void
tell_breaker(struct pn_attempt *attempt, enum pn_verdict verdict)
{
	struct pn_endpoint *e = attempt->endpoint;
	const struct pn_client_request *request = &attempt->request;
	bool alive = pn_schedule_is_alive(request->end, request->status);

	/* These tell nothing of its health. */
	if (request->end == PN_CLIENT_STOPPED ||
	    attempt->outcome == PN_DELIVERY_BACK ||
	    verdict == PN_VERDICT_DISABLE) {
		pn_breaker_forget(&e->breaker, attempt->generation);
		return;
	}
	switch (pn_breaker_result(&e->breaker, attempt->generation, alive,
	    pn_clock_monotonic_us(), random_bits())) {
	case PN_BREAKER_UNCHANGED: break;
	case PN_BREAKER_OPENED:
		pn_log_warning("endpoint \"%s\" fails: its events wait, one "
			       "at a time tries it: %s",
		    e->conf->name, attempt->error);
		break;
	case PN_BREAKER_CLOSES:
		pn_log_notice("endpoint \"%s\" works again", e->conf->name);
		break;
	}
}

/* What this host lacks - descriptors, memory - is no attempt: the event goes
 * back, and its endpoint is left alone for a while. */
static void
hold_back(const struct pn_attempt *attempt)
{
	attempt->endpoint->hold_us = pn_clock_monotonic_us() + HOST_PAUSE_US;
	pn_log_every(LOG_INTERVAL_US, PN_LOG_ERR,
	    &(struct pn_log_about){ .subject = attempt->endpoint->conf->name },
	    "no events are pushed to endpoint \"%s\", this host lacks what it "
	    "needs, they wait: %s",
	    attempt->endpoint->conf->name, attempt->error);
}

static void
log_attempt(const struct pn_attempt *attempt)
{
	const struct pn_client_request *request = &attempt->request;
	const struct pn_log_about about = {
		.tenant = attempt->tenant,
		.subject = attempt->endpoint->conf->name,
	};

	pn_log(PN_LOG_DEBUG, &about,
	    "attempt %d to push event \"%s\": status %d after %" PRId64
	    " us%s%s",
	    attempt->attempt, attempt->event_id, request->status,
	    request->elapsed_us, attempt->error[0] == '\0' ? "" : ": ",
	    attempt->error);
}

static void
collect(struct pn_deliver *d)
{
	struct pn_attempts finished;
	struct pn_attempt *attempt;
	enum pn_verdict verdict;
	uint64_t wakes;

	/* Emptied before the list is looked at: a later wake is not lost. */
	(void)!read(d->wake_fd, &wakes, sizeof(wakes));
	pn_attempts_init(&finished);
	pthread_mutex_lock(&d->lock);
	if (d->finished.first != NULL) {
		finished = d->finished; /* moved */
		pn_attempts_init(&d->finished);
	}
	pthread_mutex_unlock(&d->lock);
	while ((attempt = pn_attempts_take(&finished)) != NULL) {
		assert(d->sent_count > 0);
		d->sent_count--;
		verdict = pn_attempt_judge(attempt, random_bits());
		if (verdict == PN_VERDICT_DISABLE)
			attempt->endpoint->gone = true;
		if (attempt->request.host_fault)
			hold_back(attempt);
		log_attempt(attempt);
		tell_breaker(attempt, verdict);
		pn_attempts_add(&d->pending, attempt);
	}
}

/* -- claims ----------------------------------------------------------------- */

struct claim {
	struct pn_deliver *deliver;
	struct pn_endpoint *endpoint;
	int64_t lease_end_us;
	struct pn_attempts attempts;
};

static int
on_claimed(const struct pn_claimed *claimed, void *payload)
{
	struct claim *claim = payload;
	struct pn_attempt *attempt = pn_attempt_new(
	    claim->deliver, claim->endpoint, claimed, claim->lease_end_us);

	if (attempt == NULL)
		return -ENOMEM;
	pn_attempts_add(&claim->attempts, attempt);
	return 0;
}

static void
send_claimed(struct pn_deliver *d, struct claim *claim)
{
	struct pn_endpoint *e = claim->endpoint;
	struct pn_attempt *attempt;
	int64_t until_us;
	bool closing = pn_deliver_is_closing(d, &until_us);

	while ((attempt = pn_attempts_take(&claim->attempts)) != NULL) {
		e->in_flight++;
		assert(e->in_flight <= (unsigned)e->conf->max_in_flight);
		if (closing || pn_clock_monotonic_us() + e->conf->timeout_us >
				   attempt->lease_end_us) {
			attempt->outcome = PN_DELIVERY_BACK;
			pn_attempts_add(&d->pending, attempt);
			continue;
		}
		attempt->generation = pn_breaker_sent(&e->breaker);
		d->sent_count++;
		pn_client_send(d->client, &attempt->request);
	}
}

/* Says once that there is nothing to be had, and once that there is again. */
static void
note_held(struct pn_endpoint *e, bool held)
{
	if (held && !e->held)
		pn_log_notice("endpoint \"%s\" is paused or disabled: nothing "
			      "is pushed to it",
		    e->conf->name);
	if (!held && e->held)
		pn_log_notice("endpoint \"%s\" is resumed", e->conf->name);
	e->held = held;
}

/* By an operator, while its section is here: the configuration counts. */
static void
note_removed(struct pn_endpoint *e, int64_t now_us)
{
	pn_log_warning(
	    "the consumer of endpoint \"%s\" was removed, and [deliver "
	    "%s] is still in the configuration: it is registered "
	    "anew, and is sent all events from its start on once "
	    "more",
	    e->conf->name, e->conf->name);
	e->registered = false;
	e->next_us = now_us + POLL_US;
}

static int
claim_for(struct pn_deliver *d, struct pn_endpoint *e, int64_t now_us,
    struct pn_error *error)
{
	unsigned room = pn_endpoint_room(e, now_us);
	int64_t lease_us = pn_endpoint_lease_us(e);
	struct claim claim = { d, e, now_us + lease_us, { 0 } };
	struct pn_attempt *attempt;
	int r;

	if (room == 0)
		return 0;
	assert(lease_us >= e->conf->timeout_us + PN_LEASE_MARGIN_US);
	pn_attempts_init(&claim.attempts);
	r = pn_handoff_claim(d->handoff, e->conf->name, (int)room, lease_us,
	    on_claimed, &claim, error);
	if (r < 0) {
		/* Whether they are leased is unknown: they come back. */
		while ((attempt = pn_attempts_take(&claim.attempts)) != NULL)
			pn_attempt_free(attempt);
		if (r == -ENOENT)
			note_removed(e, now_us);
		return r == -ENOENT ? 0 : r;
	}
	assert(claim.attempts.count <= room);
	note_held(e, r == PN_HANDOFF_HELD);
	e->wanted = claim.attempts.count == room;
	e->next_us = now_us + POLL_US;
	send_claimed(d, &claim);
	return 0;
}

static int
register_endpoint(struct pn_deliver *d, struct pn_endpoint *e, int64_t now_us,
    struct pn_error *error)
{
	int r = pn_handoff_put_endpoint(d->handoff, e->conf, error);

	if (r < 0)
		return r;
	e->registered = r == 0;
	e->next_us = now_us + REGISTER_AGAIN_US;
	if (r > 0 && !e->refused)
		pn_log_err("endpoint \"%s\" is not pushed to: %s",
		    e->conf->name, error->text);
	e->refused = r > 0;
	return 0;
}

/* None any more once it is closing: its configuration is an old one. */
static int
claim_all(struct pn_deliver *d, struct pn_error *error)
{
	struct pn_endpoint *e;
	int64_t now_us, until_us;
	int r = 0;

	d->turn++;
	for (size_t i = 0; i < d->endpoint_count && r == 0; i++) {
		if (pn_deliver_is_closing(d, &until_us))
			break;
		e = &d->endpoints[(d->turn + i) % d->endpoint_count];
		now_us = pn_clock_monotonic_us();
		if (pn_endpoint_due_us(e) > now_us)
			continue;
		if (!e->registered)
			r = register_endpoint(d, e, now_us, error);
		if (r == 0 && e->registered)
			r = claim_for(d, e, now_us, error);
	}
	return r;
}

/* -- the connection --------------------------------------------------------- */

static void
register_again(struct pn_deliver *d)
{
	bool wanted;

	pthread_mutex_lock(&d->lock);
	wanted = d->register_again;
	d->register_again = false;
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; wanted && i < d->endpoint_count; i++) {
		d->endpoints[i].registered = false;
		d->endpoints[i].next_us = 0;
	}
}

static int
connect_database(struct pn_deliver *d, struct pn_error *error)
{
	int r = pn_handoff_open(d->dsn, d->abort_fd, &d->handoff, error);

	if (r != 0)
		return r < 0 ? r : -EIO;
	for (size_t i = 0; i < d->endpoint_count; i++) {
		d->endpoints[i].registered = false;
		/* Another server may have another state, and nobody resumed
		 * anything: it is told anew. */
		d->endpoints[i].held = false;
		d->endpoints[i].wanted = true;
		d->endpoints[i].next_us = 0;
	}
	return 0;
}

static void
connection_works(struct pn_deliver *d)
{
	if (d->said[0] != '\0')
		pn_log_notice("events are pushed again");
	d->said[0] = '\0';
	d->failures = 0;
}

static void
connection_failed(struct pn_deliver *d, int r, const struct pn_error *error)
{
	pn_handoff_close(d->handoff);
	d->handoff = NULL;
	d->failures++;
	d->connect_at_us = pn_clock_monotonic_us() +
			   pn_schedule_reconnect_us(d->failures, random_bits());
	if (r == -ECANCELED || strcmp(d->said, error->text) == 0)
		return;
	(void)snprintf(d->said, sizeof(d->said), "%s", error->text);
	pn_log_warning("no events are pushed: %s", error->text);
}

/* -- the loop --------------------------------------------------------------- */

static void
work(struct pn_deliver *d)
{
	struct pn_error error = { { 0 } };
	int r = 0;

	if (d->handoff == NULL) {
		if (pn_clock_monotonic_us() < d->connect_at_us)
			return;
		r = connect_database(d, &error);
	}
	if (r == 0)
		r = pn_deliver_settle(d, &error);
	register_again(d);
	if (r == 0)
		r = claim_all(d, &error);
	if (r == 0)
		connection_works(d);
	else
		connection_failed(d, r, &error);
}

/* How long there is nothing to do unless someone calls. */
static int64_t
idle_us(struct pn_deliver *d)
{
	int64_t due_us = INT64_MAX, now_us = pn_clock_monotonic_us(), until_us;

	if (pn_deliver_is_closing(d, &until_us))
		due_us = until_us;
	else
		for (size_t i = 0; i < d->endpoint_count; i++)
			if (pn_endpoint_due_us(&d->endpoints[i]) < due_us)
				due_us = pn_endpoint_due_us(&d->endpoints[i]);
	if (d->handoff == NULL)
		due_us = d->connect_at_us;
	if (due_us <= now_us)
		return 0;
	return due_us - now_us < POLL_US ? due_us - now_us : POLL_US;
}

static void
wait_for_work(struct pn_deliver *d)
{
	struct pollfd fd = { .fd = d->wake_fd, .events = POLLIN };
	struct pn_error error = { { 0 } };
	int64_t us = idle_us(d);
	int r;

	if (d->handoff == NULL) {
		(void)poll(&fd, 1, (int)((us + 999) / 1000));
		return;
	}
	r = pn_handoff_wait(d->handoff, d->wake_fd, us, &error);
	if (r < 0) {
		connection_failed(d, r, &error);
		return;
	}
	if ((r & PN_HANDOFF_NOTIFIED) != 0)
		for (size_t i = 0; i < d->endpoint_count; i++)
			d->endpoints[i].wanted = true;
}

static bool
is_over(struct pn_deliver *d)
{
	int64_t until_us;

	return pn_deliver_is_closing(d, &until_us) &&
	       (d->sent_count == 0 || pn_clock_monotonic_us() >= until_us);
}

/* Ends what is still in flight and settles as long as the time allows. */
static void
wind_up(struct pn_deliver *d)
{
	struct pollfd fd = { .fd = d->abort_fd, .events = POLLIN };
	struct pn_attempt *attempt;
	int64_t us = 0;

	pn_client_close(d->client);
	d->client = NULL;
	collect(d);
	assert(d->sent_count == 0);
	while (d->pending.first != NULL &&
	       poll(&fd, 1, (int)((us + 999) / 1000)) == 0) {
		work(d);
		us = d->connect_at_us - pn_clock_monotonic_us();
		if (d->handoff != NULL || us < 0)
			us = 0;
	}
	if (d->pending.count > 0)
		pn_log_warning("%zu attempts to push events could not be "
			       "settled: these events may be pushed twice",
		    d->pending.count);
	while ((attempt = pn_attempts_take(&d->pending)) != NULL)
		pn_deliver_settle_drop(attempt);
	pn_handoff_close(d->handoff);
	d->handoff = NULL;
}

void
pn_worker_main(struct pn_deliver *d)
{
	/* Linux: of this thread. Not allowed, it runs as it is. */
	(void)setpriority(PRIO_PROCESS, 0, PN_DELIVER_NICE);
	collect(d);
	while (!is_over(d)) {
		work(d);
		wait_for_work(d);
		collect(d);
	}
	wind_up(d);
}
