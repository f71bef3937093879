/*
 * What the deliverer's tests share: a database with a store, a sink, and a
 * deliverer between them.
 */
#ifndef PN_TEST_DELIVER_SUPPORT_H
#define PN_TEST_DELIVER_SUPPORT_H

#include "paynotify/deliver.h"
#include "paynotify/moment.h"

#include "sink.h"
#include "store_support.h"

/* A secret of the specification's own example. */
#define TEST_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

struct push_fixture {
	struct store_fixture *base;
	PGconn *db; /* base's */
	struct pn_store *store;
	struct sink *sink, *other_sink;
	struct pn_conf_deliver endpoints[2]; /* "app", "other" */
	struct pn_conf conf;                 /* of the first, at first */
	struct pn_deliver *deliver;          /* not open */
};

int push_setup(void **state);
/* Closes what is open. */
int push_teardown(void **state);

/* conf and more as they are. */
void push_open(struct push_fixture *f);
void push_close(struct push_fixture *f, int64_t grace_us);

/* SQL about app's deliveries. */
#define APP                                                      \
	"FROM paynotify.deliveries WHERE consumer_id = (SELECT " \
	"id FROM paynotify.consumers WHERE name = 'app') "
#define APP_COUNT "SELECT count(*) " APP
/* All that wait for their time are due now. */
void push_make_due(struct push_fixture *f);

#endif
