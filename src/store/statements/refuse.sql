-- Receipts of requests that were refused unverified, many at once. Headers and
-- body are capped by the caller.
INSERT INTO paynotify.receipts (id, received_at, provider, tenant,
	request_path, peer, notify_id, verdict, reason, status, body_bytes,
	headers, raw)
SELECT unnest($1::uuid[]), now(), unnest($2::text[]), unnest($3::text[]),
	'notify/' || unnest($2::text[]), unnest($4::text[]),
	unnest($5::text[]), unnest($6::text[]), unnest($7::text[]),
	unnest($8::int4[]), unnest($9::int4[]), unnest($10::text[]),
	unnest($11::bytea[])
