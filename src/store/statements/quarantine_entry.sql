-- One quarantine entry: the columns of quarantine_list.sql, with the events.
SELECT q.id, (extract(epoch FROM q.received_at) * 1000000)::int8, q.provider,
	q.tenant, q.request_path, q.subject, encode(q.fingerprint, 'hex'),
	q.reason, q.state, q.events -> 0 ->> 'out_trade_no', q.receipt_id,
	(extract(epoch FROM q.resolved_at) * 1000000)::int8, q.resolved_by,
	q.resolution, q.events
FROM paynotify.quarantine q
WHERE q.id = $1::int8
