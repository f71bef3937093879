-- The consumer's deliveries in a state, at most $4 of them, by seq: arrays of $3.
-- All at once: what is done about one may bring another one into the state.
SELECT array_agg(d.seq ORDER BY d.seq)
FROM (SELECT r.seq, (row_number() OVER (ORDER BY r.seq) - 1) / $3::int8 AS page
	FROM paynotify.deliveries r
	JOIN paynotify.consumers c ON c.id = r.consumer_id
	WHERE c.name = $1::text AND r.state = $2::text
	ORDER BY r.seq LIMIT $4::int8) d
GROUP BY d.page
ORDER BY d.page
