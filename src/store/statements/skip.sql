-- The consumer $1 does not get the events $2; why, who. How many. $5: only those
-- of them that are in this state (now: it is some time since one looked).
SELECT paynotify.skip($1::text, CASE WHEN $5::text IS NULL THEN $2::int8[]
	ELSE ARRAY(SELECT d.seq FROM paynotify.deliveries d
		JOIN paynotify.consumers c ON c.id = d.consumer_id
		WHERE c.name = $1 AND d.seq = ANY ($2) AND d.state = $5
		ORDER BY d.seq) END, $3::text, $4::text)
