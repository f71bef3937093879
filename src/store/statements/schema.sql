-- How far the schema is (the greatest migration that was applied), and whether
-- this server is a standby.
SELECT coalesce(max(m.number), 0)::int4, pg_is_in_recovery()
FROM paynotify.migrations m
