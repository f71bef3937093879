/*
 * What operators do about deliveries: each action, and each refusal with its
 * text.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/deliveries.h"
#include "paynotify/moment.h"

#include "handoff_support.h"

enum { MANY = 1203 }; /* more than two pages */

struct fixture {
	struct store_fixture *store;
	PGconn *db; /* of store */
	struct pn_handoff *handoff;
	struct pn_query *query, *reader;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct pn_error error = { { 0 } };
	void *store = NULL;

	assert_non_null(f);
	(void)store_fixture_setup(&store);
	f->store = store;
	f->db = f->store->db;
	f->handoff = handoff_new(f->store->dsn, "app");
	assert_int_equal(
	    pn_query_open_writable(f->store->dsn, &f->query, &error), 0);
	assert_int_equal(pn_query_open(f->store->dsn, &f->reader, &error), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	void *store = f->store;

	pn_query_close(f->query);
	pn_query_close(f->reader);
	pn_handoff_close(f->handoff);
	(void)store_fixture_teardown(&store);
	free(f);
	return 0;
}

static void
record(struct fixture *f, const char *trade)
{
	assert_int_equal(put(f->store->store, trade, 100), PN_STORE_RECORDED);
}

/* What it was done to. */
static int64_t
act(struct fixture *f, struct pn_action action)
{
	struct pn_error error = { { 0 } };
	int64_t count = -1;

	action.consumer = action.consumer == NULL ? "app" : action.consumer;
	action.actor = "ann";
	action.reason = "because";
	if (pn_query_act(f->query, &action, &count, &error) != 0)
		fail_msg("%s", error.text);
	return count;
}

/* It must be refused, and the text say this; what there is not is told from
 * what cannot be done. */
static void
refuse(struct fixture *f, struct pn_action action, const char *text)
{
	struct pn_error error = { { 0 } };
	int64_t count = -1;
	int acted =
	    pn_str_starts(pn_str_from(text), "there is no consumer") ||
		    pn_str_starts(pn_str_from(text), "there is no event")
		? PN_ACT_UNKNOWN
		: PN_ACT_REFUSED;

	action.consumer = action.consumer == NULL ? "app" : action.consumer;
	if (action.actor == NULL)
		action.actor = "ann";
	if (action.reason == NULL)
		action.reason = "because";
	assert_int_equal(
	    pn_query_act(f->query, &action, &count, &error), acted);
	assert_int_equal(count, 0);
	if (strstr(error.text, text) == NULL)
		fail_msg("\"%s\" says not \"%s\"", error.text, text);
}

/* If it failed: an operator could not send again what an endpoint lost, or
 * nobody would know who did and why. */
static void
test_delivery_acts__redelivers_one_or_all_that_are_dead(void **state)
{
	struct fixture *f = *state;
	struct claims claims;

	record(f, "a");
	record(f, "b");
	record(f, "c");
	handoff_kill_one(f->handoff, "app");
	handoff_kill_one(f->handoff, "app");
	assert_int_equal(act(f,
			     (struct pn_action){
				 .action = PN_ACTION_REDELIVER,
				 .state = "dead",
			     }),
	    2);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions WHERE "
		      "action = 'redeliver' AND actor = 'ann' AND reason = "
		      "'because' AND seq IN (1, 2)"),
	    2);
	handoff_take_some(f->handoff, "app", 3, &claims);
	assert_true(claims.results[0].redelivery);
	assert_int_equal(claims.results[0].attempt, 1);
	assert_false(claims.results[2].redelivery);
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE);
	/* Done long ago, too. */
	assert_int_equal(act(f,
			     (struct pn_action){
				 .action = PN_ACTION_REDELIVER,
				 .event = "3",
			     }),
	    1);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(claims.seqs[0], 3);
}

