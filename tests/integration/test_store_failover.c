/*
 * Several hosts in the DSN: when the first one goes, the store goes on with the
 * next. Run by run.sh with PN_SECOND_SERVER=yes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/migrate.h"
#include "paynotify/moment.h"

#include "store_support.h"

static const char *
env(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail_msg("%s is not set: see tests/integration/run.sh", name);
	return value;
}

static void
migrate_host(const char *host, char ret_dsn[DSN_BYTES])
{
	struct pn_error error;

	(void)snprintf(ret_dsn, DSN_BYTES,
	    "host=%s user=paynotify "
	    "dbname=postgres",
	    host);
	if (pn_migrate(ret_dsn, NULL, NULL, &error) < 0)
		fail_msg("%s", error.text);
}

/* If it failed: a failover of the database would need a restart of every
 * daemon. */
static void
test_store__goes_on_with_the_next_host(void **state)
{
	char first[DSN_BYTES], second[DSN_BYTES], both[2 * DSN_BYTES];
	struct pn_store *store;
	PGconn *db_second;

	(void)state;
	migrate_host(env("PN_FIRST_HOST"), first);
	migrate_host(env("PN_SECOND_HOST"), second);
	(void)snprintf(both, sizeof(both),
	    "host=%s,%s user=paynotify "
	    "dbname=postgres target_session_attrs=read-write",
	    env("PN_FIRST_HOST"), env("PN_SECOND_HOST"));
	store = store_new(both, 2, 15 * PN_SECOND_US);
	assert_int_equal(put(store, "a", 100), PN_STORE_RECORDED);
	db_second = db_open(second);
	assert_int_equal(db(db_second, "SELECT count(*) FROM "
				       "paynotify.events"),
	    0);
	assert_int_equal(system(env("PN_STOP_FIRST")), 0);
	/* Not a standby that was fed: what matters is where it goes. */
	assert_int_equal(put(store, "b", 100), PN_STORE_RECORDED);
	assert_int_equal(
	    db(db_second, "SELECT count(*) FROM "
			  "paynotify.events WHERE key = 'webhook:alipay:b'"),
	    1);
	PQfinish(db_second);
	pn_store_close(store, PN_SECOND_US);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store__goes_on_with_the_next_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
