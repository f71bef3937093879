-- One turn of the guard's keys: $1 to $11 settle leases, $12 to $21 claim keys;
-- what there is none of is not called. First the places of the settlements whose
-- lease was lost (lost), then a row for each claim; see claims_turn.c.
SELECT s.place AS lost, NULL::bigint AS place, NULL::text AS outcome,
	NULL::integer AS attempt, NULL::smallint AS response_status,
	NULL::text AS response_headers, NULL::bytea AS response_body,
	NULL::timestamptz AS expires_at, NULL::timestamptz AS retry_at,
	NULL::text AS reason, NULL::timestamptz AS instant
FROM paynotify.guard_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
	s (place)
WHERE cardinality($4::uuid[]) > 0
UNION ALL
SELECT NULL, c.place, c.outcome, c.attempt, c.response_status,
	c.response_headers, c.response_body, c.expires_at, c.retry_at, c.reason,
	clock_timestamp()
FROM paynotify.guard_claim_many($12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21) c
WHERE cardinality($16::uuid[]) > 0
