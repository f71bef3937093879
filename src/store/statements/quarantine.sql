-- Signed notifications that cannot be recorded: each once per tenant, subject
-- and fingerprint, with its evidence; a receipt for every one. All parameters
-- are arrays with one member an entry; the first entry of a notification has
-- what belongs to the notification as a whole.
WITH n AS MATERIALIZED (
	SELECT unnest($1::uuid[]) AS id,
		unnest($2::text[]) AS provider,
		unnest($3::text[]) AS tenant,
		unnest($4::text[]) AS path,
		unnest($5::text[]) AS subject,
		unnest($6::bytea[]) AS fingerprint,
		unnest($7::text[]) AS reason,
		unnest($8::json[]) AS events,
		unnest($9::text[]) AS peer,
		unnest($10::text[]) AS notify_id,
		unnest($11::text[]) AS verdict,
		unnest($12::int4[]) AS status,
		unnest($13::int4[]) AS body_bytes,
		unnest($14::text[]) AS headers,
		unnest($15::bytea[]) AS body,
		unnest($16::bytea[]) AS key_fingerprint,
		unnest($17::text[]) AS payload,
		unnest($18::text[]) AS out_trade_no,
		unnest($19::bool[]) AS is_first
	WHERE NOT $20::bool
		OR current_setting('synchronous_standby_names') <> ''
), entered AS (
	INSERT INTO paynotify.quarantine (tenant, subject, fingerprint,
		provider, request_path, reason, events, receipt_id,
		received_at)
	SELECT n.tenant, n.subject, n.fingerprint, n.provider, n.path,
		n.reason, n.events, n.id, now()
	FROM n
	ORDER BY n.tenant, n.subject, n.fingerprint
	ON CONFLICT DO NOTHING
	RETURNING receipt_id
), kept AS (
	INSERT INTO paynotify.evidence (receipt_id, received_at, provider,
		tenant, headers, body, key_fingerprint, payload)
	SELECT n.id, now(), n.provider, n.tenant, n.headers, n.body,
		n.key_fingerprint, n.payload
	FROM n
	WHERE n.is_first AND n.id IN (SELECT e.receipt_id FROM entered e)
), received AS (
	INSERT INTO paynotify.receipts (id, received_at, provider, tenant,
		request_path, peer, notify_id, out_trade_no, verdict, reason,
		status, body_bytes)
	SELECT r.id, now(), r.provider, r.tenant, r.path, r.peer,
		r.notify_id, r.out_trade_no, r.verdict, r.reason, r.status,
		r.body_bytes
	FROM n r
	WHERE r.is_first
		--RESUBMITTED--
)
SELECT count(*) FROM n
--WAITED--
