/*
 * The janitor: what must be done now and then, in a table of duties, each with
 * its period. Any number of janitors on one database do no harm.
 *
 * It has three hands, each a thread with a connection, that run the same loop
 * over their rows of the table. One does what a receiver may do and what must not
 * wait: leases must end in their second. One asks for the figures of the metrics,
 * which take all the time they are given when an old snapshot keeps the tables
 * from being cleaned. The third drops old partitions: as the owner of the tables,
 * and behind whoever still reads them. It connects only to work: a session that
 * idles for an hour serves nobody.
 *
 * A duty that the server refuses is told and comes again; the others go on. A
 * connection that is lost takes the hand's duties with it until there is a new
 * one, with back-off.
 *
 * What this does not do: decide anything. That is in the duties' files, and
 * where two janitors could meet, in the database.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

#include "janitor_internal.h"
#include "statements.h"

static const int64_t LOG_INTERVAL_US = 600 * PN_SECOND_US;
/* A start makes connections, each some of the server's time. Those of the writers
 * and the first notifications get a head start. */
static const int64_t FIRST_REST_US = 250 * PN_MILLISECOND_US;
/* A duty that was refused comes again after this, or its period if shorter. */
static const int64_t REFUSED_REST_MAX_US = 60 * PN_SECOND_US;
/* The owner's hand has time; and a wrong password is a line in the server's
 * log each time. */
static const int64_t OWNER_REST_MIN_US = 60 * PN_SECOND_US;
static const int64_t SNAPSHOT_LIMIT_US = 600 * PN_SECOND_US;

static int
tend(struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	(void)ret_rest_us;
	return pn_conn_exec(&hand->conn, pn_sql_tend, NULL, error);
}

static int
make_partitions(
    struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	(void)ret_rest_us;
	return pn_conn_exec(&hand->conn, pn_sql_partitions, NULL, error);
}

static const struct duty {
	const char *what; /* "janitor could not ..." */
	enum pn_hand_kind kind;
	int64_t period_us;
	pn_duty_fn run;
} duties[] = {
	[PN_DUTY_TEND] = { "end the leases of consumers", PN_HAND_RECEIVER,
	    PN_SECOND_US, tend },
	[PN_DUTY_KEYS] = { "move expired keys", PN_HAND_RECEIVER,
	    2 * PN_SECOND_US, pn_duty_keys },
	[PN_DUTY_PARTITIONS] = { "make partitions", PN_HAND_RECEIVER,
	    24 * 3600 * PN_SECOND_US, make_partitions },
	[PN_DUTY_SNAPSHOT] = { "look for old snapshots", PN_HAND_RECEIVER,
	    60 * PN_SECOND_US, pn_duty_snapshot },
	[PN_DUTY_FIGURES] = { "ask for the figures of the metrics",
	    PN_HAND_FIGURES, 15 * PN_SECOND_US, pn_duty_figures },
	[PN_DUTY_RETENTION] = { "drop old partitions", PN_HAND_OWNER,
	    3600 * PN_SECOND_US, pn_duty_retention },
};

static_assert(PN_COUNT(duties) == PN_DUTY_COUNT, "one row a duty");

static int
connect_hand(struct pn_hand *hand, struct pn_error *error)
{
	struct pn_janitor *janitor = hand->janitor;
	enum pn_store_health health;

	if (hand->conn.pg != NULL)
		return 0;
	if (hand->kind != PN_HAND_OWNER)
		return pn_session_open(
		    &hand->conn, janitor->store, &health, error);
	return pn_session_connect(&hand->conn, janitor->admin_dsn,
	    janitor->store->stop.fd, pn_sql_session, &health, error);
}

/* One turn of a duty. -errno: the connection is to be closed. */
static int
take_turn(struct pn_hand *hand, enum pn_duty number, struct pn_error *error)
{
	const struct duty *duty = &duties[number];
	int64_t rest_us = duty->period_us;
	int r;

	r = duty->run(hand, &rest_us, error);
	if (r < 0)
		return r;
	if (r > 0) {
		pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING,
		    &(struct pn_log_about){ .subject = duty->what },
		    "janitor could not %s: %s", duty->what, error->text);
		if (rest_us > REFUSED_REST_MAX_US)
			rest_us = REFUSED_REST_MAX_US;
	}
	hand->due_at_us[number] = pn_clock_monotonic_us() + rest_us;
	return 0;
}

