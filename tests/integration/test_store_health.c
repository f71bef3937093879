/*
 * What /readyz is told of a server that takes connections and no events, and of
 * writers that must write keys first.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "store_support.h"

static const int64_t SHORT_US = 300 * PN_MILLISECOND_US;

/* If it failed: /readyz would say that all is well while every provider is told
 * to come again, and nobody would know what to mend. */
static void
test_store__is_not_ready_while_nothing_is_recorded(void **state)
{
	static const char *const states[] = { "53100", "53200", "25006",
		"42501" };
	struct store_fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 2, SHORT_US);
	char text[512], trade[16];

	for (size_t i = 0; i < PN_COUNT(states); i++) {
		(void)snprintf(trade, sizeof(trade), "t%zu", i);
		(void)db(f->db,
		    "CREATE OR REPLACE FUNCTION public.refuse() RETURNS "
		    "trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
		    "'no space %%', '%s' USING ERRCODE = '%s'; END $$; "
		    "CREATE TRIGGER refuse BEFORE INSERT ON "
		    "paynotify.event_log FOR EACH ROW EXECUTE FUNCTION "
		    "public.refuse()",
		    states[i], states[i]);
		assert_int_equal(put(store, trade, 100), PN_STORE_UNAVAILABLE);
		/* Between two connections it is told all the same. */
		assert_true(pn_store_health(store, text, sizeof(text)) !=
			    PN_STORE_READY);
		assert_non_null(strstr(text, "no space"));
		assert_non_null(strstr(text, states[i]));
		(void)db(f->db, "DROP TRIGGER refuse ON paynotify.event_log");
		while (put(store, trade, 100) == PN_STORE_UNAVAILABLE)
			;
		assert_int_equal(
		    pn_store_health(store, text, sizeof(text)), PN_STORE_READY);
		assert_string_equal(text, "database is ready");
	}
	pn_store_close(store, PN_SECOND_US);
}

/* If it failed: one bad event, or a holder of locks elsewhere, would take a
 * daemon out of service that records all the others. */
static void
test_store__is_ready_whatever_one_event_meets(void **state)
{
	static const char *const states[] = { "22000", "55P03", "40001",
		"P0001" };
	struct store_fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 1, SHORT_US);
	char text[512], trade[16];

	for (size_t i = 0; i < PN_COUNT(states); i++) {
		(void)snprintf(trade, sizeof(trade), "t%zu", i);
		(void)db(f->db,
		    "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE "
		    "plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = "
		    "'%s'; END $$; CREATE TRIGGER refuse BEFORE INSERT ON "
		    "paynotify.event_log FOR EACH ROW EXECUTE FUNCTION "
		    "public.refuse()",
		    states[i]);
		assert_true(put(store, trade, 100) != PN_STORE_RECORDED);
		assert_int_equal(
		    pn_store_health(store, text, sizeof(text)), PN_STORE_READY);
		(void)db(f->db, "DROP FUNCTION public.refuse() CASCADE");
	}
	pn_store_close(store, PN_SECOND_US);
}

/* Adds a key whose fingerprint begins with that number. */
static void
add_key(struct pn_store *store, unsigned char number)
{
	struct pn_store_key key = { .fingerprint = { number }, .pem = "added" };

	assert_int_equal(pn_store_add_keys(store, &key, 1), 0);
}

static const char KEY[] = "INSERT INTO paynotify.verifying_keys VALUES "
			  "(set_byte(decode(repeat('00', 32), 'hex'), 0, %d))";
/* Sessions that wait for another's key, since later than the last mark. */
static const char WAITING[] =
    "SELECT count(*) FROM pg_stat_activity, public.mark WHERE "
    "wait_event_type = 'Lock' AND query LIKE '%%paynotify.verifying_keys%%' "
    "AND datname = current_database() AND query_start > mark.at";

/* If it failed: each reload with a new key, on a server that is slow to commit,
 * would drop all connections but one, and say that the database is away. */