/* If it failed: a mass redelivery would stop after its first page, or never. */
static void
test_delivery_acts__acts_on_any_number_in_a_state(void **state)
{
	struct fixture *f = *state;
	struct pn_action action = { .state = "retry" };

	(void)db(f->db,
	    "WITH e AS (INSERT INTO paynotify.event_log (received_at, id, "
	    "receipt_id, livemode, type, provider, tenant, key, request_hash) "
	    "SELECT now(), gen_random_uuid(), gen_random_uuid(), true, 'x', "
	    "'alipay', 'shop1', 'k' || i, '' FROM generate_series(1, %d) i "
	    "RETURNING seq, received_at) INSERT INTO paynotify.deliveries "
	    "(consumer_id, seq, received_at, state, attempts, retry_at) SELECT "
	    "c.id, e.seq, e.received_at, 'retry', 1, 'infinity' FROM e, "
	    "paynotify.consumers c",
	    MANY);
	/* They stay in the state. */
	action.action = PN_ACTION_REDELIVER;
	assert_int_equal(act(f, action), MANY);
	action.action = PN_ACTION_SKIP;
	assert_int_equal(act(f, action), MANY);
	assert_int_equal(act(f, action), 0);
}

/* If it failed: an event that can never be taken would hold back its order for
 * ever. */
static void
test_delivery_acts__skip_lets_the_order_go_on(void **state)
{
	struct fixture *f = *state;
	struct pn_action skip = { .action = PN_ACTION_SKIP };
	struct claims claims, next;

	record_order(f->store->store, "a");
	handoff_take_some(f->handoff, "app", 1, &claims);
	skip.event = "webhook:alipay:a";
	assert_int_equal(act(f, skip), 1);
	handoff_take_some(f->handoff, "app", 1, &next);
	assert_non_null(strstr(next.json, "refund.succeeded"));
	/* Whoever had it has lost it. */
	assert_int_equal(
	    handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE), 1);
	refuse(f, skip, "there is nothing to skip");
}

/* If it failed: to skip what failed would skip what waited behind it, too,
 * though nobody has tried that yet. */
static void
test_delivery_acts__acts_on_none_that_it_wakes(void **state)
{
	struct fixture *f = *state;
	struct pn_action skip = { .action = PN_ACTION_SKIP, .state = "retry" };
	struct claims claims;
	struct note note;

	note_init(&note, "a", 100);
	note_add_refund(&note, "a", "r1");
	note_add_refund(&note, "a", "r2");
	note_submit(f->store->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	handoff_take_some(f->handoff, "app", 1, &claims);
	claims.results[0].retry_after_us = 3600 * PN_SECOND_US;
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_RETRY);
	assert_int_equal(act(f, skip), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions WHERE "
		      "action = 'skip'"),
	    1);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(claims.seqs[0], 2);
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(claims.seqs[0], 3);
}

/* If it failed: an event that is never claimed, or that hangs with a worker,
 * could not be got out of the way. */
static void
test_delivery_acts__skips_what_is_new_or_leased(void **state)
{
	struct fixture *f = *state;
	struct pn_action skip = { .action = PN_ACTION_SKIP, .event = "1" };
	struct claims claims;

	record(f, "a");
	record(f, "b");
	assert_int_equal(act(f, skip), 1);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(claims.seqs[0], 2);
	skip.event = "2";
	assert_int_equal(act(f, skip), 1);
	assert_int_equal(
	    handoff_settle(f->handoff, &claims, PN_DELIVERY_DONE), 1);
}

static int
count_attempt(const struct pn_attempt_row *row, void *payload)
{
	assert_true(pn_str_is(row->consumer, "(removed)"));
	++*(int *)payload;
	return 0;
}

static int
no_delivery(const struct pn_delivery_row *row, void *payload)
{
	(void)payload;
	assert_int_equal(row->consumer.len, 0);
	return 0;
}

static int
count_action(const struct pn_action_row *row, void *payload)
{
	assert_true(pn_str_is(row->consumer, "(removed)"));
	++*(int *)payload;
	return 0;
}

/* If it failed: an application that is no more would be a backlog for ever, or
 * what was tried would be forgotten with it. */
static void
test_delivery_acts__removes_a_consumer_and_keeps_the_record(void **state)
{
	struct fixture *f = *state;
	struct pn_action remove = { .action = PN_ACTION_REMOVE };
	struct pn_error error = { { 0 } };
	int attempts = 0, actions = 0;
	struct claims claims;

	record(f, "a");
	record(f, "b");
	handoff_kill_one(f->handoff, "app");
	assert_int_equal(act(f, (struct pn_action){ .action = PN_ACTION_SKIP,
				    .event = "1" }),
	    1);
	handoff_take_some(f->handoff, "app", 1, &claims);
	refuse(f, remove, "\"app\" has events in hand: Stop it");
	(void)handoff_settle(f->handoff, &claims, PN_DELIVERY_DEAD);
	assert_int_equal(act(f, remove), 1);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.consumers"), 0);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions WHERE "
		      "action = 'remove' AND actor = 'ann' AND reason = "
		      "'app: because'"),
	    1);
	refuse(f, remove, "there is no consumer \"app\"");
	assert_int_equal(pn_query_delivery(f->reader, "1", no_delivery,
			     count_attempt, &attempts, &error),
	    0);
	assert_int_equal(attempts, 1);
	assert_int_equal(
	    pn_query_actions(f->reader, 1, count_action, &actions, &error), 0);
	assert_int_equal(actions, 1);
}

