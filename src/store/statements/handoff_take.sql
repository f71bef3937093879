-- Leases at most $2 events for the consumer $1. One row of arrays, all NULL
-- when there is nothing, and whether the consumer is active. The commit waits
-- for no disk and no standby: if the server loses it the events are claimed once
-- more, and a push is at least once anyway. settle() does wait.
SELECT array_agg(t.seq), array_agg(t.received_at), array_agg(t.token),
	array_agg(t.attempt), array_agg(t.redelivery),
	(SELECT CASE c.state WHEN 'active' THEN 't' ELSE 'f' END
	FROM paynotify.consumers c WHERE c.name = $1::text),
	set_config('synchronous_commit', 'off', true)
FROM paynotify.take($1, $2::int4, $3::int8 * interval '1 microsecond') t
