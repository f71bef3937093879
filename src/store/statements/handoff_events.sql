-- The events that handoff_take.sql leased, whole: columns as in event.sql, then
-- what the lease says. received_at names the partition.
SELECT e.seq, e.id, e.livemode, e.type, e.provider, e.tenant,
	'notify/' || e.provider, e.account, e.key, e.out_trade_no, e.transaction_id,
	e.amount, e.order_amount, e.currency, e.refund IS NOT NULL,
	e.refund ->> 'id', e.refund ->> 'out_refund_no',
	e.refund ->> 'refunded_total', e.order_check, to_json(e.flags),
	(extract(epoch FROM e.occurred_at) * 1000000)::int8,
	(extract(epoch FROM e.received_at) * 1000000)::int8, v.payload,
	t.token, t.attempt, t.redelivery
FROM (SELECT * FROM unnest($1::int8[], $2::timestamptz[], $3::uuid[],
		$4::int4[], $5::bool[])
		AS t (seq, received_at, token, attempt, redelivery)
	ORDER BY seq) t
JOIN paynotify.event_log e ON e.seq = t.seq AND e.received_at = t.received_at
LEFT JOIN paynotify.evidence v
	ON v.receipt_id = e.receipt_id AND v.received_at = e.received_at
ORDER BY t.seq