/* All that is due. *ret_rest_us: until something is again. */
static int
work(struct pn_hand *hand, int64_t *ret_rest_us, struct pn_error *error)
{
	int64_t next_us = INT64_MAX, now_us;
	int r;

	r = connect_hand(hand, error);
	for (int i = 0; r == 0 && i < PN_DUTY_COUNT; i++) {
		if (duties[i].kind != hand->kind)
			continue;
		if (hand->due_at_us[i] <= pn_clock_monotonic_us())
			r = take_turn(hand, (enum pn_duty)i, error);
		if (hand->due_at_us[i] < next_us)
			next_us = hand->due_at_us[i];
	}
	if (r < 0)
		return r;
	assert(next_us < INT64_MAX);
	now_us = pn_clock_monotonic_us();
	*ret_rest_us = next_us > now_us ? next_us - now_us : 0;
	return 0;
}

static void
report_lost(const struct pn_hand *hand, const struct pn_error *error)
{
	bool owner = hand->kind == PN_HAND_OWNER;

	pn_log_every(LOG_INTERVAL_US, PN_LOG_WARNING,
	    &(struct pn_log_about){ .subject = owner ? "owner" : "janitor" },
	    "janitor could not work%s: %s", owner ? " as the owner" : "",
	    error->text);
}

static void *
hand_main(void *payload)
{
	struct pn_hand *hand = payload;
	struct pn_error error = { { 0 } };
	int64_t rest_us = FIRST_REST_US;
	int r;

	while (!pn_stop_wait(&hand->janitor->store->stop, rest_us)) {
		r = work(hand, &rest_us, &error);
		if (r < 0 || hand->kind == PN_HAND_OWNER)
			pn_conn_close(&hand->conn);
		if (r == 0) {
			hand->backoff.failures = 0;
			continue;
		}
		if (hand->kind == PN_HAND_FIGURES)
			pn_figures_forget(hand->janitor);
		rest_us = pn_backoff_next_us(&hand->backoff);
		if (hand->kind == PN_HAND_OWNER && rest_us < OWNER_REST_MIN_US)
			rest_us = OWNER_REST_MIN_US;
		if (r != -ECANCELED)
			report_lost(hand, &error);
	}
	pn_conn_close(&hand->conn);
	return NULL;
}

static int
start(struct pn_janitor *janitor, enum pn_hand_kind kind)
{
	struct pn_hand *hand = &janitor->hands[kind];
	int r;

	hand->janitor = janitor;
	hand->kind = kind;
	hand->conn = pn_conn_for(PN_METRIC_SESSION_JANITOR);
	hand->backoff.seed = (uint64_t)(uintptr_t)hand;
	r = -pthread_create(&hand->thread, NULL, hand_main, hand);
	hand->started = r == 0;
	return r;
}

int
pn_janitor_open(struct pn_store *store, const struct pn_store_options *options,
    struct pn_janitor **ret)
{
	struct pn_janitor *janitor = calloc(1, sizeof(*janitor));
	const char *dsn = options->admin_dsn;
	int r = 0;

	assert(options->receipts_us >= 0 && options->evidence_us >= 0);
	assert(options->snapshot_limit_us >= 0);
	if (janitor == NULL)
		return -ENOMEM;
	*ret = janitor; /* the store's now: it closes what has begun */
	janitor->store = store;
	janitor->receipts_us = options->receipts_us;
	janitor->evidence_us = options->evidence_us;
	janitor->snapshot_limit_us = options->snapshot_limit_us > 0
					 ? options->snapshot_limit_us
					 : SNAPSHOT_LIMIT_US;
	janitor->admin_dsn = strdup(dsn == NULL ? options->dsn : dsn);
	if (janitor->admin_dsn == NULL)
		r = -ENOMEM;
	if (r == 0 && options->janitor)
		r = start(janitor, PN_HAND_RECEIVER);
	if (r == 0 && options->figures)
		r = start(janitor, PN_HAND_FIGURES);
	if (r == 0 && options->janitor &&
	    (janitor->receipts_us > 0 || janitor->evidence_us > 0))
		r = start(janitor, PN_HAND_OWNER);
	return r;
}

/* The store's stop has been told. */
void
pn_janitor_close(struct pn_janitor *janitor)
{
	if (janitor == NULL)
		return;
	for (int i = 0; i < PN_HAND_COUNT; i++)
		if (janitor->hands[i].started)
			(void)pthread_join(janitor->hands[i].thread, NULL);
	pn_figures_forget(janitor);
	free(janitor->admin_dsn);
	free(janitor);
}
