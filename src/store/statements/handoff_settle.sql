-- What came of attempts, and the attempts themselves, also of those whose lease
-- was lost; the tokens of those. All parameters are arrays with one member a
-- result. A clock that is wrong must not name a month without a partition.
WITH r AS MATERIALIZED (
	SELECT * FROM unnest($1::uuid[], $2::text[], $4::text[], $5::int4[],
			$6::bool[], $7::timestamptz[], $8::int8[], $9::int4[],
			$10::bytea[])
		AS r (token, outcome, error, attempt, redelivery, started_at,
			latency_us, status, answer)
), kept AS (
	INSERT INTO paynotify.delivery_attempts (started_at, consumer_id, seq,
		attempt, outcome, status, latency_us, error, answer, redelivery)
	SELECT least(greatest(r.started_at, now() - interval '1 day'),
			now() + interval '1 day'),
		paynotify.token_consumer(r.token), paynotify.token_seq(r.token),
		r.attempt, r.outcome, r.status, r.latency_us, r.error,
		r.answer, r.redelivery
	FROM r
	WHERE r.outcome <> 'back'
)
SELECT l FROM paynotify.settle($1, $2, $3::interval[], $4) l
