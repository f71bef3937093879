-- Receipts, the newest first: those before $7 (an id; NULL: from the newest).
SELECT r.id, (extract(epoch FROM r.received_at) * 1000000)::int8, r.provider,
	r.tenant, r.verdict, r.reason, r.notify_id, r.peer, r.out_trade_no,
	r.status, r.body_bytes
FROM paynotify.receipts r
WHERE ($1::text IS NULL OR r.tenant = $1)
	AND ($2::text IS NULL OR r.provider = $2)
	AND ($3::text IS NULL OR r.verdict = $3)
	AND ($4::text IS NULL OR r.out_trade_no = $4)
	AND ($5::timestamptz IS NULL OR r.received_at >= $5)
	AND ($7::uuid IS NULL OR r.id < $7)
ORDER BY r.id DESC
LIMIT $6::int8
