-- Where an event ($1, $2, $3 as in event.sql) stands with each consumer whose
-- filter takes it, or who has it all the same. What is behind the mark and has
-- no row is done; or skipped, where that is the last that was done by hand. A row
-- without a consumer: there are none.
SELECT c.id, c.name, 'evt_' || replace(e.id::text, '-', ''), e.type, e.tenant,
	e.out_trade_no, e.seq,
	CASE WHEN d.state <> 'done' THEN d.state
		WHEN d.state IS NULL AND e.seq > m.seq THEN 'new'
		WHEN last.action = 'skip' THEN 'skipped' ELSE 'done' END,
	coalesce(d.attempts, a.count),
	(extract(epoch FROM coalesce(d.lease_expires_at, d.retry_at))
		* 1000000)::int8,
	CASE WHEN coalesce(d.state, 'done') <> 'done' THEN d.reason
		WHEN last.action = 'skip' THEN last.reason END,
	coalesce(d.redelivery, false),
	(extract(epoch FROM e.received_at) * 1000000)::int8
FROM paynotify.event_log e
LEFT JOIN (paynotify.consumers c
	CROSS JOIN LATERAL (SELECT coalesce(max(k.seq), 0) AS seq
		FROM paynotify.consumer_marks k
		WHERE k.consumer_id = c.id) m)
	ON (c.tenants IS NULL OR e.tenant = ANY (c.tenants))
			AND (c.type_patterns IS NULL
				OR e.type LIKE ANY (c.type_patterns))
			AND e.received_at >= c.start_at
		-- Not EXISTS, which may read all deliveries to hash them.
		OR (SELECT true FROM paynotify.deliveries x
			WHERE x.consumer_id = c.id AND x.seq = e.seq LIMIT 1)
LEFT JOIN paynotify.deliveries d ON d.consumer_id = c.id AND d.seq = e.seq
LEFT JOIN LATERAL (SELECT count(*) AS count
	FROM paynotify.delivery_attempts t
	WHERE t.seq = e.seq AND t.consumer_id = c.id) a ON true
LEFT JOIN LATERAL (SELECT x.action, x.reason
	FROM paynotify.delivery_actions x
	WHERE x.seq = e.seq AND x.consumer_id = c.id
	ORDER BY x.at DESC LIMIT 1) last ON true
WHERE ($1::uuid IS NULL OR e.id = $1)
	AND ($2::int8 IS NULL OR e.seq = $2)
	AND ($3::text IS NULL OR (e.key = $3
		AND e.id = ANY (paynotify.event_ids($3, NULL))))
ORDER BY e.seq, c.name
