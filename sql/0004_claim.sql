-- Claiming and settling, for applications that pull and for the deliverer.
--
-- Promises, and what keeps each:
--
-- * No event is missed. A consumer's mark passes an event only when a row of
--   deliveries says who has it (or the filter leaves it out), in the same
--   transaction. Numbers that are missing in the sequence may belong to an
--   ingest that has not committed: the claim stops in front of the first such
--   gap (paynotify.settled_window).
-- * No event is claimed twice. Who claims locks (consumer, seq) first - an
--   advisory lock until the end of the transaction - and looks again with a
--   snapshot taken after: whoever had the lock before has committed by then,
--   and his row, or a mark that has passed, is visible. That takes READ
--   COMMITTED: in other levels the snapshot is older than the lock.
-- * Claims do not wait for each other, even in transactions that stay open:
--   locks are tried, never awaited; rows are SKIP LOCKED.
-- * Two holders never both finish. A token is good for one lease. settle()
--   takes the row by it, so the second waits for the first, and then finds the
--   token gone. A lease that has ended is lost, whether taken over or not.
-- * Events of one order go in order of seq: one at a time is leased; those
--   behind it wait. What waits is woken by who finishes the one before, and
--   should that one not see it (two transactions that cross), by tend().
-- * Old snapshots do no harm: nothing here reads past rows that are dead but
--   cannot be vacuumed, other than by exact key.
--
-- Rows that were found and locked are changed by their place (ctid), for the
-- sake of the plan: it is made once, when the tables may be empty, and a join
-- by key could become a scan of all deliveries.

-- A token is consumer, seq and four random bytes, so that it is found without
-- an index of its own.
CREATE FUNCTION paynotify.token_consumer(token uuid) RETURNS integer
LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || left(token::text, 8))::bit(32)::integer $$;

CREATE FUNCTION paynotify.token_seq(token uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || substr(replace(token::text, '-', ''), 9, 16))::bit(64)::bigint $$;

CREATE FUNCTION paynotify.new_token(consumer_id integer, seq bigint)
RETURNS uuid
LANGUAGE sql VOLATILE AS
$$ SELECT encode(int4send(consumer_id) || int8send(seq)
	|| substr(uuid_send(gen_random_uuid()), 1, 4), 'hex')::uuid $$;

