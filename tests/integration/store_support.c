/*
 * Notifications out of nothing, and SQL beside the store.
 */
#include "store_support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "paynotify/digest.h"
#include "paynotify/migrate.h"
#include "paynotify/moment.h"

static const int64_t PATIENCE_US = 20 * PN_SECOND_US;
static unsigned database_count;
static char migrated_dsn[DSN_BYTES];

static const unsigned char FINGERPRINT[PN_SHA256_BYTES] = { 0xfe };

static void
on_done(struct pn_submission *submission, enum pn_store_verdict verdict,
    void *payload)
{
	struct note *note = payload;

	(void)submission;
	pthread_mutex_lock(&note->lock);
	note->done_count++;
	note->verdict = verdict;
	pthread_cond_broadcast(&note->changed);
	pthread_mutex_unlock(&note->lock);
}

static void
on_release(struct pn_submission *submission, void *payload)
{
	struct note *note = payload;

	(void)submission;
	pthread_mutex_lock(&note->lock);
	assert_int_equal(note->done_count, 1);
	note->release_count++;
	pthread_cond_broadcast(&note->changed);
	pthread_mutex_unlock(&note->lock);
}

/* A UUID of version 7. */
static void
make_id(unsigned char id[PN_REQUEST_ID_BYTES])
{
	uint64_t ms = (uint64_t)(pn_clock_realtime_us() / 1000);

	pn_random_bytes(id, PN_REQUEST_ID_BYTES);
	for (int i = 0; i < 6; i++)
		id[i] = (unsigned char)(ms >> (40 - 8 * i));
	id[6] = 0x70 | (id[6] & 0x0f);
	id[8] = 0x80 | (id[8] & 0x3f);
}

static void
init_common(struct note *note)
{
	struct pn_submission *s = &note->submission;

	memset(note, 0, sizeof(*note));
	pthread_mutex_init(&note->lock, NULL);
	pthread_cond_init(&note->changed, NULL);
	make_id(s->request_id);
	s->provider = PN_STR("alipay");
	s->tenant = PN_STR("shop1");
	s->route = PN_STR("notify/alipay");
	s->peer = PN_STR("192.0.2.1");
	s->notify_id = PN_STR("n1");
	(void)snprintf(note->headers, sizeof(note->headers),
	    "Content-Type: text/plain\xe9\n");
	s->headers = pn_str_from(note->headers);
	memcpy(s->key_fingerprint, FINGERPRINT, sizeof(FINGERPRINT));
	s->success_body = PN_STR("success");
	s->done = on_done;
	s->release = on_release;
	s->payload_pointer = note;
}

void
note_init(struct note *note, const char *trade, int64_t amount)
{
	struct pn_submission *s = &note->submission;
	struct pn_event *e = &note->events[0];

	init_common(note);
	(void)snprintf(
	    note->out_trade_no, sizeof(note->out_trade_no), "%s", trade);
	(void)snprintf(
	    note->keys[0], sizeof(note->keys[0]), "webhook:alipay:%s", trade);
	(void)snprintf(note->body, sizeof(note->body),
	    "out_trade_no=%s&total=%lld", trade, (long long)amount);
	(void)snprintf(note->payload, sizeof(note->payload),
	    "{\"out_trade_no\":\"%s\"}", trade);
	s->body = pn_str_from(note->body);
	s->payload = pn_str_from(note->payload);
	*e = (struct pn_event){
		.type = PN_STR("payment.succeeded"),
		.key = pn_str_from(note->keys[0]),
		.provider = s->provider,
		.tenant = s->tenant,
		.route = s->route,
		.livemode = true,
		.account = PN_STR("2088000000000001"),
		.merchant = PN_STR("2088000000000001"),
		.out_trade_no = pn_str_from(note->out_trade_no),
		.transaction_id = pn_str_from(note->out_trade_no),
		.amount = { amount, true },
		.order_amount = { amount, true },
		.currency = PN_STR("CNY"),
		.occurred_at_us = 1767225600 * PN_SECOND_US,
	};
	pn_event_seal(e);
	s->events = note->events;
	s->event_count = 1;
}

