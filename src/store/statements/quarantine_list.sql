-- Quarantine entries, the newest first: those before $5 (an id).
SELECT q.id, (extract(epoch FROM q.received_at) * 1000000)::int8, q.provider,
	q.tenant, q.request_path, q.subject, encode(q.fingerprint, 'hex'),
	q.reason, q.state, q.events -> 0 ->> 'out_trade_no', q.receipt_id,
	(extract(epoch FROM q.resolved_at) * 1000000)::int8, q.resolved_by,
	q.resolution, NULL
FROM paynotify.quarantine q
WHERE ($1::text IS NULL OR q.tenant = $1)
	AND ($2::text IS NULL OR q.provider = $2)
	AND ($3::text IS NULL OR q.state = $3)
	AND ($4::timestamptz IS NULL OR q.received_at >= $4)
	AND q.id < $5::int8
ORDER BY q.id DESC
LIMIT $6::int8
