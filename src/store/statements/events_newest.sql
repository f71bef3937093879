-- As events_oldest.sql, the newest first: those before $6, but behind $8.
SELECT e.seq, e.id, e.livemode, e.type, e.provider, e.tenant,
	'notify/' || e.provider, e.account, e.key, e.out_trade_no, e.transaction_id,
	e.amount, e.order_amount, e.currency, e.refund IS NOT NULL,
	e.refund ->> 'id', e.refund ->> 'out_refund_no',
	e.refund ->> 'refunded_total', e.order_check, to_json(e.flags),
	(extract(epoch FROM e.occurred_at) * 1000000)::int8,
	(extract(epoch FROM e.received_at) * 1000000)::int8, v.payload
FROM paynotify.event_log e
LEFT JOIN paynotify.evidence v
	ON v.receipt_id = e.receipt_id AND v.received_at = e.received_at
WHERE ($1::text IS NULL OR e.tenant = $1)
	AND ($2::text IS NULL OR e.type = $2
		OR right($2, 1) = '*' AND starts_with(e.type, left($2, -1)))
	AND ($3::text IS NULL OR (e.key = $3
		AND e.id = ANY (paynotify.event_ids($3, $1))))
	AND ($4::text IS NULL OR e.out_trade_no = $4)
	AND ($5::timestamptz IS NULL OR e.received_at >= $5)
	AND e.seq < $6::int8
	AND e.seq > $8::int8
ORDER BY e.seq DESC
LIMIT $7::int8
