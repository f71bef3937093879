/*
 * One event's deliveries: delivery.sql says where it stands with each consumer,
 * attempts.sql what was tried. A key may name events of several tenants; they
 * come one after another, then the attempts in the same order.
 */
#include <assert.h>
#include <string.h>

#include "query_delivery_row.h"
#include "statements.h"

/* Of attempts.sql. */
enum column {
	C_CONSUMER,
	C_ATTEMPT,
	C_STARTED_AT,
	C_LATENCY,
	C_STATUS,
	C_ERROR,
	C_ANSWER,
	C_OUTCOME,
	C_REDELIVERY,
	C_COUNT
};

enum {
	REPLACEMENT_BYTES = 3, /* U+FFFD */
	TEXT_BYTES_MAX = PN_ANSWER_KEPT_BYTES_MAX * REPLACEMENT_BYTES,
};

static unsigned char
nibble(char c)
{
	return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* An answer may be any bytes: what is no text becomes U+FFFD. hex is
 * PostgreSQL's, so well-formed. */
static struct pn_str
text_of(struct pn_str hex, char ret_text[TEXT_BYTES_MAX])
{
	char bytes[PN_ANSWER_KEPT_BYTES_MAX];
	struct pn_str rest = { bytes, hex.len / 2 };
	size_t good, bad, len = 0;

	if (rest.len > sizeof(bytes))
		rest.len = sizeof(bytes);
	for (size_t i = 0; i < rest.len; i++) {
		bytes[i] = (char)(nibble(hex.data[2 * i]) << 4 |
				  nibble(hex.data[2 * i + 1]));
		if (bytes[i] == '\0')
			bytes[i] = '\xff'; /* UTF-8, but no text */
	}
	while (rest.len > 0) { /* bounded by the bytes */
		good = pn_str_utf8_prefix(rest, &bad);
		assert(good + bad > 0 && good + bad <= rest.len);
		memcpy(ret_text + len, rest.data, good);
		len += good;
		if (bad > 0) {
			memcpy(ret_text + len, "\xef\xbf\xbd", 3);
			len += REPLACEMENT_BYTES;
		}
		rest.data += good + bad;
		rest.len -= good + bad;
	}
	assert(len <= TEXT_BYTES_MAX);
	return (struct pn_str){ ret_text, len };
}

static int
call_attempt(
    const PGresult *result, int at, pn_attempt_row_fn attempt, void *payload)
{
	char text[TEXT_BYTES_MAX];
	struct pn_attempt_row out = {
		.consumer = pn_query_str(result, at, C_CONSUMER),
		.attempt = pn_query_int(result, at, C_ATTEMPT, 0),
		.started_at_us =
		    pn_query_int(result, at, C_STARTED_AT, PN_MOMENT_NONE),
		.latency_us = pn_query_int(result, at, C_LATENCY, 0),
		.status = pn_query_int(result, at, C_STATUS, 0),
		.error = pn_query_str(result, at, C_ERROR),
		.answer = text_of(pn_query_str(result, at, C_ANSWER), text),
		.outcome = pn_query_str(result, at, C_OUTCOME),
		.redelivery = pn_query_bool(result, at, C_REDELIVERY),
	};

	assert(PQnfields(result) == C_COUNT);
	return attempt(&out, payload);
}

static int
call_attempts(struct pn_query *query, int64_t seq, pn_attempt_row_fn attempt,
    void *payload, struct pn_error *error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_query_text text;
	const char *values[] = { pn_query_number(&text, 0, seq) };
	int r, count;

	r = pn_query_run(query, pn_sql_attempts, 1, values, &result, error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	for (int i = 0; r == 0 && i < count; i++)
		r = call_attempt(result, i, attempt, payload);
	return r;
}

int
pn_query_delivery(struct pn_query *query, const char *which,
    pn_delivery_row_fn delivery, pn_attempt_row_fn attempt, void *payload,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	const char *values[PN_QUERY_WHICH_COUNT];
	int64_t seq, consumer, before = -1;
	int r, count;

	pn_query_which(which, values);
	r = pn_query_run(query, pn_sql_delivery, PN_QUERY_WHICH_COUNT, values,
	    &result, ret_error);
	if (r < 0)
		return r;
	count = PQntuples(result);
	if (count == 0)
		return 1;
	for (int i = 0; r == 0 && i < count; i++)
		r = pn_query_delivery_row(
		    result, i, &seq, &consumer, delivery, payload);
	for (int i = 0; r == 0 && i < count; i++) {
		seq = pn_query_delivery_seq(result, i);
		if (seq != before)
			r = call_attempts(
			    query, seq, attempt, payload, ret_error);
		before = seq;
	}
	return r;
}