void
note_add_refund(struct note *note, const char *trade, const char *refund)
{
	size_t n = note->submission.event_count++;
	struct pn_event *e = &note->events[n];

	assert_true(n < NOTE_EVENTS_MAX);
	*e = note->events[0];
	(void)snprintf(note->keys[n], sizeof(note->keys[n]),
	    "webhook:alipay:%s:refund:%s", trade, refund);
	e->key = pn_str_from(note->keys[n]);
	e->type = PN_STR("refund.succeeded");
	e->amount.present = false;
	e->refund = (struct pn_refund){
		.present = true,
		.id = PN_STR("r\"1"),
		.refunded_total = { 50, true },
	};
	pn_event_seal(e);
}

void
note_init_quarantine(struct note *note, const char *subject, const char *reason)
{
	struct pn_submission *s = &note->submission;

	init_common(note);
	(void)snprintf(note->body, sizeof(note->body), "secret %s", subject);
	(void)snprintf(note->keys[0], sizeof(note->keys[0]), "%s", subject);
	s->body = pn_str_from(note->body);
	s->quarantine_reason = reason;
	s->quarantine_subject = pn_str_from(note->keys[0]);
	memcpy(s->quarantine_fingerprint, FINGERPRINT, sizeof(FINGERPRINT));
}

void
note_done(struct note *note)
{
	pthread_mutex_destroy(&note->lock);
	pthread_cond_destroy(&note->changed);
}

enum pn_store_verdict
note_wait(struct note *note)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_US / PN_SECOND_US;
	pthread_mutex_lock(&note->lock);
	while (note->release_count == 0)
		if (pthread_cond_timedwait(
			&note->changed, &note->lock, &until) != 0)
			fail_msg("no release of %s", note->keys[0]);
	assert_int_equal(note->done_count, 1);
	assert_int_equal(note->release_count, 1);
	pthread_mutex_unlock(&note->lock);
	return note->verdict;
}

bool
note_is_done(struct note *note)
{
	bool done;

	pthread_mutex_lock(&note->lock);
	done = note->done_count > 0;
	pthread_mutex_unlock(&note->lock);
	return done;
}

enum pn_store_verdict
put(struct pn_store *store, const char *trade, int64_t amount)
{
	enum pn_store_verdict verdict;
	struct note note;

	note_init(&note, trade, amount);
	if (pn_store_submit(store, &note.submission) != 0) {
		note_done(&note);
		return PN_STORE_UNAVAILABLE;
	}
	verdict = note_wait(&note);
	note_done(&note);
	return verdict;
}

const char *
test_dsn(void)
{
	const char *dsn = getenv("PN_DSN");

	if (dsn == NULL)
		fail_msg("%s", "PN_DSN is not set: see tests/lib/pg.sh");
	return dsn;
}

struct pn_store *
store_new(const char *dsn, unsigned writers, int64_t commit_timeout_us)
{
	struct pn_store_key key = { .pem = "pem" };
	struct pn_store_options options = {
		.dsn = dsn,
		.writers = writers,
		.commit_timeout_us = commit_timeout_us,
		.key_hot_us = 72 * 3600 * PN_SECOND_US,
		.keys = &key,
		.key_count = 1,
	};
	struct pn_store *store = NULL;
	struct pn_error error = { { 0 } };

	memcpy(key.fingerprint, FINGERPRINT, sizeof(FINGERPRINT));
	if (pn_store_open(&options, &store, &error) < 0)
		fail_msg("%s", error.text);
	pn_store_wait_first(store, PATIENCE_US);
	return store;
}

/* A new, empty database; its DSN. The last dbname of a DSN counts. */
void
database_empty(char ret_dsn[DSN_BYTES], const char *template)
{
	PGconn *conn = db_open(test_dsn());
	char name[64];

	(void)snprintf(
	    name, sizeof(name), "pn_%ld_%u", (long)getpid(), database_count++);
	(void)db(conn, "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy",
	    name, template);
	(void)snprintf(ret_dsn, DSN_BYTES, "%s dbname=%s", test_dsn(), name);
	PQfinish(conn);
}

void
database_new(char ret_dsn[DSN_BYTES])
{
	struct pn_error error = { { 0 } };
	const char *template;

	/* Migrated once a program: a copy is much quicker. */
	if (migrated_dsn[0] == '\0') {
		database_empty(migrated_dsn, "template1");
		if (pn_migrate(migrated_dsn, NULL, NULL, &error) < 0)
			fail_msg("%s", error.text);
	}
	template = strrchr(migrated_dsn, '=') + 1;
	database_empty(ret_dsn, template);
}

