/*
 * What came of attempts: handoff_settle.sql, over arrays, one statement for
 * all. It settles the deliveries and records the attempts, or neither.
 *
 * Texts and answers come from outside. Whatever they are they must not make the
 * statement fail: it would fail again and again, and the events would be sent
 * again and again. So the text is plain ASCII, the answer bytes, and both are
 * cut; a time that no clock of ours can have is mended in the statement.
 */
#include "paynotify/handoff.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/metrics.h"
#include "paynotify/moment.h"

#include "array.h"
#include "handoff_internal.h"
#include "query.h"

enum column {
	C_TOKEN,
	C_OUTCOME,
	C_RETRY_AFTER,
	C_ERROR,
	C_ATTEMPT,
	C_REDELIVERY,
	C_STARTED_AT,
	C_LATENCY,
	C_STATUS,
	C_ANSWER,
	COLUMNS
};
static_assert(COLUMNS == 10, "handoff_settle.sql has $1 to $10");

static const enum pn_array_type TYPES[COLUMNS] = {
	[C_TOKEN] = PN_ARRAY_UUID,
	[C_OUTCOME] = PN_ARRAY_TEXT,
	[C_RETRY_AFTER] = PN_ARRAY_INTERVAL,
	[C_ERROR] = PN_ARRAY_TEXT,
	[C_ATTEMPT] = PN_ARRAY_INT4,
	[C_REDELIVERY] = PN_ARRAY_BOOL,
	[C_STARTED_AT] = PN_ARRAY_TIMESTAMPTZ,
	[C_LATENCY] = PN_ARRAY_INT8,
	[C_STATUS] = PN_ARRAY_INT4,
	[C_ANSWER] = PN_ARRAY_BYTEA,
};

static const char *const OUTCOMES[] = {
	[PN_DELIVERY_DONE] = "done",
	[PN_DELIVERY_RETRY] = "retry",
	[PN_DELIVERY_DEAD] = "dead",
	[PN_DELIVERY_BACK] = "back",
};

enum {
	RESULTS_MAX = PN_ENDPOINTS_MAX * PN_IN_FLIGHT_MAX,
	MEMBER_BYTES_MAX = PN_ANSWER_KEPT_BYTES_MAX + 4,
	ARRAY_BYTES_MAX = RESULTS_MAX * MEMBER_BYTES_MAX + 64,
};
static_assert((int)PN_REASON_BYTES_MAX <= (int)PN_ANSWER_KEPT_BYTES_MAX,
    "an answer is the longest member");

static struct pn_str
capped(struct pn_str s, size_t bytes_max)
{
	if (s.len > bytes_max)
		s.len = bytes_max;
	return s;
}

static void
add(struct pn_array *a, const struct pn_delivery_result *result)
{
	struct pn_str answer = capped(result->answer, PN_ANSWER_KEPT_BYTES_MAX);

	assert((unsigned)result->outcome < PN_COUNT(OUTCOMES));
	assert(result->retry_after_us >= 0);
	pn_array_add_bytes(&a[C_TOKEN], result->token, PN_TOKEN_BYTES);
	pn_array_add_str(&a[C_OUTCOME], pn_str_from(OUTCOMES[result->outcome]));
	pn_array_add_interval(&a[C_RETRY_AFTER], result->retry_after_us);
	pn_array_add_ascii(
	    &a[C_ERROR], capped(result->error, PN_REASON_BYTES_MAX));
	pn_array_add_int4(&a[C_ATTEMPT], result->attempt);
	pn_array_add_bool(&a[C_REDELIVERY], result->redelivery);
	pn_array_add_moment(&a[C_STARTED_AT], result->started_at_us);
	pn_array_add_int8(&a[C_LATENCY], result->latency_us);
	if (result->status == 0)
		pn_array_add_null(&a[C_STATUS]);
	else
		pn_array_add_int4(&a[C_STATUS], result->status);
	pn_array_add_filled(&a[C_ANSWER], answer);
}

/* Each token of the answer is one result's; of two with the same token the
 * later one found the lease settled. */
static size_t
mark_lost(
    const PGresult *answer, struct pn_delivery_result *results, size_t count)
{
	unsigned char token[PN_TOKEN_BYTES];
	int lost = PQntuples(answer);

	for (size_t i = 0; i < count; i++)
		results[i].lost = false;
	for (int i = 0; i < lost; i++) {
		size_t j = count;

		pn_query_uuid(answer, i, 0, token);
		while (j > 0 &&
		       (results[j - 1].lost || memcmp(results[j - 1].token,
						   token, sizeof(token)) != 0))
			j--;
		assert(j > 0);
		results[j - 1].lost = true;
	}
	return (size_t)lost;
}

static int
send(struct pn_handoff *handoff, struct pn_array *arrays, PGresult **ret_result,
    struct pn_error *error)
{
	const char *values[COLUMNS];
	int lengths[COLUMNS], formats[COLUMNS], r;
	struct pn_str s;

	for (size_t i = 0; i < COLUMNS; i++) {
		s = pn_array_finish(&arrays[i]);
		if (s.data == NULL)
			return pn_error_set(error, -ENOMEM, "out of memory");
		values[i] = s.data;
		lengths[i] = (int)s.len;
		formats[i] = 1;
	}
	r = pn_conn_run(&handoff->conn, PN_HANDOFF_SETTLE,
	    &(struct pn_params){
		.count = COLUMNS,
		.values = values,
		.lengths = lengths,
		.formats = formats,
		.text_results = true,
	    },
	    ret_result, error);
	return pn_handoff_fault(handoff, r, error);
}

int
pn_handoff_settle(struct pn_handoff *handoff,
    struct pn_delivery_result *results, size_t count, size_t *ret_lost,
    struct pn_error *ret_error)
{
	PN_CLEANUP(pn_result_freep) PGresult *result = NULL;
	struct pn_array arrays[COLUMNS];
	size_t lost;
	int r;

	assert(count >= 1 && count <= RESULTS_MAX);
	for (size_t i = 0; i < COLUMNS; i++)
		arrays[i] = pn_array_init(TYPES[i], ARRAY_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		add(arrays, &results[i]);
	r = send(handoff, arrays, &result, ret_error);
	for (size_t i = 0; i < COLUMNS; i++)
		pn_array_done(&arrays[i]);
	if (r < 0)
		return r;
	lost = mark_lost(result, results, count);
	assert(lost <= count);
	pn_metric_add(PN_METRIC_LEASES_LOST, (int64_t)lost);
	*ret_lost = lost;
	return 0;
}
