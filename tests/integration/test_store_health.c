/*
 * What /readyz is told of a server that takes connections and no events.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                       \
	cmocka_unit_test_setup_teardown( \
	    name, store_fixture_setup, store_fixture_teardown)
		TEST(test_store__is_not_ready_while_nothing_is_recorded),
		TEST(test_store__is_ready_whatever_one_event_meets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
