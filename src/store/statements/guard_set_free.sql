-- Of the tenant $1, under the route $2, the key $3: the next one runs. $4 why,
-- $5 who. Daemons are told once it is committed, as in claims_notify.sql: one of
-- them may be waiting for the key.
SELECT paynotify.guard_set_free($1::text, $2::text, $3::text, $4::text,
		$5::text),
	pg_notify('paynotify_guard', left(encode(sha256(convert_to(
		concat_ws(E'\n', $1, $2, $3), 'UTF8')), 'hex'), 32))
