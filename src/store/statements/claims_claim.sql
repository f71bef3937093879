-- Claims keys; see claims_claim.c.
SELECT c.place, c.outcome, c.attempt, c.response_status, c.response_headers,
	c.response_body, c.expires_at, c.retry_at, c.reason, clock_timestamp()
FROM paynotify.guard_claim_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) c
