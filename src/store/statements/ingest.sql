-- One batch: claims keys, records events, evidence and receipts, and gives a
-- verdict for each element: 0 new, 1 duplicate, 2 conflict (nothing written:
-- quarantine.sql comes next), 3 again (lost a race whose winner this snapshot
-- cannot see).
--
-- $1 to $19 are arrays with one member an element (an event), $20 to $32 with
-- one a notification; an element has its own index (pos), that of its
-- notification (n), and its place in the order of arrival (ord). Most members
-- are fetched by index where they are stored, never carried through a join.
--
-- Elements come in the order of their keys, and keys are claimed in the order
-- in which they come: one order, so that writers never deadlock. The events are
-- recorded in the order of arrival.
WITH e AS MATERIALIZED (
	SELECT u.pos, u.ord, u.n, u.tenant, u.path, u.key, u.hash,
		-- The permanent tier: NULL when the key is not there.
		(SELECT CASE WHEN a.request_hash = u.hash THEN 1 ELSE 2 END
		FROM paynotify.idempotency_archive a
		WHERE a.tenant = u.tenant AND a.digest = u.digest) AS archived
	FROM (SELECT unnest($1::int4[]) AS pos,
			unnest($2::int4[]) AS ord,
			unnest($3::int4[]) AS n,
			unnest($4::text[] COLLATE "C") AS tenant,
			unnest($5::text[] COLLATE "C") AS path,
			unnest($6::text[] COLLATE "C") AS key,
			unnest($7::bytea[]) AS digest,
			unnest($8::bytea[]) AS hash
		-- require_sync: nothing at all where no standby is named.
		WHERE NOT $33::bool
			OR current_setting('synchronous_standby_names') <> ''
	) u
), claimed AS (
	INSERT INTO paynotify.idempotency_keys (tenant, request_path, key,
		request_hash, state, response_status, response_body,
		completed_at, created_at, expires_at)
	SELECT e.tenant, e.path, e.key, e.hash, 'COMPLETED', 200,
		($20::bytea[])[e.n], now(), now(), now() + $34::interval
	FROM e
	WHERE e.archived IS NULL
	ON CONFLICT DO NOTHING
	RETURNING tenant, request_path, key, request_hash
), judged AS MATERIALIZED (
	SELECT e.pos, e.n, CASE
		WHEN c.request_hash = e.hash THEN 0
		-- One notification that contradicts itself.
		WHEN c.key IS NOT NULL THEN 2
		WHEN e.archived IS NOT NULL THEN e.archived
		ELSE coalesce((SELECT CASE WHEN k.request_hash = e.hash
				THEN 1 ELSE 2 END
			FROM paynotify.idempotency_keys k
			WHERE k.tenant = e.tenant AND k.request_path = e.path
				AND k.key = e.key), 3)
		END AS verdict
	FROM e
	LEFT JOIN claimed c ON c.key = e.key AND c.tenant = e.tenant
		AND c.request_path = e.path
	ORDER BY e.ord
), recorded AS (
	INSERT INTO paynotify.event_log (received_at, id, receipt_id, livemode,
		type, provider, tenant, account, key, request_hash,
		out_trade_no, transaction_id, amount, order_amount,
		currency, refund, occurred_at)
	SELECT now(), ($9::uuid[])[j.pos], ($21::uuid[])[j.n],
		($10::bool[])[j.pos], ($11::text[])[j.pos], ($22::text[])[j.n],
		($4::text[])[j.pos], ($12::text[])[j.pos],
		($6::text[])[j.pos], ($8::bytea[])[j.pos],
		($13::text[])[j.pos], ($14::text[])[j.pos],
		($15::int8[])[j.pos], ($16::int8[])[j.pos],
		($17::text[])[j.pos], ($18::jsonb[])[j.pos],
		($19::timestamptz[])[j.pos]
	FROM judged j
	WHERE j.verdict = 0
), worst AS MATERIALIZED (
	SELECT j.n, max(j.verdict) AS verdict, min(j.verdict) = 0 AS fresh
	FROM judged j
	GROUP BY j.n
), kept AS (
	INSERT INTO paynotify.evidence (receipt_id, received_at, provider,
		tenant, headers, body, key_fingerprint, payload)
	SELECT ($21::uuid[])[w.n], now(), ($22::text[])[w.n],
		($23::text[])[w.n], ($27::text[])[w.n], ($28::bytea[])[w.n],
		($29::bytea[])[w.n], ($30::text[])[w.n]
	FROM worst w
	WHERE w.fresh
), received AS (
	INSERT INTO paynotify.receipts (id, received_at, provider, tenant,
		request_path, peer, notify_id, out_trade_no, verdict, status,
		body_bytes)
	SELECT r.id, now(), ($22::text[])[r.n],
		($23::text[])[r.n], ($24::text[])[r.n], ($25::text[])[r.n],
		($26::text[])[r.n], ($31::text[])[r.n],
		-- A refund often comes with the payment that was told before.
		CASE WHEN r.fresh THEN 'recorded' ELSE 'duplicate' END,
		200, ($32::int4[])[r.n]
	FROM (SELECT w.n, w.verdict, w.fresh, ($21::uuid[])[w.n] AS id
		FROM worst w) r
	WHERE r.verdict < 2 -- the others have a statement to come
		--RESUBMITTED--
)
SELECT j.pos, j.verdict FROM judged j
--WAITED--
