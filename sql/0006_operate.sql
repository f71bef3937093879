-- What operators do about the hand-off, and who may do what.

-- Pauses, resumes or disables a consumer. PN002: there is none.
CREATE FUNCTION paynotify.set_consumer_state(consumer text, new_state text,
	why text, actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	consumer_id integer;
BEGIN
	UPDATE paynotify.consumers c
	SET state = new_state,
		reason = CASE new_state WHEN 'active' THEN NULL ELSE why END
	WHERE c.name = consumer
	RETURNING c.id INTO consumer_id;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no consumer "%"', consumer
		USING ERRCODE = 'PN002';
	END IF;
	INSERT INTO paynotify.delivery_actions (consumer_id, action, actor,
		reason)
	VALUES (consumer_id, CASE new_state WHEN 'active' THEN 'resume'
		WHEN 'paused' THEN 'pause' ELSE 'disable' END, actor, why);
END
$$;

-- The delivery of an event, locked, for an operator to change. The state is NULL
-- where there is no row: done, if it was claimed. Waits for who has it locked.
CREATE FUNCTION paynotify.lock_delivery(consumer text, event_seq bigint,
	OUT me paynotify.consumers, OUT event paynotify.event_log,
	OUT delivery paynotify.deliveries, OUT claimed boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
	mark bigint;
BEGIN
	SELECT * INTO me FROM paynotify.consumers c WHERE c.name = consumer;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no consumer "%"', consumer
		USING ERRCODE = 'PN002';
	END IF;
	SELECT * INTO event FROM paynotify.event_log e
	WHERE e.seq = event_seq;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no event %', event_seq
		USING ERRCODE = 'PN002';
	END IF;
	-- The mark first: were it read after the row, a claim in between would
	-- make an event that is leased look as if it was done.
	SELECT max(m.seq) INTO mark FROM paynotify.consumer_marks m
	WHERE m.consumer_id = me.id;
	SELECT * INTO delivery FROM paynotify.deliveries d
	WHERE d.consumer_id = me.id AND d.seq = event_seq
	FOR UPDATE;
	claimed := FOUND OR event_seq <= mark;
END
$$;

-- Hands events over once more, whatever became of them: at once, and beside
-- the order that they belong to (what follows has gone already), unless they
-- are being retried anyway.
CREATE FUNCTION paynotify.redeliver(consumer text, seqs bigint[], why text,
	actor text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	l record;
	event_seq bigint;
BEGIN
	FOREACH event_seq IN ARRAY seqs LOOP
		l := paynotify.lock_delivery(consumer, event_seq);
		IF NOT l.claimed THEN
			RAISE EXCEPTION 'event % has not been claimed by "%" yet',
				event_seq, consumer
			USING ERRCODE = 'PN003', HINT = 'It will be, in its '
				'turn. Is the consumer paused, or nothing '
				'running that claims, or is it claimed in a '
				'transaction that is rolled back each time? '
				'Then skip it.';
		ELSIF (l.delivery).state = 'leased' THEN
			RAISE EXCEPTION 'event % is being handed off at this '
				'moment', event_seq
			USING ERRCODE = 'PN003', HINT = format(
				'Its lease ends at %s.',
				(l.delivery).lease_expires_at);
		ELSIF (l.delivery).state = 'waiting' THEN
			RAISE EXCEPTION 'event % waits for an earlier event of '
				'its order', event_seq
			USING ERRCODE = 'PN003',
				HINT = 'Redeliver or skip the earlier one.';
		ELSIF (l.delivery).state IS NULL AND NOT (
			((l.me).tenants IS NULL
				OR (l.event).tenant = ANY ((l.me).tenants))
			AND ((l.me).type_patterns IS NULL
				OR (l.event).type LIKE ANY ((l.me).type_patterns)))
		THEN
			RAISE EXCEPTION 'event % is not for "%": its filter '
				'leaves out tenant "%", type "%"', event_seq,
				consumer, (l.event).tenant, (l.event).type
			USING ERRCODE = 'PN003';
		END IF;
		INSERT INTO paynotify.deliveries AS d (consumer_id, seq,
			received_at, state, attempts, retry_at, redelivery)
		VALUES ((l.me).id, event_seq, (l.event).received_at, 'retry', 0,
			clock_timestamp(), true)
		ON CONFLICT (consumer_id, seq) DO UPDATE
		SET order_hash = CASE d.state WHEN 'retry' THEN d.order_hash END,
			state = 'retry', attempts = 0,
			retry_at = excluded.retry_at, redelivery = true
		WHERE d.state NOT IN ('leased', 'waiting');
		IF NOT FOUND THEN
			RAISE EXCEPTION 'event % is being handed off at this '
				'moment', event_seq USING ERRCODE = 'PN003';
		END IF;
		INSERT INTO paynotify.delivery_actions (consumer_id, seq, action,
			actor, reason)
		VALUES ((l.me).id, event_seq, 'redeliver', actor, why);
	END LOOP;
	RETURN coalesce(cardinality(seqs), 0);
END
$$;

-- Gives events up: as if they were done, and their orders go on. A lease on one
-- is lost by it.
CREATE FUNCTION paynotify.skip(consumer text, seqs bigint[], why text,
	actor text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	l record;
	event_seq bigint;
BEGIN
	FOREACH event_seq IN ARRAY seqs LOOP
		l := paynotify.lock_delivery(consumer, event_seq);
		IF l.claimed AND ((l.delivery).state IS NULL
			OR (l.delivery).state = 'done') THEN
			RAISE EXCEPTION 'event % is done: there is nothing to '
				'skip', event_seq USING ERRCODE = 'PN003';
		END IF;
		-- One that is not claimed yet (or only in transactions that fail)
		-- is, by this: with the lock of a claim.
		IF NOT l.claimed AND NOT pg_try_advisory_xact_lock(
			1886257152 + (l.me).id, (event_seq & 2147483647)::integer)
		THEN
			RAISE EXCEPTION 'event % is claimed in a transaction '
				'that is open at this moment', event_seq
			USING ERRCODE = 'PN003', HINT = 'Try again when it '
				'has ended, or end its session.';
		END IF;
		INSERT INTO paynotify.deliveries AS d (consumer_id, seq,
			received_at, state, attempts)
		VALUES ((l.me).id, event_seq, (l.event).received_at, 'done', 0)
		ON CONFLICT (consumer_id, seq) DO UPDATE
		SET state = 'done', token = NULL, lease_expires_at = NULL,
			retry_at = NULL;
		DELETE FROM paynotify.deliveries d
		WHERE d.consumer_id = (l.me).id AND d.seq = event_seq
			AND d.seq <= (SELECT max(m.seq)
				FROM paynotify.consumer_marks m
				WHERE m.consumer_id = (l.me).id);
		-- Should the mark pass before this commits, sweep() removes it.
		INSERT INTO paynotify.claims
		VALUES ((l.me).id, clock_timestamp(), ARRAY[event_seq]);
		INSERT INTO paynotify.delivery_actions (consumer_id, seq, action,
			actor, reason)
		VALUES ((l.me).id, event_seq, 'skip', actor, why);
		PERFORM paynotify.wake(ARRAY[(l.me).id],
			ARRAY[(l.delivery).order_hash], clock_timestamp());
	END LOOP;
	RETURN coalesce(cardinality(seqs), 0);
END
$$;

-- Forgets a consumer: an application or an endpoint that is no more. What it has
-- not been handed is not for anybody any more; what was tried stays on record.
-- PN003: it has leases that have not ended.
CREATE FUNCTION paynotify.remove_consumer(consumer text, why text, actor text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
	me paynotify.consumers;
BEGIN
	SELECT * INTO me FROM paynotify.consumers c WHERE c.name = consumer
	FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no consumer "%"', consumer
		USING ERRCODE = 'PN002';
	END IF;
	IF EXISTS (SELECT FROM paynotify.deliveries d
		WHERE d.consumer_id = me.id AND d.state = 'leased'
			AND d.lease_expires_at > clock_timestamp()) THEN
		RAISE EXCEPTION 'consumer "%" has events in hand', consumer
		USING ERRCODE = 'PN003', HINT = 'Stop it, pause it, and try '
			'again when its leases have ended.';
	END IF;
	DELETE FROM paynotify.endpoints e WHERE e.consumer_id = me.id;
	DELETE FROM paynotify.deliveries d WHERE d.consumer_id = me.id;
	DELETE FROM paynotify.claims c WHERE c.consumer_id = me.id;
	DELETE FROM paynotify.consumer_marks m WHERE m.consumer_id = me.id;
	DELETE FROM paynotify.consumers c WHERE c.id = me.id;
	INSERT INTO paynotify.delivery_actions (consumer_id, action, actor,
		reason)
	VALUES (me.id, 'remove', actor, format('%s: %s', consumer, why));
END
$$;

-- As in 0002, with the attempts of deliveries.
CREATE OR REPLACE FUNCTION paynotify.make_partitions(until timestamptz)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '5s'
AS $$
DECLARE
	parent text;
	by_column text;
	child text;
	lower_bound timestamptz;
	upper_bound timestamptz;
	made integer := 0;
BEGIN
	IF until > now() + interval '10 years' THEN
		RAISE EXCEPTION 'partitions are made at most 10 years ahead';
	END IF;
	-- One at a time: two hosts would attach the same month.
	PERFORM pg_advisory_xact_lock(7236835126381);
	FOR parent, by_column IN VALUES ('event_log', 'received_at'),
		('receipts', 'received_at'), ('evidence', 'received_at'),
		('delivery_attempts', 'started_at') LOOP
		lower_bound := date_trunc('month', now()) - interval '1 month';
		WHILE lower_bound <= until LOOP
			upper_bound := lower_bound + interval '1 month';
			child := parent || to_char(lower_bound, '_YYYY_MM');
			IF to_regclass('paynotify.' || child) IS NULL THEN
				EXECUTE format('CREATE TABLE paynotify.%1$I '
					'(LIKE paynotify.%2$I INCLUDING ALL '
					'EXCLUDING IDENTITY, '
					'CONSTRAINT bounds CHECK '
					'(%3$I >= %4$L AND %3$I < %5$L)) '
					'WITH (toast_tuple_target = 8160)',
					child, parent, by_column, lower_bound,
					upper_bound);
				EXECUTE format('ALTER TABLE paynotify.%I '
					'ATTACH PARTITION paynotify.%I '
					'FOR VALUES FROM (%L) TO (%L)',
					parent, child, lower_bound, upper_bound);
				EXECUTE format('ALTER TABLE paynotify.%I '
					'DROP CONSTRAINT bounds', child);
				made := made + 1;
			END IF;
			lower_bound := upper_bound;
		END LOOP;
	END LOOP;
	RETURN made;
END
$$;

-- The one list of who may do what. A later migration renames it and makes one of
-- this name that selects from it, with what is new.
CREATE FUNCTION paynotify.role_rights(OUT grantee text, OUT what text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
VALUES
	('owner', 'ALL ON SCHEMA paynotify'),
	('owner', 'ALL ON ALL TABLES IN SCHEMA paynotify'),
	('owner', 'ALL ON ALL FUNCTIONS IN SCHEMA paynotify'),
	('receiver', 'USAGE ON SCHEMA paynotify'),
	('receiver', 'SELECT ON paynotify.migrations'),
	('receiver', 'INSERT ON paynotify.event_log, paynotify.evidence,
		paynotify.idempotency_keys, paynotify.receipts,
		paynotify.quarantine, paynotify.verifying_keys'),
	-- What RETURNING and the look-ups read, and no more: no body, no
	-- event, no address of anybody.
	('receiver', 'SELECT (tenant, request_path, key, request_hash)
		ON paynotify.idempotency_keys'),
	('receiver', 'SELECT (tenant, digest, request_hash)
		ON paynotify.idempotency_archive'),
	('receiver', 'SELECT (id, received_at) ON paynotify.receipts'),
	('receiver', 'SELECT (receipt_id) ON paynotify.quarantine'),
	('receiver', 'EXECUTE ON FUNCTION
		paynotify.archive_expired_keys(integer),
		paynotify.make_partitions(timestamptz),
		paynotify.tend_consumers()'),
	('deliverer', 'USAGE ON SCHEMA paynotify'),
	('deliverer', 'SELECT ON paynotify.migrations,
		paynotify.events, paynotify.event_log,
		paynotify.consumers, paynotify.endpoints'),
	-- The payload, and not what was signed.
	('deliverer', 'SELECT (receipt_id, received_at, payload)
		ON paynotify.evidence'),
	('deliverer', 'INSERT ON paynotify.delivery_attempts'),
	('deliverer', 'EXECUTE ON FUNCTION
		paynotify.take(text, integer, interval),
		paynotify.settle(uuid[], text[], interval[], text[]),
		paynotify.put_endpoint(text, text[], text[], text,
			timestamptz),
		paynotify.set_consumer_state(text, text, text, text),
		paynotify.token_consumer(uuid),
		paynotify.token_seq(uuid), paynotify.tend_consumers()'),
	('consumer', 'USAGE ON SCHEMA paynotify'),
	('consumer', 'SELECT ON paynotify.events'),
	('consumer', 'EXECUTE ON FUNCTION
		paynotify.register_consumer(text, text[], text[],
			timestamptz),
		paynotify.claim(text, integer, interval),
		paynotify.ack(uuid), paynotify.ack_all(uuid[]),
		paynotify.nack(uuid, interval, text)'),
	('reader', 'USAGE ON SCHEMA paynotify'),
	('reader', 'SELECT ON ALL TABLES IN SCHEMA paynotify'),
	('reader', 'EXECUTE ON FUNCTION
		paynotify.event_ids(text, text)')
$$;

-- As in 0002; grants what is in the list, to the roles that there are.
CREATE OR REPLACE FUNCTION paynotify.grant_roles() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	role_name text;
	missing text[] := '{}';
	grantee text;
	what text;
BEGIN
	FOREACH role_name IN ARRAY ARRAY['paynotify_owner',
		'paynotify_receiver', 'paynotify_deliverer',
		'paynotify_consumer', 'paynotify_reader'] LOOP
		IF to_regrole(role_name) IS NULL THEN
			BEGIN
				EXECUTE format('CREATE ROLE %I NOLOGIN',
					role_name);
			EXCEPTION
			WHEN duplicate_object OR unique_violation THEN
				NULL; -- another database was quicker
			WHEN insufficient_privilege THEN
				missing := missing || role_name;
			END;
		END IF;
	END LOOP;
	IF missing <> '{}' THEN
		RAISE NOTICE 'group roles are missing: run as a superuser % '
			'and then "paynotifyctl db migrate" once more, which '
			'grants them their rights',
			(SELECT string_agg(format('CREATE ROLE %I NOLOGIN;', m),
				' ') FROM unnest(missing) m);
	END IF;

	FOR grantee, what IN SELECT * FROM paynotify.role_rights()
	LOOP
		role_name := 'paynotify_' || grantee;
		IF to_regrole(role_name) IS NOT NULL THEN
			EXECUTE format('GRANT %s TO %I', what, role_name);
		END IF;
	END LOOP;
END
$$;

-- Nothing is for everybody.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA paynotify FROM PUBLIC;
