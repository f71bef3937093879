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
	SELECT coalesce(min(w.received_at) FILTER (WHERE w.taken),
		CASE WHEN count(*) = 10000 THEN max(w.received_at) END) AS oldest
	FROM (SELECT e.received_at,
			(c.tenants IS NULL OR e.tenant = ANY (c.tenants))
			AND (c.type_patterns IS NULL
				OR e.type LIKE ANY (c.type_patterns))
			AND e.received_at >= c.start_at
			AND NOT EXISTS (SELECT FROM paynotify.deliveries x
				WHERE x.consumer_id = c.id AND x.seq = e.seq)
				AS taken
		FROM (SELECT * FROM paynotify.event_log l
			WHERE l.seq > m.seq
			ORDER BY l.seq LIMIT 10000) e) w
) n
ORDER BY c.name
