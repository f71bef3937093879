-- Receipts of the last minute, hour and day by provider, tenant and verdict, the
-- most frequent first.
--
-- The day is cut into slices (60 of a second, 59 of a minute, 92 of a quarter
-- of an hour), and at most 500 receipts of each are read, by their ids, which
-- are times: 105,500 in all, however many there are. A slice that has more is
-- estimated by how fast those 500 came, and then the last column says so.
WITH slice AS MATERIALIZED (
	SELECT b.starts, b.starts + b.length AS ends,
		b.starts >= now() - interval '1 minute' AS in_minute,
		b.starts >= now() - interval '1 hour' AS in_hour
	FROM (
		SELECT now() - i * interval '1 second', interval '1 second'
		FROM generate_series(1, 60) i
		UNION ALL
		SELECT now() - i * interval '1 minute', interval '1 minute'
		FROM generate_series(2, 60) i
		UNION ALL
		SELECT now() - i * interval '15 minutes', interval '15 minutes'
		FROM generate_series(5, 96) i
	) b (starts, length)
), counted AS (
	SELECT s.in_minute, s.in_hour, r.provider, r.tenant, r.verdict,
		count(*) AS read,
		sum(count(*)) OVER (PARTITION BY s.starts) = 500 AS cut,
		extract(epoch FROM s.ends - s.starts) / greatest(0.001,
			extract(epoch FROM max(max(r.received_at))
				OVER (PARTITION BY s.starts) - s.starts))
			AS stretch
	FROM slice s
	CROSS JOIN LATERAL (
		SELECT t.provider, t.tenant, t.verdict, t.received_at
		FROM paynotify.receipts t
		WHERE t.id >= (lpad(to_hex((extract(epoch FROM s.starts)
				* 1000)::int8), 12, '0') || repeat('0', 20))::uuid
			AND t.id < (lpad(to_hex((extract(epoch FROM s.ends)
				* 1000)::int8), 12, '0') || repeat('0', 20))::uuid
			AND t.received_at > now() - interval '25 hours'
		ORDER BY t.id
		LIMIT 500
	) r
	GROUP BY s.starts, s.ends, s.in_minute, s.in_hour, r.provider, r.tenant,
		r.verdict
), told AS (
	SELECT c.*, c.read * CASE WHEN c.cut THEN greatest(c.stretch, 1)
		ELSE 1 END AS receipts
	FROM counted c
)
SELECT t.provider, t.tenant, t.verdict,
	coalesce(sum(t.receipts) FILTER (WHERE t.in_minute), 0)::int8,
	coalesce(sum(t.receipts) FILTER (WHERE t.in_hour), 0)::int8,
	sum(t.receipts)::int8,
	bool_or(t.cut)
FROM told t
GROUP BY t.provider, t.tenant, t.verdict
ORDER BY sum(t.receipts) DESC, t.provider, t.tenant, t.verdict
