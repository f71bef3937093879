-- What was done by hand about one key, the oldest first: $1 tenant, $2 route,
-- $3 key.
SELECT (extract(epoch FROM a.at) * 1000000)::int8, a.action, a.actor, a.reason
FROM paynotify.guard_actions a
WHERE a.tenant = $1::text AND a.route = $2::text AND a.key = $3::text
ORDER BY a.at
