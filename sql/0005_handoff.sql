-- What applications, the deliverer and operators call: register, claim, settle,
-- set aside. See 0004_claim.sql for the promises.

-- Types as LIKE patterns: "payment.*" is payment. and anything.
CREATE FUNCTION paynotify.type_patterns(types text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE AS
$$ SELECT array_agg(regexp_replace(regexp_replace(t, '([%_\\])', '\\\1', 'g'),
	'\*$', '%')) FROM unnest(types) t $$;

-- The mark of a consumer that wants what was received from start_at on: the
-- last event that is an hour older, since numbers and times do not rise quite
-- together (the claim looks at the times exactly). Found by halving; always the
-- number of an event that is visible, since one that is missing may belong to
-- an ingest that has not committed.
CREATE FUNCTION paynotify.mark_before(start_at timestamptz) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
	low bigint := 0; -- of an event that is old enough
	high bigint;     -- no event behind it is
	middle bigint;
	probe record;
BEGIN
	IF start_at = '-infinity' THEN
		RETURN 0;
	END IF;
	SELECT coalesce(max(e.seq), 0) INTO high FROM paynotify.event_log e;
	WHILE low < high LOOP
		middle := low + (high - low + 1) / 2;
		SELECT e.seq, e.received_at INTO probe
		FROM paynotify.event_log e
		WHERE e.seq <= middle AND e.seq > low
		ORDER BY e.seq DESC LIMIT 1;
		IF NOT FOUND THEN
			SELECT e.seq, e.received_at INTO probe
			FROM paynotify.event_log e
			WHERE e.seq > middle AND e.seq <= high
			ORDER BY e.seq LIMIT 1;
		END IF;
		IF NOT FOUND THEN
			high := low;
		ELSIF probe.received_at < start_at - interval '1 hour' THEN
			low := probe.seq;
		ELSE
			high := least(probe.seq, middle) - 1;
		END IF;
	END LOOP;
	RETURN low;
END
$$;

CREATE FUNCTION paynotify.add_consumer(consumer text, tenants text[],
	types text[], start_at timestamptz, pushed boolean)
RETURNS paynotify.consumers
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
	me paynotify.consumers;
	mark bigint;
BEGIN
	IF consumer IS NULL OR consumer !~ '^[A-Za-z0-9_.-]{1,64}$' THEN
		RAISE EXCEPTION 'a consumer''s name must be 1 to 64 of '
			'A-Z a-z 0-9 _ . -, not "%"', consumer
		USING ERRCODE = '22023';
	END IF;
	IF tenants = '{}' OR types = '{}' THEN
		RAISE EXCEPTION 'an empty list would take no event; '
			'NULL takes all' USING ERRCODE = '22023';
	END IF;
	IF EXISTS (SELECT FROM unnest(tenants) t
		WHERE (t ~ '^[a-z0-9_-]{1,32}$') IS NOT TRUE) THEN
		RAISE EXCEPTION 'a tenant is 1 to 32 of a-z 0-9 _ -, not in %',
			tenants USING ERRCODE = '22023';
	END IF;
	IF EXISTS (SELECT FROM unnest(types) t
		WHERE (t ~ '^[^*[:space:]]+(\.\*)?$') IS NOT TRUE) THEN
		RAISE EXCEPTION 'a type is a name as in "payment.succeeded", or '
			'the beginning of one as in "payment.*", not in %',
			types USING ERRCODE = '22023';
	END IF;
	IF start_at IS NULL OR start_at = 'infinity' THEN
		RAISE EXCEPTION 'start_at must be a time, or -infinity for '
			'all events' USING ERRCODE = '22023';
	END IF;
	-- Most often it is there, and an INSERT that finds that out takes an id.
	INSERT INTO paynotify.consumers AS c (name, tenants, types,
		type_patterns, start_at, pushed)
	SELECT consumer, add_consumer.tenants, add_consumer.types,
		paynotify.type_patterns(add_consumer.types),
		add_consumer.start_at, add_consumer.pushed
	WHERE NOT EXISTS (SELECT FROM paynotify.consumers o
		WHERE o.name = consumer)
	ON CONFLICT (name) DO NOTHING
	RETURNING * INTO me;
	IF FOUND THEN
		mark := paynotify.mark_before(start_at);
		INSERT INTO paynotify.consumer_marks (consumer_id, seq)
		VALUES (me.id, mark);
		RETURN me;
	END IF;
	-- Known: its filter may change, from its mark on; its start not.
	UPDATE paynotify.consumers c
	SET tenants = add_consumer.tenants, types = add_consumer.types,
		type_patterns = paynotify.type_patterns(add_consumer.types)
	WHERE c.name = consumer AND c.pushed = add_consumer.pushed
		AND (c.tenants IS DISTINCT FROM add_consumer.tenants
			OR c.types IS DISTINCT FROM add_consumer.types);
	SELECT * INTO me FROM paynotify.consumers c WHERE c.name = consumer;
	RETURN me;
END
$$;

-- Makes a consumer. NULL: all tenants, all types. Events received before
-- start_at are not for it. Of one that there is already, what is not NULL
-- changes the filter, for the events behind its mark; '{*}' takes all again.
CREATE FUNCTION paynotify.register_consumer(name text,
	tenants text[] DEFAULT NULL, types text[] DEFAULT NULL,
	start_at timestamptz DEFAULT '-infinity') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
	me paynotify.consumers;
BEGIN
	SELECT * INTO me FROM paynotify.consumers c WHERE c.name = name;
	me := paynotify.add_consumer(name,
		nullif(coalesce(tenants, me.tenants), '{*}'),
		nullif(coalesce(types, me.types), '{*}'), start_at, false);
	IF me.start_at <> start_at AND start_at <> '-infinity' THEN
		RAISE NOTICE 'consumer "%" has been there before: it goes on '
			'where it is, not from %', name, start_at;
	END IF;
	IF me.pushed THEN
		RAISE EXCEPTION 'consumer "%" is an endpoint of [deliver %]: '
			'choose another name', name, name
		USING ERRCODE = 'PN003';
	END IF;
END
$$;

-- An endpoint of a configuration; start_at counts when it is new. false: a
-- consumer of that name pulls by SQL.
CREATE FUNCTION paynotify.put_endpoint(name text, tenants text[],
	types text[], url text, start_at timestamptz DEFAULT '-infinity')
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	me paynotify.consumers;
BEGIN
	me := paynotify.add_consumer(name, tenants, types, start_at, true);
	IF NOT me.pushed THEN
		RETURN false;
	END IF;
	INSERT INTO paynotify.endpoints AS e (consumer_id, url)
	VALUES (me.id, put_endpoint.url)
	ON CONFLICT (consumer_id) DO UPDATE SET url = excluded.url
	WHERE e.url <> excluded.url;
	RETURN true;
END
$$;

-- Leases at most max_events events (and at most 1000), in order of seq, one of
-- an order. What is not settled by then is given to the next who claims.
CREATE FUNCTION paynotify.claim(consumer text, max_events integer,
	lease interval)
RETURNS TABLE (schema integer, id text, seq bigint, livemode boolean,
	type text, provider text, tenant text, account text, key text,
	out_trade_no text, transaction_id text, amount bigint,
	order_amount bigint, currency text, refund jsonb, order_check text,
	flags text[], occurred_at timestamptz, received_at timestamptz,
	payload json, token uuid)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	seqs bigint[];
	received_ats timestamptz[];
	tokens uuid[];
BEGIN
	IF EXISTS (SELECT FROM paynotify.consumers c
		WHERE c.name = consumer AND c.pushed) THEN
		RAISE EXCEPTION 'consumer "%" is an endpoint: the daemon '
			'pushes its events', consumer
		USING HINT = 'register a consumer of another name',
			ERRCODE = 'PN003';
	END IF;
	-- By itself: take() finds events that are younger than the snapshot of
	-- the statement that calls it, which would not see them.
	SELECT array_agg(t.seq), array_agg(t.received_at), array_agg(t.token)
	INTO seqs, received_ats, tokens
	FROM paynotify.take(consumer, max_events, lease) t;
	RETURN QUERY
	SELECT e.schema, e.id, e.seq, e.livemode, e.type, e.provider,
		e.tenant, e.account, e.key, e.out_trade_no, e.transaction_id,
		e.amount, e.order_amount, e.currency, e.refund, e.order_check,
		e.flags, e.occurred_at, e.received_at, e.payload, t.token
	FROM unnest(seqs, received_ats, tokens) t (seq, received_at, token)
	JOIN paynotify.events e
		ON e.seq = t.seq AND e.received_at = t.received_at
	ORDER BY t.seq;
END
$$;

-- The event behind a finished one of its order waits no longer. (The state is
-- asked for so that the index of all that wait does not offer itself: it would
-- be read from its dead beginning for each order.)
CREATE FUNCTION paynotify.wake(consumer_ids integer[], order_hashes bigint[],
	instant timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
	WITH next AS MATERIALIZED (
		SELECT n.place
		FROM (SELECT DISTINCT * FROM unnest(consumer_ids, order_hashes)
			u (consumer_id, order_hash)) f
		CROSS JOIN LATERAL (SELECT w.ctid AS place,
				w.consumer_id, w.seq, w.order_hash
			FROM paynotify.deliveries w
			WHERE w.order_hash = f.order_hash
				AND w.consumer_id + 0 = f.consumer_id
				AND w.state IN ('waiting', '')
			ORDER BY w.seq LIMIT 1
			FOR UPDATE SKIP LOCKED) n
		WHERE (SELECT true FROM paynotify.deliveries p
			WHERE p.order_hash = n.order_hash
				AND p.consumer_id + 0 = n.consumer_id
				AND p.seq + 0 < n.seq
				AND p.state IN ('leased', 'waiting', 'retry')
			LIMIT 1) IS NULL
	)
	UPDATE paynotify.deliveries d
	SET state = 'retry', retry_at = instant
	FROM next
	WHERE d.ctid = next.place;
END
$$;

-- Settles leases: outcome "done"; "retry" after retry_after; "dead", for the
-- operator; "back", at once and not counted as an attempt. Returns the tokens
-- whose lease was lost: nothing was done about those.
CREATE FUNCTION paynotify.settle(tokens uuid[], outcomes text[],
	retry_after interval[], reasons text[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	instant timestamptz := clock_timestamp();
	settled uuid[];
	consumer_ids integer[];
	order_hashes bigint[];
BEGIN
	WITH t AS MATERIALIZED (
		SELECT u.token, (SELECT d.ctid FROM paynotify.deliveries d
				WHERE d.consumer_id =
						paynotify.token_consumer(u.token)
					AND d.seq = paynotify.token_seq(u.token)
				LIMIT 1) AS place, u.outcome,
			instant + greatest(coalesce(u.after, interval '0'),
				interval '0') AS retry_at, u.reason,
			u.outcome = 'done' AND paynotify.token_seq(u.token)
				<= (SELECT max(m.seq)
				FROM paynotify.consumer_marks m
				WHERE m.consumer_id =
					paynotify.token_consumer(u.token))
				AS gone
		FROM unnest(tokens, outcomes, retry_after, reasons)
			u (token, outcome, after, reason)
	), deleted AS (
		DELETE FROM paynotify.deliveries d
		USING t
		WHERE t.gone AND d.ctid = t.place AND d.token = t.token
			AND d.state = 'leased' AND d.lease_expires_at > instant
		RETURNING d.token, d.consumer_id, d.order_hash,
			true AS finished
	), updated AS (
		UPDATE paynotify.deliveries d
		SET state = CASE t.outcome WHEN 'back' THEN 'retry'
				ELSE t.outcome END,
			retry_at = CASE t.outcome WHEN 'retry' THEN t.retry_at
				WHEN 'back' THEN instant END,
			attempts = d.attempts - (t.outcome = 'back')::integer,
			token = NULL, lease_expires_at = NULL,
			reason = coalesce(t.reason, d.reason)
		FROM t
		WHERE NOT t.gone AND d.ctid = t.place AND d.token = t.token
			AND d.state = 'leased' AND d.lease_expires_at > instant
		RETURNING t.token, d.consumer_id, d.order_hash,
			t.outcome IN ('done', 'dead') AS finished
	), s AS (
		SELECT * FROM deleted UNION ALL SELECT * FROM updated
	)
	SELECT array_agg(s.token), array_agg(s.consumer_id)
			FILTER (WHERE s.finished AND s.order_hash IS NOT NULL),
		array_agg(s.order_hash)
			FILTER (WHERE s.finished AND s.order_hash IS NOT NULL)
	INTO settled, consumer_ids, order_hashes
	FROM s;
	IF order_hashes IS NOT NULL THEN
		PERFORM paynotify.wake(consumer_ids, order_hashes, instant);
	END IF;
	IF coalesce(cardinality(settled), 0) < cardinality(tokens) THEN
		RETURN QUERY SELECT u.token FROM unnest(tokens) u (token)
			EXCEPT ALL SELECT u.token FROM unnest(settled) u (token);
	END IF;
END
$$;

-- Raises for leases that are lost, so that the transaction of whoever lost
-- them fails with it.
CREATE FUNCTION paynotify.settle_or_raise(tokens uuid[], outcome text,
	retry_after interval, reason text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
	lost bigint[];
	unknown uuid[]; -- made up: the number in it is of no event
BEGIN
	IF array_position(tokens, NULL) IS NOT NULL THEN
		RAISE EXCEPTION 'a token is NULL' USING ERRCODE = '22004';
	END IF;
	IF tokens IS NULL OR cardinality(tokens) = 0 THEN
		RETURN; -- array_agg() of no rows
	END IF;
	-- "infinity" is no time that lists could show.
	IF retry_after > interval '400 days' THEN
		RAISE EXCEPTION 'retry_after is at most 400 days, not %',
			retry_after USING ERRCODE = '22023';
	END IF;
	SELECT array_agg(l.seq ORDER BY l.seq) FILTER (WHERE l.known),
		array_agg(l.token ORDER BY l.token) FILTER (WHERE NOT l.known)
	INTO lost, unknown
	FROM (SELECT s.token, paynotify.token_seq(s.token) AS seq,
			EXISTS (SELECT FROM paynotify.consumers c
			WHERE c.id = paynotify.token_consumer(s.token)) AS known
		FROM paynotify.settle(tokens,
			array_fill(outcome, ARRAY[cardinality(tokens)]),
			array_fill(retry_after, ARRAY[cardinality(tokens)]),
			array_fill(left(reason, 1000),
				ARRAY[cardinality(tokens)]))
			s (token)) l;
	IF lost IS NOT NULL OR unknown IS NOT NULL THEN
		RAISE EXCEPTION 'the lease of % was lost', concat_ws(', ',
			'event ' || array_to_string(lost[:10], ', '),
			'token ' || array_to_string(unknown[:10], ', '))
		USING ERRCODE = 'PN001', DETAIL = 'It had ended, was settled '
			'before, or another worker has the event now; a token '
			'that is told is of no consumer.',
			HINT = 'Roll back and claim again. Claim fewer events '
			'at a time, or with a longer lease, if this is often.';
	END IF;
END
$$;

-- Done: call it in the transaction that did the work, and both commit together
-- or not at all.
CREATE FUNCTION paynotify.ack(token uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM paynotify.settle_or_raise(ARRAY[token], 'done', NULL, NULL);
END
$$;

CREATE FUNCTION paynotify.ack_all(tokens uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM paynotify.settle_or_raise(tokens, 'done', NULL, NULL);
END
$$;

-- Not now: again after retry_after. Its order waits.
CREATE FUNCTION paynotify.nack(token uuid,
	retry_after interval DEFAULT '30 seconds', reason text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM paynotify.settle_or_raise(ARRAY[token], 'retry', retry_after,
		reason);
END
$$;

-- What the janitor does every second for all consumers.
CREATE FUNCTION paynotify.tend_consumers() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
	me paynotify.consumers;
	mark paynotify.consumer_marks;
	instant timestamptz := clock_timestamp();
BEGIN
	FOR me IN SELECT * FROM paynotify.consumers ORDER BY id LOOP
		mark := paynotify.newest_mark(me.id);
		CONTINUE WHEN mark.tended_at > instant - interval '500 ms';
		PERFORM paynotify.tend(me, mark, instant, instant,
			2147483647);
	END LOOP;
END
$$;
