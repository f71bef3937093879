-- Every attempt to push one event, the oldest first.
SELECT coalesce(c.name, '(removed)'), a.attempt,
	(extract(epoch FROM a.started_at) * 1000000)::int8, a.latency_us,
	a.status, a.error, encode(a.answer, 'hex'), a.outcome, a.redelivery
FROM paynotify.delivery_attempts a
LEFT JOIN paynotify.consumers c ON c.id = a.consumer_id
WHERE a.seq = $1::int8
ORDER BY a.started_at, c.name, a.attempt
