-- What was done by hand about one event, the oldest first.
SELECT (extract(epoch FROM a.at) * 1000000)::int8,
	coalesce(c.name, '(removed)'), a.action, a.actor, a.reason
FROM paynotify.delivery_actions a
LEFT JOIN paynotify.consumers c ON c.id = a.consumer_id
WHERE a.seq = $1::int8
ORDER BY a.at, c.name
