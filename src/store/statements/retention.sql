-- The next step in dropping the partitions of $1 that are older than $2
-- microseconds, as a statement: each looks at what is there, so that it does not
-- matter where the one before was interrupted. $3: the daemon's clock; if it and
-- the server's disagree, the earlier one counts, for what is dropped is gone.
--
-- Only tables that are named and bounded as make_partitions() does it. Before a
-- partition is detached it is marked by a comment: what an operator has detached
-- to keep has none and is left alone.
WITH month AS MATERIALIZED (
	SELECT p.oid AS parent_oid, p.relowner AS parent_owner, c.oid,
		c.relname AS name, c.relowner AS owner, c.relispartition,
		pg_get_expr(c.relpartbound, c.oid) AS bounds,
		obj_description(c.oid, 'pg_class') IS NOT DISTINCT FROM
			'paynotifyd: expired, to be dropped' AS marked,
		to_date(right(c.relname, 7), 'YYYY_MM')::timestamp
			AT TIME ZONE 'UTC' AS lower_bound
	FROM pg_class p
	JOIN pg_class c ON c.relnamespace = p.relnamespace AND c.relkind = 'r'
		AND c.relname ~ ('^' || p.relname || '_[0-9]{4}_(0[1-9]|1[0-2])$')
	WHERE p.relnamespace = 'paynotify'::regnamespace AND p.relkind = 'p'
		AND p.relname = $1::text
), expired AS (
	SELECT m.*, m.lower_bound + interval '1 month' AS upper_bound,
		i.inhparent, i.inhdetachpending
	FROM month m
	LEFT JOIN pg_inherits i ON i.inhrelid = m.oid
	WHERE m.lower_bound + interval '1 month' <= least(now(),
			'epoch'::timestamptz + $3::int8 * interval '1 microsecond')
		- $2::int8 * interval '1 microsecond'
), step AS (
	SELECT e.*, CASE
		WHEN e.inhparent IS NULL AND NOT e.relispartition
			THEN CASE WHEN e.marked THEN 'drop' END
		WHEN e.inhparent <> e.parent_oid OR e.bounds IS DISTINCT FROM
			format('FOR VALUES FROM (%L) TO (%L)', e.lower_bound,
				e.upper_bound)
			THEN NULL
		WHEN e.inhdetachpending
			THEN CASE WHEN e.marked THEN 'finalize' END
		WHEN e.marked THEN 'detach'
		ELSE 'mark' END AS what
	FROM expired e
)
SELECT s.name, s.what,
	CASE s.what
	WHEN 'mark' THEN format('COMMENT ON TABLE paynotify.%I IS '
		'''paynotifyd: expired, to be dropped''', s.name)
	WHEN 'detach' THEN format('ALTER TABLE paynotify.%I '
		'DETACH PARTITION paynotify.%I CONCURRENTLY', $1, s.name)
	WHEN 'finalize' THEN format('ALTER TABLE paynotify.%I '
		'DETACH PARTITION paynotify.%I FINALIZE', $1, s.name)
	-- Under the lock nobody attaches it or changes the mark.
	ELSE format('DO $do$ BEGIN '
		'LOCK TABLE paynotify.%1$I IN ACCESS EXCLUSIVE MODE; '
		'IF (SELECT NOT c.relispartition AND '
		'NOT EXISTS (SELECT FROM pg_inherits i '
		'WHERE i.inhrelid = c.oid) AND '
		'obj_description(c.oid, ''pg_class'') = '
		'''paynotifyd: expired, to be dropped'' '
		'FROM pg_class c WHERE c.oid = ''paynotify.%1$I''::regclass) '
		'THEN DROP TABLE paynotify.%1$I; END IF; END $do$', s.name)
	END AS statement,
	pg_has_role(s.parent_owner, 'USAGE') AND pg_has_role(s.owner, 'USAGE')
		AS allowed,
	pg_get_userbyid(s.parent_owner) AS owner, current_user AS me
FROM step s
WHERE s.what IS NOT NULL
-- One partition of a table can be in the middle of being detached: it first.
ORDER BY array_position('{finalize,drop,detach,mark}', s.what),
	s.lower_bound
LIMIT 1
