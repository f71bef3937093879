/*
 * What may be given to an endpoint, and when it is worth asking for more; and
 * that a wrong secret is found before the start.
 */
#include "deliver_internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char good[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
static char bad[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZg==";
static char name[] = "app", url[] = "http://localhost/", path[] = "app.secret";

static struct pn_conf_file
file_of(char *text, int line)
{
	return (struct pn_conf_file){
		.path = path,
		.place = { "a.conf", line },
		.content = { (unsigned char *)text, strlen(text) },
	};
}

static struct pn_conf_deliver
deliver_of(struct pn_conf_file *files, size_t count)
{
	return (struct pn_conf_deliver){
		.name = name,
		.url = url,
		.start_us = PN_MOMENT_NONE,
		.secret_file = { files, count },
		.timeout_us = 10 * PN_SECOND_US,
		.max_in_flight = 4,
	};
}

/* If it failed: a daemon would start with a secret that no receiver knows, and
 * every push would be refused; or the operator would not learn where it is. */
static void
test_endpoint__names_the_place_of_a_wrong_secret(void **state)
{
	struct pn_conf_file files[] = { file_of(good, 7), file_of(bad, 8) };
	struct pn_conf_deliver deliver = deliver_of(files, 2);
	struct pn_conf conf = { .delivers = &deliver, .deliver_count = 1 };
	struct pn_deliver *unused = NULL;
	struct pn_error error = { { 0 } };

	(void)state;
	assert_int_equal(pn_deliver_check(&conf, &error), -EINVAL);
	assert_non_null(strstr(error.text, "a.conf:8: "));
	assert_non_null(strstr(error.text, "app.secret"));
	assert_null(strstr(error.text, "MDEy"));
	assert_int_equal(pn_deliver_open("", &conf, &unused, &error), -EINVAL);
	deliver.secret_file.count = 1;
	assert_int_equal(pn_deliver_check(&conf, &error), 0);
}

/* If it failed: a daemon without endpoints would have a connection and threads
 * for nothing. */
static void
test_endpoint__none_runs_nothing(void **state)
{
	struct pn_conf conf = { .deliver_count = 0 };
	struct pn_deliver *deliver = (struct pn_deliver *)&conf;
	struct pn_error error = { { 0 } };

	(void)state;
	assert_int_equal(pn_deliver_check(&conf, &error), 0);
	assert_int_equal(pn_deliver_open("", &conf, &deliver, &error), 0);
	assert_null(deliver);
	pn_deliver_close(NULL, 0);
}

/* If it failed: more would be claimed than can be sent, so leases would run
 * while events wait; or claims would come late or all the time. */
static void
test_endpoint__claims_what_can_be_sent_when_it_is_due(void **state)
{
	struct pn_conf_file file = file_of(good, 7);
	struct pn_conf_deliver conf = deliver_of(&file, 1);
	struct pn_error error = { { 0 } };
	struct pn_endpoint e;

	(void)state;
	assert_int_equal(pn_endpoint_init(&e, &conf, &error), 0);
	/* A slow answer ends before the lease. */
	assert_true(pn_endpoint_lease_us(&e) > conf.timeout_us);
	e.next_us = 50;
	assert_int_equal(pn_endpoint_due_us(&e), 50); /* not registered */
	e.registered = true;
	assert_int_equal(pn_endpoint_due_us(&e), 0); /* wanted */
	assert_int_equal(pn_endpoint_room(&e, 0), 4);
	e.in_flight = 3;
	assert_int_equal(pn_endpoint_room(&e, 0), 1);
	e.wanted = false;
	assert_int_equal(pn_endpoint_due_us(&e), 50);
	e.in_flight = 4;
	assert_int_equal(pn_endpoint_room(&e, 0), 0);
	assert_int_equal(pn_endpoint_due_us(&e), INT64_MAX);
	e.in_flight = 0;
	/* The breaker's pause comes first. */
	e.breaker.state = PN_BREAKER_OPEN;
	e.breaker.until_us = 70;
	e.wanted = true;
	assert_int_equal(pn_endpoint_due_us(&e), 70);
	assert_int_equal(pn_endpoint_room(&e, 69), 0);
	assert_int_equal(pn_endpoint_room(&e, 70), 1);
	assert_int_equal(pn_endpoint_due_us(&e), 0);
	/* Neither does it come while this host lacks something. */
	e.hold_us = 80;
	assert_int_equal(pn_endpoint_due_us(&e), 80);
	assert_int_equal(pn_endpoint_room(&e, 79), 0);
	assert_int_equal(pn_endpoint_room(&e, 80), 1);
	e.hold_us = 0;
	(void)pn_breaker_sent(&e.breaker);
	assert_int_equal(pn_endpoint_due_us(&e), INT64_MAX);
	pn_endpoint_done(&e);
	/* Much room is claimed in turns. */
	conf.max_in_flight = PN_IN_FLIGHT_MAX;
	assert_int_equal(pn_endpoint_init(&e, &conf, &error), 0);
	assert_int_equal(pn_endpoint_room(&e, 0), PN_CLAIM_AT_ONCE);
	pn_endpoint_done(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_endpoint__names_the_place_of_a_wrong_secret),
		cmocka_unit_test(test_endpoint__none_runs_nothing),
		cmocka_unit_test(
		    test_endpoint__claims_what_can_be_sent_when_it_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
