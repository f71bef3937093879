-- Who keeps VACUUM from removing the most: the oldest transaction that somebody
-- may still look back to. A session that writes holds its own number, in
-- whichever database; of equal ones, who caused it comes before who merely looks
-- at it. VACUUM itself holds nothing. Of strangers' sessions a role without
-- rights sees pid, user and application.
WITH held AS (
	SELECT p.transaction AS xid, 1 AS rank, p.prepared AS since,
		'prepared' AS kind, p.gid AS name, p.owner::text AS role,
		p.database::text AS detail
	FROM pg_prepared_xacts p
	UNION ALL
	SELECT s.xmin, 2, NULL, 'slot', s.slot_name::text, NULL, NULL
	FROM pg_replication_slots s
	UNION ALL
	SELECT b.backend_xid, 3, b.xact_start, 'session', b.pid::text,
		b.usename::text, b.application_name
	FROM pg_stat_activity b
	UNION ALL
	SELECT b.backend_xmin, 4, b.xact_start,
		CASE WHEN b.datname IS NULL THEN 'standby' ELSE 'session' END,
		b.pid::text, b.usename::text, b.application_name
	FROM pg_stat_activity b
	WHERE (b.datname IS NULL OR b.datname = current_database())
		AND b.pid <> pg_backend_pid()
		AND (SELECT true FROM pg_stat_progress_vacuum v
			WHERE v.pid = b.pid LIMIT 1) IS NULL
)
SELECT h.xid::text, greatest(age(h.xid), 0), h.kind, coalesce(h.name, ''),
	coalesce(h.role, ''), coalesce(h.detail, '')
FROM held h
WHERE h.xid IS NOT NULL
ORDER BY age(h.xid) DESC, h.rank, h.since
LIMIT 1
