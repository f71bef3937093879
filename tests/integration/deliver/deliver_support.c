/*
 * Fixture of the deliverer's tests. The configuration is made by hand: reading
 * files is conf's, and tested there.
 */
#include "deliver_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/net.h"

static char secret[] = TEST_SECRET;
static char app[] = "app", other[] = "other", path[] = "app.secret";
static struct pn_conf_file secret_file = { .path = path };

static struct pn_conf_deliver
endpoint(char *name, char *url)
{
	return (struct pn_conf_deliver){
		.name = name,
		.url = url,
		.start_us = PN_MOMENT_NONE,
		.secret_file = { &secret_file, 1 },
		.timeout_us = 15 * PN_SECOND_US,
		.max_in_flight = 16,
	};
}

int
push_setup(void **state)
{
	struct push_fixture *f = calloc(1, sizeof(*f));
	void *base = NULL;

	assert_non_null(f);
	assert_int_equal(pn_net_init(), 0);
	secret_file.content.data = (unsigned char *)secret;
	secret_file.content.len = strlen(secret);
	(void)store_fixture_setup(&base);
	f->base = base;
	f->db = f->base->db;
	f->store = f->base->store;
	f->sink = sink_new();
	f->other_sink = sink_new();
	f->endpoints[0] = endpoint(app, sink_url(f->sink));
	f->endpoints[1] = endpoint(other, sink_url(f->other_sink));
	f->conf.database.dsn = f->base->dsn;
	f->conf.delivers = f->endpoints;
	f->conf.deliver_count = 1;
	*state = f;
	return 0;
}

int
push_teardown(void **state)
{
	struct push_fixture *f = *state;
	void *base = f->base;

	push_close(f, 0);
	sink_free(f->sink);
	sink_free(f->other_sink);
	(void)store_fixture_teardown(&base);
	free(f);
	return 0;
}

void
push_open(struct push_fixture *f)
{
	struct pn_error error = { { 0 } };

	assert_null(f->deliver);
	if (pn_deliver_open(
		f->conf.database.dsn, &f->conf, &f->deliver, &error) != 0)
		fail_msg("%s", error.text);
}

void
push_close(struct push_fixture *f, int64_t grace_us)
{
	pn_deliver_close(f->deliver, grace_us);
	f->deliver = NULL;
}

void
push_make_due(struct push_fixture *f)
{
	(void)db(f->db, "UPDATE paynotify.deliveries SET retry_at = now() "
			"WHERE state = 'retry'");
	/* Or it looks within a second, by itself. */
	(void)db(f->db, "NOTIFY paynotify_events");
}
