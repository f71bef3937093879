-- What consumers have claimed and not finished, in order of seq: those behind
-- ($4, $5), a seq and a consumer's id. Each consumer by itself, so that it is
-- read along an index.
SELECT c.id, c.name, d.id, d.type, d.tenant, d.out_trade_no, d.seq, d.state,
	d.attempts,
	(extract(epoch FROM coalesce(d.lease_expires_at, d.retry_at))
		* 1000000)::int8,
	d.reason, d.redelivery,
	(extract(epoch FROM d.received_at) * 1000000)::int8
FROM paynotify.consumers c
CROSS JOIN LATERAL (
	SELECT r.seq, r.state, r.attempts, r.lease_expires_at, r.retry_at,
		r.reason, r.redelivery, r.received_at,
		'evt_' || replace(e.id::text, '-', '') AS id, e.type, e.tenant,
		e.out_trade_no
	FROM paynotify.deliveries r
	JOIN paynotify.event_log e
		ON e.seq = r.seq AND e.received_at = r.received_at
	WHERE r.consumer_id = c.id
		AND r.seq >= $4::int8 AND (r.seq, c.id) > ($4, $5::int4)
		AND r.state <> 'done'
		AND ($2::text IS NULL OR r.state = $2)
		AND ($3::text IS NULL OR e.tenant = $3)
	ORDER BY r.seq
	LIMIT $6::int8
) d
WHERE ($1::text IS NULL OR c.name = $1)
ORDER BY d.seq, c.id
LIMIT $6
