/*
 * The queue and the end of a stay with a writer, without a database: what a
 * writer is given, and when one is woken, step by step.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/moment.h"

#include "store_internal.h"
#include "store_support.h"

enum { NOTES = 4 };

/* A store with one writer that the test plays, and one that sleeps. */
struct fixture {
	struct pn_store store;
	struct pn_writer writer;
	struct note notes[NOTES];
	struct pn_submission *a, *copy, *b, *c;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->writer.store = &f->store;
	f->store.idle = 1;
	pthread_mutex_init(&f->store.lock, NULL);
	assert_int_equal(pn_cond_init(&f->store.work), 0);
	assert_int_equal(pn_cond_init(&f->store.drained), 0);
	pn_queue_init(&f->store.queue);
	note_init(&f->notes[0], "a", 100);
	note_init(&f->notes[1], "a", 100);
	note_init(&f->notes[2], "b", 100);
	note_init(&f->notes[3], "c", 100);
	for (int i = 0; i < NOTES; i++)
		f->notes[i].submission.deadline_us = 10 + i;
	f->a = &f->notes[0].submission;
	f->copy = &f->notes[1].submission;
	f->b = &f->notes[2].submission;
	f->c = &f->notes[3].submission;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < NOTES; i++)
		note_done(&f->notes[i]);
	pthread_mutex_destroy(&f->store.lock);
	pthread_cond_destroy(&f->store.work);
	pthread_cond_destroy(&f->store.drained);
	free(f);
	return 0;
}

static void
append(struct fixture *f, struct pn_submission *s)
{
	pn_queue_append(&f->store.queue, s);
	f->store.outstanding++;
}

/* Takes a batch; how many are in it, and the first. */
static size_t
take(struct fixture *f, struct pn_submission **ret_first)
{
	int64_t retry_at_us;

	pn_batch_reset(&f->writer.batch);
	pn_queue_take(&f->store.queue, &f->writer.batch, 1, &retry_at_us);
	for (size_t i = 0; i < f->writer.batch.count; i++)
		f->writer.sent[f->writer.sent_count++] =
		    f->writer.batch.members[i];
	*ret_first =
	    f->writer.batch.count == 0 ? NULL : f->writer.batch.members[0];
	return f->writer.batch.count;
}

/* If it failed: the next copy of a key that is locked elsewhere would go into
 * company, and hold that up as the first one did. */
static void
test_queue__copies_of_a_held_key_never_go_in_company(void **state)
{
	struct fixture *f = *state;
	struct pn_queue *queue = &f->store.queue;
	struct pn_submission *first;

	append(f, f->a);
	append(f, f->copy);
	assert_int_equal(take(f, &first), 1);
	assert_ptr_equal(first, f->a);
	f->a->alone = true; /* it timed out on a lock */
	f->a->retry_at_us = 5;
	pn_settle_one(&f->writer, f->a, PN_FATE_BACK);
	append(f, f->b);
	assert_int_equal(take(f, &first), 1);
	assert_ptr_equal(first, f->b);
	pn_settle_one(&f->writer, f->b, PN_FATE_DONE);
	/* Its time: it does not block itself. */
	f->a->retry_at_us = 0;
	assert_int_equal(take(f, &first), 1);
	assert_ptr_equal(first, f->a);
	f->a->retry_at_us = 5;
	pn_settle_one(&f->writer, f->a, PN_FATE_BACK);
	assert_int_equal(take(f, &first), 0);
	/* It expires: the copy is next, and by itself. */
	assert_ptr_equal(pn_queue_take_expired(queue, 10), f->a);
	append(f, f->c);
	queue->alone_is_next = true;
	assert_int_equal(take(f, &first), 1);
	assert_ptr_equal(first, f->copy);
	assert_true(f->copy->alone);
	pn_settle_one(&f->writer, f->copy, PN_FATE_DONE);
	/* Nothing is left behind. */
	assert_int_equal(take(f, &first), 1);
	assert_ptr_equal(first, f->c);
	assert_int_equal(queue->in_flight.count, 1);
	pn_settle_one(&f->writer, f->c, PN_FATE_DONE);
	assert_int_equal(queue->in_flight.count, 0);
	assert_int_equal(queue->weight, 0);
	assert_int_equal(queue->alone_count, 0);
}

/* If it failed: what a writer gives back before it waits for a new connection
 * would lie there although another writer has nothing to do. */
static void
test_settle__wakes_for_what_goes_back_or_becomes_free(void **state)
{
	struct fixture *f = *state;
	struct pn_submission *first;

	append(f, f->a);
	assert_int_equal(take(f, &first), 1);
	pn_settle_one(&f->writer, f->a, PN_FATE_BACK);
	assert_int_equal(f->store.woken, 1);
	f->store.idle = 1;
	f->store.woken = 0;
	/* Nobody waits for it: nobody is woken. */
	assert_int_equal(take(f, &first), 1);
	append(f, f->b);
	pn_settle_one(&f->writer, f->a, PN_FATE_DONE);
	assert_int_equal(f->store.woken, 0);
	assert_int_equal(take(f, &first), 1);
	pn_settle_one(&f->writer, f->b, PN_FATE_DONE);
	assert_int_equal(f->store.woken, 0);
	/* A copy waits for it. */
	note_done(&f->notes[3]);
	note_init(&f->notes[3], "a", 100);
	append(f, f->copy);
	append(f, f->c);
	assert_int_equal(take(f, &first), 1);
	assert_int_equal(take(f, &first), 0);
	pn_settle_one(&f->writer, f->copy, PN_FATE_DONE);
	assert_int_equal(f->store.woken, 1);
}

/* If it failed: a notification that meets locks or lost connections would be
 * given up before its time, or one that loses race after race never. */
static void
test_settle__only_lost_races_are_counted(void **state)
{
	struct fixture *f = *state;
	struct pn_submission *first;

	append(f, f->a);
	for (int i = 0; i < 10 * PN_RACES_MAX; i++) {
		assert_int_equal(take(f, &first), 1);
		pn_settle_one(&f->writer, f->a, PN_FATE_BACK);
	}
	assert_false(note_is_done(&f->notes[0]));
	assert_int_equal(take(f, &first), 1);
	f->a->attempts = PN_RACES_MAX + 1;
	pn_settle_one(&f->writer, f->a, PN_FATE_BACK);
	assert_int_equal(note_wait(&f->notes[0]), PN_STORE_UNAVAILABLE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_queue__copies_of_a_held_key_never_go_in_company),
		TEST(test_settle__wakes_for_what_goes_back_or_becomes_free),
		TEST(test_settle__only_lost_races_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
