-- How far the schema is: the greatest migration that was applied.
SELECT coalesce(max(m.number), 0)::int4 FROM paynotify.migrations m
