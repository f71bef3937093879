-- The evidence of events: by id, by seq or by key (the others are NULL), of
-- tenant $4 or any. The columns of evidence.sql.
SELECT v.receipt_id, (extract(epoch FROM e.received_at) * 1000000)::int8,
	e.provider, e.tenant, v.headers, v.body, v.key_fingerprint,
	k.fingerprint IS NOT NULL, k.pem, e.out_trade_no,
	'evt_' || replace(e.id::text, '-', ''), e.request_hash
FROM paynotify.event_log e
LEFT JOIN paynotify.evidence v
	ON v.receipt_id = e.receipt_id AND v.received_at = e.received_at
LEFT JOIN paynotify.verifying_keys k ON k.fingerprint = v.key_fingerprint
WHERE ($1::uuid IS NULL OR e.id = $1)
	AND ($2::int8 IS NULL OR e.seq = $2)
	AND ($3::text IS NULL OR (e.key = $3
		AND e.id = ANY (paynotify.event_ids($3, NULL))))
	AND ($4::text IS NULL OR e.tenant = $4)
ORDER BY e.seq
LIMIT 1000
