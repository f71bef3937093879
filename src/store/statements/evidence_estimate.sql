-- About how many rows of evidence there are, from the planner's statistics.
SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::int8
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass('paynotify.evidence')
