-- What an operator watches that only the database knows: one function, which
-- daemons ask every quarter of a minute and show at /metrics.
--
-- Whatever the tables have grown to, it reads a bounded number of rows, by
-- indexes: what could be many is counted up to 10,000, and what is looked for
-- among rows that may not fit is looked for among the first 1,000. Where that
-- makes a figure an estimate, its comment says so. Behind an old snapshot an
-- index may have many entries more that are dead; so who asks sets a
-- statement_timeout, and does without.

-- For the open entries, in order: there are few of them, of very many.
CREATE INDEX quarantine_open ON paynotify.quarantine (id) WHERE state = 'open';

-- When the oldest event was received that the consumer has not done; NULL: there
-- is none. Of what it has claimed: the first 1,000 that are due again, the first
-- that waits for another of its order, those of the oldest 1,000 leases. Of what
-- it has not: the first of the next 1,000 that its filter takes, else no older
-- than the last of those.
CREATE FUNCTION paynotify.oldest_undone(me paynotify.consumers)
RETURNS timestamptz
LANGUAGE plpgsql STABLE
AS $$
DECLARE
	mark paynotify.consumer_marks;
BEGIN
	SELECT * INTO mark FROM paynotify.consumer_marks m
	WHERE m.consumer_id = me.id
	ORDER BY m.seq DESC, m.tended_at DESC LIMIT 1;
	RETURN least(
		(SELECT min(r.received_at)
		FROM (SELECT d.received_at FROM paynotify.deliveries d
			WHERE d.consumer_id = me.id AND d.state = 'retry'
				AND d.retry_at >= mark.due_from
			ORDER BY d.retry_at LIMIT 1000) r),
		(SELECT d.received_at FROM paynotify.deliveries d
		WHERE d.consumer_id = me.id AND d.state = 'waiting'
			AND d.seq >= mark.waiting_seq
		ORDER BY d.seq LIMIT 1),
		(SELECT min((SELECT d.received_at FROM paynotify.deliveries d
			WHERE d.consumer_id = me.id AND d.seq = l.seq
				AND d.state = 'leased'))
		FROM (SELECT unnest(c.seqs) AS seq
			FROM (SELECT * FROM paynotify.claims k
				WHERE k.consumer_id = me.id
				ORDER BY k.expires_at LIMIT 1000) c
			LIMIT 1000) l),
		-- The second only if the first finds nothing.
		coalesce((SELECT w.received_at
			FROM (SELECT * FROM paynotify.event_log e
				WHERE e.seq > mark.seq
				ORDER BY e.seq LIMIT 1000) w
			WHERE (me.tenants IS NULL
					OR w.tenant = ANY (me.tenants))
				AND (me.type_patterns IS NULL
					OR w.type LIKE ANY (me.type_patterns))
				AND w.received_at >= me.start_at
				AND (SELECT true FROM paynotify.deliveries d
					WHERE d.consumer_id = me.id
						AND d.seq = w.seq
					LIMIT 1) IS NULL
			ORDER BY w.seq LIMIT 1),
			(SELECT e.received_at FROM paynotify.event_log e
			WHERE e.seq > mark.seq
			ORDER BY e.seq OFFSET 999 LIMIT 1)));
END
$$;

-- How far ahead the table with the fewest partitions has them.
CREATE FUNCTION paynotify.partitions_ahead() RETURNS interval
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
SELECT min(coalesce((SELECT max(substring(
		pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)')
		::timestamptz)
	FROM pg_inherits i
	JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = t.name::regclass AND NOT i.inhdetachpending), now())
	- now())
FROM (VALUES ('paynotify.event_log'), ('paynotify.receipts'),
	('paynotify.evidence'), ('paynotify.delivery_attempts')) t (name)
$$;

-- One row a figure; consumer: of which, where there is one for each (of the
-- first `consumers`). Times are microseconds. A figure that is not known is not
-- among them.
CREATE FUNCTION paynotify.figures(consumers integer)
RETURNS TABLE (figure text, consumer text, value bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
	instant timestamptz := clock_timestamp();
	me paynotify.consumers;
BEGIN
	RETURN QUERY SELECT 'quarantine_open', NULL, count(*)
	FROM (SELECT FROM paynotify.quarantine q
		WHERE q.state = 'open' LIMIT 10000) o;
	RETURN QUERY SELECT 'quarantine_age', NULL,
		coalesce(paynotify.age_us(instant, (SELECT q.received_at
			FROM paynotify.quarantine q
			WHERE q.state = 'open' ORDER BY q.id LIMIT 1)), 0);
	-- As the last VACUUM or ANALYZE found it, and what the table has grown
	-- by since is not in it.
	RETURN QUERY SELECT 'hot_keys', NULL, c.reltuples::bigint
	FROM pg_class c
	WHERE c.oid = 'paynotify.idempotency_keys'::regclass
		AND c.reltuples >= 0;
	-- Those that are held for an operator stay, and are passed over.
	RETURN QUERY SELECT 'hot_key_overdue', NULL,
		coalesce(paynotify.age_us(instant, (SELECT k.expires_at
			FROM (SELECT * FROM paynotify.idempotency_keys i
				WHERE i.expires_at <= instant
				ORDER BY i.expires_at LIMIT 1000) k
			WHERE k.state = 'COMPLETED' AND k.lease_token IS NULL
			ORDER BY k.expires_at LIMIT 1)), 0);
	RETURN QUERY SELECT 'partitions_ahead', NULL,
		paynotify.age_us(instant + paynotify.partitions_ahead(), instant);
	FOR me IN SELECT * FROM paynotify.consumers c
		ORDER BY c.id LIMIT consumers
	LOOP
		RETURN QUERY SELECT 'dead_letters', me.name, count(*)
		FROM (SELECT FROM paynotify.deliveries d
			WHERE d.consumer_id = me.id AND d.state = 'dead'
			LIMIT 10000) o;
		RETURN QUERY SELECT 'undelivered_age', me.name,
			coalesce(paynotify.age_us(instant,
				paynotify.oldest_undone(me)), 0);
	END LOOP;
END
$$;

-- Between two times, never negative: clocks differ.
CREATE FUNCTION paynotify.age_us(later timestamptz, earlier timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT
AS $$
SELECT greatest((extract(epoch FROM later - earlier) * 1000000)::bigint, 0)
$$;

-- The list of who may do what goes on here.
ALTER FUNCTION paynotify.role_rights() RENAME TO role_rights_0008;
CREATE FUNCTION paynotify.role_rights(OUT grantee text, OUT what text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
SELECT * FROM paynotify.role_rights_0008()
UNION ALL
VALUES ('receiver', 'EXECUTE ON FUNCTION paynotify.figures(integer)'),
	('deliverer', 'EXECUTE ON FUNCTION paynotify.figures(integer)')
$$;

-- Nothing is for everybody.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA paynotify FROM PUBLIC;
