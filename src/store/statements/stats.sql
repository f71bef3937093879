-- One row that sums up the rest of the database. Nothing here reads a table as a
-- whole: rows of large ones are the planner's estimates, and what is counted is
-- counted among so many rows at most.
WITH RECURSIVE routes AS (
	-- As guard_scopes.sql: one step a route, one for all of webhooks.
	(SELECT k.tenant, k.request_path, 1 AS step
	FROM paynotify.idempotency_keys k
	ORDER BY k.tenant, k.request_path
	LIMIT 1)
	UNION ALL
	SELECT n.tenant, n.request_path, r.step + 1
	FROM routes r
	CROSS JOIN LATERAL (
		SELECT k.tenant, k.request_path
		FROM paynotify.idempotency_keys k
		WHERE (k.tenant, k.request_path) > (r.tenant,
			CASE WHEN starts_with(r.request_path, 'notify/')
				THEN greatest(r.request_path, 'notify/~')
				ELSE r.request_path END)
		ORDER BY k.tenant, k.request_path
		LIMIT 1
	) n
	WHERE r.step < 1000
), guard AS (
	SELECT count(*) AS seen,
		count(*) FILTER (WHERE k.state = 'PROCESSING') AS processing,
		count(*) FILTER (WHERE k.state = 'FAILED') AS failed,
		bool_or(k.place = 10000) AS cut
	FROM routes r
	CROSS JOIN LATERAL (
		SELECT i.state, row_number() OVER () AS place
		FROM paynotify.idempotency_keys i
		WHERE i.tenant = r.tenant AND i.request_path = r.request_path
		LIMIT 10000
	) k
	WHERE NOT starts_with(r.request_path, 'notify/')
), held AS (
	SELECT count(*) FILTER (WHERE q.state = 'open') AS open,
		count(*) FILTER (WHERE q.state = 'open'
			AND q.reason = 'known key with other content')
			AS conflicts,
		count(*) = 100000 AS cut
	FROM (
		SELECT state, reason FROM paynotify.quarantine
		ORDER BY id DESC
		LIMIT 100000
	) q
), sizes AS (
	SELECT coalesce(sum(greatest(c.reltuples, 0)) FILTER (
			WHERE c.relname = 'idempotency_keys'), 0) AS hot,
		coalesce(sum(greatest(c.reltuples, 0)) FILTER (
			WHERE c.relname = 'idempotency_archive'), 0) AS archived
	FROM pg_class c
	WHERE c.relnamespace = 'paynotify'::regnamespace
)
SELECT (extract(epoch FROM now()) * 1000000)::int8,
	coalesce((SELECT max(e.seq) FROM paynotify.event_log e), 0),
	h.open, h.conflicts, h.cut, s.hot::int8, s.archived::int8,
	g.processing, g.failed, coalesce(g.cut, false),
	pg_database_size(current_database()),
	(SELECT max(m.number) FROM paynotify.migrations m),
	pg_is_in_recovery(),
	(SELECT count(*) FROM pg_stat_replication r
	WHERE r.state = 'streaming'),
	(SELECT count(*) FROM pg_stat_replication r
	WHERE r.sync_state IN ('sync', 'quorum')),
	current_setting('synchronous_standby_names'),
	current_setting('server_version')
FROM held h, guard g, sizes s
