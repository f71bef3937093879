-- All of one key of the guard: $1 tenant, $2 route, $3 key; of its answer's body
-- the first $4 bytes. The first columns are those of guard_keys.sql; all of them
-- but the key itself are NULL when only the permanent tier knows it.
SELECT w.tenant, w.route, w.key, k.state,
	CASE WHEN k.state IS DISTINCT FROM 'PROCESSING' THEN NULL
		WHEN k.lease_token IS NULL THEN 'free'
		WHEN k.lease_expires_at > clock_timestamp() THEN 'held'
		ELSE 'ended' END,
	k.attempts, k.crashes,
	(extract(epoch FROM k.created_at) * 1000000)::int8,
	(extract(epoch FROM k.locked_at) * 1000000)::int8,
	(extract(epoch FROM k.lease_expires_at) * 1000000)::int8,
	(extract(epoch FROM k.completed_at) * 1000000)::int8,
	(extract(epoch FROM k.expires_at) * 1000000)::int8,
	k.response_status, k.reason,
	encode(k.request_hash, 'hex'), k.response_headers,
	octet_length(k.response_body),
	encode(substring(k.response_body FROM 1 FOR $4::int4), 'hex'),
	encode(a.request_hash, 'hex'),
	(extract(epoch FROM a.first_seen_at) * 1000000)::int8, a.attempts
FROM (VALUES ($1::text, $2::text, $3::text)) w (tenant, route, key)
LEFT JOIN paynotify.idempotency_keys k
	ON k.tenant = w.tenant AND k.request_path = w.route AND k.key = w.key
LEFT JOIN paynotify.idempotency_archive a
	ON a.tenant = w.tenant AND a.digest = sha256(convert_to(
		w.route || E'\n' || w.key, 'UTF8'))
WHERE NOT starts_with(w.route, 'notify/')
	AND (k.tenant IS NOT NULL OR a.tenant IS NOT NULL)
