-- The next of the consumer's deliveries in a state, behind $3, as an array, and
-- the last of them; NULL at the end.
SELECT array_agg(d.seq ORDER BY d.seq), max(d.seq)
FROM (SELECT r.seq FROM paynotify.deliveries r
	JOIN paynotify.consumers c ON c.id = r.consumer_id
	WHERE c.name = $1::text AND r.state = $2::text AND r.seq > $3::int8
	ORDER BY r.seq LIMIT $4::int8) d
