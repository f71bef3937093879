-- Consumers, and how far each is. behind counts numbers of the sequence, so
-- also those that its filter leaves out. The oldest that is still to be handed
-- off is claimed already, or is the first behind the mark that the filter takes:
-- among the next 10000, else no older than the last of those.
SELECT c.name, c.pushed, c.state, c.reason, p.url,
	greatest(coalesce((SELECT max(l.seq) FROM paynotify.event_log l), 0)
		- m.seq, 0),
	d.leased, d.waiting, d.retrying, d.dead,
	(extract(epoch FROM least(d.oldest, n.oldest)) * 1000000)::int8
FROM paynotify.consumers c
LEFT JOIN paynotify.endpoints p ON p.consumer_id = c.id
CROSS JOIN LATERAL (
	SELECT coalesce(max(k.seq), 0) AS seq
	FROM paynotify.consumer_marks k
	WHERE k.consumer_id = c.id
) m
CROSS JOIN LATERAL (
	SELECT count(*) FILTER (WHERE r.state = 'leased') AS leased,
		count(*) FILTER (WHERE r.state = 'waiting') AS waiting,
		count(*) FILTER (WHERE r.state = 'retry') AS retrying,
		count(*) FILTER (WHERE r.state = 'dead') AS dead,
		min(r.received_at) FILTER (WHERE r.state IN ('leased',
			'waiting', 'retry')) AS oldest
	FROM paynotify.deliveries r
	WHERE r.consumer_id = c.id
) d
CROSS JOIN LATERAL (
	-- The second only if the first finds nothing.
	SELECT coalesce((SELECT w.received_at
		FROM (SELECT * FROM paynotify.event_log l
			WHERE l.seq > m.seq
			ORDER BY l.seq LIMIT 10000) w
		WHERE (c.tenants IS NULL OR w.tenant = ANY (c.tenants))
			AND (c.type_patterns IS NULL
				OR w.type LIKE ANY (c.type_patterns))
			AND w.received_at >= c.start_at
			AND NOT EXISTS (SELECT FROM paynotify.deliveries x
				WHERE x.consumer_id = c.id AND x.seq = w.seq)
		ORDER BY w.seq LIMIT 1),
		(SELECT l.received_at FROM paynotify.event_log l
		WHERE l.seq > m.seq
		ORDER BY l.seq OFFSET 9999 LIMIT 1)) AS oldest
) n
ORDER BY c.name