static void
test_store__keeps_its_connection_while_others_write_its_keys(void **state)
{
	struct store_fixture *f = *state;
	int64_t reconnects = pn_metric_get(PN_METRIC_RECONNECTS);
	char text[512];
	struct note note;

	(void)db(f->db, "CREATE TABLE public.mark AS SELECT now() AS at");
	(void)db(f->other, "BEGIN");
	(void)db(f->other, KEY, 7);
	add_key(f->store, 7);
	note_init(&note, "a", 100);
	note_submit(f->store, &note);
	/* Once more: it has met the lock, and is back. */
	db_wait(f->db, 1, WAITING);
	(void)db(f->db, "UPDATE public.mark SET at = clock_timestamp()");
	db_wait(f->db, 1, WAITING);
	assert_int_equal(
	    pn_store_health(f->store, text, sizeof(text)), PN_STORE_READY);
	assert_false(note_is_done(&note));
	(void)db(f->other, "COMMIT");
	assert_int_equal(note_wait(&note), PN_STORE_RECORDED);
	note_done(&note);
	assert_int_equal(pn_metric_get(PN_METRIC_RECONNECTS), reconnects);
}

/* If it failed: nothing would be recorded, and /readyz would not say so. */
static void
test_store__is_not_ready_while_its_keys_cannot_be_written(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store *store = store_new(f->dsn, 1, SHORT_US);
	char text[512];

	(void)db(f->other, "BEGIN");
	(void)db(f->other, KEY, 8);
	add_key(store, 8);
	assert_int_equal(put(store, "a", 100), PN_STORE_UNAVAILABLE);
	while (pn_store_health(store, text, sizeof(text)) == PN_STORE_READY)
		(void)put(store, "a", 100);
	assert_non_null(strstr(text, "lock timeout"));
	(void)db(f->other, "COMMIT");
	while (put(store, "a", 100) == PN_STORE_UNAVAILABLE)
		;
	assert_int_equal(
	    pn_store_health(store, text, sizeof(text)), PN_STORE_READY);
	pn_store_close(store, PN_SECOND_US);
}

enum { MANY = 300 }; /* more than go into one statement */

static const char ADDED[] = "SELECT count(*) FROM paynotify.verifying_keys "
			    "WHERE pem = 'added'";

/* If it failed: evidence would refer to a key that is not there; or each reload
 * would send all keys of all accounts, over each connection. */
static void
test_store__writes_each_key_once_a_connection(void **state)
{
	struct store_fixture *f = *state;
	struct pn_store_key keys[MANY];

	for (int i = 0; i < MANY; i++)
		keys[i] = (struct pn_store_key){
			.fingerprint = { 1, (unsigned char)(i % 256),
			    (unsigned char)(i / 256) },
			.pem = "added",
		};
	/* Some are known by then. */
	for (int i = 0; i <= MANY; i += MANY / 3)
		assert_int_equal(
		    pn_store_add_keys(f->store, keys, (size_t)i), 0);
	assert_int_equal(put(f->store, "a", 100), PN_STORE_RECORDED);
	assert_int_equal(db(f->db, ADDED), MANY);
	(void)db(f->db, "DELETE FROM paynotify.verifying_keys "
			"WHERE pem = 'added'");
	add_key(f->store, 2);
	assert_int_equal(pn_store_add_keys(f->store, keys, MANY), 0);
	assert_int_equal(put(f->store, "b", 100), PN_STORE_RECORDED);
	assert_int_equal(db(f->db, ADDED), 1);
	/* The next server may not have them. */
	(void)db(f->db,
	    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	    "WHERE datname = current_database() AND "
	    "application_name = 'paynotifyd'");
	assert_true(put(f->store, "c", 100) != PN_STORE_UNAVAILABLE);
	db_wait(f->db, MANY + 1, ADDED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__is_not_ready_while_nothing_is_recorded),
		TEST(test_store__is_ready_whatever_one_event_meets),
		TEST(
		    test_store__keeps_its_connection_while_others_write_its_keys),
		TEST(test_store__is_not_ready_while_its_keys_cannot_be_written),
		TEST(test_store__writes_each_key_once_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
