-- Evidence in order of arrival: from $3 (a receipt's id; NULL: the oldest) on,
-- without the first $5 rows. One receipt may have two rows, and both count.
SELECT v.receipt_id, (extract(epoch FROM v.received_at) * 1000000)::int8,
	v.provider, v.tenant, v.headers, v.body, v.key_fingerprint,
	k.fingerprint IS NOT NULL, k.pem, r.out_trade_no, NULL, NULL
FROM (
	SELECT *
	FROM paynotify.evidence e
	WHERE ($1::text IS NULL OR e.tenant = $1)
		AND ($2::timestamptz IS NULL OR e.received_at >= $2)
		AND ($3::uuid IS NULL OR e.receipt_id >= $3)
	ORDER BY e.receipt_id, e.received_at
	LIMIT $4::int8 OFFSET $5::int8
) v
LEFT JOIN paynotify.verifying_keys k ON k.fingerprint = v.key_fingerprint
LEFT JOIN LATERAL (
	SELECT r.out_trade_no FROM paynotify.receipts r
	WHERE r.id = v.receipt_id AND r.received_at = v.received_at
	LIMIT 1
) r ON true
ORDER BY v.receipt_id, v.received_at
