-- Tells what was settled: lists of digests.
SELECT pg_notify('paynotify_guard', p) FROM unnest($1::text[]) p
