-- Keys of the guard of one tenant $1 and route $2, behind the key $3, in the
-- state $4 where given: along the primary key.
SELECT k.tenant, k.request_path, k.key, k.state,
	CASE WHEN k.state <> 'PROCESSING' THEN NULL
		WHEN k.lease_token IS NULL THEN 'free'
		WHEN k.lease_expires_at > clock_timestamp() THEN 'held'
		ELSE 'ended' END,
	k.attempts, k.crashes,
	(extract(epoch FROM k.created_at) * 1000000)::int8,
	(extract(epoch FROM k.locked_at) * 1000000)::int8,
	(extract(epoch FROM k.lease_expires_at) * 1000000)::int8,
	(extract(epoch FROM k.completed_at) * 1000000)::int8,
	(extract(epoch FROM k.expires_at) * 1000000)::int8,
	k.response_status, k.reason
FROM paynotify.idempotency_keys k
WHERE k.tenant = $1::text AND k.request_path = $2::text AND k.key > $3::text
	AND NOT starts_with(k.request_path, 'notify/')
	AND ($4::text IS NULL OR k.state = $4::paynotify.key_state)
ORDER BY k.key
LIMIT $5::int8