-- NULL without an order number: held by nothing. A collision makes one order
-- wait for another, no more.
CREATE FUNCTION paynotify.order_hash(tenant text, account text,
	out_trade_no text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS
$$ SELECT hashtextextended(tenant || E'\n' || coalesce(account, '') || E'\n'
	|| out_trade_no, 0) $$;

-- The transactions that are recording events: whoever takes a number of
-- event_log has the lock of an INSERT on it since before, and keeps it to the
-- end. (Locks, not the xids that a snapshot lists as running: those end at the
-- newest that has ended, and a number may be taken before an xid is.)
CREATE FUNCTION paynotify.recorders() RETURNS text[]
LANGUAGE plpgsql
AS $$
BEGIN
	RETURN ARRAY(SELECT l.virtualtransaction FROM pg_locks l
		WHERE l.locktype = 'relation' AND l.granted
			AND l.mode = 'RowExclusiveLock'
			AND l.relation = 'paynotify.event_log'::regclass
			AND l.database = (SELECT b.oid FROM pg_database b
				WHERE b.datname = current_database())
			AND l.pid IS DISTINCT FROM pg_backend_pid());
END
$$;

CREATE FUNCTION paynotify.newest_mark(consumer integer)
RETURNS paynotify.consumer_marks
LANGUAGE plpgsql
AS $$
DECLARE
	mark paynotify.consumer_marks;
BEGIN
	SELECT * INTO mark FROM paynotify.consumer_marks m
	WHERE m.consumer_id = consumer
	ORDER BY m.seq DESC, m.tended_at DESC LIMIT 1;
	RETURN mark;
END
$$;

-- The events behind `after`, at most so many: in parallel arrays, since they
-- are looked at twice. open: for this consumer, and nobody's yet.
CREATE TYPE paynotify.claim_window AS (
	seqs bigint[],
	received_ats timestamptz[],
	order_hashes bigint[],
	opens boolean[],
	last_seq bigint,     -- of those scanned
	gap_seq bigint,      -- the last in front of missing numbers, or NULL
	open_seq bigint      -- the first that is open, or NULL
);

CREATE FUNCTION paynotify.scan_window(me paynotify.consumers, after bigint,
	until bigint, events integer)
RETURNS paynotify.claim_window
LANGUAGE plpgsql
AS $$
DECLARE
	ret paynotify.claim_window;
BEGIN
	SELECT array_agg(w.seq ORDER BY w.seq),
		array_agg(w.received_at ORDER BY w.seq),
		array_agg(w.order_hash ORDER BY w.seq),
		array_agg(w.open ORDER BY w.seq),
		max(w.seq),
		min(w.previous) FILTER (WHERE w.seq - w.previous > 1),
		min(w.seq) FILTER (WHERE w.open)
	INTO ret
	FROM (SELECT e.seq, e.received_at,
			paynotify.order_hash(e.tenant, e.account, e.out_trade_no)
				AS order_hash,
			lag(e.seq, 1, after) OVER (ORDER BY e.seq) AS previous,
			(me.tenants IS NULL OR e.tenant = ANY (me.tenants))
			AND (me.type_patterns IS NULL
				OR e.type LIKE ANY (me.type_patterns))
			AND e.received_at >= me.start_at
			-- Not EXISTS, which might be planned as a hash of all rows.
			AND (SELECT true FROM paynotify.deliveries d
				WHERE d.consumer_id = me.id AND d.seq = e.seq
				LIMIT 1) IS NULL AS open
		FROM (SELECT l.seq, l.received_at, l.tenant, l.account,
				l.out_trade_no, l.type
			FROM paynotify.event_log l
			WHERE l.seq > after AND l.seq <= until
			ORDER BY l.seq LIMIT events) e) w;
	RETURN ret;
END
$$;

-- A window that may be claimed from: cut in front of the first gap that may yet
-- be filled - in front of all of it: of two numbers that are missing the second
-- may be there at the next look, and the first not. Who took a number that is
-- missing did so before the next higher one was taken, so it is among those who
-- record now, or has ended: when all of these have, the gap is filled, or stays.
-- may_wait: if there is nothing before the gap, gives them a moment - where
-- several receivers record all the time, there is none at which nobody does.
CREATE FUNCTION paynotify.settled_window(me paynotify.consumers, after bigint,
	events integer, may_wait boolean)
RETURNS paynotify.claim_window
LANGUAGE plpgsql
AS $$
DECLARE
	looks_max CONSTANT integer := 40;
	looks integer := 0;
	w paynotify.claim_window;
	recorders text[];
BEGIN
	w := paynotify.scan_window(me, after, 9223372036854775807, events);
	IF w.gap_seq IS NULL THEN
		RETURN w;
	END IF;
	recorders := paynotify.recorders();
	WHILE recorders <> '{}' LOOP
		IF NOT may_wait OR w.open_seq <= w.gap_seq OR looks >= looks_max
		THEN
			RETURN paynotify.scan_window(me, after, w.gap_seq, events);
		END IF;
		PERFORM pg_sleep(0.0025);
		recorders := ARRAY(SELECT unnest(recorders)
			INTERSECT SELECT unnest(paynotify.recorders()));
		looks := looks + 1;
	END LOOP;
	-- With a snapshot that is younger than the end of all of them.
	RETURN paynotify.scan_window(me, after, w.last_seq, events);
END
$$;

-- Takes up to `wanted` events behind the mark. Returns what is leased; what is
-- behind an unfinished event of its order gets a row and waits.
CREATE FUNCTION paynotify.take_new(me paynotify.consumers,
	mark paynotify.consumer_marks, wanted integer, lease_ends timestamptz,
	may_wait boolean)
RETURNS TABLE (seq bigint, received_at timestamptz, token uuid)
LANGUAGE plpgsql
SET enable_hashjoin = on
SET enable_nestloop = off -- of two arrays that are thought to be short
AS $$
#variable_conflict use_column
DECLARE
	-- How far a claim looks (a filter may leave out most events), in events
	-- and in time; and how many it locks, those that will wait among them:
	-- the table of locks is everybody's. The mark has moved by then, and the
	-- next claim goes on from there.
	events_max CONSTANT integer := 262144;
	time_max CONSTANT interval := '100 ms';
	locks_max CONSTANT integer := 1000;
	began CONSTANT timestamptz := clock_timestamp();
	locked integer := 0;
	events integer := greatest(wanted + wanted / 4, 32);
	scanned integer := 0;
	after bigint := mark.seq;
	taken integer := 0;
	w paynotify.claim_window;
	until bigint;        -- how far of the window
	firsts boolean[];    -- of their order, in this window
	mine bigint[];       -- locked by this transaction
	led bigint[];        -- orders whose first one is
	held bigint[] := '{}'; -- orders with an event that another one claims
	left_open bigint;    -- the first event that stays open
	passed bigint := mark.seq; -- how far the mark may go
	front boolean := true;     -- nothing open was left behind so far
	seqs bigint[];
	received_ats timestamptz[];
	tokens uuid[];
	hashes bigint[];
	left_hashes bigint[];
BEGIN
	WHILE taken < wanted AND locked < locks_max AND scanned < events_max
		AND clock_timestamp() < began + time_max LOOP
		w := paynotify.settled_window(me, after, events,
			may_wait AND taken = 0);
		EXIT WHEN w.seqs IS NULL;
		-- As far as there are as many first ones of an order as are
		-- wanted. The others go with the first one: they will wait.
		SELECT array_agg(u.seq ORDER BY u.seq)
				FILTER (WHERE u.firsts <= wanted - taken),
			array_agg(u.order_hash ORDER BY u.seq)
				FILTER (WHERE u.firsts <= wanted - taken),
			array_agg(u.first ORDER BY u.seq)
				FILTER (WHERE u.firsts <= wanted - taken),
			coalesce(min(u.seq) FILTER (WHERE
				u.firsts > wanted - taken) - 1, w.last_seq)
		INTO seqs, hashes, firsts, until
		FROM (SELECT f.*, sum(f.first::integer) OVER (ORDER BY f.seq)
				AS firsts
			FROM (SELECT t.seq, t.order_hash, t.order_hash IS NULL
					OR row_number() OVER (PARTITION BY
						t.order_hash ORDER BY t.seq) = 1
					AND t.order_hash <> ALL (held) AS first
				FROM unnest(w.seqs, w.order_hashes, w.opens)
					t (seq, order_hash, open)
				WHERE t.open) f) u;
		-- One by one, in order of seq. (CASE: or the lock might be tried
		-- before the rest is looked at.)
		SELECT array_agg(t.seq), array_agg(t.order_hash)
		INTO mine, led
		FROM unnest(seqs, hashes, firsts) t (seq, order_hash, first)
		WHERE CASE WHEN t.first THEN pg_try_advisory_xact_lock(
			1886257152 + me.id, (t.seq & 2147483647)::integer) END;
		IF cardinality(mine) < cardinality(seqs) THEN
			mine := mine || ARRAY(SELECT t.seq
				FROM unnest(seqs, hashes, firsts)
					t (seq, order_hash, first)
				WHERE CASE WHEN NOT t.first
						AND t.order_hash = ANY (led)
					THEN pg_try_advisory_xact_lock(
						1886257152 + me.id,
						(t.seq & 2147483647)::integer)
					END);
		END IF;
		locked := locked + coalesce(cardinality(mine), 0);
		-- A statement of its own: its snapshot is younger than the locks.
		WITH o AS MATERIALIZED (
			SELECT u.seq, u.received_at, u.order_hash,
				m.seq IS NOT NULL AS mine
			FROM unnest(w.seqs, w.received_ats, w.order_hashes,
				w.opens) u (seq, received_at, order_hash, open)
			LEFT JOIN unnest(mine) m (seq) ON m.seq = u.seq
			WHERE u.open AND u.seq <= until
				AND u.seq > (SELECT max(n.seq)
					FROM paynotify.consumer_marks n
					WHERE n.consumer_id = me.id)
				AND (SELECT true FROM paynotify.deliveries d
					WHERE d.consumer_id = me.id
						AND d.seq = u.seq
					LIMIT 1) IS NULL
		), b AS MATERIALIZED (
			SELECT o.seq, o.received_at, o.order_hash, o.mine,
				count(*) OVER before AS ahead,
				coalesce(bool_and(o.mine) OVER before, true)
					AS ahead_mine,
				o.mine AND (SELECT true
					FROM paynotify.deliveries d
					WHERE d.order_hash = o.order_hash
						AND d.consumer_id + 0 = me.id
						AND d.seq + 0 < o.seq
						AND d.state IN ('leased',
							'waiting', 'retry')
					LIMIT 1) IS NOT NULL AS behind
			FROM o
			WINDOW before AS (PARTITION BY o.order_hash,
				CASE WHEN o.order_hash IS NULL THEN o.seq END
				ORDER BY o.seq ROWS BETWEEN UNBOUNDED PRECEDING
				AND 1 PRECEDING)
		), j AS MATERIALIZED (
			SELECT b.seq, b.received_at, b.order_hash,
				CASE WHEN NOT b.mine OR NOT b.ahead_mine
						OR (b.order_hash = ANY (held)) IS TRUE
					THEN 'open'
				WHEN b.ahead > 0 OR b.behind THEN 'waiting'
				ELSE 'leased' END AS state,
				paynotify.new_token(me.id, b.seq) AS token
			FROM b
		), claimed AS (
			INSERT INTO paynotify.deliveries (consumer_id, seq,
				received_at, order_hash, state, attempts,
				token, lease_expires_at)
			SELECT me.id, j.seq, j.received_at, j.order_hash,
				j.state, (j.state = 'leased')::integer,
				CASE j.state WHEN 'leased' THEN j.token END,
				CASE j.state WHEN 'leased' THEN lease_ends END
			FROM j WHERE j.state <> 'open'
			ORDER BY j.seq
		)
		SELECT array_agg(j.seq ORDER BY j.seq)
				FILTER (WHERE j.state = 'leased'),
			array_agg(j.received_at ORDER BY j.seq)
				FILTER (WHERE j.state = 'leased'),
			array_agg(j.token ORDER BY j.seq)
				FILTER (WHERE j.state = 'leased'),
			min(j.seq) FILTER (WHERE j.state = 'open'),
			array_agg(j.order_hash) FILTER (WHERE j.state = 'open'
				AND j.order_hash IS NOT NULL)
		INTO seqs, received_ats, tokens, left_open, left_hashes
		FROM j;
		RETURN QUERY SELECT * FROM unnest(seqs, received_ats, tokens);
		taken := taken + coalesce(cardinality(seqs), 0);
		IF front THEN
			passed := coalesce(left_open - 1, until);
			front := left_open IS NULL;
		END IF;
		held := held || left_hashes;
		after := until;
		scanned := scanned + cardinality(w.seqs);
		IF until = w.last_seq THEN
			EXIT WHEN cardinality(w.seqs) < events;
			events := least(2 * events, 2048);
		END IF;
	END LOOP;
	IF passed > mark.seq THEN
		mark.seq := passed;
		INSERT INTO paynotify.consumer_marks VALUES (mark.*);
	END IF;
END
$$;

-- Takes up to `wanted` events that are due again, since due_from.
CREATE FUNCTION paynotify.take_due(me paynotify.consumers, wanted integer,
	lease_ends timestamptz, due_from timestamptz, instant timestamptz)
RETURNS TABLE (seq bigint, received_at timestamptz, token uuid,
	attempt integer, redelivery boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY WITH due AS MATERIALIZED (
		SELECT d.ctid AS place FROM paynotify.deliveries d
		WHERE d.consumer_id = me.id AND d.state = 'retry'
			AND d.retry_at >= due_from AND d.retry_at <= instant
		ORDER BY d.retry_at LIMIT wanted
		FOR UPDATE SKIP LOCKED
	)
	UPDATE paynotify.deliveries d
	SET state = 'leased', attempts = d.attempts + 1, retry_at = NULL,
		token = paynotify.new_token(me.id, d.seq),
		lease_expires_at = lease_ends
	FROM due
	WHERE d.ctid = due.place
	RETURNING d.seq, d.received_at, d.token, d.attempts, d.redelivery;
END
$$;

-- Leases that have ended come back, and those wait no longer whose order goes
-- on: at most rows_max, due since due_at. What another transaction has locked is
-- left to the next time. A claim sweeps no more than it takes, and puts it in
-- front: its transaction may stay open, and the rows are locked as long.
CREATE FUNCTION paynotify.sweep(consumer integer,
	mark paynotify.consumer_marks, instant timestamptz, due_at timestamptz,
	rows_max integer)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
	swept integer;
BEGIN
	WITH ended AS MATERIALIZED (
		SELECT c.seqs FROM paynotify.claims c
		WHERE c.consumer_id = consumer AND c.expires_at <= instant
	), lost AS MATERIALIZED (
		SELECT l.place FROM (SELECT unnest(seqs) AS seq FROM ended) s
		CROSS JOIN LATERAL (SELECT d.ctid AS place
			FROM paynotify.deliveries d
			WHERE d.consumer_id = consumer AND d.seq = s.seq
				AND d.state = 'leased'
				AND d.lease_expires_at <= instant
			LIMIT 1 FOR UPDATE SKIP LOCKED) l
		LIMIT rows_max
	)
	UPDATE paynotify.deliveries d
	SET state = 'retry', retry_at = due_at, token = NULL,
		lease_expires_at = NULL,
		reason = 'the lease ended before the event was settled'
	FROM lost
	WHERE d.ctid = lost.place;
	GET DIAGNOSTICS swept = ROW_COUNT;
	-- Acknowledged before the mark passed, but committed after tend() had
	-- been there: done rows that it does not come by again.
	DELETE FROM paynotify.deliveries
	WHERE ctid = ANY (ARRAY(
		SELECT l.place FROM (SELECT unnest(c.seqs) AS seq
			FROM paynotify.claims c
			WHERE c.consumer_id = consumer
				AND c.expires_at <= instant) s
		CROSS JOIN LATERAL (SELECT d.ctid AS place
			FROM paynotify.deliveries d
			WHERE d.consumer_id = consumer AND d.seq = s.seq
				AND d.seq <= mark.seq AND d.state = 'done'
			LIMIT 1 FOR UPDATE SKIP LOCKED) l));
	DELETE FROM paynotify.claims
	WHERE ctid = ANY (ARRAY(
		SELECT c.ctid FROM paynotify.claims c
		WHERE c.consumer_id = consumer AND c.expires_at <= instant
			-- LIMIT 1 inside: by exact key, one after the other.
			AND (SELECT true FROM unnest(c.seqs) s (seq)
				CROSS JOIN LATERAL (SELECT d.state,
						d.lease_expires_at
					FROM paynotify.deliveries d
					WHERE d.consumer_id = consumer
						AND d.seq = s.seq LIMIT 1) l
				WHERE l.state = 'done' OR l.state = 'leased'
					AND l.lease_expires_at <= instant
				LIMIT 1) IS NULL
		FOR UPDATE SKIP LOCKED));
	WITH free AS MATERIALIZED (
		SELECT w.ctid AS place FROM paynotify.deliveries w
		WHERE w.consumer_id = consumer AND w.state = 'waiting'
			AND w.seq >= mark.waiting_seq
			AND (SELECT true FROM paynotify.deliveries p
				WHERE p.order_hash = w.order_hash
					AND p.consumer_id + 0 = consumer
					AND p.seq + 0 < w.seq
					AND p.state IN ('leased', 'waiting',
						'retry')
				LIMIT 1) IS NULL
		ORDER BY w.seq LIMIT rows_max - swept
		FOR UPDATE SKIP LOCKED
	)
	UPDATE paynotify.deliveries w
	SET state = 'retry', retry_at = due_at
	FROM free
	WHERE w.ctid = free.place;
END
$$;

-- sweep(), removes what has become useless (old marks, and rows of events that
-- are done and that the mark has passed), and notes where to begin to look the
-- next time. One of these beginnings may be wrong, if a transaction commits
-- seconds after it settled: what is due before due_from is not seen until a
-- claim finds nothing else. And a mark that was set in a transaction that stayed
-- open may be lower than those that are removed. So once in a while all is
-- looked at.
CREATE FUNCTION paynotify.tend(me paynotify.consumers,
	mark paynotify.consumer_marks, instant timestamptz, due_at timestamptz,
	rows_max integer)
RETURNS paynotify.consumer_marks
LANGUAGE plpgsql
AS $$
DECLARE
	ret paynotify.consumer_marks := mark;
	marks_from bigint := mark.cleaned_seq;
BEGIN
	IF random() < 0.01 THEN
		marks_from := 0;
		mark.due_from := '-infinity';
	END IF;
	PERFORM paynotify.sweep(me.id, mark, instant,
		greatest(due_at, mark.due_from), rows_max);
	DELETE FROM paynotify.deliveries
	WHERE ctid = ANY (ARRAY(
		SELECT d.ctid FROM paynotify.deliveries d
		WHERE d.consumer_id = me.id AND d.seq > mark.cleaned_seq
			AND d.seq <= mark.seq AND d.state = 'done'
		FOR UPDATE SKIP LOCKED));
	ret.tended_at := instant;
	ret.cleaned_seq := mark.seq;
	-- What starts to wait later has a number above the mark.
	ret.waiting_seq := least(mark.seq, (SELECT min(w.seq)
		FROM paynotify.deliveries w
		WHERE w.consumer_id = me.id AND w.state = 'waiting'
			AND w.seq >= mark.waiting_seq));
	ret.due_from := least(instant, (SELECT min(d.retry_at)
		FROM paynotify.deliveries d
		WHERE d.consumer_id = me.id AND d.state = 'retry'
			AND d.retry_at >= mark.due_from)) - interval '10 s';
	-- A consumer that is idle writes nothing: a commit a second, which would
	-- wait for the standby as well, for the sake of a note.
	IF mark.seq > mark.cleaned_seq OR ret.waiting_seq <> mark.waiting_seq
		OR ret.due_from > mark.due_from + interval '1 minute' THEN
		INSERT INTO paynotify.consumer_marks VALUES (ret.*);
		DELETE FROM paynotify.consumer_marks
		WHERE ctid = ANY (ARRAY(
			SELECT m.ctid FROM paynotify.consumer_marks m
			WHERE m.consumer_id = me.id AND m.seq >= marks_from
				AND (m.seq, m.tended_at) < (mark.seq, instant)
			FOR UPDATE SKIP LOCKED));
	END IF;
	RETURN ret;
END
$$;

-- What claim() and the deliverer stand on: leases at most max_events events (and
-- at most 1000) of the consumer. Nothing while it is paused or disabled.
--
-- A claim holds an advisory lock an event until its transaction ends, and
-- PostgreSQL has room for max_locks_per_transaction * max_connections, for
-- everybody, the receivers included. So large claims become small ones when
-- others hold a quarter of it. And a transaction that claimed and then idles
-- for longer than its lease is ended by the server: its acks would fail anyway,
-- and until it ends the mark cannot pass what it holds.
CREATE FUNCTION paynotify.take(consumer text, max_events integer,
	lease interval)
RETURNS TABLE (seq bigint, received_at timestamptz, token uuid,
	attempt integer, redelivery boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	instant timestamptz := clock_timestamp();
	me paynotify.consumers;
	mark paynotify.consumer_marks;
	seqs bigint[];
	received_ats timestamptz[];
	tokens uuid[];
	attempts integer[];
	redeliveries boolean[];
	looked boolean := false;
	small_max CONSTANT integer := 100;
	idle_ms bigint;
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'events are claimed in READ COMMITTED only'
		USING HINT = 'claim in a transaction of its own, or BEGIN '
			'ISOLATION LEVEL READ COMMITTED', ERRCODE = '25001';
	END IF;
	IF (max_events >= 1) IS NOT TRUE THEN
		RAISE EXCEPTION 'max_events must be at least 1, not %',
			max_events USING ERRCODE = '22023';
	END IF;
	max_events := least(max_events, 1000);
	IF (lease > interval '0' AND lease <= interval '400 days')
		IS NOT TRUE THEN
		RAISE EXCEPTION 'a lease must be longer than 0 and at most 400 '
			'days, not %', lease USING ERRCODE = '22023';
	END IF;
	SELECT * INTO me FROM paynotify.consumers c WHERE c.name = consumer;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no consumer "%"', consumer
		USING HINT = format('SELECT paynotify.register_consumer(%L)',
			consumer), ERRCODE = 'PN002';
	END IF;
	IF me.state <> 'active' THEN
		RETURN;
	END IF;
	IF max_events > small_max AND (SELECT count(*) FROM pg_locks l
		WHERE l.locktype = 'advisory') * 4
		> current_setting('max_locks_per_transaction')::bigint
			* current_setting('max_connections')::bigint THEN
		max_events := small_max;
	END IF;
	idle_ms := extract(epoch FROM least(lease, interval '1 day')
		+ interval '30 s') * 1000;
	IF current_setting('idle_in_transaction_session_timeout')::interval
		NOT BETWEEN interval '1 ms' AND idle_ms * interval '1 ms' THEN
		PERFORM set_config('idle_in_transaction_session_timeout',
			idle_ms::text, true);
	END IF;
	mark := paynotify.newest_mark(me.id);
	IF mark.tended_at < instant - interval '1 second' THEN
		mark := paynotify.tend(me, mark, instant, '-infinity',
			max_events);
	END IF;
	LOOP
		SELECT array_agg(t.seq), array_agg(t.received_at),
			array_agg(t.token), array_agg(t.attempt),
			array_agg(t.redelivery)
		INTO seqs, received_ats, tokens, attempts, redeliveries
		FROM paynotify.take_due(me, max_events, instant + lease,
			mark.due_from, instant) t;
		EXIT WHEN coalesce(cardinality(seqs), 0) = max_events;
		SELECT seqs || array_agg(t.seq),
			received_ats || array_agg(t.received_at),
			tokens || array_agg(t.token),
			attempts || array_agg(1),
			redeliveries || array_agg(false)
		INTO seqs, received_ats, tokens, attempts, redeliveries
		FROM paynotify.take_new(me, mark,
			max_events - coalesce(cardinality(seqs), 0),
			instant + lease, looked AND seqs IS NULL) t;
		EXIT WHEN cardinality(seqs) > 0 OR looked;
		-- Nothing: maybe a lease has ended this moment, or something was
		-- due long before it was committed.
		mark.due_from := '-infinity';
		PERFORM paynotify.sweep(me.id, mark, instant, mark.due_from,
			max_events);
		looked := true;
	END LOOP;
	IF cardinality(seqs) > 0 THEN
		INSERT INTO paynotify.claims
		VALUES (me.id, instant + lease, seqs);
		RETURN QUERY SELECT *
			FROM unnest(seqs, received_ats, tokens, attempts,
				redeliveries) u (seq, received_at, token,
				attempt, redelivery)
			ORDER BY u.seq;
	END IF;
END
$$;