PGconn *
db_open(const char *dsn)
{
	PGconn *conn = PQconnectdb(dsn);

	if (PQstatus(conn) != CONNECTION_OK)
		fail_msg("%s", PQerrorMessage(conn));
	return conn;
}

static int64_t
value_of(const PGresult *result)
{
	const char *text;
	int64_t value = 0;

	if (PQntuples(result) == 0 || PQnfields(result) == 0)
		return -1;
	text = PQgetvalue(result, 0, 0);
	if (*text == 't' || *text == 'f')
		return *text == 't';
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

__attribute__((format(printf, 2, 0))) static int64_t
vdb(PGconn *conn, const char *fmt, va_list ap)
{
	char sql[4096];
	PGresult *result;
	int64_t value;

	(void)vsnprintf(sql, sizeof(sql), fmt, ap);
	result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_TUPLES_OK &&
	    PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(conn));
	value = value_of(result);
	PQclear(result);
	return value;
}

int64_t
db(PGconn *conn, const char *fmt, ...)
{
	va_list ap;
	int64_t value;

	va_start(ap, fmt);
	value = vdb(conn, fmt, ap);
	va_end(ap);
	return value;
}

void
db_send(PGconn *conn, const char *sql)
{
	if (PQsendQuery(conn, sql) != 1)
		fail_msg("%s", PQerrorMessage(conn));
}

const char *
db_end(PGconn *conn, char ret_state[6])
{
	const char *state;
	PGresult *result;

	ret_state[0] = '\0';
	while ((result = PQgetResult(conn)) != NULL) {
		state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		if (state != NULL)
			(void)snprintf(ret_state, 6, "%s", state);
		PQclear(result);
	}
	return ret_state;
}

void
db_wait(PGconn *conn, int64_t wanted, const char *fmt, ...)
{
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US, value;
	va_list ap;

	do {
		va_start(ap, fmt);
		value = vdb(conn, fmt, ap);
		va_end(ap);
		if (value == wanted)
			return;
		/* Not for luck: a poll of a condition, with a limit. */
		(void)usleep(2000);
	} while (pn_clock_monotonic_us() < until_us);
	fail_msg("waited for %lld in vain, it is %lld: %s", (long long)wanted,
	    (long long)value, fmt);
}

/* Commits until one waits for a standby, and leaves that one: the checkpointer
 * tells all others that a standby is wanted, some time after the reload. */
static void
await_standbys(PGconn *conn, const char *dsn)
{
	PGconn *probe = db_open(dsn);
	int pid = PQbackendPID(probe);
	int64_t until_us = pn_clock_monotonic_us() + PATIENCE_US;
	char state[6];

	db_send(probe, "SELECT pg_logical_emit_message(true, '', '')");
	while (db(conn,
		   "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND "
		   "wait_event = 'SyncRep'",
		   pid) == 0) {
		assert_true(pn_clock_monotonic_us() < until_us);
		assert_int_equal(PQconsumeInput(probe), 1);
		if (PQisBusy(probe) != 0)
			continue;
		(void)db_end(probe, state);
		db_send(probe, "SELECT pg_logical_emit_message(true, '', '')");
	}
	(void)db(conn, "SELECT count(pg_terminate_backend(%d))", pid);
	PQfinish(probe);
}

void
db_set_standbys(PGconn *conn, const char *dsn, const char *names)
{
	(void)db(
	    conn, "ALTER SYSTEM SET synchronous_standby_names = '%s'", names);
	(void)db(conn, "SELECT pg_reload_conf()");
	db_wait(conn, 1,
	    "SELECT count(*) FROM pg_settings WHERE name = "
	    "'synchronous_standby_names' AND setting = '%s'",
	    names);
	if (names[0] != '\0')
		await_standbys(conn, dsn);
}

/* -- the usual fixture ------------------------------------------------------ */

int
store_fixture_setup(void **state)
{
	struct store_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	database_new(f->dsn);
	f->db = db_open(f->dsn);
	f->other = db_open(f->dsn);
	f->store = store_new(f->dsn, 1, 15 * PN_SECOND_US);
	*state = f;
	return 0;
}

int
store_fixture_teardown(void **state)
{
	struct store_fixture *f = *state;

	pn_store_close(f->store, PN_SECOND_US);
	PQfinish(f->db);
	PQfinish(f->other);
	free(f);
	return 0;
}

void
note_submit(struct pn_store *store, struct note *note)
{
	assert_int_equal(pn_store_submit(store, &note->submission), 0);
}
