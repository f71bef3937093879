/*
 * What a verdict means for the reply and the metrics, as tables. The status code
 * is not here: the http layer turns an outcome into it, in one place.
 *
 * The message is the same for every cause of an outcome: which check failed, and
 * what was expected, is for the log, not for whoever sent the request.
 */
#include <assert.h>

#include "ingest_internal.h"

static const struct row {
	enum pn_outcome outcome;
	enum pn_request_end end;
} rows[PN_VERDICT_COUNT] = {
	[PN_VERDICT_ACCEPTED] = { PN_OUTCOME_SUCCESS, PN_REQUEST_ACCEPTED },
	[PN_VERDICT_MALFORMED] = { PN_OUTCOME_MALFORMED, PN_REQUEST_MALFORMED },
	[PN_VERDICT_BAD_SIGNATURE] = { PN_OUTCOME_UNAUTHENTIC,
	    PN_REQUEST_BAD_SIGNATURE },
	[PN_VERDICT_UNKNOWN_KEY] = { PN_OUTCOME_UNAUTHENTIC,
	    PN_REQUEST_UNKNOWN_KEY },
	[PN_VERDICT_STALE] = { PN_OUTCOME_UNAUTHENTIC, PN_REQUEST_STALE },
	[PN_VERDICT_UNDECRYPTABLE] = { PN_OUTCOME_UNDECRYPTABLE,
	    PN_REQUEST_UNDECRYPTABLE },
	[PN_VERDICT_WRONG_ACCOUNT] = { PN_OUTCOME_WRONG_ACCOUNT,
	    PN_REQUEST_WRONG_ACCOUNT },
	[PN_VERDICT_UNSUPPORTED] = { PN_OUTCOME_MALFORMED,
	    PN_REQUEST_UNSUPPORTED },
};

static const char *const messages[PN_OUTCOME_COUNT] = {
	[PN_OUTCOME_SUCCESS] = "OK",
	[PN_OUTCOME_MALFORMED] = "malformed or unsupported notification",
	[PN_OUTCOME_UNAUTHENTIC] = "signature not valid",
	[PN_OUTCOME_NOT_ALLOWED] = "address not allowed",
	[PN_OUTCOME_WRONG_ACCOUNT] = "not for this account",
	[PN_OUTCOME_CONFLICT] = "differs from what was recorded",
	[PN_OUTCOME_RATE_LIMITED] = "too many requests",
	[PN_OUTCOME_UNDECRYPTABLE] = "could not decrypt",
	[PN_OUTCOME_UNAVAILABLE] = "temporarily unavailable",
};

enum pn_outcome
pn_ingest_outcome(enum pn_verdict verdict)
{
	assert((unsigned)verdict < PN_VERDICT_COUNT);
	return rows[verdict].outcome;
}

enum pn_request_end
pn_ingest_end(enum pn_verdict verdict)
{
	assert((unsigned)verdict < PN_VERDICT_COUNT);
	return rows[verdict].end;
}

const char *
pn_ingest_message(enum pn_outcome outcome)
{
	assert((unsigned)outcome < PN_OUTCOME_COUNT);
	assert(messages[outcome] != NULL);
	return messages[outcome];
}