/* If it failed: an operator could not stop a consumer, or start it again. */
static void
test_delivery_acts__pauses_and_resumes_a_consumer(void **state)
{
	struct fixture *f = *state;
	struct claims claims = { 0 };

	record(f, "a");
	assert_int_equal(
	    act(f, (struct pn_action){ .action = PN_ACTION_PAUSE }), 1);
	assert_int_equal(
	    handoff_take(f->handoff, "app", 9, &claims), PN_HANDOFF_HELD);
	assert_int_equal(
	    act(f, (struct pn_action){ .action = PN_ACTION_RESUME }), 1);
	handoff_take_some(f->handoff, "app", 1, &claims);
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions WHERE "
		      "action IN ('pause', 'resume') AND actor = 'ann'"),
	    2);
}

/* If it failed: something would be done that an operator did not mean, or he
 * would not know why it is not, and what to do. */
static void
test_delivery_acts__refuses_and_says_why(void **state)
{
	struct fixture *f = *state;
	struct pn_action again = { .action = PN_ACTION_REDELIVER };
	struct pn_action pause = { .action = PN_ACTION_PAUSE };
	struct claims claims;
	struct note note;

	record_order(f->store->store, "a");
	again.event = "1";
	refuse(f, again, "not been claimed by \"app\" yet: ");
	handoff_take_some(f->handoff, "app", 1, &claims);
	refuse(f, again, "handed off at this moment: Its lease ends at 20");
	again.event = "2";
	refuse(f, again, "waits for an earlier event");
	again.event = "webhook:alipay:b";
	refuse(f, again, "there is no event \"webhook:alipay:b\"");
	again.consumer = pause.consumer = "nobody";
	again.event = "1";
	refuse(f, again, "there is no consumer \"nobody\"");
	refuse(f, pause, "there is no consumer \"nobody\"");
	again.consumer = NULL;
	again.reason = "";
	refuse(f, again, "a reason is needed");
	again.reason = NULL;
	again.event = NULL;
	again.state = "done";
	refuse(f, again, "no delivery is \"done\"");
	/* The same key in another tenant. */
	note_init(&note, "a", 100);
	note.submission.tenant = note.events[0].tenant = PN_STR("shop2");
	pn_event_seal(&note.events[0]);
	note_submit(f->store->store, &note);
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	again.state = NULL;
	again.event = "webhook:alipay:a";
	refuse(f, again, "2 tenants have an event");
	assert_int_equal(
	    db(f->db, "SELECT count(*) FROM paynotify.delivery_actions"), 0);
}

/* If it failed: an operator whose session may not write would be told that his
 * event is at fault; or reading commands could write. */
static void
test_delivery_acts__tells_a_refusal_from_a_fault(void **state)
{
	struct fixture *f = *state;
	struct pn_action pause = { .action = PN_ACTION_PAUSE,
		.consumer = "app",
		.actor = "ann",
		.reason = "because" };
	struct pn_error error = { { 0 } };
	int64_t count;

	assert_true(pn_query_act(f->reader, &pause, &count, &error) < 0);
	assert_non_null(strstr(error.text, "read-only"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_delivery_acts__redelivers_one_or_all_that_are_dead),
		TEST(test_delivery_acts__acts_on_any_number_in_a_state),
		TEST(test_delivery_acts__skip_lets_the_order_go_on),
		TEST(test_delivery_acts__acts_on_none_that_it_wakes),
		TEST(test_delivery_acts__skips_what_is_new_or_leased),
		TEST(
		    test_delivery_acts__removes_a_consumer_and_keeps_the_record),
		TEST(test_delivery_acts__pauses_and_resumes_a_consumer),
		TEST(test_delivery_acts__refuses_and_says_why),
		TEST(test_delivery_acts__tells_a_refusal_from_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
