-- The routes behind ($1, $2), a tenant and a route, that have keys of the guard:
-- of the tenant $3, the route $4, with the key $5 in either tier, each where
-- given; at most $6. The primary key is skipped through, a step a route and one
-- for all webhook routes of a tenant: millions of keys are none of the guard's.
WITH RECURSIVE scopes AS (
	(SELECT k.tenant, k.request_path
	FROM paynotify.idempotency_keys k
	WHERE (k.tenant, k.request_path) > ($1::text, $2::text)
	ORDER BY k.tenant, k.request_path
	LIMIT 1)
	UNION ALL
	SELECT n.tenant, n.request_path
	FROM scopes s
	-- The tenant is compared here, not in n: there it would take the place
	-- of the pair, and the tenant be read from its first key on.
	CROSS JOIN LATERAL (
		SELECT k.tenant, k.request_path
		FROM paynotify.idempotency_keys k
		WHERE (k.tenant, k.request_path) > (s.tenant,
			CASE WHEN starts_with(s.request_path, 'notify/')
				THEN greatest(s.request_path, 'notify/~')
				ELSE s.request_path END)
		ORDER BY k.tenant, k.request_path
		LIMIT 1
	) n
	WHERE $3::text IS NULL OR s.tenant = $3
)
SELECT s.tenant, s.request_path
FROM scopes s
WHERE NOT starts_with(s.request_path, 'notify/')
	AND ($3 IS NULL OR s.tenant = $3)
	AND ($4::text IS NULL OR s.request_path = $4)
	-- Not EXISTS, which may read all keys to hash them.
	AND ($5::text IS NULL
		OR (SELECT true FROM paynotify.idempotency_keys k
			WHERE k.tenant = s.tenant
				AND k.request_path = s.request_path
				AND k.key = $5 LIMIT 1)
		OR (SELECT true FROM paynotify.idempotency_archive a
			WHERE a.tenant = s.tenant
				AND a.digest = sha256(convert_to(
					s.request_path || E'\n' || $5, 'UTF8'))
			LIMIT 1))
LIMIT $6::int8
