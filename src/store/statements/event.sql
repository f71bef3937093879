-- One event by id, by seq or by key (of several tenants, maybe): the others are
-- NULL. Of tenant $4 or any.
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
WHERE ($1::uuid IS NULL OR e.id = $1)
	AND ($2::int8 IS NULL OR e.seq = $2)
	AND ($3::text IS NULL OR (e.key = $3
		AND e.id = ANY (paynotify.event_ids($3, $4))))
	AND ($4::text IS NULL OR e.tenant = $4)
ORDER BY e.seq
LIMIT 1000
